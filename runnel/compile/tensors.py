"""Tensors and Variables in an observed run: their checks, operators, items and attributes.

A tensor from outside counts by shape, dtype and whether it requires a gradient; an op that reads it makes it an input
of the program, found again at its source. A Variable counts by which one it is.
"""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np

from runnel.compile import arrays, boundary
from runnel.compile.lengths import OF_TENSOR
from runnel.compile.observe import attributes, numbers
from runnel.compile.observe.containers import content, reach_items
from runnel.compile.observe.operators import COMPARISONS, OPERATORS
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.sources import Identity, Source
from runnel.compile.observe.values import MISSING, PLAIN, SYMBOLIC, Whole, container_of
from runnel.compile.owned import is_own, require_own
from runnel.core.dtypes import bool_, float32, float64, int64
from runnel.core.lengths import Length
from runnel.core.lifetime import Weak
from runnel.ops.conversion import cast
from runnel.ops.shapes.broadcasting import broadcast_to
from runnel.tensor import grad_hooks, tracing
from runnel.tensor.floats import is_traceable
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.handle import version
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable

_PART_OF_CODE: Final = frozenset({"__class__", "__array_priority__"})


# Values from outside --------------------------------------------------------------------------------------------------


def check_tensor(rec: Recorder, value: Tensor, source: Source) -> None:
    """Check the kind of a tensor; later calls may pass another tensor of that kind."""
    if value.is_traced:
        rec.policy.refuse_leftover(value)
    other = "{v}.requires_grad"
    if value.requires_grad:  # then backward() and is_leaf tell leaves from others
        other = f"not {{v}}.requires_grad or ({{v}}._record is None) is not {value._record is None}"
    fails = f"type({{v}}) is not Tensor or {{v}}._aval is not {{0}} or {other}"
    shape_and_dtype = rec.session.found(rec, value, source)
    rec.log.check(source, fails, f"{OF_TENSOR}{source}", (shape_and_dtype,))


def check_layout(rec: Recorder, value: Tensor) -> None:
    """Check the strides of a tensor from outside. Refuse others, which the program decides."""
    source = rec.source_of(value)
    if value.is_traced or source is None:
        rec.refuse(
            f"how the elements of a traced tensor ({value.aval}) lie in memory is asked",
            "call contiguous() without asking, which costs nothing",
        )
    strides = rec.session.stand_in(rec, value)._layout[1] if value.is_dense else value._layout[1]
    rec.log.check(source, "{v}._layout[1] != {0}", f"strides of {source}", (strides,))


def check_hooks(rec: Recorder, value: Tensor) -> None:
    """Gradients are computed inside that pass by a tensor from outside: no hook waits for them there."""
    if is_hooked(value):
        grad_hooks.require_no_trace("register_hook")
    source = rec.source_of(value)
    if source is not None:
        rec.log.check(source, "is_hooked({v})", f"hooks of gradients of {source}")


def is_hooked(value: Tensor) -> bool:
    """Return whether a hook is attached to a tensor."""
    return bool(grad_hooks.ON_GRADIENT.get(id(version(value))) or grad_hooks.AFTER_ACCUMULATION.get(id(value)))


def described_aval(value: Any) -> str:
    """Describe the place of a tensor, for messages."""
    return str(value.aval) if isinstance(value, Tensor) else f"a {type(value).__name__}"


def check_variable(rec: Recorder, value: Variable, source: Source) -> None:
    """Programs are bound to Variables."""
    rec.log.check(source, "{v} is not {0}", f"which Variable {source} is", (Identity(value),))
    fails = f"{{v}}._requires_grad is not {value.requires_grad} or {{v}}._aval is not {{0}}"
    rec.log.check(source, fails, f"{source}.requires_grad or {source}.device", (value.aval,), looks_into=())


def bound_variable(rec: Recorder, variable: Variable) -> None:
    """Check a Variable that Runnel's code found. Programs are bound to it, wherever it was found."""
    if rec.source_of(variable) is None:
        rec.log.check(
            None,
            f"{{0}}()._requires_grad is not {variable.requires_grad} or {{0}}()._aval is not {{1}}",
            f"{variable.name}.requires_grad or {variable.name}.device",
            (Weak(variable), variable.aval),
            looks_into=(),
        )


def compared_content(rec: Recorder, value: Tensor) -> np.ndarray | None:
    """Return what a tensor from outside holds, on which the shape of a result depends; later calls must find the same.
    Return None for a part of an argument, which differs at each call."""
    source = rec.source_of(value)
    if source is None or value.is_traced or value.nbytes > arrays.LARGEST or _is_of_a_batch(source):
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


# Operators, items, attributes -----------------------------------------------------------------------------------------


def operate(rec: Recorder, function: Any, *operands: Any) -> Any:
    """Apply an operator to operands of which at least one is a tensor, or NumPy's."""
    if not any(is_traceable(type(x)) for x in operands):
        return arrays.operate(rec, function, *operands)
    _check_methods(rec, function, operands)
    return boundary.run(rec, function, tuple([arrays.as_number(rec, x) for x in operands]), {})


def _check_methods(rec: Recorder, function: Any, operands: tuple[Any, ...]) -> None:
    """Check that the special methods behind an operator are Runnel's."""
    name = _SPECIAL.get(function, f"__{function.__name__.strip('_')}__")
    if issubclass(type(operands[0]), ArrayMethods):
        require_own(rec, type(operands[0]), name)
    if function in _BINARY and issubclass(type(operands[1]), ArrayMethods):
        plain = name.removeprefix("__i") if function in arrays.IN_PLACE else name.removeprefix("__")
        require_own(rec, type(operands[1]), _REFLECTED.get(name, f"__r{plain}"))


def item(rec: Recorder, function: Any, value: Any, *rest: Any) -> Any:
    """Read or write items of a tensor, or iterate over it."""
    if not is_traceable(type(value)):
        return arrays.item(rec, function, value, *rest)
    if function is len and value.ndim:
        first = rec.session.stand_in(rec, value).shape[0]
        if isinstance(first, Length):
            return rec.session.seen(rec, first)
    if function in (operator.getitem, operator.setitem):
        rest = (_index(rec, value, rest[0]), *rest[1:])
    _check_methods(rec, function, (value, *rest))
    return boundary.run(rec, function, (value, *rest), {})


def made_of_number(function: Any, place: int) -> Any:
    """Make the rule of a function that makes a tensor of a number, which may be a counter."""

    def rule(rec: Recorder, *args: Any, **kwargs: Any) -> Any:
        dtype = kwargs.get("dtype", getattr(args[0], "dtype", None) if args else None)
        if len(args) == place + 1 and kwargs.keys() <= {"dtype"} and dtype in (None, int64, float32, float64):
            number = counted(rec, args[place])
            if number is not None:
                number = number if dtype is None else cast(number, dtype)
                if place == 0:
                    return number
                shape = args[0].shape if hasattr(args[0], "shape") else content(rec, args[0])
                return broadcast_to(number, shape)
        return boundary.run(rec, function, args, kwargs)

    return rule


def requires_grad_set(rec: Recorder, value: Any, requires_grad: bool = True) -> Any:
    if rec.source_of(value) is not None:
        rec.refuse(f"requires_grad of '{rec.source_of(value)}' is set", "set it before the call")
    value.requires_grad = requires_grad
    return value


def counted(rec: Recorder, value: Any) -> Any:
    """Return an integer tensor of the value of a counter at each call, or None for other values."""
    if type(value) is not Whole or id(value) not in rec.symbols or abs(value) >= 1 << 53:
        return None
    rec.log.check(rec.symbols[id(value)], f"not -{1 << 53} < {{v}} < {1 << 53}", "size of a counter")
    number = numbers.computed(rec, "float({a0})", (value,), float(int(value)))
    return cast(rec.session.number(rec, number)._tensor, int64) if id(number) in rec.symbols else None


def _index(rec: Recorder, value: Any, key: Any) -> Any:
    """Return an index with plain numbers or integer tensors in place of counters. Tensors do where the results are
    equal to the bit: where no gradient is recorded, and counters stay within the bounds."""
    if type(key) is tuple:
        reach_items(rec, key)  # the copy has no source
    parts = list(key) if type(key) is tuple else [key]
    is_basic = all(type(x) in (int, Whole, slice, type(None), type(...)) for x in parts)
    if is_basic and isinstance(value, (Tensor, Variable)) and not (value.requires_grad and RECORDING.get()):
        axis, used = 0, sum(type(x) in (int, Whole, slice) for x in parts)
        takes_many = sum(type(x) is slice and type(x.start) is Whole for x in parts) == 1 and not _has_ints(parts)
        for i, part in enumerate(parts if used <= value.ndim and parts.count(...) <= 1 else ()):
            if type(part) in (Whole, slice):
                found = _counted_place(rec, value.shape[axis], part, takes_many)
                parts[i] = part if found is None else found
            axis += value.ndim - used if part is ... else part is not None
    parts = [_plain(rec, x) for x in parts]
    return tuple(parts) if type(key) is tuple else parts[0]


def _has_ints(parts: list[Any]) -> bool:
    return any(type(x) in (int, Whole) for x in parts)


def _counted_place(rec: Recorder, size: int, part: Any, takes_many: bool) -> Any:
    """Return the tensor that takes the place of a counter, or of a slice between counters that stay apart."""
    first = part.start if type(part) is slice else part
    if (
        type(first) is not Whole
        or rec.session.length_of(first) is not None
        or not 0 <= first < size
        or (type(part) is slice and not takes_many)
    ):
        return None
    at = rec.symbols.get(id(first))
    if at is None:
        return None
    if type(part) is not slice:
        rec.log.check(at, f"not 0 <= {{v}} < {size}", f"range of {at}")
        return counted(rec, first)
    end, count = rec.symbols.get(id(part.stop)), 0 if type(part.stop) is not Whole else part.stop - first
    if end is None or part.step is not None or not 0 < count <= size - first:
        return None
    rec.log.check(at, f"not 0 <= {{v}} <= {size - count}", f"range of {at}")
    rec.log.check(None, f"{{s1}} - {{s0}} != {count}", f"size of the slice from {at}", (), (at, end))
    base = counted(rec, first)
    return None if base is None else base + np.arange(count)


def _plain(rec: Recorder, part: Any) -> Any:
    length = rec.session.length_of(part)
    if length is not None:
        return length
    if type(part) is slice:
        return slice(*[_plain(rec, x) for x in (part.start, part.stop, part.step)])
    if type(part) is tuple:
        reach_items(rec, part)
        return tuple(_plain(rec, x) for x in part)
    if type(part) is Tensor and part.dtype == bool_:
        return _mask_from_outside(rec, part)
    return rec.concrete_number(part) if type(part) in SYMBOLIC else part


def _mask_from_outside(rec: Recorder, mask: Tensor) -> Any:
    """Return the NumPy array of which ``asarray`` made a mask, compared at later calls; other masks as they are."""
    for value, node in tracing.ACTIVE.trace.captures.values() if tracing.ACTIVE.trace is not None else ():
        source = rec.source_of(value)
        if node is mask._node and isinstance(value, np.ndarray) and source is not None and not source.is_argument:
            return arrays.check_content(rec, value)
    return mask


def attribute(rec: Recorder, value: Any, name: str) -> Any:
    """Read ``value.name`` of a tensor or Variable."""
    if require_own(rec, type(value), name) is MISSING:
        return attributes.of_object(rec, value, name)
    source = rec.source_of(value)
    if name == "requires_grad" and isinstance(value, Variable):
        bound_variable(rec, value)
    if name == "strides":
        check_layout(rec, value.read())
    if source is None or name in _PART_OF_CODE:
        return rec.session.seen(rec, getattr(value, name))
    if name == "grad" and type(value) is Tensor and not rec.session.has_left_gradient(value):
        grad = value._grad
        return rec.reach(grad, rec.log.source(source, "{p}._grad", f"{source}.grad", grad))
    if name == "name" and isinstance(value, Variable):
        return rec.reach(value.name, rec.log.source(source, "{p}.name", f"{source}.name", value.name))
    if name == "grad_fn" and value.grad_fn is not None and not value.is_traced:
        rec.refuse(f"'{source}.grad_fn' is read, another one at each call", "ask for is_leaf or requires_grad")
    if name in ("__dict__", "_node", "_storage"):
        rec.refuse(f"'{source}.{name}' is read")
    return rec.session.seen(rec, getattr(rec.session.stand_in(rec, value), name))


_BINARY: Final = frozenset(f for symbol, f in (OPERATORS | COMPARISONS).items() if symbol != "[]")
_SPECIAL: Final = {operator.inv: "__invert__", operator.concat: "__add__"}  # methods whose names differ
_REFLECTED: Final = {
    "__lt__": "__gt__", "__le__": "__ge__", "__gt__": "__lt__", "__ge__": "__le__", "__eq__": "__eq__",
    "__ne__": "__ne__",
}  # fmt: skip


def _belongs(kind: type, name: str) -> bool:
    """Return whether an attribute belongs to a class of this package, not to a user's subclass."""
    owner = next((base for base in kind.__mro__ if name in base.__dict__), None)
    return owner is not None and (is_own(owner) or owner is object)


def rule_for(kind: type, name: str) -> Any:
    """Return how an attribute of such values is read; None: by the rules for Python's objects."""
    if is_traceable(kind):
        return attribute if _belongs(kind, name) or is_own(kind) else None
    return arrays.attribute if arrays.is_numpy(kind) and arrays.is_own_attribute(kind, name) else None


def operator_for(kind: type, other: type) -> Any:
    """Return how an operator is applied; None: by the rules for Python's objects."""
    if is_traceable(kind) or arrays.is_numpy(kind):
        return operate if _goes_with(other) else None
    if is_traceable(other) or arrays.is_numpy(other):
        return operate if _goes_with(kind) else None
    return None


def _goes_with(kind: type) -> bool:
    return kind in PLAIN or kind in (list, tuple) or is_traceable(kind) or arrays.is_numpy(kind)
