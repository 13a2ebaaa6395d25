"""Operands that kernels read backwards, shared out among threads. The verifier, which runs in all tests, compares what
each block touches with the region that its barriers are set for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import ops
from runnel.core import switches
from tests.fuzz.graph_checks import shared_always

Program = Callable[[Any], Any]


def made(x: Any) -> Any:
    """A value that all threads make a part of, and that no kernel makes for itself."""
    return rn.sort(x, axis=-1)


def back(x: Any, *axes: int) -> Any:
    return rn.flip(made(x), axis=axes)


PROGRAMS: dict[str, Program] = {
    "product, sum backwards in the first": lambda x: back(x[0], 1) @ made(x[1]),
    "product, sum backwards in the second": lambda x: made(x[0]) @ back(x[1], 0),
    "product, rows backwards": lambda x: back(x[0], 0) @ made(x[1]),
    "product, columns backwards": lambda x: made(x[0]) @ back(x[1], 1),
    "product of transposed": lambda x: rn.permute(back(x[0], 0), (1, 0)) @ back(x[1], 0),
    "product that is summed up": lambda x: rn.sum((rn.permute(back(x[0], 0), (1, 0)) @ back(x[0], 0)) * 0.3, axis=1),
    "products of a batch": lambda x: back(x, 1, 2) @ back(x, 1),
    "batch backwards": lambda x: back(x, 0) @ made(x),
    "sum of rows backwards": lambda x: rn.sum(back(x, 2), axis=2),
    "sum of columns backwards": lambda x: rn.sum(back(x, 1), axis=1),
    "sum of all axes but the first": lambda x: rn.sum(back(x, 1, 2), axis=(1, 2)),
    "softmax backwards": lambda x: rn.softmax(back(x, 1), axis=1),
    "copy": lambda x: rn.concat([back(x, 1), back(x, 2)], axis=0),
    "copy of four axes": lambda x: rn.concat(
        [rn.permute(rn.reshape(back(x, 1), (6, 2, 3, 6)), (2, 0, 3, 1))[::-1, :, ::-1, ::-1]] * 2, axis=1
    ),
    "padded": lambda x: ops.pad(back(x, 1, 2), ((0, 0), (1, 1), (2, 0))),
    "gathered from": lambda x: rn.take(back(x[0], 0, 1), rn.asarray([2, 0, 1]), axis=0),
    "transposed": lambda x: rn.permute(back(x, 2), (2, 0, 1)) * 2.0 + 1.0,
    "sorted": lambda x: rn.sort(back(x, 2), axis=1),
    "running maximum": lambda x: rn.max(back(x, 1), axis=1) + rn.argmax(back(x, 2), axis=2).astype(rn.float32),
    "convolution": lambda x: rn.nn.functional.conv2d(back(x, 2)[None], back(x, 1)[:, None, :3, :3], groups=6),
    "attention": lambda x: rn.nn.functional.scaled_dot_product_attention(back(x, 1), back(x, 2), back(x, 1, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_barrier_is_missing(name: str) -> None:
    x = rn.asarray(np.random.default_rng(3).normal(size=(6, 6, 6)).astype(np.float32))
    same_on_two_threads(PROGRAMS[name], x)


@pytest.mark.parametrize(
    "name", [name for name in PROGRAMS if "product" in name or "sum" in name or name == "attention"]
)
def test_no_barrier_is_missing_in_large_ones(name: str) -> None:
    x = rn.asarray(np.random.default_rng(3).normal(size=(6, 40, 40)).astype(np.float32))
    same_on_two_threads(PROGRAMS[name], x)


@pytest.mark.parametrize("kind", ["gathered", "added"])
def test_indices_backwards(kind: str) -> None:
    def f(x: Any) -> Any:
        rows = rn.asarray(np.arange(8, dtype=np.int64).reshape(2, 4)) + (made(x) > 1e9).astype(rn.int64)
        at = rn.flip(rows, axis=(0, 1))
        values = back(x, 0, 1)
        if kind == "gathered":
            return rn.take(values.reshape(-1), at, axis=0)
        return rn.index_add(rn.zeros((8,)), 0, at.reshape(-1), values.reshape(-1))

    same_on_two_threads(f, rn.asarray(np.random.default_rng(4).normal(size=(2, 4)).astype(np.float32)))


def same_on_two_threads(function: Program, x: Any) -> None:
    with switches.override(num_threads=1):
        expected = rn.compile(function)(x).numpy()
    with switches.override(num_threads=2), shared_always():
        assert np.array_equal(rn.compile(function)(x).numpy(), expected, equal_nan=True)
