"""Pull cotangents back through runs of records at once, by machine code that recalls what it did for the last ones.

Training builds the same tape at every step, of other tensors. A *run* is a stretch of a walk in which every record is
an op's, with a small result, or belongs to another handle of a value. The cotangents that a run hands on follow from
the ops, their attributes, and the places of the tensors, and else from the tensors alone: so a run is a function of
tensors, whose calls may be recalled like calls of public functions (:mod:`runnel.tensor.recall`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from runnel.core.caching import Recent
from runnel.core.recall import Recalled
from runnel.core.tables import Op
from runnel.ops.shapes.assembly import SliceGradient
from runnel.ops.shapes.pieces import slice_p
from runnel.tensor import pulling
from runnel.tensor.cotangents import Pending, Step, accumulate, summed
from runnel.tensor.handle import Record, passed_on

_MOST_TENSORS: Final = 40
_MOST_PENDING: Final = 16  # cotangents that are pending at the beginning, and pieces of them
_MOST_ELEMENTS: Final = 1 << 14  # of a result: machine code keeps all cotangents to the end of the run
_RUNS: Final[Recent[Any, Run]] = Recent(256)

Entry = tuple[Op | None, dict[str, Any] | None, int, tuple[int, ...]]  # without attributes: of a leaf
Places = tuple[tuple[int, int], ...] | None  # axis and start of each piece of a cotangent; None: it is whole


class Run:
    """A run, as a function of its tensors and of the cotangents that are ``given`` for some of them. It returns the
    cotangents of the leaves that it reaches, in order, and of the tensors that it leads to, perhaps in pieces."""

    __slots__ = ("_alive", "_count", "_entries", "_given", "is_off", "leads_to", "leaves", "pieces", "recalled")

    def __init__(
        self, entries: Sequence[Entry], count: int, alive: Sequence[int], given: Sequence[tuple[int, Places]]
    ) -> None:
        self._entries, self._count, self._alive, self._given = entries, count, alive, given
        reached = {number for _, _, number, _ in entries}
        self.leaves = [number for _, attrs, number, _ in entries if attrs is None]
        self.leads_to = [number for number in alive if number not in reached]
        self.pieces: list[Places] = []
        self.is_off = False  # a cotangent is missing at the end
        self.recalled = Recalled(self.pull, lasting=False)

    def pull(self, *arguments: Any) -> tuple[Any, ...] | None:
        """Return the cotangents; None if the run is off."""
        tensors, gs = arguments[: self._count], arguments[self._count :]
        rest = iter(gs)
        pending: Pending = {id(tensors[number]): put_together(rest, places) for number, places in self._given}
        alive = {id(tensors[number]) for number in self._alive}
        at_leaves: list[Any] = []
        for op, attrs, number, places in self._entries:
            tensor = tensors[number]
            g = pending.pop(id(tensor), None)
            if g is None:
                break
            total = summed(g, tensor)
            if attrs is None:
                at_leaves.append(total)
                continue
            inputs = tuple([tensors[place] for place in places])
            pulled = (total,) if op is None else pulling.pulled(op, attrs, inputs, tensor, total, alive)
            for x, dx in zip(inputs, pulled, strict=True):
                if dx is not None and id(x) in alive:
                    accumulate(pending, x, dx() if callable(dx) else dx)
        further = [pending.pop(id(tensors[number]), None) for number in self.leads_to]
        if pending or len(at_leaves) < len(self.leaves) or any(g is None or isinstance(g, dict) for g in further):
            self.is_off = True
            return None
        self.pieces = [places_of(g) for g in further]
        return (*at_leaves, *[part for g in further for part in parts_of(g)])


def places_of(g: Any) -> Places:
    """Return where the pieces of a pending cotangent are; None if it is whole."""
    return tuple([(piece.axis, piece.start) for piece in g]) if g.__class__ is list else None


def parts_of(g: Any) -> list[Any]:
    """Return the tensors of a pending cotangent."""
    return [piece.g for piece in g] if g.__class__ is list else [g]


def put_together(parts: Iterator[Any], places: Places) -> Any:
    """Return a pending cotangent of the next ``parts``."""
    if places is None:
        return next(parts)
    return [SliceGradient(next(parts), axis, start) for axis, start in places]


def pulled(
    order: Sequence[Step], first: int, pending: Pending, at_leaves: dict[int, tuple[Any, Any]], alive: set[int]
) -> int:
    """Do what a walk does at ``order[first]`` and at the next steps, as far as these are a run; return their number.
    Negative: these cannot be done together."""
    entries: list[Entry] = []
    key: list[Any] = []
    numbers: dict[int, int] = {}
    tensors: list[Any] = []
    records = 0
    for step in range(first, len(order)):
        tensor, record, inputs = order[step]
        if record is not None:
            if type(record) is not Record or len(tensors) + len(inputs) > _MOST_TENSORS:
                break
            if tensor._aval.size > _MOST_ELEMENTS or (record.op is None and record.rule is not passed_on):
                break
            records += 1
        elif len(tensors) > _MOST_TENSORS:
            break
        places = []
        for x in (tensor, *inputs):
            number = numbers.get(id(x))
            if number is None:
                number = numbers[id(x)] = len(tensors)
                tensors.append(x)
            places.append(number if id(x) in alive else ~number)
        if record is None:
            entries.append((None, None, places[0], ()))
            key.append(places[0])
        else:
            attrs = record.attrs
            entries.append((record.op, attrs, places[0], tuple(places[1:])))
            key.append((record.op, *places, *attrs.values()) if attrs else (record.op, *places))
            if record.op is slice_p:  # its pieces
                key.append(inputs[0]._aval)
    if not records:
        return -len(entries)
    given: list[tuple[int, Places]] = []
    gs: list[Any] = []
    for number, x in enumerate(tensors):
        g = pending.get(id(x))
        if g.__class__ is x.__class__:
            given.append((number, None))
            gs.append(g)
        elif g.__class__ is list:
            given.append((number, places_of(g)))
            gs += parts_of(g)
        elif g is not None:
            return -len(entries)
    if len(gs) > _MOST_PENDING:
        return -len(entries)
    signature = (*key, *given)
    run = _RUNS.young.get(signature) or _RUNS.get(signature)
    if run is None:
        entries = [(op, attrs, n, tuple([max(p, ~p) for p in places])) for op, attrs, n, places in entries]
        living = [number for number, x in enumerate(tensors) if id(x) in alive]
        run = _RUNS[signature] = Run(entries, len(tensors), living, given)
    made = None if run.is_off else run.recalled.call(*tensors, *gs)
    if made is None:
        return -len(entries)
    for _, _, number, _ in entries:
        pending.pop(id(tensors[number]), None)
    for number, g in zip(run.leaves, made, strict=False):
        at_leaves[id(tensors[number])] = (tensors[number], g.separate())
    rest = iter(made[len(run.leaves) :])
    for number, pieces in zip(run.leads_to, run.pieces, strict=True):
        pending[id(tensors[number])] = put_together(rest, pieces)
    return len(entries)
