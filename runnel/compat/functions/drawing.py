"""PyTorch's functions that draw random numbers, and ``torch.distributions.utils``.

Seeds produce other numbers than in PyTorch.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from runnel import ops
from runnel.backends.context import default_device
from runnel.compat.functions.creation import finished, sizes
from runnel.core.dtypes import Dtype, float32, int64
from runnel.data.sampling import permutation
from runnel.distributions import distribution
from runnel.ops.arguments import Array
from runnel.random import continuous, filling
from runnel.tensor import random
from runnel.tensor.creation import asarray
from runnel.tensor.random import Generator, default_on, manual_seed as seed_all
from runnel.tensor.tensor import Tensor


def manual_seed(seed: int) -> Generator:
    """Seed the default generators; returns the one of the default device."""
    seed_all(seed)
    return default_on(default_device())


def rand(
    *shape: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: Dtype = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Uniform numbers in [0, 1)."""
    drawn = random.rand(
        sizes(shape, size), dtype=float32 if dtype is None else dtype, generator=generator, device=device
    )
    return finished(drawn, None, None, requires_grad)


def randn(
    *shape: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: Dtype = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Normal numbers of mean 0 and deviation 1."""
    drawn = random.randn(
        sizes(shape, size), dtype=float32 if dtype is None else dtype, generator=generator, device=device
    )
    return finished(drawn, None, None, requires_grad)


def randint(
    low: int,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Dtype = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Integers in [low, high), or below one number: ``randint(1, 7, (2,))``, ``randint(10, (2,))``."""
    if size is None:
        low, high, size = 0, low, high
    drawn = random.randint(0 if high is None else low, low if high is None else high, size, generator=generator)
    return finished(drawn, dtype, device, requires_grad)


def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: Dtype = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """The numbers below ``n`` in random order."""
    return finished(asarray(permutation(n, generator), int64 if dtype is None else dtype), None, device, requires_grad)


def rand_like(
    input: Array, *, dtype: Dtype = None, device: Any = None, requires_grad: bool = False, **ignored: Any
) -> Tensor:
    """Uniform numbers in [0, 1) in the shape of ``input``."""
    return finished(filling.rand_like(input, dtype=dtype, device=device), None, None, requires_grad)


def randn_like(
    input: Array, *, dtype: Dtype = None, device: Any = None, requires_grad: bool = False, **ignored: Any
) -> Tensor:
    """Normal numbers of mean 0 and deviation 1 in the shape of ``input``."""
    return finished(filling.randn_like(input, dtype=dtype, device=device), None, None, requires_grad)


def randint_like(input: Array, low: int, high: int | None = None, *, dtype: Dtype = None, **ignored: Any) -> Tensor:
    """Integers in [low, high), or below the one number that is given, in the shape and dtype of ``input``."""
    return filling.randint_like(input, low, high, dtype=dtype)


def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None, **options: Any
) -> Tensor:
    """Normal numbers of the given means and deviations: numbers with a ``size``, or tensors."""
    drawn = continuous.normal(mean, std, None if size is None else sizes((size,)), generator=generator)
    return finished(drawn.detach(), options.get("dtype"), options.get("device"), options.get("requires_grad", False))


def initial_seed() -> int:
    """The seed of the default generator."""
    low, high, _ = default_on(default_device()).get_state().tolist()
    return int(low | high << 32)


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
