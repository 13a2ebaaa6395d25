"""Products of bfloat16: dot instructions where they should be, run as far as this machine can run them.

The code for NEON_BF16 runs in an emulator, beside a model of its instruction in NumPy. That for AVX512_BF16 runs in
this process with its one instruction written in LLVM text, so that its driver and its copies can be watched closely.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aarch64
import dot_models
import dot_products as dots
import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from images import Array, Image
from test_contract import EPILOGUE, LAYOUTS, Box, guarded, laid_out
from test_neon_under_qemu import put_view

from runnel.backends.cpu import target
from runnel.backends.cpu.codegen import contract, dot_contract, nest, tiles
from runnel.backends.cpu.codegen.dot_contract import DotBlocking
from runnel.backends.cpu.target import AVX2, AVX512, AVX512_BF16, NEON, NEON_BF16, InstructionSet
from runnel.backends.interpreter import kernels as interpreter
from runnel.core.dtypes import float32, float64
from runnel.core.errors import DTypeError, VerifierError
from runnel.core.records import replace
from runnel.inspection import machine as peak
from runnel.loops import printer, verifier
from runnel.loops.ir import K_BLOCK, TILE_ROWS, TILE_STRIDE, Contract, Kernel, Panels, Param

BF16 = np.dtype(ml_dtypes.bfloat16)
SMALL = DotBlocking(columns=128, columns_in_place=64, rows=24, k=16, k_in_place=24)
SHAPES = [(1, 1, 1), (7, 19, 37), (31, 50, 18), (50, 13, 33), (5, 17, 0), (200, 21, 40), (23, 200, 60), (49, 70, 2)]
ROWS = [row for row in target.TARGETS if row.dot]
INSTRUCTIONS = {"avx512_bf16": "vdpbf16ps", "neon_bf16": "bfdot"}
every_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
runs_avx2 = pytest.mark.skipif(not AVX2.runs_here, reason="the stand-in for AVX-512 needs AVX2")
runs_neon = pytest.mark.skipif(
    bool(aarch64.missing(NEON_BF16)), reason=f"NEON code cannot run here: {aarch64.missing(NEON_BF16)}."
)


# the machines


def test_machines_are_known_by_their_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x86, arm = AVX512.triple, NEON.triple
    wide = {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma"}
    assert target.runnable(x86, wide | {"avx512bf16"}) == ("avx512_bf16", "avx512", "avx2")
    assert target.runnable(x86, wide) == ("avx512", "avx2")
    assert target.runnable(x86, {"avx2", "fma", "avx512bf16"}) == ("avx2",)
    described = tmp_path / "cpuinfo"
    monkeypatch.setattr(target, "_CPUINFO", described)
    monkeypatch.setattr(target.sys, "platform", "linux")
    assert target.runnable(arm, {"neon"}) == ("neon",)
    one = "processor\t: 0\nFeatures\t: fp asimd i8mm bf16\n"
    for text, expected in (
        (one, True),
        (one + "processor\t: 1\nFeatures\t: fp asimd\n", False),
        ("flags\t: bf16", False),
    ):
        described.write_text(text)
        assert target.runnable(arm, {"neon"}) == (("neon_bf16", "neon") if expected else ("neon",))
    assert target.runnable(arm, {"neon", "bf16"}) == ("neon_bf16", "neon")


@pytest.mark.parametrize(("row", "plain"), [(AVX512_BF16, AVX512), (NEON_BF16, NEON)], ids=["avx512", "neon"])
def test_other_products_are_as_without(row: InstructionSet, plain: InstructionSet) -> None:
    of_dots = {"name": "", "features": "", "dot": "", "precision": ""}
    assert replace(row, **of_dots) == replace(plain, **of_dots)
    for dtype in (float32, float64):
        assert contract.emit_module(dtype, row) == contract.emit_module(dtype, plain)
    text = peak.emit_module(row, float32)
    codes = [r.machine().emit_assembly(llvm.parse_assembly(text)) for r in (row, plain)]
    assert codes[0] == codes[1]


def test_targets_without_the_instruction_refuse() -> None:
    with pytest.raises(DTypeError, match=r"\[contract\] the target avx2 has no dot"):
        dot_contract.emit_module(AVX2)
    with pytest.raises(ValueError, match="scratch"):
        dot_contract.emit_module(NEON_BF16, replace(SMALL, columns=4096, k=512))
    with pytest.raises(ValueError, match="whole tiles"):
        dot_contract.emit_module(NEON_BF16, replace(SMALL, rows=25))


# the code


def dot_loops(row: InstructionSet, assembly: str) -> Iterator[list[str]]:
    """The instructions of each loop of one block that holds a dot instruction."""
    lines = [line.split("#")[0].split("//")[0].strip() for line in assembly.splitlines()]
    labels = {line[:-1]: at for at, line in enumerate(lines) if line.endswith(":")}
    for at, line in enumerate(lines):
        jump = re.match(r"(?:j\w+|b\.\w+|cbn?z\s+\w+,)\s+(\.LBB\S+)", line)
        if jump and labels.get(jump[1], at) < at:
            body = [x for x in lines[labels[jump[1]] + 1 : at] if x]
            if any(x.startswith(INSTRUCTIONS[row.name]) for x in body) and not any(x.endswith(":") for x in body):
                yield body


@every_row
def test_the_innermost_loops_are_dot_instructions_on_registers(row: InstructionSet) -> None:
    assembly = row.machine().emit_assembly(llvm.parse_assembly(dot_contract.emit_module(row)))
    loops = list(dot_loops(row, assembly))
    assert len(loops) == len(tiles.family(row))
    counts = [sum(line.startswith(INSTRUCTIONS[row.name]) for line in body) for body in loops]
    assert sorted(counts) == sorted(tile.rows * tile.vectors for tile in tiles.family(row))
    for body in loops:
        assert not [line for line in body if re.search(r"%rsp|%rbp\)|\[sp|\[x29", line)]
        assert not [line for line in body if re.search(r"^v?mova|^mov\s+v|fmadd|fmla|call|^bl\s", line)]


# the loop IR


def panels_of(b: Array, width: int) -> Array:
    """``b`` in panels of pairs."""
    k, n = b.shape
    count, steps = -(-n // width), -(-k // 2)
    whole = np.pad(b, ((0, 2 * steps - k), (0, count * width - n)))
    return np.ascontiguousarray(whole.reshape(steps, 2, count, width).transpose(2, 0, 3, 1))


def test_the_interpreter_adds_exact_products() -> None:
    kernel = dots.product()
    verifier.verify(kernel)
    assert "contract float32 by bfloat16 k<k of" in printer.text(kernel)
    a, b = dots.operands(5, 7, 9)
    arrays = {"a": a.reshape(-1), "b": b.reshape(-1), "c": np.zeros(35, np.float32)}
    interpreter.run(kernel, arrays, {"k": 9, "a_row": 9, "a_k": 1, "b_k": 7, "b_col": 1, "c_row": 7}, 0, 5, 0, 7)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(arrays["c"].reshape(5, 7), exact.astype(np.float32))
    (spec,) = kernel.body
    assert isinstance(spec, Contract)
    in_panels = replace(kernel, body=(replace(spec, panels=Panels(Param("b_col"), 4)),))
    verifier.verify(in_panels)
    assert "b[(j div 4)*b_col + (k div 2)*b_k + (j mod 4)*2 + k mod 2]" in printer.text(in_panels)
    arrays |= {"b": panels_of(b, 4).reshape(-1), "c": np.zeros(35, np.float32)}
    interpreter.run(in_panels, arrays, {"k": 9, "a_row": 9, "a_k": 1, "b_k": 8, "b_col": 40, "c_row": 7}, 0, 5, 0, 7)
    np.testing.assert_array_equal(arrays["c"].reshape(5, 7), exact.astype(np.float32))


def test_the_verifier_knows_the_factors() -> None:
    kernel = dots.product()
    (spec,) = kernel.body
    assert isinstance(spec, Contract)
    for wrong, dtype in ((None, "float32"), (float64, "float64")):
        with pytest.raises(VerifierError, match=f"is bfloat16 and the Contract {dtype}"):
            verifier.verify(replace(kernel, body=(replace(spec, operand_dtype=wrong),)))
    double = tuple(replace(b, dtype=float64) if b.name == "c" else b for b in kernel.buffers)
    with pytest.raises(VerifierError, match="factors are bfloat16, sums float32"):
        verifier.verify(replace(kernel, buffers=double, body=(replace(spec, dtype=float64),)))


@pytest.mark.parametrize("kernel", [dots.product(), dots.product(batch=True), dots.indirect(), dots.with_epilogue()])
@every_row
def test_kernels_call_it(row: InstructionSet, kernel: Kernel) -> None:
    verifier.verify(kernel)
    module = llvm.parse_assembly(nest.emit_kernel(kernel, row))
    module.verify()
    assert dot_contract.SYMBOL in row.machine().emit_assembly(module)


# AVX-512, with a function in place of the instruction


class Native:
    """The module for AVX512_BF16 as a function of arrays."""

    def __init__(self, blocking: DotBlocking | None) -> None:
        machine = AVX2.machine()
        image = machine.emit_object(llvm.parse_assembly(dot_models.without_the_instruction(blocking)))
        self.linker, symbol = llvm.create_lljit_compiler(machine), dot_contract.SYMBOL
        self.library = llvm.JITLibraryBuilder().add_object_img(image).export_symbol(symbol).link(self.linker, symbol)
        kinds = {"ptr": ctypes.c_void_p, "i64": ctypes.c_int64}
        words = [kinds[parameter.split()[0]] for parameter in contract.PARAMETERS.split(", ")]
        self.function = ctypes.CFUNCTYPE(None, *words)(self.library[symbol])
        self.scratch = guarded((contract.SCRATCH,), np.dtype(np.uint8), "after")
        self.thread = np.array([0, self.scratch.ctypes.data, contract.SCRATCH], np.int64)

    def __call__(
        self, a: Any, b: Any, c: Any, box: Box | None = None, epilogue: Any = None, args: int = 0,
        resume: bool = False, lists: tuple[Any, Any] | None = None, k: int | None = None,
    ) -> None:  # fmt: skip
        """A b of more than two axes is in panels, and ``k`` says how long the sums are."""
        in_panels = b.ndim > 2
        a_steps = a.strides if lists is None else (0, 0)
        steps = [step // 2 for step in (*a_steps, *((0, 0) if in_panels else b.strides))]
        self.function(
            a.ctypes.data, b.ctypes.data, c.ctypes.data, *steps, c.strides[0] // 4, b.shape[0] if k is None else k,
            *(box if box is not None else (0, c.shape[0], 0, c.shape[1])), epilogue, self.thread.ctypes.data, args, 0,
            resume, *((None, None) if lists is None else (x.ctypes.data for x in lists)),
            b.strides[0] // 2 if in_panels else 0,
        )  # fmt: skip


@functools.cache
def native(blocking: DotBlocking | None = None) -> Native:
    return Native(blocking)


def model(a: Array, b: Array) -> Array:
    return dot_models.vdpbf16ps(a.astype(np.float32), b.astype(np.float32))


@runs_avx2
@settings(deadline=None, max_examples=30, derandomize=True)
@given(
    m=st.integers(0, 60), n=st.integers(0, 140), k=st.integers(0, 70), a_layout=st.sampled_from(LAYOUTS),
    b_layout=st.sampled_from(LAYOUTS), blocking=st.sampled_from([SMALL, None]), seed=st.integers(0, 9),
)  # fmt: skip
def test_every_layout_gives_the_chains_of_the_instruction(
    m: int, n: int, k: int, a_layout: str, b_layout: str, blocking: DotBlocking | None, seed: int
) -> None:
    a, b = dots.operands(m, n, k, seed)
    c = np.full((m, n + 3), np.nan, np.float32)
    native(blocking)(laid_out(a, a_layout), laid_out(b, b_layout), c[:, :n])
    np.testing.assert_array_equal(c[:, :n], model(a, b))
    assert np.isnan(c[:, n:]).all()
    dots.assert_close(c[:, :n], a, b)


@runs_avx2
@settings(deadline=None, max_examples=30, derandomize=True)
@given(
    m=st.integers(0, 60), n=st.integers(0, 140), k=st.integers(0, 70), grouped=st.sampled_from(["", "ks", "rows"]),
    b_layout=st.sampled_from(LAYOUTS), blocking=st.sampled_from([SMALL, None]), seed=st.integers(0, 9), data=st.data(),
)  # fmt: skip
def test_listed_operands_are_the_matrix_they_name(
    m: int, n: int, k: int, grouped: str, b_layout: str, blocking: DotBlocking | None, seed: int, data: st.DataObject
) -> None:
    """Offsets in any order; in runs along k, which are read in place; in runs along the rows."""
    rng = np.random.default_rng(seed)
    pool, (_, b) = rng.standard_normal(400).astype(BF16), dots.operands(1, n, k, seed)
    rows, ks = rng.integers(-100, 100, m).astype(np.int32), rng.integers(-50, 50, k).astype(np.int32)
    if grouped == "ks":
        ks = (rng.integers(-50, 50, (k + 1) // 2)[:, None] + np.arange(2)).reshape(-1)[:k].astype(np.int32)
    elif grouped == "rows":
        rows = np.arange(-30, m - 30).astype(np.int32)
    c = np.full((m, n + 3), np.nan, np.float32)
    i0, i1 = sorted(data.draw(st.tuples(st.integers(0, m), st.integers(0, m))))
    for box in ((0, i0, 0, n), (i0, i1, 0, n), (i1, m, 0, n)):
        native(blocking)(pool[200:], laid_out(b, b_layout), c[:, :n], box, lists=(rows, ks))
    np.testing.assert_array_equal(c[:, :n], model(pool[200 + rows[:, None] + ks[None, :]], b))
    assert np.isnan(c[:, n:]).all()


@runs_avx2
@settings(deadline=None, max_examples=20, derandomize=True)
@given(
    m=st.integers(1, 60), n=st.integers(1, 300), k=st.integers(1, 70), a_layout=st.sampled_from(LAYOUTS),
    blocking=st.sampled_from([SMALL, None]), data=st.data(),
)  # fmt: skip
def test_operands_that_came_in_panels(
    m: int, n: int, k: int, a_layout: str, blocking: DotBlocking | None, data: st.DataObject
) -> None:
    a, b = dots.operands(m, n, k)
    width = AVX512_BF16.panel_columns(float32)
    edge = data.draw(st.integers(0, n // width)) * width
    c = np.full((m, n + 3), np.nan, np.float32)
    packed_b = panels_of(b, width)
    panels = guarded(packed_b.shape, BF16, "after")
    panels[...] = packed_b
    for columns in ((0, edge), (edge, n)):
        native(blocking)(laid_out(a, a_layout), panels, c[:, :n], (0, m, *columns), k=k)
    np.testing.assert_array_equal(c[:, :n], model(a, b))
    assert np.isnan(c[:, n:]).all()


@runs_avx2
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("shape", [(13, 21, 19), (6, 16, 8), (50, 5, 70), (1, 3, 2), (2, 70, 300), (33, 64, 64)])
def test_nothing_beside_the_operands_is_touched(side: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = dots.operands(m, n, k)
    c, expected = guarded((m, n), np.dtype(np.float32), side), model(a, b)
    rows, ks = (guarded((length,), np.dtype(np.int32), side) for length in (m, k))
    rows[...], ks[...] = np.arange(m) * k, np.arange(k)
    for blocking in (None, SMALL):
        for a_turned, b_turned in itertools.product((False, True), repeat=2):
            left = guarded((k, m) if a_turned else (m, k), BF16, side)
            right = guarded((n, k) if b_turned else (k, n), BF16, side)
            left = left.T if a_turned else left
            right = right.T if b_turned else right
            left[...], right[...] = a, b
            for lists in (None,) if a_turned else (None, (rows, ks)):
                c[...] = 0
                native(blocking)(left, right, c, lists=lists)
                np.testing.assert_array_equal(c, expected)


@runs_avx2
@settings(deadline=None, max_examples=20, derandomize=True)
@given(
    m=st.integers(1, 60), n=st.integers(1, 140), k=st.integers(0, 40), data=st.data(),
    b_layout=st.sampled_from(["rows", "columns"]), blocking=st.sampled_from([SMALL, None]),
)  # fmt: skip
def test_blocks_touch_only_their_part_and_call_the_epilogue_once_for_each_element(
    m: int, n: int, k: int, data: st.DataObject, b_layout: str, blocking: DotBlocking | None
) -> None:
    a, b = dots.operands(m, n, k)
    whole = model(a, b)
    i0, i1 = sorted(data.draw(st.tuples(st.integers(0, m), st.integers(0, m))))
    j0, j1 = sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n))))
    c, calls = np.full((m, n), 7, np.float32), np.zeros((m, n), np.int64)
    visited: set[tuple[int, int, bool]] = set()

    def epilogue(thread: int, args: int, r0: int, r1: int, c0: int, c1: int) -> None:
        block = (slice(r0, r1), slice(c0, c1))
        visited.add((thread, args, bool((c[block] == whole[block]).all())))
        calls[block] += 1
        c[block] = np.nan  # what is finished must never be read again

    callback = EPILOGUE(epilogue)
    run = native(blocking)
    run(a, laid_out(b, b_layout), c, (i0, i1, j0, j1), ctypes.cast(callback, ctypes.c_void_p), 4242)
    inside = np.zeros((m, n), bool)
    inside[i0:i1, j0:j1] = True
    assert (calls == inside).all()
    assert (c[~inside] == 7).all()
    assert np.isnan(c[inside]).all()
    assert visited <= {(run.thread.ctypes.data, 4242, True)}


@runs_avx2
@pytest.mark.parametrize("shape", [(50, 40, 515), (150, 530, 66), (9, 14, 2100)])
def test_chains_cross_blocks_and_go_on_from_the_result(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = dots.operands(m, n, k)
    expected = model(a, b)
    for a_layout, b_layout in itertools.product(("rows", "columns"), repeat=2):
        c = np.full((m, n), np.nan, np.float32)
        native()(laid_out(a, a_layout), laid_out(b, b_layout), c)
        np.testing.assert_array_equal(c, expected)
        if k > K_BLOCK:
            continue  # its blocks would be others
        half = k // 4 * 2
        native()(laid_out(a[:, :half], a_layout), b[:half], c)
        native()(laid_out(a[:, half:], a_layout), b[half:], c, resume=True)
        np.testing.assert_array_equal(c, expected)


@runs_avx2
def test_strides_of_zero_broadcast() -> None:
    line = np.random.default_rng(3).standard_normal((1, 30)).astype(BF16)
    for a in (np.broadcast_to(line, (14, 30)), np.broadcast_to(line[:, :1], (14, 30))):
        for b in (np.broadcast_to(line.T, (30, 37)), np.broadcast_to(line[:, :1], (30, 37))):
            c = np.full((14, 37), np.nan, np.float32)
            native(SMALL)(a, b, c)
            np.testing.assert_array_equal(c, model(a, b))


# NEON, in an emulator


@runs_neon
def test_neon_gives_the_chains_of_its_instruction_in_all_layouts(tmp_path: Path) -> None:
    image, kernel = Image(), dots.product()
    cases = [(shape, a, b) for shape in SHAPES for a in LAYOUTS for b in LAYOUTS]
    cases += [((49, 600, 20), "rows", "rows"), ((9, 14, 2100), "rows", "rows"), ((9, 14, 1531), "columns", "columns")]
    slots = []
    for (m, n, k), a_layout, b_layout in cases:
        a, b = dots.operands(m, n, k, seed=m)
        left, right = laid_out(a, a_layout), laid_out(b, b_layout)
        c = image.put(np.full((m, n + 3), np.nan, np.float32))
        strides = [step // 2 for step in (*left.strides, *right.strides)]
        places = [put_view(image, left), put_view(image, right), (c, 0)] if k else [c, c, c]
        for i0, i1 in itertools.pairwise((0, m // 2, m)):
            image.call(kernel, places, [k, *strides, n + 3], i0, i1, 0, n)
        slots.append(c)
    results = aarch64.emulated(image, tmp_path, NEON_BF16)
    expected: dict[tuple[int, int, int], Array] = {}
    for ((m, n, k), *layouts), slot in zip(cases, slots, strict=True):
        a, b = dots.operands(m, n, k, seed=m)
        if (m, n, k) not in expected:
            expected[m, n, k] = dot_models.bfdot(a, b)
        actual = results[slot].reshape(m, n + 3)
        np.testing.assert_array_equal(actual[:, :n], expected[m, n, k], err_msg=f"{m}x{k}x{n} {layouts}")
        assert np.isnan(actual[:, n:]).all()
        dots.assert_close(actual[:, :n], a, b)


@runs_neon
def test_neon_lists_epilogues_and_batches(tmp_path: Path) -> None:
    image, rng = Image(), np.random.default_rng(5)
    references: list[tuple[int, Array]] = []
    image.scratch += TILE_ROWS * TILE_STRIDE
    pool = rng.standard_normal(500).astype(BF16)
    source = image.put(pool)
    for m, n, k in SHAPES:
        b = rng.standard_normal((k, n)).astype(BF16)
        second = image.put(b) if k else source
        scattered = rng.integers(0, 300, m), rng.integers(0, 200, k)
        in_pairs = (rng.integers(0, 150, (k + 1) // 2)[:, None] + np.arange(2)).reshape(-1)[:k]
        for rows, ks in (scattered, (scattered[0], in_pairs), (np.arange(m), scattered[1])):
            c = image.put(np.full((m, n), np.nan, np.float32))
            lists = [image.put(np.append(x, 0).astype(np.int32)) for x in (rows, ks)]
            image.call(dots.indirect(), [source, second, c, *lists], [k, n, 1, n], 0, m, 0, n)
            references.append((c, dot_models.bfdot(pool[rows[:, None] + ks[None, :]], b)))
        a, bias = rng.standard_normal((m, k)).astype(BF16), rng.standard_normal(n).astype(np.float32)
        out = image.put(np.zeros((m, n + 1), BF16))
        first = image.put(a) if k else source
        places = [first, second, (0, contract.SCRATCH), image.put(bias), out]
        image.call(dots.with_epilogue(), places, [k, k, 1, n, 1, n + 1], 0, m, 0, n)
        total = (dot_models.bfdot(a, b) + bias).astype(BF16)
        references.append((out, np.pad(total, ((0, 0), (0, 1)))))
    a, b = rng.standard_normal((4, 9, 5)).astype(BF16), rng.standard_normal((4, 5, 21)).astype(BF16)
    c = image.put(np.zeros((4, 9, 21), np.float32))
    image.call(
        dots.product(batch=True), [image.put(a), image.put(b), c], [5, 5, 1, 21, 1, 21, 9, 21, 45, 105, 189], 1, 4
    )
    references.append((c, np.stack([np.zeros((9, 21)), *map(dot_models.bfdot, a[1:], b[1:])])))
    results = aarch64.emulated(image, tmp_path, NEON_BF16)
    for slot, expected in references:
        np.testing.assert_array_equal(results[slot].reshape(expected.shape), expected)
