"""Operators, items and attributes of tensors and arrays in an observed run.

Those of tensors are recorded by Runnel's own code; those of NumPy's arrays are computed, and what they read is checked.
"""

from __future__ import annotations

import operator
from operator import attrgetter
from typing import Any, Final

import numpy as np

from runnel.compile import arrays, boundary, numpy_settings, patched, recomputed
from runnel.compile.arrays import bound_variable, is_numpy, is_traceable
from runnel.compile.observe import attributes, operators
from runnel.compile.observe.classes import MISSING, is_python_class
from runnel.compile.observe.containers import content
from runnel.compile.observe.plain import COMPARISONS, OPERATORS
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import PLAIN
from runnel.compile.owned import is_own
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable

_SHAPED: Final = frozenset({"shape", "dtype", "ndim", "size", "itemsize", "nbytes"})
_SAME_VALUES: Final = frozenset({"T", "mT"})  # arrays that are views
_LAYOUT_ATTRIBUTES: Final = {"flags": "flags.num", "strides": "strides"}
_IN_MEMORY: Final = frozenset({"base", "ctypes", "data", "__array_interface__", "__array_struct__"})
_PART_OF_CODE: Final = frozenset({"__class__", "__array_priority__"})


def operate(rec: Recorder, function: Any, *operands: Any) -> Any:
    """An operator, at least one of whose operands is a tensor or array."""
    kinds = list(map(type, operands))
    if any(map(is_traceable, kinds)):
        foreign = _foreign_method(rec, function, operands)
        if foreign is not None:
            return _by_methods(rec, function, operands, foreign)
        return boundary.run(rec, function, tuple([recomputed.as_number(rec, x) for x in operands]), {})
    first = operands[0]
    if function in _IN_PLACE and isinstance(first, np.ndarray):
        if rec.source_of(first) is not None and not recomputed.made_own(rec, first):
            rec.refuse(f"'{rec.source_of(first)}' is an array from outside, which is changed in place")
        if not first.flags.owndata:
            rec.refuse("an array that may belong to another one is changed in place")
    elif function is not bool:
        again = recomputed.called(rec, function, operands, {})
        if again is not None:
            return again[0]
    for value in operands:
        content(rec, value)
    with numpy_settings.Errors(rec):
        return protected(rec, function(*operands), operands)


def _foreign_method(rec: Recorder, function: Any, operands: tuple[Any, ...]) -> Any:
    """The user's special method that a class of tensors was given for an operator; None where it is ours. Later calls
    must find the same."""
    name = _special_name(function)
    holders = [(type(operands[0]), name)]
    if function in _SYMBOLS and type(operands[1]) is not type(operands[0]):
        plain = name.removeprefix("__i") if function in _IN_PLACE else name.removeprefix("__")
        holders.append((type(operands[1]), _REFLECTED.get(name, f"__r{plain}")))
    foreign = None
    for kind, one in holders:
        if issubclass(kind, ArrayMethods):
            found = patched.found_in(rec, kind, one)
            if foreign is None and patched.is_foreign(found):
                foreign = rec.class_attribute(kind, one)
    return foreign


def _special_name(function: Any) -> str:
    return _SPECIAL.get(function, f"__{function.__name__.strip('_')}__")


def _by_methods(rec: Recorder, function: Any, operands: tuple[Any, ...], method: Any) -> Any:
    """An operator by Python's data model, where users gave a method of it to a class of tensors."""
    if function not in _SYMBOLS:
        return operators.passed(rec, method, *operands)
    symbol, (a, b) = _SYMBOLS[function], operands
    if symbol in COMPARISONS:
        return operators.compared(rec, symbol, a, b)
    result = operators.by_methods(rec, symbol, a, b)
    if result is NotImplemented:
        raise TypeError(f"unsupported operand type(s) for {symbol}: '{type(a).__name__}' and '{type(b).__name__}'")
    return result


def item(rec: Recorder, function: Any, value: Any, *rest: Any) -> Any:
    """Items of a tensor or array are read or written, or it is iterated over."""
    if is_traceable(type(value)):
        foreign = _foreign_method(rec, function, (value, *rest))
        if foreign is None:
            return boundary.run(rec, function, (value, *rest), {})
        return operators.passed(rec, foreign, value, *rest)
    if function is operator.setitem:
        if (rec.source_of(value) is not None and not recomputed.made_own(rec, value)) or value.base is not None:
            which = f" ({rec.source_of(value)})" if rec.source_of(value) is not None else ""
            rec.refuse(
                f"an item of an array from outside is set{which}, and programs only read arrays",
                "keep it in a Variable or a tensor, or set it outside",
            )
        rest = (*rest[:-1], rec.session.concrete(rec, rest[-1]))
    if function is len:
        return len(value)
    if function is iter:
        values = recomputed.items(rec, value)
        if values is not None:
            return values
    elif function is operator.getitem:
        again = recomputed.called(rec, function, (value, *rest), {})
        if again is not None:
            return again[0]
    return protected(rec, rec.calls_c(function, (value, *rest)), (value,))


def protected(rec: Recorder, result: Any, operands: Any) -> Any:
    """A view of an array from outside cannot be written through."""
    if isinstance(result, np.ndarray) and result.base is not None:
        result.flags.writeable = False
    return result


def attribute(rec: Recorder, value: Any, name: str) -> Any:
    """``value.name`` of a tensor or Variable."""
    found = patched.found_in(rec, type(value), name)
    if found is MISSING or patched.is_foreign(found):
        return attributes.of_object(rec, value, name)
    source = rec.source_of(value)
    if name == "requires_grad" and isinstance(value, Variable):
        bound_variable(rec, value)
    if name == "strides":
        arrays.check_layout(rec, value.read())
    if source is None or name in _PART_OF_CODE:
        return getattr(value, name)
    if name == "grad" and type(value) is Tensor and not rec.session.has_left_gradient(value):
        grad = value._grad
        return rec.reach(grad, rec.log.source(source, "{p}._grad", f"{source}.grad", grad))
    if name == "name" and isinstance(value, Variable):
        return rec.reach(value.name, rec.log.source(source, "{p}.name", f"{source}.name", value.name))
    if name == "grad_fn" and value.grad_fn is not None and not value.is_traced:
        rec.refuse(f"'{source}.grad_fn' is read, another one at each call", "ask for is_leaf or requires_grad")
    if name in ("__dict__", "_node", "_storage"):
        rec.refuse(f"'{source}.{name}' is read")
    return getattr(value, name)


def attribute_of_array(rec: Recorder, value: Any, name: str) -> Any:
    """``value.name`` of something of NumPy's."""
    result = getattr(value, name)
    source = rec.source_of(value)
    if source is not None and name in _LAYOUT_ATTRIBUTES:
        rec.log.check(
            source,
            f"{{v}}.{_LAYOUT_ATTRIBUTES[name]} != {{0}}",
            f"{source}.{name}",
            (attrgetter(_LAYOUT_ATTRIBUTES[name])(value),),
        )
    elif source is not None and name in _IN_MEMORY:
        rec.refuse(f"'{source}.{name}' is read, which tells where the memory of an array lies")
    elif source is not None and name in _SAME_VALUES:
        return rec.reach(result, rec.log.source(source, f"{{p}}.{name}", f"{source}.{name}", result))
    elif source is not None and name not in _SHAPED and not callable(result):
        content(rec, value)
    return protected(rec, result, (value,))


_SYMBOLS: Final = {f: symbol for symbol, f in (OPERATORS | COMPARISONS).items() if symbol != "[]"}
_SPECIAL: Final = {operator.inv: "__invert__", operator.concat: "__add__"}  # methods whose names differ
_REFLECTED: Final = {
    "__lt__": "__gt__", "__le__": "__ge__", "__gt__": "__lt__", "__ge__": "__le__", "__eq__": "__eq__",
    "__ne__": "__ne__",
}  # fmt: skip
_IN_PLACE: Final = frozenset(f for name, f in vars(operator).items() if name.startswith("i") and callable(f)) - {
    operator.index, operator.is_, operator.is_not, operator.inv, operator.invert, operator.indexOf, operator.itemgetter
}  # fmt: skip


def _belongs(kind: type, name: str) -> bool:
    """Whether an attribute is one that this package's classes have."""
    return any(name in base.__dict__ for base in kind.__mro__ if is_own(base) or base is object)


def _is_numpys(kind: type, name: str) -> bool:
    """Whether an attribute is NumPy's own, and not one that a user's class adds or replaces."""
    owner = next((base for base in kind.__mro__ if name in base.__dict__), None)
    return owner is not None and (owner is object or not is_python_class(owner))


def rule_for(kind: type, name: str) -> Any:
    """How an attribute of such values is read; None: by the rules for Python's objects."""
    if is_traceable(kind):
        return attribute if _belongs(kind, name) or is_own(kind) else None
    return attribute_of_array if is_numpy(kind) and _is_numpys(kind, name) else None


def operator_for(kind: type, other: type) -> Any:
    """How an operator is applied; None: by the rules for Python's objects."""
    if is_traceable(kind) or is_numpy(kind):
        return operate if _goes_with(other) else None
    if is_traceable(other) or is_numpy(other):
        return operate if _goes_with(kind) else None
    return None


def _goes_with(kind: type) -> bool:
    return kind in PLAIN or kind in (list, tuple) or is_traceable(kind) or is_numpy(kind)
