"""The steps of a recalled call, in machine code: views, starts of programs, calls of Python functions, and the end."""

from __future__ import annotations

from typing import Final

from runnel.backends.cpu.recall_tensors import (
    add_record,
    address_of,
    at,
    drop,
    exchange,
    held,
    is_dead,
    is_missing,
    keep,
    known,
    lies_as,
    new_tensor,
    offset_of,
    requires,
    small,
    watch,
)
from runnel.backends.cpu.routines import I64, Bit, Code, Ptr, Routine
from runnel.backends.host import layout as launches, recall as layout
from runnel.backends.host.recall import WORD

# words of a call in progress
KEY_COUNT, REGISTER_COUNT, RECORDS, OWNED, _HASH = range(5)
KEYS: Final = 5
REGISTERS: Final = KEYS + layout.MOST_KEY
WORDS: Final = REGISTERS + layout.MOST_REGISTERS

DONE, MISS, ERROR = range(3)  # of a step; MISS: the function is to be called instead


@Routine
def refill(f: Code, s: Ptr) -> Bit:
    """Take a new slab; false with an error. The end of the old one may run any code, which comes last."""
    slab = f.external("ptr", "PyObject_CallNoArgs", ("ptr", known(f, s, "ALLOCATE_SLAB")))
    with f.when(f.test("eq", slab, "null", "ptr")):
        f.ret("false", "i1")
    f.put(s, WORD["SLAB_ADDRESS"], address_of(f, s, slab), "ptr")
    f.put(s, WORD["SLAB_USED"], 0)
    exchange(f, f.beyond(s, WORD["SLAB"]), slab)
    return "true"


def _register(f: Code, call: Ptr, number: I64) -> str:
    return f.pointer(f.beyond(call, number), REGISTERS)


@Routine
def push_result(f: Code, call: Ptr, x: Ptr) -> None:
    """Put a new tensor into the next register, which owns it."""
    count = f.word(call, REGISTER_COUNT)
    f.put(f.beyond(call, count), REGISTERS, x, "ptr")
    f.put(call, REGISTER_COUNT, f.add(count, 1))


@Routine
def operands(f: Code, call: Ptr, step: Ptr, count: I64, width: I64) -> Ptr:
    """Return the tuple of the tensors in the registers that begin each row of ``width`` words; null with an error."""
    items = f.external("ptr", "PyTuple_New", ("i64", count))
    with f.when(f.test("ne", items, "null", "ptr")), f.count(count) as i:
        x = _register(f, call, f.word(f.beyond(step, f.mul(i, width))))
        f.external("i32", "PyTuple_SetItem", ("ptr", items), ("i64", i), ("ptr", keep(f, x)))
    return items


@Routine
def record(f: Code, s: Ptr, call: Ptr, x: Ptr, op: Ptr, attrs: Ptr, rows: Ptr, count: I64, width: I64) -> Bit:
    """Record that ``x`` was made by ``op``, if that is wanted and an operand requires a gradient; false with an
    error."""
    with f.when(f.either(f.test("eq", op, "null", "ptr"), f.test("eq", f.word(call, RECORDS), 0))):
        f.ret("true", "i1")
    with f.count(count) as i, f.when(requires(f, s, _register(f, call, f.word(f.beyond(rows, f.mul(i, width)))))):
        inputs = operands(f, call, rows, count, width)
        with f.when(f.test("eq", inputs, "null", "ptr")):
            f.ret("false", "i1")
        f.ret(add_record(f, s, x, op, attrs, inputs), "i1")
    return "true"


@Routine
def view_step(f: Code, s: Ptr, call: Ptr, step: Ptr) -> I64:
    """Make a view."""
    source = _register(f, call, f.word(step, layout.V_SOURCE))
    with f.unless(
        lies_as(f, s, source, f.pointer(step, layout.V_SOURCE_AVAL), f.pointer(step, layout.V_SOURCE_STRIDES))
    ):
        f.ret(MISS)
    offset = f.add(offset_of(f, s, source), f.word(step, layout.V_OFFSET))
    aval, strides = f.pointer(step, layout.V_AVAL), f.pointer(step, layout.V_STRIDES)
    x = new_tensor(f, s, aval, held(f, s, source, "AT_STORAGE"), offset, strides)
    with f.when(f.test("eq", x, "null", "ptr")):
        f.ret(ERROR)
    push_result(f, call, x)
    op, attrs = f.pointer(step, layout.V_OP), f.pointer(step, layout.V_ATTRS)
    with f.unless(record(f, s, call, x, op, attrs, f.beyond(step, layout.V_SOURCE), 1, 1)):
        f.ret(ERROR)
    steps = f.pointer(step, layout.V_STEPS)
    # A chain of views that the tape records is a view of the tensor that the chain begins with.
    with f.when(f.test("ne", steps, "null", "ptr")):
        first = _register(f, call, f.word(step, layout.V_OF))
        with f.unless(watch(f, s, x, first, steps, f.word(step, layout.V_MAY_COPY))):
            f.ret(ERROR)
    return DONE


@Routine
def let_go(f: Code, items: Ptr, count: I64) -> None:
    """Drop the first ``count`` references of a table."""
    with f.count(count) as i:
        drop(f, f.pointer(f.beyond(items, i)))


@Routine
def memory_for(f: Code, s: Ptr, output: Ptr, storages: Ptr, offsets: Ptr, i: I64) -> Bit:
    """Find memory for an output: its storage, which is referred to, and the offset there; false with an error."""
    nbytes, rounded = f.word(output), f.word(output, 1)
    with f.when(small(f, nbytes)):
        full = f.test("ugt", f.add(f.word(s, WORD["SLAB_USED"]), rounded), layout.SLAB_BYTES)
        with f.when(full), f.unless(refill(f, s)):
            f.ret("false", "i1")
        used = f.word(s, WORD["SLAB_USED"])
        f.put(s, WORD["SLAB_USED"], f.add(used, rounded))
        f.put(f.beyond(storages, i), 0, keep(f, known(f, s, "SLAB")), "ptr")
        f.put(f.beyond(offsets, i), 0, used)
        f.ret("true", "i1")
    number = f.external("ptr", "PyLong_FromLongLong", ("i64", nbytes))
    with f.when(f.test("eq", number, "null", "ptr")):
        f.ret("false", "i1")
    box = f.reserve("ptr", 8)
    f.put(box, 0, number, "ptr")
    allocate = known(f, s, "ALLOCATE")
    storage = f.external("ptr", "PyObject_Vectorcall", ("ptr", allocate), ("ptr", box), ("i64", 1), ("ptr", "null"))
    drop(f, number)
    f.put(f.beyond(storages, i), 0, storage, "ptr")
    f.put(f.beyond(offsets, i), 0, 0)
    return f.test("ne", storage, "null", "ptr")


@Routine
def start(f: Code, s: Ptr, call: Ptr, step: Ptr, storages: Ptr, offsets: Ptr) -> I64:
    """Write the addresses of inputs and outputs into the table of base pointers, and run the program: in between no
    code of Python runs, so the frame of a step serves every call."""
    block = f.pointer(step, layout.S_BLOCK)
    bases = f.pointer(f.at(block, launches.LINE), launches.BASES)
    inputs, rows = f.word(step, layout.S_INPUTS), f.beyond(step, layout.S_LISTS)
    with f.count(inputs) as i:
        row = f.beyond(rows, f.mul(i, layout.INPUT_WORDS))
        x = _register(f, call, f.word(row))
        with f.unless(lies_as(f, s, x, f.pointer(row, 1), f.pointer(row, 2))):
            f.ret(MISS)
        base = address_of(f, s, held(f, s, x, "AT_STORAGE"))
        address = f.at(base, f.mul(offset_of(f, s, x), f.word(row, 3)))
        f.put(bases, f.word(row, 4), address, "ptr")
    outputs = f.beyond(rows, f.mul(inputs, layout.INPUT_WORDS))
    with f.count(f.word(step, layout.S_OUTPUTS)) as i:
        slot = f.word(f.beyond(outputs, f.mul(i, layout.OUTPUT_WORDS)), 2)
        base = address_of(f, s, f.pointer(f.beyond(storages, i)))
        f.put(bases, slot, f.at(base, f.word(f.beyond(offsets, i))), "ptr")
    status = f.value(f"call i64 {f.pointer(step, layout.S_AT_ONCE)}(ptr {block})")
    return f.select(f.test("eq", status, 0), DONE, MISS)


@Routine
def start_step(f: Code, s: Ptr, call: Ptr, step: Ptr) -> I64:
    """Run a program, and make tensors of its results."""
    storages, offsets = (f.reserve(f"[{layout.MOST_OUTPUTS} x i64]", 16) for _ in range(2))
    inputs, outputs = f.word(step, layout.S_INPUTS), f.word(step, layout.S_OUTPUTS)
    rows = f.beyond(step, layout.S_LISTS)
    places = f.beyond(rows, f.mul(inputs, layout.INPUT_WORDS))
    with f.count(outputs) as i:
        place = f.beyond(places, f.mul(i, layout.OUTPUT_WORDS))
        with f.unless(memory_for(f, s, place, storages, offsets, i)):
            let_go(f, storages, i)
            f.ret(ERROR)
    status = start(f, s, call, step, storages, offsets)
    with f.when(f.test("ne", status, DONE)):
        let_go(f, storages, outputs)
        f.ret(status)
    results = f.beyond(places, f.mul(outputs, layout.OUTPUT_WORDS))
    op, attrs = f.pointer(step, layout.S_OP), f.pointer(step, layout.S_ATTRS)
    with f.count(f.word(step, layout.S_RESULTS)) as i:
        row = f.beyond(results, f.mul(i, layout.RESULT_WORDS))
        output = f.word(row, 2)
        offset = f.value(f"udiv i64 {f.word(f.beyond(offsets, output))}, {f.word(row, 3)}")
        x = new_tensor(f, s, f.pointer(row), f.pointer(f.beyond(storages, output)), offset, f.pointer(row, 1))
        with f.when(f.test("eq", x, "null", "ptr")):
            let_go(f, storages, outputs)
            f.ret(ERROR)
        push_result(f, call, x)
        with f.unless(record(f, s, call, x, op, attrs, rows, inputs, layout.INPUT_WORDS)):
            let_go(f, storages, outputs)
            f.ret(ERROR)
    let_go(f, storages, outputs)
    return DONE


@Routine
def call_step(f: Code, s: Ptr, call: Ptr, step: Ptr) -> I64:
    """Call a Python function of tensors: of their tuple, or of each as an argument."""
    rows, count = f.beyond(step, layout.C_LISTS), f.word(step, layout.C_INPUTS)
    items = operands(f, call, rows, count, 1)
    with f.when(f.test("eq", items, "null", "ptr")):
        f.ret(ERROR)
    function, result = f.pointer(step, layout.C_FUNCTION), f.reserve("ptr", 8)
    with f.when(f.test("ne", f.word(step, layout.C_SPREADS), 0)):
        spread = f.external("ptr", "PyObject_Call", ("ptr", function), ("ptr", items), ("ptr", "null"))
        f.put(result, 0, spread, "ptr")
    with f.when(f.test("eq", f.word(step, layout.C_SPREADS), 0)):
        box = f.reserve("ptr", 8)
        f.put(box, 0, items, "ptr")
        arguments = (("ptr", function), ("ptr", box), ("i64", 1), ("ptr", "null"))
        f.put(result, 0, f.external("ptr", "PyObject_Vectorcall", *arguments), "ptr")
    drop(f, items)
    x = f.pointer(result)
    with f.when(f.test("eq", x, "null", "ptr")):
        mistake = f.external("i32", "PyErr_ExceptionMatches", ("ptr", known(f, s, "EXCEPTION")))
        with f.when(f.test("ne", mistake, 0, "i32")):  # the function itself says what is wrong
            f.external("void", "PyErr_Clear")
            f.ret(MISS)
        f.ret(ERROR)
    results = f.word(step, layout.C_RESULTS)
    with f.when(f.test("ne", results, 0)):
        with f.count(results) as i:
            push_result(f, call, keep(f, f.external("ptr", "PyTuple_GetItem", ("ptr", x), ("i64", i))))
        drop(f, x)
        f.ret(DONE)
    push_result(f, call, x)
    op, attrs = f.pointer(step, layout.C_OP), f.pointer(step, layout.C_ATTRS)
    recorded = record(f, s, call, x, op, attrs, rows, count, 1)
    return f.select(recorded, DONE, ERROR)


@Routine
def content(f: Code, s: Ptr, x: Ptr, itemsize: I64) -> Ptr:
    """Return the address of the first element of a tensor."""
    base = address_of(f, s, held(f, s, x, "AT_STORAGE"))
    return f.at(base, f.mul(offset_of(f, s, x), itemsize))


@Routine
def write_window(f: Code, step: Ptr, target: Ptr, value: Ptr, axis: I64) -> None:
    """Copy the elements of a value to a window, from ``axis`` on."""
    with f.when(f.test("eq", axis, layout.AXES)):
        f.external("ptr", "memcpy", ("ptr", target), ("ptr", value), ("i64", f.word(step, layout.W_RUN)))
        f.ret()
    row = f.beyond(f.beyond(step, f.mul(axis, layout.AXIS_WORDS)), layout.W_AXES)
    with f.count(f.word(row)) as i:
        further = (f.at(x, f.mul(i, f.word(row, n))) for n, x in ((1, target), (2, value)))
        write_window(f, step, *further, f.add(axis, 1))


@Routine
def write_step(f: Code, s: Ptr, call: Ptr, step: Ptr) -> I64:
    """Copy a tensor or array, and write into a window of the copy."""
    box = f.reserve("[2 x i64]", 16)
    with f.unless(memory_for(f, s, f.beyond(step, layout.W_NBYTES), box, f.beyond(box, 1), 0)):
        f.ret(ERROR)
    storage, offset, itemsize = f.pointer(box), f.word(box, 1), f.word(step, layout.W_ITEMSIZE)
    source, value = (_register(f, call, f.word(step, n)) for n in (layout.W_SOURCE, layout.W_VALUE))
    target, origin = f.at(address_of(f, s, storage), offset), f.reserve("ptr", 8)
    is_array = f.test("ne", f.word(step, layout.W_IS_ARRAY), 0)
    with f.when(is_array):
        f.put(origin, 0, f.pointer(f.at(source, layout.ARRAY_DATA)), "ptr")
    with f.unless(is_array):
        aval, strides = f.pointer(step, layout.W_SOURCE_AVAL), f.pointer(step, layout.W_SOURCE_STRIDES)
        with f.unless(lies_as(f, s, source, aval, strides)):
            drop(f, storage)
            f.ret(MISS)
        f.put(origin, 0, content(f, s, source, itemsize), "ptr")
    f.external("ptr", "memcpy", ("ptr", target), ("ptr", f.pointer(origin)), ("i64", f.word(step, layout.W_NBYTES)))
    with f.when(f.test("ne", f.word(step, layout.W_RUN), 0)):
        aval, strides = f.pointer(step, layout.W_VALUE_AVAL), f.pointer(step, layout.W_VALUE_STRIDES)
        with f.unless(lies_as(f, s, value, aval, strides)):
            drop(f, storage)
            f.ret(MISS)
        write_window(f, step, f.at(target, f.word(step, layout.W_OFFSET)), content(f, s, value, itemsize), 0)
    place = f.value(f"udiv i64 {offset}, {itemsize}")
    x = new_tensor(f, s, f.pointer(step, layout.W_AVAL), storage, place, f.pointer(step, layout.W_STRIDES))
    drop(f, storage)
    with f.when(f.test("eq", x, "null", "ptr")):
        f.ret(ERROR)
    push_result(f, call, x)
    return DONE


@Routine
def read_step(f: Code, s: Ptr, call: Ptr, step: Ptr) -> I64:
    """Take the value of a Variable, if no program may write into its memory."""
    variable = f.pointer(step, layout.R_VARIABLE)
    value = held(f, s, variable, "TENSOR_OF")
    with f.when(f.test("ne", value, held(f, s, variable, "SHARED_OF"), "ptr")):
        f.ret(MISS)
    push_result(f, call, keep(f, value))
    return DONE


@Routine
def take(f: Code, s: Ptr, variable: Ptr, value: Ptr) -> Bit:
    """Give a Variable a new value; false with an error. Python does it where programs or views follow."""
    arguments = f.reserve("[2 x ptr]", 16)
    f.put(arguments, 0, variable, "ptr")
    f.put(arguments, 1, value, "ptr")
    lock, views = held(f, s, variable, "LOCK_OF"), held(f, s, variable, "VIEWS_OF")
    with f.unless(f.both(is_missing(f, s, lock), is_missing(f, s, views))):
        function = known(f, s, "TAKE")
        done = f.external(
            "ptr", "PyObject_Vectorcall", ("ptr", function), ("ptr", arguments), ("i64", 2), ("ptr", "null")
        )
        drop(f, done)
        f.ret(f.test("ne", done, "null", "ptr"), "i1")
    version = known(f, s, "STATE_VERSION")
    writes = f.external("i64", "PyLong_AsLongLong", ("ptr", held(f, s, version, "WRITES_OF")))
    ticked = f.external("ptr", "PyLong_FromLongLong", ("i64", f.add(writes, 1)))
    with f.when(f.test("eq", ticked, "null", "ptr")):
        f.ret("false", "i1")
    aval, storage = held(f, s, value, "AT_AVAL"), held(f, s, value, "AT_STORAGE")
    strides = f.external("ptr", "PyTuple_GetItem", ("ptr", held(f, s, value, "AT_LAYOUT")), ("i64", 1))
    fresh = new_tensor(f, s, aval, storage, offset_of(f, s, value), strides)
    with f.when(f.test("eq", fresh, "null", "ptr")):
        drop(f, ticked)
        f.ret("false", "i1")
    slots, none = ("TENSOR_OF", "SHARED_OF", "SETTLED_OF", "PIN_OF"), known(f, s, "NONE")
    before = [held(f, s, variable, slot) for slot in slots]
    f.put(at(f, s, variable, "TENSOR_OF"), 0, fresh, "ptr")
    fill_from(f, at(f, s, variable, "SHARED_OF"), fresh)
    for slot in slots[2:]:
        fill_from(f, at(f, s, variable, slot), none)
    exchange(f, at(f, s, version, "WRITES_OF"), ticked)
    for each in before:  # now that the Variable is whole: the end of an object may run any code
        drop(f, each)
    return "true"


@Routine
def assign_step(f: Code, s: Ptr, call: Ptr, step: Ptr) -> I64:
    """Give Variables new values, if all are as they were read, and the end will not fail."""
    with f.when(f.test("sge", f.word(step, layout.A_HANDLE), 0)):
        x, value = (_register(f, call, f.word(step, n)) for n in (layout.A_HANDLE, layout.A_CHANGED))
        with f.unless(f.both(can_change(f, s, x), f.value(f"xor i1 {requires(f, s, value)}, true"))):
            f.ret(MISS)
    count, rows = f.word(step, layout.A_VARIABLES), f.beyond(step, layout.A_LISTS)
    with f.count(count) as i:
        row = f.beyond(rows, f.mul(i, layout.VARIABLE_WORDS))
        now = held(f, s, f.pointer(row), "TENSOR_OF")
        with f.when(f.test("ne", now, _register(f, call, f.word(row, 1)), "ptr")):
            f.ret(MISS)
    with f.count(count) as i:
        row = f.beyond(rows, f.mul(i, layout.VARIABLE_WORDS))
        with f.unless(take(f, s, f.pointer(row), _register(f, call, f.word(row, 2)))):
            f.ret(ERROR)
    return DONE


@Routine
def run_step(f: Code, s: Ptr, call: Ptr, step: Ptr) -> I64:
    """Run a step of any kind."""
    kind = f.word(step, layout.KIND)
    with f.when(f.test("eq", kind, layout.VIEW_STEP)):
        f.ret(view_step(f, s, call, step))
    with f.when(f.test("eq", kind, layout.START_STEP)):
        f.ret(start_step(f, s, call, step))
    with f.when(f.test("eq", kind, layout.WRITE_STEP)):
        f.ret(write_step(f, s, call, step))
    with f.when(f.test("eq", kind, layout.READ_STEP)):
        f.ret(read_step(f, s, call, step))
    with f.when(f.test("eq", kind, layout.ASSIGN_STEP)):
        f.ret(assign_step(f, s, call, step))
    return call_step(f, s, call, step)


@Routine
def can_change(f: Code, s: Ptr, x: Ptr) -> Bit:
    """Return whether giving this handle another value touches nothing else: no tape, no view, no Variable."""
    for flag in ("AT_REQUIRES", "AT_REBOUND", "AT_RECORDED"):
        with f.when(f.test("ne", f.value(f"load i8, ptr {at(f, s, x, flag)}"), 0, "i8")):
            f.ret("false", "i1")
    for slot in ("AT_LEAF", "AT_VIEW"):
        with f.unless(is_missing(f, s, held(f, s, x, slot))):
            f.ret("false", "i1")
    serial = f.external("i64", "PyLong_AsLongLong", ("ptr", held(f, s, x, "AT_SERIAL")))
    with f.when(f.test("eq", serial, f.word(s, WORD["CONSTANT_SERIAL"]))):
        f.ret("false", "i1")
    views = held(f, s, x, "AT_VIEWS")
    with f.unless(is_missing(f, s, views)), f.count(f.external("i64", "PyList_Size", ("ptr", views))) as i:
        item = f.external("ptr", "PyList_GetItem", ("ptr", views), ("i64", i))
        with f.unless(is_dead(f, s, item)):
            f.ret("false", "i1")
    return "true"


@Routine
def rebind(f: Code, s: Ptr, x: Ptr, value: Ptr) -> Ptr:
    """Give the handle ``x`` the value of ``value``; returns ``x``, MISS, or null with an error."""
    changes = can_change(f, s, x)
    with f.when(f.either(requires(f, s, value), f.value(f"xor i1 {changes}, true"))):
        f.ret(f.value(f"inttoptr i64 {MISS} to ptr"), "ptr")
    serial = f.external("ptr", "PyIter_Next", ("ptr", known(f, s, "SERIALS")))
    with f.when(f.test("eq", serial, "null", "ptr")):
        f.ret("null", "ptr")
    slots = ("AT_AVAL", "AT_STORAGE", "AT_LAYOUT", "AT_SERIAL", "AT_ARRAY")
    before = [held(f, s, x, slot) for slot in slots]
    for slot in slots[:3]:
        fill_from(f, at(f, s, x, slot), held(f, s, value, slot))
    f.put(at(f, s, x, "AT_SERIAL"), 0, serial, "ptr")
    f.put(at(f, s, x, "AT_ARRAY"), 0, "null", "ptr")
    for each in before:  # now that the handle is whole: the end of an object may run any code
        drop(f, each)
    return keep(f, x)


def fill_from(f: Code, place: str, value: str) -> None:
    """Store a new reference."""
    f.put(place, 0, keep(f, value), "ptr")


@Routine
def ended(f: Code, s: Ptr, call: Ptr, end: Ptr) -> Ptr:
    """Return the result of a call."""
    kind, count = f.word(end, layout.KIND), f.word(end, 2)
    registers = f.beyond(end, 3)
    with f.when(f.test("eq", kind, layout.RETURN)):
        f.ret(keep(f, _register(f, call, f.word(registers))), "ptr")
    with f.when(f.test("eq", kind, layout.REBIND)):
        x, value = (_register(f, call, f.word(registers, i)) for i in range(2))
        f.ret(rebind(f, s, x, value), "ptr")
    with f.when(f.test("eq", kind, layout.LIST)):
        items = f.external("ptr", "PyList_New", ("i64", count))
        with f.when(f.test("ne", items, "null", "ptr")), f.count(count) as i:
            x = _register(f, call, f.word(f.beyond(registers, i)))
            f.external("i32", "PyList_SetItem", ("ptr", items), ("i64", i), ("ptr", keep(f, x)))
        f.ret(items, "ptr")
    with f.when(f.test("eq", kind, layout.TUPLE)):
        f.ret(operands(f, call, registers, count, 1), "ptr")
    items = operands(f, call, f.beyond(registers, 1), count, 1)
    with f.when(f.test("eq", items, "null", "ptr")):
        f.ret("null", "ptr")
    result = f.external("ptr", "PyObject_Call", ("ptr", f.pointer(registers)), ("ptr", items), ("ptr", "null"))
    drop(f, items)
    return result


@Routine
def cleared(f: Code, call: Ptr) -> None:
    """Drop the results of steps."""
    first = f.word(call, OWNED)
    with f.count(f.sub(f.word(call, REGISTER_COUNT), first)) as i:
        drop(f, _register(f, call, f.add(first, i)))


@Routine
def perform(f: Code, s: Ptr, call: Ptr, action: Ptr) -> Ptr:
    """Run the steps of an action; returns the result, null with an error, or MISS."""
    owner = keep(f, f.pointer(action, layout.OWNER))
    arguments = f.word(call, REGISTER_COUNT)
    with f.count(arguments) as i:  # a Variable, or a list, may let go of its tensor while a step calls Python
        keep(f, _register(f, call, i))
    count = f.word(action, layout.CONSTANTS)
    with f.count(count) as i:
        push_result(f, call, f.pointer(f.beyond(action, i), layout.FIRST))
    f.put(call, OWNED, f.word(call, REGISTER_COUNT))
    result = f.reserve("ptr", 8)
    with f.cycle("ptr", f.beyond(f.beyond(action, count), layout.FIRST)) as cycle:
        step = cycle.value
        size = f.word(step, layout.SIZE)
        with f.when(f.test("eq", size, 0)):
            f.put(result, 0, ended(f, s, call, step), "ptr")
            cycle.leave()
        status = run_step(f, s, call, step)
        with f.when(f.test("ne", status, DONE)):
            failed = f.select(f.test("eq", status, MISS), f.value(f"inttoptr i64 {MISS} to ptr"), "null", "ptr")
            f.put(result, 0, failed, "ptr")
            cycle.leave()
        cycle.again(f.beyond(step, size))
    cleared(f, call)
    with f.count(arguments) as i:
        drop(f, _register(f, call, i))
    drop(f, owner)
    return f.pointer(result)
