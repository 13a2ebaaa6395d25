"""The level of ``vmap``: each tensor holds a value for each element of a batch. The rules are in table ``axes``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

import numpy as np

from runnel import ops
from runnel.core import tables, tracebacks
from runnel.core.avals import ShapedArray, aval
from runnel.core.dispatch import apply
from runnel.core.errors import LevelError, VerifierError
from runnel.core.tables import Op
from runnel.graph.graph import Graph
from runnel.graph.hashing import Body
from runnel.graph.node import Node, results_of
from runnel.graph.rewriting import placeholder
from runnel.ops.callbacks import callback_p
from runnel.ops.control import scan_p
from runnel.tensor.levels import Level, LevelTensor, level_tensor
from runnel.tensor.tensor import Tensor
from runnel.tensor.trace import ACTIVE

_INSTEAD: Final = {  # by what asked
    "bool": "Use runnel.where(condition, x, y) or runnel.cond instead of `if`, runnel.while_loop instead of `while`.",
    "index": "Use runnel.take(x, index).",
}


class Batching(Level):
    """A run of ``vmap`` over ``size`` elements."""

    name = "vmap"

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def stack(self, values: Tensor) -> BatchedTensor:
        """Return the tensor of this level whose elements lie along axis 0 of ``values``."""
        return self._level_tensor(aval(values.shape[1:], values.dtype, values.aval.device), values, True)

    def lifted(self, x: Tensor) -> LevelTensor:
        tensor = self._level_tensor(x.aval, x, False)
        tensor._weak = x.is_weak
        return tensor

    def _level_tensor(self, value: ShapedArray, component: Tensor, is_stacked: bool) -> BatchedTensor:
        return level_tensor(BatchedTensor, self, value, (component, is_stacked))  # type: ignore[return-value]

    def split(self, x: Tensor) -> tuple[Tensor, bool]:
        """Return the component of ``x``, which may belong to a lower level, and whether it has a value for each
        element."""
        return x._parts if x._level is self else (x, False)

    def all_elements(self, x: Tensor) -> Tensor:
        """Return the values of all elements along axis 0, repeated if they are equal."""
        values, is_stacked = self.split(x)
        if is_stacked:
            return values
        repeated: Tensor = ops.broadcast_to(values, (self.size, *values.shape))
        return repeated

    def apply(self, op: Op, inputs: Sequence[Tensor], attrs: dict[str, Any]) -> Any:
        pairs = [self.split(x) for x in inputs]
        if not any(is_stacked for _, is_stacked in pairs):
            outs = apply(op, *(x for x, _ in pairs), **attrs)
            return tuple(map(self.lifted, outs)) if op.multiple_results else self.lifted(outs)
        types = tables.abstract_eval[op](*(x.aval.unplaced for x in inputs), **attrs)
        expected: tuple[ShapedArray, ...] = types if op.multiple_results else (types,)
        rule = tables.axes.get(op)
        values = None
        if rule is not None:
            values = rule.batched(op, self.size, tuple(map(self._with_axis, inputs)), attrs)
        if values is None and op in tables.decompose:
            expanded = tables.decompose[op](*inputs, **attrs)
            if expanded is not None:
                return expanded if expanded._level is self else self.lifted(expanded)
        if values is None:
            values = looped(op, self.size, pairs, attrs, expected)
        results = values if op.multiple_results else (values,)
        for x, one in zip(results, expected, strict=True):
            if x.shape[0] not in (self.size, 1) or x.shape[1:] != one.shape:
                raise VerifierError(
                    f"[{op.name}] the rule in table 'axes' gave shape {x.shape}, not {(self.size, *one.shape)}."
                )
        outs = tuple(map(self._without_axis, results))
        return outs if op.multiple_results else outs[0]

    def _with_axis(self, x: Tensor) -> Tensor:
        """Return the component of ``x`` with an axis 0 for elements, of size 1 if it has none."""
        values, is_stacked = self.split(x)
        if is_stacked:
            return values
        wide: Tensor = ops.reshape(values, (1, *values.shape))
        return wide

    def _without_axis(self, values: Tensor) -> LevelTensor:
        """Return the result of a rule as stacked values, or as one value without the axis of size 1."""
        if values.shape[0] == 1 != self.size:
            return self.lifted(ops.reshape(values, values.shape[1:]))
        return self.stack(values)

    def linearly(self, fn: Callable[[Sequence[Tensor]], list[Any]], inputs: Sequence[Tensor]) -> list[Any]:
        """Apply ``function`` to each element."""
        pairs = [self.split(x) for x in inputs]
        if not any(is_stacked for _, is_stacked in pairs):
            return [None if x is None else self.lifted(x) for x in fn([x for x, _ in pairs])]
        rows = [fn([x[i] if each else x for x, each in pairs]) for i in range(self.size)]
        if not rows:
            nothing = fn([ops.zeros_like(x) for x in inputs])
            return [None if x is None else self.stack(ops.broadcast_to(x, (0, *x.shape))) for x in nothing]
        return [None if xs[0] is None else self.stack(ops.stack(xs)) for xs in zip(*rows, strict=True)]

    def require_state(self, x: LevelTensor, name: str) -> None:
        if x._parts[1]:
            raise LevelError(
                f"[assign] at {tracebacks.user_line()} Variable '{name}' is assigned a value that differs from element "
                "to element; return it from the function under vmap, and assign what you make of it outside."
            )


class BatchedTensor(LevelTensor):
    """One value for each element, or one for all of them. It has no numbers to look at while the function runs."""

    __slots__ = ()

    @property
    def is_traced(self) -> bool:
        return self._parts[1] or self.primary.is_traced

    @property
    def _is_unknown(self) -> bool:
        return False

    def numpy(self, *, force: bool = False) -> np.ndarray:
        self._require_one_value("numpy()")
        return self.primary.numpy()

    def item(self) -> bool | int | float | complex:
        self._require_one_value("item()")
        return self.primary.item()

    def _scalar(self, what: str) -> bool | int | float:
        self._require_one_value(what)
        return self.primary._scalar(what)

    def _require_one_value(self, what: str) -> None:
        if self._parts[1]:
            self._refuse(what)

    def _refuse(self, what: str) -> NoReturn:
        raise LevelError(
            f"[{what}] at {tracebacks.user_line()} the value of a batched tensor ({self.aval}) was asked for; under "
            f"vmap it has one for each of {self._level.size} elements. "  # type: ignore[attr-defined]
            + _INSTEAD.get(what, "Compute with Runnel's functions, return the tensor and look at it outside vmap.")
        )

    def known(self) -> np.ndarray | None:
        return None if self._parts[1] else self.primary.known()

    def __repr__(self) -> str:
        return f"BatchedTensor({self.aval}, {self._parts[0]!r})" if self._parts[1] else repr(self._parts[0])


def looped(
    op: Op, size: int, pairs: Sequence[tuple[Tensor, bool]], attrs: dict[str, Any], results: Sequence[ShapedArray]
) -> Any:
    """Return the results of ``op`` element by element. The token that orders effects goes from one element to the
    next."""
    inputs = [placeholder(aval(x.shape[1:], x.dtype) if each else x.aval, "x") for x, each in pairs]
    nodes = results_of(Node(op, tuple(inputs), attrs, tuple(results), tracebacks.user_line()))
    tokens = [len(inputs) - 1] if op is callback_p and attrs["ordered"] else []
    fixed = [i for i, (_, each) in enumerate(pairs) if not each and i not in tokens]
    varying = [i for i, (_, each) in enumerate(pairs) if each]
    order = [*fixed, *tokens, *varying]
    outputs = [*nodes[-1:], *nodes[:-1]] if tokens else [*nodes]
    body = Body(Graph([inputs[i] for i in order], outputs, {}, op.name))
    outs = apply(
        scan_p,
        *(pairs[i][0] for i in order),
        body=body,
        constants=len(fixed),
        carries=len(tokens),
        length=size,
        reverse=False,
    )
    if tokens:
        return (*outs[1:], ops.reshape(outs[0], (1, *outs[0].shape)))
    return outs if op.multiple_results else outs[0]


def own_keys(key: Tensor) -> Tensor:
    """Derive from ``key`` a separate key for each element of all open levels of vmap, the outermost first."""
    levels, at = [], ACTIVE.level
    while at is not None:
        levels.append(at)
        at = at.outer
    for level in reversed(levels):
        if isinstance(level, Batching):
            key = level.stack(ops.split_key(key, level.size))
    return key
