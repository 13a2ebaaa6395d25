"""Objects as plain values that can be compared in any process: what they hold, to the bit, and what they share."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import runnel as rn
from runnel import data, optim, train
from runnel.compile.compiled import BoundCompiled, Compiled
from runnel.compiler.passes.pipeline import Pipeline
from runnel.core.tables import Table
from runnel.tensor.variable import Variable

CACHES = ("_programs", "_structure", "_known_ids")  # of an optimizer: what follows from the rest


def described(thing: Any, visited: dict[int, int] | None = None) -> Any:
    """``thing`` as nested tuples of numbers, strings and bytes. A repeated object is a number the second time."""
    visited = {} if visited is None else visited
    if isinstance(thing, (type(None), bool, int, float, complex, str, bytes, rn.float32.__class__)):
        return type(thing).__name__, repr(thing)
    if id(thing) in visited:
        return "again", visited[id(thing)]
    visited[id(thing)] = len(visited)
    kind = type(thing).__name__
    if isinstance(thing, (np.ndarray, np.generic)):
        elements = described(thing.tolist(), visited) if thing.dtype.hasobject else thing.tobytes()
        return kind, str(thing.dtype), thing.shape, elements
    parts = dict(_parts(thing))
    KEPT.append(parts)
    return kind, tuple((described(key, visited), described(value, visited)) for key, value in parts.items())


KEPT: list[Any] = []  # what was made on the way, so that no id is used twice


def _parts(thing: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(thing, rn.Tensor):
        yield from _array(thing)
        yield "added", {k: v for k, v in vars(thing).items() if not hasattr(rn.Tensor, k)}
    elif isinstance(thing, Variable):
        yield from _array(thing)
        yield "name", thing.name
        yield "added", vars(thing) if hasattr(thing, "__dict__") else {}
        yield "sparse", getattr(thing, "is_sparse", None)
    elif isinstance(thing, optim.Optimizer):
        yield "attributes", {k: v for k, v in vars(thing).items() if k not in CACHES}
    elif isinstance(thing, Mapping):
        yield from enumerate(thing.items())
    elif isinstance(thing, (list, tuple)):
        yield from enumerate(thing)
    elif isinstance(thing, (set, frozenset)):  # whose order is another in each process
        yield from enumerate(sorted(thing, key=repr))
    elif isinstance(thing, BoundCompiled):
        yield from (("function", thing._compiled), ("instance", thing.__self__))
    elif isinstance(thing, Compiled):
        yield from (("function", thing.function), ("options", thing._options), ("name", thing.name))
    elif isinstance(thing, data.TextLines):  # whose files are mapped
        yield from (("paths", thing.paths), ("lines", list(thing)))
    elif isinstance(thing, train.Trainer):  # whose iterator over the data is its own
        state = thing.state_dict()
        del state["random"]  # of the whole program
        yield from (("model", thing.model), ("optimizer", thing.optimizer), ("state", state))
    elif isinstance(thing, Table):  # whose rules depend on what has been imported
        yield "name", thing.name
    elif isinstance(thing, Pipeline):  # its hash is another in each process
        yield "passes", thing.passes
    elif isinstance(thing, (type, types.FunctionType, types.BuiltinFunctionType, rn.custom_vjp, rn.custom_jvp)):
        yield "name", f"{thing.__module__}.{thing.__qualname__}"
    elif isinstance(thing, BaseException):
        yield from (("arguments", thing.args), ("attributes", vars(thing)))
    else:
        yield "attributes", object.__getstate__(thing)


def _array(thing: Any) -> Iterator[tuple[str, Any]]:
    yield "dtype", thing.dtype
    yield "shape", thing.shape
    yield "bytes", np.ascontiguousarray(thing.numpy()).tobytes()
    yield "requires_grad", thing.requires_grad
    yield "grad", thing._grad  # what a compiled step leaves there too


def tensors_in(thing: Any, visited: set[int] | None = None) -> Iterator[rn.Tensor]:
    """All tensors that can be reached from ``thing``, and the values of all Variables."""
    visited = set() if visited is None else visited
    if id(thing) in visited or isinstance(thing, (str, bytes, int, float, type(None), rn.float32.__class__)):
        return
    visited.add(id(thing))
    if isinstance(thing, rn.Tensor):
        yield thing
    if isinstance(thing, Variable):
        yield thing.value
    if not isinstance(thing, (np.ndarray, np.generic)):
        parts = dict(_parts(thing))
        KEPT.append(parts)
        for value in parts.values():
            yield from tensors_in(value, visited)


def memory_of(thing: Any) -> list[tuple[int, int]]:
    """The address and the end of each block that tensors in ``thing`` lie in, if they have one. Of a slab,
    which unrelated values share, that is each value's part."""
    return sorted({_extent(tensor, tensor._storage) for tensor in tensors_in(thing) if tensor.size and tensor._storage})


def _extent(tensor: Any, block: Any) -> tuple[int, int]:
    if block.is_ours and not block.is_whole:
        reach = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.strides, strict=True))
        return tensor.address, tensor.address + (reach + 1) * tensor.dtype.itemsize
    return block.address - block.below, block.address + block.nbytes


def overlap(one: Any, other: Any) -> bool:
    """Return whether two objects share memory."""
    theirs = memory_of(other)
    return any(a < end and start < b for a, b in memory_of(one) for start, end in theirs)
