"""What compiled code depends on beside what it computes: target and LLVM's effort, number of threads, delays of stress
tests, and the cache that blocks of matrices are cut for.

A context is worked out from the switches once for each state of theirs, and the same object stands for the same values:
it is part of the key of everything that is kept, and looking at it costs an attribute or two. The machine's limits
(affinity mask, cgroup) are read when a context is worked out: at the first use, after each change of a switch, and in a
forked child.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from runnel.backends.cpu import caches, target as targets
from runnel.backends.cpu.target import Target
from runnel.backends.host import threads
from runnel.core import switches
from runnel.core.switches import SETTLED

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False, slots=True)
class CompileContext:
    """Equal to itself alone: :func:`switched` gives the same one for the same values."""

    target: Target
    threads: int
    stress: int  # microseconds
    cache: int  # bytes of a core's second level

    def __repr__(self) -> str:
        return f"{self.target.name}, {self.threads} thread{'s' if self.threads > 1 else ''}"


class _Entered(threading.local):
    context: CompileContext | None = None


_ENTERED: Final = _Entered()
_KNOWN: Final[dict[tuple[Target, int, int, int], CompileContext]] = {}


def current() -> CompileContext:
    """The context of the work that this thread is at; outside of :func:`entered` the one that the switches ask for."""
    return _ENTERED.context or switched()


def switched() -> CompileContext:
    """The context that the switches ask for."""
    state = SETTLED.state  # first: what changes meanwhile leaves this one behind
    if state.context is None:
        key = (targets.chosen(), threads.count(), switches.stress.value, caches.second_level())
        state.context = _KNOWN.setdefault(key, CompileContext(*key))
    return cast(CompileContext, state.context)


@contextlib.contextmanager
def entered(context: CompileContext) -> Iterator[None]:
    """Do the work of the block for this context, whatever other threads do to the switches meanwhile."""
    before = _ENTERED.context
    _ENTERED.context = context
    try:
        yield
    finally:
        _ENTERED.context = before


def settled(work: F) -> F:
    """Makes all of a call be for the context it begins with."""

    @functools.wraps(work)
    def whole(*args: Any, **kwargs: Any) -> Any:
        with entered(current()):
            return work(*args, **kwargs)

    return cast(F, whole)


def _forget() -> None:
    SETTLED.state = switches.State()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
