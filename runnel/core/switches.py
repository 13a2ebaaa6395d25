"""The switches: each declared once, with type, default and help. ``RUNNEL_<NAME>`` in the environment sets the default,
``with switches.override(name=value):`` changes it for a block of code on all threads.

There is nothing else to configure; ``docs/debugging.md`` lists them (a test compares).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Switch(Generic[T]):
    """One switch. Read it with ``switch.value``."""

    registry: dict[str, Switch[Any]] = {}  # noqa: RUF012 - the list docs/debugging.md must agree with

    def __init__(self, name: str, parse: Callable[[str], T], default: T, help: str) -> None:
        self.name = name
        self.help = help
        self.default = default
        self.parse = parse
        text = os.environ.get(self.variable)
        try:
            self.value: T = default if text is None else parse(text)
        except ValueError as error:
            raise ValueError(f"{self.variable}={text!r} cannot be read: {error}. {help}") from None
        Switch.registry[name] = self

    @property
    def variable(self) -> str:
        return f"RUNNEL_{self.name.upper()}"


def _flag(text: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off", ""):
        return False
    raise ValueError("expected 0 or 1")


def byte_count(text: str) -> int:
    """``"512MB"``, ``"1GB"`` or a plain number, in bytes."""
    units = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
    for unit, factor in units.items():
        if text.upper().endswith(unit):
            return int(float(text[: -len(unit)]) * factor)
    return int(text)


num_threads = Switch("num_threads", int, 0, "Threads of a program; 0 = what affinity mask and cgroup limit allow.")
target = Switch("target", str, "host", "Instruction set: host, avx512_bf16, avx512, avx2, neon_bf16 or neon.")
cache = Switch("cache", _flag, True, "Keep compiled kernels and programs on disk.")
cache_dir = Switch("cache_dir", str, "", "Folder of kernels and programs; empty = the user's cache folder.")
cache_size = Switch(
    "cache_size", byte_count, 1 << 29, "The cache folder's bound in bytes (512MB, 1GB); oldest go first."
)
verify = Switch("verify", _flag, False, "Check every graph, kernel and plan as it is made.")
debug = Switch("debug", int, 0, "The ladder: 1 retraces and compilations, 2 passes, 3 kernels, 4 loop IR, 5 LLVM text.")
eager = Switch("eager", _flag, False, "Run compiled functions eagerly, line by line, for a debugger.")
check_nans = Switch("check_nans", _flag, False, "Stop at the first op that makes a NaN or infinity, naming its line.")
stress = Switch("stress", int, 0, "Random delays per thread up to this many microseconds before each kernel.")


@contextlib.contextmanager
def override(**values: Any) -> Iterator[None]:
    """Set switches for the block: ``with override(verify=True): ...``."""
    unknown = sorted(set(values) - set(Switch.registry))
    if unknown:
        raise ValueError(f"No switch is called {', '.join(unknown)}; there are {', '.join(Switch.registry)}.")
    before = {name: Switch.registry[name].value for name in values}
    for name, value in values.items():
        Switch.registry[name].value = value
    try:
        yield
    finally:
        for name, value in before.items():
            Switch.registry[name].value = value
