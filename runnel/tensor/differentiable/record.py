"""Record compiled calls on the tape, so that a backward pass runs a program.

A part of the tape is one record, on the tensor where the part begins: a result, or a stand-in for a value that only
parts read. Cotangents that a part hands on late (``derivative.Part``) come from stand-ins that its record leads to. A
:class:`Call` keeps what the records of one call need, and :class:`Tapes` what all calls of a program share.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

from runnel.backends.host.memory import Storage
from runnel.compiler.options import Options
from runnel.core.avals import ShapedArray, aval
from runnel.core.dtypes import float32
from runnel.core.errors import CaptureWarning, GradientError
from runnel.core.lifetime import Weak
from runnel.graph.node import InputKind, Value
from runnel.ops.shapes import assembly
from runnel.ops.shapes.views import permute_p
from runnel.tensor import tape, tensor as tensors
from runnel.tensor.cotangents import ResultCotangent
from runnel.tensor.differentiable.backward import Backward, Direct, direct
from runnel.tensor.differentiable.derivative import Cotangent, Derivative, Late, Part, SliceGradient, as_computed
from runnel.tensor.differentiable.rebuilding import LateGradients, unfold
from runnel.tensor.differentiable.segments import OF_VARIABLES, End, Kind, Stretch
from runnel.tensor.grad_mode import RECORDING, recording
from runnel.tensor.handle import PulledRecord, Record, passed_on, version
from runnel.tensor.kept_values import Hold
from runnel.tensor.levels import highest
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Pin

_TOKEN: Final = aval((), float32)


class Shape:
    """The properties that the records of a part share. ``reads`` are its readings: their numbers and ends."""

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
            # a leaf that the function made and did not return cannot be asked for its gradient
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
        self.merged = self._merged()
        self.lasting: dict[
            tuple[int, ...], list[bool] | None
        ] = {}  # of the readings, which have derivatives, for seeds

    def _merged(self) -> Merged | None:
        """Return the part with its phases merged into one; None if that could change the order of summation."""
        reads = [end for _, end in self.reads]
        if () not in self._pullbacks or any(end.kind is not Kind.OUTSIDE for end in (*self.ends, *reads)):
            return None
        cotangents, backward = self._pullbacks[()]
        late = {i: reads[self.spans[x.phase]] for i, x in enumerate(self.leading) if isinstance(x, Late)}
        is_all = len(reads) == len(reads[self.spans[0]]) + sum(map(len, late.values()))
        if not is_all or any(c is not None and c.wrapped is not None for c in cotangents):
            return None
        if not all(set(phase) <= set(self.leading[:i]) for i, phase in late.items()):
            return None
        between = self.leading[min(late) :] if late else ()
        return Merged(self._numbers(self.leading), self._numbers(reads), self._numbers(between), cotangents, backward)

    def _numbers(self, ends: Sequence[End | Late]) -> list[int]:
        return [self._places[x] for x in ends if isinstance(x, End)]

    def end(self, end: End, ends: tuple[Tensor, ...], call: Call) -> Tensor:
        """Return the tensor that ``end`` is at one call."""
        return call.node(end) if end.kind in OF_VARIABLES else ends[self._places[end]]

    def further_end(self, end: End, ends: tuple[Tensor, ...], call: Call) -> Tensor | None:
        """Return the tensor of an end that only a differentiated Python rule leads to; None if it is not outside."""
        if end.kind in OF_VARIABLES or end in self._places:
            return self.end(end, ends, call)
        return version(call.outside[end.number]) if end.kind is Kind.OUTSIDE else None

    def pulled(
        self, record: PartRecord, out: Tensor, g: Any, needed: Sequence[bool] | None, create_graph: bool
    ) -> list[Any]:
        """Return the cotangents of the readings of ``record``, given that of its output; None where not ``needed``.
        With ``create_graph`` they can be differentiated again."""
        numbers = sorted(g) if isinstance(g, dict) else []
        cotangents, backward = self._pullbacks[tuple(numbers)]
        seeds = [g[i] for i in numbers] if numbers else [g]
        if needed is not None:
            cotangents = [c if ask else None for c, ask in zip(cotangents, needed, strict=True)]
        pull = _Pull(record, out, backward, cotangents, numbers)
        gradients = pull.gradients(seeds, create_graph)
        return [None if c is None else _handed(x, c) for x, c in zip(gradients, cotangents, strict=True)]


class Merged:
    """A part of readings outside that hands on all cotangents at once, the usual part of a composition. It does what a
    :class:`Shape` does, only faster.

    The walk visits some ends ``between`` phases. If these are leaves, nothing is handed on there, and terms are
    added in the order of the phases. All places are among the ends.
    """

    __slots__ = ("_backward", "_chosen", "_cotangents", "between", "leading", "nothing", "reads")

    def __init__(
        self,
        leading: Sequence[int],
        reads: Sequence[int],
        between: Sequence[int],
        cotangents: Sequence[Cotangent | None],
        backward: Backward,
    ) -> None:
        self.leading = leading
        self.reads = reads
        self.between = between
        self.nothing = [None for _ in leading]  # is handed to these
        self._cotangents = cotangents
        self._backward = backward
        self._chosen: dict[tuple[bool, ...], tuple[list[Cotangent | None], frozenset[int]]] = {}  # by what is needed

    def pull(self, addresses: Sequence[int], g: Tensor, needed: tuple[bool, ...]) -> list[Tensor | None]:
        """Return the cotangents of the readings, as :meth:`Shape.pulled` does."""
        chosen = self._chosen.get(needed)
        if chosen is None:
            cotangents = [c if ask else None for c, ask in zip(self._cotangents, needed, strict=True)]
            chosen = self._chosen[needed] = cotangents, frozenset([c.output for c in cotangents if c is not None])
        results = self._backward.run(addresses, (g,), chosen[1])
        return [None if c is None else _in_order(results[c.output], c.order) for c in chosen[0]]


class _Pull(NamedTuple):
    """Pulls a cotangent of ``out`` back. ``cotangents`` say where each reading finds its own in the results of
    ``backward``; ``numbers`` are the results with cotangents if ``out`` is the joint node of several."""

    record: PartRecord
    out: Tensor
    backward: Backward
    cotangents: Sequence[Cotangent | None]
    numbers: Sequence[int]

    def gradients(self, seeds: Sequence[Tensor], create_graph: bool) -> list[Any]:
        """Return the gradients of the readings, which are linear in ``seeds``."""
        level = highest("backward", seeds)
        if level is not None:
            gradients = level.linearly(self._of_components, seeds)
        else:
            results = self.backward.run(
                self.record.addresses, seeds, frozenset(c.output for c in self.cotangents if c is not None)
            )
            gradients = [None if c is None else _in_order(results[c.output], c.order) for c in self.cotangents]
        if not create_graph:
            return gradients
        pairs = zip(self.numbers, seeds, strict=True)
        cotangents = [ResultCotangent(i, x) for i, x in pairs] if self.numbers else list(seeds)
        late = LateGradients(lambda: self.record.pulled_again(self.out, cotangents))
        lasting, reads = self._lasting(seeds, cotangents), self.record.shape.reads
        return [
            late.twin(x, i) if x is not None and (lasting is None or lasting[i]) else x
            for x, (i, _) in zip(gradients, reads, strict=True)
        ]

    def _lasting(self, seeds: Sequence[Tensor], cotangents: Sequence[Any]) -> list[bool] | None:
        """Return which gradients of the readings depend on a tensor that requires gradients, as on the tape of single
        ops, which is rebuilt once for all calls. None: all, because the seeds do, or because there is no such tape."""
        if any(x.requires_grad for x in seeds):
            return None
        known, key = self.record.shape.lasting, tuple(self.numbers)
        if key not in known:
            try:
                known[key] = self.record.dependence(self.out, cotangents)
            except GradientError:  # of a Python rule; raised again when it is differentiated
                known[key] = None
        return known[key]

    def _of_components(self, parts: Sequence[Tensor]) -> list[Any]:
        return self.gradients(parts, RECORDING.get())


class PartRecord(PulledRecord[Tensor]):
    """A part of the tape of one call. ``ends`` are the tensors where it ends, except Variables."""

    __slots__ = ("_all", "_ends", "_late", "_merged", "_read", "_stretch", "call", "shape")

    def __init__(self, call: Call, shape: Shape, ends: tuple[Tensor, ...]) -> None:
        super().__init__(None, ends, {})
        self.call: Call | None = call
        self.shape = shape
        self._ends: tuple[Tensor, ...] | None = None  # the ends that the attributes below belong to
        self._read: list[Tensor] = []  # the tensor of each reading
        self._late: dict[int, Tensor] = {}
        self._all: tuple[Tensor, ...] = ()
        self._stretch: Stretch | None = None  # the rebuilt tape
        self._merged: Merged | None = None

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        ends, shape = super().inputs, self.shape
        if self.call is None:
            return ()
        if ends is not self._ends:
            self._merged = shape.merged
            for i in () if self._merged is None else self._merged.between:
                if ends[i]._record is not None:
                    self._merged = None
        if ends is not self._ends and self._merged is not None:
            self._read = [ends[i] for i in self._merged.reads]
            self._all = (*[ends[i] for i in self._merged.leading], *self._read)
            self._late, self._ends = {}, ends
        elif ends is not self._ends:
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
        """The addresses of the values that the call keeps."""
        return () if self.call is None else self.call.addresses

    def pull(self, out: Tensor, g: Tensor, create_graph: bool, alive: set[int] | None) -> Sequence[Any]:
        shape = self.shape
        if self.call is None:
            raise tape.freed(out)
        merged = self._merged
        if merged is not None and not create_graph and alive is not None and g._level is None:
            ready = merged.pull(self.call.addresses, g, tuple([id(x) in alive for x in self._read]))
            return [*merged.nothing, *ready]
        needed = None if alive is None else [id(x) in alive for x in self._read]
        handed = shape.pulled(self, out, g, needed, create_graph)
        if merged is not None:
            return [*merged.nothing, *handed]
        for k, late in self._late.items():
            late._record.handed = handed[shape.spans[k]]  # type: ignore[union-attr]
        first = [_token() if isinstance(x, Late) else None for x in shape.leading]
        return [*first, *handed[shape.spans[0]]]

    def pulled_again(self, out: Tensor, cotangents: Sequence[Any]) -> list[Tensor | None]:
        """Return the cotangents of all readings, with a tape. From now on the tape of ``out`` has single ops."""
        call = self.call
        if call is None:
            raise tape.freed(out)
        if self._stretch is None:
            call.tapes.tell()
            self._stretch = self._single_ops(call, out, call.known())
        return _reached(self._stretch, out, cotangents)

    def dependence(self, out: Tensor, cotangents: Sequence[Any]) -> list[bool]:
        """Return which cotangents of the readings depend on a tensor that requires gradients."""
        if self.call is None:
            raise tape.freed(out)
        twin = stand_in(out.aval)
        stretch = self._single_ops(self.call, twin, dict(self.call.known()))
        return [x is not None and x.requires_grad for x in _reached(stretch, twin, cotangents)]

    def _single_ops(self, call: Call, root: Tensor, known: dict[Value, Tensor]) -> Stretch:
        """Rebuild the tape of the call's single ops, from ``root`` on."""
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
    """The cotangents that a part hands on late."""

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
    return [x.g if isinstance(x, assembly.SliceGradient | ResultCotangent) else x for x in reached]


def _in_order(g: Tensor, order: Sequence[int] | None) -> Tensor:
    """Return a cotangent, which has no tape, with its axes in this order."""
    if order is None:
        return g
    result: Tensor = g.apply_op(permute_p, (g,), {"axes": order})
    return result


def _handed(g: Tensor, cotangent: Cotangent) -> Any:
    """Return a cotangent in the form that the tape takes."""
    wrapped = cotangent.wrapped
    if wrapped is None:
        return g
    return (
        assembly.SliceGradient(g, *wrapped)
        if isinstance(wrapped, SliceGradient)
        else ResultCotangent(wrapped.number, g)
    )


def _token() -> Tensor:
    """Return a cotangent of the stand-in for a phase."""
    return tensors.constant(0.0, float32)


def stand_in(value: ShapedArray, record: Record[Tensor] | None = None) -> Tensor:
    """Return a node of the tape without a value."""
    node = tensors.from_storage(value, None)
    node.requires_grad, node._record = True, record
    return node


_FIRST: Final = End(Kind.PART, 0)


class Tapes:
    """Attaches the tape to the results of one program. ``variables`` are its Variables, with their nodes."""

    def __init__(
        self, derivative: Derivative, variables: Sequence[Weak], nodes: Sequence[Value], name: str, options: Options
    ) -> None:
        returned = {end for _, end in derivative.taped}
        self.derivative = derivative
        self.shapes = [
            Shape(i, part, returned, options, variables, derivative.former) for i, part in enumerate(derivative.parts)
        ]
        self.variables = variables
        self.numbers = {node: i for i, node in enumerate(nodes)}
        self.avals = [node.aval for node in nodes]
        self.name = name
        self._is_one_part = [end for _, end in derivative.taped] == [_FIRST] and len(self.shapes) == 1
        self.is_reported = False
        self.is_composition = False  # derivatives of its gradients run op by op, like its first calls

    def attach(self, results: Sequence[Tensor], call: Call) -> None:
        """Make gradients of ``results``, one for each taped output, lead to Variables and the tensors outside."""
        outside = call.outside
        if self._is_one_part:  # the same as below, only faster
            (result,) = results
            result.requires_grad = True
            shape = self.shapes[0]
            result._record = PartRecord(call, shape, tuple([outside[x.number] for x in shape.ends]))
            return
        roots: dict[End, Tensor] = {}
        for (_, end), result in zip(self.derivative.taped, results, strict=True):
            result.requires_grad = True
            if end.kind is Kind.OUTSIDE:
                _another_handle(result, outside[end.number])
            elif end.kind in OF_VARIABLES:
                _another_handle(result, call.node(end))
            elif end in roots:
                _another_handle(result, roots[end])
            else:
                roots[end] = result
        for shape in self.shapes:
            end = End(Kind.PART, shape.number)
            root = roots.get(end)
            if root is None:
                root = roots[end] = stand_in(shape.value)
            read = [outside[x.number] if x.kind is Kind.OUTSIDE else roots[x] for x in shape.ends]
            root._record = PartRecord(call, shape, tuple(read))

    def tell(self) -> None:
        """Warn once that derivatives of gradients run op by op."""
        if not (self.is_reported or self.is_composition):
            self.is_reported = True
            warnings.warn(
                f"[compile] gradients of '{self.name}' are differentiated outside it, which runs op by op. "
                "Differentiate inside the compiled function to make everything part of its program.",
                CaptureWarning,
                stacklevel=2,
            )


class Call:
    """The state that the records of one call need.

    Attributes:
        outside: the tensors outside that gradients lead to.
        inputs: the numbers, and the storage and layout of the tensors, that rebuilding the tape reads.
        addresses: where the values lie that the derivative keeps.
        memory: the memory that they lie in.
        pins: the memory of the program's Variables.
        hold: keeps the values of the Variables that the derivative reads.
    """

    __slots__ = ("__weakref__", "_known", "_nodes", "addresses", "hold", "inputs", "memory", "outside", "pins", "tapes")

    def __init__(
        self,
        tapes: Tapes,
        outside: Sequence[Tensor],
        inputs: tuple[Any, ...],
        addresses: Sequence[int],
        memory: tuple[Storage, ...],
        pins: Sequence[Pin],
        hold: Hold | None,
    ) -> None:
        self.tapes = tapes
        self.outside = outside
        self.inputs = inputs
        self.addresses = addresses
        self.memory = memory
        self.pins = pins
        self.hold = hold
        self._nodes: dict[End, Tensor] = {}
        self._known: dict[Value, Tensor] | None = None

    def node(self, end: End) -> Tensor:
        """Return the node of the tape for a value of a Variable."""
        node = self._nodes.get(end)
        if node is None:
            node = self._nodes[end] = self._former(end.number) if end.kind is Kind.FORMER else self._node(end.number)
        return node

    def _former(self, number: int) -> Tensor:
        return self._leaf(self.tapes.derivative.former[number])

    def _node(self, number: int) -> Tensor:
        if self.hold is not None and number in self.hold.handles:
            return self.hold.handles[number]
        variable = self.tapes.variables[number]()
        if variable is not None:
            node: Tensor = variable.node()
            if node.requires_grad and self.pins[number].holds(node):
                return node
        return self._leaf(number)

    def _leaf(self, number: int) -> Tensor:
        """Return a node of the tape whose gradient belongs to a Variable, if the Variable is alive."""
        variable = self.tapes.variables[number]()
        node = stand_in(self.tapes.avals[number])
        if variable is not None:
            node._leaf = weakref.ref(variable)
        return node

    def known(self) -> dict[Value, Tensor]:
        """Return the values that the call has kept, for rebuilding the tape."""
        if self._known is None:
            derivative = self.tapes.derivative
            known: dict[Value, Tensor] = {}
            own = set(derivative.residuals)
            for x, stored, address in zip(derivative.saved, derivative.stored, self.addresses, strict=True):
                is_read = x in self.tapes.numbers and x not in own
                known[x] = (
                    self._variable(x) if is_read else as_computed(x, stored, self._stored_tensor(stored, address))
                )
            inputs = iter(self.inputs)
            for x in derivative.inputs:
                if x.kind is InputKind.VARIABLE:
                    known[x] = self._variable(x)
                elif x.kind is InputKind.SCALAR:
                    known[x] = tensors.constant(next(inputs), x.aval.dtype)
                else:
                    storage, layout = next(inputs), next(inputs)
                    known[x] = tensors.from_storage(x.aval, storage, *layout)
            self._known = known
        return self._known

    def _stored_tensor(self, stored: Value, address: int) -> Tensor:
        """Return the value at an address in the memory that the call keeps."""
        for storage in self.memory:
            offset = address - storage.address
            if 0 <= offset < max(storage.nbytes, 1):
                return tensors.from_storage(stored.aval, storage, offset // stored.aval.dtype.itemsize)
        raise LookupError(f"nothing is kept at {address:#x}")

    def _variable(self, node: Value) -> Tensor:
        """Return the value that a Variable had at the call, which did not change it."""
        number = self.tapes.numbers[node]
        pin, variable = self.pins[number], self.tapes.variables[number]()
        if self.hold is not None and number in self.hold.handles:
            return self.hold.handles[number]
        if variable is not None and variable.is_stored_in(pin):
            current: Tensor = variable.read()  # from now on, nobody writes there
            if pin.holds(current):
                return current
        return tensors.from_storage(node.aval, pin.storage, pin.offset)


def _another_handle(result: Tensor, of: Tensor) -> None:
    """Make ``result`` another handle of the node of ``of``; to the tape they are equal."""
    result._record = Record(None, (of,), {}, passed_on)
    result._is_rebound, result._version = True, version(of)
