"""The level of forward mode: each tensor carries its tangent along. Rules are those of table ``jvp``."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel import ops
from runnel.core import tables
from runnel.core.dispatch import apply
from runnel.core.errors import LevelError, MissingRuleError
from runnel.core.tables import Op
from runnel.core.tangents import TRANSPOSED
from runnel.tensor import tape, tracing
from runnel.tensor.active import ACTIVE
from runnel.tensor.grad_mode import RECORDING, recording
from runnel.tensor.levels import Level, LevelTensor, every_component, made
from runnel.tensor.tensor import Tensor


class Forward(Level):
    """A run of ``jvp``."""

    name = "jvp"

    def dual(self, primal: Tensor, tangent: Tensor | None) -> DualTensor:
        """The tensor of this level with these components; no tangent stands for zeros."""
        tensor = made(DualTensor, self, primal.aval, (primal, tangent))
        tensor._weak = primal.is_weak
        return tensor  # type: ignore[return-value]

    def lifted(self, x: Tensor) -> LevelTensor:
        return self.dual(x, None)

    def split(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """The primal and the tangent of ``x``, which may be of a lower level."""
        return x._parts if x._level is self else (x, None)

    def apply(self, op: Op, inputs: Sequence[Tensor], attrs: dict[str, Any]) -> LevelTensor:
        primals, tangents = zip(*map(self.split, inputs), strict=True)
        out = apply(op, *primals, **attrs)
        return self.dual(out, tangent(op, tangents, out, primals, attrs))

    def require_state(self, x: LevelTensor, name: str) -> None:
        if x._parts[1] is not None:
            raise LevelError(
                f"[assign] at {tracing.user_line()} Variable '{name}' is assigned a value with a tangent, and keeps "
                "numbers only; detach() it, or return it from the function under jvp."
            )


class DualTensor(LevelTensor):
    """A value and its tangent. Where its numbers are asked for, they are those of the value."""

    __slots__ = ()

    @property
    def _is_unknown(self) -> bool:
        return self.shown._is_unknown

    def numpy(self) -> np.ndarray:
        return self.shown.numpy()

    def known(self) -> np.ndarray | None:
        return self.shown.known()

    def detach(self) -> Tensor:
        return made(DualTensor, self._level, self._aval, (self.shown.detach(), None))

    def __repr__(self) -> str:
        return f"DualTensor({self._parts[0]!r}, tangent={self._parts[1]!r})"


def tangent(
    op: Op, tangents: tuple[Tensor | None, ...], out: Tensor, inputs: tuple[Tensor, ...], attrs: dict[str, Any]
) -> Tensor | None:
    """The tangent of ``out``, which ``op`` made of ``inputs``; None where it is zero."""
    if not out.dtype.is_float or all(t is None for t in tangents):
        return None
    rule = tables.jvp.get(op)
    if rule is None and op not in tables.vjp:
        raise MissingRuleError(
            f"[{op.name}] has no tangent: there is no rule in table 'jvp', nor one in 'vjp' to transpose; register one "
            f"with `jvp.register(op, rule)` (docs/tables.md, section 'jvp')."
        )
    if rule is None or rule is TRANSPOSED:
        pull = functools.partial(_pulled, op, out, inputs, attrs)
        return transposed(pull, [(x, t) for x, t in zip(inputs, tangents, strict=True)], [out])[0]
    terms = rule(tangents, out, *inputs, **attrs)
    return functools.reduce(ops.add, terms) if terms else None


def _pulled(op: Op, out: Tensor, inputs: tuple[Tensor, ...], attrs: dict[str, Any], u: Sequence[Tensor]) -> list[Any]:
    found = tables.vjp[op](u[0], out, *inputs, **attrs)
    return [g() if callable(g) else g for g in found]


def transposed(pull: Any, pairs: Sequence[tuple[Tensor, Tensor | None]], outs: Sequence[Tensor]) -> list[Tensor | None]:
    """The tangents of ``outs``, by a ``pull`` that takes their cotangents to those of the inputs. It is linear, and so
    has a transpose: its own vjp at any point. ``pairs`` are the inputs with their tangents."""
    seeds = []
    for out in outs:
        seed = _at_levels_of(ops.zeros_like(out.detach()), [out, *(t for _, t in pairs if t is not None)])
        seed.requires_grad = out.dtype.is_float
        seeds.append(seed)
    with recording(True):
        found = pull(seeds)
    roots, tangents = [], []
    for g, (_, t) in zip(found, pairs, strict=True):
        if g is not None and t is not None and g.requires_grad:
            roots.append(g)
            tangents.append(t)
    again = RECORDING.get() and any(x.requires_grad for x in _reached([*tangents, *(x for x, _ in pairs)]))
    answers = tape.cotangents(roots, tangents, seeds, create_graph=again) if roots else {}
    return [answers[id(seed)][1] if id(seed) in answers else None for seed in seeds]


def _reached(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [y for x in tensors for y in (x, *every_component(x))]


def _at_levels_of(x: Tensor, others: Sequence[Tensor]) -> Tensor:
    """A handle of its own with the value of ``x``, as a constant of the highest level among ``others``."""
    levels = [y._level for y in others if y._level is not None and y._level.trace is ACTIVE.trace]
    return max(levels, key=lambda level: level.number).lifted(x) if levels else x.untaped()
