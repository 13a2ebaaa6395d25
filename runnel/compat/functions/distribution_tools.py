"""``torch.distributions.utils``: what distributions written for PyTorch are made with."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from runnel import ops
from runnel.distributions import distribution


class lazy_property(cached_property[Any]):
    """A property that is computed when it is first asked for."""


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Numbers and tensors as tensors of one shape and float dtype."""
    return tuple(distribution.broadcast_all("broadcast_all", *values))


def clamp_probs(probs: Any) -> Any:
    """Probabilities kept away from 0 and 1 by the dtype's epsilon."""
    eps = float(np.finfo(probs.dtype.numpy).eps)
    return ops.clip(probs, eps, 1 - eps)


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """The probabilities of log odds, or of logarithms of weights along the last axis."""
    return ops.sigmoid(logits) if is_binary else ops.softmax(logits, -1)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """The log odds of probabilities, or, of those along the last axis, the logarithms."""
    clamped = clamp_probs(probs)
    return ops.log(clamped) - ops.log1p(-clamped) if is_binary else ops.log(clamped)
