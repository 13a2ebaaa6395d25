"""The checker of plans: kernels well formed, no value overwritten while it is needed, no races between threads.

:func:`verify` runs under ``RUNNEL_VERIFY``. It executes the plan on sets of bytes instead of numbers, call by call and
thread by thread; a call that touches memory in too many pieces ends that. It executes the first iterations of a long
loop and the last one. The cheap checks below it run on every plan and cost a few percent of making one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from runnel.compiler.fusion import Clustering, reads_same_point
from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, Call, MemorySpace
from runnel.compiler.plan_ir.clusters import Cluster, Form
from runnel.compiler.plan_ir.cost import Block
from runnel.compiler.plan_ir.plan import AnyRegion, Branch, Plan, Repeat, While, sequence
from runnel.compiler.schedule.partition import touched_bytes
from runnel.compiler.verification.footprint import (
    LARGEST,
    Footprint,
    Runs,
    TooLarge,
    common,
    footprints,
    merged,
    missing,
    runs_of,
)
from runnel.core.errors import VerifierError
from runnel.core.records import replace
from runnel.graph.node import Value
from runnel.loops import verifier as loops

_FEW: Final = 3  # iterations of a loop that are carried out, and the last one
_READ_ONLY = (MemorySpace.INPUT, MemorySpace.CONSTANT)


def verify(plan: Plan) -> None:
    """Raise VerifierError for the first fault of ``plan`` or of one of its kernels."""
    for kernel in {call.kernel.name: call.kernel for call in plan.calls}.values():
        loops.verify(kernel)
    for fault in faults(plan):
        raise VerifierError(f"Plan of '{plan.graph.name}': {fault}.")


def verify_places(plan: Plan, planner: str) -> None:
    """Raise VerifierError if the memory planner of this name has laid two values that are needed at once over one
    another."""
    for fault in _places(plan):
        raise VerifierError(f"Plan of '{plan.graph.name}' by memory planner '{planner}': {fault}.")


def faults(plan: Plan) -> Iterator[str]:
    """Yield every fault of a plan as a sentence."""
    yield from _structure(plan)
    yield from _places(plan)
    try:
        yield from _Simulation(plan).faults()
    except TooLarge:
        return


def _structure(plan: Plan) -> Iterator[str]:
    """Check the lengths of lists, and that blocks cover each call exactly once."""
    if not len(plan.calls) == len(plan.blocks) == len(plan.barriers):
        yield f"{len(plan.calls)} calls have {len(plan.blocks)} lists of blocks and {len(plan.barriers)} barriers"
        return
    for number, (call, blocks) in enumerate(zip(plan.calls, plan.blocks, strict=True)):
        what = _name(number, call)
        if len(blocks) != plan.threads:
            yield f"{what} has blocks for {len(blocks)} threads of {plan.threads}"
        if len(call.accesses) != len(call.kernel.buffers) or len(call.params) != len(call.kernel.params):
            yield f"{what} does not give each buffer and param of its kernel a value"
            continue
        for access, buffer in zip(call.accesses, call.kernel.buffers, strict=True):
            if access.allocation.dtype is not buffer.dtype:
                yield f"{what} binds '{buffer.name}', of {buffer.dtype.name}, to one of {access.allocation.dtype.name}"
            if not access.writes and buffer.mode != "in":
                yield f"{what} writes '{buffer.name}' through an access that says it only reads"
            if access.writes and access.allocation.space in _READ_ONLY:
                yield f"{what} writes to the {access.allocation.space.value} '{access.allocation.label}'"
        mine = [b for b in blocks if b is not None]
        area = sum((i1 - i0) * (j1 - j0) for i0, i1, j0, j1 in mine)
        inside = all(0 <= i0 <= i1 <= call.rows and 0 <= j0 <= j1 <= call.columns for i0, i1, j0, j1 in mine)
        apart = all(
            a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] or b[3] <= a[2] for k, a in enumerate(mine) for b in mine[:k]
        )
        if not (inside and apart) or area != call.rows * call.columns:
            yield f"the blocks {blocks} of {what} do not cover its {call.rows}×{call.columns} points once each"


def _places(plan: Plan) -> Iterator[str]:
    """Check that places of the arena alive at one call do not overlap, and are inside the arena."""
    life: dict[Allocation, tuple[int, int]] = {}
    for number, call in enumerate(plan.calls):
        for access in call.accesses:
            if access.allocation.space is MemorySpace.ARENA:
                life[access.allocation] = (life.get(access.allocation, (number, number))[0], number)
    for region in plan.regions:  # whatever a loop touches is there at every iteration
        inside = [a for call in plan.calls[region.begin : region.end] for a in call.accesses]
        for allocation in {
            a.allocation for a in (*inside, *region.touched()) if a.allocation.space is MemorySpace.ARENA
        }:
            first, last = life[allocation]
            life[allocation] = min(first, region.begin), max(last, region.end - 1)
    for allocation in life:
        if allocation.slot != 0 or allocation.offset < 0 or allocation.offset + allocation.nbytes > plan.arena.peak:
            yield f"'{allocation.label}' lies at {_bytes(allocation)}, and the arena has {plan.arena.peak} bytes"
    alive: list[Allocation] = []
    for allocation, (first, _) in sorted(life.items(), key=lambda item: item[1][0]):
        alive = [p for p in alive if life[p][1] >= first]
        for other in alive:
            if allocation.offset < other.offset + other.nbytes and other.offset < allocation.offset + allocation.nbytes:
                yield (
                    f"'{allocation.label}' at {_bytes(allocation)} and '{other.label}' at {_bytes(other)} are both "
                    f"alive at call {first}"
                )
        alive.append(allocation)


class _Simulation:
    """The bytes written so far, and the bytes each thread has touched since the last barrier."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.written: dict[Allocation, Runs] = {}  # of allocations in the arena, while they hold their own value
        self.epoch: list[tuple[int, int, Footprint, Runs]] = []  # thread, call, footprint, its bytes in their space

    def faults(self) -> Iterator[str]:
        yield from self._run(sequence(0, len(self.plan.calls), self.plan.regions), (), again=False)

    def _run(self, items: Iterable[int | AnyRegion], at: tuple[int, ...], *, again: bool) -> Iterator[str]:
        """Execute calls and loops in order, at these iterations of the loops around them."""
        for item in items:
            if isinstance(item, int):
                if (self.plan.again if again else self.plan.barriers)[item]:
                    self.epoch.clear()
                yield from self._call(item, at)
                continue
            if item.again if again else item.barrier:
                self.epoch.clear()
            if isinstance(item, Repeat):
                yield from self._repeat(item, list(sequence(item.begin, item.end, item.inner)), at)
            elif isinstance(item, While):
                yield from self._while(item, at)
            else:
                yield from self._branch(item, at)

    def _repeat(self, region: Repeat, inside: list[int | AnyRegion], at: tuple[int, ...]) -> Iterator[str]:
        """Execute all iterations if they are few, else the first ones and the last one."""
        few = min(region.count, _FEW)
        for t in range(few):
            yield from self._run(inside, (*at, t), again=t > 0)
        if region.count > few:
            self._skip(region, (*at, range(few, region.count - 1)))
            yield from self._run(inside, (*at, region.count - 1), again=True)

    def _while(self, region: While, at: tuple[int, ...]) -> Iterator[str]:
        test, body = region.parts()
        for iteration in range(3):
            yield from self._run(test, at, again=True)
            self.epoch.clear()
            yield from self._flag(region, region.flag, at)
            if iteration < 2:
                yield from self._run(body, at, again=True)

    def _branch(self, region: Branch, at: tuple[int, ...]) -> Iterator[str]:
        yield from self._flag(region, region.flag, at)
        then, otherwise = region.parts()
        before = list(self.epoch)
        yield from self._run(then, at, again=False)
        one, self.epoch = self.epoch, before
        yield from self._run(otherwise, at, again=False)
        self.epoch += [touch for touch in one if not any(touch is other for other in self.epoch)]

    def _flag(self, region: AnyRegion, flag: BufferAccess | None, at: tuple[int, ...]) -> Iterator[str]:
        """Let every thread read the flag of a loop or branch."""
        if flag is None:
            return
        access = _moved(flag, at)
        size = flag.allocation.dtype.itemsize
        runs = runs_of(access.offset, [], size)
        footprint = Footprint(access, "flag", False, False, runs, None)
        call = self.plan.calls[region.begin]
        yield from self._bounds(region.begin, call, [footprint])
        yield from self._value(region.begin, call, footprint)
        for thread in range(self.plan.threads):
            yield from self._race(thread, region.begin, call, footprint)

    def _skip(self, region: AnyRegion, at: tuple[int | range, ...]) -> None:
        """Note the writes of ``region`` at iterations that are not executed."""
        for item in sequence(region.begin, region.end, region.inner):
            if not isinstance(item, int):
                self._skip(item, (*at, range(item.count)) if isinstance(item, Repeat) else at)
                continue
            call = self.plan.calls[item]
            for block in self.plan.blocks[item]:
                for f in footprints(call, block) if block is not None else ():
                    if not f.writes or f.access.allocation.space is not MemorySpace.ARENA:
                        continue
                    size = f.access.allocation.dtype.itemsize
                    shifts = np.zeros(1, np.int64)
                    for t, step in zip(at, f.access.steps, strict=True):
                        which = np.arange(t.start, t.stop) if isinstance(t, range) else np.array([t])
                        shifts = np.unique(shifts[:, None] + which[None, :] * (step * size))
                    if len(f.runs) * len(shifts) > LARGEST:
                        raise TooLarge
                    runs = merged((f.runs[None, :, :] + shifts[:, None, None]).reshape(-1, 2))
                    before = self.written.get(f.access.allocation)
                    self.written[f.access.allocation] = runs if before is None else merged(_joined(before, runs))

    def _call(self, number: int, at: tuple[int, ...]) -> Iterator[str]:
        call = self.plan.calls[number]
        if at:
            call = replace(call, accesses=[_moved(a, at) for a in call.accesses])
        for thread, block in enumerate(self.plan.blocks[number]):
            if block is None:
                continue
            touched = [f for f in footprints(call, block) if f.access.allocation.space is not MemorySpace.SCRATCH]
            yield from self._bounds(number, call, touched)
            yield from self._guarded(number, call, block, touched)
            yield from self._hazards(number, call, touched)
            for footprint in touched:
                if footprint.access.allocation.strided:
                    continue
                yield from self._value(number, call, footprint)
                if self.plan.threads > 1 and not footprint.access.past:
                    yield from self._race(thread, number, call, footprint)

    def _bounds(self, number: int, call: Call, touched: list[Footprint]) -> Iterator[str]:
        for f in touched:
            allocation = f.access.allocation
            if allocation.strided or not len(f.runs):
                continue
            if f.runs[0, 0] < 0 or f.runs[-1, 1] > allocation.nbytes:
                yield (
                    f"{_name(number, call)} reaches for bytes {f.runs[0, 0]} to {f.runs[-1, 1]} of "
                    f"'{allocation.label}' through '{f.buffer}', and it has {allocation.nbytes}"
                )

    def _guarded(self, number: int, call: Call, block: Block, touched: list[Footprint]) -> Iterator[str]:
        """Check that a block touches only the region that barriers were set for."""
        for f in touched:
            allocation = f.access.allocation
            if allocation.strided or not len(f.runs):
                continue
            start = allocation.offset if allocation.space is MemorySpace.ARENA else 0
            known = touched_bytes(f.access, block, call)
            begin, end = known.begin - start, known.end - start
            first, last = f.runs[0, 0], f.runs[-1, 1]
            if first < begin or last > end:
                yield (
                    f"{_name(number, call)} touches bytes {first} to {last} of '{allocation.label}' through "
                    f"'{f.buffer}', and barriers are set for bytes {begin} to {end}"
                )

    def _hazards(self, number: int, call: Call, touched: list[Footprint]) -> Iterator[str]:
        """Check that a block reads the values it overwrites only at the point where it writes, never in a
        contraction."""
        for write in touched:
            if not write.writes:
                continue
            for other in touched:
                if other is write or other.access.allocation is not write.access.allocation or other.access.past:
                    continue
                same_point = other.path is not None and other.path == write.path and not other.contracted
                same_buffer = other.buffer == write.buffer and not other.contracted
                if same_point or same_buffer:
                    continue
                both = common(write.runs, other.runs)
                if both is not None:
                    yield (
                        f"{_name(number, call)} touches bytes {both[0]} to {both[1]} of "
                        f"'{write.access.allocation.label}' both through '{write.buffer}', which it writes, and "
                        f"through '{other.buffer}', at other points"
                    )

    def _value(self, number: int, call: Call, f: Footprint) -> Iterator[str]:
        """Check that memory of the arena is read only where it was written and not overwritten since."""
        allocation = f.access.allocation
        if allocation.space is not MemorySpace.ARENA:
            return
        if not f.writes:
            lost = missing(f.runs, self.written.get(allocation, f.runs[:0]))
            if lost is not None:
                yield (
                    f"{_name(number, call)} reads bytes {lost[0]} to {lost[1]} of '{allocation.label}' through "
                    f"'{f.buffer}', and they do not hold its value"
                )
            return
        mine = f.runs + allocation.offset
        for other in list(self.written):
            if other is not allocation and common(mine, self.written[other] + other.offset) is not None:
                del self.written[other]
        runs_before = self.written.get(allocation)
        self.written[allocation] = f.runs if runs_before is None else merged(_joined(runs_before, f.runs))

    def _race(self, thread: int, number: int, call: Call, f: Footprint) -> Iterator[str]:
        allocation = f.access.allocation
        arena = allocation.space is MemorySpace.ARENA
        mine = f.runs + allocation.offset if arena else f.runs
        for other_thread, other_number, other, theirs in self.epoch:
            if other_thread == thread or not (f.writes or other.writes):
                continue
            if allocation is not other.access.allocation and not (
                arena and other.access.allocation.space is MemorySpace.ARENA
            ):
                continue
            both = common(mine, theirs)
            if both is not None:
                yield (
                    f"no barrier between thread {thread} in {_name(number, call)}, which {_does(f)}, and thread "
                    f"{other_thread} in {_name(other_number, self.plan.calls[other_number])}, which {_does(other)}: "
                    f"both touch bytes {both[0]} to {both[1]}"
                )
        self.epoch.append((thread, number, f, mine))


def _moved(access: BufferAccess, at: tuple[int, ...]) -> BufferAccess:
    """Move an access to these iterations of the loops around it."""
    return replace(access, offset=access.offset + sum(t * step for t, step in zip(at, access.steps, strict=True)))


def _joined(a: Runs, b: Runs) -> Runs:
    joined: Runs = np.concatenate([a, b])
    return joined


def _name(number: int, call: Call) -> str:
    return f"call {number} of '{call.kernel.name}'"


def _does(f: Footprint) -> str:
    return f"{'writes' if f.writes else 'reads'} '{f.access.allocation.label}' through '{f.buffer}'"


def _bytes(allocation: Allocation) -> str:
    return f"bytes {allocation.offset} to {allocation.offset + allocation.nbytes}"


def check_clusters(clustering: Clustering) -> None:
    """Raise VerifierError unless each cluster is one loop nest: its values are computed one after another, each from
    values of the same point."""
    inside: dict[Cluster, set[Value]] = {}
    for node, cluster in clustering.cluster_of.items():  # in the order of the graph
        before = inside.setdefault(cluster, set())
        if cluster.form is not Form.STANDALONE and not reads_same_point(cluster, node, before, clustering.views):
            raise VerifierError(f"Fusion: {node} reads other values of its kernel at other points than its own.")
        before.add(node)
    for cluster, members in inside.items():
        if len(members) != len(cluster.members) or not members.issuperset(cluster.members):
            raise VerifierError(f"Fusion: {cluster} and the nodes that it is the home of are not the same.")


def check_order(order: Sequence[Cluster], clustering: Clustering, overwritten: Mapping[Value, Cluster]) -> None:
    """Raise VerifierError unless every cluster runs after those whose values it reads, and before the one that stores a
    new value over a Variable of which it reads the old one (``overwritten``)."""
    cluster_of, views = clustering.cluster_of, clustering.views
    position = {cluster: number for number, cluster in enumerate(order)}
    if len(position) != len(set(cluster_of.values())):
        raise VerifierError("Fusion: some kernels wait for one another in a circle.")
    computed: set[Value] = set()
    for node, cluster in cluster_of.items():
        for x in node.inputs:
            base = views[x].base
            for needed in (base, *(views[y].base for y in clustering.control_dependencies.get(x, ()))):
                maker = cluster_of.get(needed)
                if maker is not None and (
                    needed not in computed if maker is cluster else position[maker] >= position[cluster]
                ):
                    raise VerifierError(f"Fusion: {node} is computed before {needed}, which it reads.")
            if base in overwritten and position[overwritten[base]] < position[cluster]:
                raise VerifierError(f"Fusion: {node} reads {base}, over which its next value is stored before.")
        computed.add(node)


def check_calls(calls: Sequence[Call]) -> None:
    """Raise VerifierError if a call reads a value of the arena that no call before it has made."""
    written: set[Allocation] = set()
    for call in calls:
        outputs: list[Allocation] = []
        for access, buffer in zip(call.accesses, call.kernel.buffers, strict=True):
            if access.allocation.space is MemorySpace.ARENA and access.allocation.size:
                if buffer.mode == "in" and access.allocation not in written:
                    raise VerifierError(
                        f"Plan: kernel '{call.kernel.name}' reads '{access.allocation.label}' before anything "
                        "writes it."
                    )
                if buffer.mode != "in":
                    outputs.append(access.allocation)
        written.update(outputs)
