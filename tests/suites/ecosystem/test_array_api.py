"""array-api-compat and array-api-extra on tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from tests.random_numbers import RNG

compat = pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")
extra = pytest.importorskip("array_api_extra", reason="array-api-extra is not installed")

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "apply_where": lambda x, v: extra.apply_where(x > 0, x, lambda a: a * 2, lambda a: -a),
    "at set": lambda x, v: extra.at(x)[0, :].set(1.0),
    "at add": lambda x, v: extra.at(x, 0).add(1.0),
    "at mask": lambda x, v: extra.at(x)[x > 1].set(0.0),
    "atleast_nd": lambda x, v: extra.atleast_nd(v, ndim=3),
    "cov": lambda x, v: extra.cov(x),
    "create_diagonal": lambda x, v: extra.create_diagonal(v),
    "isclose": lambda x, v: extra.isclose(x, x + 1e-9),
    "kron": lambda x, v: extra.kron(x, x),
    "lazy_apply": lambda x, v: extra.lazy_apply(np.sin, x),
    "nunique": lambda x, v: extra.nunique(x),
    "pad": lambda x, v: extra.pad(x, ((1, 0), (0, 2)), constant_values=3.0),
    "partition": lambda x, v: extra.partition(v, 2)[2],
    "setdiff1d": lambda x, v: extra.setdiff1d(v, v[:2]),
    "sinc": lambda x, v: extra.sinc(x),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of functions that the standard has by now
@pytest.mark.parametrize("name", CALLS)
def test_array_api_extra(name: str) -> None:
    x = RNG.normal(size=(3, 4)).astype(np.float32)
    expected, result = CALLS[name](x.copy(), x[0].copy()), CALLS[name](rn.asarray(x), rn.asarray(x[0]))
    assert isinstance(result, rn.Tensor)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_array_api_compat() -> None:
    x = rn.ones((3, 4))
    assert compat.is_array_api_obj(x) and compat.array_namespace(x, x) is rn
    assert compat.size(x) == 12 and compat.device(x) == x.device and not compat.is_lazy_array(x)
