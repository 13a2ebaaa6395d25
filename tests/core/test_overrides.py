"""Values that handle whole calls of the library's functions themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.overrides import Override
from runnel.tensor.methods import ArrayMethods


class Named(ArrayMethods[Any]):
    """A symbol: calls with it are texts."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def aval(self) -> Any:
        raise Asked(f"[symbol] {self.name} has no value.")

    def apply_op(self, op: Any, inputs: Any, attrs: Any) -> Any:
        raise Asked(f"[symbol] {self.name} has no value.")

    def __float__(self) -> float:
        return float(self.aval)


class Asked(Override):
    def handle(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if function.__name__ == "exp":
            raise ValueError("[symbol] no exp")
        named = [getattr(x, "name", x) for x in (*args, *kwargs.values())]
        return f"{function.__name__}({', '.join(map(str, named))})"


X, T = Named("x"), rn.ones((2,))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: X + 1, "add(x, 1)"),
        (lambda: 1 - X, "subtract(1, x)"),
        (lambda: X @ X, "matmul(x, x)"),
        (lambda: X == 2, "equal(x, 2)"),
        (lambda: -X, "negative(x)"),
        (lambda: abs(X), "abs(x)"),
        (lambda: ~X, "bitwise_invert(x)"),
        (lambda: X[1], "getitem(x, 1)"),
        (lambda: rn.sum(X, axis=1), "sum(x, 1)"),
        (lambda: rn.sum(X, dim=1), "sum(x, 1)"),
        (lambda: X.sum(0), "sum(x, 0)"),
        (lambda: rn.nn.functional.softmax(X, -1), "softmax(x, -1)"),
    ],
)
def test_the_call_of_the_user_is_handled(call: Any, text: str) -> None:
    assert call() == text


def test_either_operand_handles_it() -> None:
    assert (T * X).startswith("multiply(") and (X * T).startswith("multiply(x")


def test_without_a_function_the_error_is_what_users_see() -> None:
    with pytest.raises(Asked, match=r"\[symbol\] x has no value"):
        float(X)


def test_errors_of_the_handler_have_no_context() -> None:
    with pytest.raises(ValueError, match="no exp") as caught:
        rn.exp(X)
    assert caught.value.__context__ is None


def test_ordinary_values_are_not_affected() -> None:
    assert np.array_equal((T + 1).numpy(), [2, 2])
