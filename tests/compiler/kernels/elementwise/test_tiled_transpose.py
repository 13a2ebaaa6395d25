"""Kernels that read along another axis than they write: equal to NumPy to the bit, by blocks where that pays."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel import ops
from runnel.backends.cpu import target
from runnel.backends.cpu.codegen import nest
from runnel.compiler.plan_ir.calls import Call, MemorySpace
from runnel.ops.shapes.views import contiguous
from tests.backends.cpu.codegen.nest_harness import machine_code
from tests.compiler.harness import Traced, same_bits
from tests.suites.plans import interpret, traced
from tests.suites.test_kernels import native

pytestmark = pytest.mark.suite


DTYPES = (np.bool_, np.uint8, np.int16, ml_dtypes.bfloat16, np.float32, np.float64, np.int64)
Array = np.ndarray[Any, Any]


def numbers(shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    """Different numbers, as far as the dtype has any."""
    return (np.arange(np.prod(shape, dtype=np.int64)) * 7 % 251).reshape(shape).astype(dtype)


def order(*axes: int) -> Any:
    return lambda x: contiguous(ops.permute(x, axes))


def in_blocks(call: Call) -> bool:
    return any(a.allocation.space is MemorySpace.SCRATCH for a in call.accesses)


def only_call(function: Any, *arrays: Array) -> Call:
    (call,) = traced(function, list(arrays)).calls
    return call


@st.composite
def permuted(draw: st.DrawFn) -> tuple[Array, tuple[int, ...]]:
    extents = st.sampled_from((1, 2, 3, 7, 8, 9, 15, 16, 17, 24, 31, 33, 65))
    shape = draw(st.lists(extents, min_size=2, max_size=4).filter(lambda s: np.prod(s) < 40_000))
    axes = draw(st.permutations(range(len(shape))))
    return numbers(tuple(shape), draw(st.sampled_from(DTYPES))), tuple(axes)


@given(permuted(), st.integers(1, 3))
@settings(max_examples=50, deadline=None)
def test_permuted_copies(case: tuple[Array, tuple[int, ...]], threads: int) -> None:
    x, axes = case
    (actual,) = Traced(order(*axes), [rn.asarray(x)], threads=threads)(rn.asarray(x))
    assert same_bits(actual, np.ascontiguousarray(x.transpose(axes)))


@given(permuted(), st.data())
@settings(max_examples=30, deadline=None)
def test_views_of_parts(case: tuple[Array, tuple[int, ...]], data: st.DataObject) -> None:
    """Slices with steps, reversed axes and broadcasts, eagerly (strided arguments) and compiled."""
    x, axes = case
    parts = tuple(
        slice(data.draw(st.integers(0, (n - 1) // 2)), None, data.draw(st.sampled_from((1, 1, 2)))) for n in x.shape
    )
    reverse = tuple(a for a in range(x.ndim) if data.draw(st.booleans()))

    def function(x: Any) -> Any:
        return contiguous(ops.permute(ops.flip(x[parts], reverse), axes))

    expected = np.flip(x[parts], reverse).transpose(axes)
    assert same_bits(function(rn.asarray(x)).numpy(), np.ascontiguousarray(expected))
    assert same_bits(rn.compile(function)(rn.asarray(x)).numpy(), np.ascontiguousarray(expected))
    spread = np.broadcast_to(expected[None], (3, *expected.shape))
    wide = rn.compile(lambda x: contiguous(ops.broadcast_to(function(x), spread.shape)))(rn.asarray(x))
    assert same_bits(wide.numpy(), np.ascontiguousarray(spread))


FUSED = {
    "one operand": (lambda x, y, z: ops.relu(x.T) * 2.0 + y, lambda x, y, z: np.maximum(x.T, 0) * 2 + y),
    "two operands": (lambda x, y, z: x.T - z.T * y, lambda x, y, z: x.T - z.T * y),
    "of two sizes": (
        lambda x, y, z: ops.cast(x.T, rn.float64) + ops.cast(z, rn.float64).T,
        lambda x, y, z: x.T.astype(np.float64) + z.T.astype(np.float64),
    ),
    "with rows and columns": (
        lambda x, y, z: x.T * y[:1] + y[:, :1],
        lambda x, y, z: x.T * y[:1] + y[:, :1],
    ),
    "both orders": (lambda x, y, z: (x.T * y, x * 2.0), lambda x, y, z: (x.T * y, x * 2)),
}


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("shape", [(40, 70), (64, 3), (3, 64), (600, 33)])
def test_fused(name: str, shape: tuple[int, int]) -> None:
    function, oracle = FUSED[name]
    x, y, z = numbers(shape) - 99, numbers(shape[::-1]), numbers(shape) / 4
    expected = oracle(x, y, z)
    for threads in (1, 2, 3):
        tensors = [rn.asarray(a) for a in (x, y, z)]
        actual = Traced(function, tensors, threads=threads)(*tensors)
        for e, f in zip(expected if isinstance(expected, tuple) else (expected,), actual, strict=True):
            assert same_bits(f, e.astype(f.dtype))


def test_numbers_drawn_beside_a_transposed_operand() -> None:
    """A value computed from an element's number belongs to the same element."""
    x = rn.asarray(numbers((50, 90)))
    key = rn.asarray(np.array([3, 4], np.uint32))

    def function(x: Any, key: Any) -> Any:
        return ops.dropout(ops.permute(x, (1, 0)) + 1.0, key, 0.5)

    expected = function(contiguous(x.T).T, key).numpy()
    call = only_call(function, x.numpy(), key.numpy())
    assert in_blocks(call)
    assert same_bits(rn.compile(function)(x, key).numpy(), expected)
    assert same_bits(expected != 0, function(rn.asarray(np.ones((50, 90), np.float32)), key).numpy() != 0)


SHAPES = {
    "two axes": ((70, 41), (1, 0)),
    "short rows": ((33, 9, 5), (1, 2, 0)),
    "filters": ((20, 30, 3, 3), (2, 3, 1, 0)),
    "images": ((2, 19, 9, 7), (0, 2, 3, 1)),
    "three channels": ((2, 3, 9, 7), (0, 2, 3, 1)),
    "many rows": ((24, 600), (1, 0)),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_native_code_does_what_the_interpreter_does(name: str, dtype: Any) -> None:
    shape, axes = SHAPES[name]
    x = numbers(shape, dtype)
    for threads in (1, 3):
        plan = traced(order(*axes), [x], threads)
        (actual,), (expected,) = native(plan, [x]), interpret(plan, [x])
        assert same_bits(actual, expected)
        assert same_bits(actual, np.ascontiguousarray(x.transpose(axes)).reshape(-1))


@pytest.mark.parametrize("name", SHAPES)
def test_every_target_has_code(name: str) -> None:
    shape, axes = SHAPES[name]
    kernel = only_call(order(*axes), numbers(shape)).kernel
    for row in target.TARGETS:
        assert len(machine_code(nest.emit_kernel(kernel, row), row)) > 200


def test_what_goes_through_scratch_memory() -> None:
    """Both axes must be long enough; what lies like the result is read where it lies."""
    assert in_blocks(only_call(order(1, 0), numbers((64, 64))))
    assert in_blocks(only_call(order(2, 3, 1, 0), numbers((64, 64, 3, 3))))
    assert in_blocks(only_call(lambda x, y: x.T + y, numbers((64, 32)), numbers((32, 64))))
    assert not in_blocks(only_call(order(1, 0), numbers((3, 64))))
    assert not in_blocks(only_call(order(1, 0), numbers((64, 3))))
    assert not in_blocks(only_call(order(0, 2, 1, 3), numbers((2, 32, 32, 16))))
    assert not in_blocks(only_call(lambda x, y: x + y, numbers((64, 32)), numbers((64, 32))))


def test_panels_of_a_weight_are_made_in_blocks() -> None:
    def panels(weight: Any) -> Any:
        n, k = weight.shape
        return contiguous(ops.permute(ops.reshape(ops.permute(weight, (1, 0)), (k, n // 16, 16)), (1, 0, 2)))

    weight = numbers((48, 100))
    assert in_blocks(only_call(panels, weight))
    expected = weight.T.reshape(100, 3, 16).transpose(1, 0, 2)
    assert same_bits(rn.compile(panels)(rn.asarray(weight)).numpy(), np.ascontiguousarray(expected))


def test_threads_share_the_longest_axis_where_the_first_is_short() -> None:
    call = only_call(order(0, 2, 1), numbers((2, 50, 900)))
    assert (call.rows, call.split) == (900, "rows")


def test_few_kernels_for_many_shapes() -> None:
    """One for each width of blocks."""
    rng = np.random.default_rng(0)
    shapes = rng.integers(32, 300, (60, 2)).tolist()
    assert len({only_call(order(1, 0), numbers(tuple(s))).kernel.name for s in shapes}) == 2


def test_what_is_updated_in_place_is_done_once() -> None:
    weight = rn.Variable(rn.asarray(numbers((40, 50))))
    change = numbers((50, 40))

    @rn.compile
    def step(change: Any) -> None:
        weight.assign(weight.read() + change.T)

    step(rn.asarray(change))
    assert same_bits(weight.numpy(), numbers((40, 50)) + change.T)


def test_prediction_does_not_depend_on_powers_of_two() -> None:
    """Blocks are read row by row: a step that leads to few sets of the cache costs nothing."""
    even, odd = (only_call(order(1, 0), numbers((n, n))).work().units / n**2 for n in (512, 528))
    assert even == pytest.approx(odd, rel=0.1)
