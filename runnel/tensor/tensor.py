"""The Tensor: a value of shape and dtype, either bytes in memory or a node of the graph being traced.

A tensor is a handle of a value. ``x[i] = v``, ``x += y`` and in-place methods such as ``x.add_(y)`` give it another
value, and with it the base and the views that show the same elements (:mod:`runnel.tensor.views`).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Self

import numpy as np

from runnel import ops
from runnel.backends import base, context
from runnel.backends.host.memory import Storage
from runnel.core import switches, tracebacks
from runnel.core.arrays import can_share, same_memory
from runnel.core.avals import Shape, ShapedArray, aval, row_major
from runnel.core.caching import Recent
from runnel.core.conversion import rounded
from runnel.core.devices import Device
from runnel.core.dispatch import RunTimeNumber, ViewStep
from runnel.core.dtypes import DType, from_numpy as from_numpy_dtype
from runnel.core.errors import GradientError, LevelError, SideEffectError
from runnel.core.namespaces import imported
from runnel.core.recall import LESSON, recalled
from runnel.core.rules import ComplexOperands, is_by_numpy
from runnel.core.tables import Op
from runnel.core.tracebacks import ending_at_user
from runnel.graph.node import InputKind, Value
from runnel.ops.conversion import stop_gradient_p
from runnel.ops.shapes.views import reshape_p
from runnel.tensor import composing, copying, eager, grad_hooks, inplace, tape, tracing, views, writing
from runnel.tensor.grad_mode import RECORDING, run_recording
from runnel.tensor.handle import (
    SERIALS,
    Handle,
    MultiResultRecord,
    OutsideHandles,
    Record,
    another,
    as_gradient,
    linked,
    moved_out,
    overwritten,
    passed_on,
    plain,
    results_of,
)
from runnel.tensor.inplace import CONSTANT_SERIAL
from runnel.tensor.trace import ACTIVE
from runnel.tensor.traced_values import counted, traced_value


class Tensor(Handle["Tensor"]):
    """An array of numbers. Make one with :func:`runnel.asarray`, :func:`runnel.zeros`, …; compute with array functions.

    Attributes:
        shape, dtype, ndim, size: as in NumPy.
        requires_grad: whether ``backward()`` computes a gradient for it (or through it).
        grad: the gradient that ``backward()`` accumulated, for a leaf.
    """

    __slots__ = ()

    data = views.DATA

    def __init__(self, *args: Any) -> None:
        raise TypeError("[Tensor] a tensor is made by runnel.asarray(data), runnel.zeros(shape), …, not by its class.")

    # Ops --------------------------------------------------------------------------------------------------------------

    def apply_op(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        trace = ACTIVE.trace
        tensors = inputs
        for x in inputs:
            if type(x) is not Tensor:
                tensors = tuple([x if type(x) is Tensor else x.read() for x in inputs])
                for x in tensors:
                    if type(x) is not Tensor:
                        return x.apply_op(op, tensors, attrs)
                break
        if trace is None:
            try:
                result: Any = eager.execute(op, tensors, attrs)
            except ComplexOperands:
                result = None
            except AttributeError:  # of an operand without memory
                eager.require_memory(op, tensors)
                raise
            if result is None:
                return by_numpy(op, tensors, attrs)
            if LESSON.events is not None:
                LESSON.note("op", op, tensors, attrs, result)
            if op.multiple_results:
                return _with_tape(op, tensors, attrs, tuple(result), None)
        elif is_by_numpy(op, [x._aval for x in tensors], attrs):
            return by_numpy(op, tensors, attrs)
        else:
            results = trace.record(op, tuple([node_of(x, trace) for x in tensors]), attrs)
            if op.multiple_results:
                return _with_tape(op, tensors, attrs, tuple(map(symbolic, results)), trace)
            result = symbolic(results[0])
        for x in tensors:
            if x.requires_grad:
                if not RECORDING.get():
                    return result if trace is None else _stopped(result, trace)
                if result._aval.dtype.is_inexact:
                    result.requires_grad = True
                    result._record = Record(op, tensors, attrs)
                    if switches.check_nans.value:
                        result._record.line = tracebacks.user_line()
                break
        return result

    def apply_view(self, op: Op, attrs: dict[str, Any], shape: Shape | None = None) -> Tensor:
        view = self.apply_op(op, (self,), attrs)
        if shape is None or shape == view._aval.shape:
            return views.watched(view, self, ((op, attrs),))
        reshaped = view.apply_op(reshape_p, (view,), {"shape": shape})
        return views.watched(reshaped, self, ((op, attrs), (reshape_p, {"shape": shape})))

    def view_by(self, step: ViewStep) -> Tensor:
        return views.watched(step.look(self), self, (step,))

    def separate(self) -> Tensor:
        return self if self._view is None else self.handle()

    def alias(self) -> Tensor:
        return views.watched(another(self) if self.requires_grad and RECORDING.get() else self._twin(), self, ())

    apply_composed, elements_at = composing.run, writing.elements_at

    def on(self, device: Device) -> Tensor:
        """Return the same values on ``device``, sharing memory if the devices can. Gradients flow back to the
        original device."""
        if device is self._aval.device:
            return self
        inplace.require_movable(self, device, tracing.ACTIVE.trace)
        moved = self._elsewhere(device)
        if self.requires_grad and RECORDING.get():
            here = self._aval.device
            moved.requires_grad, moved._record = True, Record(None, (self,), {}, lambda g, out: (g.on(here),))
        return moved

    def _elsewhere(self, device: Device) -> Tensor:
        return from_storage(self._aval.on(device), self._storage, *self._layout)

    def lift(self, array: Any, dtype: DType) -> Tensor:
        return constant(array, dtype, self._aval.device)

    def read(self) -> Tensor:
        return self

    @staticmethod
    def _over(value: ShapedArray, storage: Storage | None, offset: int, strides: Shape) -> Tensor:
        """Return a tensor over ``storage``; ``offset`` and ``strides`` are in elements."""
        return placed(value, storage, offset, strides)

    def contiguous(self, memory_format: Any = None) -> Tensor:
        """Return the tensor itself if it is dense in row-major order, and else a dense copy."""
        if self._layout[1] is self._aval.strides and self._view is None:
            return self
        return views.contiguous_of(self)

    @ending_at_user
    def __setitem__(self, key: Any, value: Any) -> None:
        """Give this handle the value with ``value`` at ``key``; whoever computed with the old value keeps that."""
        writing.assigned.call(self, key, value)

    def update(self, name: str, change: Callable[[Tensor], Tensor]) -> Self:
        """Give this handle the value that ``change`` makes of its present one; on an error it keeps that.

        What was computed from the old value is differentiated by the old value. Under ``no_grad`` the tape stays as it
        is: gradients pass to what the old value was made of, and a leaf stays a leaf. ``name`` is for messages.
        """
        trace = tracing.ACTIVE.trace
        if self._view is not None and not (trace is not None and self._is_outside(trace) and views.is_own(self)):
            inplace.require_own(self, name, trace)
            views.write(self, name, change, inplace.fitted)
            return self
        self._updated(name, change, inplace.fitted)
        if self._views:
            views.refresh(self)
        return self

    def reshape_in_place(self, name: str, change: Callable[[Tensor], Tensor]) -> Self:
        """Like :meth:`update`, to a value of another shape. A compiled function cannot do it to a tensor from
        outside, and nobody to a leaf that has a gradient."""
        trace = tracing.ACTIVE.trace
        if trace is not None and self._is_outside(trace):
            raise counted(
                SideEffectError(
                    f"[{name}] at {tracebacks.user_line()} a compiled function gives a tensor from outside another "
                    "shape; compute a new tensor."
                )
            )
        if self._grad is not None:
            raise GradientError(f"[{name}] the tensor has a gradient of its shape, {self.shape}; compute a new tensor.")
        if self._views:
            kept = self._twin()
            views.sever(self, kept)
            self._view = views.View(kept, ())
        view = self._view
        if view is None:
            return self._updated(name, change, inplace.in_dtype)
        after = change(moved_out(self))
        further = after._view
        self._updated(name, lambda before: after, inplace.in_dtype)
        self._view = None if further is None else view.then(further.steps)
        return self

    def receive(self, name: str, value: Tensor) -> None:
        """Take a value of this handle's shape and dtype, with its tape, and show it in the views of this handle."""
        self._updated(name, lambda before: value, inplace.fitted)
        if self._views:
            views.refresh(self)

    def _updated(self, name: str, change: Callable[[Tensor], Tensor], fitted: Callable[..., Any]) -> Self:
        trace = tracing.ACTIVE.trace
        inplace.require_own(self, name, trace)
        if trace is not None and self._is_outside(trace):
            node_of(self, trace)  # its value before is an input
            trace.facet(OutsideHandles).values.setdefault(id(self), (self, copying.handle_state(self)))
        start = next(SERIALS)
        before = moved_out(self)
        LESSON.note("moved", self, before)
        after = fitted(name, self._aval, change(before)).read()
        LESSON.note("change", self, after)
        is_plain = trace is None and self._level is None and after._level is None
        if is_plain and not (self.requires_grad or after.requires_grad or self._is_rebound or self._is_recorded):
            taken = after._aval, after._storage, after._layout, None  # the usual case of what follows
            self._aval, self._storage, self._layout, self._array = taken  # atomic: other threads read
            self._serial, self._weak = next(SERIALS), False
            return self
        stays_leaf = self._is_user_leaf
        if stays_leaf or not RECORDING.get():
            after = plain(after)
            if self.requires_grad and not stays_leaf:
                after = linked(after, before)
        elif self.requires_grad and not after.requires_grad:
            after = overwritten(after, before)
        elif after.requires_grad and (after._record is None or after._serial < start):
            after = another(after)  # somebody else's node of the tape
        self._become(name, after, before, trace)
        if stays_leaf:
            self.requires_grad, self._record = True, None
        return self

    def look_again(self, value: Tensor) -> None:
        """Take the present value of this view, after its base has changed."""
        trace = tracing.ACTIVE.trace
        # Another thread may have made the view during the trace. A view of a Variable inside has a node or a level.
        is_of_tensor = isinstance(self._view.base, Handle)
        is_eager = self._node is None and self._level is None and not is_of_tensor
        if trace is not None and (is_eager or self._is_outside(trace)):
            if trace.refuse is not None and is_of_tensor:
                trace.refuse(*OutsideHandles.REFUSAL)
            trace.facet(OutsideHandles).views.append(self)  # each run of the program ends with ``views.follow``
            return
        is_taped = self.requires_grad or self._is_recorded
        is_leaf = self._is_user_leaf
        before = moved_out(self) if is_taped else self
        if is_leaf:
            value = plain(value)
        elif self.requires_grad and self._view.is_detached:  # whose tape is not the one of its base
            value = linked(value, before)
        self._become("view", value, before, trace)
        if is_leaf:
            self.requires_grad = True

    def _become(self, name: str, after: Tensor, before: Tensor, trace: tracing.Trace | None) -> None:
        """Take the value and the tape of ``after``. Records of this handle refer to ``before`` from now on."""
        attributes = self.becoming(name, after, before, trace)
        taken = *map(attributes.pop, ("_aval", "_storage", "_layout")), None
        self._aval, self._storage, self._layout, self._array = taken  # atomic: other threads read
        for attribute, x in attributes.items():
            setattr(self, attribute, x)
        grad_hooks.moved(self, before)

    def becoming(self, name: str, after: Tensor, before: Tensor, trace: tracing.Trace | None) -> dict[str, Any]:
        """Return the attributes that this handle has after taking the value of ``after``."""
        inplace.require_inside(self, name, after._level)
        attributes = {
            "_aval": after._aval, "_storage": after._storage, "_layout": after._layout, "_array": None,
            "_parts": after._parts,
            "_node": after._node if trace is None or after._level is not None else node_of(after, trace),
            "_weak": False, "_version": after._version, "requires_grad": after.requires_grad, "_record": after._record,
            "_serial": next(SERIALS), "_is_rebound": True,
        }  # fmt: skip
        if not self._is_rebound and (self.requires_grad or self._is_recorded):
            attributes["_first"] = before
        if self._level is not after._level:  # a tensor of that level from now on
            attributes |= {"__class__": type(after), "_level": after._level}
        return attributes

    def _twin(self) -> Tensor:
        """Another handle of the same value, without a tape. In a trace it is traced, whatever this one is."""
        trace = tracing.ACTIVE.trace
        if trace is not None and self._node is None and (self._level is not None or self._is_outside(trace)):
            return symbolic(node_of(self, trace))
        twin = _blank(self._aval)
        twin._storage, twin._layout, twin._array = self._storage, self._layout, self._array
        twin._node, twin._weak = self._node, self._weak
        if self._serial != CONSTANT_SERIAL:
            twin._serial = self._serial
        return twin

    # Copies and pickles -----------------------------------------------------------------------------------------------

    def __copy__(self) -> Tensor:
        """Another handle of the same value, on the same tape."""
        trace = tracing.ACTIVE.trace
        if trace is None or (self._level is not None and self._level.trace is trace):
            twin = self._twin()
        else:
            twin = symbolic(node_of(self, trace))
        twin.requires_grad, twin._record, twin._leaf = self.requires_grad, self._record, self._leaf
        if trace is not None and self._record is not None and self._is_outside(trace):
            twin._record = Record(None, (self,), {}, passed_on)
        twin._grad = self._grad
        twin.__dict__.update(copying.added_to(self))
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        copying.refuse_non_leaf(self)
        trace = tracing.ACTIVE.trace
        if trace is not None:
            return symbolic(node_of(self, trace))  # values never change, and a program has no memory yet
        twin: Tensor = Tensor.__new__(Tensor)
        memo[id(self)] = twin
        twin.__setstate__(deepcopy(self.__getstate__(), memo))
        return twin

    def __getstate__(self) -> dict[str, Any]:
        if self._is_unknown:
            raise traced_value(self._aval, "pickle")
        return copying.tensor_state(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._serial = next(SERIALS)
        copying.restore_tensor(self, state)

    def handle(self) -> Tensor:
        """Another handle of the same value, through which gradients flow. A write to either leaves the other."""
        if self.requires_grad and RECORDING.get():
            return another(self)
        twin = self._twin()
        LESSON.note("view", twin, self, None)
        return twin

    # Differentiation --------------------------------------------------------------------------------------------------

    @property
    def grad(self) -> Tensor | None:
        return self._grad

    @grad.setter
    def grad(self, value: Any) -> None:
        value = as_gradient(value, self.shape, f"a tensor of shape {self.shape}")
        if value is not None and value._level is not None:
            inplace.require_inside(self, "grad", value._level)
        trace = tracing.ACTIVE.trace
        if trace is not None and self._is_outside(trace):
            if trace.is_body:
                inplace.require_no_body("grad", trace)
            trace.facet(OutsideHandles).gradients.setdefault(id(self), (self, self._grad))
        self._grad = value

    @recalled
    def detach(self) -> Tensor:
        """Return a view of all elements without a tape: gradients stop here."""
        return views.detached(self.without_tape(), self)

    def untaped(self) -> Tensor:
        """Return another handle of the value without the tape of this handle; components of a level keep theirs."""
        return self.without_tape()

    def without_tape(self) -> Tensor:
        """Return another handle of the value without any tape, and without a tangent."""
        trace = tracing.ACTIVE.trace
        if self.requires_grad and trace is not None and trace.is_body:
            stopped: Tensor = ops.stop_gradient(self)  # a graph inside a graph is differentiated as it is
            return stopped
        twin = self._twin()
        LESSON.note("view", twin, self, None)
        return twin

    def detach_(self) -> Tensor:
        """Let go of the tape: this handle is a leaf that requires no gradient from now on; returns it."""
        if self._leaf is not None:
            raise GradientError("[detach_] this tensor is the value of a Variable; detach() returns a separate one.")
        trace = tracing.ACTIVE.trace
        if trace is not None and self._is_outside(trace):
            raise counted(
                SideEffectError(
                    f"[detach_] at {tracebacks.user_line()} a compiled function changes a tensor from outside; use "
                    "detach()."
                )
            )
        before = moved_out(self)
        self._become("detach_", before.without_tape(), before, trace)
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Mark this leaf as one that ``backward()`` computes a gradient for; returns the tensor itself."""
        if not self.dtype.is_inexact:
            raise GradientError(f"[requires_grad_] the dtype must be floating; got {self.dtype.name}.")
        if self._record is not None and not requires_grad:
            raise GradientError("[requires_grad_] only a leaf can be switched off; use detach().")
        LESSON.spoil()  # a recalled call makes no leaves
        self.requires_grad = bool(requires_grad)
        return self

    @ending_at_user
    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Add d(self)/d(leaf) to ``.grad`` of each leaf (Parameter, or tensor with ``requires_grad``) it was made from.

        Args:
            gradient: the seed, of this tensor's shape; may be left out for a tensor of size 1 (then it is 1).
            retain_graph: keep the tape for another backward.
            create_graph: make the gradients differentiable (implies keeping the tape).
            inputs: the only leaf, or leaves, whose ``.grad`` changes; by default all.
        """
        if not self.requires_grad:
            raise GradientError(
                "[backward] the tensor does not depend on anything that requires a gradient; "
                "call requires_grad_() on a leaf, or use Parameters."
            )
        seed, retain_graph = tape.seed_of(self, gradient), bool(retain_graph)
        if inputs is None and not create_graph and tape.accumulate_at_once(self, seed, retain_graph):
            return
        leaves = None if inputs is None else tape.leaves_of(inputs)
        cotangents = tape.cotangents([self], [seed], leaves, create_graph=create_graph, retain_graph=retain_graph)
        run_recording(create_graph, tape.add_to_owners, cotangents.values(), seed)


def by_numpy(op: Op, tensors: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """Apply ``op`` to complex operands with NumPy."""
    return imported("runnel.ops.elementwise.complex_rules:applied")(op, tensors, attrs)


def _with_tape(
    op: Op, tensors: tuple[Tensor, ...], attrs: dict[str, Any], outs: tuple[Tensor, ...], trace: tracing.Trace | None
) -> tuple[Tensor, ...]:
    """Return the results ``outs`` of an op that has several, with their tape."""
    if not any(x.requires_grad for x in tensors):
        return outs
    if not RECORDING.get():
        return outs if trace is None else tuple([_stopped(x, trace) for x in outs])
    joint = _blank(outs[0]._aval)
    joint.requires_grad = True
    joint._record = MultiResultRecord(op, tensors, attrs, outs)
    if switches.check_nans.value:
        joint._record.line = tracebacks.user_line()
    return results_of(joint, outs)


def _stopped(result: Tensor, trace: tracing.Trace) -> Tensor:
    """Return ``result`` of an op that is traced but not recorded on the tape. A graph inside another graph is
    differentiated as it is, so it must mark where gradients stop."""
    if not trace.is_body or not result._aval.dtype.is_inexact:
        return result
    return symbolic(trace.record(stop_gradient_p, (node_of(result, trace),), {})[0])


def _blank(value: ShapedArray) -> Tensor:
    return placed(value, None, 0, ())


def placed(value: ShapedArray, storage: Storage | None, offset: int, strides: Shape) -> Tensor:
    """Return a tensor over ``storage``: a fast ``from_storage`` with all arguments, called for every result."""
    tensor = Tensor.__new__(Tensor)
    tensor._aval = value
    tensor._storage = storage
    tensor._layout = (offset, strides)
    tensor._serial = next(SERIALS)
    return tensor


def from_storage(value: ShapedArray, storage: Storage | None, offset: int = 0, strides: Shape | None = None) -> Tensor:
    """Return a tensor over ``storage``; ``offset`` and ``strides`` are in elements. It is dense by default."""
    return placed(value, storage, offset, row_major(value.shape) if strides is None else strides)


def from_numpy(array: np.ndarray, dtype: DType, *, copy: bool, device: Device | None = None) -> Tensor:
    """Return a tensor with the values of ``array``, on ``device`` (by default the device of new arrays).

    Without ``copy`` it shares the memory, which then must not change. A copy is aligned, and on huge pages if it is
    large: matrices a power of two wide are much faster to read there.
    """
    device = device or context.default_device()
    if copy or not can_share(array, dtype):
        array = rounded(array, dtype)
        storage = base.of(device).allocate(array.nbytes)
        storage.ndarray(array.shape, dtype.numpy, writeable=True)[...] = array
        strides = row_major(array.shape)
    else:
        steps, dense = tuple(s // dtype.itemsize for s in array.strides), row_major(array.shape)
        storage, strides = Storage.wrap(array), dense if steps == dense else steps  # the same tuple is found faster
    tensor = placed(aval(array.shape, dtype, device), storage, 0, strides)
    LESSON.note("array", tensor, array)
    return tensor


def symbolic(node: Value) -> Tensor:
    """Return a tensor for a node of the graph being traced."""
    trace = tracing.ACTIVE.trace
    device = None if trace is None else trace.device
    tensor = _blank(node.aval.on(device or context.default_device()))
    tensor._node = node
    return tensor


# By id of the array, which is kept alive, with the bytes that it had.
_LIFTED: Recent[tuple[int, Device], tuple[np.ndarray, bytes, Tensor]] = Recent(1024)
_SCALARS: Recent[tuple[Any, type, DType, Device], Tensor] = Recent(1024)
CONSTANT_CACHES = (_LIFTED, _SCALARS)


def constant(value: Any, dtype: DType, device: Device | None = None) -> Tensor:
    """Return a constant of ``dtype`` on ``device``. Python scalars become 0-d tensors, which are cached."""
    device = device or context.default_device()
    if isinstance(value, RunTimeNumber):
        number: Tensor = value.as_array(dtype, 0)
        return number
    if isinstance(value, np.ndarray) and not value.flags.writeable and value.size == 1 and value.base is None:
        place = id(value), device
        known = _LIFTED.young.get(place) or _LIFTED.get(place)
        if known is None or known[1] != value.tobytes():  # an array can be read-only, and a view of it not
            known = (value, value.tobytes(), from_numpy(value, dtype, copy=True, device=device))
            known[2]._serial = CONSTANT_SERIAL
            _LIFTED[place] = known
        return known[2]
    if isinstance(value, (bool, int, float)):
        key = (value if value == value and value != 0 else repr(value), type(value), dtype, device)
        scalar = _SCALARS.get(key)
        if scalar is None:
            scalar = from_numpy(np.asarray(value), dtype, copy=True, device=device)
            scalar._serial = CONSTANT_SERIAL
            _SCALARS[key] = scalar
        return scalar
    trace = tracing.ACTIVE.trace
    if trace is not None and isinstance(value, np.ndarray):
        owner = value if value.base is None else value.base
        array = trace.known_arrays.get(id(owner))
        if array is not None and array.dtype == value.dtype and same_memory(array, value):
            return traced_array(trace, array, dtype, value.shape)
    return from_numpy(np.asarray(value), dtype, copy=True, device=device)


def traced_array(trace: tracing.Trace, array: np.ndarray, dtype: DType, shape: Shape | None = None) -> Tensor:
    """Return a NumPy array that a traced function reads, and that the next call can find again, as an input of the
    trace."""
    entry = trace.captures.get(id(array))
    if entry is None:
        value = aval(array.shape, from_numpy_dtype(array.dtype))
        entry = (array, trace.input(value, InputKind.ARGUMENT, f"captured{len(trace.captures)}"))
        trace.captures[id(array)] = entry
    tensor = symbolic(entry[1])
    if tensor.dtype is not dtype:
        tensor = tensor.astype(dtype)
    return tensor if shape is None or shape == tensor.shape else tensor.reshape(shape)


def node_of(tensor: Tensor, trace: tracing.Trace) -> Value:
    """Return the node for ``tensor`` in ``trace``: its node, or the node of a captured or constant eager tensor."""
    if tensor._node is not None and trace.owns(tensor._node):
        return tensor._node
    if tensor._level is None:
        trace.settle(tensor._aval.device)
    if tensor._serial > trace.born and tensor._node is None and tensor._level is None:
        entry = trace.constants.get(id(tensor))
        if entry is None:
            entry = (tensor, trace.constant(tensor.numpy(), tensor.dtype))
            trace.constants[id(tensor)] = entry
        return entry[1]
    entry = trace.captures.get(id(tensor))
    if entry is None:
        if tensor._level is not None and tensor._level.trace is trace:
            raise LevelError(
                f"[{tensor._level.name}] a tensor of {tensor._level.name} left the function that it belongs to; return "
                "it from there."
            )
        entry = (tensor, trace.input(tensor.aval, InputKind.ARGUMENT, f"captured{len(trace.captures)}"))
        trace.captures[id(tensor)] = entry
    return entry[1]


def serial_now() -> int:
    """Return a number between the serial numbers of tensors made before and after this call."""
    return next(SERIALS)
