"""Graphs whose values are read in several ways at once: what is fused stays right, and the invariants notice if not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import ops
from runnel.compiler import plan
from runnel.compiler.memory import placement
from runnel.compiler.verification import verifier
from runnel.core.errors import VerifierError
from runnel.graph.graph import Graph
from runnel.ops.elementwise.arithmetic import add_p, mul_p
from runnel.ops.elementwise.exponential import tanh_p
from tests.fuzz.graph_checks import fault, same_bits
from tests.fuzz.graph_programs import draw
from tests.graph.build import argument, op

pytestmark = pytest.mark.suite


Function = Callable[..., Any]


def _reread_under_a_broadcast(x: Any, w: Any) -> Any:
    u = x[0] + 5
    return rn.max(rn.broadcast_to(rn.log(u), (3, 4)), axis=0) / u


def _reread_under_a_broadcast_of_columns(x: Any, w: Any) -> Any:
    u = rn.exp(x[:, 0]) + 1
    return rn.sum(rn.broadcast_to(rn.expand_dims(u, 1), (4, 5)), axis=1) * u


def _operand_of_a_product_in_its_epilogue(x: Any, w: Any) -> Any:
    t = rn.tanh(x)

    def both(x: Any) -> Any:
        t = rn.tanh(x)
        return rn.minimum(t, x), rn.maximum(t @ x, t)

    y, pull = rn.vjp(both, x)
    return y[1], pull((t, x))[0]


def _residual_and_another_use(x: Any, w: Any) -> Any:
    h = rn.tanh(x)
    m = h @ w
    return m, h + w * 0.5, h + m


def _residual_and_a_mean_of_squares(x: Any, w: Any) -> Any:
    h = rn.tanh(x)
    m = h @ w
    scale = rn.mean(h * h, axis=-1, keepdims=True)
    return m, h * scale + m, m * scale


def _residual_around_a_convolution(x: Any, w: Any) -> Any:
    h = rn.tanh(rn.reshape(x, (1, 4, 4)))
    m = ops.conv(h, rn.reshape(w, (4, 4, 1)))
    return m, h + 0.5, h + m


def _sums_of_buckets_of_one_element(x: Any, w: Any) -> Any:
    rows = rn.asarray(np.array([1, 0, 1, 3]))

    def taken(x: Any) -> Any:
        return rn.take(rn.var(x, axis=1, keepdims=True), rows, axis=0)

    y, pull = rn.vjp(taken, x)
    return y, pull(y * y)[0]


def _sums_over_axes_of_one(x: Any, w: Any) -> Any:
    s = rn.sum(rn.reshape(x, (4, 1, 4)), axis=1)
    return rn.sum(s, axis=-1, keepdims=True) + rn.sum(rn.sum(s, axis=-1, keepdims=True), axis=1, keepdims=True) * s


_FUNCTIONS = [value for name, value in list(globals().items()) if name.startswith("_") and callable(value)
              and getattr(value, "__module__", "") == __name__]  # fmt: skip


@pytest.mark.parametrize("function", _FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("second", [False, True], ids=["value", "gradient"])
def test_values_are_read_in_several_ways_at_once(function: Function, second: bool) -> None:
    rng = np.random.default_rng(3)
    x, w = (rn.asarray(rng.uniform(-1, 1, (4, 4)).astype(np.float32)) for _ in range(2))

    def tested(x: Any, w: Any) -> Any:
        if not second:
            return function(x, w)
        y, pull = rn.vjp(function, x, w)
        ones = tuple(rn.ones_like(v) for v in y) if isinstance(y, tuple) else rn.ones_like(y)
        return pull(ones)

    expected = tested(x, w)
    actual = rn.compile(tested)(x, w)
    for a, b in zip(_flat(expected), _flat(actual), strict=True):
        assert same_bits(a, b)


def _flat(results: Any) -> list[Any]:
    return [np.array(r) for r in (results if isinstance(results, tuple | list) else [results])]


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_give_the_same_bits_eagerly_and_compiled(seed: int) -> None:
    """More of them: ``python -m tests.fuzz graphs``."""
    program = draw(seed)
    assert fault(program) is None, program.source


def _chain() -> Graph:
    x = argument(3, 4)
    a = op(tanh_p, x)
    b = op(mul_p, a, x)
    return Graph([x], [op(add_p, a, b)], {})


def test_the_invariants_notice_a_value_that_is_read_at_other_points() -> None:
    clustering = placement.place(_chain()).clustering
    cluster = clustering.clusters[0]
    verifier.check_clusters(clustering)
    cluster.domain = (4, 3)
    with pytest.raises(VerifierError, match="at other points than its own"):
        verifier.check_clusters(clustering)


def test_the_invariants_notice_a_wrong_order() -> None:
    clustering = placement.place(_chain(), fuse=False).clustering
    order = sorted(clustering.clusters, key=lambda c: c.first)
    verifier.check_order(order, clustering, {})
    with pytest.raises(VerifierError, match="is computed before"):
        verifier.check_order(order[::-1], clustering, {})
    with pytest.raises(VerifierError, match="in a circle"):
        verifier.check_order(order[1:], clustering, {})


def test_the_invariants_notice_memory_that_nothing_has_written() -> None:
    calls = plan.plan_graph(_chain(), 1, fuse=False).calls
    verifier.check_calls(calls)
    with pytest.raises(VerifierError, match="before anything writes it"):
        verifier.check_calls(calls[1:])


def test_kernels_stay_small_however_long_a_chain_is() -> None:
    x = argument(8)
    y = x
    for _ in range(3000):
        y = op(tanh_p, op(add_p, y, x))
    calls = plan.plan_graph(Graph([x], [y], {}), 1).calls
    assert max(len(call.nodes) for call in calls) < 600
    assert sum(len(call.nodes) for call in calls) == 6000
    assert len({call.kernel.name for call in calls}) <= 3
