"""Object code in memory: what is loaded, how addresses are filled in, what is refused, and when it goes again."""

from __future__ import annotations

import ctypes
import struct

import llvmlite.binding as llvm
import numpy as np
import pytest

from runnel.backends.cpu import compiler, driver, link
from runnel.backends.cpu.compiler import Functions
from runnel.core.errors import VerifierError


def compiled(text: str) -> bytes:
    return driver.host_compiler().object_code(text)


def call(function: link.Function, *arguments: int) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(arguments))(function)(*arguments))


def adder(name: str, number: int) -> tuple[str, bytes]:
    return name, compiled(f"define i64 @{name}(i64 %x) {{\n  %y = add i64 %x, {number}\n  ret i64 %y\n}}\n")


TABLE = """
@numbers = private constant [3 x i64] [i64 5, i64 7, i64 11]
@places = private constant [2 x ptr] [ptr getelementptr (i64, ptr @numbers, i64 2), ptr @numbers]
@kept = internal global i64 40
define i64 @table(i64 %i) {
  %at = getelementptr [2 x ptr], ptr @places, i64 0, i64 %i
  %place = load ptr, ptr %at
  %number = load i64, ptr %place
  %before = load volatile i64, ptr @kept
  %after = add i64 %before, 1
  store volatile i64 %after, ptr @kept
  %sum = add i64 %number, %after
  ret i64 %sum
}
"""


def test_constants_tables_of_addresses_and_variables() -> None:
    (function,) = link.link([("table", compiled(TABLE))], {})
    assert [call(function, 0), call(function, 1), call(function, 1)] == [11 + 41, 5 + 42, 5 + 43]


def test_calls_reach_other_libraries_and_the_process() -> None:
    (helper,) = link.link([adder("helper", 100)], {})
    text = (
        "declare i64 @helper(i64)\ndeclare i64 @labs(i64)\n"
        "define i64 @caller(i64 %x) {\n  %y = call i64 @helper(i64 %x)\n"
        "  %z = call i64 @labs(i64 %y)\n  ret i64 %z\n}\n"
    )
    (caller,) = link.link([("caller", compiled(text))], {"helper": helper})
    blocks = link.statistics.blocks
    del helper
    assert link.statistics.blocks == blocks, "what a library calls stays with it"
    assert call(caller, -107) == 7


def test_objects_of_one_link_may_have_equal_names() -> None:
    compiler = link.link([adder("same", i) for i in range(4)], {})
    assert [call(f, 1) for f in compiler] == [1, 2, 3, 4]


def test_code_goes_with_the_last_of_its_functions() -> None:
    before = link.statistics.blocks, link.statistics.nbytes
    objects = [adder(f"f{i}", i) for i in range(20)]
    compiler = [link.link([o], {})[0] for o in objects]
    assert link.statistics.blocks == before[0] + 20
    last_function = compiler[7]
    del compiler
    assert link.statistics.blocks == before[0] + 1
    assert call(last_function, 1) == 8
    del last_function
    assert (link.statistics.blocks, link.statistics.nbytes) == before


def test_code_cannot_be_written() -> None:
    (function,) = link.link([adder("sealed", 1)], {})
    with open("/proc/self/maps", encoding="utf-8") as file:
        (line,) = [x for x in file if int(x.split("-")[0], 16) <= function < int(x.split()[0].split("-")[1], 16)]
    assert line.split()[1] == "r-xp"


def test_what_was_used_last_stays_and_the_rest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler.clear()
    table: Functions[int] = Functions()
    before = link.statistics.blocks
    size = link.whole_pages(1)
    monkeypatch.setattr(compiler, "KEPT", 4 * size)
    for i in range(4):
        table.update([(i, link.link([adder(f"g{i}", i)], {})[0])])
    used = table.get(0)
    assert used is not None and call(used, 1) == 1
    for i in range(4, 7):
        table.update([(i, link.link([adder(f"g{i}", i)], {})[0])])
    assert [i for i in range(7) if table.get(i) is not None] == [0, 4, 5, 6]
    assert link.statistics.blocks == before + 4
    compiler.clear()
    assert [i for i in range(7) if table.get(i) is not None] == [0], "a function that somebody holds is found"
    assert call(used, 1) == 1
    del used
    compiler.clear()
    assert len(table) == 0
    assert link.statistics.blocks == before


LOST = "declare void @rn_nobody()\ndefine void @f() {\n  call void @rn_nobody()\n  ret void\n}\n"


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ([("f", b"")], "does not begin"),
        ([("f", b"\x7fELF" + bytes(100))], "does not begin"),
        ([("f", adder("f", 1)[1][:200])], "damaged"),
        ([adder("g", 1), ("nobody", adder("h", 1)[1])], "does not define nobody"),
        ([("f", compiled(LOST))], "rn_nobody"),
    ],
)
def test_what_cannot_be_loaded_is_an_error_and_leaves_nothing(objects: list[tuple[str, bytes]], reason: str) -> None:
    before = link.statistics.blocks
    with pytest.raises(VerifierError, match=reason):
        link.link(objects, {})
    assert link.statistics.blocks == before


def test_damaged_objects_end_in_one_error_or_load() -> None:
    code = compiled(TABLE)
    drawn = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(code)
        for place in drawn.integers(16, len(code), 3):
            damaged[place] = drawn.integers(256)
        try:
            link.link([("table", bytes(damaged))], {})
        except (VerifierError, MemoryError):
            continue


def word(kind: int, instruction: int, target: int, place: int) -> int:
    image = bytearray(struct.pack("<I", instruction))
    link.AARCH64.rules[kind].write(image, 0, target, place)
    return int(struct.unpack("<I", image)[0])


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


def test_addresses_in_instructions_of_arm() -> None:
    """Each kind is read back as the processor does ("Arm Architecture Reference Manual", C6)."""
    drawn = np.random.default_rng(1)
    places, distances = drawn.integers(1 << 32, 1 << 40, 200) & ~3, drawn.integers(-(1 << 26), 1 << 26, 200)
    for place, distance in zip(places, distances, strict=True):
        target = int(place) + int(distance)
        adrp = word(275, 0x90000000, target, int(place))
        pages_away = signed((adrp >> 5 & 0x7FFFF) << 2 | adrp >> 29 & 3, 21)
        assert (int(place) >> 12) + pages_away == target >> 12
        assert word(277, 0x91000000, target, int(place)) >> 10 & 0xFFF == target & 0xFFF
        for scale, kind in enumerate((278, 284, 285, 286, 299)):
            aligned = target & ~15
            assert (word(kind, 0x39400000, aligned, int(place)) >> 10 & 0xFFF) << scale == aligned & 0xFFF
        branch = word(283, 0x94000000, target & ~3, int(place))
        assert int(place) + signed(branch & 0x3FFFFFF, 26) * 4 == target & ~3
        assert branch >> 26 == 0x94000000 >> 26
    with pytest.raises(VerifierError, match="reach"):
        word(283, 0x94000000, 1 << 40, 0)


def test_all_that_llvm_leaves_open_for_arm_is_known() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("aarch64-linux-gnu").create_target_machine(reloc="pic", codemodel="small")
    copying = "%copied = call ptr @memcpy(ptr %place, ptr %at, i64 %sum)\n  ret i64 %sum"
    text = "declare ptr @memcpy(ptr, ptr, i64)\n" + TABLE.replace("ret i64 %sum", copying)
    file = link.parse(machine.emit_object(llvm.parse_assembly(text)))
    assert file.machine == 183
    kinds = {r.kind for r in file.relocations}
    assert len(kinds) >= 3
    assert kinds <= link.AARCH64.rules.keys()
