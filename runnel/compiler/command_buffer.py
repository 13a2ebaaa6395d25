"""A plan as a command buffer: the arguments of its calls, and the commands of each thread (``backends.commands``).

A loop of known length is unrolled: the commands of an iteration are the commands of the one before it, with arguments
one row further on in the table of the call's arguments. So NumPy writes them all at once. Loops of unknown length and
branches are jumps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Final

import numpy as np

from runnel.backends.base import (
    BARRIER,
    COMMAND_WORDS,
    COMMIT,
    JUMP,
    WINDOW,
    Backend,
    Bytes,
    Command,
    CommandBuffer,
    Words,
)
from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, Call, MemorySpace
from runnel.compiler.plan_ir.cost import Block
from runnel.compiler.plan_ir.plan import AnyRegion, Branch, Plan, Repeat, Waves, While, counts, is_unbounded, sequence
from runnel.compiler.schedule import partition


class Arguments:
    """The args words of all calls in one array: for each, (slot, byte offset) of its buffers, then its params; for a
    call in loops one such row for each iteration. ``starts`` are the first words of each call's rows, ``moves`` the
    distance of rows in bytes for each loop around it, outermost first. Flags of regions have rows, too."""

    def __init__(self, calls: Sequence[Call], regions: Sequence[AnyRegion]) -> None:
        self._tables: list[Words] = []
        self._size = 0
        self.moves: list[tuple[int, ...]] = []
        self.starts = [
            self._add(call.accesses, call.params, iterations)
            for call, iterations in zip(calls, counts(len(calls), regions), strict=True)
        ]
        call_moves = self.moves
        self.moves = []
        self.flags: dict[AnyRegion, tuple[int, tuple[int, ...]]] = {}
        self._add_flags(regions, ())
        self.moves = call_moves
        self.words: Words = np.concatenate([*self._tables, np.zeros(1, np.int64)])

    def _add_flags(self, regions: Iterable[AnyRegion], counts: tuple[int, ...]) -> None:
        for region in regions:
            if region.flag is not None:
                start = self._add([region.flag], (), counts)
                self.flags[region] = start, self.moves[-1]
            self._add_flags(region.inner, (*counts, region.count) if isinstance(region, Repeat) else counts)

    def _add(self, accesses: Sequence[BufferAccess], params: Sequence[int], counts: tuple[int, ...]) -> int:
        """Return the first word of the rows for these accesses."""
        row: list[int] = []
        for access in accesses:
            allocation = access.allocation
            row += [allocation.slot, allocation.offset + access.offset * allocation.dtype.itemsize]
        row += params
        table = np.array(row, np.int64).reshape(*(1 for _ in counts), len(row))
        moves: list[int] = []
        step = 8 * len(row)
        for level in reversed(range(len(counts))):
            moves.insert(0, step)
            step *= counts[level]
            further = np.zeros(len(row), np.int64)
            for k, access in enumerate(accesses):
                further[2 * k + 1] = access.steps[level] * access.allocation.dtype.itemsize
            iteration = np.arange(counts[level]).reshape(-1, *(1 for _ in counts[level + 1 :]), 1)
            table = table + iteration * further
        start = self._size
        self._tables.append(table.reshape(-1))
        self._size += table.size
        self.moves.append(tuple(moves))
        return start


def commands(
    plan: Plan, arguments: Arguments, command: Callable[[int, Block], Command], *, is_long: bool
) -> list[Words]:
    """Return the commands of each thread: its block of each call, barriers, jumps and, in a long program, the commit
    point."""
    return [_Thread(plan, arguments, command, thread, is_long).whole() for thread in range(plan.threads)]


class _Part:
    """A sequence of commands, and by how much the arguments of each advance with the loops around them."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self._done: list[Words] = []
        self._moves: list[Words] = []
        self._rows: list[Command] = []
        self._row_moves: list[tuple[int, ...]] = []
        self.length = 0

    def add(self, row: Command, moves: tuple[int, ...] = ()) -> None:
        self._rows.append(row)
        self._row_moves.append(moves or (0,) * self.depth)
        self.length += 1

    def join(self, rows: Words, moves: Words) -> None:
        self._flush()
        self._done.append(rows)
        self._moves.append(moves)
        self.length += len(rows)

    def arrays(self) -> tuple[Words, Words]:
        self._flush()
        if len(self._done) == 1:
            return self._done[0], self._moves[0]
        none = np.zeros((0, COMMAND_WORDS), np.int64), np.zeros((0, self.depth), np.int64)
        return np.concatenate([none[0], *self._done]), np.concatenate([none[1], *self._moves])

    def _flush(self) -> None:
        if self._rows:
            self._done.append(np.array(self._rows, np.int64))
            self._moves.append(np.array(self._row_moves, np.int64).reshape(len(self._rows), self.depth))
            self._rows, self._row_moves = [], []


class _Thread:
    """The commands of one thread."""

    def __init__(
        self, plan: Plan, arguments: Arguments, command: Callable[[int, Block], Command], thread: int, is_long: bool
    ) -> None:
        self.plan = plan
        self.arguments = arguments
        self.command = command
        self.thread = thread
        self.barrier: Command = (BARRIER, 0, 0, 0, 0, 0, 0, 0)
        self.commit: Command = (COMMIT, 0, 0, 0, 0, 0, 0, 0)
        self.committed = partition.commit_point(plan.calls) if is_long else -1

    def whole(self) -> Words:
        plan = self.plan
        part = self._part(sequence(0, len(plan.calls), plan.regions), 0, again=False)
        part.add((0,) * COMMAND_WORDS)
        return np.ascontiguousarray(part.arrays()[0])

    def _part(self, items: Iterable[int | AnyRegion], depth: int, *, again: bool) -> _Part:
        """Return the commands of ``items`` at the first iteration of the loop around them, or at a later one."""
        part = _Part(depth)
        for item in items:
            if isinstance(item, int):
                self._call(part, item, (self.plan.again if again else self.plan.barriers)[item])
                continue
            if (item.again if again else item.barrier) and self.plan.threads > 1:
                part.add(self.barrier)
            if isinstance(item, Repeat):
                self._repeat(part, item.count, list(sequence(item.begin, item.end, item.inner)))
            elif isinstance(item, While):
                self._while(part, item)
            else:
                self._branch(part, item)
        return part

    def _call(self, part: _Part, index: int, wait: bool) -> None:
        plan = self.plan
        if index == self.committed:
            part.add(self.commit)
        elif wait and plan.threads > 1:
            part.add(self.barrier)
        block = plan.blocks[index][self.thread]
        if block is not None and plan.calls[index].window:
            part.add(self._windowed(index), self.arguments.moves[index])
        elif block is not None:
            for piece in partition.pieces(plan.calls[index], block) if index < self.committed else [block]:
                part.add(self.command(index, piece), self.arguments.moves[index])

    def _windowed(self, index: int) -> Command:
        """Return the command of this thread's part of each window."""
        call = self.plan.calls[index]
        sharing = [thread for thread, block in enumerate(self.plan.blocks[index]) if block is not None]
        share = sharing.index(self.thread), len(sharing)
        block = (*share, 0, call.columns) if call.window > 0 else (0, call.rows, *share)
        return (*self.command(index, block)[:-1], call.window)

    def _repeat(self, part: _Part, count: int, inside: list[int | AnyRegion]) -> None:
        rows, moves = self._part(inside, part.depth + 1, again=False).arrays()
        part.join(rows, moves[:, :-1])
        if count == 1:
            return
        rows, moves = self._part(inside, part.depth + 1, again=True).arrays()
        later = np.repeat(rows[None], count - 1, axis=0)
        later[:, :, 1] += np.arange(1, count)[:, None] * moves[None, :, -1]
        part.join(later.reshape(-1, COMMAND_WORDS), np.tile(moves[:, :-1], (count - 1, 1)))

    def _while(self, part: _Part, region: While) -> None:
        tests, bodies = region.parts()
        test = self._part(tests, part.depth, again=True)
        if self.plan.threads > 1:
            test.add(self.barrier)
        body = self._part(bodies, part.depth, again=True)
        around = test.length + 1 + body.length
        part.join(*test.arrays())
        self._jump(part, region, if_false=body.length + 2, if_true=1)
        part.join(*body.arrays())
        self._jump(part, region, if_false=-around, if_true=-around)

    def _branch(self, part: _Part, region: Branch) -> None:
        first, second = region.parts()
        then = self._part(first, part.depth, again=False)
        otherwise = self._part(second, part.depth, again=False)
        self._jump(part, region, if_false=then.length + 2, if_true=1)
        part.join(*then.arrays())
        self._jump(part, region, if_false=otherwise.length + 1, if_true=otherwise.length + 1)
        part.join(*otherwise.arrays())

    def _jump(self, part: _Part, region: While | Branch, *, if_false: int, if_true: int) -> None:
        start, moves = self.arguments.flags[region]
        code = WINDOW if isinstance(region, Waves) else JUMP
        part.add((code, 8 * start, if_false, if_true, 0, 0, 0, 0), moves)


_ANYWHERE: Final = 1 << 40  # bytes
SHORT: Final = 20e-6  # seconds of predicted work: not worth releasing the GIL for


def command_buffer(plan: Plan, backend: Backend) -> CommandBuffer:
    """Return the commands of ``plan`` for ``backend``."""
    calls = plan.calls
    kernels = {call.kernel.name: call.kernel for call in calls}
    number = {name: i for i, name in enumerate(kernels)}
    arguments = Arguments(calls, plan.regions)
    heads = [(1 + number[c.kernel.name], 8 * start) for c, start in zip(calls, arguments.starts, strict=True)]
    extents = [_extent(access) for call in calls for access in call.accesses]
    first = list(accumulate((len(call.accesses) for call in calls), initial=0))

    def command(index: int, block: Block) -> Command:
        return (*heads[index], *block, first[index], 0)

    is_long = backend.always_commits or partition.is_long(calls) or is_unbounded(plan.regions)
    return CommandBuffer(
        plan.arena.peak,
        len(plan.inputs),
        len(plan.variables),
        tuple(allocation.nbytes for allocation in plan.outputs),
        tuple(plan.output_of),
        _scratch_bytes(calls),
        is_long,
        plan.threads == 1 and not is_long and sum(c.seconds * c.times for c in calls) < SHORT,
        tuple((name, tuple(sorted(backend.symbols(kernel)))) for name, kernel in kernels.items()),
        np.array([(*head, at) for head, at in zip(heads, first, strict=False)], np.int64).reshape(-1, 3),
        arguments.words,
        np.array(extents, np.int64).reshape(-1, 2),
        tuple(commands(plan, arguments, command, is_long=is_long)),
        _constants(plan.constants),
    )


def _extent(access: BufferAccess) -> tuple[int, int]:
    """Return the first byte of a buffer's place in its slot, and its end."""
    allocation = access.allocation
    if allocation.strided:  # its extent is unknown
        return -_ANYWHERE, _ANYWHERE
    return allocation.offset, allocation.offset + allocation.nbytes


def _constants(allocations: Sequence[Allocation]) -> Bytes:
    """Return the constants at the offsets of the memory plan."""
    memory = np.zeros(max((p.offset + p.nbytes for p in allocations), default=0), np.uint8)
    for allocation in allocations:
        if allocation.value is not None and allocation.size:
            content = np.ascontiguousarray(allocation.value, allocation.dtype.numpy).reshape(-1).view(np.uint8)
            memory[allocation.offset : allocation.offset + allocation.nbytes] = content
    return memory


def _scratch_bytes(calls: Sequence[Call]) -> int:
    """Return the bytes of scratch of tiles, after the panels of packing, which fit into every thread's scratch."""
    return max(
        (
            a.allocation.offset + a.allocation.nbytes
            for c in calls
            for a in c.accesses
            if a.allocation.space is MemorySpace.SCRATCH
        ),
        default=0,
    )
