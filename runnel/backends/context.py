"""The context of compilation: the device, the target of plans, the number of threads, the rounding of bfloat16
products, delays of stress tests, and the size of the cache that blocks of matrices are chosen for.

A context is derived from the switches once for each of their states. Equal contexts are one object, which is part of
every cache key, so that a lookup costs an attribute or two. The machine's limits (affinity mask, cgroup) are read when
a context is derived: at the first use, after each change of a switch, and in a forked child.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from runnel.backends import base
from runnel.backends.base import Backend, Target
from runnel.backends.host import threads
from runnel.backends.host.threads import second_level
from runnel.core import switches
from runnel.core.devices import Device, as_device
from runnel.core.records import record
from runnel.core.switches import RESOLVED

F = TypeVar("F", bound=Callable[..., Any])


@record(eq=False)
class CompileContext:
    """Compared by identity: :func:`switched` returns the same object for the same values."""

    device: Device
    target: Target
    threads: int
    precision: str  # the rule by which products of bfloat16 are rounded (Target.precision)
    stress: int  # microseconds
    cache: int  # bytes of a core's second level

    @property
    def backend(self) -> Backend:
        """The backend of the device."""
        return base.of(self.device)

    def __repr__(self) -> str:
        return f"{self.device}, {self.target.name}, {self.threads} thread{'s' if self.threads > 1 else ''}"


class _Entered(threading.local):
    context: CompileContext | None = None


_Key = tuple[Device, Target, int, str, int, int]

_ENTERED: Final = _Entered()
_KNOWN: Final[dict[_Key, CompileContext]] = {}


def current() -> CompileContext:
    """Return the context in force on this thread: set by :func:`entered`, else by the switches."""
    return _ENTERED.context or switched()


def switched() -> CompileContext:
    """Return the context by the switches, on the device of new arrays."""
    state = RESOLVED.state  # first: a concurrent change of a switch replaces it
    if state.context is None:
        device = as_device(switches.device.value)
        state.context = _context_of(device, threads.count(), switches.stress.value, second_level())
    return cast(CompileContext, state.context)


def default_device() -> Device:
    """Return the device of new arrays unless one is named: switch ``device``."""
    device: Device = (RESOLVED.state.context or switched()).device
    return device


def on(device: Device) -> CompileContext:
    """Return the context in force, but on ``device``."""
    here = current()
    return here if here.device is device else _context_of(device, here.threads, here.stress, here.cache)


def alone(context: CompileContext) -> CompileContext:
    """Return ``context``, but with one thread and without delays."""
    return _context_of(context.device, 1, 0, context.cache)


def _context_of(device: Device, count: int, stress: int, cache: int) -> CompileContext:
    target = base.of(device).target()
    key = (device, target, count, target.precision, stress, cache)
    return _KNOWN.setdefault(key, CompileContext(*key))


class entered:
    """Run the block in this context, unaffected by concurrent changes of switches."""

    __slots__ = ("_before", "_context")

    def __init__(self, context: CompileContext) -> None:
        self._context = context

    def __enter__(self) -> None:
        self._before = _ENTERED.context
        _ENTERED.context = self._context

    def __exit__(self, *error: object) -> None:
        _ENTERED.context = self._before


def in_one_context(work: F) -> F:
    """Run each call in the context that was in force when it began."""

    @functools.wraps(work)
    def whole(*args: Any, **kwargs: Any) -> Any:
        with entered(current()):
            return work(*args, **kwargs)

    return cast(F, whole)


def _forget() -> None:
    RESOLVED.state = switches.State()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
