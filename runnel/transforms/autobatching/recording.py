"""Record samples: calls of pieces with the values that they read, to run with the calls of other samples."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np

from runnel.core import pytree
from runnel.core.avals import Shape, ShapedArray, row_major
from runnel.core.caching import Recent
from runnel.core.conversion import CASTING
from runnel.core.devices import Device
from runnel.core.dispatch import apply
from runnel.core.dtypes import DType
from runnel.core.errors import LevelError, TracedValueError
from runnel.core.tables import Op, abstract_eval
from runnel.ops.conversion import stop_gradient_p
from runnel.ops.shapes.pieces import concat_p, slice_p
from runnel.ops.shapes.views import reshape_p
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.inplace import CONSTANT_SERIAL
from runnel.tensor.levels import Level, LevelTensor
from runnel.tensor.stand_in import StandIn
from runnel.tensor.tensor import Tensor
from runnel.tensor.trace import ACTIVE
from runnel.tensor.tracing import no_trace
from runnel.tensor.variable import Variable
from runnel.transforms.autobatching.pieces import NotAPieceError, Operand, Piece
from runnel.transforms.autobatching.running import Run, Times
from runnel.transforms.autobatching.schedules import Call, Joined, Leaf, Schedule, Signature, View

PIECES: Final = 1024  # of one function, in each of two generations
SCHEDULES: Final = 64
_SETTINGS: Final = frozenset({bool, int, str, float, type(None), type(...), DType})
_NOWHERE: Final[tuple[int, Shape]] = (0, ())
_new: Final = object.__new__


class Known:
    """The pieces and schedules of one function, by what they compute and by what was recorded."""

    def __init__(self) -> None:
        self.pieces: Final[Recent[Any, Piece | None]] = Recent(PIECES)
        self.schedules: Final[Recent[Any, Schedule]] = Recent(SCHEDULES)
        self.open: Final[set[Any]] = set()  # calls that are no pieces
        self.kinds: Final[dict[tuple[ShapedArray, bool], Kind]] = {}
        self.last: tuple[Recording, int] | None = None  # the last call, and the number of its samples


class Kind:
    """A part of signatures: the aval of a value, and whether it needs a gradient. Equal kinds are one object."""

    __slots__ = ("aval", "needs_gradient")

    def __init__(self, value: ShapedArray, needs_gradient: bool) -> None:
        self.aval: Final = value
        self.needs_gradient: Final = needs_gradient


class Earlier(NamedTuple):
    """A value of an earlier run, as a leaf of a later recording."""

    run: Run
    offset: int
    aval: ShapedArray
    requires_grad: bool

    @property
    def shape(self) -> Shape:
        return self.aval.shape

    @property
    def dtype(self) -> DType:
        return self.aval.dtype

    def numpy(self) -> np.ndarray:
        """Return the value."""
        array: np.ndarray = self.run.memory.array(self.aval.shape, self.aval.dtype.numpy, self.offset)
        return array


class Segment:
    """The nodes that were recorded between two runs."""

    def __init__(self) -> None:
        self.signatures: Final[list[Signature]] = []
        self.numbers: Final[dict[Any, int]] = {}  # of signatures
        self.of: Final[list[int]] = []  # the signature of each node
        self.reads: list[int] = []  # the values that nodes read
        self.values = 0
        self.shared: Final[list[Any]] = []
        self.shared_numbers: Final[dict[int, int]] = {}
        self.leaves: Final[dict[int, list[Any]]] = {}
        self.leaf_values: Final[dict[int, tuple[Any, Pending]]] = {}  # by id of what was copied
        self.run: Run | None = None

    def number(self, key: Any, make: Callable[[], Signature]) -> int:
        """Return the number of the signature ``key``."""
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.signatures)
            self.signatures.append(make())
        return number

    def node(self, number: int, reads: Sequence[int], results: int) -> int:
        """Add a node and return the number of its first result."""
        self.of.append(number)
        self.reads.extend(reads)
        first = self.values
        self.values = first + results
        return first


class Recording(Level):
    """A call of a function that is batched: ``with recording:`` around the calls for all samples."""

    name = "autobatch"
    records_calls = True

    def __init__(self, known: Known) -> None:
        super().__init__()
        self._known = known
        self._fingerprints: dict[int, Any] = {}
        self.times: Final = Times()
        self.segment = Segment()
        self.runs: Final[list[Run]] = []
        self.nodes = 0  # calls of pieces

    # Values -----------------------------------------------------------------------------------------------------------

    def kind(self, value: ShapedArray, needs_gradient: bool) -> Kind:
        """Return the kind of a value."""
        kind = self._known.kinds.get((value, needs_gradient))
        if kind is None:
            kind = self._known.kinds.setdefault((value, needs_gradient), Kind(value, needs_gradient))
        return kind

    def sample(self, sample: Any) -> Any:
        """Return a sample with values of this recording in place of tensors, as far as it is a tree of containers."""
        leaves, structure = pytree.flatten(sample)
        if not any(x.__class__ is Tensor for x in leaves):
            return sample
        return pytree.unflatten(structure, [self.leaf(x) if x.__class__ is Tensor else x for x in leaves])

    def pending(self, number: int, kind: Kind, source: Any = None) -> Pending:
        """Return the tensor for value ``number`` of the present segment, equal to ``source`` if there is one."""
        tensor = _new(Pending)
        tensor._aval = kind.aval
        tensor._storage = None
        tensor._layout = _NOWHERE
        tensor._serial = self.born
        tensor._level = self
        tensor._parts = self.segment, number, kind, source
        return tensor

    def leaf(self, x: Any) -> Pending:
        """Return the value of ``x``, from outside or from an earlier run."""
        segment = self.segment
        known = segment.leaf_values.get(id(x))
        if known is not None:
            return known[1]
        value: Any = x
        if isinstance(x, Pending):
            run, offset = x.located()
            value = Earlier(run, offset, x._aval, x._parts[2].needs_gradient)
        needs = bool(value.requires_grad) and RECORDING.get()
        kind = self.kind(x._aval, needs)
        number = segment.number(kind, lambda: Leaf(x._aval))
        segment.leaves.setdefault(number, []).append(value)
        pending = self.pending(segment.node(number, (), 1), kind, x if x is value else None)
        segment.leaf_values[id(x)] = x, pending
        return pending

    def own(self, x: Tensor) -> Pending:
        """Return ``x`` as a value of the present segment."""
        return x if isinstance(x, Pending) and x._parts[0] is self.segment else self.leaf(x)

    def lifted(self, x: Tensor) -> LevelTensor:
        return self.leaf(x)

    # Nodes ------------------------------------------------------------------------------------------------------------

    def apply(self, op: Op, inputs: Sequence[Tensor], attrs: dict[str, Any]) -> Any:
        first = inputs[0]
        if op is reshape_p or (op is slice_p and _is_whole(first._aval, attrs)):
            return self._view(self.own(first), op, attrs)
        if op is concat_p and attrs["axis"] == 0 and len({x.dtype for x in inputs}) == 1:
            return self._joined([self.own(x) for x in inputs])
        try:
            items = tuple(attrs.items())
            hash(items)
        except TypeError:
            return apply(op, *(self.value(x) for x in inputs), **attrs)
        call = _OpCall(op, attrs)
        key: list[Any] = [op, items]
        result = self._call(call, inputs, key)
        return call(*map(self.value, inputs)) if result is None else result[0]

    def _view(self, x: Pending, op: Op, attrs: dict[str, Any]) -> Pending:
        value: Any = abstract_eval[op](x._aval, **attrs)
        start = attrs["starts"][0] * row_major(x._aval.shape)[0] * x.dtype.itemsize if op is slice_p else 0
        _, number, kind, _ = x._parts
        signature = self.segment.number((View, start, value), lambda: View(start, value))
        return self.pending(self.segment.node(signature, (number,), 1), self.kind(value, kind.needs_gradient))

    def _joined(self, xs: Sequence[Pending]) -> Pending:
        value: Any = abstract_eval[concat_p](*(x._aval for x in xs), axis=0)
        parts = tuple([x._aval.nbytes for x in xs])
        signature = self.segment.number((Joined, parts, value), lambda: Joined(parts, value))
        kind = self.kind(value, any(x._parts[2].needs_gradient for x in xs))
        return self.pending(self.segment.node(signature, [x._parts[1] for x in xs], 1), kind)

    def called(self, owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call ``function``, as a piece if possible. It belongs to ``owner``, a module, function or composition."""
        key: list[Any] = [self._fingerprint(owner)]
        values = args
        if kwargs:
            values = (*args, *kwargs.values())
            key += kwargs
        result = self._call(_Call(owner, function, len(args), tuple(kwargs)), values, key)
        return function(*args, **kwargs) if result is None else result[0]

    def _call(self, call: Any, values: Sequence[Any], key: list[Any]) -> tuple[Any] | None:
        """Record ``call`` of ``values`` and return (result,); None if it cannot be a piece."""
        key += (RECORDING.get(), CASTING.dtype)
        reads: list[int] = []
        shared: list[int] = []
        if not self._add(values, key, reads, shared):
            return None
        segment = self.segment
        signature_key = (*key, *shared)
        number = segment.numbers.get(signature_key)
        if number is None:
            piece = self._piece(tuple(key), call, values)
            if piece is None:
                return None
            made = Call(piece, piece.operands, tuple(shared))
            number = segment.number(signature_key, lambda: made)
        signature: Any = segment.signatures[number]
        piece = signature.piece
        kinds = piece.kinds
        segment.of.append(number)
        segment.reads += reads
        first = segment.values
        segment.values = first + len(kinds)
        if piece.is_single:
            return (self.pending(first, kinds[0]),)
        results = [self.pending(first + i, kind) for i, kind in enumerate(kinds)]
        return (tuple(results) if piece.is_tuple else pytree.unflatten(piece.structure, results),)

    def _add(self, values: Sequence[Any], key: list[Any], reads: list[int], shared: list[int]) -> bool:
        """Add arguments to a key, and the values to ``reads`` or ``shared``; False if they have other arguments than
        tensors, settings and tuples."""
        segment = self.segment
        for x in values:
            kind = x.__class__
            if kind is Pending:
                if x._parts[0] is not segment:
                    x = self.leaf(x)
                    segment = self.segment
                _, number, of_value, _ = x._parts
                reads.append(number)
                key.append(of_value)
            elif kind in _SETTINGS:
                key.append(kind)
                key.append(x if kind is not float else x or repr(x))
            elif kind is tuple:
                key.append(len(x))
                if not self._add(x, key, reads, shared):
                    return False
            elif kind is Tensor or isinstance(x, StandIn):
                tensor = x.read()
                if tensor.__class__ is not Tensor:
                    return False
                if tensor._serial == CONSTANT_SERIAL:
                    key.append(id(tensor))
                elif _is_shared(tensor):
                    key.append(tensor._aval)
                    key.append(tensor.requires_grad)
                    shared.append(self._shared(tensor))
                else:
                    row = self.leaf(tensor)
                    reads.append(row._parts[1])
                    key.append(row._parts[2])
            else:
                return False
        return True

    def _piece(self, key: Any, call: Any, values: Sequence[Any]) -> Piece | None:
        """Return the piece of a call, traced at the first one; None if it cannot be one."""
        piece = self._known.pieces.get(key)
        if piece is not None or key in self._known.open:
            return piece
        operands: list[Operand] = []
        constants: list[Tensor | None] = []  # of each tensor; None if it is an operand
        records = RECORDING.get()
        for x in _tensors(values):
            is_constant = x._serial == CONSTANT_SERIAL and x.__class__ is Tensor
            constants.append(x if is_constant else None)
            if x.__class__ is Pending:
                operands.append(Operand(x._aval, True, x._parts[2].needs_gradient))
            elif not is_constant:
                operands.append(Operand(x._aval, not _is_shared(x), x.requires_grad and records))

        def filled(*xs: Tensor) -> Any:
            rest = iter(xs)
            return call(*_filled(values, iter([next(rest) if x is None else x for x in constants])))

        before = time.perf_counter()
        try:
            with no_trace():
                piece = Piece(call.name, filled, operands)
        except (NotAPieceError, TracedValueError, LevelError):
            self._known.open.add(key)
            return None
        finally:
            self.times.tracing += time.perf_counter() - before
        piece.kinds = [self.kind(x, y) for x, y in zip(piece.results, piece.needs_gradient, strict=True)]
        self._known.pieces[key] = piece
        return piece

    def _shared(self, x: Any) -> int:
        owner = x if x._leaf is None else x._leaf()
        owner = x if owner is None else owner
        numbers = self.segment.shared_numbers
        number = numbers.get(id(owner))
        if number is None:
            number = numbers[id(owner)] = len(self.segment.shared)
            self.segment.shared.append(owner)
        return number

    def _fingerprint(self, owner: Any) -> Any:
        """Return what a call of ``owner`` depends on besides arguments and values of Variables, as far as it is
        known: settings of a module and of the modules below it."""
        known = self._fingerprints.get(id(owner))
        if known is None:
            modules = getattr(owner, "modules", None)
            parts: list[Any] = [id(owner)]
            for module in modules() if callable(modules) else ():
                for name, x in vars(module).items():
                    if x.__class__ in _SETTINGS or (x.__class__ is tuple and all(y.__class__ in _SETTINGS for y in x)):
                        parts += (name, x.__class__, x)
                    elif isinstance(x, Variable):
                        parts += (name, id(x), x.requires_grad)
                    else:
                        parts += (name, id(x))
            known = self._fingerprints[id(owner)] = tuple(parts)
        return known

    # Running ----------------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Run what was recorded."""
        segment = self.segment
        if not segment.of:
            return
        before = time.perf_counter()
        pieces = [(id(s.piece), s.shared) if isinstance(s, Call) else s for s in segment.signatures]
        key = tuple(segment.of), tuple(segment.reads), tuple(pieces)
        schedule = self._known.schedules.get(key)
        if schedule is None:
            with no_trace():
                schedule = Schedule(segment.signatures, segment.of, segment.reads)
            self._known.schedules[key] = schedule
        self.times.scheduling += time.perf_counter() - before
        self.segment = Segment()
        with no_trace():
            segment.run = Run(schedule, segment.shared, segment.leaves, self.times)
        self.runs.append(segment.run)
        self.nodes += sum(isinstance(segment.signatures[i], Call) for i in segment.of)

    def value(self, x: Tensor) -> Tensor:
        """Return the value of ``x`` now, without gradients."""
        return x.value_now() if isinstance(x, Pending) else x

    def as_state(self, x: Tensor, name: str) -> Tensor:
        return self.value(x)

    def require_state(self, x: LevelTensor, name: str) -> None:
        """Accept all values: each can be the value of a Variable."""

    def linearly(self, fn: Callable[[Sequence[Tensor]], list[Any]], inputs: Sequence[Tensor]) -> list[Any]:
        raise LevelError("[autobatch] a function with a derivative by the user must be part of a module's call.")


class Pending(LevelTensor):
    """A value that was recorded. It is computed when somebody asks for it, or at the end."""

    __slots__ = ()
    _level: Recording

    def located(self) -> tuple[Run, int]:
        """Return the run that computed it, and where it lies."""
        segment, number = self._parts[:2]
        if segment.run is None:
            self._level.flush()
        return segment.run, int(segment.run.schedule.offsets[number])

    def value_now(self) -> Tensor:
        """Return the value as a plain tensor, without gradients."""
        if not self._level.is_open:
            self._refuse("numpy()")
        source: Tensor | None = self._parts[3]
        if source is not None:
            return source.untaped() if source.requires_grad else source
        run, offset = self.located()
        return run.tensor(self._aval, offset)

    def apply_op(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        tensors = [x if x.__class__ is Pending else x.read() for x in inputs]
        level = self._level
        if not level.is_open:
            self._refuse(op.name)
        if ACTIVE.trace is not None or ACTIVE.level is not level:
            return super().apply_op(op, tuple(tensors), attrs)
        return level.apply(op, tensors, attrs)

    def apply_composed(self, composition: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        function = composition.function
        level = self._level
        if ACTIVE.level is not level or ACTIVE.trace is not None or any(x.__class__ is list for x in args):
            return function(*args, **kwargs)
        return level.called(composition, function, args, kwargs)

    @property
    def components(self) -> list[Tensor]:
        return []

    @property
    def is_traced(self) -> bool:
        return False

    @property
    def _is_unknown(self) -> bool:
        return False

    @property
    def strides(self) -> Shape:
        return row_major(self._aval.shape)

    @property
    def is_dense(self) -> bool:
        return True

    @property
    def is_transposed(self) -> bool:
        return False

    def numpy(self, *, force: bool = False) -> np.ndarray:
        return self.value_now().numpy()

    def item(self) -> bool | int | float | complex:
        return self.value_now().item()

    def _scalar(self, what: str) -> bool | int | float:
        number: bool | int | float = self.value_now()._scalar(what)
        return number

    def known(self) -> np.ndarray | None:
        return None

    def shaping(self) -> np.ndarray | None:
        return self.numpy()

    def without_tape(self) -> Tensor:
        stopped: Tensor = self.apply_op(stop_gradient_p, (self,), {})
        return stopped

    def _elsewhere(self, device: Device) -> Tensor:
        raise LevelError("[autobatch] a value cannot be moved to another device inside the function.")

    def _refuse(self, what: str) -> NoReturn:
        raise LevelError(
            f"[{what}] a value of a sample is used after the call that batches the samples has ended; return it from "
            "the function."
        )

    def __repr__(self) -> str:
        return f"Pending({self._aval})"


def _is_shared(x: Tensor) -> bool:
    """Return whether a tensor from outside is the same for all samples: a leaf that is trained, such as the value of a
    Variable."""
    return x._leaf is not None or (x.requires_grad and x._record is None)


def _is_whole(value: ShapedArray, attrs: dict[str, Any]) -> bool:
    """Return whether a slice cuts only along the first axis, without gaps, so that it shows adjacent bytes."""
    starts, sizes, steps = attrs["starts"], attrs["sizes"], attrs["steps"]
    return bool(starts) and steps[0] == 1 and sizes[1:] == value.shape[1:] and set(steps[1:]) <= {1}


class _OpCall:
    """A call of an op."""

    def __init__(self, op: Op, attrs: dict[str, Any]) -> None:
        self.name: Final = op.name
        self._op = op
        self._attrs = attrs

    def __call__(self, *xs: Tensor) -> Any:
        return apply(self._op, *xs, **self._attrs)


class _Call:
    """A call of a function of positional arguments and of some with ``names``."""

    __slots__ = ("_count", "_function", "_names", "owner")

    def __init__(self, owner: Any, function: Callable[..., Any], count: int, names: tuple[str, ...]) -> None:
        self.owner = owner
        self._function = function
        self._count = count
        self._names = names

    @property
    def name(self) -> str:
        """The name of the owner, for messages."""
        name: str = getattr(self.owner, "__name__", type(self.owner).__name__)
        return name

    def __call__(self, *values: Any) -> Any:
        count = self._count
        return self._function(*values[:count], **dict(zip(self._names, values[count:], strict=True)))


def _tensors(values: Sequence[Any]) -> Iterator[Tensor]:
    """Yield the tensors among arguments."""
    for x in values:
        if x.__class__ is tuple:
            yield from _tensors(x)
        elif isinstance(x, (Tensor, StandIn)):
            yield x.read()


def _filled(values: Sequence[Any], tensors: Any) -> tuple[Any, ...]:
    """Return the arguments with ``tensors`` in place of those among them."""
    return tuple(
        [
            _filled(x, tensors) if x.__class__ is tuple else next(tensors) if isinstance(x, (Tensor, StandIn)) else x
            for x in values
        ]
    )
