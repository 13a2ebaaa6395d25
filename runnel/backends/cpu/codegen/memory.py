"""Loads and stores in LLVM text: scalars, whole vectors, the first lanes of a vector, and gathers and scatters.

No function here accesses a byte of a lane that is not active. A bool is an i1 in registers and a byte in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from runnel.backends.cpu.codegen.lanes import register_dtype
from runnel.backends.cpu.codegen.text import Emitter, element, vector
from runnel.backends.cpu.target import InstructionSet
from runnel.core.dtypes import DType, bool_
from runnel.core.records import record
from runnel.loops.ir import LANES


@record
class Active:
    """The active lanes of a vector of ``width``: the first ``count``.

    ``count`` is a number, or the name of an i64 (at least 1) with ``mask`` the name of its vector of flags.
    """

    width: int
    count: int | str
    mask: str = ""

    @property
    def is_full(self) -> bool:
        return self.count == self.width

    def flags(self, width: int) -> str:
        """Return the active lanes as an operand of type <width x i1>."""
        if isinstance(self.count, str):
            return self.mask
        return f"<{', '.join('i1 true' if lane < self.count else 'i1 false' for lane in range(width))}>"


ALL_LANES = Active(LANES, LANES)


def run_time(em: Emitter, count: str) -> Active:
    """Activate the first ``count`` (an i64 from 1 to LANES) of LANES lanes."""
    few = em.value(f"trunc i64 {count} to i32")
    lanes = f"<{LANES} x i32>"
    one = em.value(f"insertelement {lanes} poison, i32 {few}, i32 0")
    every = em.value(f"shufflevector {lanes} {one}, {lanes} poison, {lanes} zeroinitializer")
    return Active(LANES, count, em.value(f"icmp ult {lanes} {ascending('i32', LANES)}, {every}"))


def ascending(kind: str, width: int, step: int = 1) -> str:
    """Return the constant vector 0, step, 2·step, …"""
    return f"<{', '.join(f'{kind} {lane * step}' for lane in range(width))}>"


def stored(dtype: DType) -> str:
    """Return the LLVM type of one element in memory."""
    return "i8" if dtype is bool_ else element(register_dtype(dtype))


def advance(em: Emitter, dtype: DType, pointer: str, elements: str) -> str:
    """Move ``pointer`` by a number of elements (an i64 operand)."""
    return pointer if elements == "0" else em.value(f"getelementptr {stored(dtype)}, ptr {pointer}, i64 {elements}")


def load(em: Emitter, dtype: DType, pointer: str) -> str:
    """Load one element."""
    return _to_register(em, dtype, em.value(f"load {stored(dtype)}, ptr {pointer}, align {dtype.itemsize}"), 1)


def store(em: Emitter, dtype: DType, pointer: str, operand: str) -> None:
    """Store one element."""
    value = _to_memory(em, dtype, operand, 1)
    em.effect(f"store {stored(dtype)} {value}, ptr {pointer}, align {dtype.itemsize}")


def load_lanes(em: Emitter, dtype: DType, pointer: str, active: Active) -> str:
    """Load adjacent elements, one per lane; zero in inactive lanes."""
    width, align = active.width, dtype.itemsize
    kind, bit = f"<{width} x {stored(dtype)}>", f"i{8 * align}"
    if active.is_full:
        loaded = em.value(f"load {kind}, ptr {pointer}, align {align}")
        return _to_register(em, dtype, loaded, width)
    bits = f"<{width} x {bit}>"
    if isinstance(active.count, int):
        few = f"<{active.count} x {bit}>"
        first = em.value(f"load {few}, ptr {pointer}, align {align}")
        picks = ", ".join(f"i32 {min(lane, active.count)}" for lane in range(width))
        raw = em.value(f"shufflevector {few} {first}, {few} zeroinitializer, <{width} x i32> <{picks}>")
    elif _masks_in_hardware(em.target, dtype):
        mask = (f"<{width} x i1>", active.mask)
        arguments = (("ptr", pointer), ("i32", str(align)), mask, (bits, "zeroinitializer"))
        raw = em.intrinsic(f"llvm.masked.load.v{width}{bit}.p0", bits, *arguments)
    else:
        name = _define_load_first(em, align)
        raw = em.value(f"call {bits} @{name}(ptr {pointer}, i64 {active.count})")
    loaded = raw if bits == kind else em.value(f"bitcast {bits} {raw} to {kind}")
    return _to_register(em, dtype, loaded, width)


def store_lanes(em: Emitter, dtype: DType, pointer: str, operand: str, active: Active) -> None:
    """Store the active lanes to adjacent elements."""
    width, align = active.width, dtype.itemsize
    kind, bit = f"<{width} x {stored(dtype)}>", f"i{8 * align}"
    value = _to_memory(em, dtype, operand, width)
    if active.is_full:
        em.effect(f"store {kind} {value}, ptr {pointer}, align {align}")
        return
    bits = f"<{width} x {bit}>"
    raw = value if bits == kind else em.value(f"bitcast {kind} {value} to {bits}")
    if isinstance(active.count, int):
        first = ", ".join(f"i32 {lane}" for lane in range(active.count))
        few = em.value(f"shufflevector {bits} {raw}, {bits} poison, <{active.count} x i32> <{first}>")
        em.effect(f"store <{active.count} x {bit}> {few}, ptr {pointer}, align {align}")
    elif em.target.has_masks:  # vmaskmov stores are slow: a dozen cycles each on AMD's Zen
        name = f"llvm.masked.store.v{width}{bit}.p0"
        em.declare(name, "void", bits, "ptr", "i32", f"<{width} x i1>")
        em.effect(f"call void @{name}({bits} {raw}, ptr {pointer}, i32 {align}, <{width} x i1> {active.mask})")
    else:
        name = _define_store_first(em, align)
        em.effect(f"call void @{name}({bits} {raw}, ptr {pointer}, i64 {active.count})")


def gather(em: Emitter, dtype: DType, pointer: str, offsets: Sequence[str], active: Active) -> str:
    """Load lane l from element ``offsets[l]`` (i64 operands) after ``pointer``.

    Scalar loads and inserts: they are as fast as the gather instructions of current x86 processors, and NEON has none.
    """
    count = active.count if isinstance(active.count, int) else active.width
    kind, result = f"<{active.width} x {stored(dtype)}>", "zeroinitializer"
    for lane in range(count):
        offset = offsets[lane]
        if isinstance(active.count, str) and lane > 0:  # a lane that is not active reads the element of lane 0
            valid = em.value(f"icmp ugt i64 {active.count}, {lane}")
            offset = em.value(f"select i1 {valid}, i64 {offset}, i64 {offsets[0]}")
        place = advance(em, dtype, pointer, offset)
        one = em.value(f"load {stored(dtype)}, ptr {place}, align {dtype.itemsize}")
        result = em.value(f"insertelement {kind} {result}, {stored(dtype)} {one}, i32 {lane}")
    return _to_register(em, dtype, result, active.width)


def scatter(em: Emitter, dtype: DType, pointer: str, offsets: Sequence[str], operand: str, active: Active) -> None:
    """Store lane l to element ``offsets[l]`` after ``pointer``, in order of lane: the last lane of an address wins."""
    value, element_type = _to_memory(em, dtype, operand, active.width), stored(dtype)
    kind = f"<{active.width} x {element_type}>"
    lanes = [em.value(f"extractelement {kind} {value}, i32 {lane}") for lane in range(active.width)]
    count = active.count if isinstance(active.count, int) else active.width
    final_offset, final_value = offsets[0], lanes[0]
    for lane in range(count):
        offset, one = offsets[lane], lanes[lane]
        if isinstance(active.count, str) and lane > 0:  # a lane that is not active repeats the last active one
            valid = em.value(f"icmp ugt i64 {active.count}, {lane}")
            offset = final_offset = em.value(f"select i1 {valid}, i64 {offset}, i64 {final_offset}")
            one = final_value = em.value(f"select i1 {valid}, {element_type} {one}, {element_type} {final_value}")
        place = advance(em, dtype, pointer, offset)
        em.effect(f"store {element_type} {one}, ptr {place}, align {dtype.itemsize}")


def last_active(em: Emitter, dtype: DType, operand: str, active: Active) -> str:
    """Return the value of the last active lane."""
    at = str(active.count - 1) if isinstance(active.count, int) else em.value(f"sub i64 {active.count}, 1")
    return em.value(f"extractelement {vector(register_dtype(dtype), active.width)} {operand}, i64 {at}")


def _to_register(em: Emitter, dtype: DType, operand: str, lanes: int) -> str:
    if dtype is not bool_:
        return operand
    kind, zero = ("i8", "0") if lanes == 1 else (f"<{lanes} x i8>", "zeroinitializer")
    return em.value(f"icmp ne {kind} {operand}, {zero}")


def _to_memory(em: Emitter, dtype: DType, operand: str, lanes: int) -> str:
    if dtype is not bool_:
        return operand
    return em.value(f"zext {vector(dtype, lanes)} {operand} to {'i8' if lanes == 1 else f'<{lanes} x i8>'}")


def _masks_in_hardware(target: InstructionSet, dtype: DType) -> bool:
    """Return whether LLVM has an instruction for a masked load; else it writes a branch for every lane."""
    return target.has_masks or (target.triple.startswith("x86_64") and dtype.itemsize >= 4)


def _define_load_first(em: Emitter, itemsize: int) -> str:
    """Return a function that loads the first n of LANES elements: pieces of 16, 8, 4, 2 and 1, assembled in
    a buffer."""
    kind, name = f"i{8 * itemsize}", f"load_first_{8 * itemsize}"
    lanes = f"<{LANES} x {kind}>"
    lines = [
        f"define internal {lanes} @{name}(ptr %p, i64 %n) noinline nounwind {{",
        "entry:",
        f"  %b = alloca {lanes}, align 64",
        f"  store {lanes} zeroinitializer, ptr %b, align 64",
        *_pieces(kind, itemsize, "%p", "%b"),
        f"  %r = load {lanes}, ptr %b, align 64",
        f"  ret {lanes} %r",
        "}",
    ]
    em.definitions[name] = "\n".join(lines)
    return name


def _define_store_first(em: Emitter, itemsize: int) -> str:
    """Return the counterpart of :func:`_define_load_first`."""
    kind, name = f"i{8 * itemsize}", f"store_first_{8 * itemsize}"
    lanes = f"<{LANES} x {kind}>"
    lines = [
        f"define internal void @{name}({lanes} %v, ptr %p, i64 %n) noinline nounwind {{",
        "entry:",
        f"  %b = alloca {lanes}, align 64",
        f"  store {lanes} %v, ptr %b, align 64",
        *_pieces(kind, itemsize, "%b", "%p"),
        "  ret void",
        "}",
    ]
    em.definitions[name] = "\n".join(lines)
    return name


def _pieces(kind: str, itemsize: int, source: str, destination: str) -> list[str]:
    """Copy the first %n (at most LANES) elements, a piece for each bit of %n from the highest."""
    lines: list[str] = []
    piece = LANES
    while piece:
        lines += [
            f"  %bit{piece} = and i64 %n, {piece}",
            f"  %has{piece} = icmp ne i64 %bit{piece}, 0",
            f"  br i1 %has{piece}, label %copy{piece}, label %after{piece}",
            f"copy{piece}:",
            f"  %o{piece} = and i64 %n, {-2 * piece}",
            f"  %s{piece} = getelementptr {kind}, ptr {source}, i64 %o{piece}",
            f"  %d{piece} = getelementptr {kind}, ptr {destination}, i64 %o{piece}",
            f"  %x{piece} = load <{piece} x {kind}>, ptr %s{piece}, align {itemsize}",
            f"  store <{piece} x {kind}> %x{piece}, ptr %d{piece}, align {itemsize}",
            f"  br label %after{piece}",
            f"after{piece}:",
        ]
        piece //= 2
    return lines
