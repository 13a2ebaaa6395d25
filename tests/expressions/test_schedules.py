"""The primitives of schedules: the nest they make, the bits they keep, and what they refuse."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import ExpressionError

PRODUCT = "C[i, j] += A[i, k] * B[k, j]"


def scheduled_by_hand(product: object, *shapes: object) -> object:
    """Register tiles of 4 × 32, with a block of the second operand in the cache."""
    schedule = product.schedule(*shapes)  # type: ignore[attr-defined]
    columns, rest = schedule.split("j", 32)
    beside, lanes = schedule.split(rest, 16)
    rows, within = schedule.split("i", 4)
    chunk, rows = schedule.split(rows, 2)
    schedule.reorder(chunk, columns, rows, "k", within, beside, lanes)
    schedule.unroll(within)
    schedule.unroll(beside)
    schedule.vectorize(lanes)
    schedule.parallel(chunk)
    schedule.cache("B")
    schedule.compute_at("B", columns)
    return schedule


@pytest.mark.parametrize("sizes", [(16, 8, 64), (17, 9, 75), (3, 5, 7), (1, 1, 1), (9, 1100, 40)])
def test_a_tiled_product_has_the_same_bits(sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    rng = np.random.default_rng(21)
    a, b = (rn.asarray(rng.standard_normal(s).astype(np.float32)) for s in ((m, k), (k, n)))
    product = rn.expressions.tensor_expr(PRODUCT)
    if k > 1024:
        schedule = product.schedule(a, b)
        schedule.reorder("j", "i")
        schedule.split("k", 8)
        schedule.vectorize("j")
    else:
        schedule = scheduled_by_hand(product, a, b)
    fast, plain = product.scheduled(schedule), product.scheduled(())
    assert fast(a, b).numpy().tobytes() == plain(a, b).numpy().tobytes() == product(a, b).numpy().tobytes()
    compiled = rn.compile(lambda a, b: fast(a, b))
    assert compiled(a, b).numpy().tobytes() == plain(a, b).numpy().tobytes()


def test_the_nest_is_printed() -> None:
    product = rn.expressions.tensor_expr(PRODUCT)
    schedule = product.schedule((4, 3), (3, 32))
    assert product.scheduled(schedule).nest((4, 3), (3, 32)) == textwrap.dedent("""\
        kernel tensor_expression(in A: float32, in B: float32, out C: float32):
            for i in 0..4:
                for j in 0..32:
                    r.0 = chain sum float32
                    for k in 0..3:
                        r.0 <- mul(A[i*3 + k], B[j + k*32])
                    C[i*32 + j] = r.0
        """)
    schedule.split("i", 2)
    schedule.reorder("i_0", "j", "k", "i_1")
    schedule.unroll("i_1")
    schedule.vectorize("j")
    assert str(schedule).splitlines() == [
        "for i_0 in 0..2:",
        "  for j in 0..32: vec",
        "    for k in 0..3: reduced",
        "      for i_1 in 0..2: unroll",
    ]
    assert product.scheduled(schedule).nest((4, 3), (3, 32)) == textwrap.dedent("""\
        kernel tensor_expression(in A: float32, in B: float32, out C: float32):
            for i_0 in 0..2:
                for j in 0..32 vec:
                    r.0 = chain sum float32
                    r.1 = chain sum float32
                    for k in 0..3:
                        r.0 <- mul(A[i_0*6 + k], B[j + k*32])
                        r.1 <- mul(A[i_0*6 + k + 3], B[j + k*32])
                    C[i_0*64 + j] = r.0
                    C[i_0*64 + j + 32] = r.1
        """)


def test_steps_are_data() -> None:
    product = rn.expressions.tensor_expr(PRODUCT)
    schedule = scheduled_by_hand(product, (16, 8), (8, 64))
    again = product.schedule((16, 8), (8, 64))
    for step in schedule.steps:  # type: ignore[attr-defined]
        again.apply(step)
    assert str(again) == str(schedule) and again.steps == schedule.steps  # type: ignore[attr-defined]
    assert product.scheduled(again.steps)(rn.ones((16, 8)), rn.ones((8, 64))).tolist() == [[8.0] * 64] * 16


REFUSED = [
    (lambda s: s.split("q", 2), "no loop is called 'q'"),
    (lambda s: s.split("i", 0), "split by 0"),
    (lambda s: s.split("i", -3), "split by -3"),
    (lambda s: s.split("i", 2.0), "split by 2.0"),
    (lambda s: s.split("i", 2, ("a", "a")), "both called 'a'"),
    (lambda s: s.split("i", 2, ("j", "a")), "cannot be called 'j'"),
    (lambda s: s.split("i", 2, ("a b", "a")), "cannot be called 'a b'"),
    (lambda s: s.split("i", 2, ("A", "a")), "cannot be called 'A'"),
    (lambda s: s.tile("i", "i", 2, 2), "tiled with itself"),
    (lambda s: s.reorder("i", "i"), "named twice"),
    (lambda s: s.reorder("i", "z"), "no loop is called 'z'"),
    (lambda s: s.fuse("i", "k"), "not the loop inside 'i'"),
    (lambda s: s.fuse("j", "k"), "one of them is reduced"),
    (lambda s: s.vectorize("k"), "is reduced, and lanes would change the order"),
    (lambda s: (s.vectorize("i"), s.vectorize("j")), "another loop is already vectorized"),
    (lambda s: s.unroll("j"), "65 copies"),
    (lambda s: s.parallel("k"), "threads would change the order"),
    (lambda s: s.parallel("j"), "not the outermost"),
    (lambda s: (s.parallel("i"), s.reorder("j", "i")), "a parallel loop is the outermost"),
    (lambda s: (s.split("k", 2), s.reorder("k_1", "k_0")), "stay in the order k_0, k_1"),
    (lambda s: s.cache("D"), "no operand is called 'D'"),
    (lambda s: s.compute_at("B", "i"), "'B' has no cache"),
    (lambda s: (s.cache("B"), s.compute_at("B", "k")), "'k' is reduced"),
    (lambda s: s.apply(("skew", "i")), "no primitive is called 'skew'"),
    (lambda s: s.apply(("split", "i")), "other arguments than 'split' takes"),
    (lambda s: s.apply(()), "a step must be the name of a primitive and its arguments"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_refusals_change_nothing(change: object, message: str) -> None:
    schedule = rn.expressions.tensor_expr(PRODUCT).schedule((5, 6), (6, 65))
    with pytest.raises(ExpressionError, match=r"^\[schedule\] .*loops: ") as caught:
        change(schedule)  # type: ignore[operator]
    assert message in str(caught.value)
    steps = len(schedule.steps)
    assert steps <= 1 and len(schedule.loops) == 3 + (steps and schedule.steps[0][0] == "split")


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ((("reorder", "k", "i"),), "'j' is inside the reduced loop 'k'"),
        ((("vectorise", "i"), ("cache", "B"), ("compute_at", "B", "i")), "reduced and vectorized"),
        ((("unroll", "i"), ("cache", "B"), ("compute_at", "B", "i")), "in an unrolled loop"),
        ((("split", "k", 4, "a", "b"), ("split", "x", 4)), "no loop is called 'x'"),
    ],
)
def test_a_schedule_that_makes_no_nest_is_refused(steps: tuple[tuple[str, ...], ...], message: str) -> None:
    product = rn.expressions.tensor_expr(PRODUCT)
    a, b = rn.ones((5, 6)), rn.ones((6, 7))
    with pytest.raises(ExpressionError, match=r"^\[schedule\] ") as caught:
        product.scheduled(steps)(a, b)
    assert message in str(caught.value)


def test_an_operand_that_is_read_twice_has_no_cache() -> None:
    square = rn.expressions.tensor_expr("O[i] += A[i, j] * A[j, i]")
    schedule = square.schedule((4, 4))
    schedule.cache("A")
    with pytest.raises(ExpressionError, match="read at 2 points"):
        square.scheduled(schedule).nest((4, 4))


def test_reduced_loops_of_an_extreme_are_reordered() -> None:
    x = rn.asarray(np.random.default_rng(22).standard_normal((5, 6, 7)).astype(np.float32))
    greatest = rn.expressions.tensor_expr("O[i] max= A[i, j, k]")
    schedule = greatest.schedule(x)
    schedule.reorder("k", "j")
    assert greatest.scheduled(schedule)(x).tolist() == rn.max(x, (1, 2)).tolist()
