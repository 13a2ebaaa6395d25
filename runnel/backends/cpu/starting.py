"""Starts of programs as built-in functions of Python: machine code that follows CPython's calling convention.

A call through ``ctypes`` takes three times as long as everything else that a short program needs. A start takes the
addresses of inputs and outputs, writes them into the program's table of base pointers, and runs the program, if that
can be done at once: by the thread that ran it last, with the GIL held, and without waiting.

The convention is ``METH_FASTCALL`` of CPython's stable ABI (Python/C API Reference, "Common Object Structures").
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from runnel.backends.cpu import driver
from runnel.backends.cpu.link import Function
from runnel.backends.host import calls as host
from runnel.backends.host.layout import (
    AT_ONCE,
    BASES,
    BUSY,
    INSIDE,
    LATER,
    LINE,
    OWNER,
    SLOT_COUNT,
    SLOTS,
    START,
)

_METH_FASTCALL: Final = 0x80
_SYMBOL: Final = "rn_start"


def text() -> str:
    """``start(self, args, count)`` in LLVM text; ``self`` is a Python int, the address of the launch block."""
    return f"""
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare i64 @PyList_Size(ptr)
declare i64 @PyThread_get_thread_ident()
declare ptr @PyErr_Occurred()
declare i32 @PyErr_BadArgument()

define ptr @{_SYMBOL}(ptr %self, ptr %args, i64 %count) {{
entry:
  %block = call ptr @PyLong_AsVoidPtr(ptr %self)
  %start.at = getelementptr i64, ptr %block, i64 {START}
  %start = load ptr, ptr %start.at
  %expected.at = getelementptr i64, ptr %start, i64 {SLOT_COUNT}
  %expected = load i64, ptr %expected.at
  %bases.at = getelementptr i8, ptr %block, i64 {LINE + 8 * BASES}
  %bases = load ptr, ptr %bases.at
  %slots = getelementptr i64, ptr %start, i64 {SLOTS}
  %fits = icmp eq i64 %count, %expected
  br i1 %fits, label %next, label %misfit
misfit:
  %ignored = call i32 @PyErr_BadArgument()
  ret ptr null
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %write ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %read, label %written
read:
  %arg.at = getelementptr ptr, ptr %args, i64 %i
  %arg = load ptr, ptr %arg.at
  %address = call ptr @PyLong_AsVoidPtr(ptr %arg)
  %null = icmp eq ptr %address, null
  br i1 %null, label %doubtful, label %write
doubtful:
  %error = call ptr @PyErr_Occurred()
  %no.number = icmp ne ptr %error, null
  br i1 %no.number, label %failed, label %write
failed:
  ret ptr null
write:
  %slot.at = getelementptr i64, ptr %slots, i64 %i
  %slot = load i64, ptr %slot.at
  %base.at = getelementptr ptr, ptr %bases, i64 %slot
  store ptr %address, ptr %base.at
  %i.next = add i64 %i, 1
  br label %next
written:
  %at.once.at = getelementptr i64, ptr %start, i64 {AT_ONCE}
  %at.once = load ptr, ptr %at.once.at
  %short = icmp ne ptr %at.once, null
  br i1 %short, label %look, label %later
look:
  %owner.at = getelementptr i64, ptr %block, i64 {OWNER}
  %owner = load i64, ptr %owner.at
  %thread = call i64 @PyThread_get_thread_ident()
  %own = icmp eq i64 %owner, %thread
  %inside.at = getelementptr i64, ptr %start, i64 {INSIDE}
  %inside = load ptr, ptr %inside.at
  %calls = call i64 @PyList_Size(ptr %inside)
  %free = icmp eq i64 %calls, 0
  %can = and i1 %own, %free
  br i1 %can, label %run, label %later
run:
  %status = call i64 %at.once(ptr %block)
  %busy = icmp eq i64 %status, {BUSY}
  br i1 %busy, label %later, label %done
later:
  br label %done
done:
  %result = phi i64 [ %status, %run ], [ {LATER}, %later ]
  %number = call ptr @PyLong_FromLongLong(i64 %result)
  ret ptr %number
}}
"""


class _Method(ctypes.Structure):
    """``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("code", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@functools.cache
def _method() -> _Method:
    """What starts share. Several threads that come first may each make one."""
    (code,) = driver.host_compiler().addresses([(_SYMBOL, text())])
    method = _Method(b"start", code, _METH_FASTCALL, None)
    _NEVER_FREED.append((method, code))
    return method


_NEVER_FREED: Final[list[tuple[_Method, Function]]] = []  # starts refer to them, and do not keep them alive
_NEW: Final = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


def table(slots: Sequence[int], is_at_once: bool) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return a start table (``host.layout``), which the launch block refers to."""
    words = np.zeros(SLOTS + len(slots), np.int64)
    words[INSIDE], words[SLOT_COUNT] = id(host.INSIDE), len(slots)
    words[AT_ONCE] = driver.entry_points().rn_solo_at_once if is_at_once else 0
    words[SLOTS:] = slots
    return words


def start(block: int) -> Callable[..., int]:
    """Return the built-in function ``start(*addresses) -> status`` of the launch block at ``block``, which it does not
    keep alive."""
    function: Callable[..., int] = _NEW(ctypes.addressof(_method()), block, None)
    return function
