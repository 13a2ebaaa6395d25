"""The tape of a compiled call: records whose backward runs a program.

A part of the tape is a record on the tensor where it begins, a result or a stand-in for a value that only parts read.
What is handed on late (``derivative.Part``) comes from stand-ins of its own, which the record leads to.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple, Protocol

from runnel.compiler.options import Options
from runnel.core.avals import ShapedArray, aval
from runnel.core.dtypes import float32
from runnel.core.errors import GradientError
from runnel.core.lifetime import Weak
from runnel.graph.node import Value
from runnel.ops import assembly
from runnel.tensor import tape, tensor as tensors
from runnel.tensor.differentiable.backward import Backward, Direct, direct
from runnel.tensor.differentiable.derivative import Cotangent, Derivative, Late, Part, SliceGradient
from runnel.tensor.differentiable.ends import OF_VARIABLES, End, Kind
from runnel.tensor.differentiable.unfolding import LateGradients, unfold
from runnel.tensor.grad_mode import RECORDING, recording
from runnel.tensor.handle import PulledRecord, Record, version
from runnel.tensor.levels import highest
from runnel.tensor.stretch import Stretch
from runnel.tensor.tensor import Tensor

_TOKEN: Final = aval((), float32)


class TapesOfProgram(Protocol):
    """What the calls of one program have in common, as their records know it."""

    @property
    def derivative(self) -> Derivative: ...
    @property
    def name(self) -> str: ...

    def tell(self) -> None:
        """Say that a tape is made anew."""
        ...


class TapedCall(Protocol):
    """One call of a compiled function, as its records know it."""

    @property
    def tapes(self) -> TapesOfProgram: ...
    @property
    def outside(self) -> Sequence[Tensor]: ...
    @property
    def addresses(self) -> Sequence[int]: ...

    def node(self, end: End) -> Tensor:
        """What the tape calls a value of a Variable."""
        ...

    def known(self) -> dict[Value, Tensor]:
        """Values that the call has kept, for making the tape anew."""
        ...


class Shape:
    """What the records of a part have in common. ``reads`` are its readings by number, and where they end."""

    def __init__(
        self,
        number: int,
        part: Part,
        returned: Collection[End],
        options: Options,
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
            p.seeds: ([p.cotangents[i] for i, _ in self.reads], Backward(p, options)) for p in part.pullbacks
        }
        self.direct: Direct | None = None
        if () in self._pullbacks and not self.leading and len(self.spans) == 1:
            self.direct = direct([end for _, end in self.reads], *self._pullbacks[()], variables, former)
        ends = [x for x in self.leading if isinstance(x, End)] + [end for _, end in self.reads]
        self.ends = tuple(dict.fromkeys(end for end in ends if end.kind not in OF_VARIABLES))
        self._places = {end: i for i, end in enumerate(self.ends)}
        self.lasting: dict[
            tuple[int, ...], list[bool] | None
        ] = {}  # of the readings, which have derivatives, for seeds

    def end(self, end: End, ends: tuple[Tensor, ...], call: TapedCall) -> Tensor:
        """What ``end`` is at one call."""
        return call.node(end) if end.kind in OF_VARIABLES else ends[self._places[end]]

    def further_end(self, end: End, ends: tuple[Tensor, ...], call: TapedCall) -> Tensor | None:
        """The same of an end that the part itself need not lead to, but a rule in Python that is differentiated; None
        if nobody outside has it."""
        if end.kind in OF_VARIABLES or end in self._places:
            return self.end(end, ends, call)
        return version(call.outside[end.number]) if end.kind is Kind.OUTSIDE else None

    def pulled(
        self, record: PartRecord, out: Tensor, g: Any, needed: Sequence[bool] | None, create_graph: bool
    ) -> list[Any]:
        """The cotangents of the reads of ``record``, given that of its output; those that are not ``needed`` are None.
        With ``create_graph`` they can be differentiated again."""
        numbers = sorted(g) if isinstance(g, dict) else []
        cotangents, backward = self._pullbacks[tuple(numbers)]
        seeds = [g[i] for i in numbers] if numbers else [g]
        if needed is not None:
            cotangents = [c if ask else None for c, ask in zip(cotangents, needed, strict=True)]
        pull = _Pull(record, out, backward, [None if c is None else c.output for c in cotangents], numbers)
        gradients = pull.gradients(seeds, create_graph)
        return [None if c is None else _handed(x, c) for x, c in zip(gradients, cotangents, strict=True)]


class _Pull(NamedTuple):
    """Pulls a cotangent of ``out`` back: ``outputs`` are the results of ``backward`` for each read of the record.
    ``numbers`` are those of the results that have cotangents, where ``out`` stands for several."""

    record: PartRecord
    out: Tensor
    backward: Backward
    outputs: Sequence[int | None]
    numbers: Sequence[int]

    def gradients(self, seeds: Sequence[Tensor], create_graph: bool) -> list[Any]:
        """They are linear in ``seeds``."""
        level = highest("backward", seeds)
        if level is not None:
            gradients = level.linearly(self._of_components, seeds)
        else:
            results = self.backward.run(
                self.record.addresses, seeds, frozenset(i for i in self.outputs if i is not None)
            )
            gradients = [None if i is None else results[i] for i in self.outputs]
        if not create_graph:
            return gradients
        pairs = zip(self.numbers, seeds, strict=True)
        cotangents = [tape.ResultCotangent(i, x) for i, x in pairs] if self.numbers else list(seeds)
        late = LateGradients(lambda: self.record.pulled_again(self.out, cotangents))
        lasting, reads = self._lasting(seeds, cotangents), self.record.shape.reads
        return [
            late.twin(x, i) if x is not None and (lasting is None or lasting[i]) else x
            for x, (i, _) in zip(gradients, reads, strict=True)
        ]

    def _lasting(self, seeds: Sequence[Tensor], cotangents: Sequence[Any]) -> list[bool] | None:
        """Which of the readings' gradients depend on what needs a gradient, as the tape of single ops has it: that is
        made anew once for all calls. None: all, since the seeds do, or since there is no such tape."""
        if any(x.requires_grad for x in seeds):
            return None
        known, key = self.record.shape.lasting, tuple(self.numbers)
        if key not in known:
            try:
                known[key] = self.record.dependence(self.out, cotangents)
            except GradientError:  # of a rule in Python, for whoever differentiates it
                known[key] = None
        return known[key]

    def _of_components(self, parts: Sequence[Tensor]) -> list[Any]:
        return self.gradients(parts, RECORDING.get())


class PartRecord(PulledRecord[Tensor]):
    """A part of the tape of one call. ``ends`` are the tensors where it ends, Variables aside."""

    __slots__ = ("_all", "_ends", "_late", "_read", "_stretch", "call", "shape")

    def __init__(self, call: TapedCall, shape: Shape, ends: tuple[Tensor, ...]) -> None:
        super().__init__(None, ends, {})
        self.call: TapedCall | None = call
        self.shape = shape
        self._ends: tuple[Tensor, ...] | None = None  # those that the rest was made for
        self._read: list[Tensor] = []  # by each of the shape's reads
        self._late: dict[int, Tensor] = {}
        self._all: tuple[Tensor, ...] = ()
        self._stretch: Stretch | None = None  # the tape made anew

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        ends, shape = super().inputs, self.shape
        if self.call is None:
            return ()
        if ends is not self._ends:
            self._read = [shape.end(end, ends, self.call) for _, end in shape.reads]
            late = {x.phase: self._read[shape.spans[x.phase]] for x in shape.leading if isinstance(x, Late)}
            self._late = {k: stand_in(_TOKEN, PhaseRecord(None, tuple(read), {})) for k, read in late.items()}
            leading = [
                self._late[x.phase] if isinstance(x, Late) else shape.end(x, ends, self.call) for x in shape.leading
            ]
            self._all = (*leading, *self._read[shape.spans[0]])
            self._ends = ends
        return self._all

    @property
    def addresses(self) -> Sequence[int]:
        """Of what the call keeps."""
        return () if self.call is None else self.call.addresses

    def pull(self, out: Tensor, g: Tensor, create_graph: bool, alive: set[int] | None) -> Sequence[Any]:
        shape = self.shape
        if self.call is None:
            raise tape.freed(out)
        needed = None if alive is None else [id(x) in alive for x in self._read]
        handed = shape.pulled(self, out, g, needed, create_graph)
        for k, late in self._late.items():
            late._record.handed = handed[shape.spans[k]]  # type: ignore[union-attr]
        first = [_token() if isinstance(x, Late) else None for x in shape.leading]
        return [*first, *handed[shape.spans[0]]]

    def pulled_again(self, out: Tensor, cotangents: Sequence[Any]) -> list[Tensor | None]:
        """The cotangents of all readings, with a tape. From now on the tape of ``out`` is of single ops."""
        call = self.call
        if call is None:
            raise tape.freed(out)
        if self._stretch is None:
            call.tapes.tell()
            self._stretch = self._single_ops(call, out, call.known())
        return _reached(self._stretch, out, cotangents)

    def dependence(self, out: Tensor, cotangents: Sequence[Any]) -> list[bool]:
        """Of the cotangents of all readings, which depend on what needs a gradient."""
        if self.call is None:
            raise tape.freed(out)
        twin = stand_in(out.aval)
        stretch = self._single_ops(self.call, twin, dict(self.call.known()))
        return [x is not None and x.requires_grad for x in _reached(stretch, twin, cotangents)]

    def _single_ops(self, call: TapedCall, root: Tensor, known: dict[Value, Tensor]) -> Stretch:
        """The tape of the call's single ops, from ``root`` on."""
        ends, derivative = super().inputs, call.tapes.derivative

        def end(at: End) -> Tensor | None:
            return self.shape.further_end(at, ends, call)

        return unfold(derivative.sketches[self.shape.number], root, known, derivative.read, end, call.tapes.name)

    def accumulate(self, g: Tensor, retain_graph: bool) -> bool:
        way, call = self.shape.direct, self.call
        if way is None or call is None or g._level is not None:
            return False
        way.run(call.addresses, g)
        if not retain_graph:
            self.free()
        return True

    def free(self) -> None:
        super().free()
        self.call = self._ends = self._stretch = None
        self._read, self._late, self._all = [], {}, ()


class PhaseRecord(PulledRecord[Tensor]):
    """What a part hands on late."""

    __slots__ = ("handed",)

    handed: list[Any]

    def pull(self, out: Tensor, g: Tensor, create_graph: bool, alive: set[int] | None) -> Sequence[Any]:
        return self.handed

    def free(self) -> None:
        super().free()
        self.handed = []


def _reached(stretch: Stretch, root: Tensor, cotangents: Sequence[Any]) -> list[Tensor | None]:
    with recording(True):
        reached = stretch.cotangents([(root, x) for x in cotangents], create_graph=True)
    return [x.g if isinstance(x, assembly.SliceGradient | tape.ResultCotangent) else x for x in reached]


def _handed(g: Tensor, cotangent: Cotangent) -> Any:
    """A cotangent as the tape takes it."""
    wrapped = cotangent.wrapped
    if wrapped is None:
        return g
    return (
        assembly.SliceGradient(g, *wrapped)
        if isinstance(wrapped, SliceGradient)
        else tape.ResultCotangent(wrapped.number, g)
    )


def _token() -> Tensor:
    """A cotangent of what stands for a phase."""
    return tensors.constant(0.0, float32)


def stand_in(value: ShapedArray, record: Record[Tensor] | None = None) -> Tensor:
    """A node of the tape without a value."""
    node = tensors.from_storage(value, None)
    node.requires_grad, node._record = True, record
    return node
