"""What a backend is: how the rest of the house makes programs run, on whatever device.

The compiler hands over a :class:`~runnel.backends.commands.CommandBuffer` and the kernels that its commands name, in
loop IR. A backend loads them (:class:`Loaded`), and binds what it has loaded to memory as often as somebody wants to
run it at the same time (:class:`Launch`). The memory comes from the backend, too. ``docs/backends.md`` follows one
program through these steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from runnel.backends.commands import CommandBuffer, Words
from runnel.backends.host.memory import Storage
from runnel.backends.host.state import LockKeeper
from runnel.backends.target import Target
from runnel.core.devices import Device
from runnel.core.dtypes import DType
from runnel.loops.ir import Kernel

LockEntry = tuple[int, bool, int, int]  # address, exclusive, expected version, expected writes (see host.layout)


class Launch(Protocol):
    """A loaded program bound to a table of base addresses. Any number of runs, one at a time."""

    @property
    def words(self) -> Any:
        """The launch block as words (``host.layout``): ``words[COMPLETED]`` counts runs that came to their end."""

    def lock(self, entries: Sequence[LockEntry]) -> None:
        """From now on take these state locks for a run, in the order of their addresses."""

    def run(self) -> int:
        """Run the program; its status is 0, what a kernel reported, the request that stopped it, or STALE: it did not
        run, because a state lock is not as ``lock`` was told."""

    @property
    def run_watched(self) -> Callable[[], int]:
        """``run``, or, where that is long, the same so that Ctrl-C stops it before its seal."""

    def cancel(self) -> None:
        """Stop the run in progress, or else the next one, unless that is beyond its seal. For any thread to call."""


class Loaded(Protocol):
    """A command buffer whose kernels can run. It keeps alive what they need."""

    def launch(self, bases: int, commands: Sequence[Words] | None = None) -> Launch:
        """A launch with the table of base addresses at ``bases``; of other commands than the buffer's, if given."""


class Backend(Protocol):
    """What runs programs on a device: what the compiler asks of it, memory, and programs."""

    device: Device
    has_files: bool  # whether kernels are on disk, found by their names
    always_seals: bool  # whether every program has a seal, however short it is predicted to be
    product_scratch: int  # bytes of each thread's scratch memory that products take; what kernels name lies behind them

    def target(self) -> Target:
        """What plans are made for, as the switches ask."""

    def packs_columns(self, m: int, k: int, row: int, column: int, dtype: DType) -> bool:
        """Whether a product of ``m`` rows copies its second operand, ``k`` rows with these strides, into panels, in the
        context in force: a guide for whoever splits the work, never a matter of results."""

    def symbols(self, kernel: Kernel) -> frozenset[str]:
        """The names of the library's functions that the kernel's code calls, by which its file is found."""

    def allocate(self, nbytes: int) -> Storage:
        """Memory of the device, aligned to 128 bytes, contents unspecified. MemoryError if there is none."""

    def allocate_slab(self, nbytes: int) -> Storage:
        """The same, for small values that have nothing to do with one another: copies of them leave the rest alone."""

    def load(self, buffer: CommandBuffer, kernels: Sequence[Kernel] | None) -> Loaded:
        """Make a program ready for the context in force. Without ``kernels`` from files alone; LookupError if one is
        missing."""

    def clear(self) -> None:
        """Let go of all code that no program refers to."""

    @property
    def lock_keeper(self) -> LockKeeper:
        """Who waits for the state locks of Variables on this device."""


BACKENDS: Final[dict[Device, Backend]] = {}


def register(backend: Backend) -> None:
    """Let programs of its device run on ``backend``."""
    BACKENDS[backend.device] = backend


def of(device: Device) -> Backend:
    """The backend of ``device``."""
    return BACKENDS[device]
