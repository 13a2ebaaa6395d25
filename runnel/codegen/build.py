"""LLVM text → object code → address, for the target in force. Where lowering hands its kernels over.

Kernels may call the contraction functions by name; those are built when the first kernel that mentions one comes by.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Final

from runnel.codegen import contract
from runnel.codegen import target as targets
from runnel.codegen.target import Target
from runnel.core import dtypes
from runnel.core.errors import DeviceError
from runnel.runtime.compiler import Compiler

_LIBRARY: Final[dict[str, Callable[[Target], str]]] = {
    symbol: functools.partial(contract.emit_module, dtypes.by_name(name)) for name, symbol in contract.SYMBOLS.items()
}


@functools.cache
def compiler(target: Target) -> Compiler:
    """The compiler for ``target``."""
    identity = f"{target.name} {target.triple} {target.cpu} {target.features}"
    return Compiler(identity, target.machine)


def addresses(modules: Sequence[tuple[str, str]]) -> list[int]:
    """The address of each (symbol, LLVM module text); the module defines that one global symbol."""
    target = targets.current()
    if not target.runs_here:
        raise DeviceError(f"Code for '{target.name}' cannot run on this machine; it can only be compiled and read.")
    imports = {symbol: functools.partial(_provided, symbol, target) for symbol in _LIBRARY}
    return compiler(target).addresses(modules, imports)


@functools.cache
def _provided(symbol: str, target: Target) -> int:
    return compiler(target).addresses([(symbol, _LIBRARY[symbol](target))], {})[0]


def object_code(text: str) -> bytes:
    """The object file of one module."""
    return compiler(targets.current()).object_code(text)


def assembly(text: str) -> str:
    """The assembly of one module."""
    return compiler(targets.current()).assembly(text)
