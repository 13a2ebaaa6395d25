"""Arguments as a signature: what of them is run-time data of a program, and what is part of its identity.

Tensors and arrays count by shape and dtype, floats not at all (they are run-time data) unless the function looks at
them; other plain values count by value, and objects by class: what is in them is watched like a closure's.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Hashable, Sequence
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from runnel.compile.origin import is_foreign, is_plain, ticks_clock
from runnel.core.avals import Aval, aval
from runnel.core.dtypes import from_numpy
from runnel.core.errors import TracedValueError
from runnel.core.lifetime import Weak
from runnel.core.pytree import Branch, Structure, flatten
from runnel.tensor.tensor import Tensor


class Role(enum.Enum):
    """What a leaf among the arguments is to a program."""

    TENSOR = "tensor"
    ARRAY = "array"
    FLOAT = "float"
    VALUE = "value"
    OBJECT = "object"


class Arguments(NamedTuple):
    """A call's arguments, taken apart."""

    leaves: list[Any]
    structure: Structure
    tags: tuple[tuple[Any, ...], ...]  # for each leaf its Role, and what of it counts

    @property
    def key(self) -> Hashable:
        return (self.structure, self.tags)

    @property
    def objects(self) -> list[Any]:
        """The leaves that are watched."""
        return [x for x, tag in zip(self.leaves, self.tags, strict=True) if tag[0] is Role.OBJECT]


def take_apart(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Structure]:
    """The leaves and the structure of a call's arguments."""
    return flatten((args, kwargs), _is_leaf)


def _is_leaf(value: Any) -> bool:
    return ticks_clock(type(value))


def tagged(leaves: list[Any], structure: Structure, fixed: frozenset[int]) -> Arguments:
    """The arguments with their roles; floats at the positions in ``fixed`` count by value."""
    return Arguments(leaves, structure, tuple([_tag(x, i in fixed) for i, x in enumerate(leaves)]))


def _tag(leaf: Any, fixed: bool) -> tuple[Any, ...]:
    kind = type(leaf)
    if kind is Tensor:
        if leaf.is_traced:
            raise TracedValueError(
                f"[compile] an argument is a tensor ({leaf.aval}) that was left over from tracing another function; "
                "return tensors from functions instead of storing them elsewhere."
            )
        return (Role.TENSOR, leaf._aval)
    if kind is float:
        return (Role.VALUE, float, struct.pack("<d", leaf)) if fixed else (Role.FLOAT,)
    if isinstance(leaf, np.ndarray):
        return (Role.ARRAY, array_aval(leaf))
    if isinstance(leaf, np.generic):
        return (Role.VALUE, kind, leaf.tobytes())
    if isinstance(leaf, slice):
        return (Role.VALUE, slice, (leaf.start, leaf.stop, leaf.step))
    if is_plain(leaf):
        return (Role.VALUE, kind, struct.pack("<d", leaf) if isinstance(leaf, float) else leaf)
    return (Role.OBJECT, kind if is_foreign(kind.__module__) else Weak(kind))


def array_aval(array: np.ndarray) -> Aval:
    """Shape and dtype of an array argument; TypeError for a dtype that tensors do not have."""
    return aval(array.shape, from_numpy(array.dtype))


def leaf_names(code: CodeType, structure: Structure) -> list[str]:
    """What messages call each leaf: the parameter's name, with a number inside containers."""
    if not isinstance(structure, Branch):
        return []
    positional, keywords = structure.children
    named: list[tuple[str, Structure]] = []
    if isinstance(positional, Branch):
        limit = code.co_argcount
        named += [
            (code.co_varnames[i] if i < limit else f"argument {i}", child)
            for i, child in enumerate(positional.children)
        ]
    if isinstance(keywords, Branch):
        named += zip(map(str, keywords.names or ()), keywords.children, strict=True)
    names: list[str] = []
    for name, child in named:
        paths = _paths(child)
        names += [name + path for path in paths]
    return names


def _paths(structure: Structure) -> Sequence[str]:
    if not isinstance(structure, Branch):
        return [""]
    names = structure.names if structure.names is not None else range(len(structure.children))
    return [
        (f"[{name!r}]" if structure.kind in (dict, list, tuple) else f".{name}") + rest
        for name, child in zip(names, structure.children, strict=True)
        for rest in _paths(child)
    ]


def difference(names: Sequence[str], before: Arguments, after: Arguments) -> str:
    """How two signatures differ, as a sentence."""
    if before.structure != after.structure:
        return "the arguments are nested or passed differently"
    for name, old, new in zip(names, before.tags, after.tags, strict=True):
        if old != new:
            return f"argument '{name}' is {_shown(new)}, was {_shown(old)}"
    return "a switch or autocast changed"


def _shown(tag: tuple[Any, ...]) -> str:
    if tag[0] in (Role.TENSOR, Role.ARRAY):
        return repr(tag[1])
    if tag[0] is Role.VALUE:
        return repr(struct.unpack("<d", tag[2])[0] if tag[1] is float else tag[2])
    if tag[0] is Role.FLOAT:
        return "a float"
    kind = tag[1]() if type(tag[1]) is Weak else tag[1]
    return "an object" if kind is None else f"a {kind.__name__}"
