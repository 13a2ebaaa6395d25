"""The machines code is generated for: one row each. LLVM itself is imported when a machine is first asked for."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from runnel.core import switches

if TYPE_CHECKING:
    import llvmlite.binding as llvm


@dataclass(frozen=True, slots=True)
class Target:
    """An instruction set: what LLVM is told, and what the emitters need to know of it.

    ``vector_bytes`` is the width of a register, ``registers`` how many there are; ``tile_rows`` × ``tile_vectors`` is
    the contraction micro-kernel's block of accumulators, and ``odd_rows`` the rows of one with a vector more (0: none).
    """

    name: str
    triple: str
    cpu: str
    features: str
    vector_bytes: int
    registers: int
    tile_rows: int
    tile_vectors: int
    odd_rows: int
    has_masks: bool  # predicate registers: masked loads and stores cost nothing

    def machine(self) -> llvm.TargetMachine:
        """A new LLVM target machine for this row."""
        return _machine(self)

    @property
    def runs_here(self) -> bool:
        """Whether this machine can execute the code."""
        return self.name in _runnable()


AVX512 = Target("avx512", "x86_64-unknown-linux-gnu", "x86-64-v4", "-prefer-256-bit", 64, 32, 6, 4, 0, True)
AVX2 = Target("avx2", "x86_64-unknown-linux-gnu", "x86-64-v3", "", 32, 16, 6, 2, 4, False)
NEON = Target("neon", "aarch64-unknown-linux-gnu", "neoverse-n1", "", 16, 32, 8, 3, 0, False)

TARGETS = (AVX512, AVX2, NEON)


def _machine(target: Target) -> llvm.TargetMachine:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    found = llvm.Target.from_triple(target.triple)
    return found.create_target_machine(cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="small")


@functools.cache
def process_triple() -> str:
    """The triple of the code this process runs."""
    import llvmlite.binding as llvm

    return str(llvm.get_process_triple())


@functools.cache
def _runnable() -> tuple[str, ...]:
    """The names of the rows this machine can run, best first."""
    import llvmlite.binding as llvm

    if process_triple().startswith(("aarch64", "arm64")):
        return (NEON.name,)
    features = llvm.get_host_cpu_features()
    names = []
    if all(features.get(f) for f in ("avx512f", "avx512bw", "avx512dq", "avx512vl")):
        names.append(AVX512.name)
    if features.get("avx2") and features.get("fma"):
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


@functools.cache
def host() -> Target:
    """The best row this machine can run."""
    for row in TARGETS:
        if row.runs_here:
            return _here(row)
    raise RuntimeError(
        f"Runnel needs AVX2 with FMA, AVX-512 or NEON; this machine ({process_triple()}) has none of them."
    )


def current() -> Target:
    """The target the switch ``RUNNEL_TARGET`` asks for."""
    return by_name(switches.target.value)
