"""``scan``: against a loop in NumPy, eager and compiled to the bit, with gradients of first and second order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel.core.errors import DTypeError, GradientError, ShapeError, SideEffectError
from runnel.graph import interpreter
from runnel.graph.graph import Graph
from runnel.graph.node import Value
from runnel.nn import functional as F
from runnel.ops.control import scan_p
from runnel.tensor import tensor as tensors, tracing
from runnel.tensor.tensor import Tensor
from tests.random_numbers import RNG

Array = np.ndarray[Any, Any]


def cell(weights: Any) -> Callable[[Any, Any], tuple[Any, Any]]:
    w, u, b = weights

    def f(h: Any, x: Any) -> tuple[Any, Any]:
        h = rn.tanh(F.linear(x, w) + F.linear(h, u, b))
        return h, h * 2.0

    return f


def arrays(steps: int, rows: int = 3, dtype: str = "float64") -> list[Array]:
    shapes = [(rows, 4), (steps, rows, 5), (4, 5), (4, 4), (4,)]
    return [RNG.normal(size=shape).astype(dtype) for shape in shapes]


def by_hand(h: Array, xs: Array, w: Array, u: Array, b: Array, reverse: bool = False) -> tuple[Array, Array]:
    ys = np.zeros((len(xs), *h.shape), h.dtype)
    for t in reversed(range(len(xs))) if reverse else range(len(xs)):
        h = np.tanh(xs[t] @ w.T + h @ u.T + b)
        ys[t] = h * 2
    return h, ys


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 6), st.integers(1, 5), st.booleans())
def test_against_a_loop(steps: int, rows: int, reverse: bool) -> None:
    inputs = arrays(steps, rows)
    h, xs, *weights = map(rn.asarray, inputs)
    last, ys = rn.scan(cell(weights), h, xs, reverse=reverse)
    expected = by_hand(*inputs, reverse=reverse)
    np.testing.assert_allclose(last.numpy(), expected[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ys.numpy(), expected[1], rtol=1e-12, atol=1e-12)


def test_a_scan_is_one_op_and_input_products_leave_it() -> None:
    h, xs, *weights = map(rn.asarray, arrays(6))
    graph = traced(lambda h, xs, *weights: rn.scan(cell(weights), h, xs), h, xs, *weights)
    scans = [node for node in graph.nodes if node.op is scan_p]
    assert len(scans) == 1
    assert [node.op.name for node in graph.nodes if node.op is not None].count("matmul") == 1, "x·W, for all steps"
    inside = scans[0].attrs["body"].graph
    assert [node.op.name for node in inside.nodes if node.op is not None].count("matmul") == 1, "h·U, step by step"
    values = [node.value if node.is_constant else None for node in graph.inputs]
    assert values == [None] * 5
    outputs, _ = interpreter.run(graph, [x.numpy() for x in (h, xs, *weights)])
    last, ys = rn.scan(cell(weights), h, xs)
    np.testing.assert_allclose(outputs[0], last.numpy(), rtol=1e-12)
    np.testing.assert_allclose(outputs[1], ys.numpy(), rtol=1e-12)


def traced(function: Callable[..., Any], *inputs: Tensor) -> Graph:
    """The graph of a function of tensors that gives a tuple of tensors."""
    trace = tracing.Trace(tensors.serial_now())
    nodes = [trace.input(x.aval, tensors.InputKind.ARGUMENT, f"x{i}") for i, x in enumerate(inputs)]
    with tracing.activate(trace):
        result = function(*[tensors.symbolic(node) for node in nodes])
        return trace.graph([tensors.node_of(x, trace) for x in result], {}, "test")


def loss(args: Any, weight: Array, **options: Any) -> Any:
    h, xs, *weights = args
    last, ys = rn.scan(cell(weights), h, xs, **options)
    return (ys * rn.asarray(weight)).sum() + (last * last).sum()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("every", [None, 1, 2, 3, 9])
def test_gradients(reverse: bool, every: int | None) -> None:
    inputs = arrays(7)
    weight = RNG.normal(size=(7, 3, 4))
    leaves = [rn.tensor(a, requires_grad=True) for a in inputs]
    loss(leaves, weight, reverse=reverse, checkpoint_every=every).backward()
    for place, (leaf, array) in enumerate(zip(leaves, inputs, strict=True)):
        along = RNG.normal(size=array.shape)

        def at(step: float, place: int = place, along: Array = along) -> float:
            moved = [a + step * along if i == place else a for i, a in enumerate(inputs)]
            return float(loss([rn.asarray(a) for a in moved], weight, reverse=reverse).item())

        expected = (8 * (at(1e-4) - at(-1e-4)) - (at(2e-4) - at(-2e-4))) / 12e-4
        np.testing.assert_allclose(float((leaf.grad.numpy() * along).sum()), expected, rtol=1e-8, atol=1e-9)


def test_gradients_of_gradients() -> None:
    inputs = arrays(4)
    weight = RNG.normal(size=(4, 3, 4))
    along = [RNG.normal(size=a.shape) for a in inputs]

    def slope(args: Any) -> Any:
        gradients = rn.grad(lambda *xs: loss(xs, weight), argnums=range(5))(*args)
        return sum((g * rn.asarray(d)).sum() for g, d in zip(gradients, along, strict=True))

    second = rn.grad(lambda *xs: slope(xs), argnums=range(5))(*map(rn.asarray, inputs))
    actual = sum(float((g.numpy() * d).sum()) for g, d in zip(second, along, strict=True))

    def at(step: float) -> float:
        return float(slope([rn.asarray(a + step * d) for a, d in zip(inputs, along, strict=True)]).item())

    expected = (8 * (at(1e-4) - at(-1e-4)) - (at(2e-4) - at(-2e-4))) / 12e-4
    np.testing.assert_allclose(actual, expected, rtol=1e-7)


def backward_scan(graph: Graph) -> Value:
    return next(
        node for node in graph.nodes if node.op is scan_p and node.attrs["body"].graph.name.endswith("backward")
    )


def gradients_of_a_loop(h: Tensor, xs: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
    return rn.grad(lambda *args: loss(args, np.ones((6, 3, 4))), argnums=range(5))(h, xs, *weights)  # type: ignore[no-any-return]


def test_sums_of_gradients_leave_the_loop() -> None:
    graph = traced(gradients_of_a_loop, *map(rn.asarray, arrays(6)))
    loop = backward_scan(graph)
    assert loop.attrs["carries"] == 1, "the cotangent of h alone: no sum is carried"
    inside = [node.op.name for node in loop.attrs["body"].graph.nodes if node.op is not None]
    assert inside.count("matmul") == 1 and "sum" not in inside
    products = [node for node in graph.nodes if node.op is not None and node.op.name == "matmul"]
    assert sorted(node.inputs[0].aval.shape[1] for node in products) == [4, 5, 18, 18], "over steps and rows at once"


def test_values_kept_for_backward() -> None:
    """tanh(x) is kept, which gives its derivative; and that is a y already."""
    graph = traced(gradients_of_a_loop, *map(rn.asarray, arrays(6)))
    forward = next(node for node in graph.nodes if node.op is scan_p)
    assert [y.shape for y in forward.avals] == [(3, 4), (6, 3, 4), (6, 3, 4)]


def test_compiled_and_eager_are_equal_to_the_bit() -> None:
    inputs = arrays(9, 5, "float32")
    weight = RNG.normal(size=(9, 5, 4)).astype(np.float32)
    variables = [rn.Variable(a, requires_grad=True) for a in inputs]

    def step(scale: Tensor) -> tuple[Tensor, ...]:
        value = loss(variables, weight) * scale
        value.backward()
        gradients = tuple(v.grad for v in variables)
        for v in variables:
            v.grad = None
        return (value, *gradients)

    one = rn.asarray(np.float32(1))
    for eager, compiled in zip(step(one), rn.compile(step)(one), strict=True):
        np.testing.assert_array_equal(eager.numpy(), compiled.numpy())


def test_trees_dtypes_and_loops_over_nothing() -> None:
    def f(carry: dict[str, Any], x: None) -> tuple[dict[str, Any], tuple[Any, None]]:
        return {"n": carry["n"] + 1, "sum": carry["sum"] + carry["n"].astype("float32")}, (carry["n"], None)

    first = {"n": rn.asarray(np.int64(3)), "sum": rn.asarray(np.zeros(2, np.float32))}
    last, (ns, nothing) = rn.scan(f, first, length=4)
    assert last["n"].item() == 7 and last["sum"].tolist() == [18.0, 18.0]
    assert ns.tolist() == [3, 4, 5, 6] and nothing is None
    _, ones = rn.scan(lambda c, x: (c, rn.ones(2)), None, length=3)
    assert ones.tolist() == [[1.0, 1.0]] * 3
    total, _ = rn.scan(lambda c, x: (c + x, None), 0.0, rn.asarray([1.0, 2.0, 3.0]))
    assert total.item() == 6.0


def test_carries_that_swap_and_pass_through() -> None:
    def f(carry: Any, x: Any) -> Any:
        a, b, c = carry
        return (b, a, c), (a, x, c)

    xs = rn.asarray(np.arange(3.0))
    (a, b, c), (first, same, third) = rn.scan(f, (rn.asarray(1.0), rn.asarray(2.0), rn.asarray(5.0)), xs)
    assert (a.item(), b.item(), c.item()) == (2.0, 1.0, 5.0)
    assert first.tolist() == [1.0, 2.0, 1.0] and same.tolist() == [0.0, 1.0, 2.0] and third.tolist() == [5.0] * 3


def test_nested_scans_and_their_gradients() -> None:
    def row(c: Any, x: Any) -> Any:
        return rn.scan(lambda d, y: (rn.sin(d * y) + y, d), c, x)

    xs = RNG.normal(size=(3, 4, 2))
    x = rn.tensor(xs, requires_grad=True)
    start = rn.asarray(np.ones(2))
    last, ys = rn.scan(row, start, x)
    value, expected_result = np.ones(2), np.zeros((3, 4, 2))
    for i in range(3):
        for j in range(4):
            expected_result[i, j] = value
            value = np.sin(value * xs[i, j]) + xs[i, j]
    np.testing.assert_allclose(last.numpy(), value, rtol=1e-12)
    np.testing.assert_allclose(ys.numpy(), expected_result, rtol=1e-12)
    (last.sum() + (ys * ys).sum()).backward()

    def at(z: Array) -> float:
        last, ys = rn.scan(row, start, rn.asarray(z))
        return float((last.sum() + (ys * ys).sum()).item())

    along = RNG.normal(size=xs.shape)
    expected = (at(xs + 1e-6 * along) - at(xs - 1e-6 * along)) / 2e-6
    np.testing.assert_allclose((x.grad.numpy() * along).sum(), expected, rtol=1e-7)


def test_variables_that_are_assigned_are_carried() -> None:
    def run() -> list[float]:
        count = rn.Variable(np.float32(1))

        def f(c: Any, x: Any) -> Any:
            count.assign(count * 2.0)
            return c + x * count, None

        def whole(xs: Tensor) -> Tensor:
            return rn.scan(f, 0.0, xs)[0]

        xs = rn.asarray(np.ones(3, np.float32))
        return [whole(xs).item(), count.item(), rn.compile(whole)(xs).item(), count.item()]

    assert run() == [14.0, 8.0, 112.0, 64.0]


def test_dropout_draws_again_at_each_step_and_the_same_in_backward() -> None:
    x = rn.tensor(np.ones(64), requires_grad=True)

    def f(c: Any, _: None) -> Any:
        return c, rn.dropout(x, 0.5)

    rn.manual_seed(3)
    _, saved = rn.scan(f, None, length=5)
    rn.manual_seed(3)
    alone = [rn.dropout(x, 0.5).tolist() for _ in range(5)]
    assert saved.tolist() == alone and len({tuple(row) for row in alone}) == 5
    saved.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), saved.numpy().sum(0))


def test_detach_and_stop_gradient_hold_inside() -> None:
    x = rn.tensor(2.0, "float64", requires_grad=True)
    last, _ = rn.scan(
        lambda c, _: (c * x.detach() + x * rn.stop_gradient(c), None), rn.asarray(np.float64(1)), length=2
    )
    last.backward()
    assert last.item() == 16.0
    assert x.grad.item() == 2.0 + 4.0, "c₂ = 2·c₁ + x·[c₁], where c₁ = 2 + x"


def test_grad_inside_a_scan() -> None:
    def f(c: Any, x: Any) -> Any:
        return c - 0.1 * rn.grad(lambda c: ((c - x) ** 2).sum())(c), None

    xs = rn.tensor(np.ones((4, 2)), requires_grad=True)
    last, _ = rn.scan(f, rn.asarray(np.zeros(2)), xs)
    np.testing.assert_allclose(last.numpy(), 1 - 0.8**4)
    last.sum().backward()
    np.testing.assert_allclose(xs.grad.numpy(), np.repeat(0.2 * 0.8 ** np.arange(3, -1, -1.0)[:, None], 2, 1))


def test_a_graph_without_gradients_keeps_nothing() -> None:
    h, xs, *weights = map(rn.asarray, arrays(5))
    weights[0].requires_grad_()
    last, ys = rn.scan(cell(weights), h, xs)
    assert last.requires_grad and ys.requires_grad
    assert not rn.scan(cell([w.detach() for w in weights]), h, xs)[0].requires_grad


def test_parts_without_a_cotangent_and_integer_carries() -> None:
    x = rn.tensor(np.ones(3, np.float32), requires_grad=True)
    (n, last), ys = rn.scan(lambda c, x: ((c[0] + 1, c[1] * x), c[1]), (rn.asarray(np.int64(0)), rn.asarray(2.0)), x)
    assert n.item() == 3 and not n.requires_grad
    ys[1].backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 0.0, 0.0])
    with pytest.raises(GradientError, match="freed"):
        last.backward()


@pytest.mark.parametrize(
    ("function", "error", "says"),
    [
        (lambda c, x: (c[:1], x), ShapeError, r"leaf \['h'\]|leaf itself"),
        (lambda c, x: (c.astype("float64"), x), DTypeError, "float32.* became .*float64"),
        (lambda c, x: ((c, c), x), ShapeError, "structure"),
        (lambda c, x: c, ShapeError, "must return"),
    ],
)
def test_bodies_that_do_not_fit(function: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        rn.scan(function, rn.ones(2), rn.ones((3, 2)))


def test_calls_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match="must have one number of steps"):
        rn.scan(lambda c, x: (c, x), 0.0, (rn.ones(3), rn.ones(4)))
    with pytest.raises(ShapeError, match="must have one number of steps"):
        rn.scan(lambda c, x: (c, x), 0.0)
    with pytest.raises(ShapeError, match="at least 1"):
        rn.scan(lambda c, x: (c, x), 0.0, rn.ones(3), checkpoint_every=0)
    with pytest.raises(ShapeError, match=r"leaf \['a'\]\[0\]"):
        rn.scan(lambda c, x: ({"a": [c["a"][0][:1]]}, x), {"a": [rn.ones(2)]}, rn.ones(3))
    parameter = rn.Parameter(np.ones(2, np.float32))

    def f(c: Any, x: Any) -> Any:
        (parameter * x).sum().backward()
        return c, None

    with pytest.raises(SideEffectError, match=r"\.grad"):
        rn.scan(f, 0.0, rn.ones((3, 2)))


def test_unused_results_are_not_made() -> None:
    def whole(x: Tensor) -> Tensor:
        (a, _), (_, ys) = rn.scan(lambda c, x: ((c[0] + x, c[1] * x), (rn.exp(x), c[0])), (0.0, 1.0), x)
        return a + ys.sum()

    compiled = rn.compile(whole)
    x = rn.asarray(np.arange(4, dtype=np.float32))
    assert compiled(x).item() == whole(x).item() == 10.0
    loop = next(n for n in compiled.program(x).optimized.nodes if n.op is scan_p)
    assert loop.attrs["carries"] == 1 and len(loop.avals) == 2


def test_eager_loops_of_equal_bodies_share_a_program() -> None:
    def run(scale: float) -> float:
        return float(rn.scan(lambda c, x: (c * scale + x, None), 0.0, rn.ones(3))[0].item())

    assert run(2.0) == 7.0 and run(3.0) == 13.0 and run(2.0) == 7.0


def test_functions_with_a_custom_derivative_are_refused_where_it_would_be_lost() -> None:
    @rn.custom_vjp
    def straight(x: Any) -> Any:
        return rn.round(x)

    straight.defvjp(lambda x: (rn.round(x), None), lambda saved, g: (g,))
    x = rn.asarray(np.array([1.4, 2.6], np.float32))
    total, _ = rn.scan(lambda c, x: (c + straight(x), None), 0.0, x)
    assert total.item() == 4.0
    x.requires_grad_()
    with pytest.raises(GradientError, match="'straight' has a custom derivative"):
        rn.scan(lambda c, x: (c + straight(x), None), 0.0, x)
