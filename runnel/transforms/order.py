"""The order of rows that depend on one another: chains, trees, forests and other graphs without cycles, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from runnel.core.arrays import short_repr
from runnel.core.errors import ArgumentError, ShapeError
from runnel.core.kinds import declare
from runnel.tensor.creation import asarray

_Ints = np.ndarray[Any, np.dtype[np.int64]]
_NONE: Final = -1


@declare
class Order(NamedTuple):
    """The order in which ``recur`` computes rows. Make one by :meth:`of`, :meth:`chains` or :meth:`from_parents`.

    The rows are sorted into waves: those that depend on no other row, those that depend on the first wave only, and so
    on. It is a tree of tensors, so that a compiled function can take it as an argument.

    Attributes:
        links: int64 (links of a row, rows), in the sorted numbering; a row's own number where it has no link.
        rows: int64 (rows,), the number of each sorted row in the caller's order.
        places: int64 (rows,), the sorted number of each of the caller's rows.
        starts: int64 (waves + 1,), the first sorted row of each wave, and the number of rows.
    """

    links: Any
    rows: Any
    places: Any
    starts: Any

    @classmethod
    def of(cls, links: Any) -> Order:
        """Return the order of rows that depend on the rows ``links`` (rows, links of a row); -1 is no link.

        Raise ArgumentError for links that are no rows, and for a cycle.

        Example:
            >>> rn.Order.of([[-1, -1], [-1, -1], [0, 1]]).starts.tolist()
            [0, 2, 3]
        """
        array = np.asarray(links)
        if array.ndim != 2:
            raise ShapeError(f"[Order.of] links must have the axes (rows, links of a row); got shape {array.shape}.")
        if array.dtype.kind not in "iu" and array.size:
            raise ArgumentError(f"[Order.of] links must be integers; got {array.dtype}.")
        table: _Ints = array.astype(np.int64)
        count = len(table)
        wrong = (table < _NONE) | (table >= count)
        if wrong.any():
            row, place = map(int, np.argwhere(wrong)[0])
            raise ArgumentError(
                f"[Order.of] links must be rows below {count}, or -1; got {table[row, place]} in row {row}."
            )
        return cls._sorted(table, _waves(table))

    @classmethod
    def chains(cls, lengths: Sequence[int] | Any, reverse: bool = False) -> Order:
        """Return the order of the rows of sequences of these ``lengths``, one after another. Each row depends on the
        row before it in its sequence; with ``reverse`` on the row after it."""
        counts: _Ints = np.asarray(lengths, np.int64)
        if counts.ndim != 1 or (counts < 0).any():
            raise ArgumentError(f"[Order.chains] lengths must be numbers of rows; got {short_repr(lengths)}.")
        total = int(counts.sum())
        ends = np.cumsum(counts)
        position = np.arange(total) - np.repeat(ends - counts, counts)
        step = 1 if reverse else -1
        link = np.arange(total) + step
        wave = np.repeat(counts, counts) - 1 - position if reverse else position
        link[wave == 0] = _NONE
        return cls._sorted(link[:, None], wave)

    @classmethod
    def from_parents(cls, parents: Any, children: int) -> Order:
        """Return the order of trees in which each row depends on its children, by the ``parents`` (rows,) of rows; -1
        is no parent. A row has at most this number of ``children``; they are linked in the order of their rows."""
        up: _Ints = np.asarray(parents, np.int64)
        if up.ndim != 1 or ((up < _NONE) | (up >= len(up))).any():
            raise ArgumentError(
                f"[Order.from_parents] parents must be rows below {len(up)}, or -1; got {short_repr(parents)}."
            )
        child = np.flatnonzero(up >= 0)
        child = child[np.argsort(up[child], kind="stable")]
        owner = up[child]
        first = np.searchsorted(owner, owner)
        number = np.arange(len(owner)) - first
        if len(number) and number.max() >= children:
            row = int(owner[number.argmax()])
            raise ArgumentError(
                f"[Order.from_parents] a row must have at most {children} children; row {row} has more."
            )
        links = np.full((len(up), children), _NONE)
        links[owner, number] = child
        return cls.of(links)

    @classmethod
    def _sorted(cls, links: _Ints, wave: _Ints) -> Order:
        count = len(wave)
        rows = np.argsort(wave, kind="stable")
        places = np.empty(count, np.int64)
        places[rows] = np.arange(count)
        linked = links[rows].T
        own = np.arange(count)
        renumbered = np.where(linked < 0, own, places[linked]) if count else linked
        sizes = np.bincount(wave) if count else np.zeros(1, np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        arrays = (np.ascontiguousarray(renumbered), rows, places, starts)
        return cls(*(asarray(x.astype(np.int64), copy=False) for x in arrays))


def _waves(links: _Ints) -> _Ints:
    """Return the wave of each row: the length of the longest path of links from it (A. Kahn, "Topological sorting of
    large networks", 1962, a wave at a time)."""
    count = len(links)
    reader, place = np.nonzero(links >= 0)
    target = links[reader, place]
    by_target = np.argsort(target, kind="stable")
    reader, begin = reader[by_target], np.searchsorted(target[by_target], np.arange(count + 1))
    missing = np.bincount(reader, minlength=count)
    wave = np.zeros(count, np.int64)
    ready = np.flatnonzero(missing == 0)
    done, number = 0, 0
    while len(ready):
        wave[ready] = number
        done += len(ready)
        number += 1
        lengths = begin[ready + 1] - begin[ready]
        ends = np.cumsum(lengths)
        positions = np.arange(int(lengths.sum())) + np.repeat(begin[ready] - (ends - lengths), lengths)
        readers, times = np.unique(reader[positions], return_counts=True)
        missing[readers] -= times
        ready = readers[missing[readers] == 0]
    if done < count:
        row = int(np.flatnonzero(missing > 0)[0])
        raise ArgumentError(f"[Order.of] links must not form a cycle; row {row} depends on itself or on a cycle.")
    return wave
