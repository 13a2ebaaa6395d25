"""Python functions that programs call at their place in the order, on the thread that runs the program.

What machine code calls is :attr:`HostFunction.address`. It gets the thread block and the words of ``args``, from which
the function's buffers are found. The GIL is taken for the call. An error ends the run as a fault does, with the status
``layout.HOST``: nothing that lasts has been written by then, and :func:`failure` gives the error to who started it.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from runnel.runtime import layout

Array = np.ndarray[Any, Any]
_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class _Failure(threading.local):
    error: BaseException | None = None


_FAILURE: Final = _Failure()


class Operand(NamedTuple):
    """A dense array that a program hands over."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


_BY_ADDRESS: Final[weakref.WeakValueDictionary[int, HostFunction]] = weakref.WeakValueDictionary()


class HostFunction:
    """``function(*inputs)`` gives an array for each of ``outputs``; the inputs are read-only and gone after the call.

    ``where`` is the user's line. Who has the address keeps this object.
    """

    def __init__(
        self,
        function: Callable[..., Sequence[Array]],
        inputs: Sequence[Operand],
        outputs: Sequence[Operand],
        where: str,
    ) -> None:
        self.function = function
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.where = where
        self._callback = _PROTOTYPE(self._called)
        self.address: int = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        _BY_ADDRESS[self.address] = self

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Call the function on arrays and put what it gives into others."""
        made = self.function(*inputs)
        for target, value in zip(outputs, made, strict=True):
            np.copyto(target, value, casting="no")

    def _called(self, thread: int, args: int) -> None:
        words = (ctypes.c_int64 * (layout.FAULT + 1)).from_address(thread)
        try:
            bases = words[layout.BASES]
            given = (ctypes.c_int64 * (2 * (len(self.inputs) + len(self.outputs)))).from_address(args)
            arrays: list[Array] = []
            for i, operand in enumerate((*self.inputs, *self.outputs)):
                base = ctypes.c_int64.from_address(bases + 8 * given[2 * i]).value
                arrays.append(_array(base + given[2 * i + 1], operand, writeable=i >= len(self.inputs)))
            self.run(arrays[: len(self.inputs)], arrays[len(self.inputs) :])
        except BaseException as error:
            _FAILURE.error = error
            words[layout.FAULT] = layout.HOST


def _array(address: int, operand: Operand, *, writeable: bool) -> Array:
    count = int(np.prod(operand.shape, dtype=np.int64))
    if not count:
        return np.empty(operand.shape, operand.dtype)
    memory: Any = (ctypes.c_byte * (count * operand.dtype.itemsize)).from_address(address)
    array: Array = np.frombuffer(memory, operand.dtype, count).reshape(operand.shape)
    array.flags.writeable = writeable
    return array


def at(address: int) -> HostFunction:
    """The function whose address that is."""
    return _BY_ADDRESS[address]


def failure() -> BaseException:
    """The error by which the last run of this thread ended."""
    error, _FAILURE.error = _FAILURE.error, None
    return error if error is not None else RuntimeError("A function of the host failed, and its error is lost.")
