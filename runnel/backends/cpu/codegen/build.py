"""LLVM text → machine code → address, for the target in force: the entrance to code generation.

Kernels may call the contraction functions by name; those are built together with the first kernel that calls them.
Machine code is looked up by the kernel's name in memory, and otherwise loaded from disk or compiled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from runnel.backends import context
from runnel.backends.cpu.codegen import contract, dot_contract, nest, products
from runnel.backends.cpu.compiler import Compiler, Functions, Module, of_text
from runnel.backends.cpu.link import Function
from runnel.backends.cpu.target import InstructionSet, in_force
from runnel.backends.host import objects
from runnel.core import dtypes
from runnel.core.errors import DeviceError
from runnel.loops.ir import Kernel

_LIBRARY: Final[dict[str, Callable[[InstructionSet], str]]] = {
    symbol: functools.partial(contract.emit_module, dtypes.by_name(name)) for name, symbol in contract.SYMBOLS.items()
}
_LIBRARY[dot_contract.SYMBOL] = dot_contract.emit_module


@functools.cache
def compiler(target: InstructionSet) -> Compiler:
    """Return the compiler for ``target``."""
    identity = f"{target.name} {target.triple} {target.cpu} {target.features} {target.effort}"
    return Compiler(identity, target.machine)


def addresses(modules: Sequence[tuple[str, str]]) -> list[Function]:
    """Return the address of each (symbol, LLVM module text); the module defines that one global symbol."""
    return _linked(lambda imports: [of_text(symbol, text, imports) for symbol, text in modules])


def kernels(requested: Sequence[Kernel]) -> list[Function]:
    """Return the address of each kernel. Its name identifies its code: its text is generated only if it must be
    compiled."""
    target = in_force()
    texts = [functools.partial(nest.emit_kernel, kernel, target) for kernel in requested]
    return _linked(
        lambda _: [_module(k.name, products.symbols(k), text) for k, text in zip(requested, texts, strict=True)]
    )


def filed(requested: Sequence[tuple[str, Iterable[str]]]) -> list[Function]:
    """Return the address of each kernel, given its name and the symbols that its code calls; LookupError if it would
    have to be compiled."""

    def refuse() -> str:
        raise LookupError("There is no machine code of a kernel.")

    return _linked(lambda _: [_module(name, called, refuse) for name, called in requested])


def _module(name: str, called: Iterable[str], text: Callable[[], str]) -> Module:
    return Module(name, f"kernel {name} by {emitters()}", text, frozenset(called))


def compile_only(requested: Sequence[Kernel], symbols: Iterable[str] = ()) -> None:
    """Compile kernels and functions of the library in the context in force, without linking them: for archives
    (``prebuilt``)."""
    target, cache = in_force(), context.current().cache
    modules = {k.name: _module(k.name, (), functools.partial(nest.emit_kernel, k, target)) for k in requested}
    compiler(target).compile(modules | {symbol: _library_module(symbol, target, cache) for symbol in symbols})


def emitters() -> str:
    """Return a digest of the code generator: the sources of these two packages."""
    return objects.digest("backends/cpu", "loops")


def _linked(modules: Callable[[Iterable[str]], list[Module]]) -> list[Function]:
    target = in_force()
    if not target.runs_here:
        raise DeviceError(f"Code for '{target.name}' cannot run on this machine; it can only be compiled and read.")
    cache = context.current().cache
    imports = {symbol: functools.partial(_provided, symbol, target, cache) for symbol in _LIBRARY}
    return compiler(target).link(modules(imports), imports)


@functools.cache
def _provided(symbol: str, target: InstructionSet, cache: int) -> Function:
    return compiler(target).link([_library_module(symbol, target, cache)], {})[0]


def _library_module(symbol: str, target: InstructionSet, cache: int) -> Module:
    identity = f"library {symbol} for {cache} bytes of cache by {emitters()}"
    return Module(symbol, identity, functools.partial(library_text, symbol, target))


def library_text(symbol: str, target: InstructionSet) -> str:
    """Return the module of a function that kernels call by its name."""
    return _LIBRARY[symbol](target)


def object_code(text: str) -> bytes:
    """Return the object file of one module."""
    return compiler(in_force()).object_code(text)


def assembly(text: str) -> str:
    """Return the assembly of one module."""
    return compiler(in_force()).assembly(text)


_FUNCTIONS: Final[Functions[tuple[str, InstructionSet]]] = Functions()  # by name of kernel


def kernel_functions(requested: Sequence[Kernel]) -> list[Function]:
    """Return the machine code of each kernel; new ones are compiled, or loaded from the cache, together."""
    by_name = {kernel.name: kernel for kernel in requested}
    return _functions(list(by_name), lambda new: kernels([by_name[name] for name in new]))


def filed_functions(kernels: Sequence[tuple[str, tuple[str, ...]]]) -> list[Function]:
    """Return the same for kernels known only by name and by the symbols they call; LookupError if the cache lacks the
    machine code of one."""
    symbols_of = dict(kernels)
    return _functions(list(symbols_of), lambda new: filed([(name, symbols_of[name]) for name in new]))


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
