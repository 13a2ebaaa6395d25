"""The switches: each declared once, with the accepted values, default and help. ``RUNNEL_<NAME>`` in the environment
sets the default, ``with switches.override(name=value):`` changes it for a block of code on all threads.

The environment is read once, when the package is imported; a variable that is empty counts as unset. There is nothing
else to configure; ``docs/debug/README.md`` lists the switches (a test compares).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar

from runnel.core import devices
from runnel.core.errors import SettingError
from runnel.core.records import record

ValueT = TypeVar("ValueT")

_UNITS: Final = {"": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
_MOST_BYTES: Final = 1 << 62


@record
class Accepted(Generic[ValueT]):
    """``read`` gives the value or raises ValueError; ``what`` ends the sentence "expected …"."""

    what: str
    read: Callable[[Any], ValueT]


def whole(least: int, most: int) -> Accepted[int]:
    """Accept a whole number in a range."""

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
    """Accept one of several words."""

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


T = TypeVar("T")

MOST_THREADS = 256  # of a program


class State:
    """The state derived from the switches. Each change of a switch replaces ``RESOLVED.state``."""

    __slots__ = ("context",)

    def __init__(self) -> None:
        self.context: Any = None  # see backends/context.py


class Resolved:
    """Holds the :class:`State` of the moment."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state = State()


RESOLVED = Resolved()


class Switch(Generic[T]):
    """One switch. Read it with ``switch.value``, write it with ``switch.set(value)``."""

    registry: dict[str, Switch[Any]] = {}  # noqa: RUF012 - the list docs/debug/README.md must agree with

    def __init__(self, name: str, accepted: Accepted[T], default: T, help: str) -> None:
        self.name = name
        self.help = help
        self.default = default
        self.accepted = accepted
        self.value: T = default
        text = os.environ.get(self.variable, "").strip()
        if text:
            self.value = self._checked(text, self.variable)
        Switch.registry[name] = self

    @property
    def variable(self) -> str:
        return f"RUNNEL_{self.name.upper()}"

    def set(self, value: Any) -> None:
        """Change it for good, on all threads."""
        self.value = self._checked(value, self.name)
        RESOLVED.state = State()

    def _checked(self, value: Any, where: str) -> T:
        try:
            return self.accepted.read(value)
        except ValueError as error:
            reason = f" ({error})" if str(error) else ""
            raise SettingError(f"[{where}] must be {self.accepted.what}; got {value!r}{reason}.") from None


num_threads = Switch(
    "num_threads", whole(0, MOST_THREADS), 0, "Threads of a program; 0 = what affinity mask and cgroup limit allow."
)
cache = Switch("cache", flag, True, "Keep compiled kernels and programs on disk.")
cache_dir = Switch("cache_dir", folder, "", "Folder of kernels and programs; empty = the user's cache folder.")
data_dir = Switch(
    "data_dir",
    folder,
    "",
    "Folder where data sets are looked for and downloads are kept; empty = the user's cache folder.",
)
cache_size = Switch(
    "cache_size", byte_count, 1 << 29, "The cache folder's bound in bytes; what was not used for longest goes first."
)
verify = Switch("verify", flag, False, "Check every graph, kernel and plan as it is made.")
debug = Switch(
    "debug", whole(0, 5), 0, "The ladder: 1 retraces and compilations, 2 passes, 3 kernels, 4 loop IR, 5 LLVM text."
)
eager = Switch("eager", flag, False, "Run compiled functions eagerly, line by line, for a debugger.")
check_nans = Switch("check_nans", flag, False, "Stop at the first op that makes a NaN or infinity, naming its line.")
device = Switch(
    "device", one_of(*(d.name for d in devices.devices())), "cpu", "Where new arrays are made, if nobody says where."
)
devices.connect(device)
stress = Switch(
    "stress", whole(0, 10**6), 0, "Random delays per thread up to this many microseconds before each kernel."
)


@contextlib.contextmanager
def override(**values: Any) -> Iterator[None]:
    """Set switches for the block: ``with override(verify=True): ...``."""
    unknown = sorted(set(values) - set(Switch.registry))
    if unknown:
        raise SettingError(f"No switch is called {', '.join(unknown)}; there are {', '.join(Switch.registry)}.")
    before = {name: Switch.registry[name].value for name in values}
    try:
        for name, value in values.items():
            Switch.registry[name].set(value)
        yield
    finally:
        for name, value in before.items():
            Switch.registry[name].set(value)
