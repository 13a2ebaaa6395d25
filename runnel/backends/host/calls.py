"""Python functions that programs call in program order, on the thread that runs the program.

Machine code calls :attr:`HostFunction.address` with the thread block and the words of ``args``, which name the
function's buffers. The call acquires the GIL. An error ends the run like a fault, with the status ``layout.HOST``: no
persistent state has been written by then, and :func:`failure` returns the error.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from runnel.backends.host import layout
from runnel.core.errors import StateError

Array = np.ndarray[Any, Any]
_ENTRY_WORDS: Final = layout.EXPECTED_WRITES + 1  # of a lock entry
_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


INSIDE: Final[list[int]] = []  # threads inside host functions, once for each call


class _Thread(threading.local):
    """Per thread: the error that ended its last run, and the launch blocks of runs that wait for the host."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.launches: list[int] = []


_THREAD: Final = _Thread()


class Operand(NamedTuple):
    """A dense array that a program passes to the host."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


_BY_ADDRESS: Final[weakref.WeakValueDictionary[int, HostFunction]] = weakref.WeakValueDictionary()


class HostFunction:
    """``function(*inputs)`` returns an array for each of ``outputs``; the inputs are read-only and invalid after the
    call.

    ``where`` is the user's source line. Users of the address must keep this object alive.
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
        """Call the function on ``inputs`` and copy its results to ``outputs``."""
        results = self.function(*inputs)
        for target, value in zip(outputs, results, strict=True):
            np.copyto(target, value, casting="no")

    def called(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> int:
        """Return the same within a run; an error is saved for :func:`failure`. Returns the status: 0 or ``HOST``."""
        INSIDE.append(threading.get_ident())
        try:
            self.run(inputs, outputs)
        except BaseException as error:
            _THREAD.error = error
            return layout.HOST
        finally:
            INSIDE.remove(threading.get_ident())
        return 0

    def _called(self, thread: int, args: int) -> None:
        words = (ctypes.c_int64 * (layout.LAUNCH + 1)).from_address(thread)
        with running(words[layout.LAUNCH]):
            bases = words[layout.BASES]
            words_of_args = (ctypes.c_int64 * (2 * (len(self.inputs) + len(self.outputs)))).from_address(args)
            arrays: list[Array] = []
            for i, operand in enumerate((*self.inputs, *self.outputs)):
                base = ctypes.c_int64.from_address(bases + 8 * words_of_args[2 * i]).value
                arrays.append(_array(base + words_of_args[2 * i + 1], operand, writeable=i >= len(self.inputs)))
            status = self.called(arrays[: len(self.inputs)], arrays[len(self.inputs) :])
        if status:
            words[layout.FAULT] = status


def _array(address: int, operand: Operand, *, writeable: bool) -> Array:
    count = int(np.prod(operand.shape, dtype=np.int64))
    if not count:
        return np.empty(operand.shape, operand.dtype)
    memory: Any = (ctypes.c_byte * (count * operand.dtype.itemsize)).from_address(address)
    array: Array = np.frombuffer(memory, operand.dtype, count).reshape(operand.shape)
    array.flags.writeable = writeable
    return array


def at(address: int) -> HostFunction:
    """Return the function at ``address``."""
    return _BY_ADDRESS[address]


@contextlib.contextmanager
def running(launch: int) -> Iterator[None]:
    """Mark this thread, for the block, as inside the run whose launch block is at ``launch``."""
    _THREAD.launches.append(launch)
    try:
        yield
    finally:
        _THREAD.launches.pop()


def locks_held() -> dict[int, bool]:
    """Return the state locks that runs of this thread hold while they wait for the host, and whether exclusively."""
    exclusive_of: dict[int, bool] = {}
    for block in _THREAD.launches:
        words = (ctypes.c_int64 * (layout.LOCK_COUNT + 1)).from_address(block)
        count = words[layout.LOCK_COUNT]
        entries = (ctypes.c_int64 * (_ENTRY_WORDS * count)).from_address(words[layout.LOCKS]) if count else ()
        for i in range(count):
            address, exclusive = entries[_ENTRY_WORDS * i : _ENTRY_WORDS * i + 2]
            exclusive_of[address] = exclusive_of.get(address, False) or bool(exclusive)
    return exclusive_of


def require_free(entries: Iterable[Sequence[int]]) -> None:
    """Raise if a run that takes these locks would wait for the run that this thread is inside."""
    holding = locks_held()
    for address, exclusive, *_ in entries:
        if address in holding and (exclusive or holding[address]):
            raise refused()


def refused() -> StateError:
    """Return the error of a call that would wait for itself."""
    return StateError(
        "[callback] a function that a program calls uses a Variable which this program is changing; pass the value as "
        "an argument, or use it after the call."
    )


def failure() -> BaseException:
    """Return the error that ended the last run of this thread."""
    error, _THREAD.error = _THREAD.error, None
    return error if error is not None else RuntimeError("A function of the host failed, and its error is lost.")
