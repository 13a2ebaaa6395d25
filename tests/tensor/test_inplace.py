"""In-place methods and operators: each gives what its function gives, to Tensors, Variables and leaves."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import CaptureError, DTypeError, GradientError, RunnelError, ShapeError
from runnel.tensor.function_methods import FunctionMethods

X = np.array([[0.3, 0.9, 0.2], [0.8, 0.1, 0.6]], np.float32)
Y = np.array([[0.7, 0.2, 0.5], [0.4, 0.3, 0.9]], np.float32)
ROWS = np.array([1, 1])
PLACES = np.array([[0, 1, 1], [1, 1, 0]])

IN_PLACE = [name.removesuffix("_") for name in vars(FunctionMethods) if name.endswith("_") and name[0] != "_"]
DRAWN = {"bernoulli", "random", "normal", "uniform"}  # random numbers: tests/random
SHAPED = {
    "as_strided",
    "squeeze",
    "swapaxes",
    "swapdims",
    "t",
    "transpose",
    "unsqueeze",
}  # tests/tensor/test_reshaping.py
OWN = DRAWN | SHAPED | {"apply", "map", "map2", "resize", "resize_as", "set"}
FUNCTIONS = [name for name in IN_PLACE if hasattr(FunctionMethods, name) and name not in OWN]
REPLACEMENTS = [name for name in IN_PLACE if name not in FUNCTIONS and name not in OWN]
INTEGERS = [name for name in FUNCTIONS if name.startswith("bitwise") or name in ("gcd", "lcm")]


def operands(name: str) -> tuple[Any, ...]:
    """Arguments of the method ``name`` beside the array."""
    special = {
        "lerp": (Y, 0.3), "addcmul": (Y, Y), "addcdiv": (Y, X), "masked_fill": (X > 0.5, 2.0), "clamp": (0.25, 0.7),
        "clip": (0.25, 0.7), "clamp_min": (0.25,), "clamp_max": (0.7,), "index_add": (0, ROWS, Y),
        "index_copy": (0, ROWS, Y), "index_fill": (1, ROWS, 3.0), "index_put": ((ROWS, ROWS), 4.0), "copy": (Y,),
        "fill": (1.5,), "zero": (), "pow": (2.5,), "cumsum": (1,), "cumprod": (1,), "masked_scatter": (X > 0.5, Y),
        "scatter": (0, PLACES, Y), "scatter_add": (0, PLACES, Y), "scatter_reduce": (0, PLACES, Y, "prod"),
        "put": (ROWS, np.float32([2.0, 3.0]), True), "renorm": (2.0, 0, 0.5),
        "addmm": (X[:, :2], Y), "addmv": (Y.T, X[:, 0]), "addr": (X[:, 0], Y[0]), "addbmm": (X[None, :, :2], Y[None]),
        "baddbmm": (X[None, :, :2], Y[None]), "index_reduce": (0, ROWS, Y, "prod"), "mvlgamma": (1,), "polygamma": (1,),
    }  # fmt: skip
    if name in special:
        return tuple(rn.asarray(v) if isinstance(v, np.ndarray) else v for v in special[name])
    if name in REPLACEMENTS or not takes_another(name):
        return ()
    return (rn.asarray(Y) if name not in INTEGERS else rn.asarray(np.array([[1, 2, 3], [1, 1, 2]])),)


def takes_another(name: str) -> bool:
    """Return whether a method needs an argument."""
    _, *others = inspect.signature(getattr(rn.Tensor, name)).parameters.values()
    return any(p.default is p.empty for p in others)


def start(name: str) -> np.ndarray:
    if name in INTEGERS:
        return np.array([[5, 2, 7], [1, 0, 3]])
    return {"addmv": X[0], "baddbmm": X[None], "acosh": X + 1, "arccosh": X + 1, "mvlgamma": X + 1}.get(name, X)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_in_place_method_gives_what_its_function_gives(name: str) -> None:
    arguments = operands(name)
    x = rn.asarray(start(name))
    expected = getattr(x, name)(*arguments).astype(x.dtype).numpy()
    assert np.array_equal(x.numpy(), start(name)), "the function changes nothing"
    other = x.clone()
    assert getattr(x, f"{name}_")(*arguments) is x
    assert np.array_equal(x.numpy(), expected) and np.array_equal(other.numpy(), start(name))
    variable, again = rn.Variable(start(name)), rn.Variable(start(name))
    reference = variable.read()
    assert getattr(variable, f"{name}_")(*arguments) is variable
    assert np.array_equal(variable.numpy(), expected) and np.array_equal(reference.numpy(), start(name))

    @rn.compile
    def update(x: rn.Tensor) -> rn.Tensor:
        getattr(again, f"{name}_")(*arguments)
        y = x.clone()
        getattr(y, f"{name}_")(*arguments)
        return y

    assert np.array_equal(update(rn.asarray(start(name))).numpy(), expected)
    assert np.array_equal(again.numpy(), expected)


DIFFERENTIATED = (
    "add",
    "mul",
    "sub",
    "div",
    "pow",
    "exp",
    "tanh",
    "clamp",
    "lerp",
    "addcmul",
    "index_add",
    "index_copy",
)


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_gradients_are_those_of_the_function(name: str) -> None:
    arguments = operands(name)

    def in_place(x: rn.Tensor) -> rn.Tensor:
        y = x * 1.0
        getattr(y, f"{name}_")(*arguments)
        return (y * y).sum()

    expected = rn.grad(lambda x: (getattr(x * 1.0, name)(*arguments) ** 2).sum())(rn.asarray(X))
    assert np.array_equal(rn.grad(in_place)(rn.asarray(X)).numpy(), expected.numpy())


@pytest.mark.parametrize("make", [rn.asarray, rn.Variable])
def test_filling(make: Any) -> None:
    x = make(X)
    assert x.fill_(2).tolist() == [[2.0] * 3] * 2 and x.zero_().tolist() == [[0.0] * 3] * 2
    assert x.copy_(rn.asarray(Y)).tolist() == Y.tolist() and x.copy_(1).tolist() == [[1.0] * 3] * 2
    assert make(np.zeros(2, np.int64)).fill_(2.5).tolist() == [2, 2]
    rn.manual_seed(3)
    drawn = x.normal_(1.0, 2.0).numpy().copy(), x.uniform_(3.0, 4.0).numpy().copy(), x.bernoulli_(0.5).numpy().copy()
    assert len(np.unique(drawn[0])) == 6 and ((drawn[1] >= 3) & (drawn[1] < 4)).all() and set(drawn[2].flat) <= {0, 1}
    rn.manual_seed(3)
    assert np.array_equal(x.normal_(1.0, 2.0).numpy(), drawn[0])
    with pytest.raises(DTypeError, match=r"\[normal_\].*int64"):
        make(np.zeros(2, np.int64)).normal_()


def test_what_does_not_fit_changes_nothing() -> None:
    whole, floats = rn.asarray([1, 2]), rn.asarray(X)
    cases: list[tuple[Any, type[RunnelError], str]] = [
        (lambda: whole.add_(0.5), DTypeError, r"\[add_\].*float32.*int64"),
        (lambda: whole.div_(2), DTypeError, r"\[div_\].*float32.*int64"),
        (lambda: floats.add_(rn.ones((2, 2, 3))), ShapeError, r"\[add_\].*\(2, 2, 3\).*\(2, 3\)"),
        (lambda: floats.masked_fill_(whole, 1.0), DTypeError, r"\[masked_fill_\].*bool"),
        (lambda: floats.fill_(rn.ones(2)), ShapeError, r"\[fill_\]"),
        (lambda: floats.index_add_(0, rn.asarray([5]), floats[:1]), IndexError, r"\[index_add_\] index 5.*\(2, 3\)"),
    ]  # type: ignore[list-item]
    for call, error, message in cases:
        with pytest.raises(error, match=message):
            call()
    variable = rn.Variable(np.array([1, 2]))
    tall = rn.ones((2, 2))
    for change in (lambda: variable.__iadd__(0.5), lambda: variable.__itruediv__(2), lambda: variable.mul_(tall)):
        with pytest.raises((DTypeError, ShapeError)):
            change()
    assert whole.tolist() == [1, 2] and np.array_equal(floats.numpy(), X) and variable.tolist() == [1, 2]
    assert floats.add_(np.ones((2, 3))).dtype is rn.float32 and whole.add_(rn.asarray([True, False])).tolist() == [2, 2]


@pytest.mark.parametrize("operator", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"])
def test_operators_change_variables_and_leaves(operator: str) -> None:
    expected = getattr(rn.asarray(X), f"__{operator}__")(2.0).numpy()
    variable = same = rn.Variable(X)
    assert getattr(variable, f"__i{operator}__")(2.0) is same and np.array_equal(same.numpy(), expected)
    w = rn.tensor(X, requires_grad=True)
    with pytest.raises(GradientError, match="no_grad"):
        getattr(w, f"__i{operator}__")(2.0)
    with rn.no_grad():
        assert getattr(w, f"__i{operator}__")(2.0) is w
    assert np.array_equal(w.numpy(), expected) and w.requires_grad


def test_readings_and_constants_are_left_alone() -> None:
    variable = rn.Variable(X)
    with pytest.raises(CaptureError, match="Variable"):
        variable.read().add_(1.0)
    one = rn.ones_like(rn.asarray(1.0))
    one += 1.0
    zero = rn.zeros_like(rn.asarray(1.0)).add_(3.0)
    assert one.item() == 2.0 and zero.item() == 3.0 and rn.zeros_like(rn.asarray(1.0)).item() == 0.0


def test_a_number_is_added_with_a_factor() -> None:
    x = rn.asarray([1.0, 2.0])
    assert x.add(3, alpha=2).tolist() == [7.0, 8.0] and x.sub(1.5, alpha=2).tolist() == [-2.0, -1.0]
    assert x.add_(1, alpha=True).tolist() == [2.0, 3.0]
