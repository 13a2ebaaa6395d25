"""Arrays with derivatives, in NumPy: by every parameter, along one direction, and both. In-place assignment is NumPy's.

A jet holds f, ∂f/∂p for all parameters p, the derivative D f along a direction, and ∂(D f)/∂p: Hessian times direction.
It shares no code with the tape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def split(key: Any) -> tuple[Any, Any]:
    """Return two keys that NumPy takes one after the other for what ``key`` names: integers first, as in PyTorch."""
    first: list[Any] = []
    rest = []
    for k in key if isinstance(key, tuple) else (key,):
        plain = k is None or k is ... or isinstance(k, slice)
        array = None if plain else np.asarray(k, None if np.size(k) else getattr(k, "dtype", int))
        if array is not None and array.ndim == 0 and array.dtype.kind in "iu":
            first.append(int(array))
            continue
        rest.append(k)
        if k is not None:
            is_mask = array is not None and array.dtype == bool
            first += [k] if k is ... else [slice(None)] * (np.ndim(k) if is_mask else 1)
    return tuple(first) if any(k is ... for k in first) else (*first, ...), tuple(rest)


def chosen(x: Array, key: Any) -> Array:
    """``x[key]`` with integers first."""
    first, rest = split(key)
    return x[first][rest]


class Jet:
    """``parts``: (value, derivatives by p in a leading axis, directional derivative, both)."""

    def __init__(self, value: Array, by: Array, along: Array, both: Array) -> None:
        self.value, self.by, self.along, self.both = map(np.asarray, (value, by, along, both))

    @staticmethod
    def constant(value: Any, count: int) -> Jet:
        array = np.array(value, np.float64)
        zeros = np.zeros((count, *array.shape))
        return Jet(array, zeros, np.zeros_like(array), zeros.copy())

    @staticmethod
    def parameter(value: Array, first: int, direction: Array, count: int) -> Jet:
        """One whose elements are the parameters from number ``first`` on."""
        jet = Jet.constant(value, count)
        for i, place in enumerate(np.ndindex(value.shape)):
            jet.by[(first + i, *place)] = 1.0
        jet.along[...] = direction
        return jet

    def copy(self) -> Jet:
        return Jet(self.value.copy(), self.by.copy(), self.along.copy(), self.both.copy())

    def each(self, function: Callable[[Array], Any]) -> Jet:
        """A linear ``function`` of arrays of this shape, applied to every part; the result is a copy."""
        by = [np.array(function(x)) for x in self.by]
        both = [np.array(function(x)) for x in self.both]
        return Jet(np.array(function(self.value)), np.stack(by), np.array(function(self.along)), np.stack(both))

    def item(self, key: Any) -> Jet:
        """``self[key]``, a view where NumPy's is one."""
        keys = key if isinstance(key, tuple) else (key,)
        if any(isinstance(k, np.ndarray) for k in keys):
            return self.each(lambda x: chosen(x, key))
        if not any(k is ... for k in keys):
            keys = (*keys, ...)
        every = (slice(None), *keys)
        return Jet(self.value[keys], self.by[every], self.along[keys], self.both[every])

    def put(self, key: Any, other: Jet) -> None:
        """``self[key] = other``."""
        first, rest = split(key)
        self.value[first][rest] = other.value
        self.along[first][rest] = other.along
        for mine, theirs in ((self.by, other.by), (self.both, other.both)):
            for i, y in enumerate(theirs):
                mine[i, ...][first][rest] = y

    def __add__(self, other: Jet) -> Jet:
        return self._combined(other, lambda x, y: x + y)

    def __sub__(self, other: Jet) -> Jet:
        return self._combined(other, lambda x, y: x - y)

    def _combined(self, other: Jet, function: Callable[[Array, Array], Array]) -> Jet:
        def pairs(a: Array, b: Array) -> Array:
            return np.stack([function(x, y) for x, y in zip(a, b, strict=True)])

        return Jet(
            function(self.value, other.value), pairs(self.by, other.by), function(self.along, other.along),
            pairs(self.both, other.both),
        )  # fmt: skip

    def __mul__(self, other: Jet) -> Jet:
        f, g = self, other
        by = np.stack([a * g.value + f.value * b for a, b in zip(f.by, g.by, strict=True)])
        both = np.stack(
            [
                ab * g.value + a * g.along + f.along * b + f.value * bb
                for a, ab, b, bb in zip(f.by, f.both, g.by, g.both, strict=True)
            ]
        )
        return Jet(f.value * g.value, by, f.along * g.value + f.value * g.along, both)

    def through(self, value: Array, first: Array, second: Array) -> Jet:
        """A function of each element, given its value and its first two derivatives."""
        by = np.stack([first * x for x in self.by])
        both = np.stack([second * x * self.along + first * xx for x, xx in zip(self.by, self.both, strict=True)])
        return Jet(value, by, first * self.along, both)

    def tanh(self) -> Jet:
        t = np.tanh(self.value)
        return self.through(t, 1 - t * t, -2 * t * (1 - t * t))
