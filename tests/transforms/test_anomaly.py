"""The first NaN is an error where it is asked for, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator

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


def test_for_good_and_back() -> None:
    rn.autograd.set_detect_anomaly(True)
    assert switches.check_nans.value
    with rn.autograd.set_detect_anomaly(False):
        nan_backwards()
    with pytest.raises(ArithmeticError):
        nan_backwards()
    rn.autograd.set_detect_anomaly(False)
    nan_backwards()
