"""Tensors that require a gradient, in the place of Parameters: a Variable stands for each while a step runs."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from runnel.core.errors import GradientError
from runnel.ops import zeros_like
from runnel.tensor.grad_mode import recording
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class LeafVariable(Variable):
    """What an optimizer computes with in the place of ``leaf``, whose value and gradient are the user's to change."""

    __slots__ = ("leaf",)

    def __init__(self, leaf: Tensor) -> None:
        super().__init__(leaf.detach(), requires_grad=True, device=leaf.device)
        self.leaf = leaf

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "leaf": self.leaf}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.leaf = state["leaf"]
        super().__setstate__({name: value for name, value in state.items() if name != "leaf"})


def standing_for(owner: str, p: Any) -> Any:
    """``p``, or what stands for it if it is a tensor. GradientError for one whose gradient nobody accumulates."""
    if not isinstance(p, Tensor):
        return p
    if not (p.is_leaf and p.requires_grad):
        what = "was computed" if p.requires_grad else "requires no gradient"
        raise GradientError(
            f"[{owner}] optimizes leaves: Parameters, and tensors with requires_grad; one of the tensors {what}."
        )
    return LeafVariable(p)


def take(variables: Iterable[LeafVariable]) -> None:
    """Take values and gradients over from the leaves."""
    for v in variables:
        v.assign(v.leaf.detach())
        v.grad = v.leaf.grad


def give(variables: Iterable[LeafVariable]) -> None:
    """Give the leaves their new values."""
    for v in variables:
        with recording(False):
            v.leaf.update("step", functools.partial(_value_of, v))


def _value_of(v: LeafVariable, before: Tensor) -> Tensor:
    return v.value.detach()


def clear(variables: Iterable[LeafVariable], set_to_none: bool) -> None:
    """Drop the gradients of the leaves, or fill them with zeros."""
    for v in variables:
        gradient = v.leaf.grad
        v.leaf.grad = None if set_to_none or gradient is None else zeros_like(gradient)
