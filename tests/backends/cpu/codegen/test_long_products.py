"""Products of long sums: blocks of k that meet pairwise, to the bit, however operands lie and rows are cut."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from test_contract import EPILOGUE, every_kernel as every_kernel, guarded, in_panels, kernel, laid_out, operands

from runnel.backends.cpu.target import InstructionSet
from runnel.core.dtypes import DType
from runnel.loops.ir import K_BLOCK
from tests.loops.summation import bound, paired

LONG = [K_BLOCK + 1, 2 * K_BLOCK, 3 * K_BLOCK - 1, 4 * K_BLOCK, 5 * K_BLOCK + 3, 8 * K_BLOCK]


def in_blocks(run: Any, a: Any, b: Any, start: Any = None) -> Any:
    """Add short products of the blocks in the order that the definition names."""
    blocks = []
    for at in range(0, a.shape[1], K_BLOCK):
        resumes = start is not None and at == 0
        c = start.copy() if resumes else np.full((a.shape[0], b.shape[1]), np.nan, a.dtype)
        run(a[:, at : at + K_BLOCK], b[at : at + K_BLOCK], c, resume=resumes)
        blocks.append(c)
    return paired(blocks)


@every_kernel
@pytest.mark.parametrize("k", LONG)
def test_blocks_of_k_meet_pairwise(dtype: DType, row: InstructionSet, k: int) -> None:
    run = kernel(dtype, row)
    a, b = operands(9, 37, k, dtype)
    expected = in_blocks(run, a, b)
    for layouts in (("rows", "rows"), ("columns", "padded columns"), ("every other", "backwards")):
        c = np.full((9, 40), np.nan, dtype.numpy)
        run(laid_out(a, layouts[0]), laid_out(b, layouts[1]), c[:, :37])
        np.testing.assert_array_equal(c[:, :37], expected)
        assert np.isnan(c[:, 37:]).all()
    exact, size = a.astype(np.float64) @ b, np.abs(a).astype(np.float64) @ np.abs(b)
    assert (np.abs(expected - exact) <= bound(k, dtype.numpy, products=True) * size + 1e-14 * size).all()


@every_kernel
@pytest.mark.parametrize("shape", [(1, 1, 70 * K_BLOCK + 1), (1000, 512, 2 * K_BLOCK + 5), (13, 1100, 3 * K_BLOCK)])
def test_whatever_is_taken_at_once(dtype: DType, row: InstructionSet, shape: tuple[int, int, int]) -> None:
    """More rows, more columns and more blocks than there is room for in one go."""
    run = kernel(dtype, row)
    a, b = operands(*shape, dtype)
    c = np.full(shape[:2], np.nan, dtype.numpy)
    run(a, b, c)
    np.testing.assert_array_equal(c, in_blocks(run, a, b))
    m, n, _ = shape
    d = np.full((m, n), 7, dtype.numpy)
    run(a, b, d, (m // 3, m, 0, n // 2 + 1))
    np.testing.assert_array_equal(d[m // 3 :, : n // 2 + 1], c[m // 3 :, : n // 2 + 1])
    d[m // 3 :, : n // 2 + 1] = 7
    assert (d == 7).all()


@every_kernel
def test_lists_panels_and_results_to_go_on_from(dtype: DType, row: InstructionSet) -> None:
    run, k = kernel(dtype, row), 3 * K_BLOCK + 7
    a, b = operands(11, 70, k, dtype)
    rng = np.random.default_rng(1)
    rows, ks = (rng.permutation(n).astype(np.int32) for n in (11, k))
    rows *= k
    matrix = a.reshape(-1)[rows[:, None] + ks]
    start = rng.standard_normal((11, 70)).astype(dtype.numpy)
    for second in (b, in_panels(b, row.panel_columns(dtype))):
        c = start.copy()
        run(a, second, c, lists=(rows, ks), resume=True)
        np.testing.assert_array_equal(c, in_blocks(run, matrix, b, start))


@every_kernel
@pytest.mark.parametrize("side", ["before", "after"])
def test_nothing_beside_the_operands_is_touched(dtype: DType, row: InstructionSet, side: str) -> None:
    run, (m, n, k) = kernel(dtype, row), (7, 19, 2 * K_BLOCK + 3)
    a, b = operands(m, n, k, dtype)
    left, right, c = (guarded(s, dtype.numpy, side) for s in ((m, k), (k, n), (m, n)))
    left[...], right[...] = a, b
    run(left, right, c)
    np.testing.assert_array_equal(c, in_blocks(run, a, b))


@every_kernel
def test_the_epilogue_sees_each_element_once_and_finished(dtype: DType, row: InstructionSet) -> None:
    run, (m, n, k) = kernel(dtype, row), (500, 33, 5 * K_BLOCK)
    a, b = operands(m, n, k, dtype)
    whole, c = (np.zeros((m, n), dtype.numpy) for _ in range(2))
    run(a, b, whole)
    calls = np.zeros((m, n), np.int64)
    finished: list[bool] = []

    def epilogue(thread: int, args: int, r0: int, r1: int, c0: int, c1: int) -> None:
        block = (slice(r0, r1), slice(c0, c1))
        finished.append(bool((c[block] == whole[block]).all()))
        calls[block] += 1
        c[block] = np.nan

    callback = EPILOGUE(epilogue)
    run(a, b, c, (3, m, 0, n), ctypes.cast(callback, ctypes.c_void_p), 0)
    assert (calls[3:] == 1).all() and not calls[:3].any()
    assert all(finished) and np.isnan(c[3:]).all()
