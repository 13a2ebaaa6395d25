"""The protocol of a backend: how the compiler loads and runs programs on a device, and describes its target.

The compiler passes a :class:`CommandBuffer` and the kernels that its commands name, in loop IR. A backend loads them
(:class:`Loaded`), and binds the loaded program to memory once for each concurrent run (:class:`Launch`). It also
allocates the memory. ``docs/internals/backends.md`` follows one program through these steps.

A command is a row of eight int64, ``kernel, args, i0, i1, j0, j1, extents, window``: compute the block of rows [i0, i1)
× columns [j0, j1) of the domain of kernel number ``kernel`` (from 1 on), whose args begin at byte ``args`` of the
words: (slot, byte offset) for each buffer of the kernel, then its params. Rows ``extents`` and following of the
extents are, for each buffer, the first byte of its place in its slot and the end of it, for backends that check
indices. Memory is named by slots: 0 is the arena, 1 the constants, then inputs, Variables and outputs. A command
contains no address, so another process can run it too. Each thread has its own commands, ending with one of all zeros.

Negative numbers are control commands:

* BARRIER: all threads wait for one another;
* COMMIT: a barrier after which a run cannot be stopped. No persistent state is written before it;
* JUMP: continue ``i0`` rows further if the bool that ``args`` name by slot and offset is false, else ``i1`` rows
  further;
* WINDOW: a JUMP after whose flag, an int64, follow the first row and the end of the window of later commands.

The last number of a command is its window: 0 for the block as it is. If it is k > 0, the command computes part i0 of i1
equal parts of rows [k·begin, k·end), if it is -k < 0, part j0 of j1 of these columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from runnel.backends.host import threads
from runnel.backends.host.locks import LockKeeper
from runnel.backends.host.memory import Storage
from runnel.core.devices import Device
from runnel.core.dtypes import DType
from runnel.core.errors import VerifierError
from runnel.core.records import record
from runnel.loops.ir import Kernel

Words = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Command = tuple[int, ...]

COMMAND_WORDS: Final = 8
BARRIER: Final = -1
COMMIT: Final = -2
JUMP: Final = -3
WINDOW: Final = -4
JUMPS: Final = (JUMP, WINDOW)


@record(eq=False)
class CommandBuffer:
    """The commands of a program with the sizes of its memory, args, constants and names of kernels."""

    arena: int  # bytes
    inputs: int  # their number
    variables: int
    outputs: tuple[int, ...]  # bytes of each
    output_of: tuple[int, ...]  # which of them holds each result
    scratch_bytes: int
    is_long: bool
    is_short: bool
    kernels: tuple[tuple[str, tuple[str, ...]], ...]  # name, and the symbols that its code calls
    heads: Words  # of each call, for the first iterations of loops: kernel, args and extents of its commands
    words: Words  # the args
    extents: Words  # (begin, end) in bytes, for each buffer of each call
    commands: tuple[Words, ...]  # of each thread
    constants: Bytes

    def command(self, call: int, block: tuple[int, int, int, int]) -> Command:
        """Return the command that computes ``block`` of a call, in the first iterations of the loops around it."""
        kernel, args, extents = self.heads[call].tolist()
        return (kernel, args, *block, extents, 0)


def checked(buffer: CommandBuffer) -> CommandBuffer:
    """Validate a command buffer from another process; VerifierError if its numbers lead outside it."""
    sizes = (buffer.arena, buffer.inputs, buffer.variables, buffer.scratch_bytes, *buffer.outputs)
    _require(_are_counts(*sizes), "sizes")
    _require(_are_counts(*buffer.output_of) and all(i < len(buffer.outputs) for i in buffer.output_of), "results")
    _require(type(buffer.is_long) is bool and type(buffer.is_short) is bool, "flags")
    for name, symbols in buffer.kernels:
        _require(isinstance(name, str) and all(isinstance(symbol, str) for symbol in symbols), "kernels")
    _require(buffer.words.dtype == np.int64 and buffer.words.ndim == 1, "args")
    _require(buffer.extents.dtype == np.int64 and buffer.extents.shape[1:] == (2,), "extents")
    _require(buffer.constants.dtype == np.uint8 and buffer.constants.ndim == 1, "constants")
    _require(_lead_inside(buffer, buffer.heads, 3), "heads")
    _require(1 <= len(buffer.commands) <= threads.LIMIT, "threads")
    for rows in buffer.commands:
        _require(_lead_inside(buffer, rows, COMMAND_WORDS) and len(rows) > 0 and not rows[-1].any(), "commands")
    return buffer


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise VerifierError(f"A program from another process has invalid {what}.")


def _are_counts(*numbers: int) -> bool:
    return all(type(n) is int and 0 <= n < 1 << 62 for n in numbers)


def _lead_inside(buffer: CommandBuffer, rows: Words, width: int) -> bool:
    """Return whether commands name kernels of the buffer, with args among its words, and jump among themselves."""
    if rows.dtype != np.int64 or rows.ndim != 2 or rows.shape[1] != width:
        return False
    code, args = rows[:, 0], rows[:, 1][(rows[:, 0] > 0) | np.isin(rows[:, 0], JUMPS)]
    calls = (code >= WINDOW) & (code <= len(buffer.kernels))
    return bool(calls.all() and (args >= 0).all() and (args < buffer.words.nbytes).all() and not (args % 8).any())


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
    def address(self) -> int:
        """The address of the launch block."""

    @property
    def words(self) -> Any:
        """The launch block as words (``host.layout``): ``words[COMPLETED]`` counts completed runs."""

    def lock(self, entries: Sequence[LockEntry]) -> None:
        """Take these state locks for each later run, in the order of their addresses."""

    def starter(self, slots: Sequence[int]) -> Callable[..., int]:
        """Return ``start(*addresses)``, which writes them to these ``slots`` of the table of base addresses and runs
        the program; its status is a status of ``run``, or LATER where you must call ``run``. There is one at a time."""

    def run(self) -> int:
        """Run the program; its status is 0, a kernel's fault, the request that stopped it, or STALE: it did not run,
        because a state lock has another version, or other writes, than ``lock`` expects."""

    @property
    def run_watched(self) -> Callable[[], int]:
        """Return ``run``, or, for a long program, a variant of it that Ctrl-C stops before its commit point."""

    def cancel(self) -> None:
        """Stop the run in progress, or else the next one, unless it has passed its commit point. Any thread may call
        this."""


class Loaded(Protocol):
    """A command buffer whose kernels can run. It owns what they need."""

    def launch(self, bases: int, commands: Sequence[Words] | None = None) -> Launch:
        """Return a launch with the table of base addresses at ``bases``; ``commands`` replace the buffer's commands."""


class ObjectFile(NamedTuple):
    """Programs for a linker: for each a function of its name, in C ``int64_t name(void **bases, void *scratch)``.
    ``bases`` are the addresses of the program's slots; the result is 0, or the status of a fault."""

    content: bytes
    scratch: int  # bytes that each function needs there, aligned to 128


class Recalling(Protocol):
    """Machine code for calls like earlier ones (:mod:`runnel.tensor.recall`; ``host.recall`` has the layouts)."""

    def begin(self, words: int) -> None:
        """Use the state at the address ``words`` from now on."""

    def functions(self, recalled: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """Return the built-in functions that call ``recalled``, and that return the hash and key of a call of it."""

    def lend(self, launch: Launch, scratch: Storage) -> int:
        """Let machine code alone run ``launch`` from now on, with this scratch memory and the GIL held. Return the
        address of the function that runs its launch block; 0 if the program may wait, or needs more."""


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
        """Allocate memory of the device, aligned to 128 bytes, contents unspecified. MemoryError if there is none."""

    def allocate_slab(self, nbytes: int) -> Storage:
        """Return the same, for small unrelated values: a copy of one takes only its own bytes."""

    def load(self, buffer: CommandBuffer, kernels: Sequence[Kernel] | None) -> Loaded:
        """Load a program for the context in force. Without ``kernels`` from files only; LookupError if one is
        missing."""

    def object_file(self, programs: Mapping[str, CommandBuffer], kernels: Mapping[str, Kernel]) -> ObjectFile:
        """Compile programs of one thread and the kernels that they call, by name, to machine code for a linker, for the
        context in force. DeviceError where the device has none."""

    def clear(self) -> None:
        """Free all code that no program refers to."""

    @property
    def lock_keeper(self) -> LockKeeper:
        """The keeper of the state locks of Variables on this device."""

    @property
    def recalling(self) -> Recalling | None:
        """The machine code that recalls calls; None where there is none."""
        return None


BACKENDS: Final[dict[Device, Backend]] = {}


def register(backend: Backend) -> None:
    """Register ``backend`` for programs of its device."""
    BACKENDS[backend.device] = backend


def of(device: Device) -> Backend:
    """Return the backend of ``device``."""
    return BACKENDS[device]
