"""An image of kernels and memory, run as a separate process: NEON code under QEMU's user-mode emulator.

Kernels, the library of contractions and the driver are compiled for the target NEON, or NEON_BF16, and linked with a
start-up routine (written here, in LLVM text) into a static executable without a C library. It reads the image from its
standard input into memory at a fixed address, runs the records with the driver's own loop and writes the memory back.
"""

from __future__ import annotations

import functools
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Final

import numpy as np
from images import Array, Image

from runnel.backends.base import COMMAND_WORDS
from runnel.backends.cpu import driver
from runnel.backends.cpu.codegen import build, contract, dot_contract, nest
from runnel.backends.cpu.target import NEON, InstructionSet
from runnel.core import dtypes, switches

BASE: Final = 1 << 36  # where the image lies, far from the executable
_EMULATORS: Final = ("qemu-aarch64-static", "qemu-aarch64")
_LINKERS: Final = ("aarch64-linux-gnu-ld", "ld.lld")
_READ, _WRITE, _EXIT, _YIELD, _MMAP = 63, 64, 93, 124, 222  # of Linux's asm-generic/unistd.h

# mov x8, x0; mov x0, x1; …; mov x5, x6; svc #0; ret: LLVM's Python binding has no assembler for another machine
_MOVES: Final = ((8, 0), *((k, k + 1) for k in range(6)))
_SYSTEM_CALL: Final = (*(0xAA0003E0 | m << 16 | d for d, m in _MOVES), 0xD4000001, 0xD65F03C0)


@functools.cache
def missing(row: InstructionSet = NEON) -> str:
    """Why code for ``row`` cannot run emulated here; empty if it can."""
    if platform.machine() in ("aarch64", "arm64"):
        return "this machine runs NEON itself"
    if _first(_EMULATORS) is None:
        return f"there is no {' or '.join(_EMULATORS)} on the path"
    if _first(_LINKERS) is None:
        return f"there is no {' or '.join(_LINKERS)} on the path"
    known = subprocess.run([str(_first(_EMULATORS)), "-cpu", "help"], capture_output=True, text=True, check=False)
    return "" if _cpu(row) in known.stdout.split() else f"the emulator does not know the processor {_cpu(row)}"


def _cpu(row: InstructionSet) -> str:
    """The emulator's processor: the row's, or for dot instructions one that has them all."""
    return "max" if row.dot else row.cpu


def emulated(image: Image, folder: Path, row: InstructionSet = NEON) -> list[Array]:
    """The arrays after the steps ran in code for ``row``."""
    executable = link(image, folder, row)
    memory = image.laid_at(BASE, range(1, 1 + len(image.kernels)))
    command = [str(_first(_EMULATORS)), "-cpu", _cpu(row), str(executable)]
    ended = subprocess.run(command, input=memory.tobytes(), capture_output=True, check=False)
    if ended.returncode or len(ended.stdout) != image.nbytes:
        raise RuntimeError(
            f"The process ended with {ended.returncode} after {len(ended.stdout)} of {image.nbytes} bytes: "
            f"{ended.stderr.decode(errors='replace')}"
        )
    return image.results(np.frombuffer(ended.stdout, np.uint8))


def link(image: Image, folder: Path, row: InstructionSet = NEON) -> Path:
    """The executable that runs ``image``, in ``folder``."""
    start = _start(image)
    paths = []
    kernels = ((k.name, _object(nest.emit_kernel(k, row), row)) for k in image.kernels.values())
    for name, code in [*_library(row), ("start", _object(start, row)), *kernels]:
        paths.append(folder / f"{name}.o")
        paths[-1].write_bytes(code)
    executable = folder / "image"
    linker = str(_first(_LINKERS))
    process = subprocess.run([linker, "-static", "-o", executable, *paths], capture_output=True, text=True, check=False)
    if process.returncode:
        raise RuntimeError(f"{linker} refused: {process.stderr[-2000:]}")
    return executable


def _first(names: tuple[str, ...]) -> str | None:
    return next((path for path in map(shutil.which, names) if path is not None), None)


def _object(text: str, row: InstructionSet) -> bytes:
    with switches.override(target=row.name, effort=1):
        return build.object_code(text)


@functools.cache
def _library(row: InstructionSet) -> tuple[tuple[str, bytes], ...]:
    """Return what every executable contains: the contractions and the driver, with their names."""
    products = [(symbol, contract.emit_module(dtypes.by_name(name), row)) for name, symbol in contract.SYMBOLS.items()]
    if row.dot:
        products.append((dot_contract.SYMBOL, dot_contract.emit_module(row)))
    texts = [*products, ("driver", driver.text(row.triple, "rn_driver", "linux"))]
    return tuple((name, _object(text, row)) for name, text in texts)


def _start(image: Image) -> str:
    """Start-up: the system calls, the functions of a C library that LLVM may call, and ``_start``. Records come with
    kernels as numbers from 1, which become addresses here."""
    names = list(image.kernels)
    table = ", ".join(["ptr null", *(f"ptr @{name}" for name in names)])
    declared = "\n".join(f"declare void @{name}(ptr, ptr, i64, i64, i64, i64)" for name in names)
    size, count = image.nbytes, len(image.steps)
    return f"""{declared}
@kernels = constant [{1 + len(names)} x ptr] [{table}]
@rn_driver = external constant [{len(driver.ENTRY_POINTS)} x ptr]

; number and six arguments move to where the kernel of Linux takes them
define i64 @syscall(i64 %number, i64 %a, i64 %b, i64 %c, i64 %d, i64 %e, i64 %f) naked
    prologue [{len(_SYSTEM_CALL)} x i32] [{", ".join(f"i32 {word}" for word in _SYSTEM_CALL)}] {{
  unreachable
}}

define i32 @sched_yield() {{
  %result = call i64 @syscall(i64 {_YIELD}, i64 0, i64 0, i64 0, i64 0, i64 0, i64 0)
  ret i32 0
}}

define ptr @memcpy(ptr %to, ptr %from, i64 %n) {{
entry:
  %some = icmp ne i64 %n, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %source = getelementptr i8, ptr %from, i64 %i
  %byte = load i8, ptr %source
  %place = getelementptr i8, ptr %to, i64 %i
  store i8 %byte, ptr %place
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret ptr %to
}}

define ptr @memset(ptr %to, i32 %value, i64 %n) {{
entry:
  %byte = trunc i32 %value to i8
  %some = icmp ne i64 %n, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %place = getelementptr i8, ptr %to, i64 %i
  store i8 %byte, ptr %place
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret ptr %to
}}

; moves the whole image between memory and a file
define internal void @move(i64 %call, i64 %file) {{
entry:
  br label %loop
loop:
  %moved = phi i64 [ 0, %entry ], [ %next, %well ]
  %place = add i64 %moved, {BASE}
  %left = sub i64 {size}, %moved
  %part = call i64 @syscall(i64 %call, i64 %file, i64 %place, i64 %left, i64 0, i64 0, i64 0)
  %good = icmp sgt i64 %part, 0
  br i1 %good, label %well, label %bad
well:
  %next = add i64 %moved, %part
  %more = icmp ult i64 %next, {size}
  br i1 %more, label %loop, label %done
bad:
  call void @leave(i64 3)
  unreachable
done:
  ret void
}}

define internal void @leave(i64 %code) {{
  call i64 @syscall(i64 {_EXIT}, i64 %code, i64 0, i64 0, i64 0, i64 0, i64 0)
  unreachable
}}

define void @_start() {{
entry:
  %at = call i64 @syscall(i64 {_MMAP}, i64 {BASE}, i64 {size}, i64 3, i64 50, i64 -1, i64 0)
  %mapped = icmp eq i64 %at, {BASE}
  br i1 %mapped, label %read, label %bad
bad:
  call void @leave(i64 2)
  unreachable
read:
  call void @move(i64 {_READ}, i64 0)
  %records = inttoptr i64 {BASE + image.records_at} to ptr
  br label %loop
loop:
  %r = phi i64 [ 0, %read ], [ %next, %loop ]
  %offset = mul i64 %r, {8 * COMMAND_WORDS}
  %record = getelementptr i8, ptr %records, i64 %offset
  %number = load i64, ptr %record
  %entry.of = getelementptr ptr, ptr @kernels, i64 %number
  %kernel = load ptr, ptr %entry.of
  store ptr %kernel, ptr %record
  %next = add i64 %r, 1
  %more = icmp ult i64 %next, {count}
  br i1 %more, label %loop, label %run
run:
  %solo.at = getelementptr ptr, ptr @rn_driver, i64 {driver.ENTRY_POINTS.index(driver.rn_solo)}
  %solo = load ptr, ptr %solo.at
  %block = inttoptr i64 {BASE} to ptr
  call i64 %solo(ptr %block)
  call void @move(i64 {_WRITE}, i64 1)
  call void @leave(i64 0)
  unreachable
}}
"""
