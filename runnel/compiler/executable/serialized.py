"""A plan as a command buffer, which is all that a program keeps of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import numpy as np

from runnel.backends.base import Backend
from runnel.backends.commands import Bytes, Command, CommandBuffer
from runnel.compiler.executable.records import Arguments, commands
from runnel.compiler.kernels.allocations import Allocation, BufferAccess, Call, MemorySpace
from runnel.compiler.plan import Plan
from runnel.compiler.schedule import stops
from runnel.compiler.schedule.loop_regions import is_unbounded
from runnel.compiler.schedule.partition import Block

_ANYWHERE: Final = 1 << 40  # bytes
SHORT: Final = 20e-6  # seconds of predicted work: not worth releasing the GIL for


def command_buffer(plan: Plan, backend: Backend) -> CommandBuffer:
    """The commands of ``plan`` for ``backend``."""
    calls = plan.calls
    kernels = {call.kernel.name: call.kernel for call in calls}
    number = {name: i for i, name in enumerate(kernels)}
    arguments = Arguments(calls, plan.regions)
    heads = [(1 + number[c.kernel.name], 8 * start) for c, start in zip(calls, arguments.starts, strict=True)]
    extents = [_extent(access) for call in calls for access in call.accesses]
    first = list(accumulate((len(call.accesses) for call in calls), initial=0))

    def command(index: int, block: Block) -> Command:
        return (*heads[index], *block, first[index], 0)

    is_long = backend.always_commits or stops.is_long(calls) or is_unbounded(plan.regions)
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
    """The first byte of a buffer's place in its slot, and its end."""
    allocation = access.allocation
    if allocation.strided:  # its extent is unknown
        return -_ANYWHERE, _ANYWHERE
    return allocation.offset, allocation.offset + allocation.nbytes


def _constants(allocations: Sequence[Allocation]) -> Bytes:
    """The constants at the offsets of the memory plan."""
    memory = np.zeros(max((p.offset + p.nbytes for p in allocations), default=0), np.uint8)
    for allocation in allocations:
        if allocation.value is not None and allocation.size:
            content = np.ascontiguousarray(allocation.value, allocation.dtype.numpy).reshape(-1).view(np.uint8)
            memory[allocation.offset : allocation.offset + allocation.nbytes] = content
    return memory


def _scratch_bytes(calls: Sequence[Call]) -> int:
    """The bytes of scratch of tiles, after the panels of packing, which fit into every thread's scratch."""
    return max(
        (
            a.allocation.offset + a.allocation.nbytes
            for c in calls
            for a in c.accesses
            if a.allocation.space is MemorySpace.SCRATCH
        ),
        default=0,
    )
