"""The forms in which an op may become loops: the rules of table ``lower`` are instances of these.

Ops fill the table, ``lowering`` reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runnel.core.avals import Shape
from runnel.loops.ir import Expr


@dataclass(frozen=True, slots=True)
class Pointwise:
    """result[i] = expr(inputs[i]…): ``expr(avals, *Expr, **attrs) -> Expr``. Inputs have the result's shape, or
    sizes of 1 where they are broadcast. ``avals`` are the input avals followed by the result's. ``literal``: the code
    is much better where operands that are constants are part of it."""

    expr: Callable[..., Expr]
    literal: bool = False


@dataclass(frozen=True, slots=True)
class Checked(Pointwise):
    """A Pointwise of one integer input whose elements must lie in [0, attrs["extent"]) or equal attrs["allowed"]; a
    program that meets another one stops with an error and has changed nothing."""


@dataclass(frozen=True, slots=True)
class IndexFunction:
    """result[i] = expr(n, inputs…): like Pointwise, but the rule also gets an integer that depends on the position,
    n = Σ steps·i for ``steps(aval of the result, **attrs)``: ``expr(avals, n, *Expr, **attrs)`` (iota, random
    bits). Nothing else of the result's shape may be in the expression: one kernel serves all shapes."""

    expr: Callable[..., Expr]
    steps: Callable[..., Shape]


@dataclass(frozen=True, slots=True)
class Reduction:
    """result = reduce with ``op`` over attrs["axes"] (kept as size 1)."""

    op: str


@dataclass(frozen=True, slots=True)
class View:
    """No work: each element of the result is one element of the input. ``map(aval_in, aval_out, **attrs)`` gives
    ``(offset, steps)`` per input axis: a list of ``(offset, ((out_axis, step), …))``, i.e. input index =
    offset + Σ step·out_index; or None when only a dense copy can be viewed so (a merging reshape)."""

    map: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Contraction:
    """A matrix product: inputs A[..., M, K] and B[..., K, N] (batch axes equal) to [..., M, N]."""


@dataclass(frozen=True, slots=True)
class Concatenation:
    """Inputs laid one after the other along attrs["axis"]."""


@dataclass(frozen=True, slots=True)
class Gather:
    """result[i…, rest] = input[indices[i…], rest] along attrs["axis"]; indices are in range or clamped already."""


@dataclass(frozen=True, slots=True)
class ScatterAdd:
    """result = zeros of attrs["shape"]; result[indices[i]] += updates[i] along axis 0, in the order of i."""


@dataclass(frozen=True, slots=True)
class HostCall:
    """Runs in NumPy through table ``reference``; splits a program."""


Rule = Pointwise | IndexFunction | Reduction | View | Contraction | Concatenation | Gather | ScatterAdd | HostCall
Lowering = Any
