"""Check that a random program returns the same bits eagerly and compiled; find the smallest part that does not."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import runnel as rn
from runnel.backends.cpu import target
from runnel.compiler.schedule import partition
from runnel.core import switches
from tests.fuzz.graph_programs import Program, function
from tests.fuzz.oracle import numpy_where_exact


@contextlib.contextmanager
def shared_always(*, dealt: bool = False) -> Iterator[None]:
    """Plans made in the block give each thread its share of every call that can be split, however small; ``dealt``:
    instead no call is split, and independent ones are dealt to threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition, "WORTH_A_TEAM", 0.0)
        patch.setattr(partition, "WORTH_SPLITTING", math.inf if dealt else 0.0)
        if dealt:
            patch.setattr(partition, "WORTH_DEALING", 0.0)
            patch.setattr(partition, "WORTH_MEMORY", 0.0)
        yield


class Way(NamedTuple):
    """How a program is compiled: for how many threads, whether calls are dealt to these whole, and how hard LLVM tries.
    And whether what it is compared with is wholly eager, or NumPy's where the bits are the same."""

    threads: tuple[int, ...] = (1, 2)
    effort: int = target.EFFORT.default
    eager: bool = True
    dealt: bool = False


EVERY_WAY = Way()


def fault(program: Program, way: Way = EVERY_WAY) -> str | None:
    """Return the fault of the compiled form; None if it has none."""
    f, arguments, variable = function(program)
    before = None if variable is None else variable.numpy().copy()
    with switches.override(num_threads=1), contextlib.nullcontext() if way.eager else numpy_where_exact():
        expected = [np.array(t) for t in f(*arguments)]
    if variable is not None:
        expected.append(variable.numpy().copy())
    for count in way.threads:
        with switches.override(num_threads=count, effort=way.effort), shared_always(dealt=way.dealt):
            if variable is not None:
                variable.assign(rn.asarray(before))
            try:
                actual = [np.array(t) for t in rn.compile(f)(*arguments)]
            except Exception as error:
                return f"{count} threads: {type(error).__name__}: {error}"
            if variable is not None:
                actual.append(variable.numpy().copy())
        for number, (a, b) in enumerate(zip(expected, actual, strict=True)):
            if a.shape != b.shape or a.dtype != b.dtype:
                return f"{count} threads: result {number} is {b.dtype}{b.shape}, not {a.dtype}{a.shape}"
            if not same_bits(a, b):
                return f"{count} threads: result {number} of {len(expected)} differs by {_difference(a, b)}"
    return None


def same_bits(a: Any, b: Any) -> bool:
    """Return True if the bits are equal, except in NaNs."""
    if a.dtype.kind not in "fV":
        return bool(np.array_equal(a, b))
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    both = np.isnan(wide_a) & np.isnan(wide_b)
    same = (wide_a == wide_b) & (np.signbit(wide_a) == np.signbit(wide_b))
    return bool(np.all(both | same))


def _difference(a: Any, b: Any) -> str:
    with np.errstate(all="ignore"):
        return f"{np.nanmax(np.abs(a.astype(np.float64) - b.astype(np.float64)), initial=0.0):.3g}"


def smallest(program: Program, way: Way = EVERY_WAY, attempts: int = 200) -> Program:
    """A part of ``program`` that is faulty too, with as few outputs and lines as a greedy search finds."""

    def faulty(candidate: Program) -> bool:
        nonlocal attempts
        attempts -= 1
        try:
            return fault(candidate, way) is not None
        except Exception:
            return False

    actual = program
    changed = True
    while changed and attempts > 0:
        changed = False
        for candidate in _smaller(actual):
            if attempts > 0 and faulty(candidate):
                actual, changed = candidate, True
                break
    return actual


def _smaller(program: Program) -> list[Program]:
    candidates: list[Program] = []
    for order in range(program.order):
        lower = program.shortened(program.lines, program.outputs)
        lower.order = order
        candidates.append(lower)
    if program.update is not None:
        lower = Program(program.seed, program.arguments, program.lines, program.outputs, order=program.order)
        candidates.append(lower.shortened(program.lines, program.outputs))
    half = len(program.outputs) // 2
    for part in (program.outputs[:half], program.outputs[half:]):
        if part and len(part) < len(program.outputs):
            candidates.append(program.shortened(program.lines, part))
    for name in program.outputs:
        rest = [n for n in program.outputs if n != name]
        if rest:
            candidates.append(program.shortened(program.lines, rest))
    for i, line in enumerate(program.lines):  # an output's producer's operands in its place
        if line.name in program.outputs:
            for name in sorted(line.reads):
                if name.startswith("v") and name not in program.outputs:
                    outputs = [name if n == line.name else n for n in program.outputs]
                    candidates.append(program.shortened(program.lines[:i] + program.lines[i + 1 :], outputs))
    return candidates
