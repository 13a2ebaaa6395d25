"""Parsers of settings: a value from code, or its text from the environment, to the value, or ValueError."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from runnel.core.records import record

T = TypeVar("T")

_UNITS: Final = {"": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
_MOST_BYTES: Final = 1 << 62


@record
class Accepted(Generic[T]):
    """``read`` gives the value or raises ValueError; ``what`` ends the sentence "expected …"."""

    what: str
    read: Callable[[Any], T]


def whole(least: int, most: int) -> Accepted[int]:
    """A whole number in a range."""

    def read(value: Any) -> int:
        if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,18}", value.strip()):
            value = int(value)
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise ValueError
        number = value.__index__()
        if not least <= number <= most:
            raise ValueError
        return int(number)

    return Accepted(f"a whole number from {least} to {most}", read)


def one_of(*names: str) -> Accepted[str]:
    """One of some words."""

    def read(value: Any) -> str:
        word = value.strip() if isinstance(value, str) else value
        if word not in names:
            raise ValueError
        return word

    return Accepted(f"one of {', '.join(names)}", read)


def _flag(value: Any) -> bool:
    word = value.strip().lower() if isinstance(value, str) else value
    if word in ("1", "true", "yes", "on") or word is True or word == 1:
        return True
    if word in ("0", "false", "no", "off") or word is False or word == 0:
        return False
    raise ValueError


def _byte_count(value: Any) -> int:
    if isinstance(value, str):
        match = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*([KMG]?B?)", value.strip().upper())
        if match is None or match[2] not in _UNITS or (not match[2] and "." in match[1]):
            raise ValueError
        whole_part, _, fraction = match[1].partition(".")
        unit = _UNITS[match[2]]
        value = int(whole_part) * unit + int(fraction or "0") * unit // 10 ** len(fraction)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_BYTES:
        raise ValueError
    return value


def _folder(value: Any) -> str:
    path = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not isinstance(path, str) or "\0" in path:
        raise ValueError
    path = os.path.expandvars(path.strip())
    unset = re.search(r"\$(\w+|\{[^}]*\})", path)
    if unset is not None:
        raise ValueError(f"{unset[0]} is not set")
    expanded = os.path.expanduser(path)
    if expanded.startswith("~"):
        raise ValueError(f"there is no home folder {path.partition('/')[0]}")
    return expanded


flag: Final = Accepted("0 or 1 (or false, no, off, true, yes, on)", _flag)
byte_count: Final = Accepted('a number of bytes, as 1000000, "512MB" or "1.5GB"', _byte_count)
folder: Final = Accepted("a folder, in which ~ and $NAME are expanded", _folder)
