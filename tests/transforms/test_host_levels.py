"""jvp and vmap over ops of several results: sorting, factorizations, and calls of Python functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import GradientError

X = np.random.default_rng(0).normal(size=(3, 4, 4))
SYMMETRIC = X + np.swapaxes(X, 1, 2) + 8 * np.eye(4)

FUNCTIONS: dict[str, Callable[[rn.Tensor], rn.Tensor]] = {
    "sort": lambda x: rn.sort(x, 0, descending=True),
    "topk": lambda x: rn.topk(x, 2).values,
    "eigenvalues": lambda x: rn.linalg.eigh(x + x.mT)[0],
    "qr": lambda x: rn.linalg.qr(x)[1],
    "singular values": lambda x: rn.linalg.svd(x)[1],
    "solve": lambda x: rn.linalg.solve(x, rn.asarray(X[0])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_batches_and_tangents(name: str) -> None:
    f, x = FUNCTIONS[name], rn.asarray(SYMMETRIC)
    expected = np.stack([f(one).numpy() for one in x])
    np.testing.assert_array_equal(rn.vmap(f)(x).numpy(), expected)
    np.testing.assert_array_equal(rn.compile(rn.vmap(f))(x).numpy(), expected)
    along, h = rn.asarray(X[1]), 1e-5
    tangent = rn.jvp(f, (x[0],), (along,))[1].numpy()
    slope = (f(x[0] + along * h).numpy() - f(x[0] - along * h).numpy()) / (2 * h)
    np.testing.assert_allclose(tangent, slope, rtol=1e-6, atol=1e-7)
    gradient = rn.grad(lambda x: rn.square(f(x)).sum())
    np.testing.assert_array_equal(rn.vmap(gradient)(x).numpy(), np.stack([gradient(one).numpy() for one in x]))


def test_prints_and_callbacks_come_for_each_element(capsys: pytest.CaptureFixture[str]) -> None:
    def shout(x: rn.Tensor) -> rn.Tensor:
        rn.debug.print("{}", x.sum())
        return x

    x = rn.asarray(np.arange(3.0))
    for mapped in (rn.vmap(shout), rn.compile(rn.vmap(shout))):
        mapped(x)
        assert capsys.readouterr().out.split() == ["0.0", "1.0", "2.0"]
    rn.jvp(shout, (x,), (x,))
    assert capsys.readouterr().out.split() == ["3.0"]


def test_functions_of_the_host_have_no_tangent() -> None:
    def doubled(x: rn.Tensor) -> rn.Tensor:
        result: rn.Tensor = rn.pure_callback(lambda a: a * 2, x, x)
        return result

    x = rn.asarray(np.arange(3.0))
    np.testing.assert_array_equal(rn.vmap(doubled)(x).numpy(), 2 * np.arange(3.0))
    with pytest.raises(GradientError, match="no gradient"):
        rn.jvp(doubled, (x,), (x,))
