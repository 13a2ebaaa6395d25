"""The tape of a call of a compiled function, as it is seen from outside: records whose backward runs a program.

A part of the tape is a record on the tensor where it begins, a result or a stand-in for a value that only parts read.
What is handed on late (``derivative.Part``) comes from stand-ins of its own, which the record leads to.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

from runnel.compile.differentiable.backward import Backward
from runnel.compile.differentiable.derivative import Cotangent, End, Kind, Late, Part, Piece
from runnel.compile.differentiable.direct import Direct, direct
from runnel.compile.late_tape import LateRecord, Rerun
from runnel.core.avals import Aval, aval
from runnel.core.dtypes import float32
from runnel.core.errors import GradientError
from runnel.core.lifetime import Weak
from runnel.ops import assembly
from runnel.tensor import tape, tensor as tensors
from runnel.tensor.tensor import Tensor

if TYPE_CHECKING:
    from runnel.compile.differentiable.call import Call

_OF_VARIABLES: Final = (Kind.VARIABLE, Kind.FORMER)
_TOKEN: Final = aval((), float32)


class Shape:
    """What the records of a part have in common. ``reads`` are its readings by number, and where they end."""

    def __init__(
        self,
        number: int,
        part: Part,
        returned: Collection[End],
        budget: int | None,
        variables: Sequence[Weak],
        former: Sequence[int],
    ) -> None:
        self.number = number
        self.value = part.value
        self.leading = part.inputs
        self.reads: list[tuple[int, End]] = []
        self.spans: list[slice] = []  # of the phases
        count = 0
        for phase in part.phases:
            start = len(self.reads)
            # nobody can ask a leaf that the function made and did not return for its gradient
            numbered = enumerate(phase, count)
            self.reads += [(i, end) for i, end in numbered if end.kind is not Kind.LEAF or end in returned]
            self.spans.append(slice(start, len(self.reads)))
            count += len(phase)
        self._pullbacks = {
            p.seeds: ([p.cotangents[i] for i, _ in self.reads], Backward(p, budget)) for p in part.pullbacks
        }
        self.direct: Direct | None = None
        if () in self._pullbacks and not self.leading and len(self.spans) == 1:
            self.direct = direct([end for _, end in self.reads], *self._pullbacks[()], variables, former)
        ends = [x for x in self.leading if isinstance(x, End)] + [end for _, end in self.reads]
        self.given = tuple(dict.fromkeys(end for end in ends if end.kind not in _OF_VARIABLES))
        self._places = {end: i for i, end in enumerate(self.given)}

    def end(self, end: End, given: tuple[Tensor, ...], call: Call) -> Tensor:
        """What ``end`` is at one call."""
        return call.node(end) if end.kind in _OF_VARIABLES else given[self._places[end]]

    def pulled(self, call: Call, g: Any, asked: Sequence[bool] | None, rerun: Rerun | None) -> list[Any]:
        """The cotangents of the reads that are ``asked`` for, or all; with ``rerun`` such as can be differentiated."""
        several = isinstance(g, dict)
        cotangents, backward = self._pullbacks[tuple(sorted(g)) if several else ()]
        given = [g[i] for i in sorted(g)] if several else [g]
        if asked is not None:
            cotangents = [c if ask else None for c, ask in zip(cotangents, asked, strict=True)]
        results = backward.run(call.addresses, given, frozenset([c.output for c in cotangents if c is not None]))
        both = zip(cotangents, self.reads, strict=True)
        return [None if c is None else _handed(results[c.output], c, i, rerun) for c, (i, _) in both]


class PartRecord(tape.PulledRecord):
    """A part of the tape of one call. ``given`` are its ends that are no Variables."""

    __slots__ = ("_all", "_given", "_late", "_read", "call", "shape")

    def __init__(self, call: Call, shape: Shape, given: tuple[Tensor, ...]) -> None:
        super().__init__(None, given, {})
        self.call: Call | None = call
        self.shape = shape
        self._given: tuple[Tensor, ...] | None = None  # those that the rest was made for
        self._read: list[Tensor] = []  # by each of the shape's reads
        self._late: dict[int, Tensor] = {}
        self._all: tuple[Tensor, ...] = ()

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        given, shape = super().inputs, self.shape
        if self.call is None:
            return ()
        if given is not self._given:
            self._read = [shape.end(end, given, self.call) for _, end in shape.reads]
            late = {x.phase: self._read[shape.spans[x.phase]] for x in shape.leading if isinstance(x, Late)}
            self._late = {k: stand_in(_TOKEN, PhaseRecord(None, tuple(read), {})) for k, read in late.items()}
            leading = [
                self._late[x.phase] if isinstance(x, Late) else shape.end(x, given, self.call) for x in shape.leading
            ]
            self._all = (*leading, *self._read[shape.spans[0]])
            self._given = given
        return self._all

    def pull(self, out: Tensor, g: Tensor, create_graph: bool, alive: set[int] | None) -> Sequence[Any]:
        shape, call = self.shape, self.call
        if call is None:
            raise GradientError("[backward] the tape of this tensor was freed; call backward(retain_graph=True).")
        rerun = call.rerun(shape.number, g) if create_graph else None
        asked = None if alive is None else [id(x) in alive for x in self._read]
        handed = shape.pulled(call, g, asked, rerun)
        for k, late in self._late.items():
            late._record.handed = handed[shape.spans[k]]  # type: ignore[union-attr]
        first = [_token() if isinstance(x, Late) else None for x in shape.leading]
        return [*first, *handed[shape.spans[0]]]

    def accumulate(self, g: Tensor, retain_graph: bool) -> bool:
        way, call = self.shape.direct, self.call
        if way is None or call is None:
            return False
        way.run(call.addresses, g)
        if not retain_graph:
            self.free()
        return True

    def free(self) -> None:
        super().free()
        self.call = self._given = None
        self._read, self._late, self._all = [], {}, ()


class PhaseRecord(tape.PulledRecord):
    """What a part hands on late."""

    __slots__ = ("handed",)

    handed: list[Any]

    def pull(self, out: Tensor, g: Tensor, create_graph: bool, alive: set[int] | None) -> Sequence[Any]:
        return self.handed

    def free(self) -> None:
        super().free()
        self.handed = []


def _handed(g: Tensor, cotangent: Cotangent, number: int, rerun: Rerun | None) -> Any:
    """A cotangent of reading ``number`` as the tape takes it."""
    if rerun is not None:
        g = g._twin()
        g.requires_grad, g._record = True, LateRecord(rerun, number)
    wrapped = cotangent.wrapped
    if wrapped is None:
        return g
    return assembly.Piece(g, *wrapped) if isinstance(wrapped, Piece) else tape.ResultCotangent(wrapped.number, g)


def _token() -> Tensor:
    """A cotangent of what stands for a phase."""
    return tensors.constant(0.0, float32)


def stand_in(value: Aval, record: tape.Record | None = None) -> Tensor:
    """A node of the tape without a value."""
    made = tensors.from_storage(value, None)
    made.requires_grad, made._record = True, record
    return made
