"""What compiled code depends on beside what it computes: the device, the target that plans are made for, the number of
threads, the rounding of bfloat16 products, delays of stress tests, and the cache that blocks of matrices are cut for.

A context is worked out from the switches once for each state of theirs, and the same object stands for the same values:
it is part of the key of everything that is kept, and looking at it costs an attribute or two. The machine's limits
(affinity mask, cgroup) are read when a context is worked out: at the first use, after each change of a switch, and in a
forked child.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from runnel.backends import base
from runnel.backends.base import Backend
from runnel.backends.host import caches, threads
from runnel.backends.target import Target
from runnel.core import switches
from runnel.core.devices import Device, as_device
from runnel.core.records import record
from runnel.core.switches import SETTLED

F = TypeVar("F", bound=Callable[..., Any])


@record(eq=False)
class CompileContext:
    """Equal to itself alone: :func:`switched` gives the same one for the same values."""

    device: Device
    target: Target
    threads: int
    precision: str  # the rule by which products of bfloat16 are rounded (Target.precision)
    stress: int  # microseconds
    cache: int  # bytes of a core's second level

    @property
    def backend(self) -> Backend:
        """What runs programs on the device."""
        return base.of(self.device)

    def __repr__(self) -> str:
        return f"{self.device}, {self.target.name}, {self.threads} thread{'s' if self.threads > 1 else ''}"


class _Entered(threading.local):
    context: CompileContext | None = None


_Key = tuple[Device, Target, int, str, int, int]

_ENTERED: Final = _Entered()
_KNOWN: Final[dict[_Key, CompileContext]] = {}


def current() -> CompileContext:
    """The context of the work that this thread is at; outside of :func:`entered` the one that the switches ask for."""
    return _ENTERED.context or switched()


def switched() -> CompileContext:
    """The context that the switches ask for, on the device where new arrays are made."""
    state = SETTLED.state  # first: what changes meanwhile leaves this one behind
    if state.context is None:
        device = as_device(switches.device.value)
        state.context = _made(device, threads.count(), switches.stress.value, caches.second_level())
    return cast(CompileContext, state.context)


def default_device() -> Device:
    """Where new arrays are made, if nobody says where: switch ``device``."""
    found: Device = (SETTLED.state.context or switched()).device
    return found


def on(device: Device) -> CompileContext:
    """The context in force, but on ``device``."""
    here = current()
    return here if here.device is device else _made(device, here.threads, here.stress, here.cache)


def _made(device: Device, count: int, stress: int, cache: int) -> CompileContext:
    target = base.of(device).target()
    key = (device, target, count, target.precision, stress, cache)
    return _KNOWN.setdefault(key, CompileContext(*key))


class entered:
    """Do the work of the block for this context, whatever other threads do to the switches meanwhile."""

    __slots__ = ("_before", "_context")

    def __init__(self, context: CompileContext) -> None:
        self._context = context

    def __enter__(self) -> None:
        self._before = _ENTERED.context
        _ENTERED.context = self._context

    def __exit__(self, *error: object) -> None:
        _ENTERED.context = self._before


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
