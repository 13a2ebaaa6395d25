"""NumPy's code in an observed run: it runs unobserved, and depends on its arguments alone."""

from __future__ import annotations

import functools
from types import FunctionType, MethodType
from typing import Any, Final

import numpy as np

from runnel.compile import arrays, boundary, numpy_settings, operations, recomputed
from runnel.compile.observe.classes import MISSING, is_python_class
from runnel.compile.observe.containers import content
from runnel.compile.observe.exposure import stands_for_values
from runnel.compile.observe.plain import returning
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import is_class

NAME: Final = "numpy"
_CHANGE_ARRAYS: Final = frozenset(
    {"fill", "itemset", "partition", "put", "resize", "setfield", "setflags", "sort", "byteswap"}
)
_FILES: Final = frozenset({"dump", "tofile", "load", "save", "savez", "savetxt", "loadtxt", "fromfile", "memmap"})
_CHANGE_FIRST: Final = frozenset({"copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis"})


def is_numpys(function: Any) -> bool:
    module = str(getattr(function, "__module__", None) or "")
    return module.partition(".")[0] in (NAME, "ml_dtypes") and not module.startswith("numpy.random")


def looks_into(kind: type) -> bool:
    """Whether objects of a class made in Python are read by NumPy's code, which runs unobserved."""
    return is_python_class(kind) and str(kind.__module__).partition(".")[0] == NAME


def called(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of NumPy's depends on its arguments alone, and changes none of them but those it is named for."""
    name = getattr(function, "__name__", "")
    numpy_settings.require_untouched(rec, function, args)
    if looks_into(type(function)):
        content(rec, function)
    if name in _FILES:
        rec.refuse(f"numpy.{name}() reads or writes a file", "do it outside of the compiled function")
    changed = [x for x in _changed_by(function, name, args, kwargs) if isinstance(x, np.ndarray)]
    for array in changed:
        if _is_from_outside(rec, array):
            rec.refuse(f"numpy.{name}() changes an array from outside", "do it outside of the compiled function")
    again = None if changed else recomputed.called(rec, function, args, kwargs)
    if again is not None:
        return returning(again[0])
    if name in recomputed.BY_MEMORY:
        rec.refuse(f"numpy.{name}() asks where arrays lie in memory", "ask outside of the compiled function")
    if any(arrays.is_traceable(type(x)) for x in args):
        return returning(boundary.run(rec, function, args, kwargs))
    return returning(operations.protected(rec, _calls_numpy(rec, function, args, kwargs), args))


def _changed_by(function: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Those of the arguments that a function of NumPy's writes into."""
    out = kwargs.get("out")
    changed = [*(out if type(out) is tuple else (out,)), *args[: name in _CHANGE_FIRST]]
    return [*changed, *args[function.nin :]] if type(function) is np.ufunc else changed


def _calls_numpy(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """NumPy looks into its arguments, and calls functions of the user's among them."""
    for value in (*args, *kwargs.values()):
        content(rec, value)
    values = tuple([_called_observed(rec, recomputed.read_only(rec, x)) for x in args])
    with numpy_settings.Errors(rec):
        return rec.calls_c(function, values, {name: _called_observed(rec, x) for name, x in kwargs.items()})


def _called_observed(rec: Recorder, value: Any) -> Any:
    kind = type(value)
    if kind in (FunctionType, MethodType, functools.partial):
        return value if is_numpys(value) else rec.callback(value)
    is_object = is_python_class(kind) and not is_class(value) and not stands_for_values(kind)
    return rec.callback(value) if is_object and callable(value) else value


def _is_from_outside(rec: Recorder, array: np.ndarray) -> bool:
    """Whether the memory of an array may belong to one from outside."""
    if rec.source_of(array) is not None:
        return not recomputed.made_own(rec, array)
    return array.base is not None


def number_of(convert: Any, otherwise: Any) -> Any:
    """``float()`` and ``int()``, also of what NumPy computes of arrays from outside."""

    def answer(rec: Recorder, *args: Any, **kwargs: Any) -> Any:
        number = recomputed.number(rec, convert, args[0]) if len(args) == 1 and not kwargs else MISSING
        return otherwise(rec, *args, **kwargs) if number is MISSING else number

    return answer


def compiled_by_cython(rec: Recorder, function: Any, args: Any, kwargs: Any) -> Any:
    rec.policy.refuse_c(rec, function)


def method(rec: Recorder, value: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = function.__name__
    numpy_settings.require_untouched(rec, function, (value, *args))
    if name in _FILES:
        rec.refuse(f"{name}() writes a file", "do it outside of the compiled function")
    if name in _CHANGE_ARRAYS and isinstance(value, np.ndarray) and _is_from_outside(rec, value):
        rec.refuse(f"{name}() changes an array from outside", "do it outside of the compiled function")
    if name not in _CHANGE_ARRAYS:
        again = recomputed.called(rec, function, (value, *args), kwargs, method=name)
        if again is not None:
            return returning(again[0])
    content(rec, value)
    seen = recomputed.read_only(rec, value)
    bound = function if getattr(function, "__self__", None) is seen else getattr(seen, name)
    return returning(operations.protected(rec, _calls_numpy(rec, bound, args, kwargs), (value,)))


def random_method(rec: Recorder, value: Any, function: Any, args: Any, kwargs: Any) -> Any:
    rec.refuse(
        f"NumPy's random numbers are drawn ({function.__name__})", "use runnel's, or pass the array as an argument"
    )
