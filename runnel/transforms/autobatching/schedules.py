"""Schedules: which recorded nodes run together, in which order, and where their values lie.

Nodes of one signature can run as one group. Signatures whose nodes do not depend on one another in a circle run once
each, in the order of their dependences. Inside a circle, such as the cell of a tree that reads results of that cell,
nodes run by their depth in the circle. All values lie in one arena, the values of a group one after another, so that
later groups often find their operands adjacent; other operands are gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.transforms.autobatching.pieces import Operand, Piece, Trace, rounded_rows

_ALIGNMENT: Final = 64  # bytes


class Leaf(NamedTuple):
    """A signature: values from outside, which are copied into the arena."""

    aval: ShapedArray


class View(NamedTuple):
    """A signature: a value that shows bytes of another, from ``start`` on."""

    start: int
    aval: ShapedArray


class Joined(NamedTuple):
    """A signature: the operands one after another in memory, as concat and stack along the first axis make them."""

    parts: tuple[int, ...]  # the bytes of each operand
    aval: ShapedArray


class Call(NamedTuple):
    """A signature: a piece, with the tensors (by number) that are the same for all its rows."""

    piece: Piece
    operands: tuple[Operand, ...]
    shared: tuple[int, ...]


Signature = Leaf | View | Joined | Call


class Rows(NamedTuple):
    """The operand of a group: an item of ``value`` for each row, ``rows`` of them at ``sources``.

    They are copied to ``target`` and on, one after another, with the last one repeated for further rows, unless they
    are adjacent and begin at ``target`` already. ``runs``: if an item is read more than once, an order of the rows that
    brings its rows together, the numbers among these where another item begins, and the items.
    """

    value: ShapedArray
    sources: np.ndarray
    rows: int
    target: int
    is_adjacent: bool
    runs: tuple[np.ndarray, np.ndarray, np.ndarray] | None

    @staticmethod
    def of(value: ShapedArray, sources: np.ndarray, rows: int, take: Callable[[int], int]) -> Rows:
        """Return the operand for ``rows`` rows; ``take`` returns memory for as many bytes."""
        size, count = nbytes(value), len(sources)
        steps = np.diff(sources)
        if rows == count and bool((steps == size).all()):
            return Rows(value, sources, count, int(sources[0]), True, None)
        runs = None
        order = np.argsort(sources, kind="stable")
        arranged = sources[order]
        first = np.concatenate([[True], arranged[1:] != arranged[:-1]])
        if not first.all():
            begins = np.flatnonzero(first)
            runs = order, begins, arranged[begins]
        padded = np.concatenate([sources, np.repeat(sources[-1:], rows - count)]) if rows > count else sources
        return Rows(value, padded, count, take(size * rows), False, runs)


class Group:
    """Nodes that run together: copies of operands, and then the programs of ``trace`` (or none) for ``rows`` rows.

    All places are offsets in the arena, but the operands that are the same for all rows are numbers of shared tensors.
    """

    __slots__ = ("again", "count", "kept", "operands", "outputs", "parts", "results", "rows", "trace")

    def __init__(self, count: int) -> None:
        self.count = count  # of nodes
        self.rows = rounded_rows(count)
        self.trace: Trace | None = None
        self.parts: list[Rows] = []  # the operands that differ from row to row, or the parts of what is joined
        self.operands: list[Rows | int] = []
        self.outputs: list[int] = []  # of the forward program
        self.results: list[int] = []
        self.kept: list[int] = []
        self.again: list[tuple[int, int, int]] = []  # from, to, bytes: results that the program leaves once for several


class Schedule:
    """The groups of a recording.

    Attributes:
        offsets: where each value lies in the arena, in bytes.
        leaves: the offset and the count of the values of each leaf signature, by number of the signature.
        groups: the others, in the order in which they run.
        value_bytes: the bytes of the arena that hold values; those after them are kept between programs.
        arena_bytes: all bytes of the arena.
        read, copied: the number of bytes that groups read, and of those that are gathered for them.
    """

    def __init__(self, signatures: Sequence[Signature], signature_of: Sequence[int], operands: Sequence[int]) -> None:
        self.leaves: Final[dict[int, tuple[int, int]]] = {}
        self.groups: Final[list[Group]] = []
        self.read = self.copied = 0
        self._end = 0
        self._signatures = signatures
        of = np.asarray(signature_of, np.int64)
        reads = np.asarray(operands, np.int64)
        arity = np.asarray([_arity(s) for s in signatures], np.int64)[of]
        results = np.asarray([_results(s) for s in signatures], np.int64)[of]
        self._first_operand = np.cumsum(arity) - arity
        self._first_value = np.cumsum(results) - results
        self._reads = reads
        self.offsets: Final = np.zeros(int(results.sum()), np.int64)
        producers = np.repeat(np.arange(len(of)), results)[reads]
        consumers = np.repeat(np.arange(len(of)), arity)
        rank, depth = _ranks(len(signatures), of, producers, consumers)
        order = np.lexsort((of, depth, rank[of]))
        keys = np.stack([rank[of], depth, of])[:, order]
        cuts = np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(0)) + 1
        for nodes in np.split(order, cuts) if len(order) else ():
            self._place(int(of[nodes[0]]), nodes)
        self.value_bytes = self._end
        for group in self.groups:
            self._place_kept(group)
        self.arena_bytes = self._end

    def _take(self, nbytes: int) -> int:
        """Return the offset of new memory."""
        offset = self._end
        self._end = -(-(offset + nbytes) // _ALIGNMENT) * _ALIGNMENT
        return offset

    def _place(self, number: int, nodes: np.ndarray) -> None:
        signature = self._signatures[number]
        first = self._first_value[nodes]
        if isinstance(signature, Leaf):
            size = nbytes(signature.aval)
            start = self._take(size * len(nodes))
            self.leaves[number] = start, len(nodes)
            self.offsets[first] = start + size * np.arange(len(nodes))
        elif isinstance(signature, View):
            self.offsets[first] = self._sources(nodes, 0) + signature.start
        elif isinstance(signature, Joined):
            self._join(signature, nodes)
        else:
            if _arity(signature):
                nodes = nodes[np.argsort(self._sources(nodes, 0), kind="stable")]
            self._call(signature, nodes)

    def _sources(self, nodes: np.ndarray, operand: int) -> np.ndarray:
        sources: np.ndarray = self.offsets[self._reads[self._first_operand[nodes] + operand]]
        return sources

    def _rows(self, value: ShapedArray, sources: np.ndarray, rows: int, take: Callable[[int], int]) -> Rows:
        part = Rows.of(value, sources, rows, take)
        size = nbytes(value) * len(sources)
        self.read += size
        self.copied += 0 if part.is_adjacent else size
        return part

    def _join(self, signature: Joined, nodes: np.ndarray) -> None:
        group = Group(len(nodes))
        sizes, dtype = signature.parts, signature.aval.dtype
        columns = np.stack([self._sources(nodes, j) for j in range(len(sizes))], 1)
        size = sum(sizes)
        if len(set(sizes)) == 1:
            part = aval((sizes[0] // dtype.itemsize,), dtype)
            joined = self._rows(part, columns.reshape(-1), columns.size, self._take)
            group.parts, start = [joined], joined.target
        else:
            start = self._take(size * len(nodes))
            for i, row in enumerate(columns):
                target = start + size * i
                for j, part_size in enumerate(sizes):
                    part = aval((part_size // dtype.itemsize,), dtype)
                    copy = self._rows(part, row[j : j + 1], 1, lambda n, at=target: at)  # type: ignore[misc]
                    group.parts.append(copy._replace(target=target, is_adjacent=False))
                    target += part_size
        self.offsets[self._first_value[nodes]] = start + size * np.arange(len(nodes))
        self.groups.append(group)

    def _call(self, signature: Call, nodes: np.ndarray) -> None:
        group = Group(len(nodes))
        group.trace = trace = signature.piece.at(group.rows)
        shared = iter(signature.shared)
        for operand in signature.operands:
            if operand.is_row:
                part = self._rows(operand.aval, self._sources(nodes, len(group.parts)), group.rows, self._take)
                group.parts.append(part)
                group.operands.append(part)
            else:
                group.operands.append(next(shared))
        program: Any = trace.forward.at(group.rows)
        group.outputs = [-1] * len(program.outputs)
        first = self._first_value[nodes]
        for i, value in enumerate(trace.results):
            where = program.output_of[i]
            start = self._take(program.outputs[where])
            if group.outputs[where] < 0:
                group.outputs[where] = start
            else:
                group.again.append((group.outputs[where], start, program.outputs[where]))
            group.results.append(start)
            self.offsets[first + i] = start + nbytes(value) * np.arange(len(nodes))
        self.groups.append(group)

    def _place_kept(self, group: Group) -> None:
        """Place what a forward program leaves besides results."""
        if group.trace is None:
            return
        program: Any = group.trace.forward.at(group.rows)
        for i, start in enumerate(group.outputs):
            if start < 0:
                group.outputs[i] = self._take(program.outputs[i])
        places = zip(group.trace.forward_outputs, program.output_of, strict=True)
        group.kept = [group.outputs[where] for place, where in places if place.kind == "kept"]


def _arity(signature: Signature) -> int:
    if isinstance(signature, Call):
        return sum(x.is_row for x in signature.operands)
    return len(signature.parts) if isinstance(signature, Joined) else int(isinstance(signature, View))


def _results(signature: Signature) -> int:
    return len(signature.piece.results) if isinstance(signature, Call) else 1


def nbytes(value: ShapedArray) -> int:
    """Return the bytes of a dense value."""
    return int(value.nbytes)


def _ranks(count: int, of: np.ndarray, producers: np.ndarray, consumers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rank of each signature, in the order of dependences, and the depth of each node among nodes of its
    rank. Signatures that depend on one another in a circle have one rank."""
    edges = np.unique(of[producers] * count + of[consumers])
    below: list[list[int]] = [[] for _ in range(count)]  # what each signature reads
    for edge in edges.tolist():
        below[edge % count].append(edge // count)
    rank = np.asarray(_circles(below), np.int64)
    depth = np.zeros(len(of), np.int64)
    inner = rank[of[producers]] == rank[of[consumers]]
    depths = depth.tolist()
    for producer, consumer in zip(producers[inner].tolist(), consumers[inner].tolist(), strict=True):
        if depths[producer] >= depths[consumer]:
            depths[consumer] = depths[producer] + 1
    return rank, np.asarray(depths, np.int64)


def _circles(below: Sequence[Sequence[int]]) -> list[int]:
    """Return the number of the circle of each signature: strongly connected parts, those that others read first."""
    numbers: dict[int, int] = {}
    low: dict[int, int] = {}
    rank: dict[int, int] = {}
    waiting: list[int] = []
    circles = 0
    for root in range(len(below)):
        if root in numbers:
            continue
        path = [(root, iter(below[root]))]
        numbers[root] = low[root] = len(numbers)
        waiting.append(root)
        while path:
            at, rest = path[-1]
            for x in rest:
                if x not in numbers:
                    numbers[x] = low[x] = len(numbers)
                    waiting.append(x)
                    path.append((x, iter(below[x])))
                    break
                if x not in rank:
                    low[at] = min(low[at], numbers[x])
            else:
                path.pop()
                if path:
                    above = path[-1][0]
                    low[above] = min(low[above], low[at])
                if low[at] == numbers[at]:
                    while True:
                        x = waiting.pop()
                        rank[x] = circles
                        if x == at:
                            break
                    circles += 1
    return [rank[i] for i in range(len(below))]
