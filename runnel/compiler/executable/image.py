"""A plan as numbers: what is left of it once it runs, free of addresses, so that another process can run it.

An address stands here as a number that :class:`~runnel.compiler.executable.program.Program` replaces: a kernel as its
place in ``kernels``, the functions of the driver as negative numbers, args as their offset from the first word of all
args.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from runnel.backends.cpu.codegen import build
from runnel.backends.cpu.launch import RECORD_WORDS, barrier_address, jump_address, seal_address
from runnel.backends.host import threads
from runnel.compiler.executable.records import BARRIER, JUMP, SEAL, Arguments, Record, Words, records
from runnel.compiler.kernels.places import Call, Place, Space
from runnel.compiler.plan import Plan
from runnel.compiler.schedule import stops
from runnel.compiler.schedule.loop_regions import is_unbounded
from runnel.compiler.schedule.partition import Block
from runnel.core.errors import VerifierError

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

SHORT: Final = 20e-6  # seconds of predicted work: not worth releasing the GIL for


@dataclass(frozen=True, eq=False, slots=True)
class Image:
    """What a program needs to know of its plan."""

    arena: int  # bytes
    inputs: int  # how many
    variables: int
    outputs: tuple[int, ...]  # bytes of each
    output_of: tuple[int, ...]  # which of them holds each result
    scratch_bytes: int
    is_long: bool
    is_short: bool
    kernels: tuple[tuple[str, tuple[str, ...]], ...]  # name, and the symbols that its code calls
    heads: Words  # of each call, in loops of their first iterations: the two words with which its records begin
    words: Words  # the args
    records: tuple[Words, ...]  # of each thread
    constants: Bytes

    def bound(self, rows: Words, kernels: Sequence[int], args: int) -> Words:
        """Records, or beginnings of them, with the addresses of the kernels, and of the args' first word."""
        functions = np.array([0, *kernels, 0, 0, 0], np.int64)  # negative numbers count from the end
        functions[BARRIER], functions[SEAL], functions[JUMP] = barrier_address(), seal_address(), jump_address()
        code = rows[:, 0]
        found = rows.copy()
        found[:, 0] = functions[code]
        found[:, 1] += np.where((code > 0) | (code == JUMP), args, 0)
        return found


def image(plan: Plan) -> Image:
    """The image of ``plan``."""
    calls = plan.calls
    kernels = {call.kernel.name: call.kernel for call in calls}
    number = {name: i for i, name in enumerate(kernels)}
    arguments = Arguments(calls, plan.spans)
    heads = [(1 + number[c.kernel.name], 8 * start) for c, start in zip(calls, arguments.starts, strict=True)]

    def record(index: int, block: Block) -> Record:
        return (*heads[index], *block, 0, 0)

    is_long = stops.is_long(calls) or is_unbounded(plan.spans)
    return Image(
        plan.arena.peak,
        len(plan.inputs),
        len(plan.variables),
        tuple(place.nbytes for place in plan.outputs),
        tuple(plan.output_of),
        _scratch_bytes(calls),
        is_long,
        plan.threads == 1 and not is_long and sum(c.seconds * c.times for c in calls) < SHORT,
        tuple((name, tuple(sorted(build.symbols(kernel)))) for name, kernel in kernels.items()),
        np.array(heads, np.int64).reshape(-1, 2),
        arguments.words,
        tuple(records(plan, arguments, record, is_long=is_long)),
        _constants(plan.constants),
    )


def checked(image: Image) -> Image:
    """An image from elsewhere, if it has the form of one; VerifierError if its numbers lead outside of it."""
    _require(_are_counts(image.arena, image.inputs, image.variables, image.scratch_bytes, *image.outputs), "sizes")
    _require(_are_counts(*image.output_of) and all(i < len(image.outputs) for i in image.output_of), "results")
    _require(type(image.is_long) is bool and type(image.is_short) is bool, "flags")
    for name, symbols in image.kernels:
        _require(isinstance(name, str) and all(isinstance(symbol, str) for symbol in symbols), "kernels")
    _require(image.words.dtype == np.int64 and image.words.ndim == 1, "args")
    _require(image.constants.dtype == np.uint8 and image.constants.ndim == 1, "constants")
    _require(_lead_inside(image, image.heads, 2), "heads")
    _require(1 <= len(image.records) <= threads.LIMIT, "threads")
    for rows in image.records:
        _require(_lead_inside(image, rows, RECORD_WORDS) and len(rows) > 0 and not rows[-1].any(), "records")
    return image


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise VerifierError(f"The {what} of a program from elsewhere are not such as programs have.")


def _are_counts(*numbers: int) -> bool:
    return all(type(n) is int and 0 <= n < 1 << 62 for n in numbers)


def _lead_inside(image: Image, rows: Words, width: int) -> bool:
    """Whether records call kernels of the image, with args among its words, and jump among themselves."""
    if rows.dtype != np.int64 or rows.ndim != 2 or rows.shape[1] != width:
        return False
    code, args = rows[:, 0], rows[:, 1][(rows[:, 0] > 0) | (rows[:, 0] == JUMP)]
    calls = (code >= JUMP) & (code <= len(image.kernels))
    return bool(calls.all() and (args >= 0).all() and (args < image.words.nbytes).all() and not (args % 8).any())


def _constants(places: Sequence[Place]) -> Bytes:
    """The constants where the memory plan has put them."""
    memory = np.zeros(max((p.offset + p.nbytes for p in places), default=0), np.uint8)
    for place in places:
        if place.value is not None and place.size:
            content = np.ascontiguousarray(place.value, place.dtype.numpy).reshape(-1).view(np.uint8)
            memory[place.offset : place.offset + place.nbytes] = content
    return memory


def _scratch_bytes(calls: Sequence[Call]) -> int:
    """What tiles need, behind the panels of packing, for which every thread's scratch has room anyway."""
    return max(
        (a.place.offset + a.place.nbytes for c in calls for a in c.accesses if a.place.space is Space.SCRATCH),
        default=0,
    )
