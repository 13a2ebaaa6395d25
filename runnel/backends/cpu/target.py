"""The targets of code generation, one row each, and the features of this processor.

LLVM is imported when a target machine is first created. The operating system describes the processor where LLVM does
not detect a feature or is not loaded.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import sys
from collections.abc import Set
from pathlib import Path
from typing import TYPE_CHECKING

from runnel.backends import context
from runnel.backends.base import Target
from runnel.core.errors import DeviceError
from runnel.core.records import record, replace
from runnel.core.switches import Switch, one_of, whole

if TYPE_CHECKING:
    import llvmlite.binding as llvm


_CPUINFO = Path("/proc/cpuinfo")


def has_arm_bf16() -> bool:
    """Return whether this processor has the extension FEAT_BF16 of Armv8.6, as Linux or macOS says."""
    if sys.platform == "darwin":
        return _of_macos("hw.optional.arm.FEAT_BF16")
    try:
        return lists_bf16(_CPUINFO.read_text())
    except OSError:
        return False


def lists_bf16(cpuinfo: str) -> bool:
    """Return whether Linux's description of an Arm machine lists the extension for every processor."""
    lists = [line.split(":", 1)[1].split() for line in cpuinfo.splitlines() if line.startswith("Features")]
    return bool(lists) and all("bf16" in names for names in lists)


def features() -> frozenset[str]:
    """Return the names of instruction sets that Linux lists for every processor of an x86 machine, as LLVM
    spells them."""
    try:
        lines = _CPUINFO.read_text().splitlines()
    except OSError:
        return frozenset()
    lists = [line.split(":", 1)[1].split() for line in lines if line.startswith("flags")]
    common = set.intersection(*map(set, lists)) if lists else set()
    return frozenset(name.replace("_", "") for name in common)


def _of_macos(name: str) -> bool:
    value, size = ctypes.c_int(0), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
    status = ctypes.CDLL(None).sysctlbyname(name.encode(), ctypes.byref(value), ctypes.byref(size), None, 0)
    return status == 0 and value.value == 1


@record
class InstructionSet(Target):
    """A target whose programs are machine code: LLVM's description of it, and properties for the emitters.

    ``registers`` is the number of vector registers, ``wide_panel_rows`` the rows of a contraction's tile with one more
    vector (0: none). ``dot`` is LLVM's intrinsic that adds the products of pairs of bfloat16 to a vector of float32, if
    there is one. ``effort`` is LLVM's optimization level.
    """

    triple: str
    cpu: str
    features: str
    registers: int
    wide_panel_rows: int
    has_masks: bool  # predicate registers: masked loads and stores are free
    dot: str = ""
    effort: int = 2

    def machine(self) -> llvm.TargetMachine:
        """Return a new LLVM target machine for this row."""
        return _machine(self)

    @property
    def runs_here(self) -> bool:
        """True if this machine can execute the code."""
        return self.name in _runnable()


AVX512 = InstructionSet(
    "avx512", "float32", 64, 6, 4, "x86_64-unknown-linux-gnu", "x86-64-v4", "-prefer-256-bit", 32, 0, has_masks=True
)
AVX2 = InstructionSet("avx2", "float32", 32, 6, 2, "x86_64-unknown-linux-gnu", "x86-64-v3", "", 16, 4, has_masks=False)
NEON = InstructionSet(
    "neon", "float32", 16, 8, 3, "aarch64-unknown-linux-gnu", "neoverse-n1", "", 32, 0, has_masks=False
)

AVX512_BF16 = replace(
    AVX512,
    name="avx512_bf16",
    precision="vdpbf16ps",
    features=f"{AVX512.features},+avx512bf16",
    dot="llvm.x86.avx512bf16.dpbf16ps.512",
)
NEON_BF16 = replace(
    NEON, name="neon_bf16", precision="bfdot", features="+bf16", dot="llvm.aarch64.neon.bfdot.v4f32.v8bf16"
)

TARGETS = (AVX512_BF16, AVX512, AVX2, NEON_BF16, NEON)

SWITCH = Switch(
    "target", one_of("host", *(row.name for row in TARGETS)), "host", "Instruction set; host = the best one there is."
)
EFFORT = Switch(
    "effort", whole(0, 3), 2, "LLVM's optimization level; 0 compiles in a third of the time. Results are the same bits."
)


def _machine(target: InstructionSet) -> llvm.TargetMachine:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm_target = llvm.Target.from_triple(target.triple)
    return llvm_target.create_target_machine(
        cpu=target.cpu, features=target.features, opt=target.effort, reloc="pic", codemodel="small"
    )


@functools.cache
def process_triple() -> str:
    """Return the triple of the code this process runs."""
    import llvmlite.binding as llvm

    return str(llvm.get_process_triple())


@functools.cache
def _runnable() -> tuple[str, ...]:
    """Return the names of the rows this machine can run, best first."""
    import llvmlite.binding as llvm

    return runnable(process_triple(), {f for f, there in llvm.get_host_cpu_features().items() if there})


def described() -> InstructionSet:
    """Return the row chosen by the switches, without LLVM: for uses that generate no machine code. ``"host"`` is the
    best row of this machine by the operating system's description."""
    if SWITCH.value != "host":
        name = SWITCH.value
    else:
        name = next(iter(runnable(platform.machine(), features())), AVX2.name)
    return next(row for row in TARGETS if row.name == name)


def runnable(triple: str, features: Set[str]) -> tuple[str, ...]:
    """Return the names of the rows that a machine with these LLVM features can run, best first."""
    if triple.startswith(("aarch64", "arm64")):
        dots = "bf16" in features or has_arm_bf16()  # LLVM does not detect it on every system
        return (NEON_BF16.name, NEON.name) if dots else (NEON.name,)
    names = []
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= features:
        names += [AVX512_BF16.name, AVX512.name] if "avx512bf16" in features else [AVX512.name]
    if {"avx2", "fma"} <= features:
        names.append(AVX2.name)
    return tuple(names)


def _here(row: InstructionSet) -> InstructionSet:
    """Return ``row`` with this system's triple (object format, calling convention) where the machine can run it."""
    if row.runs_here and row.triple != process_triple():
        return replace(row, triple=process_triple())
    return row


def by_name(name: str) -> InstructionSet:
    """Return the row called ``name``; ``"host"`` is the best row this machine can run."""
    if name == "host":
        return host()
    for row in TARGETS:
        if row.name == name:
            return _here(row)
    raise ValueError(f"No target is called '{name}'; there are host, {', '.join(t.name for t in TARGETS)}.")


def chosen() -> InstructionSet:
    """Return the row chosen by the switches."""
    row = by_name(SWITCH.value)
    return row if row.effort == EFFORT.value else replace(row, effort=EFFORT.value)


def in_force() -> InstructionSet:
    """Return the row of the context in force, whose device must be one with machine code."""
    target = context.current().target
    if not isinstance(target, InstructionSet):
        raise DeviceError(f"[cpu] there is no machine code for the target '{target.name}'.")
    return target


@functools.cache
def host() -> InstructionSet:
    """Return the best row this machine can run."""
    for row in TARGETS:
        if row.runs_here:
            return _here(row)
    raise RuntimeError(
        f"Runnel needs AVX2 with FMA, AVX-512 or NEON; this machine ({process_triple()}) has none of them."
    )
