"""Typical mistakes and what is said about them: which op, what was received, what to do."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.compat.torch as torch
from runnel import nn, optim
from runnel.core import tables
from runnel.core.errors import (
    ArgumentError,
    AxisError,
    CaptureError,
    CaptureWarning,
    DeviceError,
    DTypeError,
    GradientError,
    MissingRuleError,
    RunnelError,
    ShapeError,
    TracedValueError,
)
from runnel.core.public import explained
from runnel.core.tables import Op
from runnel.tensor.variable import Variable

X = rn.asarray(np.arange(12, dtype=np.float32).reshape(3, 4))
LABELS = rn.asarray(np.array([0, 3, 1]))
LAYER = nn.Linear(4, 2)
CELL = Variable(np.zeros((2, 3), np.float32), name="cell")


def backward_twice() -> None:
    x = rn.tensor([1.0, 2.0], requires_grad=True)
    loss = (x * x).sum()
    loss.backward()
    loss.backward()


def step_after_a_cast() -> None:
    model = nn.Linear(4, 2)
    optimizer = optim.Adam(model.parameters())
    model.double()(X.double()).sum().backward()
    optimizer.step()


def change_a_leaf() -> None:
    w = rn.ones(3, requires_grad=True)
    w += 1


def branch_on_a_tensor() -> None:
    rn.compile(lambda x: x if x.sum() > 0 else -x)(X)


def number_of_a_tensor() -> None:
    rn.compile(lambda x: x * float(x.sum()))(X)


def formatted() -> None:
    rn.compile(lambda x: f"{x.sum():.3f}")(X)


def variable_inside() -> None:
    f = rn.compile(lambda x: Variable(np.zeros(3)).read() + x.sum())
    for _ in range(2):  # the first call may prepare something
        f(X)


def returned_object() -> None:
    rn.compile(lambda x: object())(X)


def missing_keys() -> None:
    nn.Linear(4, 2).load_state_dict({"weight": np.zeros((2, 4), np.float32), "bios": np.zeros(2, np.float32)})


def wrong_shape_in_state() -> None:
    nn.Linear(4, 2).load_state_dict({"weight": np.zeros((2, 5), np.float32), "bias": np.zeros(2, np.float32)})


def other_groups() -> None:
    optim.SGD(LAYER.parameters(), lr=0.1).load_state_dict({"state": {}, "param_groups": [{"params": [0]}]})


def missing_rule() -> None:
    tables.decompose[Op.registry["exp"]]


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception] | tuple[type[Exception], ...], str]] = {
    # shapes
    "matmul": (lambda: X @ X, ShapeError, r"\[matmul\].*\(3, 4\).*\(3, 4\)"),
    "linear": (lambda: LAYER(X[:, :3]), ShapeError, r"\[linear\].*\(3, 3\).*\(2, 4\).*size in"),
    "broadcasting": (lambda: X + rn.ones((2, 4)), ShapeError, r"\[\w+\].*\(3, 4\) and \(2, 4\).*3 and 2"),
    "reshape": (lambda: X.reshape(5, 2), ShapeError, r"\[reshape\].*\(3, 4\).*\(5, 2\)"),
    "concat": (lambda: rn.concat([X, X[:, :2]], 0), ShapeError, r"\[concat\].*\(3, 4\) and \(3, 2\)"),
    "cross_entropy": (lambda: rn.cross_entropy(X, LABELS[:2]), ShapeError, r"\[cross_entropy\].*\(2,\).*\(3, 4\)"),
    "layer_norm": (lambda: nn.LayerNorm(5)(X), ShapeError, r"\[layer_norm\].*5.*\(3, 4\)|\[layer_norm\].*\(3, 4\).*5"),
    "assign a shape": (lambda: CELL.assign(rn.ones((3, 2))), ShapeError, r"\[assign\].*'cell'.*\(2, 3\).*\(3, 2\)"),
    "where": (lambda: rn.where(X > 0, X, rn.ones(5)), ShapeError, r"\[where\].*\(3, 4\).*sizes 4 and 5"),
    "one-hot labels": (
        lambda: rn.cross_entropy(X, rn.one_hot(LABELS, 4).long()), ShapeError, r"\(3, 4\).*floats.*argmax\(1\)"
    ),
    "labels in a column": (
        lambda: rn.cross_entropy(X, LABELS[:, None]), ShapeError, r"\(3, 1\).*\(3,\).*squeeze\(1\)"
    ),
    "channels last": (
        lambda: nn.Conv2d(3, 8, 3)(rn.ones((2, 9, 9, 3))), ShapeError, r"\[conv2d\].*axis 1.*movedim\(-1, 1\)"
    ),
    # functions composed of others
    "softmax": (lambda: nn.functional.softmax(X, 2), AxisError, r"^\[softmax\] axis 2"),
    "std": (lambda: X.std(2), AxisError, r"^\[std\] axis 2"),
    "mse_loss": (lambda: nn.functional.mse_loss(X, X[:, :3]), ShapeError, r"^\[mse_loss\].*\(3, 4\) and \(3, 3\)"),
    "one_hot": (lambda: rn.one_hot(LABELS, 2), AxisError, r"^\[one_hot\] 1 of 3.*\[0, 2\)"),
    "internal name": (lambda: X.add(rn.ones((2, 4)), alpha=2), ShapeError, r"^\[add\].*\(3, 4\) and \(2, 4\)"),
    "name chosen on purpose": (lambda: X.put(LABELS, X), ShapeError, r"^\[put\].*\(3,\).*\(3, 4\)"),
    "function of a function": (lambda: rn.compile(rn.sum)(X, axis=2), AxisError, r"^\[sum\]"),
    "in place": (lambda: X.clone().masked_fill_(X, 1.0), DTypeError, r"^\[masked_fill_\].*bool"),
    # dtypes
    "a cast behind the optimizer": (
        step_after_a_cast, DTypeError, r"\[Adam\].*'weight' is float64.*was float32.*make the optimizer after"
    ),
    "float labels": (
        lambda: rn.cross_entropy(X, LABELS.astype("float32")),
        ShapeError,
        r"\[cross_entropy\].*float32.*\(3,\).*integers",
    ),
    "float indices": (lambda: nn.Embedding(4, 2)(X[0]), DTypeError, r"\[embedding\].*integer.*float32"),
    "assign a dtype": (lambda: CELL.assign(rn.ones((2, 3), "int32")), DTypeError, r"\[assign\].*float32.*int32.*Cast"),
    "bits of floats": (lambda: X | 1, DTypeError, r"\[or\].*float32.*Cast"),
    "unknown dtype": (lambda: X.astype("float31"), TypeError, r"float31.*float32"),
    "complex": (lambda: rn.floor(rn.asarray(1j)), DTypeError, r"\[floor\].*complex64.*real"),
    "long double": (lambda: rn.asarray(np.zeros(2, np.longdouble)), TypeError, r"float128.*float32"),
    # axes and indices
    "axis": (lambda: X.sum(2), AxisError, r"\[sum\].*axis 2.*2 dimensions"),
    "index": (lambda: X[:, 4], AxisError, r"\[\w+\].*index 4.*axis 1.*\(3, 4\)"),
    "label out of range": (
        lambda: rn.cross_entropy(X, rn.asarray(np.array([0, 9, 1]))), AxisError, r"1 of 3.*\[0, 4\).*9"
    ),
    "a mask that does not fit": (lambda: X[X[0] > 0], AxisError, r"\[getitem\] a mask of shape \(4,\).*0.*\(3, 4\)"),
    "a mask in a program": (lambda: rn.compile(lambda x: x[x > 0])(X), CaptureError, r"\[getitem\].*mask.*where"),
    "an index array": (lambda: X[:, [0, -5]], AxisError, r"\[getitem\] index -5.*axis 1.*\(3, 4\)"),
    "an index of take": (lambda: rn.take(X, LABELS - 4, 0), AxisError, r"\[take\] index -4.*axis 0.*\(3, 4\)"),
    "a word as index": (lambda: X["a"], AxisError, r"\[getitem\] takes integers, slices.*str"),
    "floats as index": (lambda: X[np.array([0.5])], DTypeError, r"\[getitem\].*float64"),
    "item": (lambda: X.item(), ValueError, r"\[item\].*one element.*\(3, 4\)"),
    "truth": (lambda: bool(X), ValueError, r"\[bool\].*\(3, 4\).*any, all, sum"),
    # gradients
    "a leaf in place": (change_a_leaf, GradientError, r"\[iadd\].*no_grad.*clone"),
    "no Parameters": (lambda: optim.SGD([]), ValueError, r"\[SGD\] params must not be.*call it again.*ModuleList"),
    "a module for Parameters": (lambda: optim.SGD(LAYER), TypeError, r"\[SGD\].*model.parameters\(\).*Linear"),
    "a wrong word of a layer": (lambda: nn.Linear(4, 2, bais=True), TypeError, r"\[Linear\].*'bais'.*'bias'"),  # type: ignore[call-arg]
    "backward twice": (backward_twice, GradientError, r"\[backward\].*freed.*retain_graph=True"),
    "backward of a matrix": (
        lambda: rn.tensor([1.0, 2.0], requires_grad=True).backward(), GradientError, r"\[backward\].*\(2,\).*sum\(\)"
    ),
    "backward of a constant": (lambda: X.sum().backward(), GradientError, r"\[backward\].*requires_grad_\(\)"),
    "seed": (
        lambda: rn.tensor([1.0, 2.0], requires_grad=True).backward(rn.ones(3)), GradientError,
        r"\[backward\].*seed.*\(3,\).*\(2,\)",
    ),
    "gradient of integers": (lambda: rn.tensor([1], requires_grad=True), GradientError, r"\[tensor\] the dtype.*int64"),
    "Variable of integers": (lambda: Variable([1, 2], requires_grad=True), GradientError, r"\[Variable\].*int64"),
    "writing into a leaf": (
        lambda: rn.tensor([1.0], requires_grad=True).__setitem__(0, 2.0), GradientError, r"\[setitem\].*no_grad.*copy"
    ),
    # compiled functions
    "if": (branch_on_a_tensor, TracedValueError, r"\[bool\].*bool\[\].*test_messages.py:\d+.*runnel.where"),
    "float": (number_of_a_tensor, TracedValueError, r"\[float\].*float32\[\].*test_messages.py:\d+"),
    "a number of a tensor, formatted": (
        formatted, TracedValueError, r"\[format\].*float32\[\].*test_messages.py:\d+.*print"
    ),
    "a Variable inside": (variable_inside, CaptureWarning, r"runs eagerly: \[Variable\].*test_messages.py:\d+"),
    "an object": (returned_object, CaptureWarning, r"\[compile\].*runs eagerly: .*an object made in the function"),
    "not a function": (lambda: rn.compile(3), TypeError, r"\[compile\].*function.*int"),
    # networks, optimizers, state
    "missing and unexpected names": (missing_keys, RunnelError, r"\[load_state_dict\].*bias.*bios"),
    "a wrong shape in the state": (wrong_shape_in_state, RunnelError, r"\[\w+\].*weight.*\(2, 4\).*\(2, 5\)"),
    "other groups": (other_groups, RunnelError, r"\[load_state_dict\].*\[2\].*\[1\]"),
    "no parameters": (lambda: optim.SGD([], lr=0.1), ValueError, r"\[SGD\] params must not be empty"),
    "tensors for Parameters": (
        lambda: optim.SGD([X], lr=0.1), GradientError, r"\[SGD\] params must be Parameters, or .*requires_grad=False"
    ),
    "negative rate": (lambda: optim.Adam(LAYER.parameters(), lr=-1.0), ValueError, r"\[Adam\] lr must be.* got -1\.0"),
    "betas": (lambda: optim.Adam(LAYER.parameters(), betas=(0.9, 1.0)), ValueError, r"\[Adam\] betas.*1\.0"),
    "dropout": (lambda: nn.Dropout(-0.1), ValueError, r"\[Dropout\].*probability.*-0\.1"),
    "drop function": (lambda: rn.dropout(X, 1.5), ValueError, r"\[dropout\].*probability.*1\.5"),
    "a layer that is none": (lambda: nn.Sequential(nn.ReLU(), 3), TypeError, r"\[Sequential\].*[Mm]odule.*int"),
    "a device": (lambda: X.to("tpu"), DeviceError, r"'tpu'.*cpu"),
    "a GPU": (lambda: X.to("cuda"), DeviceError, r"\[device\].*'cuda'.*Programs run on CPUs.*is_available"),
    "a module on a GPU": (lambda: nn.Linear(2, 2).cuda(), DeviceError, r"\[device\].*'cuda'.*Programs run on CPUs"),
    "CUDA's names": (
        lambda: torch.cuda.Event(), NotImplementedError, r"\[torch.cuda.Event\].*is_available\(\) is False",
    ),
    "numpy of a leaf's result, flattened wrongly": (
        lambda: X.view(5, 3), ShapeError, r"\[\w+\].*\(3, 4\).*\(5, 3\)",
    ),
    "a stack of unlike shapes": (lambda: rn.stack([X, X[:2]]), ShapeError, r"\[stack\].*\(3, 4\).*\(2, 4\)"),
    "ragged rows": (lambda: rn.tensor([[1, 2], [3]]), (ValueError, TypeError), r"\[\w+\]"),
    "a permutation that is none": (lambda: X.permute(0, 0), AxisError, r"\[permute\w*\]"),
    "an axis to squeeze": (lambda: rn.squeeze(X, 0), ShapeError, r"\[squeeze\] axis 0.*\(3, 4\).*size 1"),
    "a chunk of nothing": (lambda: X.chunk(0), ValueError, r"\[chunk\]"),
    "too many largest": (lambda: rn.topk(X, 9), (ValueError, ShapeError), r"\[topk\].*9"),
    "a word for a reduction": (
        lambda: nn.functional.mse_loss(X, X, reduction="avg"), ValueError, r"\[mse_loss\].*'avg'",
    ),
    "unlike sizes of a loss": (lambda: nn.functional.mse_loss(X, X[:2]), ShapeError, r"\[\w+\].*\(3, 4\).*\(2, 4\)"),
    "channels of an image": (
        lambda: nn.Conv2d(3, 4, 3)(rn.ones((1, 1, 8, 8))), ShapeError,
        r"\[conv\w*\] an input of 1 channels.*takes 3 channels",
    ),
    "a kernel larger than its image": (
        lambda: nn.Conv2d(1, 4, 9)(rn.ones((1, 1, 8, 8))), ShapeError, r"\[conv\w*\]",
    ),
    "heads that do not divide": (lambda: nn.MultiheadAttention(10, 3), ValueError, r"\[MultiheadAttention\].*10.*3"),
    "features of a batch norm": (
        lambda: nn.BatchNorm1d(5)(X), ShapeError, r"\[\w+\].*(5.*\(3, 4\)|\(3, 4\).*5)",
    ),
    "an unknown keyword": (lambda: rn.sum(X, dimension=1), TypeError, r"\[sum\] takes no argument 'dimension'.*axis"),
    "an einsum of unlike sizes": (lambda: rn.einsum("ij,jk->ik", X, X), ShapeError, r"\[einsum\].*j"),
    "a missing rule": (missing_rule, MissingRuleError, r"\[exp\].*'decompose'.*register"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_reported(name: str) -> None:
    call, error, pattern = MISTAKES[name]
    with pytest.raises(error, match=f"(?s){pattern}") as caught:
        call()
    assert str(caught.value).rstrip().endswith((".", ")")), "a sentence"
    if not isinstance(caught.value, Warning):  # their lines are told without a traceback
        assert shown_at(caught.value).startswith(f"{__file__}:"), "the last line that is shown is the user's"


def shown_at(error: BaseException) -> str:
    """The last line that Python shows of an error that ends a program."""
    *_, last = traceback.extract_tb(error.__traceback__)
    return f"{last.filename}:{last.lineno}"


@pytest.mark.suite
def test_a_program_ends_with_the_users_line(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import runnel as rn\nx = rn.ones((3, 4))\nx @ x\n", encoding="utf-8")
    ended = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    frames = [line for line in ended.stderr.splitlines() if line.startswith("  File ")]
    assert frames == [f'  File "{program}", line 3, in <module>'] and "[matmul]" in ended.stderr


def test_refusals_change_nothing() -> None:
    before = CELL.numpy().copy()
    for name in ("assign a shape", "assign a dtype"):
        with pytest.raises(RunnelError):
            MISTAKES[name][0]()
    np.testing.assert_array_equal(CELL.numpy(), before)


def test_a_bug_keeps_its_class_and_traceback() -> None:
    """An error that no argument explains is not the user's mistake."""
    bug = KeyError("missing")

    def broken(x: Any, size: int) -> None:
        raise bug

    broken.__module__ = "runnel.broken"
    broken.__annotations__ = {"x": "Array", "size": "int"}
    error = explained("broken", broken, (rn.ones(2), 1), {}, bug)  # type: ignore[arg-type]
    assert error is bug
    error = explained("broken", broken, (rn.ones(2), "two"), {}, bug)  # type: ignore[arg-type]
    assert isinstance(error, ArgumentError) and str(error) == "[broken] size must be an int; got 'two' (str)."
