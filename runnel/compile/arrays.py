"""Tensors, Variables and NumPy arrays in an observed run: their guards, and which become inputs.

A tensor from outside counts by shape, dtype and whether it requires a gradient; ops that read it make it an input of
the program, found again at its source. A Variable counts for which one it is. Of an array, too, ops make an input;
NumPy's own functions compute with what it holds, which is checked then.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from runnel.compile.observe.classes import MISSING
from runnel.compile.observe.containers import content
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.sources import Identity, Source
from runnel.compile.observe.values import container_of
from runnel.core.dtypes import from_numpy
from runnel.core.lifetime import Weak
from runnel.tensor import grad_hooks, tensor as tensors, tracing
from runnel.tensor.floats import TracedFloat
from runnel.tensor.handle import version
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable

LARGEST: Final = 1 << 20  # bytes of an array that is compared at each call


def is_traceable(kind: type) -> bool:
    """Whether values of this kind are tensors, or numbers of the program."""
    return kind is Tensor or kind is TracedFloat or issubclass(kind, Variable)


def is_numpy(kind: type) -> bool:
    """Whether values of this kind are NumPy's."""
    return issubclass(kind, (np.ndarray, np.generic))


# Where they are found -------------------------------------------------------------------------------------------------


def check_tensor(rec: Recorder, value: Tensor, source: Source) -> None:
    """Another tensor of the same kind can stand in for this one."""
    if value.is_traced:
        rec.policy.refuse_leftover(value)
    other = "{v}.requires_grad"
    if value.requires_grad:  # then backward() and is_leaf tell leaves from others
        other = f"not {{v}}.requires_grad or ({{v}}._record is None) is not {value._record is None}"
    fails = f"type({{v}}) is not Tensor or {{v}}._aval is not {{0}} or {other}"
    rec.log.check(source, fails, f"shape, dtype or requires_grad of {source}", (value._aval,))


def check_layout(rec: Recorder, value: Tensor) -> None:
    """The strides of a tensor are read: those from outside are checked, those of what a program computes it decides."""
    source = rec.source_of(value)
    if value.is_traced or source is None:
        rec.refuse(
            f"how the elements of a traced tensor ({value.aval}) lie in memory is asked",
            "call contiguous() without asking, which costs nothing",
        )
    rec.log.check(source, "{v}._layout[1] != {0}", f"strides of {source}", (value._layout[1],))


def check_hooks(rec: Recorder, value: Tensor) -> None:
    """Gradients are computed inside that pass by a tensor from outside: no hook waits for them there."""
    if is_hooked(value):
        grad_hooks.require_no_trace("register_hook")
    source = rec.source_of(value)
    if source is not None:
        rec.log.check(source, "is_hooked({v})", f"hooks of gradients of {source}")


def is_hooked(value: Tensor) -> bool:
    """Whether a hook is attached to a tensor."""
    return bool(grad_hooks.ON_GRADIENT.get(id(version(value))) or grad_hooks.AFTER_ACCUMULATION.get(id(value)))


def described_aval(value: Any) -> str:
    """What stands where a tensor was, for messages."""
    return str(value.aval) if isinstance(value, Tensor) else f"a {type(value).__name__}"


def check_variable(rec: Recorder, value: Variable, source: Source) -> None:
    """Programs are bound to Variables."""
    rec.log.check(source, "{v} is not {0}", f"which Variable {source} is", (Identity(value),))
    fails = f"{{v}}._requires_grad is not {value.requires_grad} or {{v}}._aval is not {{0}}"
    rec.log.check(source, fails, f"{source}.requires_grad or {source}.device", (value.aval,), looks_into=())


def bound_variable(rec: Recorder, variable: Variable) -> None:
    """A Variable that code of ours came upon: where it was found does not matter, for programs are bound to it."""
    if rec.source_of(variable) is None:
        rec.log.check(
            None,
            f"{{0}}()._requires_grad is not {variable.requires_grad} or {{0}}()._aval is not {{1}}",
            f"{variable.name}.requires_grad or {variable.name}.device",
            (Weak(variable), variable.aval),
            looks_into=(),
        )


def check_array(rec: Recorder, value: np.ndarray, source: Source) -> None:
    """Of an array, shape and dtype are known; what it holds is an input, or checked when it is looked at."""
    fails = "type({v}) is not {0} or {v}.shape != {1} or {v}.dtype != {2}"
    rec.log.check(source, fails, f"shape and dtype of {source}", (type(value), value.shape, value.dtype))
    trace = tracing.ACTIVE.trace
    if trace is not None:
        trace.known_arrays[id(value)] = value


def looked_at(rec: Recorder, value: np.generic, source: Source | None) -> None:
    """The value of a scalar matters to the trace."""
    if source is not None:
        check_scalar(rec, value, source)


def check_kind_of_scalar(rec: Recorder, value: np.generic, source: Source) -> None:
    """What NumPy computes of a number is computed again; others of its scalars count by value."""
    if isinstance(value, (np.integer, np.floating)):
        rec.log.check(source, "type({v}) is not {0}", f"type of {source}", (type(value),))
    else:
        check_scalar(rec, value, source)


def check_scalar(rec: Recorder, value: np.generic, source: Source) -> None:
    """A later call must find the same bits."""
    bits = rec.memo.setdefault(("bits", id(value)), value.tobytes())
    rec.keep(value)
    rec.log.check(source, "type({v}) is not {0} or {v}.tobytes() != {1}", f"{source}", (type(value), bits))


def as_input(rec: Recorder, value: np.ndarray) -> Any:
    """An array from outside as the tensor that ops read."""
    known = rec.memo.get(("input", id(value)))
    if known is None:
        trace: Any = tracing.ACTIVE.trace
        dtype = _dtype_of(value)
        known = value if dtype is None or trace is None else tensors.traced_array(trace, value, dtype)
        rec.memo["input", id(value)] = known
        source = rec.source_of(value)
        if source is not None:
            rec.stand_ins[id(known)] = source
    return known


def _dtype_of(value: np.ndarray) -> Any:
    try:
        return from_numpy(value.dtype)
    except TypeError:
        return None


def looked_into(rec: Recorder, value: np.ndarray, source: Source | None) -> None:
    """What an array holds matters to the trace: a later call must find the same bits."""
    if source is None:
        return
    if value.dtype.hasobject:
        for i, element in enumerate(value.flat):
            content(rec, rec.reach(element, rec.log.source(source, f"{{p}}.item({i})", f"{source}.item({i})", element)))
        return
    if value.nbytes > LARGEST:
        rec.refuse(
            f"NumPy computes with '{source}', of {value.nbytes:,} bytes, all of which would be compared at each call",
            "use runnel's functions on it, or pass it as an argument",
        )
    snapshot = rec.memo.get(("bits", id(value)))
    if snapshot is None:
        snapshot = rec.memo["bits", id(value)] = np.array(value, order="K")
        snapshot.flags.writeable = False
    rec.log.check(source, "array_differs({v}, {0})", f"content of {source}", (snapshot,))


def compared_content(rec: Recorder, value: Tensor) -> np.ndarray | None:
    """What a tensor from outside holds, where the shape of a result depends on it: a later call must find the same.
    None for one of a batch, that is an argument or in a container that is one: another is expected at each call."""
    source = rec.source_of(value)
    if source is None or value.is_traced or value.nbytes > LARGEST or _is_of_a_batch(source):
        return None
    known: np.ndarray | None = rec.memo.get(("content", id(value)))
    if known is None:
        with tracing.activate(None):  # in the trace it has no value
            known = rec.memo["content", id(value)] = np.array(value.numpy())
        known.flags.writeable = False
        rec.keep(value)
    rec.log.check(source, "array_differs({v}.numpy(), {0})", f"content of {source}", (known,))
    return known


def _is_of_a_batch(source: Source) -> bool:
    one = source
    while one.parent is not None:
        one = one.parent
        if one.value is not MISSING and container_of(type(one.value)) is None:
            return False
    return source.is_argument


def array_differs(value: Any, expected: np.ndarray) -> bool:
    """Whether an array, of the same shape and dtype, has other contents than the copy made of it, bit by bit."""
    if value.flags.c_contiguous and expected.flags.c_contiguous:
        return bool((value.reshape(-1).view(np.uint8) != expected.reshape(-1).view(np.uint8)).any())
    return bool(value.tobytes() != expected.tobytes())
