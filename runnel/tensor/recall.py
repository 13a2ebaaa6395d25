"""Learn what calls do, so that machine code can do the same for the next calls like them.

Eager programs make the same calls again and again, and their arguments differ in nothing but the numbers in memory. The
second call with a key runs its function while the ops, views and changes on the way are noted. If they lead from the
arguments to the result and depend on nothing else, they become an action: views of layouts that are known, programs of
frames that wait for addresses, calls of Python functions in between, and a result or a new value of a handle. Later
calls with the key run the action (:mod:`runnel.backends.cpu.recall`). A call that depends on more, such as values that
it looks at, runs its function every time.
"""

from __future__ import annotations

import array
import contextlib
import functools
import sys
import threading
from typing import Any, Final

import numpy as np

from runnel.backends import base
from runnel.backends.base import Recalling
from runnel.backends.host import locks, memory, recall as layout
from runnel.core import dtypes, slots, switches
from runnel.core.avals import ShapedArray
from runnel.core.devices import Device
from runnel.core.dtypes import DType
from runnel.core.recall import LESSON, SETTLED, UNUSUAL, Recalled
from runnel.core.switches import RESOLVED, Resolved
from runnel.tensor import views
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.handle import SERIALS, Handle, Record
from runnel.tensor.inplace import CONSTANT_SERIAL
from runnel.tensor.recall_actions import Action, Unlearnable
from runnel.tensor.variable import STATE_VERSION, StateVersion, Variable

_MOST: Final = 4096  # keys; then all are forgotten
_SEEN: Final = 8192  # hashes of calls that were made once
_ENTRIES: Final = 4 * _MOST


_TURN: Final = locks.lock()
_BEGINNING: Final = locks.lock()


class _Memory:
    """The table, and what its entries refer to."""

    def __init__(self) -> None:
        self.state = array.array("q", bytes(8 * len(layout.STATE)))
        self.seen: set[bytes] = set()
        self.found: tuple[array.array[int], dict[bytes, Any]] = array.array("q"), {}  # the table, what it refers to
        self.refers: list[Any] = []
        self.put("MASK", _ENTRIES - 1)
        self.clear()

    def put(self, name: str, word: int) -> None:
        self.state[layout.WORD[name]] = word

    def clear(self) -> None:
        """Forget all calls. A call that is running an action keeps that."""
        table = array.array("q", bytes(8 * layout.ENTRY_WORDS * _ENTRIES))
        kept: dict[bytes, Any] = {}
        found, seen, place, address = (table, kept), set[bytes](), layout.WORD["TABLE"], table.buffer_info()[0]
        former = self.found, self.seen
        # Without calls: no signal and no other thread comes in between, and machine code finds a table that lives.
        self.state[place] = address
        self.found = found
        self.seen = seen
        del former

    def add(self, key: bytes, action: Action | None, kept: Any) -> None:
        """Add an action, or None for a key whose calls run the function. ``kept`` is what the key refers to by
        address."""
        if len(self.found[1]) >= _MOST:
            self.clear()
        table, kept_now = self.found
        if key in kept_now:
            return
        words = array.array("q", key)
        hashed, words[0] = words[0], len(words) - 1
        address = 0 if action is None else action.words.buffer_info()[0]
        kept_now[key] = words, action, kept
        place = hashed & (_ENTRIES - 1)
        while table[layout.ENTRY_WORDS * place]:
            place = (place + 1) & (_ENTRIES - 1)
        at = layout.ENTRY_WORDS * place
        table[at + 1 : at + 3] = array.array("q", (words.buffer_info()[0], address))
        table[at] = hashed


_MEMORY: Final = _Memory()
clear = _MEMORY.clear


def _learn(machine_code: Recalling, recalled: Recalled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call ``recalled``, and add the call to the table if it is not the first one of its kind."""
    for name, kind in zip(("VARIABLE", "PARAMETER"), SETTLED, strict=False):
        _MEMORY.put(name, id(kind))
    state = RESOLVED.state
    key = recalled.key(*args, **kwargs)
    if state is not RESOLVED.state:  # the key may have the address of another one
        return recalled.function(*args, **kwargs)
    if key is None or key not in _MEMORY.seen or switches.check_nans.value:
        if key is not None:
            if len(_MEMORY.seen) >= _SEEN:
                _MEMORY.seen = set()
            _MEMORY.seen.add(key)
        return recalled.function(*args, **kwargs)
    values = (*args, *kwargs.values())
    kept: list[Any] = [recalled, state, *kwargs]
    if not _identities(values, kept):
        return recalled.function(*args, **kwargs)
    if not _TURN.acquire(blocking=False):  # another thread is learning
        return recalled.function(*args, **kwargs)
    own = 0
    try:  # a signal after any call leaves no lesson open
        own = threading.get_ident()
        LESSON.thread, LESSON.is_spoiled, LESSON.is_early, LESSON.events = own, False, False, []
        UNUSUAL.add(own)
        writes = STATE_VERSION.writes
        result = recalled.function(*args, **kwargs)
        events, is_early = LESSON.events, LESSON.is_early
        assigned = sum(kind == "assign" for kind, *_ in events or ())
        is_spoiled = LESSON.is_spoiled or STATE_VERSION.writes != writes + assigned
    finally:
        LESSON.events = None
        try:
            UNUSUAL.discard(own)
        finally:
            _TURN.release()
    if not is_early:
        action = None
        if not is_spoiled and events is not None:
            with contextlib.suppress(Unlearnable):
                action = Action(values, events, result, recalled, machine_code)
        _MEMORY.add(key, action, kept)
    return result


def _identities(values: Any, kept: list[Any]) -> bool:
    """Collect the objects that a key tells apart by identity; false if one of them is a string that others may equal
    without being the same."""
    for x in values:
        kind = type(x)
        if kind is str and sys.intern(x) is not x:
            return False
        if kind is tuple or kind is list:
            if not _identities(x, kept):
                return False
        elif isinstance(x, np.ndarray):
            kept.append(x.dtype)
        elif isinstance(x, Handle):
            kept.append((x._aval, x._layout[1]))
        elif isinstance(x, Variable):
            value = x.read()
            kept.append((value._aval, value._layout[1]))
        else:
            kept.append(x)
    return True


def _equip(machine_code: Recalling, recalled: Recalled) -> None:
    recalled.learn = lambda *args, **kwargs: _learn(machine_code, recalled, args, kwargs)
    recalled.call, recalled.key = machine_code.functions(recalled)


def begin(x: Handle[Any]) -> None:
    """Recall calls from now on, if the device of the tensor ``x`` has machine code for that."""
    machine_code = base.of(x._aval.device).recalling
    if machine_code is None or not _BEGINNING.acquire(blocking=False):
        return
    try:
        if Recalled.equip is None:
            _begin(machine_code, x.__class__)
    finally:
        _BEGINNING.release()


def _begin(machine_code: Recalling, tensor: type[Handle[Any]]) -> None:
    objects = {
        "UNUSUAL": UNUSUAL, "NONE": None, "TRUE": True, "FALSE": False, "ELLIPSIS": ..., "TENSOR": tensor, "INT": int,
        "FLOAT": float, "TUPLE": tuple, "LIST": list, "SLICE": slice, "STR": str, "DTYPE": DType, "DEVICE": Device,
        "RECORD": Record, "VIEW": views.View,
        "RESOLVED": RESOLVED, "SERIALS": SERIALS, "RECORDING": RECORDING, "ALLOCATE": memory.allocate,
        "ALLOCATE_SLAB": _slab, "WATCHED": views.watched, "DETACHED": views.DETACHED,
        "EXCEPTION": Exception, "NDARRAY": np.ndarray, "STATE_VERSION": STATE_VERSION, "TAKE": _take,
        "FLOAT32": dtypes.float32, "FLOAT64": dtypes.float64, "INT64": dtypes.int64, "INT32": dtypes.int32,
        "BOOL": dtypes.bool_,
    }  # fmt: skip
    _MEMORY.refers += objects.values()
    for name, value in objects.items():
        _MEMORY.put(name, id(value))
    for name, (kind, slot) in {
        "AT_AVAL": (Handle, "_aval"), "AT_LAYOUT": (Handle, "_layout"), "AT_STORAGE": (Handle, "_storage"),
        "AT_SERIAL": (Handle, "_serial"), "AT_REQUIRES": (Handle, "requires_grad"),
        "AT_REBOUND": (Handle, "_is_rebound"), "AT_RECORDED": (Handle, "_is_recorded"),
        "AT_RECORD": (Handle, "_record"), "AT_LEAF": (Handle, "_leaf"), "AT_VIEW": (Handle, "_view"),
        "AT_VIEWS": (Handle, "_views"), "AT_ARRAY": (Handle, "_array"), "ADDRESS_OF": (memory.Storage, "address"),
        "SETTLED_OF": (Variable, "_settled"), "STATE_OF": (Resolved, "state"), "FUNCTION_OF": (Recalled, "function"),
        "LEARN_OF": (Recalled, "learn"), "BASE_OF": (views.View, "base"), "STEPS_OF": (views.View, "steps"),
        "IS_RECORDED_OF": (views.View, "is_recorded"),
        "INPUTS_OF": (Record, "_inputs"), "ATTRS_OF": (Record, "attrs"), "FREED_OF": (Record, "freed"),
        "OP_OF": (Record, "op"), "RULE_OF": (Record, "rule"), "SIZE_OF": (ShapedArray, "size"),
        "DTYPE_OF": (ShapedArray, "dtype"), "VIEWS_OF": (Variable, "_views"), "TENSOR_OF": (Variable, "_tensor"),
        "SHARED_OF": (Variable, "_shared"), "PIN_OF": (Variable, "_pin"), "LOCK_OF": (Variable, "_state_lock"),
        "WRITES_OF": (StateVersion, "writes"),
    }.items():  # fmt: skip
        _MEMORY.put(name, slots.offset(kind, slot))
    _MEMORY.put("CONSTANT_SERIAL", CONSTANT_SERIAL)
    first = _slab()
    _MEMORY.refers.append(first)
    slots.add_reference(first)  # of the state
    _MEMORY.put("SLAB", id(first))
    _MEMORY.put("SLAB_ADDRESS", first.address)
    machine_code.begin(_MEMORY.state.buffer_info()[0])
    equip = functools.partial(_equip, machine_code)
    for recalled in Recalled.every:
        equip(recalled)
    Recalled.equip = equip


def _take(variable: Variable, value: Any) -> None:
    """Let a Variable take over a dense value of the right shape and dtype, in memory of Runnel's."""
    variable._store(value)
    if variable._views:
        views.refresh(variable)


def _slab() -> memory.Storage:
    return memory.allocate_slab(layout.SLAB_BYTES)
