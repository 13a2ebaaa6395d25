"""Independent branches: calls that are too small to be split, computed by different threads at the same time.

A *stretch* is a range of calls that are not split, and that are dealt to threads such that calls which depend on one
another are on the same thread. So its threads need not wait for one another; they wait once before it, and once behind
it where other threads read what they have written. Values that one thread alone touches in a stretch have memory apart
from that of the other threads (``memory/arena.py``), so sharing memory makes no calls dependent that were not so.

Groups of dependent calls are dealt the most expensive first, each to the thread with the least work so far (R. Graham,
"Bounds on Multiprocessing Timing Anomalies", 1969).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from runnel.compiler.plan_ir.calls import Allocation, Call, MemorySpace
from runnel.compiler.plan_ir.regions import AnyRegion, sequence
from runnel.compiler.plan_ir.work import Block
from runnel.compiler.schedule import partition
from runnel.compiler.schedule.partition import TouchedBytes, touched_bytes
from runnel.core.records import record

WORTH_DEALING = 5e-6  # seconds of predicted work that a stretch must save: more than its barriers cost
WORTH_MEMORY = 0.25  # of the work of a stretch that it must save: its threads use memory apart from one another
_LONGEST: Final = 128  # calls of a stretch
_NEVER_WRITTEN: Final = (MemorySpace.INPUT, MemorySpace.CONSTANT, MemorySpace.SCRATCH)  # scratch is each thread's own


@record
class Stretch:
    """The calls from ``begin`` on, each with the thread that computes it; ``saved`` are seconds."""

    begin: int
    threads: tuple[int, ...]
    saved: float

    @property
    def end(self) -> int:
        return self.begin + len(self.threads)

    @property
    def calls(self) -> range:
        return range(self.begin, self.end)


def find(
    calls: Sequence[Call], blocks: Sequence[Sequence[Block | None]], threads: int, regions: Sequence[AnyRegion]
) -> list[Stretch]:
    """Return the stretches that are worth their barriers, and a team of threads where no call is split."""
    if threads == 1 or not partition.is_worth_a_team(calls):
        return []
    stretches = [stretch for run in _serial_runs(calls, blocks, regions) for stretch in _stretches(calls, run, threads)]
    has_team = any(len(of_call) > 1 for of_call in blocks)
    least = 0.0 if has_team else partition.WORTH_A_TEAM / 2  # what two threads save of a program that is just worth it
    return stretches if sum(stretch.saved for stretch in stretches) >= least else []


def dealt(
    blocks: Sequence[Sequence[Block | None]], stretches: Sequence[Stretch]
) -> tuple[int, list[list[Block | None]]]:
    """Return the number of threads, and each call's blocks, with the calls of ``stretches`` on their threads."""
    threads = max([len(of_call) for of_call in blocks] + [1 + max(stretch.threads) for stretch in stretches], default=1)
    moved = [[*of_call, *[None] * (threads - len(of_call))] for of_call in blocks]
    for stretch in stretches:
        for index, thread in zip(stretch.calls, stretch.threads, strict=True):
            moved[index][0], moved[index][thread] = None, moved[index][0]
    return threads, moved


def _serial_runs(
    calls: Sequence[Call], blocks: Sequence[Sequence[Block | None]], regions: Sequence[AnyRegion]
) -> Iterator[range]:
    """Ranges of calls outside loops that the first thread computes alone. They do not reach over the commit point,
    at which threads wait for one another; and checks of bounds stay where they are, so the first fault is the one
    reported."""
    commit_point = partition.commit_point(calls) if partition.is_long(calls) else len(calls)
    begin = 0
    for item in sequence(0, len(calls), regions):
        at, end = (item, item + 1) if isinstance(item, int) else (item.begin, item.end)
        is_serial = isinstance(item, int) and not calls[item].checks and not any(blocks[item][1:])
        if is_serial and at != commit_point:
            continue
        yield range(begin, at)
        begin = at if is_serial else end
    yield range(begin, len(calls))


def _stretches(calls: Sequence[Call], run: range, threads: int) -> Iterator[Stretch]:
    """The stretches of ``run``, from the first on. One begins where the run does, or behind a call on which several
    others depend; it ends before a call that joins two of its branches."""
    costs = [calls[i].seconds for i in run]
    total = [0.0, *accumulate(costs)]
    if total[-1] <= 2 * WORTH_DEALING:
        return
    needs = _dependencies(calls, run)
    readers = Counter(i for of_call in needs for i in of_call)
    begin = 0
    while begin < len(run):
        end = min(begin + _LONGEST, len(run))
        if total[end] - total[begin] > 2 * WORTH_DEALING:
            branches = _branches(costs, needs, range(begin, end))
            thread_of, saved = _by_cost(branches, costs, threads)
            if saved > max(WORTH_DEALING, WORTH_MEMORY * sum(costs[i] for i in thread_of)):
                yield Stretch(run[begin], tuple([thread_of[i] for i in sorted(thread_of)]), saved)
                begin += len(thread_of)
                continue
        begin = next((i for i in range(begin, len(run)) if readers[i] > 1), len(run)) + 1


def _branches(costs: Sequence[float], needs: Sequence[Sequence[int]], window: range) -> list[list[int]]:
    """Return the calls of ``window``, by number, in groups that do not depend on one another, up to the first call that
    joins two groups which are both worth a thread."""
    first_of: dict[int, int] = {}  # the group of a call, by its first call
    group_of: dict[int, list[int]] = {}
    cost_of: dict[int, float] = {}
    for number in window:
        joined = sorted({first_of[i] for i in needs[number] if i >= window.start})
        if sum(cost_of[first] > WORTH_DEALING for first in joined) > 1:
            break
        first, *others = joined or [number]
        group = group_of.setdefault(first, [])
        for other in others:
            first_of.update(dict.fromkeys(group_of[other], first))
            group += group_of.pop(other)
        group.append(number)
        first_of[number] = first
        cost_of[first] = sum(cost_of.pop(x, 0.0) for x in (first, *others)) + costs[number]
    return list(group_of.values())


def _by_cost(branches: Sequence[Sequence[int]], costs: Sequence[float], threads: int) -> tuple[dict[int, int], float]:
    """Return the thread of each call, and the seconds that are saved."""
    work = [0.0] * threads
    thread_of: dict[int, int] = {}
    priced = [(sum(costs[i] for i in branch), branch) for branch in branches]
    for cost, branch in sorted(priced, key=lambda item: (-item[0], item[1][0])):
        thread = work.index(min(work))
        work[thread] += cost
        thread_of.update(dict.fromkeys(branch, thread))
    return thread_of, sum(work) - max(work)


def _dependencies(calls: Sequence[Call], run: range) -> list[list[int]]:
    """For each call of ``run`` those earlier ones, by number, that write what it touches or touch what it writes; ones
    that no stretch has in common with it are left out."""
    touched: dict[Allocation, list[tuple[int, TouchedBytes]]] = {}
    needs: list[list[int]] = []
    for number, index in enumerate(run):
        call = calls[index]
        whole = (0, call.rows, 0, call.columns)
        mine = [
            (a.allocation, touched_bytes(a, whole, call))
            for a in call.accesses
            if a.allocation.space not in _NEVER_WRITTEN
        ]
        needed: set[int] = set()
        for allocation, part in mine:
            for earlier, other in reversed(touched.get(allocation, ())):
                if earlier <= number - _LONGEST:
                    break
                if part.conflicts(other):
                    needed.add(earlier)
        needs.append(sorted(needed))
        for allocation, part in mine:
            touched.setdefault(allocation, []).append((number, part))
    return needs
