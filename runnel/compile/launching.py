"""Generated code that runs a program: takes a frame from its pool, launches, and counts runs that write Variables.

The lines are the same wherever code is generated for a call. They read the names that :func:`names` gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from runnel.backends.host.layout import COMPLETED, LATER, STALE
from runnel.compile.binding import Binding
from runnel.compiler.executable.frame import Pool
from runnel.compiler.executable.program import Program
from runnel.tensor.holding import HOLDS, protect
from runnel.tensor.variable import STATE_VERSION

TAKE: Final = ("try: frame = frames.pop()", "except IndexError: frame = make()")
WRITES: Final = "STATE.writes += 1"  # to count once too often does no harm

_BEGIN: Final = ("HOLDS.writing += 1", "if HOLDS.now: protect(WRITTEN)")
_END: Final = "HOLDS.writing -= 1"
_GIVE: Final = ("if frames: give(frame)", "else: frames.append(frame)")


def names(program: Program, pool: Pool, binding: Binding | None = None) -> dict[str, Any]:
    """What the lines need: ``binding`` where the program reads or writes Variables."""
    backend = program.backend
    of_every_program = {
        "STATE": STATE_VERSION, "HOLDS": HOLDS, "allocate": backend.allocate, "allocate_slab": backend.allocate_slab,
        "error": program.error, "frames": pool.frames, "give": pool.give,
        "make": pool.make, "protect": protect,
    }  # fmt: skip
    return (
        of_every_program
        if binding is None
        else of_every_program | {"WRITTEN": binding.written_ids, "resume": binding.resume}
    )


def launch(
    addresses: Mapping[int, str], is_bound: bool, after: Sequence[str] = (), when_over: Sequence[str] = ()
) -> list[str]:
    """Run ``frame`` and give it back; raises what went wrong. ``addresses`` are expressions for the base pointers that
    a start of the frame takes, by slot.

    ``after`` are the changes besides memory that belong to a completed run, ``WRITES`` the first of them if it writes
    Variables. They call nothing, and follow the run at once: Python lets signal handlers in only at calls (and loops),
    so that none sees Variables changed and the rest not, and one that raises does so right before the run or right
    after all of it. ``when_over`` comes while the frame is still the call's own.
    """
    arguments = ", ".join(addresses[slot] for slot in sorted(addresses))
    run = [f"status = frame.start({arguments})", "if status:", f"    if status == {LATER}: status = frame.run()"]
    if is_bound:
        run.append(f"    if status == {STALE}: status = resume(frame)")
    over = [*when_over, "if status: raise error(status)", *after, *_GIVE]
    if not after:
        return [*run, *over]
    begin: list[str] = []
    broken_off: list[str] = []
    if WRITES in after:
        begin, broken_off, over = [*_BEGIN], [_END], [_END, *over]
    if list(after) == [WRITES]:
        return [*begin, *_guarded(run, [*broken_off, WRITES]), *over]
    begin += ["L = frame.launch.words", f"completed = L[{COMPLETED}]"]
    change = [f"if L[{COMPLETED}] != completed:", *_indented(after)]
    return [*begin, *_guarded(run, [*broken_off, *change]), *over]


def _guarded(lines: Sequence[str], if_not: Sequence[str]) -> list[str]:
    return ["try:", *_indented(lines), "except BaseException:", *_indented(if_not), "    raise"]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
