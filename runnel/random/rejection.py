"""Rejection: attempts that are repeated until one is accepted, for each element by itself.

Attempt number i of element j is a function of (key, i) and j alone, so an element's number does not depend on how many
attempts its neighbours need, on threads, or on whether the loop runs eagerly, compiled or under ``vmap``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel import ops
from runnel.core.dtypes import bool_, float64, int64
from runnel.tensor.tensor import Tensor
from runnel.transforms.while_loop import while_loop

Attempt = Callable[[Any], tuple[Any, Any]]


def first_accepted(key: Any, shape: tuple[int, ...], attempt: Attempt) -> Tensor:
    """float64 of ``shape``: for each element the value of the first attempt that accepts it.

    ``attempt(key)`` gives values and whether they are accepted. It must accept each element with a positive
    probability, whatever the parameters are: NaN, too.
    """

    def again(carry: Any) -> Any:
        number, value, is_accepted = carry
        proposed, accepts = attempt(ops.fold_in(key, number))
        value = ops.where(is_accepted, value, proposed)
        return number + 1, value, ops.logical_or(is_accepted, accepts)

    def goes_on(carry: Any) -> Any:
        return ops.logical_not(ops.all(carry[2]))

    start = (
        ops.full_like(key, 0, (), int64), ops.full_like(key, 0, shape, float64), ops.full_like(key, 0, shape, bool_)
    )  # fmt: skip
    accepted: Tensor = while_loop(goes_on, again, start)[1]
    return accepted


def counted(u: Any, first: Any, ratio: Callable[[Any], Any]) -> Tensor:
    """Inversion of a distribution of counts by search from 0: the smallest k with P(count ≤ k) > u, where
    P(0) = ``first`` and P(k) = P(k - 1) · ``ratio(k)``. The search ends where P(k) no longer changes the sum."""

    def is_sought(carry: Any) -> Any:
        _, term, total = carry
        return ops.logical_and(ops.greater_equal(u, total), ops.greater(total + term, total))

    def further(carry: Any) -> Any:
        k, term, total = carry
        sought = is_sought(carry)
        following = term * ratio(k + 1)
        return (
            ops.where(sought, k + 1, k),
            ops.where(sought, following, term),
            ops.where(sought, total + following, total),
        )

    start = (ops.zeros_like(u), first, first)
    count: Tensor = while_loop(lambda carry: ops.any(is_sought(carry)), further, start)[0]
    return count
