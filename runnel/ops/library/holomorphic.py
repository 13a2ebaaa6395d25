"""Gradients of holomorphic functions from the rules of real numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.ops.arguments import Array
from runnel.ops.parts import conj


def conjugated_rule(rule: Callable[..., Any], g: Array, out: Array, *inputs: Array, **attrs: Any) -> tuple[Any, ...]:
    """The cotangents of a holomorphic op, g·conj(f'), from a ``rule`` that gives g·f'."""
    return tuple(map(_conjugated, rule(conj(g), out, *inputs, **attrs)))


def _conjugated(cotangent: Any) -> Any:
    if cotangent is None:
        return None
    return (lambda: conj(cotangent())) if callable(cotangent) else conj(cotangent)
