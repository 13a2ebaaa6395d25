"""Objects into memory: links object code into this process and says where its functions stand.

There is one LLVM JIT for the process and its libraries are never unloaded: an address stays good until the process
ends, also for worker threads that are still parked in generated code while the interpreter shuts down.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from runnel.core.errors import VerifierError


class _Linker:
    """LLVM's JIT, created when first needed."""

    def __init__(self) -> None:
        self._jit: Any = None
        self._names = itertools.count()
        self._libraries: list[Any] = []

    def link(self, objects: Mapping[str, bytes], imports: Mapping[str, int]) -> dict[str, int]:
        import llvmlite.binding as llvm

        if self._jit is None:
            llvm.initialize_all_targets()
            llvm.initialize_all_asmprinters()
            machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic", codemodel="small")
            # JITLink puts a library into one stretch of memory, so that near relocations always reach. It covers ELF
            # and Mach-O.
            self._jit = llvm.create_lljit_compiler(machine, use_jit_link=sys.platform != "win32")
        builder = llvm.JITLibraryBuilder()
        for symbol, code in objects.items():
            builder.add_object_img(code).export_symbol(symbol)
        for symbol, address in imports.items():
            builder.import_symbol(symbol, address)
        builder.add_current_process()  # memcpy and its like, and the system calls of the driver
        try:
            library = builder.link(self._jit, f"runnel.{next(self._names)}")
        except RuntimeError as error:
            raise VerifierError(f"Generated code for {', '.join(objects)} could not be linked: {error}") from error
        self._libraries.append(library)
        return {symbol: library[symbol] for symbol in objects}


_LINKER = _Linker()


def link(objects: Sequence[tuple[str, bytes]], imports: Mapping[str, int]) -> list[int]:
    """The address of each (symbol, object code). Each object defines that one global symbol; others come from
    ``imports`` or the process. The caller sees to it that one thread links at a time.
    """
    addresses = [0] * len(objects)
    waiting = list(enumerate(objects))
    while waiting:
        batch: dict[str, tuple[int, bytes]] = {}
        rest = []
        for position, (symbol, code) in waiting:  # a name can be defined once in a library
            if symbol in batch:
                rest.append((position, (symbol, code)))
            else:
                batch[symbol] = position, code
        found = _LINKER.link({symbol: code for symbol, (_, code) in batch.items()}, imports)
        for symbol, (position, _) in batch.items():
            addresses[position] = found[symbol]
        waiting = rest
    return addresses
