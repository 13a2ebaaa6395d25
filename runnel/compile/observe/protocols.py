"""Methods that C code looks for on the classes of what it is given, and which a class may get later.

Functions that a class has are observed where they are called (``exposure.py``). Of what it has not, one check for each
class says that nothing has come; and what stands there instead of a function, such as None, is checked to stay.
"""

from __future__ import annotations

import collections
from types import FunctionType
from typing import Final

from runnel.compile.observe.classes import is_special, mro, namespace
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import CONTAINERS, ITERATORS

_OF_ALL_OBJECTS: Final = frozenset(
    {
        *("__class__", "__delattr__", "__dict__", "__dir__", "__doc__", "__getstate__", "__init__"),
        *("__init_subclass__", "__module__", "__new__", "__reduce__", "__reduce_ex__", "__setattr__", "__sizeof__"),
        *("__subclasshook__", "__weakref__", "__getnewargs__", "__class_getitem__"),
    }
)
_OTHERS: Final = frozenset(
    {
        *("__getattr__", "__getattribute__", "__bool__", "__index__", "__bytes__", "__complex__", "__fspath__"),
        *("__next__", "__length_hint__", "__missing__", "__reversed__", "__matmul__", "__rmatmul__", "__imatmul__"),
        *("__array__", "__array_interface__", "__array_struct__", "__array_ufunc__", "__array_function__"),
        *("__array_priority__", "__dlpack__", "__buffer__", "keys", "items"),
    }
)
_OPERATORS: Final = ("lshift", "rshift", "and", "or", "xor", "add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
_METHODS: Final = (
    frozenset(
        name
        for kind in (int, float, complex, str, *CONTAINERS, collections.OrderedDict, *ITERATORS)
        for name in vars(kind)
        if is_special(name)
    )
    | frozenset(f"__{how}{name}__" for name in _OPERATORS for how in ("", "r", "i"))
    | _OTHERS
) - _OF_ALL_OBJECTS
_OBSERVED: Final = (FunctionType, property)


def check_absent(rec: Recorder, kind: type) -> None:
    """C code is given an object of a class made in Python: a later call must find no method of a protocol there that
    this one did not."""
    if ("absent", id(kind)) in rec.memo:
        return
    rec.memo["absent", id(kind)] = True
    rec.keep(kind)
    for base in mro(kind):
        space = rec.class_space(base)
        if space is None:
            continue
        held = namespace(base)
        rec.log.check(space, "not {0}.isdisjoint({v})", f"methods of {space}", (_METHODS.difference(held),))
        for name in _METHODS.intersection(held):
            if type(held[name]) not in _OBSERVED:
                rec.class_attribute(base, name)
