"""Values stored straight into the interiors of padded arrays: equal to the bit, and nothing copied or written twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import runnel as rn
from runnel import ops
from runnel.compiler.plan_ir.calls import Allocation, MemorySpace
from runnel.compiler.schedule import partition
from runnel.compiler.verification import verifier
from runnel.core import switches
from runnel.core.errors import VerifierError
from runnel.graph.node import Value
from runnel.ops.convolution.winograd import padded as whole, winograd, winograd_filters, winograd_gradient
from runnel.ops.shapes.padding import pad_p, pad_spread
from runnel.tensor.tensor import Tensor
from tests.compiler.harness import Traced, same_bits
from tests.random_numbers import RNG

pytestmark = pytest.mark.suite


Function = Callable[..., Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]
Widths = tuple[tuple[int, int], ...]


@pytest.fixture(autouse=True)
def split_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "WORTH_A_TEAM", 0.0)
    monkeypatch.setattr(partition, "WORTH_SPLITTING", 0.0)


def values(*shape: int, dtype: Any = np.float32) -> Tensor:
    return rn.asarray(RNG.normal(size=shape).astype(dtype))


def checked(fn: Function, *args: Tensor, threads: int = 1) -> Traced:
    """The program of ``fn``, after a look at its results: bits equal one op after the other."""
    traced = Traced(fn, args, threads=threads)
    eager = fn(*args)
    for expected, actual in zip(eager if isinstance(eager, tuple) else (eager,), traced(*args), strict=True):
        assert same_bits(expected.numpy(), actual)
    return traced


def pads(traced: Traced) -> list[tuple[Value, bool]]:
    """The padded arrays of each call that fills one, and whether it copies something into it."""
    calls = [c for c in traced.plan.calls if c.nodes[0].op is pad_p]
    return [(c.nodes[0], any(b.name == "x" for b in c.kernel.buffers)) for c in calls]


def copies(traced: Traced) -> int:
    return sum(copied for _, copied in pads(traced))


def arena(traced: Traced) -> list[Allocation]:
    allocations = {
        a.allocation: None for c in traced.plan.calls for a in c.accesses if a.allocation.space is MemorySpace.ARENA
    }
    return list(allocations)


IMAGE = ((0, 0), (1, 0), (1, 2), (0, 0))


def padded(x: Any, widths: Widths = IMAGE, value: float = 0.0) -> Any:
    return ops.pad(x, widths, value)


def by_pixel(x: Any, w: Any) -> Any:
    """A product over channels whose rows are the pixels of an image."""
    return rn.tensordot(x, w, 1)


X, W, DEEP = (2, 9, 11, 20), (20, 24), (300, 24)

CASES: dict[str, tuple[Function, tuple[tuple[int, ...], ...], int, int]] = {
    # function, shapes of arguments, copies into padded arrays, places in the arena
    "map": (lambda x: ops.exp(padded(x * 2.0)), (X,), 0, 1),
    "an input": (lambda x: ops.exp(padded(x)), (X,), 1, 1),
    "is a result": (lambda x: padded(x * 2.0), (X,), 0, 0),
    "both are results": (lambda x: (y := x * 2.0, padded(y)), (X,), 0, 0),
    "read by a map": (lambda x: (ops.exp(padded(y := x * 2.0)), ops.exp(y.sum((0, 1, 2)))), (X,), 0, 1),
    "twice": (lambda x: (ops.exp(padded(y := x * 2.0)), ops.exp(padded(y, ((1, 0), (0, 0), (0, 3), (2, 0)), 1.5))),
              (X,), 0, 2),
    "of one that is padded": (lambda x: ops.exp(padded(padded(x * 2.0), value=-1.0)), (X,), 1, 2),
    "infinite": (lambda x: ops.exp(padded(x * 2.0, value=-np.inf)), (X,), 0, 1),
    "reshaped": (lambda x: ops.exp(padded((x * 2.0).reshape((2, 9, 11, 2, 10)), (*IMAGE, (0, 0)))), (X,), 0, 1),
    "of pairs": (lambda x: ops.exp(padded((x.reshape((2, 99, 20)) * 2.0).reshape(X))), (X,), 1, 2),
    "transposed": (lambda x: ops.exp(padded(ops.permute(x * 2.0, (0, 3, 1, 2)))), (X,), 1, 2),
    "of a part": (lambda x: ops.exp(padded((x * 2.0)[:, 1:])), (X,), 1, 2),
    "short runs": (lambda x: ops.exp(padded(x * 2.0)), ((2, 5, 3, 3),), 1, 2),
    "of a reduction": (lambda x: ops.exp(padded(x - x.sum(3, keepdims=True))), (X,), 1, 2),
    "spread": (lambda x: ops.exp(pad_spread(x * 2.0, ((0, 0, 1), (1, 1, 2), (0, 1, 1), (0, 0, 1)), 0)), (X,), 1, 2),
    "product": (lambda x, w: ops.exp(padded(by_pixel(x, w))), (X, W), 0, 1),
    "and what follows it": (lambda x, w: ops.exp(padded(ops.relu(by_pixel(x, w) + w[0]))), (X, W), 0, 1),
    "a mask beside it": (lambda x, w: (ops.exp(padded(ops.relu(y := by_pixel(x, w)))), y > 0.0), (X, W), 0, 1),
    "long sums": (lambda x, w: ops.exp(padded(ops.relu(by_pixel(x, w)))), ((2, 3, 4, 300), DEEP), 0, 2),
    "a product reads it": (lambda x, w: (ops.exp(padded(y := x * 2.0)), by_pixel(y, w)), (X, W), 0, 1),
    "an epilogue reads it": (lambda x, w: (ops.exp(padded(y := ops.tanh(x[..., :1] * w[0]))), by_pixel(x, w) + y),
                             (X, W), 0, 1),
    "columns": (lambda x, w: ops.exp(padded(by_pixel(x, w), ((0, 0), (0, 0), (0, 0), (1, 2)))), (X, W), 0, 1),
    "a concatenation reads it": (lambda x: (ops.exp(padded(y := x * 2.0)), ops.concat([y, x], 2)), (X,), 0, 1),
    "much larger": (lambda x, w: (padded(y := x * 2.0, ((0, 0), (9, 9), (9, 9), (0, 0))), by_pixel(y, w)),
                    (X, W), 0, 1),
}  # fmt: skip


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", CASES)
def test_cases(name: str, threads: int) -> None:
    function, shapes, expected, allocations = CASES[name]
    traced = checked(function, *[values(*shape) for shape in shapes], threads=threads)
    assert copies(traced) == expected
    assert len(arena(traced)) == allocations


@st.composite
def geometries(draw: Draw) -> tuple[tuple[int, ...], Widths]:
    outer = draw(st.lists(st.integers(1, 5), max_size=3))
    shape = (*outer, draw(st.sampled_from([1, 3, 16, 19, 40])))
    pair = st.tuples(st.integers(0, 3), st.integers(0, 3))
    return shape, tuple(draw(pair) for _ in shape)


@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(geometries(), st.sampled_from([1, 2, 4]), st.sampled_from([np.float32, np.float64, np.int8]))
def test_maps_of_any_shape(geometry: tuple[tuple[int, ...], Widths], threads: int, dtype: Any) -> None:
    shape, widths = geometry
    x = rn.asarray(RNG.integers(-50, 50, shape).astype(dtype))
    traced = checked(lambda x: (ops.pad(y := x + x, widths, 3), ops.pad(y, widths, 0) + 1, y * y), x, threads=threads)
    np.testing.assert_array_equal(traced(x)[0], np.pad(2 * x.numpy(), widths, constant_values=3))


@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(geometries(), st.sampled_from([5, 260]), st.sampled_from([1, 24]), st.sampled_from([1, 2, 4]))
def test_products_of_any_shape(geometry: tuple[tuple[int, ...], Widths], k: int, n: int, threads: int) -> None:
    shape, widths = geometry

    def fn(x: Any, w: Any) -> Any:
        y = ops.relu(rn.tensordot(x, w, 1) + 0.5)
        return ops.pad(y, widths, 2.0) * 2.0, y.sum(), rn.tensordot(x, w, 1) * 3.0 + y

    x, w = values(*shape[:-1], k), values(k, n)
    traced = checked(fn, x, w, threads=threads)
    expected = np.pad(
        np.maximum(np.tensordot(x.numpy().astype(float), w.numpy(), 1) + 0.5, 0), widths, constant_values=2
    )
    np.testing.assert_allclose(traced(x, w)[0], 2 * expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [(3, 9, 10), (2, 16, 16)])  # of which one is much larger when it is padded
@pytest.mark.parametrize("filters", [20, 32])
def test_winograd(size: tuple[int, int, int], filters: int, threads: int) -> None:
    n, height, width = size
    widths = ((0, 0), *((1, whole(extent) - extent - 1) for extent in (height, width)), (0, 0))

    def convolved(x: Any, w: Any) -> Any:
        return winograd(x, winograd_filters(w), height, width, filters)

    def step(x: Any, w: Any, v: Any) -> Any:
        x = ops.pad(ops.tanh(x), widths)
        y = ops.relu(convolved(x, w))
        inside = ops.pad(y, widths)
        z = ops.tanh(convolved(inside, v) * 0.01 + y)
        dy = ops.relu(convolved(ops.pad(z, widths), v) + z)
        return winograd_gradient(x, z)[..., :filters], winograd_gradient(inside, dy)[..., :filters], ops.pad(dy, widths)

    args = values(n, height, width, 16), values(3, 3, 16, filters), values(3, 3, filters, filters)
    traced = checked(step, *args, threads=threads)
    images = tuple((low, high, 1) for low, high in widths)
    assert [copied for node, copied in pads(traced) if node.attrs["widths"] == images] == [False] * 4


@pytest.mark.parametrize("threads", [1, 2])
def test_loops_and_choices(threads: int) -> None:
    """Where a padded array is a carry, or a slice of a result, or made by one of two branches."""

    def body(carry: Any, x: Any) -> tuple[Any, Any]:
        y = ops.tanh(carry[:, 1:, :9] + x)
        return ops.pad(y, ((0, 0), (0, 1), (2, 0), (0, 0)), 1.0), ops.pad(ops.exp(y), IMAGE)

    def scanned(x: Any, xs: Any) -> Any:
        return rn.scan(body, x, xs)

    def unrolled(x: Any, xs: Any) -> Any:
        results = []
        for i in range(xs.shape[0]):
            x, y = body(x, xs[i])
            results.append(y)
        return x, ops.stack(results)

    def chosen(x: Any) -> Any:
        other = ((0, 0), (0, 1), (2, 1), (0, 0))
        return rn.cond(x.sum() > 0, lambda x: padded(ops.tanh(x)), lambda x: padded(x * 2.0, other, 1.0), x)

    x, xs = values(2, 8, 11, 20), values(4, 2, 7, 9, 20)
    with switches.override(num_threads=threads):
        for expected, results in zip(unrolled(x, xs), rn.compile(scanned)(x, xs), strict=True):
            np.testing.assert_array_equal(results.numpy(), expected.numpy())
        for value in (abs(x), -abs(x)):
            np.testing.assert_array_equal(rn.compile(chosen)(value).numpy(), chosen(value).numpy())


def test_barriers_stand_where_border_and_interior_meet() -> None:
    plan = checked(lambda x: ops.exp(padded(x * 2.0)), values(6, 8, 8, 32), threads=3).plan
    assert plan.threads == 3
    for at in [at for at, stands in enumerate(plan.barriers) if stands]:
        plan.barriers[at] = False
        with pytest.raises(VerifierError, match="no barrier"):
            verifier.verify(plan)
        plan.barriers[at] = True
