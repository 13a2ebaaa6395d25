"""Tensors, views and records of the tape, made by machine code."""

from __future__ import annotations

from typing import Final

from runnel.backends.cpu.routines import I64, Bit, Code, Ptr, Routine
from runnel.backends.host import recall as layout
from runnel.backends.host.recall import WORD

GLOBALS: Final = "@recall_state = internal global ptr null\n"


def state(f: Code) -> str:
    """Return the address of the state."""
    return f.value("load ptr, ptr @recall_state")


def known(f: Code, s: Ptr, name: str) -> str:
    """Load an object, or an address, from the state."""
    return f.pointer(s, WORD[name])


def at(f: Code, s: Ptr, x: Ptr, slot: str) -> str:
    """Return the address of a slot of ``x``, whose offset the state has."""
    return f.at(x, f.word(s, WORD[slot]))


def held(f: Code, s: Ptr, x: Ptr, slot: str) -> str:
    """Load the object in a slot of ``x``."""
    return f.pointer(at(f, s, x, slot))


def kind_of(f: Code, x: Ptr) -> str:
    """Load the class of ``x`` (``ob_type``)."""
    return f.pointer(x, 1)


def is_missing(f: Code, s: Ptr, x: Ptr) -> str:
    """Return whether the content of a slot is None, or was never set."""
    return f.either(f.test("eq", x, "null", "ptr"), f.test("eq", x, known(f, s, "NONE"), "ptr"))


def keep(f: Code, x: Ptr) -> str:
    """Add a reference; returns ``x``."""
    f.external("void", "Py_IncRef", ("ptr", x))
    return x


def drop(f: Code, x: Ptr) -> None:
    """Drop a reference, if ``x`` is not null."""
    f.external("void", "Py_DecRef", ("ptr", x))


def fill(f: Code, s: Ptr, x: Ptr, slot: str, value: Ptr) -> None:
    """Store a reference into a slot of a new object."""
    f.effect(f"store ptr {value}, ptr {at(f, s, x, slot)}")


def blank(f: Code, kind: Ptr) -> str:
    """Return a new object whose slots are not set, or null."""
    return f.external("ptr", "PyType_GenericAlloc", ("ptr", kind), ("i64", 0))


@Routine
def exchange(f: Code, place: Ptr, value: Ptr) -> None:
    """Store a reference into a slot, and drop the old one."""
    before = f.pointer(place)
    f.put(place, 0, value, "ptr")
    drop(f, before)


@Routine
def place_of(f: Code, offset: I64, strides: Ptr) -> Ptr:
    """Return the layout of a tensor, a tuple; ``offset`` in elements."""
    pair = f.external("ptr", "PyTuple_New", ("i64", 2))
    with f.when(f.test("ne", pair, "null", "ptr")):
        number = f.external("ptr", "PyLong_FromLongLong", ("i64", offset))
        f.external("i32", "PyTuple_SetItem", ("ptr", pair), ("i64", 0), ("ptr", number))
        f.external("i32", "PyTuple_SetItem", ("ptr", pair), ("i64", 1), ("ptr", keep(f, strides)))
    return pair


@Routine
def new_tensor(f: Code, s: Ptr, aval: Ptr, storage: Ptr, offset: I64, strides: Ptr) -> Ptr:
    """Return a tensor over ``storage``, or null. The layout comes first: after the allocation nothing fails."""
    pair = place_of(f, offset, strides)
    serial = f.external("ptr", "PyIter_Next", ("ptr", known(f, s, "SERIALS")))
    x = blank(f, known(f, s, "TENSOR"))
    broken = f.either(f.test("eq", pair, "null", "ptr"), f.test("eq", serial, "null", "ptr"))
    with f.when(f.either(broken, f.test("eq", x, "null", "ptr"))):
        for each in (pair, serial, x):
            drop(f, each)
        f.ret("null", "ptr")
    fill(f, s, x, "AT_AVAL", keep(f, aval))
    fill(f, s, x, "AT_STORAGE", keep(f, storage))
    fill(f, s, x, "AT_LAYOUT", pair)
    fill(f, s, x, "AT_SERIAL", serial)
    return x


@Routine
def offset_of(f: Code, s: Ptr, x: Ptr) -> I64:
    """Return the offset of a tensor in its storage, in elements."""
    number = f.external("ptr", "PyTuple_GetItem", ("ptr", held(f, s, x, "AT_LAYOUT")), ("i64", 0))
    return f.external("i64", "PyLong_AsLongLong", ("ptr", number))


@Routine
def lies_as(f: Code, s: Ptr, x: Ptr, aval: Ptr, strides: Ptr) -> Bit:
    """Return whether a tensor is what a step was made for."""
    with f.when(is_missing(f, s, held(f, s, x, "AT_STORAGE"))):
        f.ret("false", "i1")
    steps = f.external("ptr", "PyTuple_GetItem", ("ptr", held(f, s, x, "AT_LAYOUT")), ("i64", 1))
    return f.both(f.test("eq", held(f, s, x, "AT_AVAL"), aval, "ptr"), f.test("eq", steps, strides, "ptr"))


@Routine
def requires(f: Code, s: Ptr, x: Ptr) -> Bit:
    """Return whether a tensor requires a gradient."""
    return f.test("ne", f.value(f"load i8, ptr {at(f, s, x, 'AT_REQUIRES')}"), 0, "i8")


@Routine
def add_record(f: Code, s: Ptr, x: Ptr, op: Ptr, attrs: Ptr, inputs: Ptr) -> Bit:
    """Give ``x`` the record that it was made by ``op`` of ``inputs``, a tuple that the record takes; false with an
    error."""
    record = blank(f, known(f, s, "RECORD"))
    with f.when(f.test("eq", record, "null", "ptr")):
        drop(f, inputs)
        f.ret("false", "i1")
    fill(f, s, record, "INPUTS_OF", inputs)
    fill(f, s, record, "ATTRS_OF", keep(f, attrs))
    fill(f, s, record, "OP_OF", keep(f, op))
    fill(f, s, record, "FREED_OF", keep(f, known(f, s, "FALSE")))
    fill(f, s, record, "RULE_OF", keep(f, known(f, s, "NONE")))
    with f.count(f.external("i64", "PyTuple_Size", ("ptr", inputs))) as i:
        each = f.external("ptr", "PyTuple_GetItem", ("ptr", inputs), ("i64", i))
        f.effect(f"store i8 1, ptr {at(f, s, each, 'AT_RECORDED')}")
    f.effect(f"store i8 1, ptr {at(f, s, x, 'AT_REQUIRES')}")
    fill(f, s, x, "AT_RECORD", record)
    return "true"


@Routine
def is_dead(f: Code, s: Ptr, reference: Ptr) -> Bit:
    """Return whether a weak reference refers to nothing any more."""
    there = f.external("ptr", "PyObject_CallNoArgs", ("ptr", reference))
    drop(f, there)
    return f.test("eq", there, known(f, s, "NONE"), "ptr")


@Routine
def remember(f: Code, s: Ptr, place: Ptr, view: Ptr) -> Bit:
    """Add a weak reference to ``view`` to the list at ``place``, instead of its last item if that is dead; false with
    an error."""
    reference = f.external("ptr", "PyWeakref_NewRef", ("ptr", view), ("ptr", "null"))
    with f.when(f.test("eq", reference, "null", "ptr")):
        f.ret("false", "i1")
    views = f.pointer(place)
    with f.when(is_missing(f, s, views)):
        fresh = f.external("ptr", "PyList_New", ("i64", 1))
        with f.when(f.test("eq", fresh, "null", "ptr")):
            drop(f, reference)
            f.ret("false", "i1")
        f.external("i32", "PyList_SetItem", ("ptr", fresh), ("i64", 0), ("ptr", reference))
        exchange(f, place, fresh)
        f.ret("true", "i1")
    last = f.sub(f.external("i64", "PyList_Size", ("ptr", views)), 1)
    with f.when(f.test("sge", last, 0)):
        item = f.external("ptr", "PyList_GetItem", ("ptr", views), ("i64", last))
        with f.when(is_dead(f, s, item)):
            f.external("i32", "PyList_SetItem", ("ptr", views), ("i64", last), ("ptr", reference))
            f.ret("true", "i1")
    added = f.external("i32", "PyList_Append", ("ptr", views), ("ptr", reference))
    drop(f, reference)
    return f.test("eq", added, 0, "i32")


def _is_crowded(f: Code, s: Ptr, place: Ptr) -> str:
    """Return whether the list of views at ``place`` is to be cleared of dead ones: its length is a power of two from 8
    on."""
    views = f.pointer(place)
    crowded = f.reserve("i64", 8)
    f.put(crowded, 0, 0)
    with f.unless(is_missing(f, s, views)):
        count = f.external("i64", "PyList_Size", ("ptr", views))
        power = f.test("eq", f.value(f"and i64 {count}, {f.sub(count, 1)}"), 0)
        f.put(crowded, 0, f.value(f"zext i1 {f.both(power, f.test('uge', count, 8))} to i64"))
    return f.test("ne", f.word(crowded), 0)


@Routine
def watch_slowly(f: Code, s: Ptr, view: Ptr, source: Ptr, steps: Ptr) -> Bit:
    """Let Python make ``view`` a view of ``source``; false with an error."""
    arguments = f.reserve("[3 x ptr]", 16)
    for i, each in enumerate((view, source, steps)):
        f.put(arguments, i, each, "ptr")
    watched = known(f, s, "WATCHED")
    result = f.external("ptr", "PyObject_Vectorcall", ("ptr", watched), ("ptr", arguments), ("i64", 3), ("ptr", "null"))
    drop(f, result)
    return f.test("ne", result, "null", "ptr")


def _settles(f: Code, s: Ptr, x: Ptr) -> str:
    """Return whether ``x`` is a Variable that machine code reads."""
    return f.either(*(f.test("eq", kind_of(f, x), known(f, s, name), "ptr") for name in ("VARIABLE", "PARAMETER")))


@Routine
def views_at(f: Code, s: Ptr, base: Ptr) -> Ptr:
    """Return where the list of views of ``base`` is; null if Python adds to it: to the first view of a Variable."""
    with f.when(f.test("eq", kind_of(f, base), known(f, s, "TENSOR"), "ptr")):
        f.ret(at(f, s, base, "AT_VIEWS"), "ptr")
    with f.when(_settles(f, s, base)):
        place = at(f, s, base, "VIEWS_OF")
        f.ret(f.select(is_missing(f, s, f.pointer(place)), "null", place, "ptr"), "ptr")
    return "null"


@Routine
def watch_on(f: Code, s: Ptr, view: Ptr, source: Ptr, steps: Ptr, base: Ptr, before: Ptr) -> Bit:
    """Make ``view`` a view of ``base``; ``before`` is the steps from there to ``source``, or null. False with an
    error."""
    place = views_at(f, s, base)
    with f.when(f.test("eq", place, "null", "ptr")):
        f.ret(watch_slowly(f, s, view, source, steps), "i1")
    with f.when(_is_crowded(f, s, place)):
        f.ret(watch_slowly(f, s, view, source, steps), "i1")
    ways, flag = (f.reserve("ptr", 8) for _ in range(2))
    is_first = f.test("eq", before, "null", "ptr")
    with f.when(is_first):
        f.put(ways, 0, keep(f, steps), "ptr")
    with f.unless(is_first):
        f.put(ways, 0, f.external("ptr", "PySequence_Concat", ("ptr", before), ("ptr", steps)), "ptr")
    way = f.pointer(ways)
    with f.when(f.test("eq", way, "null", "ptr")):
        f.ret("false", "i1")
    f.external("i32", "PyContextVar_Get", ("ptr", known(f, s, "RECORDING")), ("ptr", "null"), ("ptr", flag))
    link = blank(f, known(f, s, "VIEW"))
    with f.when(f.test("eq", link, "null", "ptr")):
        drop(f, way)
        drop(f, f.pointer(flag))
        f.ret("false", "i1")
    fill(f, s, link, "BASE_OF", keep(f, base))
    fill(f, s, link, "STEPS_OF", way)
    fill(f, s, link, "IS_RECORDED_OF", f.pointer(flag))
    fill(f, s, view, "AT_VIEW", link)
    return remember(f, s, place, view)


@Routine
def watch(f: Code, s: Ptr, view: Ptr, source: Ptr, steps: Ptr, may_copy: I64) -> Bit:
    """Make ``view``, which ``steps`` made of ``source``, a view of the base of ``source``; false with an error."""
    former, leaf = held(f, s, source, "AT_VIEW"), held(f, s, source, "AT_LEAF")
    with f.unless(is_missing(f, s, former)):
        with f.when(f.test("ne", may_copy, 0)):
            f.ret(watch_slowly(f, s, view, source, steps), "i1")
        base, before = held(f, s, former, "BASE_OF"), held(f, s, former, "STEPS_OF")
        last = f.sub(f.external("i64", "PyTuple_Size", ("ptr", before)), 1)
        with f.when(f.test("sge", last, 0)):  # a detached view is the base of its views
            step = f.external("ptr", "PyTuple_GetItem", ("ptr", before), ("i64", last))
            with f.when(f.test("eq", step, known(f, s, "DETACHED"), "ptr")):
                f.ret(watch_on(f, s, view, source, steps, source, "null"), "i1")
        f.ret(watch_on(f, s, view, source, steps, base, before), "i1")
    with f.when(is_missing(f, s, leaf)):
        f.ret(watch_on(f, s, view, source, steps, source, "null"), "i1")
    owner = f.external("ptr", "PyObject_CallNoArgs", ("ptr", leaf))
    with f.when(f.test("eq", owner, "null", "ptr")):
        f.ret("false", "i1")
    done = watch_on(f, s, view, source, steps, owner, "null")  # Python, if there is no owner any more
    drop(f, owner)
    return done


@Routine
def address_of(f: Code, s: Ptr, storage: Ptr) -> Ptr:
    """Return the address of a storage."""
    return f.external("ptr", "PyLong_AsVoidPtr", ("ptr", held(f, s, storage, "ADDRESS_OF")))


def small(f: Code, nbytes: I64) -> str:
    """Return whether a result of ``nbytes`` is cut from a slab."""
    return f.test("ule", nbytes, layout.SMALL)
