"""Records in ``pytorch.json.gz`` what PyTorch makes of the cases: probabilities, moments, divergences and gradients.

python tests/distributions/record.py     (with torch 2.13 and numpy, and without Runnel)
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cases
import torch
from torch import distributions

PLACE = Path(__file__).with_name("pytorch.json.gz")


class Recorder:
    """Tensors made of lists, and the gradients that they got."""

    def __init__(self) -> None:
        self.leaves: list[torch.Tensor] = []

    def __call__(self, data: Any) -> torch.Tensor:
        self.leaves.append(torch.tensor(data, dtype=torch.float64, requires_grad=True))
        return self.leaves[-1]

    def evaluate(self, text: str) -> Any:
        return eval(text, {"D": distributions, "T": self, "math": math})


def plain(x: torch.Tensor) -> list[Any]:
    """The shape of a tensor, and its elements with twelve digits; infinities and NaN as text."""
    values = x.detach().double().reshape(-1).tolist()
    return [list(x.shape), [float(f"{v:.12g}") if abs(v) < float("inf") else str(v) for v in values]]


def attempt(function: Callable[[], torch.Tensor]) -> list[Any] | None:
    """Return the results of the function, where PyTorch has it."""
    try:
        return plain(function())
    except (NotImplementedError, ValueError, TypeError, AttributeError):
        return None


def gradients(leaves: list[torch.Tensor], value: torch.Tensor) -> list[Any]:
    every = torch.autograd.grad(value.sum(), leaves, allow_unused=True) if value.requires_grad else [None] * len(leaves)
    return [None if g is None else plain(g) for g in every]


def distribution(text: str, values: str) -> dict[str, Any]:
    make = Recorder()
    d = make.evaluate(text)
    parameters = list(make.leaves)
    x = make.evaluate(values).detach()
    quantiles = make.evaluate(cases.QUANTILES).detach()
    quantiles = quantiles.reshape(3, *[1] * len(d.batch_shape))
    moments = {name: attempt(lambda name=name: getattr(d, name)) for name in cases.MOMENTS}
    return {
        "shapes": [list(d.batch_shape), list(d.event_shape)],
        "log_prob": plain(d.log_prob(x)),
        "gradients": gradients(parameters, d.log_prob(x)),
        "cdf": attempt(lambda: d.cdf(x)),
        "icdf": attempt(lambda: d.icdf(quantiles)),
        "entropy": attempt(d.entropy),
        **moments,
    }


def divergence(p: str, q: str) -> dict[str, Any]:
    make = Recorder()
    pair = make.evaluate(p), make.evaluate(q)
    value = distributions.kl_divergence(*pair)
    return {"value": plain(value), "gradients": gradients(make.leaves, value)}


def transform(text: str, argument: str) -> dict[str, Any]:
    make = Recorder()
    t, x = make.evaluate(text), make.evaluate(argument)
    y = t(x)
    slope = attempt(lambda: t.log_abs_det_jacobian(x, y))
    total = y.square().sum() + (0 if slope is None else t.log_abs_det_jacobian(x, y).sum())
    return {
        "value": plain(y),
        "inverse": attempt(lambda: t.inv(y.detach())),
        "slope": slope,
        "shapes": [list(t.forward_shape(x.shape)), list(t.inverse_shape(y.shape))],
        "gradients": gradients(make.leaves, total),
    }


def main() -> None:
    torch.set_default_dtype(torch.float64)
    recorded = {
        "torch": torch.__version__,
        "distributions": {text: distribution(text, values) for text, values in cases.DISTRIBUTIONS.items()},
        "divergences": [divergence(p, q) for p, q in cases.DIVERGENCES],
        "transforms": {text: transform(text, x) for text, x in cases.TRANSFORMS.items()},
        "constraints": {
            name: Recorder().evaluate(f"D.constraints.{name}.check({x})").int().tolist()
            for name, x in cases.CONSTRAINTS.items()
        },
    }
    PLACE.write_bytes(gzip.compress(json.dumps(recorded, separators=(",", ":")).encode(), mtime=0))


if __name__ == "__main__":
    main()
