"""Writes through views: which results show their array, and that a write to either is seen through the other.

The tables say what PyTorch 2.13 does.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from runnel.core.errors import ArgumentError, CaptureWarning, ShapeError
from tests.compiler.harness import Traced
from tests.fuzz import views

VIEWS: dict[str, Callable[[Any], Any]] = {
    "x[0]": lambda x: x[0], "x[:]": lambda x: x[:], "x[...]": lambda x: x[...], "x[None]": lambda x: x[None],
    "x[0:1]": lambda x: x[0:1], "x[:, 1]": lambda x: x[:, 1], "x[:, ::2]": lambda x: x[:, ::2],
    "view": lambda x: x.view(6), "view of the same shape": lambda x: x.view(2, 3), "reshape": lambda x: x.reshape(3, 2),
    "t": lambda x: x.t(), "T": lambda x: x.T, "mT": lambda x: x.mT, "H": lambda x: x.H,
    "transpose": lambda x: x.transpose(0, 1), "permute": lambda x: x.permute(1, 0),
    "permute by nothing": lambda x: x.permute(0, 1), "movedim": lambda x: x.movedim(0, 1),
    "moveaxis": lambda x: x.moveaxis(0, 1), "swapaxes": lambda x: x.swapaxes(0, 1), "flatten": lambda x: x.flatten(),
    "ravel": lambda x: x.ravel(), "squeeze": lambda x: x.squeeze(), "unsqueeze": lambda x: x.unsqueeze(0),
    "expand by nothing": lambda x: x.expand(2, 3), "narrow": lambda x: x.narrow(0, 0, 1),
    "narrow by nothing": lambda x: x.narrow(0, 0, 2), "select": lambda x: x.select(0, 0),
    "chunk": lambda x: x.chunk(2)[0], "one chunk": lambda x: x.chunk(1)[0], "split": lambda x: x.split(1)[0],
    "tensor_split": lambda x: x.tensor_split(2)[0], "hsplit": lambda x: x.hsplit(3)[0],
    "vsplit": lambda x: x.vsplit(2)[0], "unbind": lambda x: x.unbind(0)[0], "view_as": lambda x: x.view_as(x),
    "diagonal": lambda x: x.diagonal(), "diagonal above": lambda x: x.diagonal(1),
    "unfold": lambda x: x.unfold(1, 2, 2),
    "as_strided": lambda x: x.as_strided((2, 2), (3, 1)), "unflatten": lambda x: x.unflatten(1, (1, 3)),
    "detach": lambda x: x.detach(), "data": lambda x: x.data, "contiguous": lambda x: x.contiguous(),
    "float": lambda x: x.float(), "positive": lambda x: +x, "real": lambda x: x.real, "adjoint": lambda x: x.adjoint(),
    "a view of a view": lambda x: x.t()[1:].unsqueeze(0).reshape(2, 2),
    "broadcast_arrays": lambda x: rn.broadcast_arrays(x, x)[0], "rn.reshape": lambda x: rn.reshape(x, (6,)),
    "nn.Flatten": lambda x: nn.Flatten(0)(x), "nn.Identity": lambda x: nn.Identity()(x),
}  # fmt: skip
COPIES: dict[str, Callable[[Any], Any]] = {
    "clone": lambda x: x.clone(), "reshape of a transpose": lambda x: x.t().reshape(6),
    "contiguous of a transpose": lambda x: x.t().contiguous(), "indices": lambda x: x[[0, 1]],
    "mask": lambda x: x[np.ones((2, 3), bool)], "repeat once": lambda x: x.repeat(1, 1),
    "repeat": lambda x: x.repeat(2, 1),
    "tile": lambda x: x.tile(1, 1), "flip": lambda x: x.flip(0), "flip of nothing": lambda x: x.flip(()),
    "roll": lambda x: x.roll(1, 0), "roll by nothing": lambda x: x.roll(0, 0), "rot90": lambda x: x.rot90(1),
    "rot90 by nothing": lambda x: x.rot90(0), "round": lambda x: x.round(), "diag": lambda x: x.diag(),
    "tril": lambda x: x.tril(5), "concat of one": lambda x: rn.concat([x]), "stack of one": lambda x: rn.stack([x])[0],
    "pad by nothing": lambda x: nn.functional.pad(x, (0, 0)), "pad": lambda x: nn.functional.pad(x, (-1, 0)),
    "x + 0": lambda x: x + 0, "diff": lambda x: x.diff(n=0),
    "slice_scatter": lambda x: x.slice_scatter(x, 0), "index_select": lambda x: x.index_select(0, rn.asarray([0, 1])),
    "repeat_interleave": lambda x: x.repeat_interleave(1, 0), "double": lambda x: x.double(),
}  # fmt: skip
MODES = {"eager": lambda f: f, "compiled": rn.compile}


def array() -> Any:
    return rn.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))


@pytest.mark.parametrize("kind", [rn.asarray, nn.Parameter])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", VIEWS)
def test_write_to_a_view_is_seen_in_its_array(name: str, mode: str, kind: Callable[[Any], Any]) -> None:
    def written(x: Any) -> tuple[Any, Any]:
        y = VIEWS[name](x)
        y.fill_(9)
        return x * 1, y * 1

    x = kind(array())
    with rn.no_grad():
        whole, part = MODES[mode](written)(x)
    assert (part.numpy() == 9).all()
    assert whole.tolist() == x.tolist()
    assert int((x.numpy() == 9).sum()) == part.size


@pytest.mark.parametrize("kind", [rn.asarray, nn.Parameter])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", VIEWS)
def test_write_to_an_array_is_seen_in_its_view(name: str, mode: str, kind: Callable[[Any], Any]) -> None:
    def written(x: Any) -> Any:
        y = VIEWS[name](x)
        x.mul_(2)
        x += 1
        return y * 1

    expected = VIEWS[name](array() * 2 + 1)
    with rn.no_grad():
        assert MODES[mode](written)(kind(array())).tolist() == expected.tolist()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", COPIES)
def test_write_to_a_copy_stays_there(name: str, mode: str) -> None:
    def written(x: Any) -> Any:
        y = COPIES[name](x)
        y.fill_(9)
        return x * 1

    x = array()
    assert MODES[mode](written)(x).tolist() == x.tolist() == array().tolist()


def fill(x: Any) -> None:
    x[0].fill_(1)


def set_twice(x: Any) -> None:
    x[0][1] = 5


def add_to_chunk(x: Any) -> None:
    x.chunk(2)[1].add_(1)


def add_to_view(x: Any) -> None:
    y = x.view(-1)
    y += 1


def add_at_index(x: Any) -> None:
    x[0].index_add_(0, rn.asarray([0, 2]), rn.asarray([1.0, 2.0]))


def copy_column(x: Any) -> None:
    x[:, 1].copy_(rn.asarray([7.0, 8.0]))


def swap_rows(x: Any) -> None:
    x[0], x[1] = x[1].clone(), x[0].clone()


def masked(x: Any) -> None:
    x[1].masked_fill_(x[1] > 4, 0)


WRITES: dict[Callable[[Any], None], list[list[float]]] = {
    fill: [[1, 1, 1], [3, 4, 5]],
    set_twice: [[0, 5, 2], [3, 4, 5]],
    add_to_chunk: [[0, 1, 2], [4, 5, 6]],
    add_to_view: [[1, 2, 3], [4, 5, 6]],
    add_at_index: [[1, 1, 4], [3, 4, 5]],
    copy_column: [[0, 7, 2], [3, 8, 5]],
    swap_rows: [[3, 4, 5], [0, 1, 2]],
    masked: [[0, 1, 2], [3, 4, 0]],
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("write", WRITES, ids=lambda f: f.__name__)
def test_writes(write: Callable[[Any], None], mode: str) -> None:
    x = array()
    MODES[mode](write)(x)
    assert x.tolist() == WRITES[write]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("write", [fill, add_to_chunk, copy_column], ids=lambda f: f.__name__)
def test_writes_to_parts_of_parameters(write: Callable[[Any], None], mode: str) -> None:
    by_data, by_no_grad = nn.Parameter(array()), nn.Parameter(array())

    def run() -> None:
        write(by_data.data)
        with rn.no_grad():
            write(by_no_grad)

    MODES[mode](run)()
    assert by_data.tolist() == by_no_grad.tolist() == WRITES[write]
    assert by_data.requires_grad


def test_writes_under_vmap_and_jvp() -> None:
    def set_first(x: Any) -> Any:
        y = x * 1
        y[0].fill_(9.0)
        return y

    assert rn.vmap(set_first)(array()).tolist() == [[9, 1, 2], [9, 4, 5]]
    value, tangent = rn.jvp(set_first, (array(),), (array(),))
    assert value.tolist() == [[9, 9, 9], [3, 4, 5]]
    assert tangent.tolist() == [[0, 0, 0], [3, 4, 5]]


def test_gradient_of_what_was_overwritten_is_zero() -> None:
    x = rn.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    y[:2].mul_(3)
    y[0].fill_(5)
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0, 6, 2]


def test_what_was_computed_keeps_its_gradient() -> None:
    x = rn.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    squares = y * y  # PyTorch refuses this backward pass: it has no longer what y was
    y[0].zero_()
    squares.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 4, 6]


@pytest.mark.parametrize("detach", [lambda x: x.detach(), lambda x: x.view(3).data])
@pytest.mark.parametrize("mode", MODES)
def test_a_detached_view_has_its_own_tape(mode: str, detach: Callable[[Any], Any]) -> None:
    x, y = rn.tensor([1.0, 2.0, 3.0], requires_grad=True), rn.tensor([4.0], requires_grad=True)

    def loss(x: Any, y: Any) -> Any:
        whole = x * 2
        apart = detach(whole)
        part = apart[:1]
        part.add_(y)  # also a write to the values of ``whole``, which has no gradient by y
        whole.mul_(3)  # and one to the values of ``apart``, whose gradient stays
        return whole.sum() + (part * 5).sum() + apart.sum()

    total = MODES[mode](loss)(x, y)
    total.backward()
    assert x.grad is not None and y.grad is not None
    assert (float(total), x.grad.tolist(), y.grad.tolist()) == (186, [6, 6, 6], [6])


@pytest.mark.parametrize("leaves_too", [False, True])
def test_a_detached_view_that_leaves_a_compiled_function(leaves_too: bool) -> None:
    x = rn.tensor([1.0, 2.0, 3.0], requires_grad=True)

    def function(x: Any) -> Any:
        whole = x * 2
        apart = whole.detach().requires_grad_()
        return apart, (apart * apart * x).sum(), whole if leaves_too else None

    compiled = rn.compile(function)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        apart, loss, whole = compiled(x)
    told = ["a detached tensor that got a gradient leaves the function" in str(w.message) for w in caught]
    assert told == [True] * leaves_too, "only then both show the same elements"
    loss.backward()
    assert x.grad is not None and x.grad.tolist() == [4, 16, 36]
    assert apart.grad is not None and apart.grad.tolist() == [4, 16, 36]
    if leaves_too:
        whole.detach().zero_()
        assert apart.tolist() == [0, 0, 0]


def test_write_to_an_expanded_tensor_is_refused() -> None:
    x = rn.ones((1, 3))
    with pytest.raises(ValueError, match="must not reach an element several times"):
        x.expand(4, 3).fill_(2)
    with pytest.raises(ValueError, match="must not reach an element several times"):
        rn.arange(4).unfold(0, 2, 1).fill_(2)
    assert x.tolist() == [[1, 1, 1]]


def test_failed_write_changes_nothing() -> None:
    x = array()
    y = x[0]
    with pytest.raises(ValueError):
        y.copy_(rn.ones((2,)))
    with pytest.raises(ValueError):
        y += rn.ones((2, 3))
    assert x.tolist() == array().tolist() and y.tolist() == [0, 1, 2]


def test_data_that_is_replaced_leaves_earlier_views() -> None:
    x = array()
    y, kept = x[0], x.data
    x.data = rn.zeros((2, 3))
    y.fill_(9)
    assert x.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert kept.tolist() == [[9, 9, 9], [3, 4, 5]]


def test_shape_changed_in_place_keeps_what_it_shows() -> None:
    x = array()
    row = x[0]
    x.t_()
    x[0].fill_(9)
    assert x.shape == (3, 2)
    assert row.tolist() == [9, 1, 2]


def test_dead_views_are_forgotten() -> None:
    x = array()
    for _ in range(1000):
        x[0]
    assert len(x._views) < 20


@pytest.mark.parametrize("kind", [nn.Parameter, lambda x: x.requires_grad_()])
@pytest.mark.parametrize("loss", [rn.sum, lambda x: x.T.sum(), lambda x: x[0].mean()])
def test_gradients_are_no_views(kind: Callable[[Any], Any], loss: Callable[[Any], Any]) -> None:
    x = kind(array())
    loss(x).backward()
    x.grad.mul_(2.0)
    x.grad[0] = 1.0
    x.grad.data.zero_()
    assert x.grad.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_a_view_of_a_variable_follows_compiled_functions() -> None:
    v = rn.Variable(np.ones(3, np.float32))
    row = v[0:2]
    step = rn.compile(lambda x: v.assign(v * x))
    for _ in range(3):
        step(rn.asarray(2.0))
        assert row.tolist() == v.tolist()[:2]

    with pytest.warns(CaptureWarning, match="a view of it is held outside"):
        rn.compile(lambda x: (v.assign(v * x), row + 0.0))(rn.asarray(2.0))
    assert row.tolist() == [16, 16]


def test_a_view_of_another_thread_takes_no_traced_value() -> None:
    v = rn.Variable(np.ones(3, np.float32))
    held: list[rn.Tensor] = []

    def step() -> rn.Tensor:
        other = threading.Thread(target=lambda: held.append(v[0:1]))
        other.start()
        other.join()
        v.assign(v * 2.0)
        return v.read()

    Traced(step, ())
    assert held[0].tolist() == [1]


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    fault = views.fault(seed, compiled=seed % 4 == 0)
    assert fault is None, fault


def test_strides_are_steps_in_memory() -> None:
    x = rn.arange(24.0).reshape(4, 2, 3)  # (sequence, batch, features), of which each batch makes chunks
    rows = x.transpose(0, 1)
    assert rows.as_strided((2, 3, 2, 3), (3, 6, 6, 1)).tolist() == [
        [x.numpy()[i : i + 2, b].tolist() for i in range(3)] for b in range(2)
    ]
    assert x[1:].as_strided((2,), (6,)).tolist() == [6.0, 12.0]
    rows.as_strided((2,), (1,)).zero_()
    assert x[0, 0].tolist() == [0.0, 0.0, 2.0]
    with pytest.raises(ShapeError, match="must fill its memory"):
        x[:, 0].as_strided((2,), (1,))
    with pytest.raises(ShapeError, match="storage_offset must be None or 0"):
        x[1:].as_strided((2,), (1,), 7)


def test_offsets_are_steps_in_memory() -> None:
    x = rn.arange(24.0).reshape(4, 6)
    parts = [x, x[1], x[1:3, 2:], x.T[2], x[..., 3], x.reshape(-1)[5:], x[1][2:], x.chunk(2)[1], x[1].detach()]
    assert [part.storage_offset() for part in [*parts, x[1].clone(), x.clone()[2]]] == [
        0, 6, 8, 2, 3, 5, 8, 12, 6, 0, 12
    ]  # fmt: skip
    assert rn.Parameter(x).data[2].storage_offset() == 12
    with pytest.raises(ArgumentError, match="must lie in the memory of its base"):
        x.unfold(1, 2, 1).storage_offset()


@pytest.mark.suite
def test_variables_that_outlive_modules_end_silently() -> None:
    program = """
import runnel as rn
from runnel.tensor import views
p = rn.Parameter(rn.ones(2))
v = p.detach()
views.kept = lambda: p
"""
    run = subprocess.run([sys.executable, "-c", program], check=True, timeout=60, capture_output=True, text=True)
    assert not run.stderr
