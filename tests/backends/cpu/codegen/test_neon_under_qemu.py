"""NEON code, run in an emulator, gives the bits of the code for this machine; NaNs may differ in sign and payload.

Each test is one process, whose memory (``images``) has guards around every array, so stray bytes count as well.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import aarch64
import images
import numpy as np
import pytest
from images import Array, Image
from listed_products import indirect, listed_data, panelled, panelled_data, resumed, resumed_data
from nest_harness import I0, I1, I, J, at, load, op, seq, vec
from test_contract import LAYOUTS, laid_out, operands
from test_scalars import distinct_forms, sample

import runnel as rn
from runnel import nn, optim
from runnel.backends.cpu import target
from runnel.core import dtypes
from runnel.core.dtypes import DType, bool_, float32, float64, int32
from runnel.loops import scalar
from runnel.loops.ir import (
    Acc,
    Apply,
    BatchSpec,
    Buffer,
    Check,
    Const,
    Contract,
    For,
    Index,
    Kernel,
    Load,
    Param,
    Position,
    Ref,
    Stmt,
    Store,
    Update,
)
from runnel.loops.scalar import REDUCERS, SCALAR_OPS
from tests.compiler.harness import same_bits
from tests.suites.plans import Sample, samples, traced

pytestmark = pytest.mark.skipif(bool(aarch64.missing()), reason=f"NEON code cannot run here: {aarch64.missing()}.")
N = Param("n")


def compare(image: Image, folder: Path, named: Iterable[tuple[str, int]]) -> list[Array]:
    """Run an image here and emulated; the arrays in these slots, each with what it is called, must agree."""
    here, there = images.native(image), aarch64.emulated(image, folder)
    wrong = [name for name, slot in named if not same_bits(here[slot], there[slot])]
    assert not wrong, f"{len(wrong)} differ: " + "; ".join(wrong[:20])
    return here


# the comparison itself

X = load("x", float32, (I, 1))
COPY = Store("out", at((I, 1)), X)


def small(name: str, *body: Stmt, out: int = 0) -> tuple[Image, int]:
    """An image that runs ``body`` once over 99 numbers; ``out`` bytes after where its results should be."""
    image = Image()
    values = image.put(np.random.default_rng(0).standard_normal(99).astype(np.float32))
    slot = image.put(np.zeros(99, np.float32))
    buffers = (Buffer("x", float32, "in"), Buffer("out", float32, "out"))
    image.call(Kernel(name, buffers, (N,), body), [values, (slot, out)], [99], 0, 1)
    return image, slot


def test_one_rounding_more_is_seen(tmp_path: Path) -> None:
    once = op(scalar.fma, X, X, X)
    twice = op(scalar.add, op(scalar.mul, X, X), X)
    here, slot = small("muladd", vec(I, 0, N, Store("out", at((I, 1)), once)))
    there, _ = small("muladd", vec(I, 0, N, Store("out", at((I, 1)), twice)))
    one, other = images.native(here)[slot], aarch64.emulated(there, tmp_path)[slot]
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
    assert not same_bits(one, other)


def test_stray_writes_and_faults_are_seen(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="were written"):
        aarch64.emulated(small("copy", vec(I, 0, N, COPY), out=4)[0], tmp_path)
    with pytest.raises(AssertionError, match="status 77"):
        aarch64.emulated(small("checked", Check(Const(False, bool_), 77), vec(I, 0, N, COPY))[0], tmp_path)


# operations


def points(dtype: DType, seed: int) -> Array:
    """Values of every magnitude and special ones, and for floats many where functions are neither flat nor infinite;
    their number is not a multiple of the lanes."""
    values = sample(dtype, 300, seed)
    if not dtype.is_float:
        return values[:299]
    rng = np.random.default_rng(seed + 1)
    regions = [(-12, 12), (-105, 90), (0.3, 3), (-1, 1), (-1e4, 1e4)]
    return np.concatenate([values, *(rng.uniform(*r, 63).astype(dtype.numpy) for r in regions)])[:-4]


def applied(which: scalar.ScalarOp, lanes: int) -> tuple[Kernel, list[tuple[DType, int]], list[DType]]:
    """A kernel that applies an operation in its distinct forms; its inputs as (dtype, position), and its outputs."""
    inputs: dict[tuple[DType, int], str] = {}
    outputs: list[DType] = []
    body: list[Stmt] = []
    loop = vec if lanes == 16 else seq
    for arguments, result in distinct_forms(which):
        names = [inputs.setdefault((d, k), f"{d.name}_{k}") for k, d in enumerate(arguments)]
        loads = [load(name, d, (I, 1)) for name, d in zip(names, arguments, strict=True)]
        body.append(loop(I, 0, N, Store(f"out{len(outputs)}", at((I, 1)), Apply(which, tuple(loads), result))))
        outputs.append(result)
    buffers = [Buffer(name, d, "in") for (d, _), name in inputs.items()]
    buffers += [Buffer(f"out{k}", d, "out") for k, d in enumerate(outputs)]
    return Kernel(f"every_{which.name}_{lanes}", tuple(buffers), (N,), tuple(body)), list(inputs), outputs


@pytest.mark.parametrize("lanes", [16, 1])
def test_scalar_operations(lanes: int, tmp_path: Path) -> None:
    image = Image()
    slots: dict[tuple[DType, int, bool], int] = {}
    named: list[tuple[str, int]] = []
    for which in SCALAR_OPS:
        kernel, inputs, outputs = applied(which, lanes)
        short = any(not dtype.is_float for dtype, _ in inputs)
        size = 299 if short else 611
        for dtype, k in inputs:
            if (dtype, k, short) not in slots:
                slots[dtype, k, short] = image.put(points(dtype, 100 * k)[:size])
        results = [image.put(np.zeros(size, dtype.numpy)) for dtype in outputs]
        image.call(kernel, [*(slots[d, k, short] for d, k in inputs), *results], [size], 0, 1)
        forms = distinct_forms(which)
        named += [(f"{which.name} {[*map(str, a)]} {r}", s) for (a, r), s in zip(forms, results, strict=True)]
    compare(image, tmp_path, named)


# loops and memory


def reductions(dtype: DType) -> Kernel:
    """All reductions of ``dtype`` along a vec loop, each of its n elements multiplied or the like before."""
    body: list[Stmt] = []
    buffers = [Buffer("x", dtype, "in")]
    for name, reducer in REDUCERS.items():
        if dtype.kind in reducer.kinds:
            out = f"out{len(buffers)}"
            buffers.append(Buffer(out, dtype, "out"))
            body += [
                Acc(name, name, dtype),
                vec(J, 0, N, Update(name, load("x", dtype, (I, Param("row")), (J, 1)))),
                Store(out, at((I, 1)), Ref(name, dtype)),
            ]
    return Kernel(f"reductions_{dtype.name}", tuple(buffers), (N, Param("row")), (seq(I, I0, I1, *body),))


def columns(dtype: DType) -> Kernel:
    """Column-wise maxima of a matrix, then its strided, reversed and gathered copies; all in vec loops of n."""
    reducer = REDUCERS["max"]
    best = (
        Acc("best", reducer.name, dtype),
        For(I, I0, I1, "seq", (Update("best", load("x", dtype, (I, Param("row")), (J, 1))),)),
        Store("best_out", at((J, 1)), Ref("best", dtype)),
    )
    gathered = Load("x", Index((), 0, ((load("where", int32, (J, 1)), 1),)), dtype)
    reverse = Load("x", Index(((J, -1),), Param("last")), dtype)
    body = (
        vec(J, 0, N, *best),
        vec(J, 0, N, Store("strided", at((J, 3)), load("x", dtype, (J, 2)))),
        vec(J, 0, N, Store("reversed", at((J, 1)), reverse)),
        vec(J, 0, N, Store("gathered", at((J, 1)), gathered)),
        vec(J, 0, N, Store("scattered", Index((), 0, ((load("where", int32, (J, 1)), 1),)), load("x", dtype, (J, 1)))),
    )
    outputs = [Buffer(b, dtype, "out") for b in ("best_out", "strided", "reversed", "gathered", "scattered")]
    buffers = (Buffer("x", dtype, "in"), Buffer("where", int32, "in"), *outputs)
    return Kernel(f"columns_{dtype.name}", buffers, (N, Param("row"), Param("last")), body)


def test_tails_of_all_lengths(tmp_path: Path) -> None:
    """Vec loops of 0 to 35 elements, in every dtype: no byte beyond the last is written, no lane beyond it counts."""
    image = Image()
    named: list[tuple[str, int]] = []
    rows, width = 3, 36
    where = image.put(np.random.default_rng(1).permutation(width).astype(np.int32))
    for dtype in dtypes.REAL:
        x = sample(dtype, rows * width, 5)
        if dtype.is_float:
            with np.errstate(all="ignore"):
                x = np.random.default_rng(2).standard_normal(rows * width).astype(dtype.numpy)
        source = image.put(x)
        for n in range(width):
            reduced = reductions(dtype)
            sums = [image.put(np.zeros(rows, dtype.numpy)) for _ in reduced.buffers[1:]]
            image.call(reduced, [source, *sums], [n, width], 0, rows)
            sizes = [n, max(3 * n - 2, 0), n, n, width]
            copies = [image.put(np.zeros(size, dtype.numpy)) for size in sizes]
            image.call(columns(dtype), [source, where, *copies], [n, width, n - 1], 0, rows)
            named += [(f"{dtype.name} {n} {k}", slot) for k, slot in enumerate([*sums, *copies])]
    here = compare(image, tmp_path, named)
    assert any(here[slot].any() for _, slot in named)


def test_positions(tmp_path: Path) -> None:
    """Loop variables as values, from begins that are not a multiple of the lanes."""
    image = Image()
    named = []
    for dtype in dtypes.INTEGERS:
        value = op(scalar.mul, Position(I, dtype), Position(J, dtype))
        store = Store("out", at((I, 41), (J, 1)), value)
        kernel = Kernel(
            f"positions_{dtype.name}", (Buffer("out", dtype, "out"),), (N,), (seq(I, I0, I1, vec(J, 3, N, store)),)
        )
        slot = image.put(np.zeros(5 * 41, dtype.numpy))
        image.call(kernel, [slot], [41], 1, 5)
        named.append((dtype.name, slot))
    compare(image, tmp_path, named)


# contractions


def product(dtype: DType, batch: BatchSpec | None = None) -> Kernel:
    names = ("k", "a_row", "a_k", "b_k", "b_col", "c_row")
    spec = Contract("a", "b", "c", dtype, *map(Param, names), batch=batch)
    more = ("m", "n", "a_step", "b_step", "c_step") if batch else ()
    buffers = (Buffer("a", dtype, "in"), Buffer("b", dtype, "in"), Buffer("c", dtype, "out"))
    name = f"product_{dtype.name}_{'batch' if batch else 'one'}"
    return Kernel(name, buffers, tuple(map(Param, (*names, *more))), (spec,))


def put_view(image: Image, view: Array) -> tuple[int, int]:
    """The bytes that a view with any strides reaches, and where in them it begins."""
    reaches = [(n - 1) * step for n, step in zip(view.shape, view.strides, strict=True)]
    low = view.ctypes.data + sum(reach for reach in reaches if reach < 0)
    high = view.ctypes.data + sum(reach for reach in reaches if reach > 0) + view.itemsize
    raw = np.frombuffer((ctypes.c_char * (high - low)).from_address(low), np.uint8)
    return image.put(raw.copy()), view.ctypes.data - low


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_contractions_in_all_layouts(dtype: DType, tmp_path: Path) -> None:
    image = Image()
    named: list[tuple[str, int]] = []
    kernel = product(dtype)
    shapes = [(1, 1, 1), (7, 19, 37), (31, 50, 18), (50, 13, 33), (5, 17, 0), (200, 21, 40), (23, 200, 60)]
    cases = [(s, a, b) for s in shapes for a in LAYOUTS for b in LAYOUTS]
    long = [((49, 1100, 20), "rows", "rows"), ((9, 14, 2100), "rows", "rows"), ((9, 14, 530), "columns", "columns")]
    for (m, n, k), a_layout, b_layout in cases + long:
        a, b = operands(m, n, k, dtype, seed=m)
        left, right = laid_out(a, a_layout), laid_out(b, b_layout)
        c = image.put(np.full((m, n + 3), np.nan, dtype.numpy))
        strides = [step // dtype.itemsize for step in (*left.strides, *right.strides)]
        places = [put_view(image, left), put_view(image, right), (c, 0)] if k else [c, c, c]
        rows = (0, m // 2, m) if (a_layout, b_layout) == ("rows", "columns") else (0, m)  # in two blocks of rows
        for i0, i1 in itertools.pairwise(rows):
            image.call(kernel, places, [k, *strides, n + 3], i0, i1, 0, n)
        named.append((f"{m}x{k}x{n} {a_layout}, {b_layout}", c))
    here = compare(image, tmp_path, named)
    a, b = operands(49, 1100, 20, dtype, seed=49)
    actual = here[named[len(cases)][1]].reshape(49, 1103)[:, :1100]
    np.testing.assert_allclose(actual, a @ b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_listed_operands_and_resumed_chains(dtype: DType, tmp_path: Path) -> None:
    image = Image()
    named: list[tuple[str, int]] = []
    pairs = [(indirect(dtype), listed_data(dtype)), (resumed(dtype), resumed_data(dtype))]
    for width in (16, target.NEON.panel_columns(dtype)):
        pairs.append((panelled(dtype, width), panelled_data(dtype, width)))
    for kernel, data in pairs:
        for arrays, params, rows in data:
            slots = {name: image.put(array) for name, array in arrays.items()}
            places = [slots[b.name] for b in kernel.buffers]
            image.call(kernel, places, [params[p.name] for p in kernel.params], 0, rows, 0, params["n"])
            named.append((f"{kernel.name} {params}", slots["c"]))
    compare(image, tmp_path, named)


def test_batched_contraction(tmp_path: Path) -> None:
    image = Image()
    named = []
    for dtype in (float32, float64):
        kernel = product(dtype, BatchSpec(*map(Param, ("m", "n", "a_step", "b_step", "c_step"))))
        rng = np.random.default_rng(3)
        a, b = (image.put(rng.standard_normal(size).astype(dtype.numpy)) for size in (4 * 9 * 5, 4 * 5 * 21))
        c = image.put(np.zeros(4 * 9 * 21, dtype.numpy))
        image.call(kernel, [a, b, c], [5, 5, 1, 21, 1, 21, 9, 21, 45, 105, 189], 1, 4)
        named.append((dtype.name, c))
    compare(image, tmp_path, named)


# programs


def programs() -> list[Sample]:
    """Every composed function, and every seventh case of every op: compiling them takes most of the time."""
    alike: dict[str, list[Sample]] = {}
    for named in samples():
        alike.setdefault(named[0].split()[0], []).append(named)
    return [named for group in alike.values() for named in group[::7]]


def test_programs_of_every_op_and_function(tmp_path: Path) -> None:
    image = Image()
    named: list[tuple[str, int]] = []
    for name, plan, arrays in programs():
        named += [(name, slot) for slot in image.put_plan(plan, arrays)]
    compare(image, tmp_path, named)
    assert len(named) > 250


def test_random_numbers(tmp_path: Path) -> None:
    """Philox and what is made of its bits."""
    key = np.array([20260729, 11], np.uint32)

    def program(k: rn.Tensor) -> tuple[rn.Tensor, ...]:
        kinds = (rn.ops.uniform(k, (7, 33)), rn.ops.normal(k, (129,)), rn.ops.randint(k, -5, 1000, (50,)))
        return (*kinds, rn.ops.bernoulli(k, 0.3, (19, 3)))

    image = Image()
    slots = image.put_plan(traced(program, [key]), [key])
    here = compare(image, tmp_path, [(f"output {k}", slot) for k, slot in enumerate(slots)])
    assert 0.2 < here[slots[0]].mean() < 0.8
    assert 0.7 < here[slots[1]].std() < 1.3


def test_a_program_that_trains(tmp_path: Path) -> None:
    """Three steps of a network with dropout: its Variables and its loss as the compiled step leaves them here."""
    rn.manual_seed(4)
    model = nn.Sequential(nn.Linear(20, 33), nn.GELU(), nn.LayerNorm(33), nn.Dropout(0.2), nn.Linear(33, 5))
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    rng = np.random.default_rng(0)
    x, y = rn.asarray(rng.standard_normal((24, 20)).astype(np.float32)), rn.asarray(rng.integers(0, 5, 24))

    @rn.compile
    def step(x: rn.Tensor, y: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        loss: Any = rn.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    step(x, y)
    program = step.program(x, y).program
    plan = program.plan
    (executable,) = step.executables()
    (frame,) = executable.native.binding.pool.frames

    def memory(first: int, places: Iterable[Any]) -> list[Array]:
        states = []
        for k, place in enumerate(places):
            raw = ctypes.string_at(frame.bases[first + k], place.nbytes)
            states.append(np.frombuffer(raw, place.dtype.numpy).copy())
        return states

    before = memory(program.first_variable, plan.variables.values())
    losses = [step(x, y).numpy() for _ in range(3)]
    after = memory(program.first_variable, plan.variables.values())
    assert any(not same_bits(b, a) for b, a in zip(before, after, strict=True))

    image = Image()
    slots = image.put_plan(plan, memory(2, plan.inputs), before, times=3)
    here = compare(image, tmp_path, [(f"value {k}", slot) for k, slot in enumerate(slots)])
    expected = [losses[-1].reshape(-1), *after]
    assert len(expected) == len(slots)
    assert all(same_bits(e, here[slot]) for e, slot in zip(expected, slots, strict=True))
