"""NumPy arrays and scalars in an observed run.

An array from outside is an input of the program wherever an op reads it: its shape and dtype are checked, not its
content. NumPy itself computes only with numbers, and with arrays that the run made of numbers: those are constants of
the program. Any other use of NumPy ends the observation with a sentence that names the function of Runnel to write.
"""

from __future__ import annotations

import operator
import sys
from typing import Any, Final, NoReturn

import numpy as np

from runnel.compile.observe.calls import returning
from runnel.compile.observe.containers import content
from runnel.compile.observe.numbers import bare
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.sources import Source
from runnel.compile.observe.values import SYMBOLIC, described, is_python_class
from runnel.core.dtypes import from_numpy
from runnel.tensor import tensor as tensors, tracing
from runnel.tensor.methods import ArrayMethods

PACKAGE: Final = __name__.partition(".")[0]
LARGEST: Final = 1 << 20  # bytes of an array that is compared at each call
_PACKAGES: Final = ("numpy", "ml_dtypes")
_SHAPED: Final = frozenset({"shape", "dtype", "ndim", "size", "itemsize", "nbytes"})
IN_PLACE: Final = frozenset(f for name, f in vars(operator).items() if name.startswith("i") and callable(f)) - {
    operator.index, operator.is_, operator.is_not, operator.inv, operator.invert, operator.indexOf, operator.itemgetter
}  # fmt: skip
CALLABLES: Final = (np.ufunc, type(np.sum), np.vectorize)
# Functions and methods that depend on their arguments alone and change none of them.
_PURE: Final = frozenset(
    {
        "__getattr__",
        "all", "any", "append", "arange", "argmax", "argmin", "argsort", "array", "asarray", "astype", "broadcast_to",
        "ceil", "clip", "concat", "concatenate", "copy", "cumprod", "cumsum", "diag", "diff", "dot", "dtype",
        "expand_dims", "eye", "finfo", "flatten", "flip", "floor", "full", "full_like", "geomspace", "hstack",
        "identity", "iinfo", "interp", "is_integer", "isclose", "isscalar", "issubdtype", "item", "linspace",
        "logspace", "max", "mean", "median", "meshgrid", "min", "ndim", "ones", "ones_like", "outer", "pad",
        "permute_dims", "prod", "promote_types", "ravel", "repeat", "reshape", "result_type", "roll", "round", "shape",
        "size", "sort", "split", "squeeze", "stack", "std", "sum", "take", "tile", "tobytes", "tolist", "trace",
        "transpose", "tri", "tril", "triu", "unique", "var", "vstack", "where", "zeros", "zeros_like",
    }
)  # fmt: skip


def is_numpy(kind: type) -> bool:
    """Return whether values of a class are NumPy's arrays or scalars."""
    return issubclass(kind, (np.ndarray, np.generic))


def is_of_numpy(thing: Any) -> bool:
    """Return whether a function or class belongs to NumPy, its random numbers apart."""
    module = str(getattr(thing, "__module__", None) or "")
    return module.partition(".")[0] in _PACKAGES and not module.startswith("numpy.random")


# Values from outside --------------------------------------------------------------------------------------------------


def check_array(rec: Recorder, value: np.ndarray, source: Source) -> None:
    """Check the shape and dtype of an array, which ops may read as an input."""
    fails = "type({v}) is not {0} or {v}.shape != {1} or {v}.dtype != {2}"
    rec.log.check(source, fails, f"shape and dtype of {source}", (type(value), value.shape, value.dtype))
    trace = tracing.ACTIVE.trace
    if trace is not None:
        trace.known_arrays[id(value)] = value


def check_kind_of_scalar(rec: Recorder, value: np.generic, source: Source) -> None:
    """Check the type of a number, and the value of any other scalar."""
    if isinstance(value, (np.integer, np.floating)):
        rec.log.check(source, "type({v}) is not {0}", f"type of {source}", (type(value),))
    else:
        _check_scalar(rec, value, source)


def _check_scalar(rec: Recorder, value: np.generic, source: Source) -> None:
    bits = rec.memo.setdefault(("bits", id(value)), value.tobytes())
    rec.keep(value)
    rec.log.check(source, "type({v}) is not {0} or {v}.tobytes() != {1}", f"{source}", (type(value), bits))


def as_number(rec: Recorder, value: Any) -> Any:
    """Convert a scalar from outside to the Python number it is beside a tensor; return other values as they are."""
    source = rec.source_of(value) if isinstance(value, (np.floating, np.integer)) else None
    if source is None:
        return value
    number = value.item()
    return rec.reach_symbolic(number, rec.log.source(source, "{p}.item()", f"{source}.item()", number))


def number_of(otherwise: Any) -> Any:
    """Return an answer to ``float()`` or ``int()`` that takes scalars of NumPy's."""

    def answer(rec: Recorder, *args: Any, **kwargs: Any) -> Any:
        return otherwise(rec, *[as_number(rec, x) for x in args], **kwargs)

    return answer


def as_input(rec: Recorder, value: np.ndarray) -> Any:
    """Return the tensor that ops read in place of an array from outside."""
    known = rec.memo.get(("input", id(value)))
    if known is None:
        trace: Any = tracing.ACTIVE.trace
        dtype = _dtype_of(value)
        known = value if dtype is None or trace is None else tensors.traced_array(trace, value, dtype)
        rec.memo["input", id(value)] = known
    return known


def _dtype_of(value: np.ndarray) -> Any:
    try:
        return from_numpy(value.dtype)
    except TypeError:
        return None


def check_content(rec: Recorder, value: np.ndarray) -> np.ndarray:
    """Compare an array that a function of Runnel looks into, at each call, with a copy of what it holds now."""
    source = rec.source_of(value)
    if source is None:
        return value
    if value.dtype.hasobject or value.nbytes > LARGEST:
        rec.refuse(
            f"'{source}' is an array of {value.nbytes:,} bytes, all of which would be compared at each call",
            "pass rn.asarray of it",
        )
    snapshot = rec.memo.get(("bits", id(value)))
    if snapshot is None:
        snapshot = rec.memo["bits", id(value)] = np.array(value, order="K")
        snapshot.flags.writeable = False
    rec.log.check(source, "array_differs({v}, {0})", f"content of {source}", (snapshot,))
    return value


def array_differs(value: Any, expected: np.ndarray) -> bool:
    """Return whether an array of the same shape and dtype holds other bits than ``expected``."""
    if value.flags.c_contiguous and expected.flags.c_contiguous:
        return bool((value.reshape(-1).view(np.uint8) != expected.reshape(-1).view(np.uint8)).any())
    return bool(value.tobytes() != expected.tobytes())


def look_into(rec: Recorder, value: Any, source: Source | None) -> None:
    """Let code that is not observed look into a value of NumPy's: a scalar counts by value, an array is refused."""
    if source is None:
        return
    if isinstance(value, np.ndarray):
        _refuse(rec, f"NumPy's array '{source}' is looked into", "")
    _check_scalar(rec, value, source)


# Code of NumPy --------------------------------------------------------------------------------------------------------


def called(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function or class of NumPy's that is given numbers, and arrays made of them."""
    name = getattr(function, "__name__", "")
    is_scalar = isinstance(function, type) and issubclass(function, np.generic)
    if (name not in _PURE and type(function) is not np.ufunc and not is_scalar) or "out" in kwargs:
        _refuse(rec, f"numpy.{name}() is called", name)
    if type(function) is np.ufunc and len(args) > function.nin:
        _refuse(rec, f"numpy.{name}() writes into an array", name)
    return returning(_computed(rec, function, f"numpy.{name}()", name, args, kwargs))


def method(rec: Recorder, value: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a method of a scalar, a dtype, or an array that the run made."""
    name = function.__name__
    if isinstance(value, np.ndarray) and (rec.source_of(value) is not None or name not in _PURE or name == "sort"):
        _refuse(rec, f"{name}() of {_described(rec, value)} is called", name)
    content(rec, value)
    return returning(_computed(rec, function, f"{name}()", name, args, kwargs))


def random_method(rec: Recorder, value: Any, function: Any, args: Any, kwargs: Any) -> Any:
    """Refuse to draw NumPy's random numbers."""
    rec.refuse(
        f"NumPy's random numbers are drawn ({function.__name__})", "use runnel's, or pass the array as an argument"
    )


def operate(rec: Recorder, function: Any, *operands: Any) -> Any:
    """Apply an operator to scalars, or to arrays that the run made."""
    if function in IN_PLACE and isinstance(operands[0], np.ndarray):
        _refuse(rec, f"{_described(rec, operands[0])} is changed in place", "")
    return _computed(rec, function, f"{function.__name__}()", "", operands, {})


def item(rec: Recorder, function: Any, value: Any, *rest: Any) -> Any:
    """Read the length of an array, or an item by numbers and slices."""
    if function is len:
        return len(value)
    source = rec.source_of(value)
    if function is operator.getitem and source is not None and _is_position(rest[0]):
        key = _plain(content(rec, rest[0]))
        result = value[key]
        return rec.reach(result, rec.log.source(source, "{p}[{0}]", f"{source}[{key!r}]", result, (key,)))
    if function.__name__ not in ("getitem", "iter"):
        _refuse(rec, f"an item of {_described(rec, value)} is set", "")
    return _computed(rec, function, "an item", "", (value, *rest), {})


def _is_position(key: Any) -> bool:
    return type(key) in (int, slice, *SYMBOLIC) or (type(key) is tuple and all(map(_is_position, key)))


def _plain(key: Any) -> Any:
    if type(key) is slice:
        return slice(bare(key.start), bare(key.stop), bare(key.step))
    return tuple(map(_plain, key)) if type(key) is tuple else bare(key)


def attribute(rec: Recorder, value: Any, name: str) -> Any:
    """Read ``value.name`` of something of NumPy's."""
    result = getattr(value, name)
    if isinstance(value, np.ndarray):
        if rec.source_of(value) is not None and name not in _SHAPED and not callable(result):
            _refuse(rec, f"{name} of {_described(rec, value)} is read", name)
    else:
        content(rec, value)
    return result


def is_own_attribute(kind: type, name: str) -> bool:
    """Return whether an attribute is NumPy's own, and not one that a user's class adds or replaces."""
    owner = next((base for base in kind.__mro__ if name in base.__dict__), None)
    return owner is not None and (owner is object or not is_python_class(owner))


def _computed(rec: Recorder, function: Any, what: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute a constant of the program, of numbers and of arrays that the run made."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, np.ndarray) and rec.source_of(value) is not None:
            _refuse(rec, f"NumPy computes with the array '{rec.source_of(value)}' ({what})", name)
        if isinstance(value, ArrayMethods) or (callable(value) and not isinstance(value, type)):
            _refuse(rec, f"NumPy is given {described(value)} ({what})", name)
        content(rec, value)
    try:
        with np.errstate(all="raise"):
            return function(*map(bare, args), **{key: bare(x) for key, x in kwargs.items()})
    except FloatingPointError as error:  # of which NumPy warns at each call, or not, as it is told
        rec.refuse(f"NumPy finds an error in what it computes: {error}", "compute it outside the compiled function")


def _described(rec: Recorder, value: Any) -> str:
    source = rec.source_of(value)
    return "an array of NumPy's" if source is None else f"the array '{source}'"


def _refuse(rec: Recorder, reason: str, name: str) -> NoReturn:
    """End the observation, and name the function of Runnel that does the same."""
    offered = name if name in vars(sys.modules[PACKAGE]) or name in sys.modules[PACKAGE].__all__ else ""
    if offered:
        rec.refuse(reason, f"write rn.{offered}(...), on rn.asarray(array) where it is given an array")
    rec.refuse(reason, "use Runnel's functions on rn.asarray(array), or call it outside the compiled function")
