"""Run a schedule forward and backward. Values, and what backward programs need, lie in one block of memory."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from runnel.backends import base, context as contexts
from runnel.core.avals import ShapedArray, row_major
from runnel.tensor.dense import dense
from runnel.tensor.tensor import Tensor, from_storage
from runnel.transforms.autobatching.pieces import Place
from runnel.transforms.autobatching.schedules import Group, Rows, Schedule, nbytes

_LEAST: Final = 64  # bytes of a block


class Memory:
    """A block of bytes, and arrays that show parts of it. No array may be used beyond the life of its memory."""

    def __init__(self, size: int, clear: bool = False) -> None:
        self.storage: Final = base.of(contexts.current().device).allocate(max(size, _LEAST))
        self.address: Final = self.storage.address
        self.bytes: Final = self.storage.ndarray((max(size, _LEAST),), np.uint8, writeable=True)
        self._items: Final[dict[Any, np.ndarray]] = {}
        if clear:
            self.bytes[:] = 0

    def items(self, size: int) -> np.ndarray:
        """Return overlapping items of ``size`` bytes: number i begins at byte i."""
        items = self._items.get(size)
        if items is None:
            count = len(self.bytes) - size + 1
            items = self._items[size] = np.ndarray((count,), f"V{size}", self.bytes, 0, (1,))
        return items

    def vectors(self, dtype: Any, length: int) -> np.ndarray:
        """Return overlapping vectors: number i begins at element i of the memory."""
        vectors = self._items.get((dtype, length))
        if vectors is None:
            item = dtype.itemsize
            count = len(self.bytes) // item - length + 1
            vectors = np.ndarray((count, length), dtype, self.bytes, 0, (item, item))
            self._items[dtype, length] = vectors
        return vectors

    def array(self, shape: Sequence[int], dtype: Any, start: int) -> np.ndarray:
        """Return the dense array that begins at byte ``start``."""
        return np.ndarray(shape, dtype, self.bytes, start)

    def copy(self, rows: Rows) -> None:
        """Copy the items of an operand to their target."""
        if not rows.is_adjacent:
            size, sources = nbytes(rows.value), rows.sources
            if size:
                target = np.ndarray(sources.shape, f"V{size}", self.bytes, rows.target)
                target[...] = self.items(size)[sources]

    def add(self, rows: Rows, terms: np.ndarray) -> None:
        """Add a vector for each row to the items of an operand."""
        length, item = terms.shape[1], terms.dtype.itemsize
        if not length:
            return
        if rows.is_adjacent:
            self.array(terms.shape, terms.dtype, rows.target)[...] += terms
            return
        sources = rows.sources[: rows.rows]
        if rows.runs is not None:
            order, begins, sources = rows.runs
            terms = np.add.reduceat(terms[order], begins, axis=0)
        self.vectors(terms.dtype, length)[sources // item] += terms


class Times:
    """Seconds spent on steps, and counts."""

    __slots__ = ("copies", "kernels", "programs", "recording", "scheduling", "tracing")

    def __init__(self) -> None:
        self.recording = self.tracing = self.scheduling = self.copies = self.programs = 0.0
        self.kernels = 0

    @property
    def running(self) -> float:
        """Copies and programs."""
        return self.copies + self.programs


class Run:
    """The values of a recording that was run. ``shared`` are the tensors that pieces take for all rows; ``leaves`` are
    the values of each leaf signature, by its number."""

    def __init__(
        self, schedule: Schedule, shared: Sequence[Any], leaves: Mapping[int, Sequence[Any]], times: Times
    ) -> None:
        self.schedule: Final = schedule
        self._shared = shared
        self._leaves = leaves
        self._read: dict[int, tuple[Any, Tensor, Tensor]] = {}  # by id of a Variable or tensor: see _outside
        self.times: Final = times
        self.memory: Final = Memory(schedule.arena_bytes)
        self.gradients: Memory | None = None
        for number, (start, count) in schedule.leaves.items():
            values = leaves[number]
            shape, dtype = values[0].shape, values[0].dtype.numpy
            target = self.memory.array((count, *shape), dtype, start)
            place, size, dense_strides = self.memory.address + start, nbytes(values[0].aval), row_major(shape)
            for i, x in enumerate(values):
                if x.__class__ is Tensor and x._layout[1] == dense_strides:
                    storage: Any = x._storage
                    offset = x._layout[0]
                    ctypes.memmove(place + i * size, storage.address + offset * dtype.itemsize, size)
                else:
                    target[i] = x.numpy()
        for group in schedule.groups:
            self._forward(group)

    @property
    def reads(self) -> list[Tensor]:
        """The tensors from outside that were read for all rows."""
        return [x for _, x, _ in self._read.values()]

    @property
    def leaf_tensors(self) -> list[Tensor]:
        """The tensors from outside that were read for one row each."""
        return [x for values in self._leaves.values() for x in values if isinstance(x, Tensor)]

    def stacked(self, value: ShapedArray, offsets: np.ndarray) -> tuple[np.ndarray, Rows]:
        """Return the values at ``offsets`` in new memory, and how to add to their cotangents."""
        rows = Rows.of(value, offsets, len(offsets), lambda size: 0)
        size = nbytes(value)
        shape = len(offsets), *value.shape
        if rows.is_adjacent:
            return self.memory.array(shape, value.dtype.numpy, rows.target).copy(), rows
        items = self.memory.items(size)[offsets] if size else np.empty(0, "V1")
        return items.view(value.dtype.numpy).reshape(shape) if size else np.empty(shape, value.dtype.numpy), rows

    def tensor(self, value: ShapedArray, offset: int) -> Tensor:
        """Return the value at an offset."""
        return from_storage(value, self.memory.storage, offset // value.dtype.itemsize)

    def _outside(self, x: Any) -> tuple[Any, Tensor, Tensor]:
        """Return a Variable or tensor, its tensor, and that as programs read it."""
        known = self._read.get(id(x))
        if known is None:
            tensor = x.read()
            known = self._read[id(x)] = (x, tensor, dense(tensor))
        return known

    def _address(self, x: Any) -> int:
        return self._outside(x)[2].address

    def _addresses(self, group: Group, places: Sequence[Place]) -> list[int]:
        """Return the addresses of inputs of a program."""
        start = self.memory.address
        trace: Any = group.trace
        gradients: Any = self.gradients
        addresses: list[int] = []
        for kind, number in places:
            if kind == "operand":
                operand: Any = group.operands[number]
                is_row = isinstance(operand, Rows)
                addresses.append(start + operand.target if is_row else self._address(self._shared[operand]))
            elif kind == "outside":
                addresses.append(self._address(trace.outside[number]))
            elif kind == "seed":
                addresses.append(gradients.address + group.results[number])
            else:
                addresses.append(start + (group.results if kind == "result" else group.kept)[number])
        return addresses

    def _forward(self, group: Group) -> None:
        before = time.perf_counter()
        for rows in group.parts:
            self.memory.copy(rows)
        between = time.perf_counter()
        self.times.copies += between - before
        if group.trace is None:
            return
        inputs = self._addresses(group, group.trace.forward_inputs)
        program: Any = group.trace.forward.at(group.rows)
        program.run(inputs, [self.memory.address + x for x in group.outputs])
        for source, target, size in group.again:
            self.memory.bytes[target : target + size] = self.memory.bytes[source : source + size]
        self.times.programs += time.perf_counter() - between
        self.times.kernels += 1

    # Backward ---------------------------------------------------------------------------------------------------------

    def begin_backward(self) -> None:
        """Take memory for the cotangents of all values."""
        self.gradients = Memory(self.schedule.value_bytes, clear=True)

    def backward(self, add: Callable[[Tensor, np.ndarray], None]) -> None:
        """Compute the cotangents of all values from the cotangents of results. ``add`` takes cotangents of tensors from
        outside, in memory that it may keep and change."""
        for group in reversed(self.schedule.groups):
            if group.trace is None:
                self._spread(group)
            elif group.trace.backward is not None:
                self._backward(group, add)

    def _spread(self, group: Group) -> None:
        """Add the cotangents of what was joined to those of its parts."""
        gradients: Any = self.gradients
        for rows in group.parts:
            if rows.value.dtype.is_inexact and not rows.is_adjacent:
                terms = gradients.array((rows.rows, *rows.value.shape), rows.value.dtype.numpy, rows.target)
                gradients.add(rows, terms)

    def _backward(self, group: Group, add: Callable[[Tensor, np.ndarray], None]) -> None:
        gradients: Any = self.gradients
        trace: Any = group.trace
        before = time.perf_counter()
        program: Any = trace.backward.at(group.rows)
        starts = np.cumsum([0, *(-(-n // _LEAST) * _LEAST for n in program.outputs)]).tolist()
        scratch = Memory(starts[-1])
        program.run(
            self._addresses(group, trace.backward_inputs),
            [scratch.address + x for x in starts[:-1]],
        )
        between = time.perf_counter()
        self.times.programs += between - before
        self.times.kernels += 1
        given: set[int] = set()
        for place, where in zip(trace.backward_outputs, program.output_of, strict=True):
            start = starts[where]
            operand = group.operands[place.number] if place.kind == "operand" else None
            if isinstance(operand, Rows):
                dtype, size = operand.value.dtype, nbytes(operand.value)
                terms = scratch.array((operand.rows, size // dtype.itemsize), dtype.numpy, start)
                gradients.add(operand, terms)
                continue
            x = self._shared[operand] if operand is not None else trace.outside[place.number]
            tensor = self._outside(x)[1]
            array = scratch.array(tensor.shape, tensor.dtype.numpy, start)
            add(tensor, array.copy() if where in given else array)  # equal cotangents are computed once
            given.add(where)
        self.times.copies += time.perf_counter() - between

    def leaf_cotangents(self) -> list[tuple[Any, np.ndarray]]:
        """Return the values from outside and of earlier runs, with their cotangents."""
        gradients: Any = self.gradients
        found: list[tuple[Any, np.ndarray]] = []
        for number, (start, count) in self.schedule.leaves.items():
            values = self._leaves[number]
            if values[0].dtype.is_inexact and any(x.requires_grad for x in values):
                of_all = gradients.array((count, *values[0].shape), values[0].dtype.numpy, start)
                found += zip(values, of_all, strict=True)
        return found

    def add_cotangent(self, offset: int, g: np.ndarray) -> None:
        """Add to the cotangent of the value at ``offset``."""
        gradients: Any = self.gradients
        gradients.array(g.shape, g.dtype, offset)[...] += g

    def seed(self, rows: Rows, g: np.ndarray) -> None:
        """Add to the cotangents of several values."""
        gradients: Any = self.gradients
        gradients.add(rows, g)

    def end_backward(self) -> None:
        """Give the memory of cotangents back."""
        self.gradients = None
