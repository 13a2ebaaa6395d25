"""The linker: loads object code into this process and returns the addresses of its functions.

A :class:`Function` is an address that keeps its code alive. Objects that are linked together share pages. The pages
are written first and executable afterwards, never both, and are freed when nothing refers to their functions any more.
They are not freed at the end of the interpreter, since threads may still run in them.

The reader knows as much of relocatable 64-bit ELF files as LLVM uses for generated code ("System V ABI", chapters 4 and
5). The relocations follow the "System V ABI, AMD64 Architecture Processor Supplement", section 4.4, and "ELF for the
Arm 64-bit Architecture", section 5.7. S is a symbol's address, A the addend, P the address that is written, G the
address of a word that holds S.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import struct
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from runnel.core.errors import VerifierError
from runnel.core.records import record

_MAGIC: Final = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian, version 1
_RELOCATABLE: Final = 1
_SECTION, _SYMBOL, _RELOCATION = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ"), struct.Struct("<QQq")
_SYMBOLS, _ADDENDS, _NO_BITS, _RELOCATIONS, _UNWINDING = 2, 4, 8, 9, 0x70000001  # types of sections
_WRITE, _ALLOC = 1, 2  # flags of sections
_UNDEFINED, _RESERVED = 0, 0xFF00  # sections that symbols are in
_LARGEST, _COARSEST = 1 << 28, 4096  # most bytes of a section, and its coarsest alignment
_READ_ONLY_ONCE_RELOCATED: Final = b".data.rel.ro"


class Section(NamedTuple):
    """A section that is loaded; ``size`` exceeds the length of ``content`` where the rest is 0."""

    content: bytes
    size: int
    alignment: int
    is_written: bool


class Symbol(NamedTuple):
    """``section`` is a number in ``sections``, and ``value`` counts from its beginning; None: defined elsewhere."""

    name: str
    section: int | None
    value: int


class Relocation(NamedTuple):
    """A field at ``offset`` of a section that depends on the address of a symbol and ``addend``."""

    section: int
    offset: int
    kind: int
    symbol: int
    addend: int


@record
class ObjectFile:
    machine: int
    sections: dict[int, Section]
    symbols: list[Symbol]
    relocations: list[Relocation]


def parse(code: bytes) -> ObjectFile:
    """Return the parsed object file. VerifierError if it is malformed, or has features that generated code does not
    use."""
    try:
        return _parse(code)
    except (struct.error, IndexError, ValueError) as error:
        raise VerifierError(f"the object file is damaged: {error}") from error


def _parse(code: bytes) -> ObjectFile:
    if not code.startswith(_MAGIC):
        raise ValueError("it does not begin as an ELF file of 64 bits")
    kind, machine = struct.unpack_from("<HH", code, 16)
    (start,) = struct.unpack_from("<Q", code, 40)
    size, count, names_in = struct.unpack_from("<HHH", code, 58)
    if kind != _RELOCATABLE or size != _SECTION.size:
        raise ValueError("it is not relocatable")
    headers = [_SECTION.unpack_from(code, start + i * size) for i in range(count)]

    def content(header: tuple[int, ...]) -> bytes:
        content_bytes = code[header[4] : header[4] + header[5]]
        if len(content_bytes) != header[5]:
            raise ValueError("it ends too early")
        return content_bytes

    def name(names: bytes, at: int) -> bytes:
        return names[at : names.index(b"\0", at)]

    names = content(headers[names_in])
    sections: dict[int, Section] = {}
    symbols: list[Symbol] = []
    for i, header in enumerate(headers):
        kind, flags, length, alignment = header[1], header[2], header[5], header[8]
        if flags & _ALLOC and (length > _LARGEST or alignment > _COARSEST):
            raise ValueError("a section is too large")
        if flags & _ALLOC and kind != _UNWINDING and name(names, header[0]) != b".eh_frame":
            is_written = bool(flags & _WRITE) and not name(names, header[0]).startswith(_READ_ONLY_ONCE_RELOCATED)
            sections[i] = Section(b"" if kind == _NO_BITS else content(header), length, max(alignment, 1), is_written)
        elif kind == _RELOCATIONS:
            raise ValueError("it has relocations without addends")
    for header in headers:
        if header[1] == _SYMBOLS:
            strings = content(headers[header[6]])
            symbols = [_symbol(name(strings, s[0]), s, sections) for s in _SYMBOL.iter_unpack(content(header))]
    relocations = [
        Relocation(header[7], offset, info & 0xFFFFFFFF, info >> 32, addend)
        for header in headers
        if header[1] == _ADDENDS and header[7] in sections
        for offset, info, addend in _RELOCATION.iter_unpack(content(header))
    ]
    for r in relocations:
        if r.symbol >= len(symbols) or r.offset + 4 > len(sections[r.section].content):
            raise ValueError("a relocation leads out of it")
    return ObjectFile(machine, sections, symbols, relocations)


def _symbol(name: bytes, fields: tuple[int, ...], sections: dict[int, Section]) -> Symbol:
    section, value = fields[3], fields[4]
    if section in sections and value <= sections[section].size:
        return Symbol(name.decode(), section, value)
    if section != _UNDEFINED and section < _RESERVED and section in sections:
        raise ValueError("a symbol leads out of it")
    return Symbol(name.decode(), None, 0)


Write = Callable[[bytearray, int, int, int], None]  # (image, offset in it, S + A or G + A, P)


class Rule(NamedTuple):
    """``through``: whether the target is a word that holds the symbol's address. ``is_call``: whether a stub that jumps
    to the symbol may replace it."""

    write: Write
    through: bool = False
    is_call: bool = False


class Machine(NamedTuple):
    """``jump`` is code that jumps to the address in the 8 bytes after it."""

    rules: Mapping[int, Rule]
    jump: bytes


def _word(format: str, relative: bool) -> Write:
    size, least, most = struct.calcsize(format), *_range(format)

    def write(image: bytearray, offset: int, target: int, place: int) -> None:
        value = target - place if relative else target
        if not least <= value <= most:
            raise VerifierError(f"an address is out of reach: {value:#x} does not fit into {size} bytes")
        struct.pack_into(format, image, offset, value)

    return write


def _range(format: str) -> tuple[int, int]:
    bits = 8 * struct.calcsize(format)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if format[-1].islower() else (0, (1 << bits) - 1)


def _field(width: int, shift: int, reach: int, value: Callable[[int, int], int]) -> Write:
    """Return a field of an instruction of Arm: ``width`` bits from ``shift`` on hold ``value(target, place)``, which
    must be within ±2^(reach - 1); a ``reach`` of 0 is unlimited."""

    def write(image: bytearray, offset: int, target: int, place: int) -> None:
        number = value(target, place)
        if reach and not -(1 << reach - 1) <= number < 1 << reach - 1:
            raise VerifierError(f"an address is out of reach: {number:#x} does not fit into an instruction")
        (word,) = struct.unpack_from("<I", image, offset)
        mask = (1 << width) - 1
        struct.pack_into("<I", image, offset, word & ~(mask << shift) & 0xFFFFFFFF | (number & mask) << shift)

    return write


def _pages(image: bytearray, offset: int, target: int, place: int) -> None:
    """ADRP: the distance in pages of 4 KiB, in two fields."""
    number = (target >> 12) - (place >> 12)
    _field(2, 29, 0, lambda *_: number)(image, offset, target, place)
    _field(19, 5, 19, lambda *_: number >> 2)(image, offset, target, place)


def _low(scale: int) -> Write:
    """Return the low twelve bits of an address, as the offset of an instruction in units of 2^scale bytes."""
    return _field(12 - scale, 10, 0, lambda target, _: (target & 0xFFF) >> scale)


_branch: Final = _field(26, 0, 26, lambda target, place: (target - place) >> 2)

X86_64: Final = Machine(
    {
        1: Rule(_word("<Q", False)),  # R_X86_64_64
        2: Rule(_word("<i", True)),  # R_X86_64_PC32
        4: Rule(_word("<i", True), is_call=True),  # R_X86_64_PLT32
        9: Rule(_word("<i", True), through=True),  # R_X86_64_GOTPCREL
        24: Rule(_word("<q", True)),  # R_X86_64_PC64
        41: Rule(_word("<i", True), through=True),  # R_X86_64_GOTPCRELX
        42: Rule(_word("<i", True), through=True),  # R_X86_64_REX_GOTPCRELX
    },
    bytes.fromhex("ff2500000000"),  # jmp [rip]
)
AARCH64: Final = Machine(
    {
        257: Rule(_word("<Q", False)),  # R_AARCH64_ABS64
        260: Rule(_word("<q", True)),  # R_AARCH64_PREL64
        261: Rule(_word("<i", True)),  # R_AARCH64_PREL32
        275: Rule(_pages),  # R_AARCH64_ADR_PREL_PG_HI21
        277: Rule(_field(12, 10, 0, lambda target, _: target & 0xFFF)),  # R_AARCH64_ADD_ABS_LO12_NC
        278: Rule(_low(0)),  # R_AARCH64_LDST8_ABS_LO12_NC
        282: Rule(_branch, is_call=True),  # R_AARCH64_JUMP26
        283: Rule(_branch, is_call=True),  # R_AARCH64_CALL26
        284: Rule(_low(1)),  # R_AARCH64_LDST16_ABS_LO12_NC
        285: Rule(_low(2)),  # R_AARCH64_LDST32_ABS_LO12_NC
        286: Rule(_low(3)),  # R_AARCH64_LDST64_ABS_LO12_NC
        299: Rule(_low(4)),  # R_AARCH64_LDST128_ABS_LO12_NC
        311: Rule(_pages, through=True),  # R_AARCH64_ADR_GOT_PAGE
        312: Rule(_low(3), through=True),  # R_AARCH64_LD64_GOT_LO12_NC
    },
    bytes.fromhex("5000005800021fd6"),  # ldr x16, #8; br x16
)
MACHINES: Final[Mapping[int, Machine]] = {62: X86_64, 183: AARCH64}


_READABLE, _WRITABLE, _EXECUTABLE = 1, 2, 4  # PROT_… of <sys/mman.h>, the same on all systems
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
        self.address: Final[int] = library.mmap(None, self.nbytes, _READABLE | _WRITABLE, flags, -1, 0)
        if self.address == _FAILED:
            raise MemoryError(f"{self.nbytes} bytes for machine code could not be allocated: {_reason()}.")
        statistics.blocks += 1
        statistics.nbytes += self.nbytes
        weakref.finalize(self, _give_back, self.address, self.nbytes).atexit = False

    def fill(self, content: bytes | bytearray, executable: int) -> None:
        """Write ``content``, and make the first ``executable`` bytes executable and read-only."""
        ctypes.memmove(self.address, bytes(content), len(content))
        if _library().mprotect(self.address, whole_pages(executable), _READABLE | _EXECUTABLE):
            raise MemoryError(f"Memory cannot be made executable here: {_reason()}.")


def whole_pages(nbytes: int) -> int:
    """Round ``nbytes`` up to pages."""
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
        return _linked([symbol for symbol, _ in objects], [parse(code) for _, code in objects], imports)
    except (VerifierError, OverflowError, struct.error) as error:
        names = ", ".join(symbol for symbol, _ in objects)
        raise VerifierError(f"Generated code for {names} could not be linked: {error}.") from error


def _linked(names: Sequence[str], files: Sequence[ObjectFile], imports: Mapping[str, Function]) -> list[Function]:
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

    def __init__(self, files: Sequence[ObjectFile]) -> None:
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

    def offset(self, number: int, name: str, file: ObjectFile) -> int:
        """Return the offset of a symbol that the object defines."""
        for symbol in file.symbols:
            if symbol.name == name and symbol.section is not None:
                return self.starts[number, symbol.section] + symbol.value
        raise VerifierError(f"an object does not define {name}")

    def _place(self, files: Sequence[ObjectFile], end: int, *, is_written: bool) -> int:
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
        file: ObjectFile,
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
    def _slot(machine: Machine, stub: int) -> int:
        """Return the offset of the address that follows a stub's code."""
        return stub + -(-len(machine.jump) // _SLOT) * _SLOT

    def _address(self, number: int) -> int:
        symbol = self.file.symbols[number]
        if symbol.section is not None:
            return self.base + self.layout.starts[self.number, symbol.section] + symbol.value
        function = self.imports.get(symbol.name)
        return _of_process(symbol.name) if function is None else int(function)


def _machine(file: ObjectFile) -> Machine:
    machine = MACHINES.get(file.machine)
    if machine is None:
        raise VerifierError(f"object code for the machine of ELF's number {file.machine} cannot be loaded")
    return machine


def _rule(machine: Machine, kind: int) -> Rule:
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
