"""Arguments as a signature: what of them is run-time data of a program, and what is part of its identity.

Tensors and arrays count by shape and dtype, floats not at all (they are run-time data) unless the function looks at
them; other plain values count by value, and objects by class: what is in them is watched like a closure's.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Hashable
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from runnel.codegen.context import CompileContext
from runnel.compile.origin import is_foreign, is_plain, ticks_clock
from runnel.core.avals import Aval, aval
from runnel.core.dtypes import DType, from_numpy
from runnel.core.errors import TracedValueError
from runnel.core.lifetime import Weak
from runnel.core.pytree import Branch, Structure, flatten, paths
from runnel.tensor.grad_mode import RECORDING
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
    def differentiated(self) -> tuple[int, ...]:
        """The numbers of the tensors that gradients can be asked for."""
        if not RECORDING.get():
            return ()
        return tuple([i for i, x in enumerate(self.leaves) if type(x) is Tensor and x.requires_grad])

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
    return [name + path for name, child in _named(code, structure) for path in paths(child)]


def _named(code: CodeType, structure: Structure) -> list[tuple[str, Structure]]:
    """The arguments of a call by name."""
    if not isinstance(structure, Branch):
        return []
    named: list[tuple[str, Structure]] = []
    positional, keywords = structure.children
    if isinstance(positional, Branch):
        limit = code.co_argcount
        named += [
            (code.co_varnames[i] if i < limit else f"argument {i}", child)
            for i, child in enumerate(positional.children)
        ]
    if isinstance(keywords, Branch):
        named += zip(map(str, keywords.names or ()), keywords.children, strict=True)
    return named


class Circumstances(NamedTuple):
    """What a program depends on besides the arguments' signature."""

    context: CompileContext
    recording: bool  # whether the mode is that of ``no_grad``, or not
    differentiated: tuple[int, ...]  # the tensors among the arguments that gradients can be asked for
    autocast: DType | None


def difference(code: CodeType, before: Arguments, after: Arguments, around: tuple[Circumstances, Circumstances]) -> str:
    """How two signatures differ, and the circumstances ``around`` them, as a sentence."""
    if before.structure != after.structure:
        return _restructured(code, before.structure, after.structure)
    names = leaf_names(code, after.structure)
    for name, old, new in zip(names, before.tags, after.tags, strict=True):
        if old != new:
            return f"argument '{name}' is {_shown(new)}, was {_shown(old)}"
    was, now = around
    if was.differentiated != now.differentiated:
        leaves = zip(names, after.leaves, strict=True)
        needing = ", ".join(f"'{name}'" for name, x in leaves if isinstance(x, Tensor) and x.requires_grad)
        return f"argument {needing} requires a gradient" if needing else "no argument requires a gradient any more"
    if was.recording != now.recording:
        return f"gradients are {'' if now.recording else 'not '}recorded (no_grad, enable_grad)"
    if was.context.threads != now.context.threads:
        return f"the number of threads is {now.context.threads}, was {was.context.threads}"
    if was.context.target is not now.context.target:
        return f"the target is {now.context.target.name}, was {was.context.target.name}"
    if was.context is not now.context:
        return "switches of the compiler have changed"
    if was.autocast is not now.autocast:
        dtypes = [dtype.name if dtype is not None else "off" for dtype in (now.autocast, was.autocast)]
        return f"autocast is {dtypes[0]}, was {dtypes[1]}"
    return "its programs of this signature had been dropped from the cache"


def _restructured(code: CodeType, before: Structure, after: Structure) -> str:
    """How the passing or the nesting of arguments differs."""
    was, now = _named(code, before), _named(code, after)
    if [name for name, _ in was] != [name for name, _ in now]:
        lists = [", ".join(name for name, _ in named) or "none" for named in (now, was)]
        return f"the arguments are {lists[0]}; they were {lists[1]}"
    for (name, old), (_, new) in zip(was, now, strict=True):
        if old != new:
            return f"argument '{name}' is nested differently"
    return "arguments are passed by name that were passed by position, or the other way round"


def _value_shown(kind: type, value: Any) -> str:
    if issubclass(kind, np.generic) and kind is not type(value):
        return f"{np.frombuffer(value, kind)[0]} (NumPy's {kind.__name__})" if value else f"a NumPy {kind.__name__}"
    return repr(value)


def _shown(tag: tuple[Any, ...]) -> str:
    if tag[0] in (Role.TENSOR, Role.ARRAY):
        return repr(tag[1])
    if tag[0] is Role.VALUE:
        return repr(struct.unpack("<d", tag[2])[0]) if tag[1] is float else _value_shown(tag[1], tag[2])
    if tag[0] is Role.FLOAT:
        return "a float"
    kind = tag[1]() if type(tag[1]) is Weak else tag[1]
    return "an object" if kind is None else f"a {kind.__name__}"
