"""NumPy's functions on tensors: ``np.exp(x)``, ``np.add.reduce(x)`` and ``np.mean(x)`` return tensors with gradients.

NumPy delegates universal functions (``__array_ufunc__``, NEP 13) and many others (``__array_function__``, NEP 18) to
their operands. A universal function of NumPy or ``scipy.special`` becomes Runnel's function of the same name, or an
error that says what to write. Functions in ``FUNCTIONS`` become Runnel's; NumPy computes all others on arrays.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final

import numpy as np

from runnel.compat import numpy
from runnel.core.arrays import short_repr
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import as_dtype
from runnel.core.errors import ArgumentError
from runnel.ops.reductions.primitives import (
    all as all_of,
    any as any_of,
    max as greatest,
    min as least,
    prod,
    sum as total,
)
from runnel.tensor.creation import asarray

# Universal functions under names that we do not have.
_RENAMED: Final = {
    "absolute": "abs",
    "conjugate": "conj",
    "fabs": "abs",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "power": "pow",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
}
_REDUCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "add": total,
    "multiply": prod,
    "maximum": greatest,
    "minimum": least,
    "logical_and": all_of,
    "logical_or": any_of,
}
_RUNNING: Final = {"add": "cumsum", "multiply": "cumprod"}

# Functions that mean the same here: for each parameter of NumPy's, in its order, the name of ours behind a colon, if it
# is another one; "-" marks a parameter that has to keep its default, "~" one that makes no difference here. The
# function itself is of the same name, or the one behind the equals sign.
_REDUCTION = "a:x axis out- keepdims where-"
_TYPED_REDUCTION = "a:x axis dtype- out- keepdims where-"
_SPREAD = "a:x axis dtype- out- ddof:correction keepdims where- mean- correction"
_RUNNING_TOTAL = "a:x axis dtype out-"
_JOINED = "arrays axis out- dtype- casting-"
_PARTS = "m:x k"
FUNCTIONS: Final[dict[str, str]] = {
    "all": _REDUCTION,
    "allclose": "a:x b:y rtol atol equal_nan",
    "amax=max": "a:x axis out- keepdims initial- where-",
    "amin=min": "a:x axis out- keepdims initial- where-",
    "any": _REDUCTION,
    "argmax": "a:x axis out- keepdims",
    "argmin": "a:x axis out- keepdims",
    "argsort": "a:x axis kind~ order- stable~",
    "array_equal": "a1:x a2:y equal_nan-",
    "broadcast_to": "array:x shape subok~",
    "clip": "a:x a_min:min a_max:max out- min max",
    "concatenate": _JOINED,
    "count_nonzero": "a:x axis keepdims",
    "cumprod": _RUNNING_TOTAL,
    "cumsum": _RUNNING_TOTAL,
    "diag": "v:x k",
    "diagonal": "a:x offset axis1 axis2",
    "diff": "a:x n axis prepend append",
    "dot": "a:x b:y out-",
    "dstack": "tup:arrays",
    "expand_dims": "a:x axis",
    "flip": "m:x axis",
    "hstack": "tup:arrays dtype- casting-",
    "inner": "a:x b:y",
    "isclose": "a:x b:y rtol atol equal_nan",
    "kron": "a:x b:y",
    "linalg.det": "a:x",
    "linalg.inv": "a:x",
    "linalg.norm": "x ord axis keepdims",
    "linalg.solve": "a b",
    "max": "a:x axis out- keepdims initial- where-",
    "mean": _TYPED_REDUCTION,
    "min": "a:x axis out- keepdims initial- where-",
    "moveaxis": "a:x source destination",
    "nan_to_num": "x copy- nan posinf neginf",
    "nanmean": _TYPED_REDUCTION,
    "nansum": "a:x axis dtype out- keepdims initial- where-",
    "ones_like": "a:like dtype order~ subok~ shape- device~",
    "outer": "a:x b:y out-",
    "prod": "a:x axis dtype out- keepdims initial- where-",
    "quantile": "a:x q axis out- overwrite_input~ method:interpolation keepdims weights-",
    "ravel": "a:x order-",
    "repeat": "a:x repeats axis",
    "reshape": "a:x shape order- newshape:shape copy",
    "roll": "a:x shift axis",
    "rot90": "m:x k axes",
    "round": "a:x decimals out-",
    "sort": "a:x axis kind~ order- stable~",
    "squeeze": "a:x axis",
    "stack": _JOINED,
    "std": _SPREAD,
    "sum": "a:x axis dtype out- keepdims initial- where-",
    "swapaxes": "a:x axis1:first axis2:second",
    "take": "a:x indices axis out- mode-",
    "take_along_axis": "arr:x indices axis",
    "tensordot": "a:x b:y axes",
    "tile": "A:x reps:repetitions",
    "trace": "a:x offset axis1 axis2 dtype out-",
    "trapezoid": "y x dx axis",
    "tril": _PARTS,
    "triu": _PARTS,
    "var": _SPREAD,
    "vdot": "a:x b:y",
    "vstack": "tup:arrays dtype- casting-",
    "where": "condition x y",
    "zeros_like": "a:like dtype order~ subok~ shape- device~",
}
# What parameters that ours do not have may be: their defaults in NumPy, besides its mark for "no value".
_DEFAULTS: Final[dict[str, tuple[Any, ...]]] = {
    "casting": ("same_kind",),
    "copy": (True,),
    "dtype": (None,),
    "equal_nan": (False,),
    "initial": (None,),
    "mode": ("raise",),
    "order": (None, "C"),
    "out": (None,),
    "shape": (None,),
    "weights": (None,),
    "where": (True,),
}


def array_ufunc(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Implement ``__array_ufunc__``: apply ``ufunc``, or one of its methods, to ``inputs``.

    The result is a tensor or, with ``out``, NumPy's array with the values.
    """
    name = f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    out = kwargs.pop("out", None)
    for target in out or ():
        if target is not None and not isinstance(target, np.ndarray):
            raise ArgumentError(
                f"[{name}] out= must be a NumPy array; got a {type(target).__name__}. Assign the function's result."
            )
    calls = {"__call__": _call, "reduce": _reduce, "accumulate": _accumulate, "outer": _outer}
    if method not in calls:
        raise ArgumentError(f"[{name}] has no meaning for tensors; take x.numpy(), or rn.scatter and rn.index_add.")
    result = calls[method](name, ufunc, inputs, kwargs)
    if out is None:
        return result
    results = result if isinstance(result, tuple) else (result,)
    stored = tuple(x if target is None else _stored(x, target) for x, target in zip(results, out, strict=True))
    return stored if isinstance(result, tuple) else stored[0]


def _stored(result: Any, target: np.ndarray) -> np.ndarray:
    np.copyto(target, result.numpy(), casting="same_kind")
    return target


def _call(name: str, ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    dtype = kwargs.pop("dtype", None)
    _refuse(name, {key: value for key, value in kwargs.items() if key not in ("casting", "order", "subok")})
    if dtype is not None:
        inputs = tuple(_safely_cast(name, _array(x), dtype) for x in inputs)
    if ufunc is np.divmod:
        return _equal(np.floor_divide)(*inputs), _equal(np.remainder)(*inputs)
    return _equal(ufunc)(*inputs)


def _safely_cast(name: str, x: Any, dtype: Any) -> Any:
    """Cast ``x`` to ``dtype`` like an operand of a universal function: floats do not become integers."""
    if not np.can_cast(x.dtype.numpy, as_dtype(dtype).numpy, "same_kind"):
        raise ArgumentError(f"[{name}] dtype={short_repr(dtype)} is of another kind than {x.dtype.name}; write astype.")
    return x.astype(dtype)


def _reduce(name: str, ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    reduction = _REDUCTIONS.get(ufunc.__name__) if _is_numpys(ufunc) else None
    if reduction is None:
        raise ArgumentError(f"[{name}] exists for {', '.join(_REDUCTIONS)}; write {name}(x.numpy()).")
    x, *given = inputs
    options = {**dict(zip(("axis", "dtype", "out", "keepdims"), given, strict=False)), **kwargs}
    axis, dtype, keepdims = options.pop("axis", 0), options.pop("dtype", None), options.pop("keepdims", False)
    _refuse(name, options)
    return reduction(x if dtype is None else x.astype(dtype), axis=axis, keepdims=keepdims)


def _accumulate(name: str, ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    running = _RUNNING.get(ufunc.__name__) if _is_numpys(ufunc) else None
    if running is None:
        raise ArgumentError(f"[{name}] exists for {', '.join(_RUNNING)}; write {name}(x.numpy()).")
    x, *given = inputs
    options = {**dict(zip(("axis", "dtype", "out"), given, strict=False)), **kwargs}
    axis, dtype = options.pop("axis", 0), options.pop("dtype", None)
    _refuse(name, options)
    return _ours(running)(x, axis=axis, dtype=dtype)


def _outer(name: str, ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, y = map(_array, inputs)
    return _call(name, ufunc, (x.reshape((*x.shape, *(1,) * y.ndim)), y), kwargs)


def _refuse(name: str, options: Mapping[str, Any]) -> None:
    for option, value in options.items():
        if not _is_default(option, value):
            raise ArgumentError(f"[{name}] takes no {option}= for tensors; write rn.where, or take x.numpy().")


def _is_default(parameter: str, value: Any) -> bool:
    """Return True if a parameter that Runnel's function lacks may have this value."""
    if value is np._NoValue:
        return True
    return any(type(value) is type(default) and value == default for default in _DEFAULTS.get(parameter, ()))


def _array(x: Any) -> Any:
    return x if isinstance(x, TensorLike) else asarray(x)


def _is_numpys(ufunc: np.ufunc) -> bool:
    """Return True if NumPy or SciPy has this very function under its name, which others may use too."""
    scipy = sys.modules.get("scipy.special")
    return ufunc in (getattr(np, ufunc.__name__, None), getattr(scipy, ufunc.__name__, None))


def _equal(ufunc: np.ufunc) -> Callable[..., Any]:
    """Return Runnel's function for a universal function."""
    name = _RENAMED.get(ufunc.__name__, ufunc.__name__)
    if _is_numpys(ufunc):
        function: Callable[..., Any] | None = getattr(numpy, name, None)
        if function is not None:
            return function
    raise ArgumentError(
        f"[numpy.{ufunc.__name__}] there is no such function of tensors; write {ufunc.__name__}(x.numpy()) for values."
    )


def array_function(self: Any, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Implement ``__array_function__`` for arguments that include a tensor."""
    name = _NAMES.get(function)
    if function is np.einsum and not kwargs.keys() - {"optimize"}:
        return _ours("einsum")(*args)
    if name is None:
        return function(*map(_values, args), **{key: _values(value) for key, value in kwargs.items()})
    numpys, _, own = name.partition("=")
    if numpys == "where" and len(args) + len(kwargs) == 1:
        return _ours("nonzero")(*args, **kwargs)
    return _ours(own or numpys)(**_named(f"numpy.{numpys}", FUNCTIONS[name].split(), args, kwargs))


def _named(name: str, parameters: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments under the names of Runnel's parameters."""
    numpys = [parameter.partition(":")[0].rstrip("-~") for parameter in parameters]
    named = {**dict(zip(numpys, args, strict=False)), **kwargs}
    own: dict[str, Any] = {}
    for parameter, value in named.items():
        entry = next((p for p in parameters if p.partition(":")[0].rstrip("-~") == parameter), "-")
        if entry.endswith("-"):
            if not _is_default(parameter, value):
                raise ArgumentError(f"[{name}] takes no {parameter}= for tensors; take x.numpy().")
        elif not entry.endswith("~") and value is not np._NoValue:
            ours = entry.rpartition(":")[2]
            own[ours] = _array(value) if ours == "indices" else value
    return own


def _trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    """Return sums of diagonals over the first two axes, as NumPy does; Runnel's ``trace`` uses the last two."""
    return total(_ours("diagonal")(x, offset, axis1, axis2), axis=-1, dtype=dtype)


def _ours(name: str) -> Callable[..., Any]:
    if name == "trace":
        return _trace
    function: Callable[..., Any] = attrgetter(name)(numpy)
    return function


def _values(x: Any) -> Any:
    """Replace tensors in ``x`` by arrays."""
    if isinstance(x, TensorLike):
        return np.asarray(x)
    if type(x) in (list, tuple):
        return type(x)(map(_values, x))
    return x


def _numpys(name: str) -> Any:
    """Return NumPy's function, or None if its release does not have it."""
    try:
        return attrgetter(name.partition("=")[0])(np)
    except AttributeError:
        return None


_NAMES: Final = {function: name for name in FUNCTIONS if (function := _numpys(name)) is not None}
