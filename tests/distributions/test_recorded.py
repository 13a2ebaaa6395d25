"""Probabilities, quantiles, moments, divergences and their gradients are PyTorch's, as ``record.py`` wrote them."""

from __future__ import annotations

import gzip
import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
from tests.distributions import cases

TOLERANCE = 1e-8
# PyTorch's Bessel functions have seven digits, and its modes here are NaN where there are some
INEXACT = {"D.VonMises": 1e-6}
WITHOUT_MODE = ("D.Kumaraswamy", "D.Weibull")


@cache
def recorded() -> dict[str, Any]:
    return json.loads(gzip.decompress(Path(__file__).with_name("pytorch.json.gz").read_bytes()))


class Reader:
    """Tensors made of lists, which get gradients."""

    def __init__(self) -> None:
        self.leaves: list[rn.Tensor] = []

    def __call__(self, data: Any) -> rn.Tensor:
        self.leaves.append(rn.tensor(np.asarray(data, np.float64), requires_grad=True))
        return self.leaves[-1]

    def evaluate(self, text: str) -> Any:
        return eval(text, {"D": rn.distributions, "T": self, "math": math})


def assert_like(value: Any, expected: list[Any], what: str, tolerance: float = TOLERANCE) -> None:
    shape, elements = expected
    numbers = np.asarray([float(x) for x in elements]).reshape(shape)
    np.testing.assert_allclose(value.numpy(), numbers, rtol=tolerance, atol=tolerance, err_msg=what)
    assert list(value.shape) == shape, what


def assert_gradients(leaves: list[rn.Tensor], expected: list[Any], what: str, tolerance: float = TOLERANCE) -> None:
    for leaf, gradient in zip(leaves, expected, strict=True):
        if leaf.grad is None:
            assert gradient is None or not any(gradient[1]), what
        elif gradient is not None:
            assert_like(leaf.grad, gradient, what, tolerance)
        else:
            assert not leaf.grad.numpy().any(), what


@pytest.mark.parametrize("text", cases.DISTRIBUTIONS)
def test_distributions(text: str) -> None:
    expected, make = recorded()["distributions"][text], Reader()
    d = make.evaluate(text)
    parameters = list(make.leaves)
    x = make.evaluate(cases.DISTRIBUTIONS[text]).detach()
    assert [list(d.batch_shape), list(d.event_shape)] == expected["shapes"]
    log_prob = d.log_prob(x)
    tolerance = INEXACT.get(text.partition("(")[0], TOLERANCE)
    assert_like(log_prob, expected["log_prob"], "log_prob", tolerance)
    if log_prob.requires_grad:
        log_prob.sum().backward()
    assert_gradients(parameters, expected["gradients"], "gradient of log_prob", tolerance)
    quantiles = make.evaluate(cases.QUANTILES).detach().reshape(3, *[1] * len(d.batch_shape))
    for name, function in {
        "cdf": lambda: d.cdf(x),
        "icdf": lambda: d.icdf(quantiles),
        "entropy": d.entropy,
        **{name: lambda name=name: getattr(d, name) for name in cases.MOMENTS},
    }.items():
        if expected[name] is not None and not (name == "mode" and text.startswith(WITHOUT_MODE)):
            assert_like(function(), expected[name], name, tolerance)


@pytest.mark.parametrize("number", range(len(cases.DIVERGENCES)))
def test_divergences(number: int) -> None:
    expected, make = recorded()["divergences"][number], Reader()
    p, q = map(make.evaluate, cases.DIVERGENCES[number])
    value = rn.distributions.kl_divergence(p, q)
    assert_like(value, expected["value"], "divergence")
    if value.requires_grad:
        value.sum().backward()
    assert_gradients(make.leaves, expected["gradients"], "gradient")


@pytest.mark.parametrize("text", cases.TRANSFORMS)
def test_transforms(text: str) -> None:
    expected, make = recorded()["transforms"][text], Reader()
    transform, x = make.evaluate(text), make.evaluate(cases.TRANSFORMS[text])
    y = transform(x)
    assert_like(y, expected["value"], "value")
    total = (y * y).sum()
    if expected["slope"] is not None:
        slope = transform.log_abs_det_jacobian(x, y)
        assert_like(slope, expected["slope"], "slope")
        total = total + slope.sum()
    if expected["inverse"] is not None:
        assert_like(transform.inv(y.detach()), expected["inverse"], "inverse")
    shapes = [list(transform.forward_shape(x.shape)), list(transform.inverse_shape(y.shape))]
    assert shapes == expected["shapes"]
    total.backward()
    assert_gradients(make.leaves, expected["gradients"], "gradient")


@pytest.mark.parametrize("name", cases.CONSTRAINTS)
def test_constraints(name: str) -> None:
    check = Reader().evaluate(f"D.constraints.{name}.check({cases.CONSTRAINTS[name]})")
    assert check.numpy().astype(int).tolist() == recorded()["constraints"][name]
