"""The Variable: the mutable cell of Runnel. Parameters, optimizer state, running statistics and random state are
Variables; reading one returns a Tensor, ``assign`` puts another in."""

from __future__ import annotations

import operator
import sys
import weakref
from collections.abc import Callable, Collection, Sequence
from types import SimpleNamespace
from typing import Any, Final, Self

import numpy as np

from runnel.backends import base
from runnel.backends.host.locks import VERSION, StateLock
from runnel.core import kinds, tracebacks
from runnel.core.arrays import as_array
from runnel.core.avals import ShapedArray
from runnel.core.conversion import fitting
from runnel.core.devices import as_device
from runnel.core.dispatch import RunTimeNumber
from runnel.core.dtypes import DType, Dtype, as_dtype, from_numpy
from runnel.core.errors import DeviceError, DTypeError, GradientError, NewStateError, ShapeError
from runnel.core.recall import LESSON, settles
from runnel.core.tracebacks import ending_at_user
from runnel.graph.node import InputKind, Value
from runnel.tensor import inplace, tape, tensor as tensors, tracing, views
from runnel.tensor.concurrency import MARKS, TURN
from runnel.tensor.grad_mode import RECORDING, run_recording
from runnel.tensor.handle import as_gradient, read_only
from runnel.tensor.stand_in import StandIn
from runnel.tensor.tensor import Tensor
from runnel.tensor.trace import ACTIVE
from runnel.tensor.traced_values import CONSUMED, consumed


class Pin:
    """Keeps a Variable's memory alive for the programs that are bound to it. They hold the pin and not the tensor, so
    that whoever holds the tensor is somebody who reads its value."""

    __slots__ = ("address", "offset", "storage")

    def __init__(self, tensor: Tensor) -> None:
        self.storage: Final = tensor._storage
        self.offset: Final = tensor._layout[0]
        self.address: Final = tensor.address

    def holds(self, tensor: Tensor) -> bool:
        """Return whether this is the memory of ``tensor``. Values can be parts of one block."""
        return tensor._storage is self.storage and tensor._layout[0] == self.offset


class StateVersion:
    """Counts changes of the state that compiled programs watch, so that a program compares one number.

    ``now`` ticks whenever an attribute of a Module or optimizer is set outside programs, ``grads`` whenever a
    ``.grad`` is set or cleared, and ``writes`` whenever Variables are assigned.
    """

    __slots__ = ("grads", "now", "writes")

    def __init__(self) -> None:
        self.grads = 0
        self.now = 0
        self.writes = 0


STATE_VERSION = StateVersion()


def _refuse_in_trace() -> None:
    if tracing.ACTIVE.trace is not None:
        raise NewStateError(
            f"[Variable] one was made inside a compiled function, at {tracebacks.user_line()}: each call would need "
            "its own. Make Variables (and modules and optimizers, which hold them) outside, once."
        )


def _count_unshared() -> int:
    """Return ``getrefcount`` of an object that one attribute and one local name hold. Not every version of Python
    counts the argument."""
    owner = SimpleNamespace(held=object())
    value = owner.held
    return sys.getrefcount(value)


_UNSHARED: Final = _count_unshared()


class TracedVariables:
    """The state of Variables as the traced function sees it."""

    def __init__(self) -> None:
        self.nodes: dict[Variable, Value] = {}  # of those read or written, in the order of first use
        self.values: dict[Variable, Tensor] = {}  # what each holds now
        self.written: set[Variable] = set()
        self.gradients: dict[Variable, Tensor | None] = {}  # .grad as set in the trace
        self.gradient_inputs: dict[Variable, Value] = {}  # .grad read before it was set
        self.consumed: set[Variable] = set()  # gradients that an optimizer has used up
        self.absent_gradients: set[Variable] = set()  # .grad read as None before it was set
        self.lost_gradients: set[Variable] = set()  # used up by an earlier call, and added to here before they were set


@kinds.declare
@settles
class Variable(StandIn[Tensor]):
    """A named, mutable cell that holds a tensor of fixed shape and dtype, on a device.

    Array functions read its current value. ``var.assign(t)`` replaces the value; tensors read before keep the old
    one. Under ``rn.compile`` reads and assignments become part of the program.
    """

    # ``_tensor`` is the current value. Programs write into its memory while ``_shared`` is None: nobody else holds it.
    # ``_settled`` is the tensor that readers may have at once; no run writes into it. A bound program sets the lock.
    __slots__ = (
        "__weakref__", "_aval", "_grad", "_pin", "_requires_grad", "_settled", "_shared", "_state_lock", "_tensor",
        "_views", "name"
    )  # fmt: skip
    _pin: Pin | None
    _settled: Tensor | None
    _shared: Tensor | None
    _state_lock: StateLock | None
    _views: list[weakref.ref[Any]] | None
    data = views.DATA

    def __init__(
        self, value: Any, *, requires_grad: bool = False, name: str = "", dtype: Dtype = None, device: Any = None
    ) -> None:
        _refuse_in_trace()
        if isinstance(value, Variable):
            value = value.read()
        place = None if device is None else as_device(device)
        if isinstance(value, Tensor):
            array, place = value.numpy(), place or value.aval.device
        else:
            array = as_array("Variable", value)
            if dtype is None and array.dtype == np.float64 and not isinstance(value, np.ndarray):
                dtype = "float32"
        kind: DType = from_numpy(array.dtype) if dtype is None else as_dtype(dtype)
        if requires_grad and not kind.is_inexact:
            raise GradientError(f"[Variable] with requires_grad the dtype must be floating; got {kind.name}.")
        array = np.ascontiguousarray(fitting("Variable", array, kind, value)).reshape(array.shape)
        self._begin(tensors.from_numpy(array, kind, copy=True, device=place), name, requires_grad)
        self._shared = None

    def _begin(self, value: Tensor, name: str, requires_grad: bool) -> None:
        """Set all that a Variable has; ``value`` is a handle that nobody else holds, of memory that others may."""
        self._aval = value.aval
        self._tensor = value
        self._shared = value
        self._settled = self._pin = self._state_lock = self._views = None
        self._grad: Any = None
        self.name = name
        self._requires_grad = bool(requires_grad)

    def __getstate__(self) -> dict[str, Any]:
        """Return the value, name, flags, gradient, and attributes of subclasses and users."""
        state = object.__getstate__(self)
        in_dict, in_slots = state if isinstance(state, tuple) else (state, None)
        added = {**(in_dict or {}), **(in_slots or {})}
        attributes = {name: x for name, x in added.items() if name not in Variable.__slots__}
        state = {"value": self.value, "requires_grad": self.requires_grad, "name": self.name}
        return state | {"grad": self._grad, "attributes": attributes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        _refuse_in_trace()
        value = state["value"]
        handle = tensors.from_storage(value.aval, value._storage, *value._layout)
        self._begin(handle, state["name"], state["requires_grad"])
        self._grad = state["grad"]
        for name, attribute in state["attributes"].items():
            object.__setattr__(self, name, attribute)

    aval: ShapedArray = read_only("_aval")

    @property
    def described(self) -> str:
        """How messages call it: by its name, or by its shape where it has none."""
        kind = type(self).__name__
        return f"{kind} '{self.name}'" if self.name else f"a {kind} of shape {self.shape}"

    @property
    def requires_grad(self) -> bool:
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        if flag and not self._aval.dtype.is_inexact:
            raise GradientError(f"[requires_grad] the dtype must be floating; got {self.dtype.name}.")
        self._requires_grad = bool(flag)
        self._settled = None  # the next reading is a leaf of the other kind
        STATE_VERSION.now += 1

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether ``backward()`` computes a gradient for it; returns the Variable itself."""
        self.requires_grad = requires_grad
        return self

    # Reading and writing ----------------------------------------------------------------------------------------------

    def read(self) -> Tensor:
        """Return the current value."""
        active = ACTIVE
        if active.trace is not None:
            return self._read_traced(active.trace)
        current = self._settled
        if current is None:
            current = self._hand_out()
        if active.readings is not None:
            active.readings.note(self, current)
        return current

    def _hand_out(self) -> Tensor:
        """Return the current value as a handle that keeps it: from now on no program writes into its memory."""
        TURN.give_way()
        while True:
            current = self._tensor
            if current._leaf is None or current.requires_grad != self._requires_grad:
                leaf = self._as_leaf(current)
                if self._tensor is not current:
                    continue
                self._tensor = leaf
                current = leaf
            before = self._shared  # kept: a tensor's end may run code of the user's
            lock = self._state_lock
            if lock is None:
                if self._tensor is current and self._state_lock is None:  # atomic with the next line
                    self._shared = self._settled = current
                    return current
                continue
            words = lock.words
            if self._tensor is not current:  # atomic with the next two lines
                continue
            self._shared = current
            words[VERSION] += 1
            lock.settle()
            if self._tensor is current and self._shared is current:  # atomic with the next line
                self._settled = current
            del before
            return current

    @property
    def value(self) -> Tensor:
        """The current value, without a tape."""
        return self.read().untaped()

    def _read_traced(self, trace: tracing.Trace) -> Tensor:
        traced = trace.facet(TracedVariables)
        current = traced.values.get(self)
        if current is None:
            node = trace.input(self._aval, InputKind.VARIABLE, self.name or f"variable{len(traced.nodes)}")
            traced.nodes[self] = node
            trace.settle(self._aval.device)
            current = tensors.symbolic(node)
            current._leaf = weakref.ref(self)
            current.requires_grad = self.requires_grad
            traced.values[self] = current
        return current

    @ending_at_user
    def assign(self, value: Any) -> None:
        """Replace the value by ``value``, of the same shape and dtype. Memory that others can reach is copied, so
        later changes of an array do not reach the Variable."""
        self.replace(value)

    def replace(self, value: Any, expected: Tensor | None = None) -> bool:
        """Assign ``value`` if the present value still is what was read as ``expected``; whether it was. For code that
        computes the next value from the last, and starts over if another thread was faster. In a trace nobody is."""
        trace = tracing.ACTIVE.trace
        LESSON.spoil()
        if not isinstance(value, (Tensor, Variable)):
            is_known = not isinstance(value, RunTimeNumber)
            number = fitting("assign", as_array("assign", value), self.dtype, value) if is_known else value
            value = tensors.constant(number, self.dtype, self._aval.device)
        value = value.read()
        value = value.without_tape() if trace is not None or value.requires_grad or value._level is not None else value
        if value.shape != self.shape:
            raise ShapeError(f"[assign] the value of {self.described} must have shape {self.shape}; got {value.shape}.")
        if value.dtype is not self.dtype:
            raise DTypeError(
                f"[assign] the value of {self.described} must be {self.dtype.name}; got {value.dtype.name}. Cast it."
            )
        if value._level is not None:
            value = value._level.as_state(value, self.name)
        if value.aval.device is not self._aval.device:
            raise DeviceError(
                f"[assign] the value of {self.described} must be on {self._aval.device}; got {value.aval.device}. "
                f'Move it with to("{self._aval.device}") first.'
            )
        if trace is not None:
            self._read_traced(trace)
            fresh = tensors.symbolic(tensors.node_of(value, trace))
            fresh._leaf = weakref.ref(self)
            fresh.requires_grad = self.requires_grad
            traced = trace.facet(TracedVariables)
            traced.values[self] = fresh
            traced.written.add(self)
        else:
            if tracing.ACTIVE.readings is not None:
                self.read()
            if not self._store(_own(value), expected):
                return False
        if self._views:
            views.refresh(self)
        return True

    def _store(self, value: Tensor, expected: Tensor | None = None) -> bool:
        """Take a dense value over, of the right shape and dtype."""
        if self._state_lock is not None:
            TURN.give_way()
        fresh = tensors.from_storage(self._aval, value._storage, value._layout[0])
        before = self._tensor, self._shared, self._settled, self._pin  # kept until all is done
        # Atomic from here to the last tick.
        now = self._tensor
        if expected is not None and (now._storage is not expected._storage or now._layout[0] != expected._layout[0]):
            return False
        self._tensor = self._shared = fresh  # whoever made the value may still hold it
        self._settled = self._pin = None
        lock = self._state_lock
        if lock is not None:
            lock.assigned += 1
            lock.words[VERSION] += 1
        STATE_VERSION.writes += 1
        del before
        return True

    def update(self, name: str, change: Callable[[Tensor], Tensor]) -> Self:
        """Assign what ``change`` makes of the current value; again, if another thread has assigned another meanwhile.
        A Variable keeps no tape: a value that was made from other leaves is refused while operations are recorded,
        since gradients could not reach these."""
        while not self._updated(name, change):
            pass
        return self

    def _updated(self, name: str, change: Callable[[Tensor], Tensor]) -> bool:
        before = self.without_tape()
        value = inplace.fitted(name, self._aval, change(before)).read()
        if value.requires_grad and RECORDING.get() and self._leads_to_other_leaves(value):
            raise GradientError(
                f"[{name}] the new value of {self.described} leads to leaves that require gradients, and a "
                "Variable keeps numbers only; detach() the value, or compute it under `with runnel.no_grad():`."
            )
        return self.replace(value, before)

    def _leads_to_other_leaves(self, value: Tensor) -> bool:
        trace = tracing.ACTIVE.trace
        if trace is not None and trace.is_body:
            return False  # there everything floating has a tape
        return any(x._record is None and (x._leaf is None or x._leaf() is not self) for x in tape.needed_order([value]))

    def move_to(self, device: Any, dtype: DType | None = None) -> Self:
        """Put it, and its gradient, on another device, or into another dtype; returns the Variable itself. Handles of
        its value stay as they are. Not in a compiled function (DeviceError)."""
        place, kind = as_device(device), self.dtype if dtype is None else dtype
        if place is self._aval.device and kind is self.dtype:
            return self
        gradient = self._grad.astype(kind).on(place) if isinstance(self._grad, Tensor) else self._grad
        value = np.ascontiguousarray(fitting("to", self.value.numpy(), kind, self)).reshape(self.shape)
        return self.become(tensors.from_numpy(value, kind, copy=True, device=place), gradient)

    def become(self, value: Tensor, gradient: Any = None) -> Self:
        """Hold ``value``, which nobody else holds, whatever its shape, dtype and device are."""
        if self._views:
            views.sever(self, self.without_tape())
        if tracing.ACTIVE.trace is not None:
            problem = f"[to] {self.described} moves to {value.aval} in the middle of a compiled function"
            raise DeviceError(f"{problem}; do that before the call.")
        before = self._tensor, self._shared, self._settled, self._pin, self._grad, self._state_lock  # kept until done
        # Atomic from here to the last tick.
        lock = self._state_lock
        if lock is not None:  # programs that are bound to it find that the value is another one
            lock.assigned += 1
            lock.words[VERSION] += 1
            if value.aval.device is not self._aval.device:
                self._state_lock = None
        self._aval, self._tensor, self._shared = value.aval, value, value
        self._settled = self._pin = None
        self._grad = gradient
        STATE_VERSION.now += 1
        STATE_VERSION.grads += 1
        STATE_VERSION.writes += 1
        del before
        return self

    def private_address(self) -> int:
        """Return the address of memory that only this Variable holds, for a program to update in place. Tensors read
        before keep the old memory."""
        while True:
            if self._shared is None and self._tensor.is_dense:
                return self._tensor.address
            words = self._lock_with(None).words
            version = words[VERSION]
            self._settled = None  # who reads from now on changes the version
            if self._is_sole_holder():
                if words[VERSION] == version:  # atomic with the next line
                    self._shared = None
                continue
            current = self._hand_out()
            copy = tensors.from_numpy(current.numpy(), self.dtype, copy=True, device=self._aval.device)
            before = self._shared, self._settled, self._pin
            if self._tensor is current and self._shared is current:  # atomic from here to the tick
                self._tensor = copy
                self._shared = self._settled = self._pin = None
                words[VERSION] += 1  # programs bound to the old memory must bind again
            del before

    def is_stored_in(self, pin: Pin) -> bool:
        """Return whether the value is in the memory that ``pin`` keeps."""
        return pin.holds(self._tensor)

    def node(self) -> Tensor:
        """Return the tape's node of the present value. Do not read it: programs may write into its memory."""
        while True:
            current = self._tensor
            if current._leaf is not None and current.requires_grad == self._requires_grad:
                return current
            leaf = self._as_leaf(current)
            if self._tensor is current:  # atomic with the next lines
                if self._shared is current:
                    self._shared = leaf
                self._tensor = leaf

    def _as_leaf(self, current: Tensor) -> Tensor:
        leaf = tensors.from_storage(self._aval, current._storage, *current._layout)
        leaf._leaf = weakref.ref(self)
        leaf.requires_grad = self._requires_grad
        return leaf

    def still_is(self, value: Tensor) -> bool:
        """Return whether the present value is the one that was read as ``value``."""
        now = self._tensor
        return now._storage is value._storage and now._layout[0] == value._layout[0]

    @property
    def is_shared(self) -> bool:
        """True if anything may hold a handle of the current value."""
        return self._shared is not None

    @property
    def state_lock(self) -> StateLock | None:
        """The lock of runs that read or write this Variable; None before the first."""
        return self._state_lock

    def new_lock(self) -> StateLock:
        """Return a new state lock for Variables on the device of this one."""
        return StateLock(base.of(self._aval.device).lock_keeper)

    def _lock_with(self, lock: StateLock | None) -> StateLock:
        """Use ``lock`` (or a new one) unless the Variable has a lock already; return the lock it has."""
        lock = lock or self._state_lock or self.new_lock()
        if self._state_lock is None:  # atomic with the next line
            self._state_lock = lock
        return self._state_lock

    def pin(self) -> Pin:
        """Return the pin that a program holds while it is bound to the current memory."""
        while True:
            pin, tensor = self._pin, self._tensor
            if pin is not None and pin.holds(tensor):
                return pin
            pin = Pin(tensor)
            if self._tensor is tensor:  # atomic with the next line
                self._pin = pin

    def _is_sole_holder(self) -> bool:
        """Return whether every handle that was read is gone, so that nothing would see a change of the memory."""
        tensor = self._tensor
        references = _UNSHARED + (self._shared is tensor) + (self._settled is tensor)
        if sys.getrefcount(tensor) != references or not tensor.is_dense:
            return False
        tensor._array = None  # if somebody holds it, or a view of it, the storage is held too
        storage = tensor._storage
        ours = storage is not None and storage.is_ours
        return ours and sys.getrefcount(storage) == _UNSHARED + (self._pin is not None)

    # Gradients --------------------------------------------------------------------------------------------------------

    @property
    def grad(self) -> Tensor | None:
        """The gradient that ``backward()`` accumulated, or None."""
        trace = tracing.ACTIVE.trace
        if trace is not None:
            return self._grad_traced(trace)
        if self._grad is CONSUMED:
            raise consumed(self.described)
        gradient: Tensor | None = self._grad
        return gradient

    @grad.setter
    def grad(self, value: Any) -> None:
        value = as_gradient(value, self.shape, self.described)
        if value is not None and value._level is not None:
            value = value._level.as_state(value, f"{self.name}.grad")
        trace = tracing.ACTIVE.trace
        if trace is not None:
            traced = trace.facet(TracedVariables)
            traced.gradients[self] = value
            traced.consumed.discard(self)
        else:
            self._grad = value
            STATE_VERSION.grads += 1

    def drop_gradient(self) -> None:
        """Set ``grad`` to None, quickly."""
        if tracing.ACTIVE.trace is not None:
            self.grad = None
        elif self._grad is not None:
            self._grad = None
            STATE_VERSION.grads += 1

    def add_gradient(self, g: Tensor) -> None:
        """Add to ``grad`` what nobody else holds."""
        if self._grad is None and tracing.ACTIVE.trace is None:
            self._grad = g
            STATE_VERSION.grads += 1
            return
        if self._loses_gradients():
            return
        before = self.grad
        if before is not None:
            g = run_recording(False, operator.add, before, g)
        self.grad = g

    def _loses_gradients(self) -> bool:
        """Return whether ``grad`` was used up, so that its sum with another gradient is unknown; reading it raises."""
        if self._grad is not CONSUMED:
            return False
        trace = tracing.ACTIVE.trace
        if trace is not None:
            traced = trace.facet(TracedVariables)
            if self in traced.gradients:
                return False
            traced.lost_gradients.add(self)
        return True

    def _grad_traced(self, trace: tracing.Trace) -> Tensor | None:
        traced = trace.facet(TracedVariables)
        if self in traced.gradients:
            return traced.gradients[self]
        if self._grad is None:
            traced.absent_gradients.add(self)
            return None
        if self._grad is CONSUMED:
            raise consumed(self.described)
        node = trace.input(self._aval, InputKind.ARGUMENT, f"{self.name}.grad")
        traced.gradient_inputs[self] = node
        current = tensors.symbolic(node)
        traced.gradients[self] = current
        return current

    def __repr__(self) -> str:
        if tracing.ACTIVE.trace is not None and self.read().is_traced:
            body = "traced"
        else:
            settled = self._settled
            current = self._hand_out() if settled is None else settled
            body = np.array2string(current.numpy(), separator=", ")
        return f"{type(self).__name__}({self.name!r}, {self._aval}, {body})"


def _own(value: Tensor) -> Tensor:
    """Return ``value`` in dense memory that nothing outside Runnel can reach and change."""
    if value.is_dense and value._storage is not None and value._storage.is_ours:
        return value
    return tensors.from_numpy(value.numpy(), value.dtype, copy=True, device=value.aval.device)


def assign_together(values: Sequence[tuple[Variable, Tensor]]) -> None:
    """Assign values of the Variables' own shapes and dtypes: snapshots and programs in other threads see all of them
    or none, and an interrupt (Ctrl-C) leaves none."""
    if tracing.ACTIVE.trace is not None or tracing.ACTIVE.readings is not None:
        for variable, value in values:
            variable.assign(value)
        return
    ready = [(variable, _own(value.read().without_tape())) for variable, value in values]
    former = [(variable, variable._tensor) for variable, _ in ready]
    with MARKS.changing():
        try:
            for variable, value in ready:
                variable._store(value)
        except BaseException:
            for variable, value in former:
                variable._store(value)
            raise
    views.follow(frozenset(id(variable) for variable, _ in ready))


def locks_of(variables: Sequence[Variable], written: Collection[Variable]) -> list[StateLock]:
    """Return the state locks of a program's Variables, in the order in which runs take them. Variables without a lock
    share two new ones: for those that the program writes, and for those that it only reads and so leaves unchanged."""
    own = set(map(id, written))
    new: dict[bool, StateLock] = {}
    locks: set[StateLock] = set()
    for variable in variables:
        is_written = id(variable) in own
        if variable.state_lock is None and is_written not in new:
            new[is_written] = variable.new_lock()
        locks.add(variable._lock_with(new.get(is_written)))
    return sorted(locks, key=lambda lock: lock.address)
