"""Translate keyword arguments of PyTorch, NumPy and JAX: one table for all public functions."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from runnel.core import switches
from runnel.core.devices import as_device
from runnel.core.errors import ArgumentError

# A keyword of PyTorch, NumPy or JAX, and the parameters it may mean: the first one that the function has.
MEANINGS: Final[dict[str, tuple[str, ...]]] = {
    "a": ("x",),
    "A": ("x", "a"),
    "a_max": ("max", "high"),
    "a_min": ("min", "low"),
    "axis": ("dim",),
    "axis0": ("first", "dim0"),
    "axis1": ("second", "dim1"),
    "b": ("y",),
    "B": ("y", "b"),
    "callable": ("function",),
    "ddof": ("correction",),
    "diagonal": ("k",),
    "dim": ("axis", "axes"),
    "dim0": ("first",),
    "dim1": ("second", "axis1"),
    "dim2": ("axis2",),
    "dims": ("axes", "axis", "repetitions"),
    "element": ("x",),
    "elements": ("x",),
    "end_dim": ("end",),
    "exponent": ("y",),
    "ext_tensor": ("data",),
    "fill_value": ("value",),
    "high": ("max",),
    "index": ("indices",),
    "indices": ("indices_or_sections",),
    "input": ("x", "like", "labels", "condition", "p", "b", "lam", "factor", "weight", "a"),
    "input2": ("factor", "tau"),
    "input3": ("other",),
    "keepdim": ("keepdims",),
    "length": ("size",),
    "low": ("min",),
    "mat2": ("y",),
    "max": ("high",),
    "max_val": ("max", "high"),
    "min": ("low",),
    "min_val": ("min", "low"),
    "num": ("count",),
    "num_classes": ("classes",),
    "obj": ("data",),
    "offset": ("k",),
    "other": ("y", "b"),
    "p": ("ord",),
    "repeats": ("repetitions",),
    "sections": ("indices_or_sections",),
    "shape": ("size",),
    "shifts": ("shift",),
    "size": ("shape",),
    "source": ("updates",),
    "split_size": ("sizes",),
    "split_size_or_sections": ("sizes",),
    "split_sizes": ("sizes",),
    "start_dim": ("start",),
    "steps": ("num",),
    "tensor": ("x",),
    "tensor1": ("a",),
    "tensor2": ("b",),
    "tensor_indices_or_sections": ("indices_or_sections",),
    "tensors": ("arrays",),
    "test_element": ("test_elements",),
    "train": ("training",),
    "value": ("fill_value", "src"),
    "vec": ("y",),
    "vec2": ("y",),
    "x1": ("x",),
    "x2": ("y",),
}

# Keywords of single functions whose parameters have these names with another meaning.
OWN_MEANINGS: Final[dict[str, dict[str, str]]] = {
    "arctan2": {"other": "x"},
    "atan2": {"input": "y", "other": "x"},
    "binomial": {"count": "n", "prob": "p"},
    "copy": {"other": "source", "src": "source"},
    "dot": {"tensor": "y"},
    "gammainc": {"input": "a", "other": "x"},
    "gammaincc": {"input": "a", "other": "x"},
    "igamma": {"other": "x"},
    "igammac": {"other": "x"},
    "ldexp": {"other": "exponent"},
    "max": {"other": "dim"},
    "min": {"other": "dim"},
    "pinv": {"rcond": "rtol"},
    "random": {"from": "low", "to": "high"},
    "solve_triangular": {"input": "a"},
    "tensorsolve": {"input": "a"},
    "reshape": {"dtype": "shape"},
    "resize_as": {"the_template": "other"},
    "searchsorted": {"input": "values"},
    "set_rng_state": {"new_state": "state"},
    "to": {"other": "target"},
    "unfold": {"dimension": "axis"},
    "uniform": {"from": "low", "to": "high"},
    "unsafe_split": {"split_sizes": "split_size"},
    "vander": {"N": "n"},
    "zeta": {"other": "q"},
}

# Functions that take `inplace` in PyTorch, and give their input the values of the result.
HAVE_INPLACE_FORMS: Final = frozenset(
    {
        "alpha_dropout", "celu", "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "feature_alpha_dropout",
        "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "mish", "relu", "relu6", "rrelu", "selu", "silu",
        "threshold",
    }
)  # fmt: skip

# Methods that take hints about copying and layout in PyTorch, which have no effect here.
TAKE_HINTS: Final = frozenset(
    {
        "bfloat16", "bool", "byte", "cdouble", "cfloat", "char", "clone", "contiguous", "copy_", "cpu", "double",
        "float", "half", "int", "is_contiguous", "long", "resize_", "resize_as_", "short", "to", "type", "type_of",
    }
)  # fmt: skip
HINTS: Final = frozenset({"memory_format", "non_blocking"})

# Hints of single functions: for PyTorch's warnings and allocations.
OWN_HINTS: Final = {
    "gather": "sparse_grad",
    "grad": "only_inputs",
    "group_norm": "cudnn_enabled",
    "layer_norm": "cudnn_enable",
    "log_softmax": "_stacklevel",
    "repeat": "output_size",
    "softmax": "_stacklevel",
    "softmin": "_stacklevel",
}

# Keywords of functions that make tensors, and their values that change nothing.
OF_NEW_TENSORS: Final[dict[str, tuple[Any, ...]]] = {
    "layout": (None, "strided"),
    "pin_memory": (None, False, True),
    "requires_grad": (None, False, True),  # the caller asks the result for gradients
}

# PyTorch's losses took these before they had `reduction`.
OLD_REDUCTION: Final = ("size_average", "reduce")


def translated(name: str, kwargs: dict[str, Any], parameters: Collection[str]) -> dict[str, Any]:
    """Return ``kwargs`` under the names of the function's own ``parameters``, without those that have no effect.

    Keywords without a meaning keep their name. ArgumentError if two keywords mean the same parameter.
    """
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
    """Return the keywords of a loss with ``reduction`` instead of PyTorch's older ones."""
    rest = {keyword: value for keyword, value in kwargs.items() if keyword not in OLD_REDUCTION}
    averages, reduces = (kwargs.get(old) for old in OLD_REDUCTION)
    for old, value in zip(OLD_REDUCTION, (averages, reduces), strict=True):
        if isinstance(value, str):
            raise ArgumentError(f"[{name}] {old} must be a bool or None; got {value!r}. Write reduction={value!r}.")
    if averages is None and reduces is None:
        return rest
    if rest.get("reduction", "mean") != "mean":
        raise ArgumentError(f"[{name}] reduction= replaces size_average= and reduce=; pass only reduction=.")
    reduction = "none" if reduces is False else "sum" if averages is False else "mean"
    return {**rest, "reduction": reduction}


def _has_no_effect(name: str, keyword: str, value: Any, parameters: Collection[str]) -> bool:
    """Return whether a keyword of PyTorch changes nothing here."""
    if keyword == "inplace":
        return name in HAVE_INPLACE_FORMS
    if keyword == OWN_HINTS.get(name) or (keyword == "out" and value is None):
        return True
    if keyword in HINTS:
        return name in TAKE_HINTS
    makes = "dtype" in parameters and ("x" not in parameters or name.startswith("new_"))
    if makes and keyword in OF_NEW_TENSORS:
        return value in OF_NEW_TENSORS[keyword]
    if keyword == "device" and makes:
        if value is not None and as_device(value).name != switches.device.value:
            requested, default = as_device(value).name, switches.device.value
            raise ArgumentError(
                f"[{name}] creates arrays on {default}; got device={requested!r}. Move the result with "
                f'.to("{requested}").'
            )
        return True
    return False


def _meaning(name: str, keyword: str, parameters: Collection[str]) -> str:
    known = OWN_MEANINGS.get(name.rstrip("_"), {}).get(keyword)
    if known is not None:
        return known
    if keyword == "requires_grad":
        raise ArgumentError(f"[{name}] takes no argument 'requires_grad'; write {name}(…).requires_grad_().")
    return next((own for own in MEANINGS.get(keyword, ()) if own in parameters), keyword)
