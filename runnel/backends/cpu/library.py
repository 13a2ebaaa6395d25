"""The machine code of kernels by name, for each target: looked up in memory, else loaded or compiled."""

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
    """The machine code of each kernel; new ones are compiled, or loaded from the cache, together."""
    by_name = {kernel.name: kernel for kernel in kernels}
    return _functions(list(by_name), lambda new: build.kernels([by_name[name] for name in new]))


def filed_functions(kernels: Sequence[tuple[str, tuple[str, ...]]]) -> list[Function]:
    """The same for kernels known only by name and by the symbols they call; LookupError if the cache lacks the machine
    code of one."""
    symbols_of = dict(kernels)
    return _functions(list(symbols_of), lambda new: build.filed([(name, symbols_of[name]) for name in new]))


def _functions(names: list[str], find: Callable[[list[str]], list[Function]]) -> list[Function]:
    """Two threads that miss the same kernel may both link it; both copies are valid."""
    goal = in_force()
    known = {name: function for name in names if (function := _FUNCTIONS.get((name, goal))) is not None}
    new = [name for name in names if name not in known]
    if new:
        functions = dict(zip(new, find(new), strict=True))
        _FUNCTIONS.update(((name, goal), function) for name, function in functions.items())
        known |= functions
    return [known[name] for name in names]
