"""The CPU backend: machine code from LLVM in this process, and object files for linkers, which run without Python.

An object file contains the kernels, the commands and the loop that executes them (``records``). The caller provides
tables of base addresses and scratch memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from runnel.backends.base import BARRIER, COMMIT, JUMP, JUMPS, WINDOW, CommandBuffer, ObjectFile, Recalling, Words
from runnel.backends.cpu import compiler, recall, records, target as targets
from runnel.backends.cpu.codegen import build, contract, nest, products
from runnel.backends.cpu.driver import lock_keeper
from runnel.backends.cpu.launch import LoadedProgram
from runnel.backends.cpu.routines import module_text
from runnel.backends.cpu.target import InstructionSet, in_force
from runnel.backends.host import layout
from runnel.backends.host.locks import LockKeeper
from runnel.backends.host.memory import HostMemory
from runnel.core.devices import CPU
from runnel.loops.ir import Kernel

_CONTROL: Final = {BARRIER: "rn_barrier", COMMIT: "rn_commit", JUMP: "rn_jump", WINDOW: "rn_window"}
_RECORD: Final = "{ ptr, ptr, i64, i64, i64, i64, i64, i64 }"


def object_file(programs: Mapping[str, CommandBuffer], kernels: Mapping[str, Kernel]) -> ObjectFile:
    """Return the object file of programs of one thread, for the target in force."""
    target = in_force()
    texts = {"commands": "\n".join(_text(programs, target.triple))}
    texts |= {name: nest.emit_kernel(kernel, target) for name, kernel in kernels.items()}
    symbols = {symbol for buffer in programs.values() for _, called in buffer.kernels for symbol in called}
    texts |= {symbol: build.library_text(symbol, target) for symbol in sorted(symbols)}
    content = build.compiler(target).joined_object_code(texts, programs)
    return ObjectFile(content, max(map(_scratch_bytes, programs.values())))


def _scratch_bytes(buffer: CommandBuffer) -> int:
    return max(buffer.scratch_bytes, layout.THREAD_SCRATCH)


def _text(programs: Mapping[str, CommandBuffer], triple: str) -> Iterator[str]:
    """Yield the module of the programs' commands and functions."""
    yield module_text(
        (records.rn_run, records.rn_jump, records.rn_window, records.rn_barrier, records.rn_commit), triple
    )
    names = {name for buffer in programs.values() for name, _ in buffer.kernels}
    yield from (f"declare void @{name}(ptr, ptr, i64, i64, i64, i64)" for name in sorted(names))
    yield "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
    for name, buffer in programs.items():
        (rows,) = buffer.commands
        words = ", ".join(f"i64 {word}" for word in buffer.words.tolist())
        yield f"@{name}.words = internal constant [{len(buffer.words)} x i64] [{words}], align 64"
        listed = ",\n  ".join(_records(name, buffer, rows))
        yield f"@{name}.records = internal constant [{len(rows)} x {_RECORD}] [\n  {listed}\n], align 64"
        yield _function(name, _scratch_bytes(buffer))


def _records(name: str, buffer: CommandBuffer, rows: Words) -> Iterator[str]:
    """Yield the commands as records, whose kernels and args are addresses."""
    for code, args, *numbers in rows.tolist():
        function = "null" if code == 0 else f"@{_CONTROL[code] if code < 0 else buffer.kernels[code - 1][0]}"
        place = f"getelementptr (i8, ptr @{name}.words, i64 {args})" if code > 0 or code in JUMPS else "null"
        yield f"{_RECORD} {{ ptr {function}, ptr {place}, {', '.join(f'i64 {n}' for n in numbers)} }}"


def _function(name: str, scratch: int) -> str:
    """Return the function that runs a program: a launch of one thread, in a launch block on the stack."""
    values = {
        layout.BASES: "ptr %bases",
        layout.SCRATCH: "ptr %scratch",
        layout.SCRATCH_BYTES: f"i64 {scratch}",
        layout.COUNT: "i64 1",
        layout.LAUNCH: "ptr %block",
        layout.RECORDS: f"ptr @{name}.records",
        layout.WATCH: "ptr %request",
    }
    stores = "\n".join(
        f"  %w{word} = getelementptr i64, ptr %thread, i64 {word}\n  store {value}, ptr %w{word}"
        for word, value in values.items()
    )
    return f"""define i64 @{name}(ptr %bases, ptr %scratch) {{
  %block = alloca [{2 * layout.LINE} x i8], align {layout.LINE}
  call void @llvm.memset.p0.i64(ptr align {layout.LINE} %block, i8 0, i64 {2 * layout.LINE}, i1 false)
  %request = getelementptr i64, ptr %block, i64 {layout.REQUEST}
  %thread = getelementptr i8, ptr %block, i64 {layout.LINE}
{stores}
  %end = call ptr @rn_run(ptr %thread, ptr @{name}.records)
  %fault.at = getelementptr i64, ptr %thread, i64 {layout.FAULT}
  %fault = load i64, ptr %fault.at
  ret i64 %fault
}}"""


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
        return object_file(programs, kernels)

    def clear(self) -> None:
        compiler.clear()

    @property
    def lock_keeper(self) -> LockKeeper:
        return lock_keeper()

    @property
    def recalling(self) -> Recalling:
        return recall.RECALLING
