"""The language: what expressions mean, and one error with a place in the text for what means nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import ArgumentError, DTypeError, ExpressionError
from runnel.expressions.resolving import resolved

SHAPES = {"A": (4, 5), "B": (5, 6), "v": (7,)}


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 1, "begins with its result"),
        ("O += A[i, j]", 3, "'[' expected"),
        ("O[i] A[i, j]", 6, "expected after the result"),
        ("O[i] += A[i, j", 15, "',' expected"),
        ("O[i] += A[i, j] * ", 18, "expected; got 'the end'"),
        ("O[i] += A[i, j] § 2", 17, "not part of an expression"),
        ("O[i] += A[i, j] j < 2", 17, "constraints begin with 'where'"),
        ("O[i] += A[i, j] where j", 24, "a constraint compares"),
        ("O[i] += norm(A[i, j])", 9, "no function is called 'norm'"),
        ("O[i] += exp(A[i, j], 1)", 9, "takes 1 argument"),
        ("O[i] += A[i*j, j]", 12, "affine"),
        ("O[i] += A[i/2, j]", 12, "affine"),
        ("O[i] += A[B[i, j], j]", 11, "affine"),
        ("O[i] += A[1.5*i, j]", 11, "integers"),
        ("O[i] += A[A, j]", 11, "is an array"),
        ("O[i] += A[i]", 9, "has 1 subscripts here, and the shape (4, 5)"),
        ("O[i] += A", 9, "write its subscripts"),
        ("O[i] += A[i, k] * B[j, k]", 24, "'k' is below 6 by axis 1 of 'B' and below 5 by axis 1 of 'A'"),
        ("O[i: 3] += A[i, j]", 3, "'i' is below 3 by axis 0 of 'O' and below 4"),
        ("O[i] += A[i, j: 9]", 17, "axis 1 of 'A' has 5 elements, not 9"),
        ("O[i] += A[i: N, j: N]", 20, "has 5 elements, not 4"),
        ("O[i: M] += A[i, j]", 6, "no size is called 'M'"),
        ("O[i] += A[i, j + 1] where j < 5", 14, "'j + 1' runs from 1 to 5"),
        ("O[i] += v[i - 1] where i < 8", 11, "'i - 1' runs from -1 to 6"),
        ("O[i + 1: 4] += A[i, j]", 3, "'i + 1' runs from 1 to 4"),
        ("O[i] += A[i, j] where q < 2", 25, "no subscript has the index 'q'"),
        ("O[i, q] += A[i, j]", 6, "the range of 'q' is not known"),
        ("O[y] += v[y + i]", 11, "the range of 'i' is not known"),
        ("O[2*i] += A[i, j]", 3, "the size of axis 0 of the result is not known"),
        ("O[i] = A[i, j]", 13, "many 'j' meet one"),
        ("A[i] += A[i, j]", 1, "is an operand, too"),
        ("O[O] = v[O]", 10, "is the result"),
        ("O[i] += where(A[i, j], 1, 0)", 15, "is a comparison"),
        ("O[i] += A[i, j] * (A[i, j] < 0)", 28, "is the condition of a 'where'"),
        ("O[i: 4 // 0] += A[i, j]", 8, "divided by 0"),
        ("O[] += A[i, j] where 1 < 0", 24, ""),
        ("O[i] += v[99999999999999*i]", 25, "2**40"),
        ("O[i: 0 - 1] += v[i]", 8, "an axis has -1 elements"),
    ],
)
def test_an_error_shows_its_place(text: str, column: int, message: str) -> None:
    expression_error = None
    try:
        function = rn.expressions.tensor_expr(text)
        function(*(rn.zeros(SHAPES[name]) for name in function.names))
    except ExpressionError as error:
        expression_error = str(error)
    if not message:  # a sum without terms is no error
        assert expression_error is None
        return
    assert expression_error is not None
    assert message in expression_error
    assert f"column {column}:" in expression_error
    assert expression_error.splitlines()[-1] == "  " + " " * (column - 1) + "^"


def test_operands_are_checked() -> None:
    product = rn.expressions.tensor_expr("C[i, j] += A[i, k] * B[k, j]")
    a, b = rn.ones((2, 3)), rn.ones((3, 4))
    assert product(a, B=b).shape == product(A=a, B=b).shape == (2, 4)
    for args, named in (((a,), {}), ((a, b, b), {}), ((a, b), {"B": b}), ((a,), {"D": b})):
        with pytest.raises(ArgumentError, match="takes the operands A, B"):
            product(*args, **named)
    with pytest.raises(ArgumentError, match="pass a string"):
        rn.expressions.tensor_expr(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="pass an integer"):
        rn.expressions.tensor_expr("O[i] = A[i]", N=2.5)  # type: ignore[arg-type]
    with pytest.raises(ExpressionError, match="without arrays"):
        rn.expressions.tensor_expr("O[i: 3] = 1")
    with pytest.raises(ExpressionError, match="levels of parentheses"):
        rn.expressions.tensor_expr("O[i] = " + "(" * 5000 + "A[i]" + ")" * 5000)


def test_rows_of_operators_have_a_limit_which_is_reported() -> None:
    """They mean the same with and without parentheses, and both are as deep."""
    x = rn.ones(4)
    assert rn.expressions.tensor_expr("O[i] = " + " + ".join(["A[i]"] * 49))(x).numpy().tolist() == [49.0] * 4
    for text in (
        "O[i] = " + " + ".join(["A[i]"] * 50),
        "O[i] = " + " - ".join(["A[i]"] * 3000),
        "O[i] = (" + " + ".join(["A[i]"] * 30) + ")" + " * A[i]" * 30,
        "O[i] = A[" + " + ".join(["i"] * 3000) + "]",
        "O[i] = A[i] where i < " + " + ".join(["1"] * 3000),
    ):
        with pytest.raises(ExpressionError, match="more than 48 operators surround this") as caught:
            rn.expressions.tensor_expr(text)(x)
        assert text in str(caught.value)  # as it was written


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("O[n, k, y, x] += I[n, c, 2*y + i, x + 3*j] * W[k, c, i, j]", ((2, 3, 9, 12), (4, 3, 3, 3))),
        ("O[i: 9] max= exp(-A[i, j]) + 2.5e-3 * (A[j, 0] - 1) where i < 4, 0 <= i - j <= 2", ((4, 4),)),
        ("O[3*i - j + 4: 20] *= where(A[i, j] >= 0, A[i, j] / 7, square(A[i, j]))", ((4, 5),)),
        ("O[i] += A[N - 1 - i: N] + s", ((4,), ())),
    ],
)
def test_the_canonical_text_means_the_same(text: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    expression = resolved(text, shapes)
    assert resolved(expression.text, shapes) == expression


DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sign", ["+=", "*=", "max=", "min=", "="])
def test_dtypes_equal_the_ones_of_reductions(dtype: str, sign: str) -> None:
    rng = np.random.default_rng(5)
    x = rn.asarray(rng.integers(0, 2, (3, 4)).astype(np.float32)).astype(getattr(rn, dtype))
    text = "O[i, j] = A[i, j]" if sign == "=" else f"O[i] {sign} A[i, j]"
    actual = rn.expressions.tensor_expr(text)(x)
    wide = x.astype(rn.float32) if dtype == "bool" and sign in ("max=", "min=") else x
    function: Any = {"+=": rn.sum, "*=": rn.prod, "max=": rn.max, "min=": rn.min}.get(sign)
    expected = x if function is None else function(wide, 1).astype(actual.dtype)
    if sign in ("+=", "*="):
        assert actual.dtype is function(x, 1).dtype
    else:
        assert actual.dtype is x.dtype
    assert actual.numpy().tolist() == expected.numpy().tolist()


def test_integers_are_divided_as_floats() -> None:
    x = rn.asarray([1, 2, 4])
    assert rn.expressions.tensor_expr("O[i] = A[i] / 8")(x).tolist() == [0.125, 0.25, 0.5]
    assert rn.expressions.tensor_expr("O[i] += A[i] * 0.5")(x).dtype is rn.float32
    with pytest.raises(DTypeError):
        rn.expressions.tensor_expr("O[] += A[i]")(rn.asarray([1j, 2.0]))


def test_operands_without_elements() -> None:
    empty = rn.zeros((0, 3))
    assert rn.expressions.tensor_expr("O[j] += A[i, j]")(empty).tolist() == [0, 0, 0]
    assert rn.expressions.tensor_expr("O[j] *= A[i, j]")(empty).tolist() == [1, 1, 1]
    assert rn.expressions.tensor_expr("O[j] max= A[i, j]")(empty).tolist() == [-np.inf] * 3
    assert rn.expressions.tensor_expr("O[i] += A[i, j]")(empty).shape == (0,)
    assert rn.expressions.tensor_expr("O[y] += I[y + i] * W[i]")(rn.ones(2), rn.ones(5)).shape == (0,)
    assert rn.expressions.tensor_expr("O[i: 4, j] = A[i, j] where i < 0")(rn.ones((2, 3))).tolist() == [[0, 0, 0]] * 4
