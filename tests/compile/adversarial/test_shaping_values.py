"""Shapes that depend on values: those of tensors from outside are compared at each call, those of batches are refused."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import runnel as rn
from runnel import nn
from runnel.core.errors import TracedValueError

DATA = SimpleNamespace()


def mask(*values: int) -> rn.Tensor:
    return rn.tensor([bool(value) for value in values])


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.chosen, self.weight = mask(1, 0, 1, 0), nn.Parameter(rn.ones(4))

    def forward(self, x: Any) -> Any:
        return (x * self.weight)[self.chosen].sum()


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "getitem": lambda x: x[DATA.mask] * 2,
    "two_axes": lambda x: rn.stack([x, x])[:, DATA.mask],
    "masked_select": lambda x: rn.masked_select(x, DATA.mask),
    "nonzero": lambda x: x[rn.nonzero(DATA.mask)[0]],
    "method": lambda x: DATA.mask.nonzero() + 1,
    "repeat": lambda x: rn.repeat(x, DATA.counts),
    "unique": lambda x: rn.unique_values(DATA.counts) + x.sum(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_from_outside_are_compared(name: str) -> None:
    """Whether another tensor is there, or this one has been changed in place."""
    function = FUNCTIONS[name]
    compiled = rn.compile(function)

    def agree(traces: int) -> None:
        for i in range(3):
            x = rn.tensor([1.0, 2.0, 3.0, 4.0]) + i
            assert compiled(x).tolist() == function(x).tolist()
        assert compiled.statistics["traces"] == traces, compiled.retraces

    DATA.mask, DATA.counts = mask(1, 0, 1, 0), rn.tensor([1, 2, 0, 1])
    agree(1)
    DATA.mask, DATA.counts = mask(1, 0, 1, 0), rn.tensor([1, 2, 0, 1])
    agree(1)
    DATA.mask, DATA.counts = mask(1, 1, 1, 0), rn.tensor([2, 2, 3, 1])
    agree(2)
    DATA.mask[3] = True
    DATA.counts[3] = 5
    agree(3)


def test_a_tensor_of_a_module_that_is_changed_in_place() -> None:
    layer = Layer()

    @rn.compile
    def step(x: Any) -> Any:
        layer.weight.grad = None
        loss = layer(x)
        loss.backward()
        return loss

    for chosen, loss in ((None, 2.0), (None, 2.0), (1, 3.0), (None, 3.0), (3, 4.0)):
        if chosen is not None:
            layer.chosen[chosen] = True
        assert step(rn.ones(4)).item() == loss
        assert layer.weight.grad is not None and layer.weight.grad.tolist() == layer.chosen.float().tolist()


def test_those_of_an_object_that_is_an_argument() -> None:
    step = rn.compile(lambda data: data.x[data.mask])
    data = SimpleNamespace(x=rn.arange(4), mask=mask(0, 1, 1, 0))
    assert step(data).tolist() == step(data).tolist() == [1, 2]
    data.mask = mask(0, 0, 0, 1)
    assert step(data).tolist() == [3] and step.statistics["traces"] == 2


@pytest.mark.parametrize(
    "function",
    [
        lambda x, batch: x[batch[0]],
        lambda x, batch: x[batch[1]["mask"]],
        lambda x, batch: x[DATA.mask & batch[0]],
        lambda x, batch: rn.scan(lambda c, _: (c, rn.ones(4)[c > 0]), x, None, length=2)[1],
    ],
)
def test_those_of_batches_and_of_the_program_are_refused(function: Any) -> None:
    DATA.mask = mask(1, 0, 1, 0)
    with pytest.raises(TracedValueError, match="how many elements a mask chooses"):
        rn.compile(function)(rn.ones(4), (DATA.mask, {"mask": mask(1, 0, 0, 0)}))


def test_what_the_function_has_changed_is_refused() -> None:
    DATA.mask = mask(1, 0, 1, 0)

    def step(x: Any) -> Any:
        DATA.mask[1] = True
        return x[DATA.mask]

    with pytest.raises(TracedValueError, match="how many elements a mask chooses"):
        rn.compile(step)(rn.ones(4))
