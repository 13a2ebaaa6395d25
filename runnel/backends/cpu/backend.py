"""The CPU backend: LLVM compiles kernels to machine code, and a driver in machine code executes the commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runnel.backends.base import ObjectFile
from runnel.backends.commands import CommandBuffer
from runnel.backends.cpu import compiler, native, target as targets
from runnel.backends.cpu.codegen import build, contract, products
from runnel.backends.cpu.driver import lock_keeper
from runnel.backends.cpu.launch import LoadedProgram
from runnel.backends.cpu.target import InstructionSet
from runnel.backends.host.memory import HostMemory
from runnel.backends.host.state import LockKeeper
from runnel.core.devices import CPU
from runnel.loops.ir import Kernel


class CpuPlanning:
    """The part of a backend, other than its target, that plans depend on."""

    product_scratch = contract.SCRATCH
    packs_columns = staticmethod(contract.packs_columns)


class CpuBackend(CpuPlanning, HostMemory):
    """Runs programs as machine code on this process's processors."""

    device = CPU
    has_files = True
    always_commits = False

    def target(self) -> InstructionSet:
        return targets.chosen()

    def symbols(self, kernel: Kernel) -> frozenset[str]:
        return products.symbols(kernel)

    def load(self, buffer: CommandBuffer, kernels: Sequence[Kernel] | None) -> LoadedProgram:
        if kernels is None:
            return LoadedProgram(buffer, build.filed_functions(buffer.kernels))
        return LoadedProgram(buffer, build.kernel_functions(kernels))

    def object_file(self, programs: Mapping[str, CommandBuffer], kernels: Mapping[str, Kernel]) -> ObjectFile:
        return native.object_file(programs, kernels)

    def clear(self) -> None:
        compiler.clear()

    @property
    def lock_keeper(self) -> LockKeeper:
        return lock_keeper()
