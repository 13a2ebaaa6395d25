"""Programs as object files for linkers: kernels, commands and the driver's loop, without Python.

The commands are those that run in this process, for one thread, and the same loop executes them (``records``). Tables
of base addresses and scratch memory are the caller's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from runnel.backends.base import ObjectFile
from runnel.backends.commands import BARRIER, COMMIT, JUMP, CommandBuffer, Words
from runnel.backends.cpu import records, waiting
from runnel.backends.cpu.codegen import build, nest
from runnel.backends.cpu.target import in_force
from runnel.backends.host.layout import (
    BASES,
    COUNT,
    FAULT,
    LAUNCH,
    LINE,
    RECORDS,
    REQUEST,
    SCRATCH,
    SCRATCH_BYTES,
    THREAD_SCRATCH,
    WATCH,
)
from runnel.loops.ir import Kernel

_CONTROL: Final = {BARRIER: "rn_barrier", COMMIT: "rn_commit", JUMP: "rn_jump"}
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
    return max(buffer.scratch_bytes, THREAD_SCRATCH)


def _text(programs: Mapping[str, CommandBuffer], triple: str) -> Iterator[str]:
    """The module of the programs' commands and functions."""
    yield waiting.text(triple)
    yield records.text()
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
    """The commands as records, whose kernels and args are addresses."""
    for code, args, *numbers in rows.tolist():
        function = "null" if code == 0 else f"@{_CONTROL[code] if code < 0 else buffer.kernels[code - 1][0]}"
        place = f"getelementptr (i8, ptr @{name}.words, i64 {args})" if code > 0 or code == JUMP else "null"
        yield f"{_RECORD} {{ ptr {function}, ptr {place}, {', '.join(f'i64 {n}' for n in numbers)} }}"


def _function(name: str, scratch: int) -> str:
    """Return the function that runs a program: a launch of one thread, in a launch block on the stack."""
    values = {
        BASES: "ptr %bases",
        SCRATCH: "ptr %scratch",
        SCRATCH_BYTES: f"i64 {scratch}",
        COUNT: "i64 1",
        LAUNCH: "ptr %block",
        RECORDS: f"ptr @{name}.records",
        WATCH: "ptr %request",
    }
    stores = "\n".join(
        f"  %w{word} = getelementptr i64, ptr %thread, i64 {word}\n  store {value}, ptr %w{word}"
        for word, value in values.items()
    )
    return f"""define i64 @{name}(ptr %bases, ptr %scratch) {{
  %block = alloca [{2 * LINE} x i8], align {LINE}
  call void @llvm.memset.p0.i64(ptr align {LINE} %block, i8 0, i64 {2 * LINE}, i1 false)
  %request = getelementptr i64, ptr %block, i64 {REQUEST}
  %thread = getelementptr i8, ptr %block, i64 {LINE}
{stores}
  %end = call ptr @rn_run(ptr %thread, ptr @{name}.records)
  %fault.at = getelementptr i64, ptr %thread, i64 {FAULT}
  %fault = load i64, ptr %fault.at
  ret i64 %fault
}}"""
