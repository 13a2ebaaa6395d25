"""The level of forward mode: each tensor has a primal and a tangent. The rules are in table ``jvp``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel import ops
from runnel.core import tables, tracebacks
from runnel.core.dispatch import apply
from runnel.core.errors import LevelError, MissingRuleError
from runnel.core.rules import TRANSPOSED, Together
from runnel.core.tables import Op
from runnel.tensor import tape
from runnel.tensor.grad_mode import RECORDING, recording
from runnel.tensor.levels import Level, LevelTensor, every_component, level_tensor
from runnel.tensor.tensor import Tensor
from runnel.tensor.trace import ACTIVE


class Forward(Level):
    """A run of ``jvp``."""

    name = "jvp"

    def dual(self, primal: Tensor, tangent: Tensor | None) -> DualTensor:
        """Return the tensor of this level with these components; None is a tangent of zeros."""
        tensor = level_tensor(DualTensor, self, primal.aval, (primal, tangent))
        tensor._weak = primal.is_weak
        return tensor  # type: ignore[return-value]

    def lifted(self, x: Tensor) -> LevelTensor:
        return self.dual(x, None)

    def split(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the primal and the tangent of ``x``, which may belong to a lower level."""
        return x._parts if x._level is self else (x, None)

    def apply(self, op: Op, inputs: Sequence[Tensor], attrs: dict[str, Any]) -> Any:
        primals, tangents = zip(*map(self.split, inputs), strict=True)
        rule = tables.jvp.get(op)
        if isinstance(rule, Together) and any(t is not None for t in tangents):
            outs, out_tangents = rule.rule(tangents, *primals, **attrs)
        else:
            out = apply(op, *primals, **attrs)
            outs = out if op.multiple_results else (out,)
            out_tangents = tangents_of(op, tangents, outs, primals, attrs)
        duals = tuple([self.dual(x, t) for x, t in zip(outs, out_tangents, strict=True)])
        return duals if op.multiple_results else duals[0]

    def linearly(self, fn: Callable[[Sequence[Tensor]], list[Any]], inputs: Sequence[Tensor]) -> list[Any]:
        pairs = [self.split(x) for x in inputs]
        primals = fn([x for x, _ in pairs])
        if all(t is None for _, t in pairs):
            return [None if x is None else self.lifted(x) for x in primals]
        tangents = fn([ops.zeros_like(x.without_tape()) if t is None else t for x, t in pairs])
        return [None if x is None else self.dual(x, t) for x, t in zip(primals, tangents, strict=True)]

    def require_state(self, x: LevelTensor, name: str) -> None:
        if x._parts[1] is not None:
            raise LevelError(
                f"[assign] at {tracebacks.user_line()} Variable '{name}' is assigned a value with a tangent, and keeps "
                "numbers only; detach() it, or return it from the function under jvp."
            )


class DualTensor(LevelTensor):
    """A value and its tangent. Its numbers are the numbers of the value."""

    __slots__ = ()

    @property
    def _is_unknown(self) -> bool:
        return self.primary._is_unknown

    def numpy(self, *, force: bool = False) -> np.ndarray:
        return self.primary.numpy()

    def known(self) -> np.ndarray | None:
        return self.primary.known()

    def without_tape(self) -> Tensor:
        return level_tensor(DualTensor, self._level, self._aval, (self.primary.without_tape(), None))

    def __repr__(self) -> str:
        return f"DualTensor({self._parts[0]!r}, tangent={self._parts[1]!r})"


def tangents_of(
    op: Op,
    tangents: tuple[Tensor | None, ...],
    outs: tuple[Tensor, ...],
    inputs: tuple[Tensor, ...],
    attrs: dict[str, Any],
) -> Sequence[Tensor | None]:
    """Return the tangents of ``outs``, which ``op`` made of ``inputs``; None where they are zero."""
    if not any(x.dtype.is_inexact for x in outs) or all(t is None for t in tangents):
        return [None] * len(outs)
    rule = tables.jvp.get(op)
    if rule is None and op not in tables.vjp:
        raise MissingRuleError(
            f"[{op.name}] has no tangent: there is no rule in table 'jvp', nor one in 'vjp' to transpose; register one "
            f"with `jvp.register(op, rule)` (docs/internals/tables.md, section 'jvp')."
        )
    if rule is None or rule is TRANSPOSED:
        needs_grad = tuple(t is not None for t in tangents)
        pull = functools.partial(_pulled, op, outs, inputs, attrs, needs_grad)
        return Transpose(pull, outs, inputs).tangents(tangents)
    terms = rule(tangents, outs if op.multiple_results else outs[0], *inputs, **attrs)
    each = terms if op.multiple_results else [terms]
    return [functools.reduce(ops.add, parts) if parts else None for parts in each]


def _pulled(
    op: Op,
    outs: tuple[Tensor, ...],
    inputs: tuple[Tensor, ...],
    attrs: dict[str, Any],
    needs_grad: tuple[bool, ...],
    seeds: Sequence[Tensor],
) -> list[Any]:
    """Return the cotangents of the inputs by the rule of table ``vjp``."""
    if op.multiple_results:
        gs = tuple(g if g.requires_grad else None for g in seeds)
        cotangents = tables.vjp[op](gs, outs, *inputs, needs_grad=needs_grad, **attrs)
    else:
        cotangents = tables.vjp[op](seeds[0], outs[0], *inputs, **attrs)
    return [g() if callable(g) else g for g in cotangents]


class Transpose:
    """Maps tangents of ``inputs`` to tangents of ``outs``, given a ``pull`` that maps cotangents of ``outs`` to
    cotangents of ``inputs``. A pull is linear, so its own vjp at any point is its transpose."""

    def __init__(self, pull: Callable[[list[Tensor]], Sequence[Any]], outs: Sequence[Tensor], inputs: Sequence[Tensor]):
        self._seeds = [_leaf_like(out, [*outs, *inputs]) for out in outs]
        self._leads_further = any(y.requires_grad for x in inputs for y in (x, *every_component(x)))
        with recording(True):
            self._pulled = pull(self._seeds)

    def tangents(self, tangents: Sequence[Tensor | None], *, keep: bool = False) -> list[Tensor | None]:
        """Return the tangents of ``outs``, None where they are zero. With ``keep`` you may call it again."""
        pairs = [(g, t) for g, t in zip(self._pulled, tangents, strict=True) if g is not None and t is not None]
        pairs = [(g, t) for g, t in pairs if g.requires_grad]
        if not pairs:
            return [None] * len(self._seeds)
        tangents_lead_further = any(y.requires_grad for _, t in pairs for y in (t, *every_component(t)))
        again = RECORDING.get() and (self._leads_further or tangents_lead_further)
        roots, seeds = [g for g, _ in pairs], [t for _, t in pairs]
        cotangents = tape.cotangents(roots, seeds, self._seeds, create_graph=again, retain_graph=keep)
        return [cotangents[id(x)][1] if id(x) in cotangents else None for x in self._seeds]


def _leaf_like(out: Tensor, others: Sequence[Tensor]) -> Tensor:
    """Return a leaf for a cotangent of ``out``, of the highest level among ``others``."""
    zeros: Tensor = ops.zeros_like(out.without_tape())
    levels = [y._level for y in others if y._level is not None and y._level.trace is ACTIVE.trace]
    leaf = max(levels, key=lambda level: level.number).lifted(zeros) if levels else zeros.untaped()
    leaf.requires_grad = out.dtype.is_inexact
    typed_leaf: Tensor = leaf
    return typed_leaf


def has_derivative(x: Tensor) -> bool:
    """Return whether a tape or a tangent is attached to ``x`` or to anything it is made of."""
    reached = [x, *every_component(x)]
    return any(y.requires_grad or (isinstance(y, DualTensor) and y._parts[1] is not None) for y in reached)
