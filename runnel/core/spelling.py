"""Keyword arguments as other libraries spell them: one table for all public functions."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import Any, Final

from runnel.core import switches
from runnel.core.devices import as_device
from runnel.core.errors import ArgumentError

# A keyword of PyTorch, NumPy or JAX, and the parameters it may mean here: the first one that the function has.
MEANINGS: Final[dict[str, tuple[str, ...]]] = {
    "a": ("x",),
    "a_max": ("max", "high"),
    "a_min": ("min", "low"),
    "axis": ("dim",),
    "b": ("y",),
    "ddof": ("correction",),
    "dim": ("axis", "axes"),
    "dim0": ("first",),
    "diagonal": ("k",),
    "dim1": ("second", "axis1"),
    "dim2": ("axis2",),
    "dims": ("axes", "axis"),
    "end_dim": ("end",),
    "exponent": ("y",),
    "fill_value": ("value",),
    "high": ("max",),
    "index": ("indices",),
    "input": ("x", "like", "labels", "condition", "p"),
    "keepdim": ("keepdims",),
    "low": ("min",),
    "max": ("high",),
    "max_val": ("max", "high"),
    "min": ("low",),
    "min_val": ("min", "low"),
    "num_classes": ("classes",),
    "offset": ("k",),
    "other": ("y",),
    "p": ("ord",),
    "shape": ("size",),
    "size": ("shape",),
    "source": ("updates",),
    "split_size_or_sections": ("sizes",),
    "start_dim": ("start",),
    "steps": ("num",),
    "tensors": ("arrays",),
    "value": ("fill_value",),
    "vec2": ("y",),
    "x1": ("x",),
    "x2": ("y",),
}

# Functions that PyTorch offers in an updating form, too; the result is the same.
HAVE_INPLACE_FORMS: Final = frozenset(
    {
        "celu", "dropout", "elu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "mish", "relu", "relu6",
        "rrelu", "selu", "silu", "threshold",
    }
)  # fmt: skip

# Methods that PyTorch gives hints about copying and layout, which change nothing here.
TAKE_HINTS: Final = frozenset(
    {
        "bfloat16", "bool", "byte", "cdouble", "cfloat", "char", "clone", "contiguous", "copy_", "cpu", "double",
        "float", "half", "int", "long", "short", "to", "type",
    }
)  # fmt: skip
HINTS: Final = frozenset({"memory_format", "non_blocking"})

# Hints of single functions: for PyTorch's own warnings, and for its allocations.
OWN_HINTS: Final = {
    "grad": "only_inputs",
    "log_softmax": "_stacklevel",
    "repeat": "output_size",
    "softmax": "_stacklevel",
    "softmin": "_stacklevel",
}

# What PyTorch's losses took before they had ``reduction``.
OLD_REDUCTION: Final = ("size_average", "reduce")


def spelled(name: str, kwargs: dict[str, Any], parameters: Collection[str]) -> dict[str, Any]:
    """``kwargs`` under the names of this function's ``parameters``; ArgumentError for one that means none of them."""
    meant: dict[str, Any] = {}
    if "reduction" in parameters and any(old in kwargs for old in OLD_REDUCTION):
        kwargs = _reduction_named(name, kwargs)
    for keyword, value in kwargs.items():
        if keyword not in parameters and _has_no_effect(name, keyword, value, parameters):
            continue
        own = keyword if keyword in parameters else _meaning(name, keyword, parameters)
        if own in meant or (own != keyword and own in kwargs):
            raise ArgumentError(f"[{name}] {keyword}= and {own}= are the same argument; pass one of them.")
        meant[own] = value
    return meant


def _reduction_named(name: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    """``kwargs`` of a loss with ``reduction`` in place of what PyTorch took before it."""
    rest = {keyword: value for keyword, value in kwargs.items() if keyword not in OLD_REDUCTION}
    averages, reduces = (kwargs.get(old) for old in OLD_REDUCTION)
    if averages is None and reduces is None:
        return rest
    if rest.get("reduction", "mean") != "mean":
        raise ArgumentError(f"[{name}] reduction= says what size_average= and reduce= said; pass reduction= alone.")
    reduction = "none" if reduces is False else "sum" if averages is False else "mean"
    return {**rest, "reduction": reduction}


def _has_no_effect(name: str, keyword: str, value: Any, parameters: Collection[str]) -> bool:
    """Whether a keyword is one of those that PyTorch has and that change nothing here."""
    if keyword == "inplace":
        return name in HAVE_INPLACE_FORMS
    if keyword == OWN_HINTS.get(name) or (keyword == "out" and value is None):
        return True
    if keyword in HINTS:
        return name in TAKE_HINTS
    if keyword == "device" and "dtype" in parameters and "x" not in parameters:  # it makes something new
        if value is not None and as_device(value).name != switches.device.value:
            requested, default = as_device(value).name, switches.device.value
            raise ArgumentError(
                f"[{name}] makes new arrays on {default}; received device={requested!r}. Move what it gives with "
                f'.to("{requested}").'
            )
        return True
    return False


def _meaning(name: str, keyword: str, parameters: Collection[str]) -> str:
    for own in MEANINGS.get(keyword, ()):
        if own in parameters:
            return own
    if keyword == "requires_grad":
        raise ArgumentError(f"[{name}] takes no argument 'requires_grad'; write {name}(…).requires_grad_().")
    raise ArgumentError(f"[{name}] takes no argument '{keyword}'; {_offer(keyword, parameters)}.")


def _offer(keyword: str, parameters: Iterable[str]) -> str:
    accepted = [p for p in parameters if p != "self"]
    if not accepted:
        return "it takes none by name"
    near = difflib.get_close_matches(keyword, accepted, 1)
    return (f"did you mean '{near[0]}'? It takes " if near else "it takes ") + ", ".join(accepted)
