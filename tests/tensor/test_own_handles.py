"""Methods that need not compute anything give another handle: writing to the result leaves the array as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import runnel as rn

WHOLE: dict[str, Callable[[Any], Any]] = {
    "view": lambda x: x.view(x.shape), "view_as": lambda x: x.view_as(x), "reshape_as": lambda x: x.reshape_as(x),
    "expand_as": lambda x: x.expand_as(x), "t": lambda x: x.t(), "movedim": lambda x: x.movedim(0, 0),
    "moveaxis": lambda x: x.moveaxis(0, 0), "unsqueeze": lambda x: x.unsqueeze(()),
    "narrow": lambda x: x.narrow(0, 0, 3),
    "chunk": lambda x: x.chunk(1)[0], "split": lambda x: x.split(3)[0], "split by sizes": lambda x: x.split([3])[0],
    "tensor_split": lambda x: x.tensor_split(1)[0], "hsplit": lambda x: x.hsplit(1)[0], "roll": lambda x: x.roll(0),
    "flip": lambda x: x.flip(()), "tile": lambda x: x.tile(()), "repeat": lambda x: x.repeat(1),
    "floor": lambda x: x.floor(), "ceil": lambda x: x.ceil(), "round": lambda x: x.round(),
    "trunc": lambda x: x.trunc(),
    "fix": lambda x: x.fix(), "pow": lambda x: x.pow(1), "diff": lambda x: x.diff(0),
    "sum_to_size": lambda x: x.sum_to_size((3,)), "slice_scatter": lambda x: x.slice_scatter(x, 0, 0, 3),
}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", WHOLE)
def test_a_write_to_the_result_stays_there(name: str, compiled: bool) -> None:
    def written(x: Any) -> tuple[Any, Any]:
        y = WHOLE[name](x)
        y[0] = 9
        return x * 1, y * 1

    x = rn.tensor([1, 2, 3])
    before, after = (rn.compile(written) if compiled else written)(x)
    assert before.tolist() == x.tolist() == [1, 2, 3]
    assert after.tolist() == [9, 2, 3]


def test_gradients_go_through_to_the_array() -> None:
    x = rn.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (whole,) = x.chunk(1)
    (whole * x.roll(0)).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 4, 6]


def test_powers_and_turns_of_matrices_by_nothing() -> None:
    for of in (
        lambda x: x.matrix_power(1),
        lambda x: x.rot90(0),
        lambda x: x.vsplit(1)[0],
        lambda x: x.fliplr().fliplr(),
    ):
        x = rn.tensor([[1.0, 2.0], [3.0, 4.0]])
        of(x)[0, 0] = 9
        assert x.tolist() == [[1, 2], [3, 4]]
