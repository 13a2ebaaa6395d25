"""What the compiler asks about programs for the CPU, answered without LLVM: the interpreter runs the same programs."""

from __future__ import annotations

from runnel.backends.cpu.codegen import contract


class CpuPlanning:
    """The part of a backend that plans depend on, beside its target."""

    product_scratch = contract.SCRATCH
    packs_columns = staticmethod(contract.packs_columns)
