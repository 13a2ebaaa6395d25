"""Distributions with a probability p as parameter, given as itself or as its logit."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel import ops
from runnel.core.dtypes import float64
from runnel.distributions.distribution import Distribution, broadcast_all, require_in


class ByProbability(Distribution):
    """What they share: one of ``probs`` and ``logits`` is a parameter, and the other is computed from it. Parameters
    beside it are broadcast with it."""

    _probs: Any = None
    _logits: Any = None

    def _take(self, probs: Any, logits: Any, validate_args: bool | None, **others: Any) -> None:
        """Set the parameter, and ``others``; ValueError unless one of the two is given."""
        owner = type(self).__name__
        require_one(owner, probs, logits)
        name, value = ("probs", probs) if logits is None else ("logits", logits)
        names = [f"_{name}", *others]
        tensors = broadcast_all(owner, value, *others.values())
        for each, tensor in zip(names, tensors, strict=True):
            setattr(self, each, tensor)
        Distribution.__init__(self, tensors[0].shape, validate_args=validate_args)
        if self._validate_args:
            require_in(owner, name, tensors[0], self.arg_constraints[name])

    @property
    def probs(self) -> Any:
        """The probability."""
        return ops.sigmoid(self._logits) if self._probs is None else self._probs

    @property
    def logits(self) -> Any:
        """log(p / (1 - p))."""
        if self._logits is not None:
            return self._logits
        p = clamped(self._probs)
        return ops.log(p) - ops.log1p(-p)

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of the parameter."""
        return tuple((self._logits if self._probs is None else self._probs).shape)


def clamped(p: Any) -> Any:
    """Probabilities away from 0 and 1 by the spacing of floats at 1, so that their logits are finite."""
    smallest = float(np.finfo(np.float64 if p.dtype is float64 else np.float32).eps)
    return ops.clip(p, smallest, 1 - smallest)


def require_one(owner: str, probs: Any, logits: Any) -> None:
    """ValueError unless one of the two is given."""
    if (probs is None) == (logits is None):
        raise ValueError(f"[{owner}] takes one of probs and logits; received {'none' if probs is None else 'both'}.")
