"""A reader of object files: sections, symbols and relocations of relocatable 64-bit ELF files, and each relocation's
rule.

It reads as much of the format as LLVM uses for generated code ("System V ABI", chapters 4 and 5). The relocations
follow the "System V ABI, AMD64 Architecture Processor Supplement", section 4.4, and "ELF for the Arm 64-bit
Architecture", section 5.7. S is a symbol's address, A the addend, P the address that is written, G the address of a
word that holds S.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

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
