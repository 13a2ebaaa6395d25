"""Read positional arguments as PyTorch does where it has more positions: one table for all public functions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from runnel.compat.spelling import HAVE_INPLACE_FORMS, OLD_REDUCTION
from runnel.core.errors import ArgumentError

# PyTorch's positions, for functions that the rules below do not describe. "..." means the function's own.
ORDERS: Final = {
    name: order.split()
    for names, order in {
        "copied copy_ type_of": "... non_blocking",
        "cross_entropy CrossEntropyLoss": "... size_average ignore_index reduce reduction label_smoothing",
        "group_norm": "... cudnn_enabled",
        "layer_norm": "... cudnn_enable",
        "log_softmax softmax softmin": "x dim _stacklevel dtype",
        "nll_loss NLLLoss NLLLoss2d": "... size_average ignore_index reduce reduction",
        "norm": "x p dim keepdim out dtype",
        "normalize tensordot": "... out",
        "poisson_nll_loss PoissonNLLLoss": "... size_average eps reduce reduction",
    }.items()
    for name in names.split()
}

# The factors of these functions, which PyTorch also takes by position, before the tensors that they multiply.
FACTORS: Final = {
    **dict.fromkeys(["add", "add_scaled", "sub", "subtract", "subtract_scaled"], ("alpha",)),
    **dict.fromkeys(["addcdiv", "addcmul"], ("value",)),
    **dict.fromkeys(["addbmm", "addmm", "addmv", "addr", "baddbmm"], ("beta", "alpha")),
}


def repositioned(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], places: Sequence[str], parameters: Collection[str]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return the arguments of a call with more than the function's own ``places`` as PyTorch reads them; None if it
    does not take that many either."""
    factors = FACTORS.get(name.rstrip("_"))
    if factors is not None:
        return _with_factors(args, kwargs, factors, len(places))
    order = [each for item in _order(name, places, parameters) for each in (places if item == "..." else [item])]
    if len(args) > len(order):
        return None
    kept = next((i for i, place in enumerate(places) if order[i] != place), len(places))
    named = dict(zip(order[kept:], args[kept:], strict=False))
    twice = named.keys() & kwargs.keys()
    if twice:
        raise ArgumentError(f"[{name}] {min(twice)} is passed twice: by position, and by name.")
    return args[:kept], {**named, **kwargs}


def _order(name: str, places: Sequence[str], parameters: Collection[str]) -> Sequence[str]:
    if name in ORDERS:
        return ORDERS[name]
    by_name = [p for p in parameters if p not in places]
    if "reduction" in by_name:
        return ["...", *OLD_REDUCTION, *by_name]
    if name in HAVE_INPLACE_FORMS:
        return ["...", "inplace"]
    return ["...", "device", "dtype"] if "dtype" in by_name and name.lstrip("_")[:1].isupper() else ["..."]


def _with_factors(
    args: tuple[Any, ...], kwargs: dict[str, Any], factors: Sequence[str], count: int
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return the call with its numbers by name: ``addmm(beta, x, alpha, a, b)``, which older programs write."""
    numbers = [x for x in args if isinstance(x, (int, float))]
    if len(args) - len(numbers) != count or len(numbers) > len(factors):
        return None
    tensors = tuple([x for x in args if not isinstance(x, (int, float))])
    return tensors, {**dict(zip(factors, numbers, strict=False)), **kwargs}
