"""Compile LLVM modules to object files, several at the same time.

llvmlite holds one lock during every call into LLVM. LLVM itself lets threads work on modules of different contexts, so
the longest call, which generates the machine code of a module, is made here without that lock.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from runnel.backends.host import locks

if TYPE_CHECKING:
    import llvmlite.binding as llvm

T = TypeVar("T")


def emit(machine: llvm.TargetMachine, module: llvm.ModuleRef) -> bytes:
    """Return the object file of ``module``. ``machine`` and the module's context must be in use by this thread only."""
    from llvmlite.binding import ffi

    library: Any = ffi.lib
    generate = library.LLVMPY_TargetMachineEmitToMemory
    with ffi.OutputString() as message, _emitting():
        buffer = getattr(generate, "_cfn", generate)(machine, module, 1, message)
        if not buffer:
            raise RuntimeError(str(message))
    try:
        return ctypes.string_at(library.LLVMPY_GetBufferStart(buffer), library.LLVMPY_GetBufferSize(buffer))
    finally:
        library.LLVMPY_DisposeMemoryBuffer(buffer)


def in_threads(tasks: Sequence[Callable[[], T]], count: int) -> list[T]:
    """Return the results of ``tasks``, run by up to ``count`` threads, of which the caller is one."""
    results: dict[int, T] = {}
    waiting = list(reversed(range(len(tasks))))

    def work() -> None:
        with contextlib.suppress(IndexError):
            while True:
                number = waiting.pop()
                results[number] = tasks[number]()

    def help_out() -> None:
        with contextlib.suppress(Exception):  # the caller repeats the task, and raises its error
            work()

    helpers = []
    try:
        for _ in range(min(count, len(tasks)) - 1):
            helper = threading.Thread(target=help_out, name="runnel-compiler")
            helper.start()
            helpers.append(helper)
    except RuntimeError:  # no more threads, or the interpreter is ending
        pass
    try:
        work()
    finally:
        waiting.clear()
        for helper in helpers:  # they use the caller's modules
            while helper.is_alive():
                with contextlib.suppress(KeyboardInterrupt):
                    helper.join()
    return [results[number] if number in results else task() for number, task in enumerate(tasks)]


_GATE: Final = locks.reentrant()
_EMITTING: Final[dict[int, threading.Lock]] = {}  # by thread: a lock that is held as long as it generates code


@contextlib.contextmanager
def _emitting() -> Iterator[None]:
    thread = threading.get_ident()
    with _GATE:
        busy = _EMITTING[thread] = threading.Lock()
        busy.acquire()
    try:
        yield
    finally:
        _EMITTING.pop(thread, None)
        busy.release()


def _llvm_lock() -> Any:
    """Return llvmlite's lock around its calls; None while llvmlite is not loaded, or if its lock is elsewhere."""
    ffi = sys.modules.get("llvmlite.binding.ffi")
    return getattr(getattr(ffi, "lib", None), "_lock", None)


_LOCKED: Final[list[Any]] = []  # by forks in progress


def _before_fork() -> None:
    """Wait until no thread is in LLVM, whose internal locks a child would inherit."""
    lock = _llvm_lock()
    if lock is not None:
        lock.__enter__()
    _LOCKED.append(lock)
    _GATE.acquire()
    for thread, busy in list(_EMITTING.items()):
        if thread != threading.get_ident() and busy.acquire(timeout=locks.LONGEST_WAIT):
            busy.release()


def _after_fork() -> None:
    _GATE.release()
    lock = _LOCKED.pop()
    if lock is not None:
        lock.__exit__(None, None, None)


def _after_fork_in_child() -> None:
    _after_fork()
    _EMITTING.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
