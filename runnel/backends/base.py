"""The protocol of a backend: how the compiler loads and runs programs on a device, and describes its target.

The compiler hands over a :class:`~runnel.backends.commands.CommandBuffer` and the kernels that its commands name, in
loop IR. A backend loads them (:class:`Loaded`), and binds the loaded program to memory once for each concurrent run
(:class:`Launch`). It also allocates the memory. ``docs/internals/backends.md`` follows one program through these
steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from runnel.backends.commands import CommandBuffer, Words
from runnel.backends.host.memory import Storage
from runnel.backends.host.state import LockKeeper
from runnel.core.devices import Device
from runnel.core.dtypes import DType
from runnel.core.records import record
from runnel.loops.ir import Kernel


@record
class Target:
    """The properties of a machine that plans and the semantics of programs depend on.

    ``precision`` is the rounding of products of bfloat16: ``"float32"``, each by itself, or the name of a dot
    instruction that rounds pairs. ``vector_bytes`` is the width of a register; ``tile_rows`` × ``tile_vectors`` is the
    block of accumulators that a product of matrices holds in registers.
    """

    name: str
    precision: str
    vector_bytes: int
    tile_rows: int
    tile_vectors: int

    def panel_columns(self, dtype: DType) -> int:
        """Return the columns of the second operand in a tile of the contraction: the width of a packed panel."""
        return self.tile_vectors * self.vector_bytes // dtype.itemsize


LockEntry = tuple[int, bool, int, int]  # address, exclusive, expected version, expected writes (see host.layout)


class Launch(Protocol):
    """A loaded program bound to a table of base addresses. It can be run any number of times, one run at a time."""

    @property
    def words(self) -> Any:
        """The launch block as words (``host.layout``): ``words[COMPLETED]`` counts completed runs."""

    def lock(self, entries: Sequence[LockEntry]) -> None:
        """Take these state locks for each later run, in the order of their addresses."""

    def starter(self, slots: Sequence[int]) -> Callable[..., int]:
        """``start(*addresses)`` writes them to these ``slots`` of the table of base addresses, and runs the program;
        its status is that of ``run``, or LATER where ``run`` is still to be called. There is one at a time."""

    def run(self) -> int:
        """Run the program; its status is 0, a kernel's fault, the request that stopped it, or STALE: it did not run,
        because a state lock has another version, or other writes, than ``lock`` expects."""

    @property
    def run_watched(self) -> Callable[[], int]:
        """``run``, or, for a long program, a variant of it that Ctrl-C stops before its commit point."""

    def cancel(self) -> None:
        """Stop the run in progress, or else the next one, unless it has passed its commit point. Any thread may call
        this."""


class Loaded(Protocol):
    """A command buffer whose kernels can run. It owns what they need."""

    def launch(self, bases: int, commands: Sequence[Words] | None = None) -> Launch:
        """Return a launch with the table of base addresses at ``bases``; ``commands`` replace those of the buffer."""


class ObjectFile(NamedTuple):
    """Programs for a linker: for each a function of its name, in C ``int64_t name(void **bases, void *scratch)``.
    ``bases`` are the addresses of the program's slots; the result is 0, or the status of a fault."""

    content: bytes
    scratch: int  # bytes that each function needs there, aligned to 128


class Backend(Protocol):
    """Runs programs on a device: the compiler's queries, memory, and programs."""

    device: Device
    has_files: bool  # whether kernels are cached on disk under their names
    always_commits: bool  # whether every program has a commit point, however short it is predicted to be
    product_scratch: int  # bytes of each thread's scratch that products use; scratch buffers of kernels follow them

    def target(self) -> Target:
        """Return the target of plans, by the switches."""

    def packs_columns(self, m: int, k: int, row: int, column: int, dtype: DType) -> bool:
        """Return whether a product of ``m`` rows packs its second operand, ``k`` rows with these strides, into panels,
        in the context in force: a hint for splitting work that does not affect results."""

    def symbols(self, kernel: Kernel) -> frozenset[str]:
        """Return the names of the library's functions that the kernel's code calls, by which its file is found."""

    def allocate(self, nbytes: int) -> Storage:
        """Memory of the device, aligned to 128 bytes, contents unspecified. MemoryError if there is none."""

    def allocate_slab(self, nbytes: int) -> Storage:
        """Return the same, for small unrelated values: a copy of one takes only its own bytes."""

    def load(self, buffer: CommandBuffer, kernels: Sequence[Kernel] | None) -> Loaded:
        """Load a program for the context in force. Without ``kernels`` from files only; LookupError if one is
        missing."""

    def object_file(self, programs: Mapping[str, CommandBuffer], kernels: Mapping[str, Kernel]) -> ObjectFile:
        """Programs of one thread and the kernels that they call, by name, as machine code for a linker, for the context
        in force. DeviceError where the device has none."""

    def clear(self) -> None:
        """Free all code that no program refers to."""

    @property
    def lock_keeper(self) -> LockKeeper:
        """The keeper of the state locks of Variables on this device."""


BACKENDS: Final[dict[Device, Backend]] = {}


def register(backend: Backend) -> None:
    """Register ``backend`` for programs of its device."""
    BACKENDS[backend.device] = backend


def of(device: Device) -> Backend:
    """Return the backend of ``device``."""
    return BACKENDS[device]
