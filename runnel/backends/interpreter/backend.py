"""The interpreter backend: the programs of the CPU, run step by step in NumPy. It needs no LLVM.

It is the oracle of the others: every element of every kernel is computed by the semantics of ``loops.ir``, every index
is checked against the place of its buffer, and results equal the CPU's to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runnel.backends import context
from runnel.backends.base import ObjectFile
from runnel.backends.commands import CommandBuffer
from runnel.backends.cpu import target as targets
from runnel.backends.cpu.planning import CpuPlanning
from runnel.backends.host.device_memory import HostMemory
from runnel.backends.host.state import LockKeeper
from runnel.backends.interpreter.launch import LoadedProgram
from runnel.backends.interpreter.locking import KEEPER
from runnel.backends.target import Target
from runnel.core.devices import INTERPRETER
from runnel.core.errors import DeviceError
from runnel.loops.ir import Kernel


class InterpreterBackend(CpuPlanning, HostMemory):
    """Runs programs with the loop-IR interpreter."""

    device = INTERPRETER
    has_files = False
    always_commits = True

    def target(self) -> Target:
        return targets.described()

    def symbols(self, kernel: Kernel) -> frozenset[str]:
        return frozenset()  # there are no files

    def load(self, buffer: CommandBuffer, kernels: Sequence[Kernel] | None) -> LoadedProgram:
        if kernels is None:
            raise LookupError("The interpreter keeps no kernels on disk.")
        return LoadedProgram(buffer, kernels, context.current().precision)

    def object_file(self, programs: Mapping[str, CommandBuffer], kernels: Mapping[str, Kernel]) -> ObjectFile:
        raise DeviceError("[interpreter] the device has no machine code; export programs for cpu.")

    def clear(self) -> None:
        """There is no code to free."""

    @property
    def lock_keeper(self) -> LockKeeper:
        return KEEPER
