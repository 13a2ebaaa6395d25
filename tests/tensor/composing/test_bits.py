"""Every composition as a program: the bits of the op by op form, with gradients to the second order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import runnel as rn
from runnel.core import switches
from runnel.core.composed import Composition, composition_of
from runnel.tensor import composing

from .cases import CASES, Arguments

pytestmark = pytest.mark.suite


def leaves_like(arguments: Arguments) -> list[rn.Tensor]:
    return [x.detach().requires_grad_() if x.dtype.is_float else x for x in arguments]


def bits(values: Sequence[rn.Tensor | None]) -> list[Any]:
    return [None if x is None else (x.shape, x.dtype, x.numpy().tobytes()) for x in values]


def first_order(fn: Callable[..., Any], arguments: Arguments) -> list[rn.Tensor | None]:
    """The value without a tape, and with one, and its gradients."""
    with rn.no_grad():
        bare = fn(*arguments)
    leaves = leaves_like(arguments)
    out = fn(*leaves)
    out.backward(rn.full_like(out, 1.25))
    return [bare, out, *[x.grad for x in leaves]]


def second_order(fn: Callable[..., Any], arguments: Arguments) -> list[rn.Tensor | None]:
    """Gradients, and gradients of the sum of their squares."""
    leaves = leaves_like(arguments)
    floats = [x for x in leaves if x.requires_grad]
    out = fn(*leaves)
    first = rn.autograd.grad(out, floats, rn.full_like(out, 1.25), create_graph=True)
    total = sum(((g.astype(rn.float32) ** 2).sum() for g in first), start=rn.zeros(()))
    second = rn.autograd.grad(total, floats, allow_unused=True) if total.requires_grad else ()
    return [*first, *second]


@pytest.mark.parametrize("name", CASES)
def test_programs_have_the_bits_of_single_ops(name: str) -> None:
    fn, arguments = CASES[name]
    with switches.override(eager=True):
        values, derivatives = bits(first_order(fn, arguments)), bits(second_order(fn, arguments))
    composing.clear()
    for _ in range(2):
        assert bits(first_order(fn, arguments)) == values
    again = bits(second_order(fn, arguments))
    assert again[: len(derivatives)] == derivatives  # where all second derivatives are 0 there may be no tape of ops


def test_every_composition_has_a_case() -> None:
    names = {name.partition(" ")[0] for name in CASES}
    modules = [m for name, m in sys.modules.items() if name.startswith(("runnel.ops.", "runnel.nn."))]
    values = [value for module in modules for value in vars(module).values()]
    compositions = {c.name for value in values if isinstance(c := composition_of(value), Composition)}
    assert len(compositions) > 30 and compositions <= names
