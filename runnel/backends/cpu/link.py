"""The linker: loads object code into this process and returns the addresses of its functions.

A :class:`Function` is an address that keeps its code alive. Objects that are linked together share pages. The pages
are written first and executable afterwards, never both, and are freed when nothing refers to their functions any more.
They are not freed at the end of the interpreter, since threads may still run in them.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import struct
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Final

from runnel.backends.cpu import elf
from runnel.core.errors import VerifierError
from runnel.core.records import record

_READ, _WRITE, _EXECUTE = 1, 2, 4  # PROT_… of <sys/mman.h>, the same on all systems
_FAILED: Final = ctypes.c_void_p(-1).value


@record(frozen=False)
class Statistics:
    """Blocks of pages that hold machine code now, and their bytes."""

    blocks: int = 0
    nbytes: int = 0


statistics: Final = Statistics()


class Pages:
    """Zeroed pages for ``nbytes`` bytes, at ``address``, to be written and then made read-only."""

    __slots__ = ("__weakref__", "address", "nbytes")

    def __init__(self, nbytes: int) -> None:
        self.nbytes: Final = whole_pages(nbytes)
        library = _library()
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self.address: Final[int] = library.mmap(None, self.nbytes, _READ | _WRITE, flags, -1, 0)
        if self.address == _FAILED:
            raise MemoryError(f"{self.nbytes} bytes for machine code could not be allocated: {_reason()}.")
        statistics.blocks += 1
        statistics.nbytes += self.nbytes
        weakref.finalize(self, _give_back, self.address, self.nbytes).atexit = False

    def fill(self, content: bytes | bytearray, executable: int) -> None:
        """Write ``content``, and make the first ``executable`` bytes executable and read-only."""
        ctypes.memmove(self.address, bytes(content), len(content))
        if _library().mprotect(self.address, whole_pages(executable), _READ | _EXECUTE):
            raise MemoryError(f"Memory cannot be made executable here: {_reason()}.")


def whole_pages(nbytes: int) -> int:
    """``nbytes``, rounded up to pages."""
    return -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE


def _give_back(address: int, nbytes: int) -> None:
    _library().munmap(address, nbytes)
    statistics.blocks -= 1
    statistics.nbytes -= nbytes


@functools.cache
def _library() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    size, address, number = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
    library.mmap.argtypes = (address, size, number, number, number, ctypes.c_long)
    library.munmap.argtypes = (address, size)
    library.mprotect.argtypes = (address, size, number)
    return library


def _reason() -> str:
    return os.strerror(ctypes.get_errno())


_SLOT: Final = 8  # bytes of an address


class Library:
    """Code in memory, with references to the code it calls."""

    __slots__ = ("__weakref__", "_imports", "pages")

    def __init__(self, pages: Pages, imports: Sequence[Function]) -> None:
        self.pages: Final = pages
        self._imports = imports


class Function(int):
    """The address of a function. A reference to it keeps the code alive."""

    library: Library

    @staticmethod
    def of(library: Library, address: int) -> Function:
        function = Function(address)
        function.library = library
        return function


def link(objects: Sequence[tuple[str, bytes]], imports: Mapping[str, Function]) -> list[Function]:
    """Return the functions of (symbol, object code). Each object defines that one global symbol; others come from
    ``imports`` or the process. VerifierError if an object is damaged, or a symbol is undefined."""
    try:
        return _linked([symbol for symbol, _ in objects], [elf.parse(code) for _, code in objects], imports)
    except (VerifierError, OverflowError, struct.error) as error:
        names = ", ".join(symbol for symbol, _ in objects)
        raise VerifierError(f"Generated code for {names} could not be linked: {error}.") from error


def _linked(names: Sequence[str], files: Sequence[elf.ObjectFile], imports: Mapping[str, Function]) -> list[Function]:
    layout = _Layout(files)
    offsets = [layout.offset(number, name, file) for number, (name, file) in enumerate(zip(names, files, strict=True))]
    pages = Pages(layout.nbytes)
    image = bytearray(layout.nbytes)
    for number, file in enumerate(files):
        _Loading(file, number, layout, image, pages.address, imports).load()
    pages.fill(image, layout.written_from)
    library = Library(pages, tuple(imports.values()))
    return [Function.of(library, pages.address + offset) for offset in offsets]


class _Layout:
    """The layout of the pages: code and constants, then stubs and slots, then writable data."""

    def __init__(self, files: Sequence[elf.ObjectFile]) -> None:
        self.starts: dict[tuple[int, int], int] = {}
        self.stubs: dict[tuple[int, int], int] = {}  # (file, symbol) → code that jumps to it, followed by its address
        end = self._place(files, 0, is_written=False)
        for number, file in enumerate(files):
            machine = _machine(file)
            size = -(-len(machine.jump) // _SLOT) * _SLOT + _SLOT
            for r in file.relocations:
                rule = _rule(machine, r.kind)
                outside = file.symbols[r.symbol].section is None
                if (rule.through or (rule.is_call and outside)) and (number, r.symbol) not in self.stubs:
                    end = -(-end // _SLOT) * _SLOT
                    self.stubs[number, r.symbol] = end
                    end += size
        self.written_from = end
        self.nbytes = self._place(files, whole_pages(end), is_written=True)

    def offset(self, number: int, name: str, file: elf.ObjectFile) -> int:
        """Return the offset of a symbol that the object defines."""
        for symbol in file.symbols:
            if symbol.name == name and symbol.section is not None:
                return self.starts[number, symbol.section] + symbol.value
        raise VerifierError(f"an object does not define {name}")

    def _place(self, files: Sequence[elf.ObjectFile], end: int, *, is_written: bool) -> int:
        for number, file in enumerate(files):
            for index, section in file.sections.items():
                if section.is_written is is_written:
                    end = -(-end // section.alignment) * section.alignment
                    self.starts[number, index] = end
                    end += section.size
        return end


class _Loading:
    """Copies one object file into the image of the pages at ``base``."""

    def __init__(
        self,
        file: elf.ObjectFile,
        number: int,
        layout: _Layout,
        image: bytearray,
        base: int,
        imports: Mapping[str, Function],
    ) -> None:
        self.file, self.number, self.layout = file, number, layout
        self.image, self.base, self.imports = image, base, imports

    def load(self) -> None:
        machine, starts = _machine(self.file), self.layout.starts
        for index, section in self.file.sections.items():
            start = starts[self.number, index]
            self.image[start : start + len(section.content)] = section.content
        for (number, symbol), stub in self.layout.stubs.items():
            if number == self.number:
                code = machine.jump + self._address(symbol).to_bytes(_SLOT, "little")
                slot = self._slot(machine, stub)
                self.image[slot - len(machine.jump) : slot + _SLOT] = code
        for r in self.file.relocations:
            rule = _rule(machine, r.kind)
            offset = starts[self.number, r.section] + r.offset
            stub = self.layout.stubs.get((self.number, r.symbol), -1)
            if rule.through:
                target = self.base + self._slot(machine, stub)
            elif rule.is_call and stub >= 0:
                target = self.base + self._slot(machine, stub) - len(machine.jump)
            else:
                target = self._address(r.symbol)
            rule.write(self.image, offset, target + r.addend, self.base + offset)

    @staticmethod
    def _slot(machine: elf.Machine, stub: int) -> int:
        """Return the offset of the address that follows a stub's code."""
        return stub + -(-len(machine.jump) // _SLOT) * _SLOT

    def _address(self, number: int) -> int:
        symbol = self.file.symbols[number]
        if symbol.section is not None:
            return self.base + self.layout.starts[self.number, symbol.section] + symbol.value
        function = self.imports.get(symbol.name)
        return _of_process(symbol.name) if function is None else int(function)


def _machine(file: elf.ObjectFile) -> elf.Machine:
    machine = elf.MACHINES.get(file.machine)
    if machine is None:
        raise VerifierError(f"object code for the machine of ELF's number {file.machine} cannot be loaded")
    return machine


def _rule(machine: elf.Machine, kind: int) -> elf.Rule:
    rule = machine.rules.get(kind)
    if rule is None:
        raise VerifierError(f"object code has a relocation of kind {kind}, which generated code does not use")
    return rule


@functools.cache
def _process() -> Any:
    return ctypes.CDLL(None)


def _of_process(name: str) -> int:
    """Return the address of a function of the process: memcpy and the like, and the system calls of the driver."""
    try:
        return ctypes.cast(getattr(_process(), name), ctypes.c_void_p).value or 0
    except AttributeError:
        raise VerifierError(
            f"Generated code could not be linked: there is no function {name} in the process."
        ) from None
