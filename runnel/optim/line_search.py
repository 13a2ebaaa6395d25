"""A step length with the strong Wolfe conditions (J. Nocedal, S. Wright, "Numerical optimization", 3.5 and 3.6).

Bounds, and when a bracket is too narrow, are those of M. Schmidt's minFunc, from which PyTorch has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

DECREASE: Final = 1e-4  # the least decrease, as a share of what the first slope promises
CURVATURE: Final = 0.9  # the greatest slope that is left, as a share of the first


class Point(NamedTuple):
    """What is known of one step length: the loss there, its gradient, and its slope along the direction."""

    size: float
    loss: float
    gradient: Any
    slope: float


def strong_wolfe(
    evaluate: Callable[[float], Point], start: Point, size: float, limit: int, greatest: float, tolerance: float
) -> tuple[Point, int]:
    """A point with a sufficiently smaller loss and slope than ``start``'s, and how often ``evaluate`` was called.

    ``size`` is tried first; ``greatest`` is the greatest element of the direction. When the bracket is narrower than
    ``tolerance`` along it, or after ``limit`` further trials, it is the best of the bracket.
    """
    bracket, trials = _bracketed(evaluate, start, size, limit)
    if len(bracket) == 1:
        return bracket[0], trials
    return _zoomed(evaluate, start, bracket, trials, limit, (greatest, tolerance))


def _is_flat(point: Point, start: Point) -> bool:
    return abs(point.slope) <= -CURVATURE * start.slope


def _is_high(point: Point, start: Point) -> bool:
    return point.loss > start.loss + DECREASE * point.size * start.slope


def _bracketed(evaluate: Callable[[float], Point], start: Point, size: float, limit: int) -> tuple[list[Point], int]:
    """Go on until a point is right, which is then given alone, or two points have one between them."""
    before, now, trials = start, evaluate(size), 1
    for trial in range(limit):
        if _is_high(now, start) or (trial > 1 and now.loss >= before.loss):
            return [before, now], trials
        if _is_flat(now, start):
            return [now], trials
        if now.slope >= 0:
            return [before, now], trials
        least, most = now.size + 0.01 * (now.size - before.size), now.size * 10
        size = interpolated(before, now, (least, most))
        before, now, trials = now, evaluate(size), trials + 1
    return [start, now], trials


def _zoomed(
    evaluate: Callable[[float], Point],
    start: Point,
    bracket: list[Point],
    trials: int,
    limit: int,
    narrow: tuple[float, float],
) -> tuple[Point, int]:
    """Narrow the bracket until its better end is right."""
    low, stuck = _better(bracket), False
    for _ in range(trials - 1, limit):
        left, right = sorted(point.size for point in bracket)
        if (right - left) * narrow[0] < narrow[1]:
            break
        size = interpolated(bracket[0], bracket[1])
        margin = 0.1 * (right - left)
        is_near = min(right - size, size - left) < margin
        if is_near and (stuck or size >= right or size <= left):
            size = right - margin if abs(size - right) < abs(size - left) else left + margin
            is_near = False
        stuck = is_near
        now = evaluate(size)
        trials += 1
        if _is_high(now, start) or now.loss >= bracket[low].loss:
            bracket[1 - low] = now
            low = _better(bracket)
        elif _is_flat(now, start):
            return now, trials
        else:
            if now.slope * (bracket[1 - low].size - bracket[low].size) >= 0:
                bracket[1 - low] = bracket[low]
            bracket[low] = now
    return bracket[low], trials


def _better(bracket: list[Point]) -> int:
    return 0 if bracket[0].loss <= bracket[1].loss else 1


def interpolated(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through both points, with their slopes, is least; the middle, where there is no such place."""
    left, right = bounds or (min(a.size, b.size), max(a.size, b.size))
    if a.size > b.size:
        a, b = b, a
    bend = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.size - b.size)
    square = bend**2 - a.slope * b.slope
    root = math.sqrt(square) if square >= 0 else math.nan
    across = b.slope - a.slope + 2 * root
    if not abs(across) > 0:
        return (left + right) / 2
    place = b.size - (b.size - a.size) * ((b.slope + root - bend) / across)
    return min(max(place, left), right)
