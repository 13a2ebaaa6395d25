"""The machines code is generated for: one row each. LLVM itself is imported when a machine is first asked for."""

from __future__ import annotations

import functools
import platform
from collections.abc import Set
from typing import TYPE_CHECKING

from runnel.backends.cpu import processor
from runnel.core.accepting import one_of, whole
from runnel.core.dtypes import DType
from runnel.core.records import record, replace
from runnel.core.switches import Switch

if TYPE_CHECKING:
    import llvmlite.binding as llvm


@record
class Target:
    """An instruction set: what LLVM is told, and what the emitters need to know of it.

    ``vector_bytes`` is the width of a register, ``registers`` how many there are; ``tile_rows`` × ``tile_vectors`` is
    the contraction micro-kernel's block of accumulators, and ``wide_panel_rows`` the rows of one with a vector more (0:
    none).
    ``dot`` is LLVM's intrinsic that adds the products of pairs of bfloat16 to a vector of float32, where there is one.
    ``effort`` is LLVM's optimization level.
    """

    name: str
    triple: str
    cpu: str
    features: str
    vector_bytes: int
    registers: int
    tile_rows: int
    tile_vectors: int
    wide_panel_rows: int
    has_masks: bool  # predicate registers: masked loads and stores cost nothing
    dot: str = ""
    effort: int = 2

    def machine(self) -> llvm.TargetMachine:
        """A new LLVM target machine for this row."""
        return _machine(self)

    def panel_columns(self, dtype: DType) -> int:
        """How many columns of the second operand a tile of the contraction takes: the width of a packed panel."""
        return self.tile_vectors * self.vector_bytes // dtype.itemsize

    @property
    def precision(self) -> str:
        """How products of bfloat16 are rounded: ``"float32"``, each by itself, or as a dot instruction does pairs."""
        if not self.dot:
            return "float32"
        return "vdpbf16ps" if self.triple.startswith("x86") else "bfdot"

    @property
    def runs_here(self) -> bool:
        """Whether this machine can execute the code."""
        return self.name in _runnable()


AVX512 = Target("avx512", "x86_64-unknown-linux-gnu", "x86-64-v4", "-prefer-256-bit", 64, 32, 6, 4, 0, True)
AVX2 = Target("avx2", "x86_64-unknown-linux-gnu", "x86-64-v3", "", 32, 16, 6, 2, 4, False)
NEON = Target("neon", "aarch64-unknown-linux-gnu", "neoverse-n1", "", 16, 32, 8, 3, 0, False)

AVX512_BF16 = replace(
    AVX512, name="avx512_bf16", features=f"{AVX512.features},+avx512bf16", dot="llvm.x86.avx512bf16.dpbf16ps.512"
)
NEON_BF16 = replace(NEON, name="neon_bf16", features="+bf16", dot="llvm.aarch64.neon.bfdot.v4f32.v8bf16")

TARGETS = (AVX512_BF16, AVX512, AVX2, NEON_BF16, NEON)

SWITCH = Switch(
    "target", one_of("host", *(row.name for row in TARGETS)), "host", "Instruction set; host = the best one there is."
)
EFFORT = Switch(
    "effort", whole(0, 3), 2, "LLVM's optimization level; 0 compiles in a third of the time. Results are the same bits."
)


def _machine(target: Target) -> llvm.TargetMachine:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    found = llvm.Target.from_triple(target.triple)
    return found.create_target_machine(
        cpu=target.cpu, features=target.features, opt=target.effort, reloc="pic", codemodel="small"
    )


@functools.cache
def process_triple() -> str:
    """The triple of the code this process runs."""
    import llvmlite.binding as llvm

    return str(llvm.get_process_triple())


@functools.cache
def _runnable() -> tuple[str, ...]:
    """The names of the rows this machine can run, best first."""
    import llvmlite.binding as llvm

    return runnable(process_triple(), {f for f, there in llvm.get_host_cpu_features().items() if there})


def described() -> Target:
    """The row that the switches ask for, without LLVM: for who makes no machine code of it. ``"host"`` is the best row
    of this machine as the operating system describes it."""
    if SWITCH.value != "host":
        name = SWITCH.value
    else:
        name = next(iter(runnable(platform.machine(), processor.features())), AVX2.name)
    return next(row for row in TARGETS if row.name == name)


def runnable(triple: str, features: Set[str]) -> tuple[str, ...]:
    """The names of the rows that a machine with these features of LLVM's can run, best first."""
    if triple.startswith(("aarch64", "arm64")):
        dots = "bf16" in features or processor.has_arm_bf16()  # LLVM does not ask every system for it
        return (NEON_BF16.name, NEON.name) if dots else (NEON.name,)
    names = []
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= features:
        names += [AVX512_BF16.name, AVX512.name] if "avx512bf16" in features else [AVX512.name]
    if {"avx2", "fma"} <= features:
        names.append(AVX2.name)
    return tuple(names)


def _here(row: Target) -> Target:
    """``row`` with this system's triple (object format, calling convention) where the machine can run it."""
    if row.runs_here and row.triple != process_triple():
        return replace(row, triple=process_triple())
    return row


def by_name(name: str) -> Target:
    """The row called ``name``; ``"host"`` is the best row this machine can run."""
    if name == "host":
        return host()
    for row in TARGETS:
        if row.name == name:
            return _here(row)
    raise ValueError(f"No target is called '{name}'; there are host, {', '.join(t.name for t in TARGETS)}.")


def chosen() -> Target:
    """The row that the switches ask for."""
    row = by_name(SWITCH.value)
    return row if row.effort == EFFORT.value else replace(row, effort=EFFORT.value)


@functools.cache
def host() -> Target:
    """The best row this machine can run."""
    for row in TARGETS:
        if row.runs_here:
            return _here(row)
    raise RuntimeError(
        f"Runnel needs AVX2 with FMA, AVX-512 or NEON; this machine ({process_triple()}) has none of them."
    )
