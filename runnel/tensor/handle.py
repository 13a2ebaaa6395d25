"""Handles of values as the tape sees them, and the records of the tape.

The nodes of the tape are values. A handle is the node of its value until ``x[key] = value`` or an in-place method gives
it another one: then :func:`moved_out` makes a node of the old value, which earlier records mean from then on. Later
ones mean the handle's :func:`version`.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import weakref
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np

from runnel.backends.host.memory import Storage
from runnel.core import slots
from runnel.core.avals import Shape, ShapedArray, row_major
from runnel.core.dtypes import DType, bool_, float32, float64, int32, int64
from runnel.core.errors import GradientError, ShapeError, TracedValueError
from runnel.core.html import tensor_html
from runnel.core.recall import LESSON, Recalled
from runnel.core.tables import Op
from runnel.core.tracebacks import end_at_user, ending_at_user
from runnel.graph.node import Value
from runnel.ops.creation_like import zeros_like
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.trace import ACTIVE, Trace
from runnel.tensor.traced_values import counted, traced_value

SERIALS: Final = itertools.count(1)  # tensors are numbered in the order in which they are made

T = TypeVar("T", bound="Handle[Any]")  # the one kind that handles are of: Tensor


# Read a number at an address: a NumPy array over the memory of one number takes five times as long.
_READ: Final[dict[DType, Callable[[int], Any]]] = {
    bool_: ctypes.c_bool.from_address,
    int32: ctypes.c_int32.from_address,
    int64: ctypes.c_int64.from_address,
    float32: ctypes.c_float.from_address,
    float64: ctypes.c_double.from_address,
}


class GradientOwner(Protocol):
    """Where the user looks for a gradient: a Variable, or a leaf."""

    @property
    def grad(self) -> Any:
        """The gradient accumulated so far."""
        ...

    @grad.setter
    def grad(self, value: Any) -> None: ...

    def _loses_gradients(self) -> bool:
        """Return whether the accumulated gradient is unknown, so that nothing can be added to it."""
        ...


_OPTIONAL: Final = ("_array", "_leaf", "_record", "_view", "_views")
_FLAGS: Final = ("_is_rebound", "_is_recorded", "requires_grad")


def number_of(method: Callable[[Any], Any]) -> Any:
    """Decorate a method that returns the only number of a tensor, which machine code reads."""
    known = Recalled(method, reads=True)
    kind = {"__float__": float, "__int__": int, "__bool__": bool}.get(method.__name__)

    @functools.wraps(method)
    def item(self: Any) -> Any:
        try:
            return known.call(self)
        except (Exception, KeyboardInterrupt) as error:
            end_at_user(error)
            raise

    @functools.wraps(method)
    def converted(self: Any) -> Any:
        try:
            return kind(known.call(self))  # type: ignore[misc]
        except (Exception, KeyboardInterrupt) as error:
            end_at_user(error)
            raise

    return item if kind is None else converted


def read_only(path: str) -> Any:
    """Return a property that reads ``path`` without a Python frame."""
    return property(attrgetter(path))


class Handle(ArrayMethods[T]):
    """A tensor's content, which is bytes in memory or a node of the graph being traced, and its place on the tape."""

    # What every tensor has, and what machine code reads (``tensor.repeated``), is in slots; the rest are class defaults
    # that few instances override.
    __slots__ = ("__dict__", "__weakref__", "_aval", "_layout", "_serial", "_storage", *_OPTIONAL, *_FLAGS)

    _aval: ShapedArray
    _layout: tuple[int, Shape]  # offset and strides, in elements
    requires_grad: bool
    _is_recorded: bool  # once a record of the tape holds this tensor
    _is_rebound: bool  # this handle was given another value
    _serial: int
    _storage: Storage | None
    _array: np.ndarray | None  # the NumPy view, once asked for
    _record: Record[T] | None
    _leaf: weakref.ref[GradientOwner] | None  # to what this is the value of, which holds it in turn
    _view: Any  # the View of a tensor or Variable whose elements it shows
    _views: list[weakref.ref[Any]] | None  # what shows elements of it
    _node: Value | None = None  # while tracing
    _grad: T | None = None
    _weak: bool = False
    _is_argument: bool = False  # of a function that is differentiated: a leaf that the function may give another value
    _first: T | None = None  # then the node of its first value, if the tape may need it
    _version: T | None = None  # and that of its present one, once recorded
    _level: Any = None  # of the transform that it is a tensor of (levels.py), which has the components
    _parts: Any = None

    aval: ShapedArray = read_only("_aval")
    shape: Shape = read_only("_aval.shape")
    dtype: DType = read_only("_aval.dtype")
    ndim: int = read_only("_aval.ndim")
    size: Any = read_only("_aval.extent")

    @property
    def is_weak(self) -> bool:
        return self._weak

    @property
    def is_traced(self) -> bool:
        return self._node is not None

    @property
    def strides(self) -> Shape:
        """Steps in elements along each axis."""
        return self._layout[1]

    @property
    def is_dense(self) -> bool:
        return self._layout[1] == row_major(self._aval.shape) or self._aval.size <= 1

    @property
    def is_transposed(self) -> bool:
        strides = self._layout[1]
        return self._node is None and len(strides) > 1 and strides[-2] == 1 and strides[-1] > 1

    @property
    def address(self) -> int:
        """Where its first element lies in memory."""
        storage = self._storage
        if storage is None:
            raise traced_value(self._aval, "address")
        return storage.address + self._layout[0] * self._aval.dtype.itemsize

    # What NumPy sees --------------------------------------------------------------------------------------------------

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Return the values as a read-only NumPy array that shares memory (zero-copy)."""
        if self._is_unknown:
            raise traced_value(self._aval, "numpy()")
        if LESSON.events is not None:
            LESSON.spoil()
        array = self._array
        if array is None:
            storage = self._storage
            if storage is None:
                raise GradientError("[numpy] the tensor holds no memory.")
            if not self._aval.size:
                self._array = np.empty(self._aval.shape, self._aval.dtype.numpy)
                self._array.flags.writeable = False
                return self._array
            item = self._aval.dtype.itemsize
            offset, strides = self._layout
            array = self._array = storage.ndarray(
                self._aval.shape, self._aval.dtype.numpy, offset * item, tuple(s * item for s in strides)
            )
        return array

    @property
    def _is_unknown(self) -> bool:
        """True if the values exist only when a program runs: the tensor is traced, or an input of the observed
        function."""
        if self._node is not None:
            return True
        trace = ACTIVE.trace
        return trace is not None and trace.observer is not None and self._serial <= trace.born

    def known(self) -> np.ndarray | None:
        trace = ACTIVE.trace
        is_input = trace is not None and self._serial <= trace.born
        return None if self._node is not None or is_input else self.numpy()

    def _unknown(self, message: str) -> TracedValueError:
        return counted(TracedValueError(message))

    def shaping(self) -> np.ndarray | None:
        values, trace = self.known(), ACTIVE.trace
        if values is None and self._node is None and trace is not None and trace.looks_at is not None:
            values = trace.looks_at(self)
        return values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            if copy is False:
                raise ValueError(f"[asarray] a {self.dtype.name} tensor cannot be seen as {dtype} without a copy.")
            return array.astype(dtype)
        return array.copy() if copy else array

    def numel(self) -> int:
        """Return the number of elements."""
        return self._aval.size

    def dim(self) -> int:
        """Return the number of axes."""
        return self._aval.ndim

    @number_of
    def item(self) -> bool | int | float | complex:
        """Return the value of a tensor of size 1 as a Python number."""
        if self._is_unknown:
            raise traced_value(self._aval, "item()")
        if LESSON.events is not None:
            LESSON.spoil()
        if self._aval.size != 1:
            raise ValueError(f"[item] the tensor must have one element; got shape {self.shape}.")
        read, storage = _READ.get(self._aval.dtype), self._storage
        if read is not None and storage is not None:
            number: bool | int | float = read(storage.address + self._layout[0] * self._aval.dtype.itemsize).value
            return number
        value: bool | int | float | complex = (
            self.numpy().reshape(()).astype(np.float64 if self.dtype.is_float else self.dtype.numpy).item()
        )
        return value

    @ending_at_user
    def tolist(self) -> Any:
        """Return the values as (nested) Python lists."""
        return self.numpy().tolist()

    @number_of
    def __float__(self) -> float:
        return float(self._scalar("float"))

    @ending_at_user
    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    @number_of
    def __int__(self) -> int:
        return int(self._scalar("int"))

    @number_of
    def __bool__(self) -> bool:
        return bool(self._scalar("bool"))

    @ending_at_user
    def __index__(self) -> int:
        if not self.dtype.is_integer:
            raise TypeError(f"[index] an index must be an integer tensor; got {self.dtype.name}.")
        return int(self._scalar("index"))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("[len] a 0-d tensor has no length.")
        return self.shape[0]

    def __hash__(self) -> int:
        return id(self)

    def _scalar(self, what: str) -> Any:
        if self._is_unknown:
            raise traced_value(self._aval, what)
        if self._aval.size != 1:
            raise ShapeError(
                f"[{what}] the truth or number of a tensor of shape {self.shape} is ambiguous; reduce it to one "
                "element first (any, all, sum)."
            )
        return self.item()

    def __repr__(self) -> str:
        if self._is_unknown:
            return f"Tensor(traced, {self._aval})"
        body = np.array2string(self.numpy(), separator=", ", prefix="Tensor(")
        extra = ", requires_grad=True" if self.requires_grad else ""
        return f"Tensor({body}, dtype={self.dtype.name}{extra})"

    def __str__(self) -> str:
        return repr(self)

    _repr_html_ = tensor_html

    def __format__(self, spec: str) -> str:
        """Format the tensor's number by ``spec`` (``f"{t:.3f}"``, or ``f"{t}"`` of a tensor without axes).

        Of a tensor with axes or without a value, no ``spec`` gives the text of the tensor."""
        if not spec and (self._aval.ndim or self._is_unknown):
            return str(self)
        return format(self._scalar("format"), spec)

    # The tape ---------------------------------------------------------------------------------------------------------

    @property
    def _is_user_leaf(self) -> bool:
        """True if ``backward()`` accumulates a gradient here."""
        return self.requires_grad and self._record is None and not self._is_argument

    def _is_outside(self, trace: Trace) -> bool:
        """Return whether this tensor was made before ``trace`` began."""
        return self._serial <= trace.born if self._node is None else not trace.owns(self._node)

    def _twin(self) -> T:
        """Another handle of the same value, without a tape. In a trace it is traced, whatever this one is."""
        raise NotImplementedError

    @staticmethod
    def _over(value: ShapedArray, storage: Storage | None, offset: int, strides: Shape) -> T:
        """Return a tensor over ``storage``; ``offset`` and ``strides`` are in elements."""
        raise NotImplementedError

    @property
    def grad(self) -> T | None:
        """The gradient that ``backward()`` accumulated, for a leaf."""
        return self._grad

    @grad.setter
    def grad(self, value: Any) -> None:
        raise NotImplementedError

    def _loses_gradients(self) -> bool:
        return False

    def detach(self) -> T:
        """Return a view of all elements without a tape: gradients stop here."""
        raise NotImplementedError

    def without_tape(self) -> T:
        """Return another handle of the value without any tape, and without a tangent."""
        raise NotImplementedError

    def contiguous(self, memory_format: Any = None) -> T:
        """Return the same values in dense row-major memory."""
        raise NotImplementedError

    def untaped(self) -> T:
        """Another handle of the same value without the tape of this handle; components of a level keep theirs."""
        raise NotImplementedError


slots.none_by_default(Handle, _OPTIONAL)
slots.flags(Handle, _FLAGS)


class StandIns(Protocol):
    """The nodes of the tape for tensors from outside."""

    def of(self, tensor: Any) -> Any:
        """Return the node for ``tensor``; None if it is not from outside."""
        ...


class OutsideHandles:
    """The part of a trace that handles made before its beginning are kept in."""

    REFUSAL = ("a tensor is changed in place, and a view of it is held outside", "make the view inside")

    def __init__(self) -> None:
        self.gradients: dict[int, tuple[Any, Any]] = {}  # by id: those whose .grad was set, with what it was
        self.values: dict[int, tuple[Any, tuple[Any, ...]]] = {}  # the same of those that got another value
        self.views: list[Any] = []  # of Variables that were written
        self.stand_ins: StandIns | None = None  # of a trace whose tape ends at tensors from outside


def moved_out(x: T) -> T:
    """Return a separate node for the present value of ``x``, which no later write changes."""
    if x._is_rebound and x._version is not None:
        return version(x)
    node: T = x._twin()
    node.requires_grad, node._record = x.requires_grad, x._record
    if x.requires_grad and x._record is None:
        # gradients are accumulated where the user looks for them
        node._leaf = weakref.ref(x) if x._leaf is None else x._leaf
    return node


def version(x: T) -> T:
    """Return the node of the present value of ``x``. While a function is compiled, the node of a tensor from outside
    is a stand-in, at which the tape of the function ends."""
    trace = ACTIVE.trace
    if trace is not None and x.requires_grad:
        stand_ins = trace.facet(OutsideHandles).stand_ins
        node: T | None = None if stand_ins is None else stand_ins.of(x)
        if node is not None:
            return node
    if not x._is_rebound:
        return x
    if x._version is None:
        node = moved_out(x)
        if node.is_traced and not x.is_traced:
            return node  # of a trace inside the one that the handle belongs to
        x._version = node
    elif x._version._is_rebound:  # another handle was the node until it got another value
        x._version = origin(x._version)
    present: T = x._version
    return present


def origin(x: T) -> T:
    """Return the node of the first value that ``x`` had."""
    first: T | None = x._first
    return x if first is None else first


class Record(Generic[T]):
    """How a tensor was made: the op, its attributes and its inputs. ``freed`` once a backward pass has consumed it.
    ``line`` is the user's line that called the op; it is there where NaNs are looked for."""

    __slots__ = ("_inputs", "attrs", "freed", "line", "op", "rule")

    line: str

    def __init__(self, op: Op | None, inputs: tuple[T, ...], attrs: dict[str, Any], rule: Any = None) -> None:
        if ACTIVE.trace is not None:
            inputs = tuple(map(version, inputs))
        for x in inputs:
            x._is_recorded = True
            if x._is_rebound:
                inputs = tuple(map(version, inputs))
        self.op = op
        self._inputs = inputs
        self.attrs = attrs
        self.rule = rule  # of a custom_vjp: (g, out) -> cotangents of inputs
        self.freed = False

    @property
    def inputs(self) -> tuple[T, ...]:
        """The nodes of the values that the op was applied to."""
        for x in self._inputs:
            if x._is_rebound:
                self._inputs = tuple(map(origin, self._inputs))
                break
        return self._inputs

    def __repr__(self) -> str:
        return f"<derivative of {self.op.name if self.op is not None else 'a function'}>"

    def name(self) -> str:
        """Return what messages and drawings of graphs call it."""
        return f"{self.op.name if self.op is not None else 'function'}_backward"

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The records of the inputs, each with 0; Accumulation for leaves, None where no gradient is computed."""
        return tuple(((x._record or Accumulation(x)) if x.requires_grad else None, 0) for x in self.inputs)

    def free(self) -> None:
        """Let go of the saved values."""
        self.freed = True
        self._inputs = ()
        self.rule = None


class Accumulation:
    """The end of a path of gradients: a leaf that accumulates them."""

    def __init__(self, node: Any) -> None:
        self.node = node

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Accumulation) and other.variable is self.variable

    def __hash__(self) -> int:
        return id(self.variable)

    @property
    def variable(self) -> Any:
        """The leaf, a tensor or Variable."""
        return self.node if self.node._leaf is None else self.node._leaf()

    def name(self) -> str:
        """Return what messages and drawings of graphs call it."""
        return "accumulate_gradient"

    @property
    def next_functions(self) -> tuple[()]:
        """Nothing follows."""
        return ()


def passed_on(g: Any, out: T) -> tuple[Any]:
    """Return the cotangent unchanged: the rule of a record with one input."""
    return (g,)


class MultiResultRecord(Record[T]):
    """How several results were made at once; ``outs`` are the results, without a tape.

    The record belongs to the joint node, a node of the tape without a value that represents all results; a
    :class:`ResultRecord` of each leads to it. Without an op, ``rule`` takes the cotangents by the number of the
    result.
    """

    __slots__ = ("outs",)

    def __init__(
        self, op: Op | None, inputs: tuple[T, ...], attrs: dict[str, Any], outs: tuple[T, ...], rule: Any = None
    ) -> None:
        super().__init__(op, inputs, attrs, rule)
        self.outs = outs

    def free(self) -> None:
        super().free()
        self.outs = ()


class ResultRecord(Record[T]):
    """The record of result number ``index`` of the op whose joint node is ``joint``."""

    __slots__ = ("index",)

    def __init__(self, joint: T, index: int) -> None:
        super().__init__(None, (joint,), {})
        self.index = index


class PulledRecord(Record[T]):
    """A record in place of many: it hands cotangents on itself."""

    __slots__ = ()

    def pull(self, out: T, g: T, create_graph: bool, alive: set[int] | None) -> Sequence[Any]:
        """Return the cotangents of the inputs, as :func:`~runnel.tensor.tape.apply_rule` does."""
        raise NotImplementedError

    def accumulate(self, g: T, retain_graph: bool) -> bool:
        """Add the cotangents of the inputs to their owners' ``.grad``, if the record leads only to leaves and once to
        each. Otherwise change nothing and return False."""
        return False


def linked(x: T, source: T) -> T:
    """Return a node with the value of ``x``, whose record hands gradients on to ``source``."""
    twin: T = x._twin()
    twin.requires_grad = True
    twin._record = Record(None, (source,), {}, passed_on)
    return twin


def overwritten(x: T, source: T) -> T:
    """Return a node with the value of ``x``, which does not depend on ``source``: the gradient of that is 0."""
    twin: T = x._twin()
    twin.requires_grad = True
    twin._record = Record(None, (source,), {}, lambda g, out: (zeros_like(g),))
    return twin


def another(x: T) -> T:
    """Another handle of the node of ``x``: the tape sees no difference, so that sums of gradients have one order."""
    twin = linked(x, x)
    twin._is_rebound, twin._version = True, version(x)
    return twin


def plain(x: T) -> T:
    """Return ``x`` without a tape: itself, if it has none."""
    untaped: T = x.untaped() if x.requires_grad else x
    return untaped


def results_of(joint: T, outs: tuple[T, ...]) -> tuple[T, ...]:
    """Return the results of an op with several, with records that lead to the joint node."""
    results: tuple[T, ...] = tuple(out._twin() for out in outs)
    for index, result in enumerate(results):
        if result.dtype.is_inexact:
            result.requires_grad = True
            result._record = ResultRecord(joint, index)
    return results


def as_gradient(value: Any, shape: Shape, owner: str) -> Any:
    """Return the value to set as ``.grad`` of ``owner``: None or a tensor of its ``shape``."""
    if value is None:
        return None
    if not isinstance(value, ArrayMethods):
        raise GradientError(f"[grad] a gradient must be a tensor or None; got {type(value).__name__}. Use asarray().")
    tensor: Any = value.read()
    if tensor.shape != shape:
        raise GradientError(f"[grad] {owner} was given a gradient of shape {tensor.shape}; they must be the same.")
    return tensor
