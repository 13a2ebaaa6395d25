"""Sums of 10⁸ terms: the documented order, the bits of it in every nest and on any number of threads, and its error."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as rn
from runnel.core import switches
from tests.expressions.test_tutorial import pairwise

I, J, K = 500, 400, 500  # noqa: E741  # 10⁸ points, from arrays of some hundred numbers
CHAIN = 2  # values of j for which all of k are a chain, of 1000 terms
CHAINS = I * J // CHAIN


@pytest.fixture(scope="module")
def operands() -> list[np.ndarray]:
    """Rows whose terms are rounded; whose terms are exact; and all ones, the sum of which a single chain never gets."""
    rng = np.random.default_rng(12)
    a = np.stack([rng.standard_normal(I), rng.integers(1, 16, I), np.ones(I)]).astype(np.float32)
    b = np.stack([rng.standard_normal(J), rng.integers(1, 8, J) / 8, np.ones(J)]).astype(np.float32)
    c = np.stack([rng.standard_normal(K), rng.integers(1, 16, K) / 16, np.ones(K)]).astype(np.float32)
    return [a, b, c]


def in_documented_order(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The sum over i, j, k of a[i]·b[j]·c[k], each operation rounded: all chains step by step, and then pairwise."""
    products = (a[:, None] * b[None, :]).reshape(CHAINS, CHAIN)
    chains = np.zeros(CHAINS, np.float32)
    for j in range(CHAIN):
        for k in range(K):
            chains += products[:, j] * c[k]
    return pairwise(chains)


def test_a_hundred_million_terms(operands: list[np.ndarray]) -> None:
    total = rn.expressions.tensor_expr("S[r] += A[r, i] * B[r, j] * C[r, k]")
    tensors = [rn.asarray(x) for x in operands]
    schedule = total.schedule(*tensors)
    schedule.split("j_block", 9)
    _, inner = schedule.split("k", 16)
    schedule.unroll(inner)
    schedule.parallel("r")
    every = []
    for threads in (1, 2):
        with switches.override(num_threads=threads):
            every += [f(*tensors).numpy() for f in (total, total.scheduled(()), total.scheduled(schedule))]
            every.append(rn.compile(lambda *x: total(*x))(*tensors).numpy())
    expected = np.stack([in_documented_order(*(x[r] for x in operands)) for r in range(3)])
    assert {x.tobytes() for x in every} == {expected.tobytes()}
    a, b, c = (x.astype(np.float64) for x in operands)
    exact = a.sum(1) * b.sum(1) * c.sum(1)
    magnitudes = np.abs(a).sum(1) * np.abs(b).sum(1) * np.abs(c).sum(1)
    unit = 2.0**-24
    steps = CHAIN * K + 64 + int(np.ceil(np.log2(CHAINS / 64)))  # the bound of docs/extend/expressions.md
    roundings = np.array([2, 0, 0])  # of each term
    assert (np.abs(expected - exact) <= (steps + roundings) * unit * magnitudes).all()
    assert expected[2] == 10**8 and abs(2**24 - 10**8) > steps * unit * 10**8  # which one chain of ones would give
