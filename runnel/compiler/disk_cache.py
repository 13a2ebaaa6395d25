"""Store the programs of graphs on disk, beside the kernels.

A file holds command buffers (``backends/commands.py``) as JSON, followed by their arrays. Its key covers everything
that the program depends on: the identity of the graph, device, threads, budget, target, and the sources of this
package. A rule registered from outside is identified by the version of its op, which the graph's identity contains; if
such a rule has no version, no program is stored. Programs with custom passes or a custom memory planner are not stored.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from runnel.backends import base
from runnel.backends.base import CommandBuffer, checked
from runnel.backends.context import CompileContext
from runnel.backends.host import objects
from runnel.core import switches
from runnel.core.errors import VerifierError
from runnel.core.records import fields
from runnel.core.tables import Table
from runnel.graph.graph import Graph
from runnel.graph.hashing import structural_hash

LARGEST: Final = 1 << 24  # bytes of a file
_MAGIC: Final = b"runnel program 1\n"
_PRODUCERS: Final = ("core", "loops", "backends", "graph", "ops", "compiler")


def key(graph: Graph, context: CompileContext, memory_budget: int | None, is_trained: bool = False) -> str | None:
    """Return the key of a graph's program; None if it must not be stored."""
    is_own = Table.registrations == Table.own_registrations
    if not is_own or switches.verify.value or objects.current() is None or not base.of(context.device).has_files:
        return None
    try:
        identity = structural_hash(graph)
    except VerifierError:  # an attribute without an identity
        return None
    producer = f"{objects.digest(*_PRODUCERS)}, NumPy {np.__version__}, {sys.byteorder}, {context.target}"
    place = f"{context.device}, {context.precision} products, {context.threads} threads"
    options = f"{place}, delays {context.stress}, cache {context.cache}, budget {memory_budget}"
    if is_trained:
        options += ", trained"
    return hashlib.sha256(f"{producer}, {options}\n".encode() + identity).hexdigest()


def load(key: str | None) -> tuple[CommandBuffer, ...]:
    """Return the command buffers stored under ``key``; none if there is no such file, or it has another format."""
    cache = objects.current()
    content = cache.get(key) if cache is not None and key is not None else None
    return () if content is None else decoded(content)


def save(key: str | None, buffers: Sequence[CommandBuffer]) -> None:
    """Store ``buffers`` under ``key``, unless they are very large."""
    cache = objects.current()
    if cache is None or key is None:
        return
    content = encoded(buffers)
    if len(content) <= LARGEST:
        cache.put(key, content)


def encoded(buffers: Sequence[CommandBuffer]) -> bytes:
    """Return command buffers as bytes."""
    arrays: list[bytes] = []

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            arrays.append(value.tobytes())
            return {"dtype": value.dtype.name, "shape": value.shape}
        return [plain(x) for x in value] if isinstance(value, tuple) else value

    names = [field.name for field in fields(CommandBuffer)]
    text = json.dumps([{name: plain(getattr(buffer, name)) for name in names} for buffer in buffers]).encode()
    return b"".join([_MAGIC, len(text).to_bytes(8, "little"), text, *arrays])


def decoded(content: bytes) -> tuple[CommandBuffer, ...]:
    """Return the command buffers in ``content``; none if it has another format."""
    begin = len(_MAGIC) + 8
    end = begin + int.from_bytes(content[len(_MAGIC) : begin], "little")

    def value(plain: Any) -> Any:
        nonlocal end
        if isinstance(plain, dict):
            dtype, shape = np.dtype(plain["dtype"]), plain["shape"]
            count = math.prod(shape)
            array = np.frombuffer(content, dtype, count, end).reshape(shape).copy()
            end += array.nbytes
            return array
        return tuple(map(value, plain)) if isinstance(plain, list) else plain

    if not content.startswith(_MAGIC):
        return ()
    try:
        plain_buffers = json.loads(content[begin:end])
        return tuple(
            [checked(CommandBuffer(**{name: value(plain) for name, plain in b.items()})) for b in plain_buffers]
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, VerifierError):
        return ()
