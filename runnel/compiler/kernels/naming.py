"""Kernels are named by their content, so that equal kernels are one kernel."""

from __future__ import annotations

import functools
import hashlib
import operator
from collections.abc import Callable
from typing import Any

from runnel.core.records import fields, is_record
from runnel.loops import ir
from runnel.loops.ir import Buffer, Kernel, Param, Stmt


def named(
    prefix: str, buffers: tuple[Buffer, ...], params: tuple[Param, ...], body: tuple[Stmt, ...], doc: str = ""
) -> Kernel:
    """A kernel called ``prefix_<digest of its contents>``."""
    return Kernel(f"{prefix}_{_digest((buffers, params, body))}", buffers, params, body, doc)


def _digest(contents: Any) -> str:
    """A digest of the contents, with each distinct part once: expressions share subexpressions."""
    numbers: dict[str, str] = {}
    number_of: dict[int, str] = {}

    assigned_to = number_of.get

    def number(part: Any) -> str:
        kind: Any = type(part)
        fields_of = _fields(kind)
        if fields_of is None:
            line = f"{kind.__name__} {part!r}"
        else:
            line = f"{kind.__name__} {' '.join([assigned_to(id(x)) or number(x) for x in fields_of(part)])}"
        assigned = number_of[id(part)] = numbers.setdefault(line, str(len(numbers)))
        return assigned

    number(contents)
    return hashlib.sha256("\n".join(numbers).encode()).hexdigest()[:16]


@functools.cache
def _fields(kind: type) -> Callable[[Any], tuple[Any, ...]] | None:
    """A function that gives the items of a tuple or the fields of an object of the loop IR; None for other classes."""
    if kind is tuple:
        return tuple
    if kind.__module__ != ir.__name__ or not is_record(kind):
        return None
    names = [f.name for f in fields(kind)]
    return operator.attrgetter(*names) if len(names) > 1 else lambda part: (getattr(part, names[0]),)
