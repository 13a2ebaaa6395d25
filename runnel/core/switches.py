"""The switches: each declared once, with the accepted values, default and help. ``RUNNEL_<NAME>`` in the environment
sets the default, ``with switches.override(name=value):`` changes it for a block of code on all threads.

The environment is read once, when the package is imported; a variable that is empty counts as unset. There is nothing
else to configure; ``docs/debug/README.md`` lists the switches (a test compares).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from runnel.core import devices
from runnel.core.accepting import Accepted, byte_count, flag, folder, one_of, whole
from runnel.core.errors import SettingError

T = TypeVar("T")

MOST_THREADS = 256  # of a program


class State:
    """What has been worked out from the switches. ``RESOLVED.state`` is a new one after each change of a switch."""

    __slots__ = ("context", "ready")

    def __init__(self) -> None:
        self.context: Any = None  # see backends/context.py
        self.ready: dict[Any, Any] = {}  # see tensor/eager.py


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
            raise SettingError(f"[{where}] expected {self.accepted.what}, received {value!r}{reason}.") from None


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
