"""Convert parts of operations to JSON values and back: arrays, functions by name, arguments, bodies.

JSON's own values represent themselves; everything else is an object with one item, whose name is its kind.
"""

from __future__ import annotations

import base64
import importlib
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final

import numpy as np

from runnel.core import pytree
from runnel.core.arrays import short_repr
from runnel.core.dtypes import DType, as_dtype, from_numpy
from runnel.core.errors import GraphError
from runnel.declarative.calls import Arguments, Slot
from runnel.declarative.operation import Static

# A file is data and must not run code, so it can name only public functions of arrays.
_NAMESPACES: Final = ("runnel", "runnel.nn.functional", "runnel.linalg", "runnel.special", "runnel.ops")
_METHODS: Final = ("runnel.tensor.function_methods", "runnel.tensor.methods")
_OWN: Final = ("runnel.declarative.control", "runnel.declarative.gradients")
_DEFINED_IN: Final = ("runnel.ops", "runnel.nn.", "runnel.linalg.", "runnel.special.", *_METHODS, *_OWN)
_NOT_IN: Final = ("runnel.ops.callbacks",)


def function_name(function: Any) -> str:
    """Return a function as ``module:name``; GraphError if a file cannot name it."""
    name = getattr(function, "__qualname__", "<locals>")
    for module in (*_NAMESPACES, *_METHODS, *_OWN):
        known = _resolved(f"{module}:{name}")
        if known is not None and (known is function or known is vars(function).get("__wrapped__")):
            return f"{module}:{name}"
    raise GraphError(
        f"[save] a call of {short_repr(function)} cannot be saved; only functions of rn have names that a file may use."
    )


def function_called(text: Any) -> Callable[..., Any]:
    """Return the function named by :func:`function_name`."""
    known = _resolved(text) if isinstance(text, str) else None
    if known is None:
        raise ValueError(f"{short_repr(text)} is not a function that a graph can call")
    return known


def _resolved(text: str) -> Callable[..., Any] | None:
    """Return the function that ``text`` names, without its public wrapper, if it is a function of arrays."""
    module, _, path = text.partition(":")
    parts = path.split(".")
    if module not in (*_NAMESPACES, *_METHODS, *_OWN) or not all(part.isidentifier() for part in parts):
        return None
    value: Any = importlib.import_module(module)
    for part in parts:
        value = getattr(value, part, None)
    if not isinstance(value, FunctionType):
        return None
    if module not in _OWN:
        value = vars(value).get("__wrapped__", value)
    graph_of = getattr(value, "__module__", "")
    is_ours = graph_of.startswith(_DEFINED_IN) and graph_of not in _NOT_IN
    return value if isinstance(value, FunctionType) and is_ours else None


def packed_array(value: np.ndarray) -> dict[str, Any]:
    """Return an array as its dtype, shape and little-endian bytes in base64."""
    data = np.ascontiguousarray(value)
    text = base64.b64encode(data.tobytes()).decode("ascii")
    return {"dtype": from_numpy(value.dtype).name, "shape": list(value.shape), "data": text}


def unpacked_array(value: dict[str, Any]) -> np.ndarray:
    """Return the array of :func:`packed_array`; ValueError if the bytes do not fit its shape."""
    dtype, shape = as_dtype(value["dtype"]), unpacked_static(value).shape
    try:
        data = base64.b64decode(value["data"], validate=True)
    except (ValueError, TypeError):
        raise ValueError("its data are not base64") from None
    if shape is None or None in shape or math.prod(n or 0 for n in shape) * dtype.itemsize != len(data):
        raise ValueError(f"{len(data)} bytes do not fit dtype {dtype.name} and shape {value['shape']}")
    return np.frombuffer(data, dtype.numpy).reshape([n or 0 for n in shape])


def packed_static(x: Static) -> dict[str, Any]:
    return {
        "dtype": None if x.dtype is None else x.dtype.name,
        "shape": None if x.shape is None else list(x.shape),
    }


def unpacked_static(value: dict[str, Any]) -> Static:
    shape = value["shape"]
    if shape is not None:
        if not isinstance(shape, list) or not all(n is None or (type(n) is int and n >= 0) for n in shape):
            raise ValueError(f"{short_repr(shape)} is not a shape")
        shape = tuple(shape)
    return Static(shape, None if value["dtype"] is None else as_dtype(value["dtype"]))


Pack = Callable[[Any], Any]


def packed_arguments(arguments: Arguments, others: Pack) -> Any:
    """Return the arguments of a call as JSON values. ``others`` packs values of other kinds."""
    args, kwargs = pytree.unflatten(arguments.structure, arguments.leaves)
    return [packed(args, others), packed(kwargs, others)]


def unpacked_arguments(value: Any, others: Pack) -> Arguments:
    """Return the arguments of :func:`packed_arguments`."""
    args, kwargs = (unpacked(x, others) for x in value)
    if type(args) is not tuple or type(kwargs) is not dict or not all(type(name) is str for name in kwargs):
        raise ValueError("arguments must be a tuple and a dict")
    leaves, structure = pytree.flatten((args, kwargs), lambda x: type(x) is Slot)
    return Arguments(tuple(leaves), structure)


def packed(value: Any, others: Pack) -> Any:
    """Return a value of an argument as a JSON value."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind is Slot:
        return {"input": value.number}
    if kind in (list, tuple):
        return {kind.__name__: [packed(x, others) for x in value]}
    if kind is dict:
        return {"dict": [[packed(k, others), packed(x, others)] for k, x in value.items()]}
    if kind is slice:
        return {"slice": [packed(x, others) for x in (value.start, value.stop, value.step)]}
    if value is Ellipsis:
        return {"ellipsis": None}
    if isinstance(value, DType):
        return {"dtype": value.name}
    if isinstance(value, np.generic):
        return packed(value.item(), others)
    return others(value)


def unpacked(value: Any, others: Pack) -> Any:
    """Return the value of :func:`packed`."""
    if not isinstance(value, dict):
        if isinstance(value, list):
            raise ValueError("a list stands where a value belongs")
        return value
    ((name, inside),) = value.items()
    if name == "float":
        return float(inside)
    if name == "input":
        return Slot(int(inside))
    if name in ("list", "tuple", "slice"):
        parts = [unpacked(x, others) for x in inside]
        return parts if name == "list" else tuple(parts) if name == "tuple" else _slice(parts)
    if name == "dict":
        return {unpacked(k, others): unpacked(x, others) for k, x in inside}
    if name == "ellipsis":
        return Ellipsis
    if name == "dtype":
        return as_dtype(inside)
    return others(value)


def _slice(parts: list[Any]) -> slice:
    start, stop, step = parts
    return slice(start, stop, step)
