"""Python functions in the middle of programs: ``pure_callback``, and ``debug.print`` and ``debug.callback``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from runnel.core import pytree
from runnel.core.avals import ShapedArray, aval, common_device
from runnel.core.devices import Device
from runnel.core.dispatch import RunTimeNumber, apply
from runnel.core.dtypes import Dtype, as_dtype
from runnel.core.errors import ArgumentError
from runnel.ops.callbacks import Callback, as_expected, callback_p
from runnel.tensor import tracing
from runnel.tensor.creation import asarray
from runnel.tensor.effects import no_token, order_of
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor


class ShapeDtypeStruct:
    """The ``shape`` and ``dtype`` of an array that does not exist yet."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: Iterable[int], dtype: Dtype) -> None:
        self.shape = tuple(shape)
        self.dtype = as_dtype(dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"ShapeDtypeStruct({self.shape}, {self.dtype.name})"


def pure_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, **kwargs: Any) -> Any:
    """Call ``callback(*args, **kwargs)`` with NumPy arrays for the tensors, also in the middle of a compiled
    function.

    The function must be pure: its results depend only on its arguments, and it has no side effects. A program may
    omit a call whose results are not read.

    Args:
        callback: takes ``args`` and ``kwargs`` with tensors as read-only arrays, and returns arrays.
        result_shape_dtypes: describes the results: a tree of objects with ``shape`` and ``dtype`` (tensors, arrays,
            ``runnel.ShapeDtypeStruct(shape, dtype)``). ArgumentError if the callback returns anything else.
        args: trees of tensors and other values; kwargs likewise.

    The call raises the errors of the callback. Its results have no gradient; use ``runnel.custom_vjp`` for one.
    """
    leaves, structure = pytree.flatten(result_shape_dtypes)
    avals = tuple(_expected(leaf) for leaf in leaves)

    def called(arguments: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        arrays, structure_of_results = pytree.flatten(callback(*arguments, **named))
        if structure_of_results != structure:
            raise ArgumentError(
                f"[pure_callback] the function gave {len(arrays)} arrays in another structure than "
                f"result_shape_dtypes, which has {len(avals)}."
            )
        return [as_expected("pure_callback", x, a) for x, a in zip(arrays, avals, strict=True)]

    return pytree.unflatten(structure, _call("pure_callback", called, avals, args, kwargs, ordered=False))


def callback(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Call ``function(*args, **kwargs)`` for its side effects at each run of a program, with NumPy arrays for the
    tensors.

    Calls are made in program order, in loops at each iteration. Results are ignored. An error of the function ends
    the run before any Variable has changed.
    """

    def called(arguments: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        function(*arguments, **named)
        return []

    _call("debug.callback", called, (), args, kwargs, ordered=True)


def print_values(fmt: str, *args: Any, **kwargs: Any) -> None:
    """Print ``fmt.format(*args, **kwargs)`` with the values that tensors have when the program runs:
    ``rn.debug.print("loss {}, rate {lr}", loss, lr=rate)``."""
    if not isinstance(fmt, str):
        raise ArgumentError(f"[debug.print] the first argument must be a format string; got {type(fmt).__name__}.")

    def called(arguments: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        print(fmt.format(*arguments, **named))
        return []

    _call("debug.print", called, (), args, kwargs, ordered=True)


def _expected(leaf: Any) -> ShapedArray:
    if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
        raise ArgumentError(
            "[pure_callback] result_shape_dtypes is a tree of things with shape and dtype, such as "
            f"runnel.ShapeDtypeStruct((2, 3), 'float32'); got {leaf!r}."
        )
    return aval(tuple(leaf.shape), as_dtype(leaf.dtype))


def _call(
    name: str,
    called: Callable[[tuple[Any, ...], dict[str, Any]], list[Any]],
    results: tuple[ShapedArray, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    ordered: bool,
) -> list[Tensor]:
    leaves, structure = pytree.flatten((args, kwargs))
    places = [i for i, x in enumerate(leaves) if isinstance(x, (ArrayMethods, np.ndarray, RunTimeNumber))]
    numbers = {i for i in places if isinstance(leaves[i], RunTimeNumber)}
    operands = [asarray(leaves[i]).without_tape() if ordered else asarray(leaves[i]) for i in places]

    def function(*arrays: Any) -> list[Any]:
        arguments = list(leaves)
        for i, array in zip(places, arrays, strict=True):
            arguments[i] = array.item() if i in numbers else _own(array)
        return called(*pytree.unflatten(structure, arguments))

    for i in places:
        leaves[i] = None
    call = _in_order if ordered else _at_any_time
    return call(Callback(function, results, name), operands)


def _own(array: Any) -> Any:
    """Copy an array out of the program's memory."""
    copy = np.array(array)
    copy.flags.writeable = False
    return copy


def _device(function: Callback, operands: Sequence[Tensor]) -> Device | None:
    """Return the device of the arguments; None, for the default, if they contain no tensor."""
    return common_device(function.name, [x.aval for x in operands]) if operands else None


def _at_any_time(function: Callback, operands: Sequence[Tensor]) -> list[Tensor]:
    token = no_token(_device(function, operands))
    return list(apply(callback_p, *operands, token, callback=function, ordered=False))


def _in_order(function: Callback, operands: Sequence[Tensor]) -> list[Tensor]:
    order = order_of(tracing.ACTIVE.trace, _device(function, operands))
    *results, token = apply(callback_p, *operands, order.read(), callback=function, ordered=True)
    order.assign(token)
    return results
