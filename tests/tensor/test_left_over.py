"""Tensors of a loop's body that somebody keeps until the body has been traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import TracedValueError


def of_a_loop(shape: tuple[int, ...]) -> rn.Tensor:
    kept: list[Any] = []

    def body(carry: Any, x: Any) -> Any:
        kept.append(carry)
        return carry + x, x

    rn.scan(body, rn.zeros(shape), rn.ones((3, *shape)))
    return kept[0]


def of_a_count(shape: tuple[int, ...]) -> rn.Tensor:
    kept: list[Any] = []

    def body(state: Any) -> Any:
        kept.append(state[1] * 3)
        return state[0] + 1, state[1]

    rn.while_loop(lambda state: state[0] < 3, body, (rn.asarray(0), rn.ones(shape)))
    return kept[0]


USES: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: x + 1,
    "twice": lambda x: x * x,
    "reduced": lambda x: x.sum(),
    "viewed": lambda x: x.reshape((-1,)),
    "transposed": lambda x: rn.permute(x, tuple(range(x.ndim))[::-1]) + 1,
    "cast": lambda x: x.astype(rn.float64),
    "detached": lambda x: x.detach() + 1,
    "among others": lambda x: rn.where(rn.ones(x.shape) > 0, x, 0.0),
    "stacked": lambda x: rn.stack([x, x]),
    "added in place": lambda x: rn.ones(x.shape).add_(x),
    "assigned": lambda x: rn.Variable(np.zeros(x.shape, np.float32)).assign(x),
    "multiplied": lambda x: x.reshape((-1, 1)) @ rn.ones((1, 2)),
    "on the host": lambda x: rn.linalg.inv(x.reshape((1, 1)) if x.size == 1 else x),
    "compared": lambda x: bool((x == 1).all()),
    "differentiated": lambda x: (x * rn.Parameter(rn.ones(x.shape))).sum().backward(),
    "read": lambda x: x.numpy(),
    "given to a compiled function": lambda x: rn.compile(lambda y: y * 2)(x),
    "read by a compiled function": lambda x: rn.compile(lambda: x * 2)(),
}


@pytest.mark.parametrize("shape", [(), (2, 2)])
@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("left", [of_a_loop, of_a_count])
@pytest.mark.parametrize("is_known", [False, True])
def test_a_tensor_that_was_left_over(left: Any, use: Any, shape: tuple[int, ...], is_known: bool) -> None:
    if is_known:  # the plans of its ops are there
        use(rn.ones(shape) if len(shape) == 0 else rn.eye(2))
    with pytest.raises(TracedValueError):
        use(left(shape))
