"""Compare compiled with eager functions."""

from __future__ import annotations

import dataclasses

import numpy as np

import runnel as rn
from runnel.compile import compile


def tensor(*values: float) -> rn.Tensor:
    return rn.asarray(np.array(values, np.float32))


def same(a, b) -> None:
    """Equal to the bit, in structure, dtype and shape."""
    assert type(a) is type(b)
    if isinstance(a, rn.Tensor):
        assert a.dtype is b.dtype
        assert a.shape == b.shape
        assert a.numpy().tobytes() == b.numpy().tobytes()
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif dataclasses.is_dataclass(a):
        same(vars(a), vars(b))
    else:
        assert a == b or (a != a and b != b)


def check(function, *calls) -> object:
    """Compiled and eager agree on every call, thrice over; a call is a tuple of arguments."""
    compiled = compile(function)
    for _ in range(3):
        for args in calls:
            same(compiled(*args), function(*args))
    return compiled
