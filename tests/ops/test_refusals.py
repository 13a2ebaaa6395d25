"""Arguments that PyTorch refuses, and that would otherwise mean something that nobody asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import runnel as rn
import runnel.compat.torch as torch
from runnel import ops
from runnel.core.errors import AxisError, DTypeError, RunnelError, ShapeError
from runnel.nn import functional

X = rn.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception]]] = {
    "an axis twice": (lambda: torch.gradient(X, axis=(1, 1)), AxisError),
    "a negative tolerance": (lambda: rn.isclose(X, X, rtol=-0.4), ValueError),
    "counts that are no integers": (lambda: torch.cov(X, fweights=X[0]), DTypeError),
    "too many weights": (lambda: torch.cov(X, aweights=X), ShapeError),
    "a start behind the end": (lambda: ops.narrow(X, 0, 4, 0), ShapeError),
    "a start before the beginning": (lambda: ops.narrow(X, 0, -4, 1), ShapeError),
    "a number upside down": (lambda: torch.flipud(rn.asarray(1.0)), RunnelError),
    "three axes transposed": (lambda: torch.t(X[None]), ShapeError),
    "one row for two indices": (lambda: rn.index_add(X, 0, rn.asarray([0, 2]), X[0]), ShapeError),
    "bounds the wrong way around": (lambda: functional.hardtanh(X, 0.5, -0.5), ValueError),
    "no distance": (lambda: functional.huber_loss(X, X, delta=0), ValueError),
    "a matrix of slopes": (lambda: functional.prelu(X, X), ShapeError),
    "nothing to divide by": (lambda: functional.avg_pool1d(X[None], 2, divisor_override=0), ValueError),
    "steps away from the end": (lambda: torch.arange(0, -3, 2), ValueError),
    "an order of other axes": (lambda: torch.empty_permuted((2, 3), (0, 2)), ShapeError),
    "an unknown driver": (lambda: torch.linalg.lstsq(X, X, driver="best"), ValueError),
    "a wide matrix of reflections": (lambda: rn.linalg.householder_product(X.mT, X[0]), ShapeError),
    "frames beside a window in the middle": (
        lambda: torch.stft(X[:, 0], 2, return_complex=True, align_to_window=True), RunnelError,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    call, error = REFUSED[what]
    with pytest.raises(error):
        call()
