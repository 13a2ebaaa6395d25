"""Nested Python values as JSON and named arrays, and back: the content of files written by ``save``.

JSON's own kinds stand for themselves: null, true, numbers, strings, and arrays for lists. Everything else is an object
of one item, whose name says what it is: ``{"tuple": [...]}``, ``{"dict": [[key, value], ...]}``, ``{"tensor": name}``,
``{"registered": [class, static part, children]}``.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, Final

import numpy as np

from runnel.core import dtypes, pytree
from runnel.core.dtypes import DType
from runnel.io import header
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable

DEEPEST: Final = 100  # containers in one another
_EXACT: Final = 1 << 63  # from here on, readers of JSON differ about whole numbers


class Packer:
    """Takes a value apart. ``arrays`` are those met so far, by name; each piece of memory is there once."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._names: dict[Any, str] = {}
        self._owners: list[Any] = []  # what ids in _names are of
        self._above: set[int] = set()  # containers that the value at hand stands in

    def pack(self, value: Any, path: tuple[Any, ...] = ()) -> Any:
        """``value`` as JSON. TypeError or ValueError with a sentence for what cannot be."""
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is int:
            return value if -_EXACT <= value < _EXACT else {"int": hex(value)}
        if kind is float:
            return value if value - value == 0 else {"float": struct.pack(">d", value).hex()}
        if kind is complex:
            return {"complex": [self.pack(value.real), self.pack(value.imag)]}
        if kind in _CONTAINERS or pytree.is_registered(kind):
            return self._container(value, path)
        if isinstance(value, (Tensor, Variable)):
            tensor = value.read()
            return {
                "tensor": self._add((id(tensor._storage), tensor._layout, tensor.aval), tensor, tensor.numpy(), path)
            }
        if kind is np.ndarray:
            return self._array(value, path)
        if isinstance(value, np.generic):
            return {"scalar": [_text(value.dtype, path), value.tobytes().hex()]}
        if kind is bytes or kind is bytearray:
            return {kind.__name__: self._add(id(value), value, np.frombuffer(value, np.uint8), path)}
        if isinstance(value, DType):
            return {"dtype": value.name}
        if isinstance(value, np.dtype):
            return {"numpy_dtype": _text(value, path)}
        hint = "its state_dict()" if hasattr(value, "state_dict") else "what it is made of"
        raise TypeError(
            f"{where(path)} is a {kind.__name__}; a file holds tensors, arrays, numbers, strings, bytes, None and "
            f"dtypes in lists, tuples, dicts and registered containers. Save {hint}"
        )

    def _container(self, value: Any, path: tuple[Any, ...]) -> Any:
        if id(value) in self._above:
            raise ValueError(f"{where(path)} is a {type(value).__name__} that holds itself")
        if len(self._above) == DEEPEST:
            raise ValueError(f"{where(path)} stands in {DEEPEST} containers, more than a file holds in one another")
        self._above.add(id(value))
        try:
            if isinstance(value, dict):
                items = [[self.pack(k, (*path, k)), self.pack(v, (*path, k))] for k, v in value.items()]
                return {"dict" if type(value) is dict else "ordered_dict": items}
            if pytree.is_registered(type(value)):
                name, static, children = pytree.registered_apart(value)
                packed = [self.pack(child, (*path, i)) for i, child in enumerate(children)]
                return {"registered": [name, self.pack(static, (*path, "static")), packed]}
            packed = [self.pack(item, (*path, i)) for i, item in enumerate(value)]
            return packed if type(value) is list else {"tuple": packed}
        finally:
            self._above.discard(id(value))

    def _array(self, value: np.ndarray, path: tuple[Any, ...]) -> Any:
        if value.dtype in _NATIVE:
            return {"array": self._add(id(value), value, value, path)}
        text = _text(value.dtype, path)
        raw = np.frombuffer(value.tobytes(), np.uint8)
        return {"array": [self._add(id(value), value, raw, path), text, list(value.shape)]}

    def _add(self, key: Any, owner: Any, array: np.ndarray, path: tuple[Any, ...]) -> str:
        """The name of an array in the file: its path, and a number if others have the same."""
        if key in self._names:
            return self._names[key]
        plain = ".".join(step if isinstance(step, str) else _step_text(step) for step in path) or "value"
        if not header.is_name(plain):
            plain = "value"
        name, count = plain, 1
        while name in self.arrays:
            count += 1
            name = f"{plain}#{count}"
        self._names[key] = name
        self._owners.append(owner)
        self.arrays[name] = array
        return name


def where(path: tuple[Any, ...]) -> str:
    """A path as it is written in Python."""
    return "the value" + "".join(f"[{_step_text(step)}]" for step in path)


def _step_text(step: Any) -> str:
    """A key or a position; others than strings and small numbers only by their class."""
    is_short = isinstance(step, str) or (type(step) is int and abs(step) < _EXACT)
    return repr(step) if is_short else type(step).__name__


def _text(dtype: np.dtype[Any], path: tuple[Any, ...]) -> str:
    """A text that NumPy makes this dtype of."""
    for text in (dtype.str, dtype.name):
        try:
            if np.dtype(text) == dtype and not dtype.hasobject and dtype.names is None:
                return text
        except TypeError:
            continue
    raise TypeError(f"{where(path)} is of NumPy's dtype {dtype}; a file holds numbers, strings and times")


class Unpacker:
    """Puts a value together again. ValueError with a sentence for what no Packer has made."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = tensors
        self._arrays: dict[str, Any] = {}

    def unpack(self, node: Any) -> Any:
        """The value that ``node`` stands for."""
        if isinstance(node, list):
            return [self.unpack(item) for item in node]
        if not isinstance(node, dict):
            return node
        if len(node) != 1:
            raise ValueError("its structure has an object of several items")
        ((tag, content),) = node.items()
        if tag not in _UNPACKING:
            raise ValueError(f"its structure has a '{tag[:20]}', which this version of Runnel does not know")
        try:
            return _UNPACKING[tag](self, content)
        except (ArithmeticError, LookupError, SyntaxError, TypeError, ValueError, struct.error) as error:
            raise ValueError(f"its structure has a wrong {tag} ({error})") from None

    def _tensor(self, name: str) -> Tensor:
        """A handle of its own: what one of several does with ``x[key] = value`` is no matter of the others."""
        return copy(self._tensors[name])

    def _pairs(self, pairs: Any) -> dict[Any, Any]:
        return {self.unpack(key): self.unpack(value) for key, value in pairs}

    def _tuple(self, items: Any) -> tuple[Any, ...]:
        return tuple([self.unpack(item) for item in items])

    def _registered(self, content: Any) -> Any:
        """An instance of a class that trees are told about: one that is registered in this process, too."""
        name, static, children = content
        return pytree.registered_together(name, self.unpack(static), map(self.unpack, children))

    def _complex(self, parts: Any) -> complex:
        real, imag = (self.unpack(part) for part in parts)
        return complex(real, imag)

    def _array(self, content: Any) -> np.ndarray:
        """What one array was is one array again."""
        name = content if isinstance(content, str) else content[0]
        if name not in self._arrays:
            stored = self._tensors[name].numpy()
            if isinstance(content, str):
                self._arrays[name] = stored.copy()
            else:
                self._arrays[name] = np.frombuffer(bytearray(stored.tobytes()), np.dtype(content[1])).reshape(
                    content[2]
                )
        array: np.ndarray = self._arrays[name]
        return array

    def _scalar(self, content: Any) -> Any:
        dtype = np.dtype(content[0])
        return np.frombuffer(bytes.fromhex(content[1]), dtype)[0] if dtype.itemsize else dtype.type()

    def _bytes(self, name: str) -> bytes:
        return self._tensors[name].numpy().tobytes()


_CONTAINERS: Final = (list, tuple, dict, OrderedDict)
_NATIVE: Final = frozenset(dtype.numpy for dtype in dtypes.ALL)
_UNPACKING: Final[dict[str, Callable[[Unpacker, Any], Any]]] = {
    "int": lambda unpacker, text: int(text, 16),
    "float": lambda unpacker, text: struct.unpack(">d", bytes.fromhex(text))[0],
    "complex": Unpacker._complex,
    "tuple": Unpacker._tuple,
    "registered": Unpacker._registered,
    "dict": Unpacker._pairs,
    "ordered_dict": lambda unpacker, pairs: OrderedDict(unpacker._pairs(pairs)),
    "tensor": Unpacker._tensor,
    "array": Unpacker._array,
    "scalar": Unpacker._scalar,
    "bytes": Unpacker._bytes,
    "bytearray": lambda unpacker, name: bytearray(unpacker._bytes(name)),
    "dtype": lambda unpacker, name: dtypes.by_name(name),
    "numpy_dtype": lambda unpacker, text: np.dtype(text),
}
