"""Sets of bytes as runs: the algebra that the verifier of plans calculates with."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

Runs = np.ndarray[Any, np.dtype[np.int64]]  # (n, 2): begin and end of ranges, ascending, apart from one another

LARGEST: Final = 1 << 16  # runs of one footprint; finer ones are not looked into


class TooLarge(Exception):
    """A footprint of more than ``LARGEST`` runs."""


def runs_of(start: int, steps: list[tuple[int, int, int]], size: int) -> Runs:
    """Return the bytes of the elements start + Σ stride·x for all begin ≤ x < end."""
    runs: Runs = np.array([[start * size, start * size + size]], np.int64)
    for begin, end, stride in sorted(steps, key=lambda s: abs(s[2])):
        count = end - begin
        if count <= 0:
            return np.empty((0, 2), np.int64)
        first = begin * stride if stride >= 0 else (end - 1) * stride
        step = abs(stride) * size
        runs = runs + first * size
        if step == 0 or count == 1:
            continue
        if len(runs) == 1 and step <= runs[0, 1] - runs[0, 0]:
            runs[0, 1] += (count - 1) * step
            continue
        if len(runs) * count > LARGEST:
            raise TooLarge
        shifts = np.arange(count, dtype=np.int64) * step
        runs = merged((runs[None, :, :] + shifts[:, None, None]).reshape(-1, 2))
    return runs


def merged(runs: Runs) -> Runs:
    """Any ranges as runs: sorted, and joined where they touch."""
    if len(runs) < 2:
        return runs
    runs = runs[np.argsort(runs[:, 0], kind="stable")]
    reach = np.maximum.accumulate(runs[:, 1])
    first = np.concatenate([[True], runs[1:, 0] > reach[:-1]])
    last = np.concatenate([first[1:], [True]])
    return np.stack([runs[first, 0], reach[last]], axis=1)


def common(a: Runs, b: Runs) -> tuple[int, int] | None:
    """Return a range of bytes that is in both; None if there is none."""
    if not len(a) or not len(b) or a[-1, 1] <= b[0, 0] or b[-1, 1] <= a[0, 0]:
        return None
    candidate = np.minimum(np.searchsorted(b[:, 1], a[:, 0], side="right"), len(b) - 1)
    begin = np.maximum(a[:, 0], b[candidate, 0])
    end = np.minimum(a[:, 1], b[candidate, 1])
    hits = np.flatnonzero(begin < end)
    return (int(begin[hits[0]]), int(end[hits[0]])) if len(hits) else None


def missing(part: Runs, whole: Runs) -> tuple[int, int] | None:
    """Return a run of ``part`` that does not lie in ``whole``; None if all do."""
    if not len(part):
        return None
    if not len(whole):
        return int(part[0, 0]), int(part[0, 1])
    holder = np.maximum(np.searchsorted(whole[:, 0], part[:, 0], side="right") - 1, 0)
    outside = (part[:, 0] < whole[holder, 0]) | (part[:, 1] > whole[holder, 1])
    at = np.flatnonzero(outside)
    return (int(part[at[0], 0]), int(part[at[0], 1])) if len(at) else None
