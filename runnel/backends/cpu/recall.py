"""Calls of functions that were made before, by machine code: the built-in function that users' calls come to first.

It computes the key of a call from the kinds, layouts and values of its arguments, and looks for what
:mod:`runnel.tensor.recall` learned of the first such call: the steps that lead to the result. It calls the function
where it finds nothing, or if anything is unusual. Objects are read where Python keeps them, with the GIL held, and made
by functions of CPython's API.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

from runnel.backends.cpu import driver
from runnel.backends.cpu.launch import Launch, Method
from runnel.backends.cpu.recall_steps import (
    KEY_COUNT,
    KEYS,
    MISS,
    OWNED,
    RECORDS,
    REGISTER_COUNT,
    REGISTERS,
    WORDS,
    perform,
    refill,
)
from runnel.backends.cpu.recall_tensors import (
    GLOBALS,
    address_of,
    at,
    held,
    is_missing,
    kind_of,
    known,
    offset_of,
    state,
)
from runnel.backends.cpu.routines import I64, Bit, Code, Ptr, Routine, table_text
from runnel.backends.host import recall as layout
from runnel.backends.host.memory import Storage

_FASTCALL_KEYWORDS: Final = 0x82
_MULTIPLIER: Final = -7046029254386353131  # 2**64 divided by the golden ratio (D. Knuth, TAOCP 3, 6.4)
_NUMBERS: Final = (
    ("FLOAT32", 4, "float", "fpext", "PyFloat_FromDouble", "double"),
    ("INT64", 8, "i64", "", "PyLong_FromLongLong", "i64"),
    ("BOOL", 1, "i8", "zext", "PyBool_FromLong", "i64"),
    ("FLOAT64", 8, "double", "", "PyFloat_FromDouble", "double"),
    ("INT32", 4, "i32", "sext", "PyLong_FromLongLong", "i64"),
)
_TENSOR, _INT, _FLOAT, _OBJECT, _TUPLE, _LIST, _SLICE, _SAME, _ARRAY = range(
    1, 10
)  # tags; some say more in higher bits


@Routine
def push(f: Code, call: Ptr, word: I64) -> None:
    """Append a word to the key."""
    count = f.word(call, KEY_COUNT)
    f.put(f.beyond(call, count), KEYS, word)
    f.put(call, KEY_COUNT, f.add(count, 1))


def _push_pointer(f: Code, call: Ptr, pointer: Ptr) -> None:
    push(f, call, f.value(f"ptrtoint ptr {pointer} to i64"))


@Routine
def add_tensor(f: Code, s: Ptr, call: Ptr, x: Ptr) -> Bit:
    """Add a tensor to the key; false if it cannot be a part of one."""
    layout_of, storage = held(f, s, x, "AT_LAYOUT"), held(f, s, x, "AT_STORAGE")
    count = f.word(call, REGISTER_COUNT)
    with f.count(count) as i, f.when(f.test("eq", f.pointer(f.beyond(call, i), REGISTERS), x, "ptr")):
        push(f, call, f.add(f.mul(i, 256), _SAME))
        f.ret("true", "i1")
    with f.when(f.either(is_missing(f, s, storage), f.test("uge", count, layout.MOST_ARGUMENTS))):
        f.ret("false", "i1")
    mode = f.reserve("i64", 8)
    f.put(mode, 0, _TENSOR)
    with f.when(f.test("ne", f.value(f"load i8, ptr {at(f, s, x, 'AT_REQUIRES')}"), 0, "i8")):
        with f.when(f.test("ne", f.value(f"load i8, ptr {at(f, s, x, 'AT_REBOUND')}"), 0, "i8")):
            f.ret("false", "i1")
        f.put(mode, 0, _TENSOR + 256)
        flag = f.reserve("ptr", 8)
        f.external("i32", "PyContextVar_Get", ("ptr", known(f, s, "RECORDING")), ("ptr", "null"), ("ptr", flag))
        value = f.pointer(flag)
        f.external("void", "Py_DecRef", ("ptr", value))
        with f.when(f.test("eq", value, known(f, s, "TRUE"), "ptr")):
            f.put(mode, 0, _TENSOR + 512)
            f.put(call, RECORDS, 1)
    for slot, bit in (("AT_VIEW", 1024), ("AT_LEAF", 2048)):
        with f.unless(is_missing(f, s, held(f, s, x, slot))):
            f.put(mode, 0, f.add(f.word(mode), bit))
    push(f, call, f.word(mode))
    _push_pointer(f, call, held(f, s, x, "AT_AVAL"))
    _push_pointer(f, call, f.external("ptr", "PyTuple_GetItem", ("ptr", layout_of), ("i64", 1)))
    f.put(f.beyond(call, count), REGISTERS, x, "ptr")
    f.put(call, REGISTER_COUNT, f.add(count, 1))
    return "true"


@Routine
def add_array(f: Code, call: Ptr, x: Ptr) -> Bit:
    """Add a NumPy array to the key, which has its shape and dtype; false if it cannot be a part of one."""
    count = f.word(call, REGISTER_COUNT)
    with f.count(count) as i, f.when(f.test("eq", f.pointer(f.beyond(call, i), REGISTERS), x, "ptr")):
        push(f, call, f.add(f.mul(i, 256), _SAME))
        f.ret("true", "i1")
    marks = f.value(f"load i32, ptr {f.at(x, layout.ARRAY_FLAGS)}")
    dense = f.value(f"and i32 {marks}, {layout.ARRAY_IS_DENSE}")
    ndim = f.value(f"zext i32 {f.value(f'load i32, ptr {f.at(x, layout.ARRAY_NDIM)}')} to i64")
    is_other = f.either(f.test("ne", dense, layout.ARRAY_IS_DENSE, "i32"), f.test("ugt", ndim, 8))
    is_full = f.test("ugt", f.word(call, KEY_COUNT), layout.MOST_KEY - 16)
    with f.when(f.either(f.either(is_other, is_full), f.test("uge", count, layout.MOST_ARGUMENTS))):
        f.ret("false", "i1")
    push(f, call, f.add(f.mul(ndim, 256), _ARRAY))
    _push_pointer(f, call, f.pointer(f.at(x, layout.ARRAY_DTYPE)))
    shape = f.pointer(f.at(x, layout.ARRAY_SHAPE))
    with f.count(ndim) as i:
        push(f, call, f.word(f.beyond(shape, i)))
    f.put(f.beyond(call, count), REGISTERS, x, "ptr")
    f.put(call, REGISTER_COUNT, f.add(count, 1))
    return "true"


@Routine
def add(f: Code, s: Ptr, call: Ptr, x: Ptr) -> Bit:
    """Add an argument to the key; false if it cannot be a part of one."""
    with f.when(f.test("ugt", f.word(call, KEY_COUNT), layout.MOST_KEY - 4)):
        f.ret("false", "i1")
    kind = kind_of(f, x)

    def has(name: str) -> str:
        return f.test("eq", kind, known(f, s, name), "ptr")

    with f.when(has("TENSOR")):
        f.ret(add_tensor(f, s, call, x), "i1")
    with f.when(has("INT")):
        number = f.external("i64", "PyLong_AsLongLong", ("ptr", x))
        with f.when(f.test("eq", number, -1)), f.when(f.test("ne", f.external("ptr", "PyErr_Occurred"), "null", "ptr")):
            f.external("void", "PyErr_Clear")
            f.ret("false", "i1")
        push(f, call, _INT)
        push(f, call, number)
        f.ret("true", "i1")
    with f.when(has("FLOAT")):
        push(f, call, _FLOAT)
        bits = f.value(f"bitcast double {f.external('double', 'PyFloat_AsDouble', ('ptr', x))} to i64")
        push(f, call, bits)
        f.ret("true", "i1")
    by_identity = "false"
    for name in ("NONE", "TRUE", "FALSE", "ELLIPSIS"):
        by_identity = f.either(by_identity, f.test("eq", x, known(f, s, name), "ptr"))
    for name in ("DTYPE", "STR", "DEVICE"):
        by_identity = f.either(by_identity, has(name))
    with f.when(by_identity):
        push(f, call, _OBJECT)
        _push_pointer(f, call, x)
        f.ret("true", "i1")
    for name, tag, size, item in (
        ("TUPLE", _TUPLE, "PyTuple_Size", "PyTuple_GetItem"), ("LIST", _LIST, "PyList_Size", "PyList_GetItem")
    ):  # fmt: skip
        with f.when(has(name)):
            count = f.external("i64", size, ("ptr", x))
            push(f, call, f.add(f.mul(count, 256), tag))
            with f.count(count) as i, f.unless(add(f, s, call, f.external("ptr", item, ("ptr", x), ("i64", i)))):
                f.ret("false", "i1")
            f.ret("true", "i1")
    with f.when(has("SLICE")):
        push(f, call, _SLICE)
        for place in (2, 3, 4):  # PySliceObject: start, stop, step
            with f.unless(add(f, s, call, f.pointer(x, place))):
                f.ret("false", "i1")
        f.ret("true", "i1")
    with f.when(has("NDARRAY")):
        f.ret(add_array(f, call, x), "i1")
    with f.when(f.either(has("VARIABLE"), has("PARAMETER"))):
        settled = held(f, s, x, "SETTLED_OF")
        with f.when(is_missing(f, s, settled)):
            f.ret("false", "i1")
        with f.when(f.test("eq", kind_of(f, settled), known(f, s, "TENSOR"), "ptr")):
            f.ret(add_tensor(f, s, call, settled), "i1")
    return "false"


@Routine
def key(f: Code, s: Ptr, call: Ptr, self: Ptr, args: Ptr, count: I64, names: Ptr) -> Bit:
    """Write the key of a call, after its hash; false if the call has none."""
    for word in (KEY_COUNT, REGISTER_COUNT, RECORDS, OWNED):
        f.put(call, word, 0)
    _push_pointer(f, call, self)
    _push_pointer(f, call, held(f, s, known(f, s, "RESOLVED"), "STATE_OF"))
    push(f, call, count)
    end = f.reserve("i64", 8)
    f.put(end, 0, count)
    with f.when(f.test("ne", names, "null", "ptr")):
        named = f.external("i64", "PyTuple_Size", ("ptr", names))
        with f.when(f.test("ugt", named, 8)):
            f.ret("false", "i1")
        f.put(end, 0, f.add(count, named))
        with f.count(named) as i:
            _push_pointer(f, call, f.external("ptr", "PyTuple_GetItem", ("ptr", names), ("i64", i)))
    with f.count(f.word(end)) as i, f.unless(add(f, s, call, f.pointer(f.beyond(args, i)))):
        f.ret("false", "i1")
    return "true"


@Routine
def hash_of(f: Code, call: Ptr) -> I64:
    """Return the hash of the key, which is not 0."""
    mixed = f.reserve("i64", 8)
    f.put(mixed, 0, 0)
    with f.count(f.word(call, KEY_COUNT)) as i:
        word = f.word(f.beyond(call, i), KEYS)
        mix = f.mul(f.value(f"xor i64 {f.word(mixed)}, {word}"), _MULTIPLIER)
        f.put(mixed, 0, f.value(f"xor i64 {mix}, {f.value(f'lshr i64 {mix}, 29')}"))
    return f.value(f"or i64 {f.word(mixed)}, 1")


@Routine
def equals(f: Code, call: Ptr, other: Ptr) -> Bit:
    """Return whether a key in the table equals the key of the call."""
    count = f.word(call, KEY_COUNT)
    with f.when(f.test("ne", f.word(other), count)):
        f.ret("false", "i1")
    with f.count(count) as i:
        here, there = f.word(f.beyond(call, i), KEYS), f.word(f.beyond(other, i), 1)
        with f.when(f.test("ne", here, there)):
            f.ret("false", "i1")
    return "true"


@Routine
def found(f: Code, s: Ptr, call: Ptr) -> I64:
    """Return the address of the action of the call; 0: run the function, -1: it is new."""
    table, mask, hashed = known(f, s, "TABLE"), f.word(s, layout.WORD["MASK"]), hash_of(f, call)
    with f.cycle("i64", f.value(f"and i64 {hashed}, {mask}")) as probe:
        entry = f.beyond(table, f.mul(probe.value, layout.ENTRY_WORDS))
        there = f.word(entry)
        with f.when(f.test("eq", there, 0)):
            f.ret(-1)
        with f.when(f.test("eq", there, hashed)), f.when(equals(f, call, f.pointer(entry, 1))):
            f.ret(f.word(entry, 2))
        probe.again(f.value(f"and i64 {f.add(probe.value, 1)}, {mask}"))
    return -1


def _called(f: Code, s: Ptr, self: Ptr, which: str, args: Ptr, count: I64, names: Ptr) -> str:
    function = held(f, s, self, which)
    arguments = (("ptr", function), ("ptr", args), ("i64", count), ("ptr", names))
    return f.external("ptr", "PyObject_Vectorcall", *arguments)


@Routine
def plainly(f: Code, s: Ptr, self: Ptr, args: Ptr, count: I64, names: Ptr) -> Ptr:
    """Call the function itself."""
    return _called(f, s, self, "FUNCTION_OF", args, count, names)


@Routine
def rn_recall(f: Code, self: Ptr, args: Ptr, count: I64, names: Ptr) -> Ptr:
    """Call a function: the built-in function of Python. ``self`` is a Recalled."""
    s = state(f)
    with f.when(f.test("ne", f.external("i64", "PySet_Size", ("ptr", known(f, s, "UNUSUAL"))), 0)):
        f.ret(plainly(f, s, self, args, count, names), "ptr")
    used = f.word(s, layout.WORD["SLAB_USED"])
    with f.when(f.test("ugt", used, layout.SLAB_BYTES - layout.SMALL)), f.unless(refill(f, s)):
        f.ret("null", "ptr")
    call = f.reserve(f"[{WORDS} x i64]", 16)
    with f.unless(key(f, s, call, self, args, count, names)):
        f.ret(plainly(f, s, self, args, count, names), "ptr")
    action = found(f, s, call)
    with f.when(f.test("eq", action, -1)):
        f.ret(_called(f, s, self, "LEARN_OF", args, count, names), "ptr")
    with f.when(f.test("ne", action, 0)):
        result = perform(f, s, call, f.value(f"inttoptr i64 {action} to ptr"))
        with f.when(f.test("ne", f.value(f"ptrtoint ptr {result} to i64"), MISS)):
            f.ret(result, "ptr")
    return plainly(f, s, self, args, count, names)


@Routine
def rn_recall_number(f: Code, self: Ptr, args: Ptr, count: I64, names: Ptr) -> Ptr:
    """Return the only number of a tensor, or what the function says of it."""
    s = state(f)
    is_one = f.both(f.test("eq", count, 1), f.test("eq", names, "null", "ptr"))
    with f.when(is_one), f.when(f.test("eq", f.external("i64", "PySet_Size", ("ptr", known(f, s, "UNUSUAL"))), 0)):
        x = f.pointer(args)
        with f.when(f.test("eq", kind_of(f, x), known(f, s, "TENSOR"), "ptr")):
            storage, value = held(f, s, x, "AT_STORAGE"), held(f, s, x, "AT_AVAL")
            size = f.external("i64", "PyLong_AsLongLong", ("ptr", held(f, s, value, "SIZE_OF")))
            missing = is_missing(f, s, storage)
            with f.unless(f.either(missing, f.test("ne", size, 1))):
                dtype, base, offset = held(f, s, value, "DTYPE_OF"), address_of(f, s, storage), offset_of(f, s, x)
                for name, itemsize, kind, conversion, maker, argument in _NUMBERS:
                    with f.when(f.test("eq", dtype, known(f, s, name), "ptr")):
                        number = f.value(f"load {kind}, ptr {f.at(base, f.mul(offset, itemsize))}, align {itemsize}")
                        if conversion:
                            number = f.value(f"{conversion} {kind} {number} to {argument}")
                        f.ret(f.external("ptr", maker, (argument, number)), "ptr")
    return plainly(f, s, self, args, count, names)


@Routine
def rn_recall_key(f: Code, self: Ptr, args: Ptr, count: I64, names: Ptr) -> Ptr:
    """Return the hash and the key of a call as bytes, or None."""
    s = state(f)
    call = f.reserve(f"[{WORDS} x i64]", 16)
    with f.unless(key(f, s, call, self, args, count, names)):
        none = known(f, s, "NONE")
        f.external("void", "Py_IncRef", ("ptr", none))
        f.ret(none, "ptr")
    hashed = hash_of(f, call)
    f.put(call, KEYS - 1, hashed)
    size = f.mul(f.add(f.word(call, KEY_COUNT), 1), 8)
    return f.external("ptr", "PyBytes_FromStringAndSize", ("ptr", f.beyond(call, KEYS - 1)), ("i64", size))


@Routine
def rn_recall_begin(f: Code, words: Ptr) -> None:
    """Tell machine code where the state is."""
    f.effect(f"store ptr {words}, ptr @recall_state")


_ENTRIES: Final = (rn_recall, rn_recall_key, rn_recall_number, rn_recall_begin)


_NEW: Final = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)
_NEVER_FREED: Final[list[Method]] = []  # built-in functions refer to them, and do not keep them alive


class MachineCode:
    """The calls of functions as built-in functions of Python (``backends.base.Recalling``)."""

    def __init__(self) -> None:
        self._methods: tuple[Method, ...] = ()

    def begin(self, words: int) -> None:
        """Use the state at the address ``words`` from now on. One thread may call this, once."""
        import llvmlite.binding as llvm

        text = GLOBALS + table_text("rn_recalls", _ENTRIES, llvm.get_process_triple())
        code = driver.linked("rn_recalls", text, _ENTRIES)
        methods = [Method(b"recall", code[entry], _FASTCALL_KEYWORDS, None) for entry in _ENTRIES[:3]]
        _NEVER_FREED.extend(methods)
        ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(code[rn_recall_begin])(words)
        self._methods = tuple(methods)  # whose code knows the state

    def functions(self, recalled: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """Return the built-in functions that call ``recalled``, and that return the hash and key of a call of it."""
        call, key, number = self._methods
        first = number if recalled.reads else call
        return _NEW(ctypes.addressof(first), recalled, None), _NEW(ctypes.addressof(key), recalled, None)

    def lend(self, launch: Any, scratch: Storage) -> int:
        """Let machine code alone run ``launch``; return the address of the function that does, or 0."""
        return launch.at_once if isinstance(launch, Launch) and launch.lend(scratch) else 0


RECALLING: Final = MachineCode()
