"""Gradients, tangents and batches of expressions: right by differences, expressions again, with PyTorch's shares."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as rn

CASES = [
    ("C[i, j] += A[i, k] * B[k, j]", {}, ((4, 5), (5, 6))),
    ("O[n, k, y, x] += I[n, c, s*y + i, s*x + 3*j] * W[k, c, i, j]", {"s": 2}, ((1, 2, 7, 12), (3, 2, 3, 3))),
    (
        "O[y: Y] += I[y + i - 1: Y] * W[i] where 0 <= y + i - 1 < Y",
        {},
        ((7,), (3,)),
    ),
    ("O[i] max= I[2*i + j] where j < 2", {}, ((7,),)),
    ("O[i] min= exp(A[i, j]) - B[j]", {}, ((5, 4), (4,))),
    ("O[2*i: N] += I[2*i: N, j]", {}, ((6, 4),)),
    ("O[i: N] += I[k: N] where i - k < N", {}, ((6,),)),
    ("O[i] *= A[i, j] * B[j]", {}, ((4, 3), (3,))),
    ("O[i, j] = tanh(A[j, i]) / sqrt(square(B[i]) + 1)", {}, ((6, 5), (5,))),
    ("O[] += maximum(A[i], relu(B[i])) * sigmoid(A[i]) * where(A[i] > B[i], sin(A[i]), cos(B[i]))", {}, ((9,), (9,))),
    ("O[i] += abs(A[i, j]) * A[j, i] - minimum(A[i, j], 0) * log(square(A[0, j]) + 1)", {}, ((4, 4),)),
]


@pytest.mark.parametrize(("text", "sizes", "shapes"), CASES)
def test_derivatives_by_differences(text: str, sizes: dict[str, int], shapes: tuple[tuple[int, ...], ...]) -> None:
    rng = np.random.default_rng(11)
    function = rn.expressions.tensor_expr(text, **sizes)
    points = [rng.standard_normal(shape) for shape in shapes]
    weight = rn.asarray(rng.standard_normal(function(*map(rn.asarray, points)).shape))

    def loss(*xs: rn.Tensor) -> rn.Tensor:
        return (function(*xs) * weight).sum()

    gradient = rn.grad(loss, argnums=tuple(range(len(shapes))))
    xs = [rn.asarray(p) for p in points]
    eager = gradient(*xs)
    directions = [rng.standard_normal(shape) for shape in shapes]
    step = 1e-6
    ahead, behind = (
        loss(*(rn.asarray(p + s * d) for p, d in zip(points, directions, strict=True))).item() for s in (step, -step)
    )
    slope = sum(float((g.numpy() * d).sum()) for g, d in zip(eager, directions, strict=True))
    assert slope == pytest.approx((ahead - behind) / (2 * step), rel=1e-6, abs=1e-7)
    _, tangent = rn.jvp(loss, tuple(xs), tuple(map(rn.asarray, directions)))
    assert tangent.item() == pytest.approx(slope, rel=1e-9)
    for e, c in zip(eager, rn.compile(gradient)(*xs), strict=True):
        assert e.numpy().tobytes() == c.numpy().tobytes()


def test_gradients_of_gradients() -> None:
    rng = np.random.default_rng(12)
    x, d = (rn.asarray(rng.standard_normal((3, 4))) for _ in range(2))
    function = rn.expressions.tensor_expr("O[i] *= 1 + square(A[i, j])")

    def slope(x: rn.Tensor) -> rn.Tensor:
        return (rn.grad(lambda y: (function(y) ** 2).sum())(x) * d).sum()

    second, step = rn.grad(slope)(x), 1e-6
    numeric = (slope(x + step * d).item() - slope(x - step * d).item()) / (2 * step)
    assert (second * d).sum().item() == pytest.approx(numeric, rel=1e-6)


def test_equal_extremes_share() -> None:
    x = rn.asarray([[2.0, 2.0, 1.0], [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]])
    for sign, function in (("max", rn.max), ("min", rn.min)):
        actual = rn.grad(lambda y, sign=sign: rn.expressions.tensor_expr(f"O[i] {sign}= A[i, j]")(y).sum())(x)
        expected = rn.grad(lambda y, function=function: function(y, 1).sum())(x)
        assert actual.tolist() == expected.tolist()
    half = x.astype(rn.float16)
    actual = rn.grad(lambda y: rn.expressions.tensor_expr("O[i] max= A[i, j] / 3")(y).astype(rn.float32).sum())(half)
    assert np.count_nonzero(actual.numpy()) == 6


def test_products_at_zeros() -> None:
    x = rn.asarray([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.0, 2.0, 3.0]])
    gradient = rn.grad(lambda y: rn.expressions.tensor_expr("O[i] *= A[i, j]")(y).sum())(x)
    assert gradient.tolist() == [[6, 0, 0], [0, 0, 0], [6, 3, 2]]


@pytest.mark.parametrize("in_axes", [(0, 0), (0, None), (None, 1)])
def test_batches_are_one_expression(in_axes: tuple[int | None, int | None]) -> None:
    rng = np.random.default_rng(13)
    product = rn.expressions.tensor_expr("C[i, j] += A[i, k] * B[k, j]")
    shapes = [list(s) for s in ((4, 5), (5, 17))]
    for shape, axis in zip(shapes, in_axes, strict=True):
        if axis is not None:
            shape.insert(axis, 3)
    a, b = (rn.asarray(rng.standard_normal(s).astype(np.float32)) for s in shapes)
    batched = rn.compile(rn.vmap(product.__call__, in_axes=in_axes))
    actual = batched(a, b)
    assert len(batched.program(a, b).kernels) == 1
    for i in range(3):
        pairs = zip((a, b), in_axes, strict=True)
        parts = [x if axis is None else rn.asarray(x.numpy().take(i, axis)) for x, axis in pairs]
        assert actual[i].numpy().tobytes() == product(*parts).numpy().tobytes()


def conv(x: rn.Tensor, w: rn.Tensor, padding: int = 0) -> rn.Tensor:
    """A convolution as reindexed operands, as Jittor has it."""
    n, c, height, width = x.shape
    k, _, rows, columns = w.shape
    shape = (n, k, c, height + 2 * padding - rows + 1, width + 2 * padding - columns + 1, rows, columns)
    windows = rn.expressions.reindex(x, shape, ["i0", "i2", f"i3 + i5 - {padding}", f"i4 + i6 - {padding}"])
    return (windows * rn.expressions.reindex(w, shape, ["i1", "i2", "i5", "i6"])).sum((2, 5, 6))


def test_a_convolution_by_reindexing_is_one_kernel() -> None:
    rng = np.random.default_rng(14)
    x, w = (rn.asarray(rng.standard_normal(s).astype(np.float32)) for s in ((2, 3, 8, 9), (4, 3, 3, 3)))
    compiled = rn.compile(conv)
    assert compiled(x, w).numpy().tobytes() == conv(x, w).numpy().tobytes()
    program = compiled.program(x, w)
    assert len(program.kernels) == 1 and program.memory.as_json()["peak"] == 0
    expected = rn.nn.functional.conv2d(x, w, padding=1)
    np.testing.assert_allclose(conv(x, w, 1).numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("axis", "kernels"), [(2, 1), (1, 2)])
def test_a_product_by_reindexing_is_one_kernel_where_it_sums_adjacent_elements(axis: int, kernels: int) -> None:
    """A sum along an axis in the middle reads what another kernel has stored."""
    rng = np.random.default_rng(16)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((7, 11), (11, 5)))
    places = [f"i{3 - axis}", f"i{axis}"]
    shape = (7, 5, 11) if axis == 2 else (7, 11, 5)

    def product(a: rn.Tensor, b: rn.Tensor) -> rn.Tensor:
        rows, columns = (
            rn.expressions.reindex(a, shape, ["i0", f"i{axis}"]),
            rn.expressions.reindex(b, shape, places[::-1]),
        )
        return (rows * columns).sum(axis)

    compiled = rn.compile(product)
    x, y = rn.asarray(a), rn.asarray(b)
    np.testing.assert_allclose(compiled(x, y).numpy(), a @ b, rtol=1e-5, atol=1e-5)
    program = compiled.program(x, y)
    assert len(program.kernels) == kernels
    assert program.memory.peak <= (kernels - 1) * (4 * 7 * 11 * 5 + 64)


def test_reindexing_and_its_reduction_are_each_others_gradients() -> None:
    rng = np.random.default_rng(15)
    x = rn.asarray(rng.standard_normal((5, 6)).astype(np.float32))
    indices, shape = ["2*i0 + i1 - 1", "i2"], (3, 2, 6)
    y = rn.expressions.reindex(x, shape, indices)
    expected = np.zeros(shape, np.float32)
    for i, j in np.ndindex(3, 2):
        if 0 <= 2 * i + j - 1 < 5:
            expected[i, j] = x.numpy()[2 * i + j - 1]
    assert y.numpy().tobytes() == expected.tobytes()
    seed = rn.asarray(rng.standard_normal(shape).astype(np.float32))
    back = rn.grad(lambda x: (rn.expressions.reindex(x, shape, indices) * seed).sum())
    assert back(x).numpy().tobytes() == rn.expressions.reindex_reduce(seed, "sum", x.shape, indices).numpy().tobytes()
    assert texts(back, x) == texts(lambda s: rn.expressions.reindex_reduce(s, "sum", x.shape, indices), seed)
    forth = rn.grad(lambda s: (rn.expressions.reindex_reduce(s, "sum", x.shape, indices) * x).sum())
    assert forth(seed).numpy().tobytes() == y.numpy().tobytes()
    assert rn.expressions.reindex_reduce(seed, "max", x.shape, indices).shape == x.shape


def texts(function: object, x: rn.Tensor) -> list[str]:
    """The right sides of the expressions in a program."""
    compiled = rn.compile(function)  # type: ignore[call-overload]
    compiled(x)
    nodes = [
        v for v in dict(compiled.program(x).passes)["simplify"].values if v.op and v.op.name.startswith("tensor_e")
    ]
    return [v.attrs["text"].partition("[")[2].replace("g[", "y[").replace("x[", "y[") for v in nodes]


def test_reindexing_refuses() -> None:
    x = rn.ones((3, 4))
    with pytest.raises(rn.core.errors.ArgumentError, match="pass a string for each axis"):
        rn.expressions.reindex(x, (3,), ["i0"])
    with pytest.raises(rn.core.errors.ExpressionError, match="affine"):
        rn.expressions.reindex(x, (3,), ["i0*i0", "i0"])
    with pytest.raises(rn.core.errors.ArgumentError, match="operations are sum"):
        rn.expressions.reindex_reduce(x, "mean", (3,), ["i0"])
