"""A reader of object files: the sections, symbols and relocations of relocatable 64-bit ELF files, as far as LLVM uses
them for generated code ("System V ABI", chapters 4 and 5).
"""

from __future__ import annotations

import struct
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
    """The parsed object file. VerifierError if it is malformed, or has features that generated code does not use."""
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
