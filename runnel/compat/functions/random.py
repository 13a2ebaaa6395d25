"""PyTorch's functions that draw random numbers, and ``torch.distributions.utils``. Seeds produce other numbers than in
PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from runnel import ops
from runnel.backends.context import default_device
from runnel.compat.functions.creation import finished, new_tensor, sizes
from runnel.core.dtypes import Dtype, float32, int64
from runnel.data.sampling import permutation
from runnel.distributions import distribution
from runnel.ops.arguments import Array
from runnel.random import continuous, counts, filling
from runnel.tensor import random
from runnel.tensor.creation import asarray
from runnel.tensor.random import Generator, default_on, get_rng_state, manual_seed as seed_all, set_rng_state
from runnel.tensor.tensor import Tensor


def manual_seed(seed: int) -> Generator:
    """Seed the default generators and return the generator of the default device."""
    seed_all(seed)
    return default_on(default_device())


@new_tensor
def rand(*shape: Any, size: Any = None, generator: Generator | None = None, dtype: Dtype = None) -> Tensor:
    """Draw uniform numbers from [0, 1)."""
    return random.rand(sizes(shape, size), dtype=float32 if dtype is None else dtype, generator=generator)


@new_tensor
def randn(*shape: Any, size: Any = None, generator: Generator | None = None, dtype: Dtype = None) -> Tensor:
    """Draw normal numbers with mean 0 and standard deviation 1."""
    return random.randn(sizes(shape, size), dtype=float32 if dtype is None else dtype, generator=generator)


@new_tensor
def randint(
    low: int = 0, high: Any = None, size: Any = None, *, generator: Generator | None = None, dtype: Dtype = None
) -> Tensor:
    """Draw integers from [low, high), or below one number: ``randint(1, 7, (2,))``, ``randint(10, (2,))``."""
    if size is None:
        low, high, size = 0, low, high
    drawn = random.randint(0 if high is None else low, low if high is None else high, size, generator=generator)
    return drawn if dtype is None else drawn.astype(dtype)


@new_tensor
def randperm(n: int, *, generator: Generator | None = None, dtype: Dtype = None) -> Tensor:
    """Return the integers below ``n`` in random order."""
    return asarray(permutation(n, generator), int64 if dtype is None else dtype)


@new_tensor
def rand_like(input: Array, *, generator: Generator | None = None, dtype: Dtype = None) -> Tensor:
    """Draw uniform numbers from [0, 1) in the shape of ``input``."""
    return filling.rand_like(input, dtype=dtype, generator=generator)


@new_tensor
def randn_like(input: Array, *, generator: Generator | None = None, dtype: Dtype = None) -> Tensor:
    """Draw normal numbers with mean 0 and standard deviation 1 in the shape of ``input``."""
    return filling.randn_like(input, dtype=dtype, generator=generator)


@new_tensor
def randint_like(
    input: Array, low: int = 0, high: int | None = None, *, generator: Generator | None = None, dtype: Dtype = None
) -> Tensor:
    """Draw integers from [low, high), or below one number, in the shape and dtype of ``input``."""
    return filling.randint_like(input, low, high, dtype=dtype, generator=generator)


def bernoulli(input: Array, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """Draw 1 or 0 in the shape and dtype of ``input``, whose elements are the probabilities of 1 unless ``p`` is."""
    if p is None:
        return counts.bernoulli(input, generator=generator)
    return filling.bernoulli_of(input, p, generator=generator)


def get_device_states(*args: Any) -> tuple[list[Any], list[Any]]:
    """Return the GPUs of tensors and their states: none."""
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Do nothing: a program without GPUs has no such states."""


def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None, **options: Any
) -> Tensor:
    """Draw normal numbers; mean and std are tensors, or numbers with a ``size``."""
    drawn = continuous.normal(mean, std, None if size is None else sizes((size,)), generator=generator)
    return finished(drawn.detach(), options.get("dtype"), options.get("device"), options.get("requires_grad", False))


def initial_seed() -> int:
    """Return the seed of the default generator."""
    low, high, _ = default_on(default_device()).get_state().tolist()
    return int(low | high << 32)


@contextmanager
def fork_rng(*args: Any, **options: Any) -> Iterator[None]:
    """Restore the state of the default generator at the end of the block."""
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


class lazy_property(cached_property[Any]):
    """A property that is computed on first access."""


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Convert numbers and tensors to tensors of one shape and float dtype."""
    return tuple(distribution.broadcast_all("broadcast_all", *values))


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Any:
    """Return standard normal numbers of ``shape``."""
    return randn(shape, dtype=dtype, device=device)


def clamp_probs(probs: Any) -> Any:
    """Limit probabilities to [eps, 1 - eps], where eps is the dtype's epsilon."""
    eps = float(np.finfo(probs.dtype.numpy).eps)
    return ops.clip(probs, eps, 1 - eps)


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Convert log odds, or unnormalized log weights along the last axis, to probabilities."""
    return ops.sigmoid(logits) if is_binary else ops.softmax(logits, -1)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Convert probabilities to log odds, or, along the last axis, to logarithms."""
    clamped = clamp_probs(probs)
    return ops.log(clamped) - ops.log1p(-clamped) if is_binary else ops.log(clamped)
