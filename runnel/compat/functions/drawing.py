"""PyTorch's functions that draw random numbers. The numbers are Runnel's: seeds give other ones than in PyTorch."""

from __future__ import annotations

from typing import Any

from runnel import ops
from runnel.backends.context import default_device
from runnel.compat.functions.creation import finished, sizes
from runnel.core.dtypes import float32, int64
from runnel.core.surface import offered
from runnel.data.sampling import permutation
from runnel.ops.arguments import Array
from runnel.tensor import random
from runnel.tensor.creation import asarray
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.random import Generator, default_on, manual_seed as seed_all
from runnel.tensor.tensor import Tensor


@offered("torch", "torch.random")
def manual_seed(seed: int) -> Generator:
    """Seed the default generators; returns the one of the default device."""
    seed_all(seed)
    return default_on(default_device())


@offered("torch")
def rand(
    *shape: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: Any = None,
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


@offered("torch")
def randn(
    *shape: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: Any = None,
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


@offered("torch")
def randint(
    low: int,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Integers in [low, high), or below one number: ``randint(1, 7, (2,))``, ``randint(10, (2,))``."""
    if size is None:
        low, high, size = 0, low, high
    drawn = random.randint(0 if high is None else low, low if high is None else high, size, generator=generator)
    return finished(drawn, dtype, device, requires_grad)


@offered("torch")
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """The numbers below ``n`` in random order."""
    return finished(asarray(permutation(n, generator), int64 if dtype is None else dtype), None, device, requires_grad)


@offered("torch")
def rand_like(
    input: Array, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **ignored: Any
) -> Tensor:
    """Uniform numbers in [0, 1) in the shape of ``input``."""
    return rand(input.shape, dtype=dtype or input.dtype, device=device or input.device, requires_grad=requires_grad)


@offered("torch")
def randn_like(
    input: Array, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **ignored: Any
) -> Tensor:
    """Normal numbers of mean 0 and deviation 1 in the shape of ``input``."""
    return randn(input.shape, dtype=dtype or input.dtype, device=device or input.device, requires_grad=requires_grad)


@offered("torch")
def randint_like(input: Array, low: int, high: int | None = None, *, dtype: Any = None, **ignored: Any) -> Tensor:
    """Integers in [low, high), or below the one number that is given, in the shape and dtype of ``input``."""
    bounds = (0, low) if high is None else (low, high)
    return randint(*bounds, input.shape, dtype=dtype or input.dtype)


@offered("torch")
def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None, **options: Any
) -> Tensor:
    """Normal numbers of the given means and deviations: numbers with a ``size``, or tensors."""
    if size is not None:
        drawn = random.randn(sizes((size,)), generator=generator)
    else:
        like = [x for x in (mean, std) if isinstance(x, ArrayMethods)]
        drawn = random.randn(sum(like[1:], like[0]).shape if like else (), generator=generator)
    moved: Any = ops.add(ops.multiply(drawn, std), mean)
    return finished(moved.detach(), options.get("dtype"), options.get("device"), options.get("requires_grad", False))


@offered("torch")
def bernoulli(input: Array, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability of each element, else 0, in the dtype of ``input``."""
    drawn = random.rand(input.shape, generator=generator)
    answer: Tensor = ops.cast(ops.less(drawn, input.detach()), input.dtype)
    return answer


@offered("torch")
def multinomial(
    input: Array, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """``num_samples`` positions along the last axis of a vector or matrix of weights, each with a probability in
    proportion to its weight; without ``replacement``, unequal ones."""
    weights: Any = input.detach()
    shares = weights / weights.sum(-1, keepdims=True)
    if replacement:
        drawn = random.rand((*weights.shape[:-1], num_samples, 1), generator=generator)
        ends = ops.expand_dims(shares, -2).cumsum(-1)
        chosen = ops.sum(ops.cast(ops.greater_equal(drawn, ends), int64), -1)
        return ops.minimum(chosen, weights.shape[-1] - 1)
    race = -ops.log(1 - random.rand(weights.shape, generator=generator))
    times = ops.where(ops.greater(shares, 0), race / ops.where(ops.greater(shares, 0), shares, 1), float("inf"))
    order = ops.argsort(times, -1)
    chosen_first: Tensor = order[..., :num_samples]
    return chosen_first


@offered("torch", "torch.random")
def initial_seed() -> int:
    """The seed of the default generator."""
    low, high, _ = default_on(default_device()).get_state().tolist()
    return int(low | high << 32)
