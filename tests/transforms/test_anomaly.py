"""The first NaN is an error where it is asked for, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import runnel as rn
from runnel.core import switches


@pytest.fixture(autouse=True)
def unchecked() -> Iterator[None]:
    with switches.override(check_nans=False):
        yield


def nan_backwards() -> None:
    """The gradient of sqrt at 0 is infinite."""
    x = rn.tensor([0.0], requires_grad=True)
    (rn.sqrt(x) * 0.0).sum().backward()


@pytest.mark.parametrize("compiled", [False, True])
def test_a_block(compiled: bool) -> None:
    function = rn.compile(lambda x: rn.log(x).sum()) if compiled else lambda x: rn.log(x).sum()
    function(rn.zeros(2))
    with rn.autograd.detect_anomaly(), pytest.raises(ArithmeticError, match=r"log.*NaN or infinity.*test_anomaly\.py"):
        function(rn.zeros(2))
    function(rn.zeros(2))
    with rn.autograd.detect_anomaly(check_nan=False):
        function(rn.zeros(2))


def test_backwards() -> None:
    nan_backwards()
    with rn.autograd.set_detect_anomaly(True), pytest.raises(ArithmeticError, match="NaN or infinity"):
        nan_backwards()
    nan_backwards()


def roots(x: rn.Tensor) -> rn.Tensor:
    return rn.sqrt(x * 1.0)


def extremes(x: rn.Tensor) -> rn.Tensor:
    return rn.linalg.svd(x.reshape(1, 1))[1] + rn.linalg.eigh(x * rn.ones((2, 2)))[1].sum()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("function", "op"), [(roots, "sqrt"), (extremes, "eigh")])
def test_backwards_the_line_of_the_forward_op_is_named(function: Any, op: str, compiled: bool) -> None:
    def step(x: rn.Tensor) -> None:
        function(x).sum().backward()

    x = rn.tensor([0.0], requires_grad=True)
    line = function.__code__.co_firstlineno + 1
    message = rf"NaN or infinity.* the gradient of \[{op}\], which was called at .*test_anomaly\.py:{line}\.$"
    with rn.autograd.detect_anomaly(), pytest.raises(ArithmeticError, match=message):
        (rn.compile(step) if compiled else step)(x)


def test_for_good_and_back() -> None:
    rn.autograd.set_detect_anomaly(True)
    assert switches.check_nans.value
    with rn.autograd.set_detect_anomaly(False):
        nan_backwards()
    with pytest.raises(ArithmeticError):
        nan_backwards()
    rn.autograd.set_detect_anomaly(False)
    nan_backwards()
