"""The compiler's queries for programs of the CPU, without LLVM: the interpreter runs the same programs."""

from __future__ import annotations

from runnel.backends.cpu.codegen import contract


class CpuPlanning:
    """The part of a backend, other than its target, that plans depend on."""

    product_scratch = contract.SCRATCH
    packs_columns = staticmethod(contract.packs_columns)
