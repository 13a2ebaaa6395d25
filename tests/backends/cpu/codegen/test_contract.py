"""The contraction: right, bitwise independent of layout and blocks, tidy with memory, without spills in its loops."""

from __future__ import annotations

import ctypes
import functools
import mmap
import re
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from runnel.backends.cpu import target
from runnel.backends.cpu.codegen import contract, tiles
from runnel.backends.cpu.target import InstructionSet
from runnel.core import dtypes, errors
from runnel.core.dtypes import DType
from runnel.core.records import replace

RUNNABLE = [row for row in target.TARGETS if row.runs_here and not row.dot]
FOREIGN = [row for row in target.TARGETS if not row.runs_here and not row.dot]
DTYPES = [dtypes.by_name(name) for name in contract.SYMBOLS]
# Blocks so small that a few dozen rows, columns and k cross every boundary.
SMALL = contract.Blocking(
    rows=24, k=16, k_in_place=24, k_crowded=8, columns=192, pack_k=8, pack_rows=32, pack_rows_crowded=16, crowded=256,
    pack_a_columns=20, pack_a_k=10, k_indirect=8, long_k=30, columns_few=64, k_few=24, small_a=4000,
    columns_panels=64, small_a_panels=4000,
    k_panels=8,
)  # fmt: skip
BLOCKS = contract.blocking_of(dtypes.float32, 512 << 10)
EPILOGUE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * 4)
Box = tuple[int, int, int, int]


class Kernel:
    """One compiled module, called with NumPy arrays."""

    def __init__(self, dtype: DType, row: InstructionSet, blocking: contract.Blocking | None) -> None:
        machine = row.machine()
        symbol = contract.SYMBOLS[dtype.name]
        image = machine.emit_object(llvm.parse_assembly(contract.emit_module(dtype, row, blocking)))
        self.linker = llvm.create_lljit_compiler(machine)
        self.library = llvm.JITLibraryBuilder().add_object_img(image).export_symbol(symbol).link(self.linker, symbol)
        prototype = ctypes.CFUNCTYPE(
            None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 10, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 2,
            *[ctypes.c_void_p] * 2, ctypes.c_int64,
        )  # fmt: skip
        self.function = prototype(self.library[symbol])
        self.scratch = guarded((contract.SCRATCH,), np.dtype(np.uint8), "after")
        self.thread = np.array([0, self.scratch.ctypes.data, contract.SCRATCH], np.int64)

    def __call__(
        self, a: Any, b: Any, c: Any, box: Box | None = None, epilogue: Any = None, args: int = 0, tile: int = 0,
        resume: bool = False, lists: tuple[Any, Any] | None = None,
    ) -> None:  # fmt: skip
        """Stores a @ b into c, or adds it, or the box (i0, i1, j0, j1) of it. With ``lists``, a is the element that the
        offsets in these count from; a b of three axes is in panels."""
        size = b.itemsize
        assert c.size == 0 or c.shape[1] == 1 or c.strides[1] == size
        panel, inner = (b.strides[0] // size, b[0]) if b.ndim == 3 else (0, b)
        steps = [*(a.strides if lists is None else (0, 0)), *inner.strides, c.strides[0]]
        self.function(
            a.ctypes.data, b.ctypes.data, c.ctypes.data, *(step // size for step in steps),
            inner.shape[0], *(box if box is not None else (0, c.shape[0], 0, c.shape[1])), epilogue,
            self.thread.ctypes.data, args, tile, resume, *(x.ctypes.data for x in lists or ()),
            *((None, None) if lists is None else ()), panel,
        )  # fmt: skip


@functools.cache
def kernel(dtype: DType, row: InstructionSet, blocking: contract.Blocking | None = None) -> Kernel:
    return Kernel(dtype, row, blocking)


_MAPS: list[mmap.mmap] = []


def guarded(shape: tuple[int, ...], dtype: np.dtype[Any], side: str) -> Any:
    """A zeroed array that begins just after, or ends just before, a page that must not be touched."""
    page = mmap.PAGESIZE
    size = int(np.prod(shape)) * dtype.itemsize
    inner = max(page, -(-size // page) * page)
    memory = mmap.mmap(-1, inner + 2 * page)
    _MAPS.append(memory)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    for at in (start, start + page + inner):
        assert protect(ctypes.c_void_p(at), ctypes.c_size_t(page), 0) == 0
    offset = page + (inner - size if side == "after" else 0)
    return np.frombuffer(memory, dtype, int(np.prod(shape)), offset).reshape(shape)


def laid_out(values: Any, layout: str) -> Any:
    """An array equal to ``values``, in another layout of memory."""
    m, n = values.shape
    if layout == "rows":
        return np.ascontiguousarray(values)
    if layout == "columns":
        return np.ascontiguousarray(values.T).T
    if layout == "padded":
        return np.pad(values, ((0, 0), (0, 5)))[:, :n]
    if layout == "padded columns":
        return np.pad(values.T, ((0, 0), (0, 3)))[:, :m].T
    if layout == "backwards":
        return np.ascontiguousarray(values[::-1, ::-1])[::-1, ::-1]
    assert layout == "every other"
    wide = np.zeros((2 * m, 3 * n), values.dtype)
    wide[::2, ::3] = values
    return wide[::2, ::3]


LAYOUTS = ["rows", "columns", "padded", "padded columns", "backwards", "every other"]


def one_by_one(run: Kernel, a: Any, b: Any) -> Any:
    """The product computed one element a call: the chains of which the definition speaks."""
    c = np.full((a.shape[0], b.shape[1]), np.nan, a.dtype)
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            run(a, b, c, (i, i + 1, j, j + 1))
    return c


def operands(m: int, n: int, k: int, dtype: DType, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, k)).astype(dtype.numpy), rng.standard_normal((k, n)).astype(dtype.numpy)


every_kernel = pytest.mark.parametrize(
    ("dtype", "row"), [(d, r) for d in DTYPES for r in RUNNABLE], ids=lambda value: value.name
)


@every_kernel
@settings(deadline=None, max_examples=30, derandomize=True)
@given(
    m=st.integers(0, 70), n=st.integers(0, 70), k=st.integers(0, 70),
    a_layout=st.sampled_from(LAYOUTS), b_layout=st.sampled_from(LAYOUTS),
    blocking=st.sampled_from([SMALL, None]), seed=st.integers(0, 9),
)  # fmt: skip
def test_every_layout_gives_the_same_bits(
    dtype: DType, row: InstructionSet, m: int, n: int, k: int, a_layout: str, b_layout: str,
    blocking: contract.Blocking | None, seed: int,
) -> None:  # fmt: skip
    a, b = operands(m, n, k, dtype, seed)
    plain, c = (np.full((m, n + 3), np.nan, dtype.numpy) for _ in range(2))
    kernel(dtype, row)(a, b, plain[:, :n])
    kernel(dtype, row, blocking)(laid_out(a, a_layout), laid_out(b, b_layout), c[:, :n])
    np.testing.assert_array_equal(c[:, :n], plain[:, :n])
    assert np.isnan(c[:, n:]).all()
    exact = a.astype(np.float64) @ b.astype(np.float64)
    scale = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    assert (np.abs(plain[:, :n] - exact) <= (k + 1) * np.finfo(dtype.numpy).eps * scale).all()


@every_kernel
@pytest.mark.parametrize("shape", [(7, 19, 37), (31, 50, 18), (1, 21, 33), (13, 1, 9), (5, 17, 0)])
def test_the_bits_are_those_of_single_chains(dtype: DType, row: InstructionSet, shape: tuple[int, int, int]) -> None:
    a, b = operands(*shape, dtype)
    expected = one_by_one(kernel(dtype, row), a, b)
    assert not np.isnan(expected).any()
    for blocking in (None, SMALL):
        for a_layout in LAYOUTS:
            for b_layout in LAYOUTS:
                c = np.full(expected.shape, np.nan, dtype.numpy)
                kernel(dtype, row, blocking)(laid_out(a, a_layout), laid_out(b, b_layout), c)
                np.testing.assert_array_equal(c, expected)


@every_kernel
def test_a_chain_rounds_once_a_step_in_order_of_k(dtype: DType, row: InstructionSet) -> None:
    """Terms chosen so that another order, or a product rounded by itself, gives another number."""
    half = dtype.numpy.type(np.finfo(dtype.numpy).eps / 2)
    one = dtype.numpy.type(1)
    run = kernel(dtype, row)
    for terms, expected in (
        ([(one, one), (half, one), (half, one)], one),  # each half is lost on its own
        ([(half, one), (half, one), (one, one)], one + 2 * half),
        ([(-one, one), (one + 2 * half, one - half)], half - 2 * half * half),  # exact only if fused
    ):
        a = np.tile(np.array([x for x, _ in terms], dtype.numpy), (9, 1))
        b = np.tile(np.array([[y] for _, y in terms], dtype.numpy), (1, 21))
        c = np.zeros((9, 21), dtype.numpy)
        run(a, b, c)
        assert (c == expected).all()


@every_kernel
@settings(deadline=None, max_examples=30, derandomize=True)
@given(
    m=st.integers(0, 70), n=st.integers(0, 70), k=st.integers(0, 70), b_layout=st.sampled_from(LAYOUTS),
    blocking=st.sampled_from([SMALL, None]), seed=st.integers(0, 9), data=st.data(),
)  # fmt: skip
def test_listed_operands_give_the_bits_of_the_matrix_they_name(
    dtype: DType, row: InstructionSet, m: int, n: int, k: int, b_layout: str, blocking: contract.Blocking | None,
    seed: int, data: st.DataObject,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    pool, (_, b) = rng.standard_normal(300).astype(dtype.numpy), operands(1, n, k, dtype, seed)
    rows = rng.integers(-100, 100, m).astype(np.int32)
    ks = rng.integers(-50, 50, k).astype(np.int32)
    origin = pool[150:]
    plain, c = (np.full((m, n + 3), np.nan, dtype.numpy) for _ in range(2))
    kernel(dtype, row)(pool[150 + rows[:, None] + ks[None, :]], b, plain[:, :n])
    i0, i1 = sorted(data.draw(st.tuples(st.integers(0, m), st.integers(0, m))))
    for box in ((0, i0, 0, n), (i0, i1, 0, n), (i1, m, 0, n)):
        kernel(dtype, row, blocking)(origin, laid_out(b, b_layout), c[:, :n], box, lists=(rows, ks))
    np.testing.assert_array_equal(c[:, :n], plain[:, :n])
    assert np.isnan(c[:, n:]).all()


@every_kernel
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("shape", [(13, 21, 19), (6, 16, 8), (200, 23, 40), (1, 3, 2), (2, 70, 300), (33, 7, 64)])
def test_nothing_beside_listed_operands_and_their_lists_is_touched(
    dtype: DType, row: InstructionSet, side: str, shape: tuple[int, int, int]
) -> None:
    m, n, k = shape
    a, b = operands(m, n, k, dtype)
    expected = np.zeros((m, n), dtype.numpy)
    kernel(dtype, row)(a, b, expected)
    left, right, c = (guarded(s, dtype.numpy, side) for s in ((m, k), (k, n), (m, n)))
    rows, ks = (guarded((length,), np.dtype(np.int32), side) for length in (m, k))
    left[...], right[...], rows[...], ks[...] = a, b, np.arange(m) * k, np.arange(k)
    for blocking in (None, SMALL):
        c[...] = 0
        kernel(dtype, row, blocking)(left, right, c, lists=(rows, ks))
        np.testing.assert_array_equal(c, expected)


def in_panels(b: Any, width: int) -> Any:
    """A matrix in panels of ``width`` columns, filled up with NaN, which no product may use."""
    k, n = b.shape
    count = -(-n // width)
    whole = np.pad(b, ((0, 0), (0, count * width - n)), constant_values=np.nan)
    return np.ascontiguousarray(whole.reshape(k, count, width).transpose(1, 0, 2))


@every_kernel
@settings(deadline=None, max_examples=30, derandomize=True)
@given(
    m=st.integers(0, 70), n=st.integers(1, 200), k=st.integers(0, 70), a_layout=st.sampled_from(LAYOUTS),
    blocking=st.sampled_from([SMALL, None]), side=st.sampled_from(["before", "after"]), data=st.data(),
)  # fmt: skip
def test_panels_give_the_bits_of_the_matrix_in_them(
    dtype: DType, row: InstructionSet, m: int, n: int, k: int, a_layout: str, blocking: contract.Blocking | None,
    side: str, data: st.DataObject,
) -> None:  # fmt: skip
    a, b = operands(m, n, k, dtype)
    plain, c = (np.full((m, n), np.nan, dtype.numpy) for _ in range(2))
    kernel(dtype, row)(a, b, plain)
    width = row.panel_columns(dtype)
    packed_b = in_panels(b, width)
    panels = guarded(packed_b.shape, dtype.numpy, side)
    panels[...] = packed_b
    cut = width * data.draw(st.integers(0, len(panels) - 1))
    for box in ((0, m, 0, cut), (0, m, cut, n)):
        here = panels if k else np.zeros((1, 0, width), dtype.numpy)
        kernel(dtype, row, blocking)(laid_out(a, a_layout), here, c, box)
    np.testing.assert_array_equal(c, plain)


@every_kernel
def test_listed_operands_meet_panels(dtype: DType, row: InstructionSet) -> None:
    (a, b), rng = operands(31, 50, 77, dtype), np.random.default_rng(0)
    rows, ks = rng.permutation(31).astype(np.int32) * 77, rng.permutation(77).astype(np.int32)
    matrix, width = a.reshape(-1)[rows[:, None] + ks], row.panel_columns(dtype)
    for blocking in (None, SMALL):
        plain, c = (np.full((31, 50), np.nan, dtype.numpy) for _ in range(2))
        kernel(dtype, row)(matrix, b, plain)
        kernel(dtype, row, blocking)(a, in_panels(b, width), c, lists=(rows, ks))
        np.testing.assert_array_equal(c, plain)


@every_kernel
@pytest.mark.parametrize("shape", [(7, 19, 37), (40, 50, 18), (1, 21, 33), (13, 1, 9), (5, 17, 0), (200, 23, 40)])
def test_resumed_chains_begin_at_the_result(dtype: DType, row: InstructionSet, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = operands(m, n, 2 * k + 3, dtype)
    for blocking in (None, SMALL):
        for layout in ("rows", "columns"):
            whole, c = (np.full((m, n), np.nan, dtype.numpy) for _ in range(2))
            run = kernel(dtype, row, blocking)
            run(a, b, whole)
            run(laid_out(a[:, :k], layout), laid_out(b[:k], layout), c)
            rest = laid_out(a[:, k:], "rows")
            lists = (np.arange(m, dtype=np.int32) * (k + 3), np.arange(k + 3, dtype=np.int32))
            run(rest, laid_out(b[k:], layout), c, resume=True, lists=lists if layout == "rows" else None)
            np.testing.assert_array_equal(c, whole)


@every_kernel
@settings(deadline=None, max_examples=20, derandomize=True)
@given(
    m=st.integers(1, 60), n=st.integers(1, 110), k=st.integers(0, 40), data=st.data(),
    b_layout=st.sampled_from(["rows", "columns"]), blocking=st.sampled_from([SMALL, None]),
)  # fmt: skip
def test_blocks_touch_only_their_part_and_call_the_epilogue_once_for_each_element(
    dtype: DType, row: InstructionSet, m: int, n: int, k: int, data: st.DataObject, b_layout: str,
    blocking: contract.Blocking | None,
) -> None:  # fmt: skip
    a, b = operands(m, n, k, dtype)
    whole = np.zeros((m, n), dtype.numpy)
    run = kernel(dtype, row, blocking)
    run(a, b, whole)
    i0, i1 = sorted(data.draw(st.tuples(st.integers(0, m), st.integers(0, m))))
    j0, j1 = sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n))))
    c = np.full((m, n), 7, dtype.numpy)
    calls = np.zeros((m, n), np.int64)
    blocks_seen: list[tuple[Any, ...]] = []

    def epilogue(thread: int, args: int, r0: int, r1: int, c0: int, c1: int) -> None:
        block = (slice(r0, r1), slice(c0, c1))
        blocks_seen.append((thread, args, bool((c[block] == whole[block]).all())))
        calls[block] += 1
        c[block] = np.nan  # what is finished must never be read again

    callback = EPILOGUE(epilogue)
    run(a, laid_out(b, b_layout), c, (i0, i1, j0, j1), ctypes.cast(callback, ctypes.c_void_p), 4242)
    inside = np.zeros((m, n), bool)
    inside[i0:i1, j0:j1] = True
    assert (calls == inside).all()
    assert (c[~inside] == 7).all()
    assert np.isnan(c[inside]).all()
    assert set(blocks_seen) <= {(run.thread.ctypes.data, 4242, True)}


@every_kernel
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("shape", [(13, 21, 19), (6, 16, 8), (50, 5, 70), (1, 3, 2), (2, 70, 300)])
def test_nothing_beside_the_operands_is_touched(
    dtype: DType, row: InstructionSet, side: str, shape: tuple[int, int, int]
) -> None:
    m, n, k = shape
    a, b = operands(m, n, k, dtype)
    expected = np.zeros((m, n), dtype.numpy)
    kernel(dtype, row)(a, b, expected)
    c = guarded((m, n), dtype.numpy, side)
    for blocking in (None, SMALL):
        for a_turned in (False, True):
            for b_turned in (False, True):
                left = guarded((k, m) if a_turned else (m, k), dtype.numpy, side)
                right = guarded((n, k) if b_turned else (k, n), dtype.numpy, side)
                left = left.T if a_turned else left
                right = right.T if b_turned else right
                left[...], right[...], c[...] = a, b, 0
                kernel(dtype, row, blocking)(left, right, c)
                np.testing.assert_array_equal(c, expected)


@every_kernel
def test_strides_of_zero_and_one_element_broadcast(dtype: DType, row: InstructionSet) -> None:
    rng = np.random.default_rng(3)
    line = rng.standard_normal((1, 30)).astype(dtype.numpy)
    for a in (
        np.broadcast_to(line, (14, 30)),
        np.broadcast_to(line[:, :1], (14, 30)),
        np.broadcast_to(line.T[:14], (14, 30)),
    ):
        for b in (
            np.broadcast_to(line.T, (30, 37)),
            np.broadcast_to(line[:, :1], (30, 37)),
            np.broadcast_to(line[:, :1].T, (30, 37)),
        ):
            for blocking in (None, SMALL):
                c, plain = (np.full((14, 37), np.nan, dtype.numpy) for _ in range(2))
                kernel(dtype, row, blocking)(a, b, c)
                kernel(dtype, row)(a.copy(), b.copy(), plain)
                np.testing.assert_array_equal(c, plain)


@every_kernel
@pytest.mark.parametrize("k", [255, 600, 2100])
def test_long_chains_cross_blocks_of_k(dtype: DType, row: InstructionSet, k: int) -> None:
    a, b = operands(50, 40, k, dtype)
    run = kernel(dtype, row)
    expected = np.zeros((50, 40), dtype.numpy)
    for i in range(0, 50, 5):
        run(a, b, expected, (i, i + 5, 0, 40))
    for a_layout in ("rows", "columns"):
        for b_layout in ("rows", "columns"):
            c = np.full((50, 40), np.nan, dtype.numpy)
            run(laid_out(a, a_layout), laid_out(b, b_layout), c)
            np.testing.assert_array_equal(c, expected)
    np.testing.assert_allclose(expected, a.astype(np.float64) @ b.astype(np.float64), atol=1e-3)


@every_kernel
def test_wide_matrices_cross_blocks_of_rows_and_columns(dtype: DType, row: InstructionSet) -> None:
    a, b = operands(150, 530, 65, dtype)
    run = kernel(dtype, row)
    expected = np.zeros((150, 530), dtype.numpy)
    for i in range(0, 150, 10):
        run(a, b, expected, (i, i + 10, 0, 530))
    np.testing.assert_allclose(expected, a.astype(np.float64) @ b.astype(np.float64), atol=1e-3)
    for a_layout in ("rows", "columns"):
        for b_layout in ("rows", "columns"):
            c = np.full((150, 530), np.nan, dtype.numpy)
            run(laid_out(a, a_layout), laid_out(b, b_layout), c)
            np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_rows_with_dot_instructions_have_the_same_contractions(dtype: DType) -> None:
    for row, plain in ((target.AVX512_BF16, target.AVX512), (target.NEON_BF16, target.NEON)):
        assert contract.emit_module(dtype, row) == contract.emit_module(dtype, plain)


@pytest.mark.parametrize("row", target.TARGETS, ids=lambda row: row.name)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_the_innermost_loops_keep_to_registers(dtype: DType, row: InstructionSet) -> None:
    machine = row.machine()
    assembly = machine.emit_assembly(llvm.parse_assembly(contract.emit_module(dtype, row)))
    loops = list(fma_loops(assembly))
    assert len(loops) == len(tiles.family(row))
    largest = 0
    for body in loops:
        fmas = sum("fmadd" in line or "fmla" in line for line in body)
        largest = max(largest, fmas)
        assert fmas > 0
        assert not [line for line in body if re.search(r"%rsp|%rbp\)|\[sp|\[x29", line)]
        assert not [line for line in body if re.search(r"vpmovsx|vpsll|vpcmp|call|bl\s", line)]
    assert largest == max(tile.rows * tile.vectors for tile in tiles.family(row))


def fma_loops(assembly: str) -> Any:
    """The instructions of each loop of one block that holds a fused multiply-add."""
    lines = [line.split("#")[0].split("//")[0].strip() for line in assembly.splitlines()]
    labels = {line[:-1]: at for at, line in enumerate(lines) if line.endswith(":")}
    for at, line in enumerate(lines):
        jump = re.match(r"(?:j\w+|b\.\w+|cbn?z\s+\w+,)\s+(\.LBB\S+)", line)
        if jump and labels.get(jump[1], at) < at:
            body = lines[labels[jump[1]] + 1 : at]
            if any("fmadd" in x or "fmla" in x for x in body) and not any(x.endswith(":") for x in body):
                yield [x for x in body if x]


@pytest.mark.parametrize("row", FOREIGN, ids=lambda row: row.name)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_targets_that_do_not_run_here_get_an_object(dtype: DType, row: InstructionSet) -> None:
    module = llvm.parse_assembly(contract.emit_module(dtype, row))
    module.verify()
    assert row.machine().emit_object(module)[:4] == b"\x7fELF"


def test_other_dtypes_and_oversized_blocks_are_refused() -> None:
    with pytest.raises(errors.DTypeError, match=r"\[contract\].*float16"):
        contract.emit_module(dtypes.float16, target.AVX2)
    with pytest.raises(ValueError, match="scratch"):
        contract.emit_module(dtypes.float32, target.AVX2, replace(BLOCKS, columns=4096))
    with pytest.raises(ValueError, match="whole tiles"):
        contract.emit_module(dtypes.float32, target.AVX2, replace(BLOCKS, rows=25))
