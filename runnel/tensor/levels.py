"""Levels: tensors made of components of lower levels, and how ops apply to them.

Each transform that computes forwards (``jvp``, ``vmap``) opens a level. An op runs on the highest level among its
operands. There, operands of lower levels are constants, and the level's rule applies ops to the components, which are
tensors of lower levels. The tape is attached to handles: a tensor of a level has a separate tape besides the tapes of
its components. See docs/differentiate/transforms.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from runnel import ops
from runnel.core import tracebacks
from runnel.core.avals import Shape, ShapedArray
from runnel.core.devices import Device
from runnel.core.errors import LevelError
from runnel.core.rules import is_by_numpy
from runnel.core.tables import Op
from runnel.tensor import tensor as tensors
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.handle import MultiResultRecord, Record, results_of
from runnel.tensor.tensor import Tensor
from runnel.tensor.trace import ACTIVE, OpenLevel

_NUMBERS = itertools.count(1)


class Level(OpenLevel):
    """One running transform. ``with level:`` makes it the innermost one; ops may run on it in the block."""

    def __init__(self) -> None:
        super().__init__()
        self.number = next(_NUMBERS)
        self.born = tensors.serial_now()

    def apply(self, op: Op, inputs: Sequence[Tensor], attrs: dict[str, Any]) -> Any:
        """Apply ``op`` to operands of this level and lower ones; return a tensor of this level, or a tuple of them."""
        raise NotImplementedError

    def lifted(self, x: Tensor) -> LevelTensor:
        """Return ``x``, which belongs to a lower level, as a constant of this one."""
        raise NotImplementedError

    def linearly(self, fn: Callable[[Sequence[Tensor]], list[Any]], inputs: Sequence[Tensor]) -> list[Any]:
        """Return the results (tensors or None) of a function that is linear in ``inputs`` and takes tensors of lower
        levels."""
        raise NotImplementedError

    def as_state(self, x: Tensor, name: str) -> Tensor:
        """Return the value of the Variable ``name`` after ``x`` is assigned to it; LevelError if that is not a single
        value."""
        if x._level is None:
            return x
        x._level.require_state(x, name)
        return self.as_state(x._parts[0], name)

    def require_state(self, x: LevelTensor, name: str) -> None:
        """LevelError unless ``x``, of this level, can be the value of a Variable."""
        raise NotImplementedError


class LevelTensor(Tensor):
    """A tensor of a level: shape and dtype that the transformed function is meant to see, and components."""

    # Without extra slots, a handle can change its class when it is given another value.
    __slots__ = ()
    _level: Level
    _parts: tuple[Any, ...]  # tensors of lower levels, and what the level adds to them

    @property
    def components(self) -> list[Tensor]:
        """The tensors that it is made of."""
        return [x for x in self._parts if isinstance(x, Tensor)]

    @property
    def primary(self) -> Tensor:
        """The component whose memory tells how this one lies."""
        return self.components[0]

    @property
    def is_traced(self) -> bool:
        return self.primary.is_traced

    @property
    def address(self) -> int:
        raise LevelError(f"[address] a tensor of {self._level.name} lies in no one place.")

    @property
    def strides(self) -> Shape:
        strides = self.primary.strides
        return strides[len(strides) - self.ndim :]

    @property
    def is_dense(self) -> bool:
        return self.primary.is_dense

    @property
    def is_transposed(self) -> bool:
        return self.primary.is_transposed

    def apply_op(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        tensors_read = tuple([x.read() for x in inputs])
        if is_by_numpy(op, [x.aval for x in tensors_read], attrs):
            return tensors.by_numpy(op, tensors_read, attrs)
        level = highest(op.name, tensors_read)
        results = recorded(op, tensors_read, attrs) if level is None else level.apply(op, tensors_read, attrs)
        return (
            taped_results(results, op, tensors_read, attrs)
            if op.multiple_results
            else taped(results, op, tensors_read, attrs)
        )

    def without_tape(self) -> Tensor:
        """Return the same values without a tape and without a tangent."""
        return level_tensor(type(self), self._level, self._aval, tuple(_detached(x) for x in self._parts))

    def untaped(self) -> Tensor:
        return self._twin()

    def _elsewhere(self, device: Device) -> Tensor:
        parts = tuple(x.on(device) if isinstance(x, Tensor) else x for x in self._parts)
        return level_tensor(type(self), self._level, self._aval.on(device), parts)

    def _twin(self) -> Tensor:
        if self._level.trace is not ACTIVE.trace:
            return super()._twin()
        twin = level_tensor(type(self), self._level, self._aval, self._parts)
        twin._weak = self._weak
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return self._twin()

    def __getstate__(self) -> dict[str, Any]:
        raise LevelError(f"[pickle] a tensor of {self._level.name} cannot be pickled; return it from the function.")


def _detached(part: Any) -> Any:
    return part.without_tape() if isinstance(part, Tensor) else part


def level_tensor(kind: type[LevelTensor], level: Level, value: ShapedArray, parts: tuple[Any, ...]) -> LevelTensor:
    """Return a tensor of a level made of its components."""
    tensor = kind.__new__(kind)
    tensor._aval = value
    tensor._storage = None
    tensor._layout = (0, ())
    tensor._serial = tensors.serial_now()
    tensor._level, tensor._parts = level, parts
    return tensor


def highest(name: str, inputs: Iterable[Tensor]) -> Level | None:
    """Return the level that the op ``name`` runs on; None if all levels are outside the active trace, so that their
    tensors are its inputs."""
    trace, level_so_far = ACTIVE.trace, None
    for x in inputs:
        level = x._level
        if level is None:
            continue
        if not level.is_open or (trace is None and level.trace is not None):
            raise LevelError(
                f"[{name}] at {tracebacks.user_line()} a tensor of {level.name} is used after the function under "
                f"{level.name} has ended; return it from the function."
            )
        if level.trace is trace and (level_so_far is None or level.number > level_so_far.number):
            level_so_far = level
    return level_so_far


def recorded(op: Op, inputs: tuple[Tensor, ...], attrs: dict[str, Any]) -> Any:
    """Apply ``op`` in the graph of the active trace."""
    trace: Any = ACTIVE.trace
    results = tuple(map(tensors.symbolic, trace.record(op, tuple([tensors.node_of(x, trace) for x in inputs]), attrs)))
    return results if op.multiple_results else results[0]


def taped(result: Tensor, op: Op, inputs: tuple[Tensor, ...], attrs: dict[str, Any]) -> Tensor:
    """Return ``result`` of an op with its record, if one of the handles ``inputs`` needs a gradient."""
    if not result.dtype.is_inexact or not any(x.requires_grad for x in inputs):
        return result
    if RECORDING.get():
        result.requires_grad = True
        result._record = Record(op, inputs, attrs)
        return result
    stops = ACTIVE.trace is not None and ACTIVE.trace.is_body
    return ops.stop_gradient(result) if stops else result


def taped_results(
    results: tuple[Tensor, ...], op: Op, inputs: tuple[Tensor, ...], attrs: dict[str, Any]
) -> tuple[Tensor, ...]:
    """Return the ``results`` of an op with several, with their records."""
    if not RECORDING.get() or not any(x.requires_grad for x in inputs):
        return tuple([taped(x, op, inputs, attrs) for x in results])
    joint = tensors.from_storage(results[0].aval, None)
    joint.requires_grad = True
    joint._record = MultiResultRecord(op, inputs, attrs, results)
    return results_of(joint, results)


def every_component(x: Tensor) -> list[Tensor]:
    """Yield the components of ``x``, and theirs, down to the lowest level."""
    components, pending = [], [x]
    while pending:
        at = pending.pop()
        if isinstance(at, LevelTensor):
            components += at.components
            pending += at.components
    return components
