"""Results of operands without elements have the shapes that other operands give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import runnel as rn
from runnel import ops


def weight_gradient(x: Any) -> Any:
    return rn.grad(lambda w: ops.sum(ops.conv(x, w)))(rn.ones((3, 2, 2)))


CASES: dict[str, tuple[Callable[[], Any], list[tuple[int, ...]]]] = {
    "eigh": (lambda: rn.linalg.eigh(rn.zeros((0, 3, 3))), [(0, 3), (0, 3, 3)]),
    "eigh of nothing": (lambda: rn.linalg.eigh(rn.zeros((2, 0, 0))), [(2, 0), (2, 0, 0)]),
    "qr": (lambda: rn.linalg.qr(rn.zeros((0, 3, 2))), [(0, 3, 2), (0, 2, 2)]),
    "svd": (lambda: rn.linalg.svd(rn.zeros((0, 3, 2)), full_matrices=False), [(0, 3, 2), (0, 2), (0, 2, 2)]),
    "solve": (lambda: rn.linalg.solve(rn.zeros((0, 2, 2)), rn.zeros((0, 2, 1))), [(0, 2, 1)]),
    "real": (lambda: rn.real(rn.zeros((0, 3), dtype=rn.complex64)), [(0, 3)]),
    "imag": (lambda: rn.imag(rn.zeros((0, 3), dtype=rn.complex64)), [(0, 3)]),
    "conj": (lambda: rn.conj(rn.zeros((0, 3), dtype=rn.complex64)), [(0, 3)]),
    "pair": (lambda: rn.complex(rn.zeros((0, 3)), rn.zeros((0, 3))), [(0, 3)]),
    "convolution": (lambda: ops.conv(rn.zeros((0, 2, 5)), rn.ones((3, 2, 2))), [(0, 3, 4)]),
    "convolution_weight_gradient": (lambda: weight_gradient(rn.zeros((0, 2, 5))), [(3, 2, 2)]),
    "convolution_input_gradient": (lambda: ops.conv_transpose(rn.zeros((0, 3, 4)), rn.ones((3, 2, 2))), [(0, 2, 5)]),
    "max_pool": (lambda: ops.max_pool(rn.zeros((0, 2, 6)), 2), [(0, 2, 3)]),
    "pad": (lambda: ops.pad(rn.zeros((0, 2)), ((0, 0), (1, 1))), [(0, 4)]),
    "scatter_add": (lambda: ops.scatter_add(rn.zeros(2, dtype=rn.int64), rn.zeros((2, 0)), 4), [(4, 0)]),
    "segment_sums": (lambda: rn.segment_sum(rn.zeros((2, 0)), rn.zeros(2, dtype=rn.int64), 3), [(3, 0)]),
}


@pytest.mark.parametrize("name", CASES)
def test_shapes(name: str) -> None:
    call, expected = CASES[name]
    results = call()
    results = list(results) if isinstance(results, tuple) else [results]
    assert [x.shape for x in results] == expected
    assert all(x.numpy().shape == x.shape and not x.numpy().any() for x in results)
