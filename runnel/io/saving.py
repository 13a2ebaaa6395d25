"""``save`` and ``load``: nested Python values, such as a whole training state, in one file that contains no code.

A file has the safetensors format. Its metadata have the structure of the value as JSON. JSON's own kinds represent
themselves: null, true, numbers, strings, and arrays for lists. Everything else is an object with one item, whose name
is its kind: ``{"tuple": [...]}``, ``{"dict": [[key, value], ...]}``, ``{"tensor": name}``,
``{"registered": [class, static part, children]}``.
"""

from __future__ import annotations

import json
import os
import struct
from collections import OrderedDict
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, Final

import numpy as np

from runnel.core import dtypes, pytree
from runnel.core.dtypes import DType
from runnel.core.errors import FileError
from runnel.io import safetensors
from runnel.io.safetensors import Path, damaged, read, write
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable

DEEPEST: Final = 100  # levels of nested containers
_EXACT: Final = 1 << 63  # readers of JSON differ about integers from here on


class Packer:
    """Converts values to JSON and collects their ``arrays`` by name, each piece of memory once."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._names: dict[Any, str] = {}
        self._owners: list[Any] = []  # keeps the objects alive whose ids are in _names
        self._above: set[int] = set()  # the ids of the containers around the current value

    def pack(self, value: Any, path: tuple[Any, ...] = ()) -> Any:
        """Return ``value`` as JSON; raise TypeError or ValueError if it cannot be saved."""
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
        hint = "its state_dict()" if hasattr(value, "state_dict") else "its parts"
        raise TypeError(
            f"{where(path)} must be a tensor, array, number, string, bytes, None or dtype, or a list, tuple, dict or "
            f"registered container of them; got {kind.__name__}. Save {hint}"
        )

    def _container(self, value: Any, path: tuple[Any, ...]) -> Any:
        if id(value) in self._above:
            raise ValueError(f"{where(path)} is a {type(value).__name__} that contains itself")
        if len(self._above) == DEEPEST:
            raise ValueError(f"{where(path)} is inside {DEEPEST} nested containers, which is the limit")
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
        """Return the name of an array in the file: its path, with a number if the name is taken."""
        if key in self._names:
            return self._names[key]
        plain = ".".join(step if isinstance(step, str) else _step_text(step) for step in path) or "value"
        if not safetensors.is_name(plain):
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
    """Return a path in Python's notation."""
    return "the value" + "".join(f"[{_step_text(step)}]" for step in path)


def _step_text(step: Any) -> str:
    """Return a key or position as text, or its class unless it is a string or a small number."""
    is_short = isinstance(step, str) or (type(step) is int and abs(step) < _EXACT)
    return repr(step) if is_short else type(step).__name__


def _text(dtype: np.dtype[Any], path: tuple[Any, ...]) -> str:
    """Return a text from which NumPy makes this dtype."""
    for text in (dtype.str, dtype.name):
        try:
            if np.dtype(text) == dtype and not dtype.hasobject and dtype.names is None:
                return text
        except TypeError:
            continue
    raise TypeError(f"{where(path)} must hold numbers, strings or times; got the NumPy dtype {dtype}")


class Unpacker:
    """Rebuilds values. Raises ValueError for JSON that no Packer made."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = tensors
        self._arrays: dict[str, Any] = {}

    def unpack(self, node: Any) -> Any:
        """Return the value that ``node`` describes."""
        if isinstance(node, list):
            return [self.unpack(item) for item in node]
        if not isinstance(node, dict):
            return node
        if len(node) != 1:
            raise ValueError("its structure has an object with several items")
        ((tag, content),) = node.items()
        if tag not in _UNPACKING:
            raise ValueError(f"its structure has a '{tag[:20]}', which this version of Runnel does not support")
        try:
            return _UNPACKING[tag](self, content)
        except (ArithmeticError, LookupError, SyntaxError, TypeError, ValueError, struct.error) as error:
            raise ValueError(f"its structure has a wrong {tag} ({error})") from None

    def _tensor(self, name: str) -> Tensor:
        """Return a separate handle, so that ``x[key] = value`` does not change the others."""
        return copy(self._tensors[name])

    def _pairs(self, pairs: Any) -> dict[Any, Any]:
        return {self.unpack(key): self.unpack(value) for key, value in pairs}

    def _tuple(self, items: Any) -> tuple[Any, ...]:
        return tuple([self.unpack(item) for item in items])

    def _registered(self, content: Any) -> Any:
        """Return an instance of a class, which must be registered in this process too."""
        name, static, children = content
        return pytree.registered_together(name, self.unpack(static), map(self.unpack, children))

    def _complex(self, parts: Any) -> complex:
        real, imag = (self.unpack(part) for part in parts)
        return complex(real, imag)

    def _array(self, content: Any) -> np.ndarray:
        """Return an array; what was one array when it was saved is one array again."""
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


_KEY: Final = "runnel"  # the name of the structure in the metadata
_FORMAT: Final = 1


def save(obj: Any, path: Path) -> None:
    """Write a nested value to a file for :func:`load`.

    The file has the safetensors format, with tensors under names like ``model.0.weight`` and the structure in the
    metadata. A tensor or array that occurs several times is stored once, and is one object again after loading.

    The new file replaces an old one when it is complete and on the disk. If the process is killed before, the old file
    remains, and no temporary file.

    Args:
        obj: nested lists, tuples, dicts and registered containers of tensors, Variables, NumPy arrays and scalars,
            numbers, strings, bytes, None and dtypes. The state dicts of modules, optimizers, schedulers and generators
            consist of these.
        path: the file.

    Raises:
        TypeError, ValueError: ``obj`` contains another kind of object, or itself.
        FileError: the file cannot be written. An existing file is unchanged.

    Example:
        >>> rn.save({"model": model.state_dict(), "epoch": 3}, "state.safetensors")
        >>> rn.load("state.safetensors")["epoch"]
        3
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"[save] the second argument must be a path; got {type(path).__name__}.")
    packer = Packer()
    try:
        packed = packer.pack(obj)
    except (TypeError, ValueError) as error:
        raise type(error)(f"[save] {error}.") from None
    structure = json.dumps({"format": _FORMAT, "value": packed}, separators=(",", ":"), allow_nan=False)
    write("save", path, packer.arrays, {_KEY: structure})


def load(path: Path) -> Any:
    """Return the value that :func:`save` wrote to a file. It shares no memory with the file.

    Raises:
        FileError: the file is damaged, or was not written by :func:`save` (:func:`load_file` reads its tensors).
        OSError: the file does not exist or cannot be opened.
    """
    tensors, metadata = read("load", path)
    if _KEY not in metadata:
        raise FileError(f"[load] '{os.fspath(path)}' was not written by save(); load_file() reads its tensors.")
    try:
        return Unpacker(tensors).unpack(_structure(metadata[_KEY]))
    except ValueError as error:
        raise damaged("load", path, str(error)) from None


def _structure(text: str) -> Any:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its structure is not JSON ({error})") from None
    if not isinstance(content, dict) or content.keys() != {"format", "value"}:
        raise ValueError("save() did not write its structure")
    if content["format"] != _FORMAT:
        raise ValueError(f"its structure must have format {_FORMAT} for this version; got {content['format']!r}")
    return content["value"]
