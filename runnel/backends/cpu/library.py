"""The machine code of kernels by their names, for each target: what is there already, and what has to be made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from runnel.backends.cpu.codegen import build
from runnel.backends.cpu.functions import Functions
from runnel.backends.cpu.link import Function
from runnel.backends.cpu.target import InstructionSet, in_force
from runnel.loops.ir import Kernel

_FUNCTIONS: Final[Functions[tuple[str, InstructionSet]]] = Functions()  # by name of kernel


def kernel_functions(kernels: Sequence[Kernel]) -> list[Function]:
    """The machine code of each kernel; what is new is compiled, or loaded from the cache, together."""
    wanted = {kernel.name: kernel for kernel in kernels}
    return _functions(list(wanted), lambda new: build.kernels([wanted[name] for name in new]))


def filed_functions(kernels: Sequence[tuple[str, tuple[str, ...]]]) -> list[Function]:
    """The same for kernels of which only names and the symbols they call are known; LookupError if the cache lacks the
    machine code of one."""
    wanted = dict(kernels)
    return _functions(list(wanted), lambda new: build.filed([(name, wanted[name]) for name in new]))


def _functions(names: list[str], find: Callable[[list[str]], list[Function]]) -> list[Function]:
    """Two threads that miss the same kernel both find it, and each has one that is right."""
    goal = in_force()
    known = {name: function for name in names if (function := _FUNCTIONS.get((name, goal))) is not None}
    new = [name for name in names if name not in known]
    if new:
        found = dict(zip(new, find(new), strict=True))
        _FUNCTIONS.update(((name, goal), function) for name, function in found.items())
        known |= found
    return [known[name] for name in names]
