"""Search for a fast schedule: run and time candidates, and log each result as a line."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from runnel.backends import context
from runnel.core.arrays import short_repr
from runnel.core.dispatch import TensorLike
from runnel.core.errors import ArgumentError, RunnelError
from runnel.expressions.candidates import Candidate, drawn, mutated
from runnel.expressions.function import TensorExpression
from runnel.expressions.schedule import Schedule, Step, Steps
from runnel.expressions.solving import Solved, solved

_RUNS: Final = 3  # runs of a candidate at least,
_SECONDS: Final = 0.02  # and for so long
_HOPELESS: Final = 4.0  # a first run that is so many times slower than the best one is enough
_DRAWS: Final = 10  # candidates drawn for each trial at most: many are equal in small spaces
_FINALISTS: Final = 6  # schedules that are timed again at the end,
_TURNS: Final = 5  # so often
_RANDOM: Final = 0.4  # the share of candidates that do not resemble the best one


def search_schedule(
    expression: TensorExpression, *operands: Any, trials: int = 100, log: str | Path | None = None, seed: int = 0
) -> TensorExpression:
    """Return ``expression`` in the fastest loops found for ``operands``.

    ``trials`` schedules are run and timed on this machine: some random, most with one choice changed from the best so
    far. All produce bitwise identical results.

    Args:
        expression: a result of ``tensor_expr``.
        operands: tensors of the shapes and dtypes to optimize for.
        trials: number of schedules to try, including those in the log.
        log: a file of JSON lines, one for each trial: the expression, the steps and the seconds. Schedules in it are
            not timed again, so a search continues where an earlier one with this seed stopped; incomplete lines are
            ignored.
        seed: seed of the random choices.
    """
    if not isinstance(expression, TensorExpression):
        raise ArgumentError(f"[search_schedule] got {type(expression).__name__}; pass what tensor_expr returns.")
    if type(trials) is not int or trials < 1:
        raise ArgumentError(f"[search_schedule] got {trials!r} trials; pass an integer of 1 or more.")
    if type(seed) is not int:
        raise ArgumentError(f"[search_schedule] got {seed!r} as the seed; pass an integer.")
    if log is not None and not isinstance(log, (str, Path)):
        raise ArgumentError(f"[search_schedule] got {short_repr(log)} as the log; pass the path of a file.")
    if not all(isinstance(x, TensorLike) for x in operands):
        raise ArgumentError("[search_schedule] takes tensors as operands; convert them by asarray().")
    solution = solved(expression.canonical(*operands))
    key = _key(expression, operands)
    journal = _Journal(None if log is None else Path(log), key, solution)
    rng = random.Random(seed)
    best: Candidate | None = None
    fastest, tried = float("inf"), set[Steps]()
    for _ in range(_DRAWS * trials):
        if len(tried) >= trials:
            break
        is_new = best is None or rng.random() < _RANDOM
        candidate = drawn(solution, rng) if is_new or best is None else mutated(best, solution, rng)
        steps = _steps(candidate, solution)
        if steps is None or steps in tried:
            continue
        tried.add(steps)
        if steps not in journal.seconds:
            journal.note(steps, _timed(expression.scheduled(steps), operands, fastest))
        seconds = journal.seconds[steps]
        if seconds is not None and seconds < fastest:
            best, fastest = candidate, seconds
    return expression.scheduled(_run_off(expression, operands, journal.fastest(_FINALISTS)))


def _steps(candidate: Candidate, solution: Solved) -> Steps | None:
    """Return the steps of a candidate; None if it is not a valid schedule."""
    try:
        return tuple(candidate.schedule(solution).steps)
    except RunnelError:
        return None


def _timed(function: TensorExpression, operands: tuple[Any, ...], fastest: float) -> float | None:
    """Return the minimum time of a run in seconds; None if it cannot run."""
    try:
        function(*operands)
    except RunnelError:
        return None
    least, begin, runs = float("inf"), time.perf_counter(), 0
    while runs < _RUNS or time.perf_counter() - begin < _SECONDS:
        start = time.perf_counter()
        function(*operands)
        least = min(least, time.perf_counter() - start)
        runs += 1
        if least > _HOPELESS * fastest:
            break
    return least


def _run_off(expression: TensorExpression, operands: tuple[Any, ...], finalists: list[Steps]) -> Steps:
    """Return the fastest of a few schedules, timed alternately because other work slows single trials down."""
    least = dict.fromkeys(finalists, float("inf"))
    for _ in range(_TURNS if len(finalists) > 1 else 0):
        for steps in finalists:
            seconds = _timed(expression.scheduled(steps), operands, float("inf"))
            least[steps] = min(least[steps], float("inf") if seconds is None else seconds)
    return min(least, key=lambda steps: least[steps]) if least else ()


def _key(expression: TensorExpression, operands: tuple[Any, ...]) -> dict[str, Any]:
    """Return the conditions of a measurement."""
    current = context.current()
    return {
        "expression": expression.canonical(*operands).text,
        "dtypes": [x.dtype.name for x in operands],
        "target": current.target.name,
        "threads": current.threads,
    }


class _Journal:
    """The time of each schedule that was tried, in memory and in a file; None if it cannot run."""

    def __init__(self, path: Path | None, key: dict[str, Any], solution: Solved) -> None:
        self.path = path
        self.key = key
        self.seconds: dict[Steps, float | None] = {}
        for steps, seconds in self._lines():
            try:
                self.seconds[tuple(Schedule(solution, steps).steps)] = seconds
            except RunnelError:
                continue

    def _lines(self) -> Iterator[tuple[list[Step], float | None]]:
        """Yield the complete lines of the file for this expression."""
        if self.path is None or not self.path.exists():
            return
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if not isinstance(entry, dict) or any(entry.get(name) != value for name, value in self.key.items()):
                continue
            steps, seconds = entry.get("steps"), entry.get("seconds")
            is_time = seconds is None or (isinstance(seconds, float) and 0 < seconds < float("inf"))
            if is_time and isinstance(steps, list) and all(isinstance(step, list) for step in steps):
                yield [tuple(step) for step in steps], seconds

    def note(self, steps: Steps, seconds: float | None) -> None:
        self.seconds[steps] = seconds
        if self.path is None:
            return
        entry = json.dumps({**self.key, "steps": steps, "seconds": seconds})
        with self.path.open("a+b") as file:
            if file.tell():
                file.seek(-1, 2)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write(entry.encode() + b"\n")

    def fastest(self, count: int) -> list[Steps]:
        """Return the fastest schedules, the best first."""
        timed = {steps: seconds for steps, seconds in self.seconds.items() if seconds is not None}
        return sorted(timed, key=lambda steps: timed[steps])[:count]
