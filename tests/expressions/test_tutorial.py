"""The usual contractions as tensor expressions: right, one kernel, the same bits in programs and on any threads."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.compiler.schedule import partition
from runnel.core import switches

Array = np.ndarray[Any, Any]


def convolution(x: Array, w: Array, stride: int = 1, dilation: int = 1, padding: int = 0) -> Array:
    """Cross-correlation by its definition, in float64."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    height, width = ((n - dilation * (k - 1) - 1) // stride + 1 for n, k in zip(x.shape[2:], w.shape[2:], strict=True))
    result = np.zeros((x.shape[0], w.shape[0], height, width))
    for i, j in np.ndindex(*w.shape[2:]):
        rows, columns = dilation * i, dilation * j
        part = x[:, :, rows : rows + stride * (height - 1) + 1 : stride, columns:][
            ..., : stride * (width - 1) + 1 : stride
        ]
        result += np.einsum("ncyx,kc->nkyx", part, w[:, :, i, j].astype(np.float64))
    return result


def skipped(x: Array) -> Array:
    result = np.zeros(len(x))
    result[::2] = x[::2].sum(1)
    return result


LIST: dict[str, tuple[str, dict[str, int], tuple[tuple[int, ...], ...], Callable[..., Array]]] = {
    "sum": ("O[j] += I[i, j]", {}, ((5, 40),), lambda x: x.sum(0)),
    "sum of all": ("O[] += I[i, j]", {}, ((5, 40),), lambda x: x.sum()),
    "max": ("O[i] max= I[i, j]", {}, ((5, 40),), lambda x: x.max(1)),
    "product": ("C[i, j] += A[i, k] * B[k, j]", {}, ((5, 70), (70, 19)), lambda a, b: a @ b),
    "long product": ("C[i, j] += A[i, k] * B[k, j]", {}, ((2, 2100), (2100, 3)), lambda a, b: a @ b),
    "matrices": ("C[b, i, j] += A[b, k, i] * B[b, j, k]", {}, ((3, 7, 5), (3, 4, 7)),
                 lambda a, b: a.swapaxes(1, 2) @ b.swapaxes(1, 2)),
    "mean": ("O[i] += I[i, j: N] / N", {}, ((5, 40),), lambda x: x.mean(1)),
    "max pool": ("O[i] max= I[2*i + j] where j < 2", {}, ((9,),), lambda x: x[:8].reshape(4, 2).max(1)),
    "skip": ("O[2*i: N] += I[2*i: N, j]", {}, ((7, 5),), skipped),
    "cumulative sum": ("O[i: N] += I[k: N] where i - k < N", {}, ((35,),), np.cumsum),
    "cumulative sum, compared": ("O[i: N] += I[k: N] where k <= i", {}, ((35,),), np.cumsum),
    "flip": ("O[i] = I[N - 1 - i: N]", {}, ((9,),), lambda x: x[::-1]),
    "diagonal": ("O[i] = I[i, i]", {}, ((6, 6),), np.diagonal),
    "transpose": ("O[i, j] = I[j, i]", {}, ((5, 20),), np.transpose),
    "outer sum": ("O[i, j] = abs(A[i] - B[j])", {}, ((5,), (20,)), lambda a, b: np.abs(a[:, None] - b)),
    "distances": ("O[i, j] += square(A[i, k] - B[j, k])", {}, ((5, 4), (20, 4)),
                  lambda a, b: ((a[:, None] - b[None]) ** 2).sum(2)),
    "convolution": ("O[n, k, y, x] += I[n, c, y + i, x + j] * W[k, c, i, j]", {}, ((2, 3, 8, 25), (4, 3, 3, 2)),
                    convolution),
    "with strides and dilation": ("O[n, k, y, x] += I[n, c, s*y + d*i, s*x + d*j] * W[k, c, i, j]",
                                  {"s": 2, "d": 3}, ((2, 3, 11, 20), (4, 3, 3, 3)),
                                  lambda x, w: convolution(x, w, 2, 3)),
    "with padding": ("O[n, k, y: Y, x: X] += I[n, c, y + i - 1: Y, x + j - 1: X] * W[k, c, i, j] "
                     "where 0 <= y + i - 1 < Y, 0 <= x + j - 1 < X", {}, ((2, 3, 6, 25), (4, 3, 3, 3)),
                     lambda x, w: convolution(x, w, padding=1)),
    "transposed convolution": ("O[2*q + i: 9, 2*p + j: 13] += G[q, p] * W[i, j]", {}, ((4, 6), (3, 3)),
                               lambda g, w: sum(np.pad(np.kron(g, [[1, 0], [0, 0]]), ((i, 3 - i), (j, 3 - j)))[:9, :13]
                                                * w[i, j] for i in range(3) for j in range(3))),
}  # fmt: skip


@pytest.fixture(autouse=True)
def split_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small programs are split among threads, too."""
    monkeypatch.setattr(partition, "WORTH_A_TEAM", 0.0)
    monkeypatch.setattr(partition, "WORTH_SPLITTING", 0.0)


@pytest.mark.parametrize("name", LIST)
def test_against_numpy(name: str) -> None:
    text, sizes, shapes, numpy = LIST[name]
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    function = rn.expressions.tensor_expr(text, **sizes)
    xs = [rn.asarray(a) for a in arrays]
    eager = function(*xs)
    expected = numpy(*(a.astype(np.float64) for a in arrays))
    np.testing.assert_allclose(eager.numpy(), expected, rtol=2e-5, atol=2e-5)
    for threads in (1, 2, 3):
        with switches.override(num_threads=threads):
            compiled = rn.compile(lambda *xs: function(*xs))
            assert compiled(*xs).numpy().tobytes() == eager.numpy().tobytes()
            assert len(compiled.program(*xs).kernels) == 1
    assert function.scheduled(())(*xs).numpy().tobytes() == eager.numpy().tobytes()


def test_nothing_is_kept_in_between() -> None:
    text, _, shapes, _ = LIST["convolution"]
    xs = [rn.ones(shape) for shape in shapes]
    compiled = rn.compile(rn.expressions.tensor_expr(text).__call__)
    compiled(*xs)
    program = compiled.program(*xs)
    assert program.memory.as_json()["peak"] == 0
    gradient = rn.compile(rn.grad(lambda x, w: rn.expressions.tensor_expr(text)(x, w).sum(), argnums=(0, 1)))
    gradient(*xs)
    largest = max(4 * int(np.prod(shape)) for shape in (*shapes, (2, 4, 6, 24)))
    assert gradient.program(*xs).memory.as_json()["peak"] <= 2 * largest


@pytest.mark.parametrize("name", LIST)
def test_kernels_call_no_library(name: str) -> None:
    """But LLVM's intrinsics, which are instructions."""
    text, sizes, shapes, _ = LIST[name]
    xs = [rn.ones(shape) for shape in shapes]
    (kernel,) = rn.compile(rn.expressions.tensor_expr(text, **sizes).__call__).program(*xs).kernels
    used = re.findall(r"(?:^declare|call) [^@]*@([\w.]+)", kernel.llvm, re.MULTILINE)
    own = set(re.findall(r"^define .*?@([\w.]+)", kernel.llvm, re.MULTILINE))
    assert own and all(each in own or each.startswith("llvm.") for each in used)


def test_strided_and_broadcast_operands_are_read_in_place() -> None:
    rng = np.random.default_rng(4)
    whole = rn.asarray(rng.standard_normal((8, 30)).astype(np.float32))
    product = rn.expressions.tensor_expr("C[i, j] += A[i, k] * B[k, j]")

    def function(x: rn.Tensor) -> rn.Tensor:
        return product(x[::2, 1::3], rn.broadcast_to(x[:1, :17], (10, 17)))

    expected = whole.numpy()[::2, 1::3] @ np.broadcast_to(whole.numpy()[:1, :17], (10, 17))
    np.testing.assert_allclose(function(whole).numpy(), expected, rtol=1e-5, atol=1e-5)
    compiled = rn.compile(function)
    assert compiled(whole).numpy().tobytes() == function(whole).numpy().tobytes()
    assert len(compiled.program(whole).kernels) == 1


def pairwise(chains: np.ndarray) -> np.float32:
    """The sum of float32: blocks of 64 in order, which meet pairwise."""
    if len(chains) <= 64:
        total = np.float32(0)
        for chain in chains:
            total = np.float32(total + chain)
        return total
    half = 1 << (-(-len(chains) // 64) - 1).bit_length() - 1
    return np.float32(pairwise(chains[: 64 * half]) + pairwise(chains[64 * half :]))


def test_sums_are_chains_of_1024_terms_that_meet_pairwise() -> None:
    count = 1024 * 200 + 7
    x = np.random.default_rng(6).standard_normal(count).astype(np.float32)
    chains = [np.cumsum(x[at : at + 1024], dtype=np.float32)[-1] for at in range(0, count, 1024)]
    assert rn.expressions.tensor_expr("O[] += A[i]")(rn.asarray(x)).item() == pairwise(np.asarray(chains))


def test_the_error_of_a_million_terms_is_within_the_bound() -> None:
    """After the first number, the greatest error that an order allows: each chain that is added to it is lost."""
    x = np.zeros(10**6, np.float32)
    x[0], x[1:1024], x[1024::1024] = 2**24, 1, 1
    exact = x.sum(dtype=np.float64)
    bound = (1024 + 64 + 4) * 2**-24
    total = rn.expressions.tensor_expr("O[] += A[i]")
    assert abs(total(rn.asarray(x)).item() - exact) <= bound * exact
    columns = rn.asarray(np.stack([x] * 3, 1))
    down = rn.expressions.tensor_expr("O[j] += A[i, j]")(columns)
    assert down.numpy().tobytes() == np.full(3, total(rn.asarray(x)).item(), np.float32).tobytes()
    assert abs(np.float32(2**24 + 1023) - exact) < bound * exact < abs(2**24 - exact)  # which one chain would give


def test_long_sums_have_the_same_bits_in_all_schedules_and_threads() -> None:
    rng = np.random.default_rng(8)
    a, b = (rn.asarray(rng.standard_normal(s).astype(np.float32)) for s in ((6, 700, 150), (700, 150, 33)))
    product = rn.expressions.tensor_expr("C[i, j] += A[i, k, n] * B[k, n, j]")
    tiled = product.schedule(a, b)
    columns, lanes = tiled.split("j", 16)
    tiled.split("k_block", 5)
    _, steps = tiled.split("n", 4)
    tiled.reorder("i", columns, "k_block_0", "k_block_1", "k", "n_0", steps, lanes)
    tiled.unroll(steps)
    tiled.vectorize(lanes)
    tiled.parallel("i")
    plain = product.scheduled(())(a, b).numpy()
    for function in (product, product.scheduled(tiled)):
        for threads in (1, 2, 3):
            with switches.override(num_threads=threads):
                assert function(a, b).numpy().tobytes() == plain.tobytes()
                assert rn.compile(lambda a, b, f=function: f(a, b))(a, b).numpy().tobytes() == plain.tobytes()
    exact = np.einsum("ikn,knj->ij", a.numpy().astype(np.float64), b.numpy().astype(np.float64))
    np.testing.assert_allclose(plain, exact, atol=1e-3)
