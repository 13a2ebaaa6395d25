"""Memory planners: functions that say where in one block of memory values lie, from their sizes and lifetimes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Final, Protocol, TypeAlias

from runnel.compiler.memory.arrangement import arrange
from runnel.compiler.memory.sweep import Arrangement, Lifetime, in_time, most_alive
from runnel.core.errors import VerifierError
from runnel.core.records import record
from runnel.core.showing import short_repr

ALIGN: Final = 64  # bytes: of offsets, and of the sizes in lifetimes
_LARGEST: Final = 1 << 56  # more than processors address

MemoryPlanner: TypeAlias = Callable[[Sequence[Lifetime]], Sequence[int]]


class Allocator(Protocol):
    """A heap inside of one block of memory."""

    def take(self, nbytes: int) -> int:
        """The offset of a free part of ``nbytes``, which is in use from now on."""

    def give_back(self, offset: int, nbytes: int) -> None:
        """Free a part that was taken."""


def search(lifetimes: Sequence[Lifetime]) -> Sequence[int]:
    """The planner of programs: the best of several greedy placements, improved by a search (``arrangement.py``)."""
    return arrange(lifetimes, *most_alive(lifetimes)).offsets


@record
class Replayed:
    """A planner that carries out the program's allocations and frees, in the order of time, on a new allocator."""

    allocator: Callable[[], Allocator]

    def __call__(self, lifetimes: Sequence[Lifetime]) -> Sequence[int]:
        return in_time(lifetimes, self.allocator())


def name_of(planner: object) -> str:
    """How messages call a planner."""
    if isinstance(planner, Replayed):
        planner = planner.allocator
    return str(getattr(planner, "__name__", type(planner).__name__))


def planned(lifetimes: Sequence[Lifetime], planner: MemoryPlanner) -> Arrangement:
    """What ``planner`` answers. VerifierError unless it is one offset for each lifetime; overlaps are found later, by
    the verifier of plans."""
    if not lifetimes:
        return Arrangement((), 0)
    subject, answer = f"Memory planner '{name_of(planner)}'", planner(tuple(lifetimes))
    try:
        offsets = list(answer)
    except TypeError:
        raise VerifierError(f"{subject} returned {short_repr(answer)}; it returns an offset for each value.") from None
    if len(offsets) != len(lifetimes):
        raise VerifierError(f"{subject} returned {len(offsets)} offsets for {len(lifetimes)} lifetimes.")
    for offset in offsets:
        if not isinstance(offset, Integral) or not 0 <= offset <= _LARGEST or offset % ALIGN:
            raise VerifierError(
                f"{subject} returned the offset {short_repr(offset)}; offsets are multiples of {ALIGN} from 0 on."
            )
    placed = tuple(map(int, offsets))
    return Arrangement(placed, max(offset + x.nbytes for offset, x in zip(placed, lifetimes, strict=True)))
