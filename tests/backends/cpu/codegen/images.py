"""Calls of kernels together with the memory they work on, laid out so that the same bytes can lie at any address.

An :class:`Image` is all that a program is made of (docs/internals/design.md, "The kernel ABI") in one block: a launch
block, the table of base pointers, args, records, arrays with guards around them, and scratch memory. ``native`` runs it
in this process; ``aarch64`` runs it in an emulated one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from runnel.backends.base import COMMAND_WORDS
from runnel.backends.cpu import driver
from runnel.backends.cpu.codegen import build, contract
from runnel.backends.cpu.launch import Launch
from runnel.backends.host import layout, memory
from runnel.compiler.plan_ir.calls import MemorySpace
from runnel.compiler.plan_ir.plan import Plan
from runnel.loops.ir import Kernel

Array = np.ndarray[Any, Any]
Block = tuple[int, int, int, int]
GUARD = 128  # bytes around every array, which nothing may change
_FILL = 0xA5


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a kernel: for each of its buffers (slot, byte offset), then the params, then the block."""

    kernel: Kernel
    words: list[int]
    block: Block


class Image:
    """Arrays, and the steps that work on them. Addresses are given out only when it is laid at a base."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self.steps: list[Step] = []
        self.kernels: dict[str, Kernel] = {}
        self.scratch = contract.SCRATCH

    def put(self, array: Array) -> int:
        """The slot of a buffer that starts as a copy of ``array``."""
        self.arrays.append(np.ascontiguousarray(array).reshape(-1))
        return len(self.arrays) - 1

    def call(
        self, kernel: Kernel, buffers: Sequence[int | tuple[int, int]], params: Sequence[int], *block: int
    ) -> None:
        """One more step: ``buffers`` are slots, or (slot, offset in bytes)."""
        if self.kernels.setdefault(kernel.name, kernel) != kernel:
            raise ValueError(f"Two kernels are called '{kernel.name}'.")
        allocations = [b if isinstance(b, tuple) else (b, 0) for b in buffers]
        i0, i1, j0, j1 = (*block, 0, 1)[:4]
        self.steps.append(
            Step(kernel, [word for allocation in allocations for word in allocation] + list(params), (i0, i1, j0, j1))
        )

    def put_plan(
        self, plan: Plan, inputs: Sequence[Array], variables: Sequence[Array] = (), times: int = 1
    ) -> list[int]:
        """A whole program, run ``times`` times; returns the slots of its outputs, then of its Variables."""
        first = len(self.arrays)
        self.put(np.zeros(plan.arena.peak, np.uint8))
        constants = np.zeros(max((p.offset + p.nbytes for p in plan.constants), default=0), np.uint8)
        for allocation in plan.constants:
            value = np.ascontiguousarray(allocation.value).reshape(-1)
            constants[allocation.offset : allocation.offset + allocation.nbytes] = value.view(np.uint8)
        self.put(constants)
        for array in (*inputs, *variables):
            self.put(array)
        outputs = [self.put(np.zeros(allocation.size, allocation.dtype.numpy)) for allocation in plan.outputs]
        tiles = [
            a.allocation for call in plan.calls for a in call.accesses if a.allocation.space is MemorySpace.SCRATCH
        ]
        self.scratch = max([self.scratch, *(allocation.offset + allocation.nbytes for allocation in tiles)])
        for _ in range(times):
            for call, blocks in zip(plan.calls, plan.blocks, strict=True):
                allocations = [
                    (a.allocation.slot + first, a.allocation.offset + a.offset * a.allocation.dtype.itemsize)
                    for a in call.accesses
                ]
                for block in blocks:
                    if block is not None:
                        self.call(call.kernel, allocations, call.params, *block)
        return [*outputs, *range(first + 2 + len(inputs), first + 2 + len(inputs) + len(variables))]

    def laid_at(self, base: int, kernel_words: Sequence[int]) -> Array:
        """The bytes of the image at address ``base``: ``kernel_words`` are what records hold for ``self.kernels``."""
        image = np.full(self.nbytes, _FILL, np.uint8)
        words = dict(zip(self.kernels, kernel_words, strict=True))
        bases, args, records, *slots, scratch = (start for start, _ in self._regions())

        def fill(start: int, values: Sequence[int]) -> None:
            image[start : start + 8 * len(values)] = np.array(values, np.int64).view(np.uint8)

        fill(0, self._launch_block(base))
        for word, value in {
            layout.BASES: base + bases, layout.RECORDS: base + records,
            layout.SCRATCH: base + scratch, layout.SCRATCH_BYTES: self.scratch,
        }.items():  # fmt: skip
            fill(layout.LINE + 8 * word, [value])
        fill(bases, [base + start for start in slots])
        fill(args, [word for step in self.steps for word in step.words])
        at = base + args
        for step in self.steps:
            fill(records, [words[step.kernel.name], at, *step.block, 0, 0])
            at += 8 * len(step.words)
            records += 8 * COMMAND_WORDS
        fill(records, [0] * COMMAND_WORDS)
        for start, array in zip(slots, self.arrays, strict=True):
            image[start : start + array.nbytes] = array.view(np.uint8)
        return image

    def _launch_block(self, base: int) -> list[int]:
        """The words of a launch block for one thread, as the runtime makes them, moved to ``base``."""
        launch = Launch([np.zeros((1, COMMAND_WORDS), np.int64)], 0)
        nbytes = 2 * layout.LINE
        words = np.frombuffer(ctypes.string_at(launch.address, nbytes), np.int64)
        is_inside = (words >= launch.address) & (words < launch.address + nbytes)
        return np.where(is_inside, words - launch.address + base, words).tolist()

    def results(self, image: Array) -> list[Array]:
        """The arrays as a run left them; nothing around them may have changed, and no fault been reported."""
        status = int(image[8 * layout.STATUS : 8 * layout.STATUS + 8].view(np.int64)[0])
        assert status == 0, f"the run ended with status {status}"
        regions = self._regions()
        for start, nbytes in regions:
            for edge in (start - GUARD, start + nbytes):
                assert (image[edge : edge + GUARD] == _FILL).all(), f"bytes around offset {start} were written"
        return [
            image[start : start + array.nbytes].view(array.dtype)
            for (start, _), array in zip(regions[3:-1], self.arrays, strict=True)
        ]

    @property
    def records_at(self) -> int:
        """Where the records begin, after the base."""
        return self._regions()[2][0]

    @property
    def nbytes(self) -> int:
        start, size = self._regions()[-1]
        return start + size + GUARD

    def _regions(self) -> list[tuple[int, int]]:
        """Offset and size of the base pointers, the args, the records, each array, and the scratch memory."""
        args = sum(len(step.words) for step in self.steps)
        sizes = [
            8 * len(self.arrays), 8 * args, 8 * COMMAND_WORDS * (len(self.steps) + 1),
            *(array.nbytes for array in self.arrays), self.scratch,
        ]  # fmt: skip
        regions = []
        end = 2 * layout.LINE
        for size in sizes:
            start = -(-(end + GUARD) // memory.ALIGNMENT) * memory.ALIGNMENT
            regions.append((start, size))
            end = start + size + GUARD
        return regions


def native(image: Image) -> list[Array]:
    """The arrays after the steps ran in this process, in code for this machine."""
    block = memory.allocate(image.nbytes)
    bytes_of_block = block.ndarray((image.nbytes,), np.uint8, writeable=True)
    bytes_of_block[:] = image.laid_at(block.address, build.kernels(list(image.kernels.values())))
    run: Callable[[int], int] = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(driver.entry_points()[driver.rn_solo])
    run(block.address)
    return image.results(bytes_of_block.copy())
