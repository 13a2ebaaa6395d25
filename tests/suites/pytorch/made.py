"""The arrays of the cases, made of NumPy alone, so that PyTorch and Runnel get the same."""

from __future__ import annotations

import zlib

import numpy as np


def array(text: str, name: str) -> np.ndarray:
    """An array of the kind and shape that ``text`` says, seeded by ``name``: "2 3" normal numbers, "p 2 3" from (0, 1),
    "c 2 3" such constants, "s 2 3" of 1 and -1, "i5 2 3" integers below 5, "b 2 3" bools, "= 1 2" these integers,
    "v 1 nan" these floats."""
    rng = np.random.default_rng(zlib.crc32(f"{name} {text}".encode()))
    kind, _, rest = text.partition(" ") if not text[:1].isdigit() and text else ("", "", text)
    if kind == "v":
        return np.array(list(map(float, rest.split())))
    numbers = tuple(map(int, rest.split()))
    if kind == "=":
        return np.array(numbers)
    if kind in ("p", "c"):
        return rng.uniform(0.05, 0.95, numbers)
    if kind == "s":
        return rng.choice([-1.0, 1.0], numbers)
    if kind == "b":
        return rng.random(numbers) < 0.5
    if kind.startswith("i"):
        return rng.integers(0, int(kind[1:]), numbers)
    return rng.standard_normal(numbers)


def has_gradient(text: str) -> bool:
    """Return True if such an array gets a gradient: floats that are data."""
    return text[:1].isdigit() or text[:1] in ("", "p", "v")


def parameter(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The value of a module's Parameter or buffer of floats."""
    values = array(" ".join(map(str, shape)), name) if shape else np.array(0.7)
    return np.abs(values) + 0.5 if "var" in name else values


def weights(shape: tuple[int, ...]) -> np.ndarray:
    """Return the factors of the elements of a result, so that each counts differently in the loss."""
    return np.cos(np.arange(int(np.prod(shape)))).reshape(shape)
