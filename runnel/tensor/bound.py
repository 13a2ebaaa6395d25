"""Bind a program to the values of a call, and write the Python code of that call.

Eager ops, compositions, optimizer steps, compiled functions, functions of graphs and backward passes are all a
:class:`Bound`: a program, where each of its inputs comes from, and where each of its outputs goes. A call of a small
program takes as long as a few dozen lines of Python, so the code of a call has only the lines that this program needs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from runnel.backends.host.layout import COMPLETED, LATER, STALE
from runnel.backends.host.memory import ALIGNMENT
from runnel.compiler.program import Pool, Program
from runnel.core.avals import Shape, ShapedArray, row_major
from runnel.core.functions import function
from runnel.tensor.handle import SERIALS

CELL: Final = 64  # bytes: results up to this size are cut from a slab
CELLS: Final = 32  # in a slab; a small result that is kept keeps its slab
WRITES: Final = "STATE.writes += 1"  # counts a run that writes Variables; counting one run twice does no harm

_TAKE: Final = ("try: frame = frames.pop()", "except IndexError: frame = make()")
_GIVE: Final = ("if frames: give(frame)", "else: frames.append(frame)")
_BEGIN: Final = ("HOLDS.writing += 1", "if HOLDS.now: protect(WRITTEN)")
_END: Final = "HOLDS.writing -= 1"
_FOLLOW: Final = "if VIEWED: follow(WRITTEN)"


class Slab:
    """The memory that small results of one program are cut from: an allocation for each would cost a third of a call.
    ``free`` cells of ``memory`` have not been used."""

    __slots__ = ("free", "memory")

    def __init__(self) -> None:
        self.memory: Any = None
        self.free = 0


class Variables(Protocol):
    """The Variables that a program is bound to (:class:`runnel.tensor.binding.Binding`)."""

    @property
    def pool(self) -> Pool:
        """The frames with the memory of the Variables."""

    @property
    def names(self) -> Mapping[str, Any]:
        """The names that the code of a run reads."""


class Feed(NamedTuple):
    """Where one input of a program comes from: ``lines`` that read it, and an expression for its ``address``. A number
    has no address; its line writes it into the frame. ``names`` are read by the lines."""

    address: str
    lines: tuple[str, ...] = ()
    names: Mapping[str, Any] = MappingProxyType({})


def number(place: int, expression: str) -> Feed:
    """Feed the number ``expression`` to the input at ``place``."""
    return Feed("", (f"F[{place}] = {expression}",))


def laid_out(tensor: str, itemsize: int) -> Feed:
    """Feed a ``tensor`` that lies in memory as the program expects."""
    return Feed(f"{tensor}._storage.address + {tensor}._layout[0] * {itemsize}")


def any_layout(place: int, tensor: str, aval: ShapedArray) -> Feed:
    """Feed a ``tensor`` that may have any layout; one that is not dense is copied to ``d{place}``."""
    return Feed(
        f"a{place}",
        (
            f"m, (o, strides) = {tensor}._storage, {tensor}._layout",  # reading these is not cheap
            f"if strides == dense{place} and m is not None: a{place} = m.address + o * {aval.dtype.itemsize}",
            f"else: d{place} = dense({tensor}); a{place} = d{place}.address",
        ),
        {f"dense{place}": row_major(aval.shape)},
    )


class Bound:
    """A program, where its inputs come from, and where its outputs go.

    Args:
        program: the compiled graph.
        kind: the class of the tensors that a call makes.
        feeds: the origin of each input, in the program's order.
        results: the aval, on its device, of each output of the graph.
        strides: the strides of each result in its memory; dense by default.
        variables: the binding to Variables, if the program reads or writes any.
        together: the outputs that live and die together, by their place in ``program.outputs``; they share one block.
    """

    def __init__(
        self,
        program: Program,
        kind: type,
        feeds: Sequence[Feed] = (),
        results: Sequence[ShapedArray] = (),
        *,
        strides: Sequence[Shape] | None = None,
        variables: Variables | None = None,
        together: Collection[int] = (),
    ) -> None:
        self.program: Final = program
        self.is_bound: Final = variables is not None
        self._feeds = feeds
        self._offsets: dict[int, int] = {}  # in the shared block, by place
        self._shared_bytes = 0
        for place in sorted(together):
            self._offsets[place] = self._shared_bytes
            self._shared_bytes += -(-program.outputs[place] // ALIGNMENT) * ALIGNMENT
        self._results = results
        pool = program.pool if variables is None else variables.pool
        self.namespace: dict[str, Any] = {
            "allocate": program.backend.allocate, "allocate_slab": program.backend.allocate_slab,
            "error": program.error, "frames": pool.frames, "give": pool.give, "kind": kind,
            "lent_arena": program.lent_arena, "make": pool.make, "new": kind.__new__, "serial": SERIALS.__next__,
            "S": Slab(), **({} if variables is None else variables.names),
        }  # fmt: skip
        for feed in feeds:
            self.namespace.update(feed.names)
        for i, nbytes in enumerate(program.outputs):
            self.namespace[f"size{i}"] = nbytes
        for i, result in enumerate(results):
            self.namespace[f"result{i}"] = result
            self.namespace[f"strides{i}"] = row_major(result.shape) if strides is None else strides[i]

    def function(
        self,
        head: str,
        what: str,
        *,
        checks: Sequence[str] = (),
        setup: Sequence[str] = (),
        after: Sequence[str] = (),
        when_over: Sequence[str] = (),
        then: Sequence[str] = (),
        failure: str = "error(status)",
    ) -> Any:
        """Write the function ``head`` that runs the program; ``what`` names it in tracebacks.

        The lines of the caller come in this order: ``checks``; then, when inputs are read and outputs have memory,
        ``setup``; the run; ``when_over``, while the frame still belongs to this call; ``after``; and ``then``.
        ``failure`` is an expression for the error of a run.

        ``after`` are the changes besides memory that belong to a completed run; ``WRITES`` is the first of them if the
        program writes Variables. They call nothing and follow the run at once. Python runs signal handlers only at
        calls and loops, so no handler sees Variables changed and the rest unchanged, and a handler that raises does so
        before the run or after all of it.
        """
        floats = [] if all(feed.address for feed in self._feeds) else ["F = frame.floats"]
        arena = [] if self.program.has_own_arena else ["arena = lent_arena()", "frame.bases[0] = arena.address"]
        inputs = [line for feed in self._feeds for line in feed.lines]
        outputs, addresses = self._memory()
        addresses = [*[feed.address for feed in self._feeds if feed.address], *addresses]
        run = self._launch(addresses, after, when_over, failure)
        lines = [*checks, *_TAKE, *floats, *inputs, *arena, *outputs, *setup, *run, *then]
        return function(head, lines, self.namespace, what)

    def block(self, place: int) -> str:
        """Return the name of the memory that contains the output at ``place``."""
        return "shared" if place in self._offsets else f"s{place}"

    def tensor(self, name: str, result: int) -> list[str]:
        """Lines that make a tensor ``name`` of a result."""
        place = self.program.output_of[result]
        itemsize = self._results[result].dtype.itemsize
        if place in self._offsets:
            offset = str(self._offsets[place] // itemsize)
        else:
            offset = f"n{place} * {CELL // itemsize}" if self.program.outputs[place] <= CELL else "0"
        return [
            f"{name} = new(kind)", f"{name}._aval = result{result}", f"{name}._storage = {self.block(place)}",
            f"{name}._layout = {offset}, strides{result}", f"{name}._serial = serial()",
        ]  # fmt: skip

    def _memory(self) -> tuple[list[str], list[str]]:
        """Lines that find memory for the outputs, and expressions for the addresses."""
        lines: list[str] = []
        addresses: list[str] = []
        if self._offsets:
            lines += [f"shared = allocate_slab({self._shared_bytes})", "R = shared.address"]
        for i, nbytes in enumerate(self.program.outputs):
            if i in self._offsets:
                addresses.append(f"R + {self._offsets[i]}")
            elif nbytes <= CELL:
                lines += [
                    # The former slab does not end before a cell is taken, since its end would run other code. Between
                    # taking a cell and the next line nothing is called, so no other thread takes the same one.
                    f"if not S.free: slab = allocate_slab({CELL * CELLS}); "
                    f"slab, S.memory = S.memory, slab; S.free = {CELLS}",
                    f"S.free = n{i} = S.free - 1",
                    f"s{i} = S.memory",
                ]
                addresses.append(f"s{i}.address + n{i} * {CELL}")
            else:
                lines.append(f"s{i} = allocate(size{i})")
                addresses.append(f"s{i}.address")
        return lines, addresses

    def _launch(
        self, addresses: Sequence[str], after: Sequence[str], when_over: Sequence[str], failure: str
    ) -> list[str]:
        """Run the frame and give it back, or raise the error of the run. See :meth:`function`."""
        run = [f"status = frame.start({', '.join(addresses)})", "if status:"]
        run.append(f"    if status == {LATER}: status = frame.run()")
        if self.is_bound:
            run.append(f"    if status == {STALE}: status = resume(frame)")
        over = [*when_over, f"if status: raise {failure}", *after, *_GIVE]
        if not after:
            return [*run, *over]
        begin: list[str] = []
        broken_off: list[str] = []
        if WRITES in after:
            begin, broken_off, over = [*_BEGIN], [_END], [_END, *over, _FOLLOW]
        if list(after) == [WRITES]:
            return [*begin, *_guarded(run, [*broken_off, WRITES]), *over]
        begin += ["L = frame.launch.words", f"completed = L[{COMPLETED}]"]
        change = [f"if L[{COMPLETED}] != completed:", *_indented(after)]
        return [*begin, *_guarded(run, [*broken_off, *change]), *over]


def _guarded(lines: Iterable[str], if_not: Iterable[str]) -> list[str]:
    return ["try:", *_indented(lines), "except BaseException:", *_indented(if_not), "    raise"]


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]
