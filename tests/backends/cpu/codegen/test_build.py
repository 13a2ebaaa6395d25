"""Text to addresses: what is compiled, what is remembered, what two processes share."""

import ctypes
import itertools
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.backends import context
from runnel.backends.cpu import target as targets
from runnel.backends.cpu.codegen import build
from runnel.backends.host import objects
from runnel.core import switches
from runnel.core.errors import DeviceError, VerifierError
from runnel.core.records import replace

_UNIQUE = itertools.count()


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path) -> Iterator[Path]:
    with switches.override(cache=True, cache_dir=str(tmp_path / "cache"), cache_size=1 << 24):
        yield tmp_path / "cache"


def adder(symbol: str, constant: int, mark: object = None) -> tuple[str, str]:
    """A function that adds ``constant``; ``mark`` makes a text that was never seen before."""
    mark = next(_UNIQUE) if mark is None else mark
    return symbol, f"; {mark}\ndefine i64 @{symbol}(i64 %x) {{\n  %y = add i64 %x, {constant}\n  ret i64 %y\n}}\n"


def call(address: int, x: int) -> int:
    result: int = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(x)
    return result


def counts() -> tuple[int, int, int]:
    s = objects.statistics
    return s.compiled, s.loaded, s.reused


def since(before: tuple[int, int, int]) -> tuple[int, ...]:
    return tuple(now - then for now, then in zip(counts(), before, strict=True))


def test_text_becomes_functions() -> None:
    functions = build.addresses([adder("first", 10), adder("second", 20)])
    assert [call(address, 1) for address in functions] == [11, 21]


def test_equal_text_is_compiled_once() -> None:
    before, module = counts(), adder("once", 1)
    one, two = build.addresses([module, module])
    assert one == two == build.addresses([module])[0]
    assert since(before) == (1, 0, 2)


def test_one_symbol_in_different_texts() -> None:
    functions = build.addresses([adder("same", 1), adder("same", 2), adder("same", 3)])
    assert [call(address, 0) for address in functions] == [1, 2, 3]


def test_an_empty_list_is_fine() -> None:
    assert build.addresses([]) == []


def test_a_damaged_cache_file_is_compiled_again(cache_folder: Path) -> None:
    module = adder("damaged", 5)
    build.addresses([module])
    for path in cache_folder.iterdir():
        path.write_bytes(path.read_bytes()[:-10])
    build.compiler.cache_clear()
    before = counts()
    assert call(build.addresses([module])[0], 1) == 6
    assert since(before) == (1, 0, 0)
    build.compiler.cache_clear()
    before = counts()
    build.addresses([module])
    assert since(before) == (0, 1, 0)


def test_without_a_cache_nothing_is_written(cache_folder: Path) -> None:
    with switches.override(cache=False):
        assert call(build.addresses([adder("unwritten", 3)])[0], 1) == 4
    assert not cache_folder.exists()


def test_a_function_of_the_library_is_built_when_mentioned(monkeypatch: pytest.MonkeyPatch) -> None:
    emitted = []

    def emit(target: targets.InstructionSet) -> str:
        emitted.append(target.name)
        return adder("rn_test_helper", 100)[1]

    monkeypatch.setitem(build._LIBRARY, "rn_test_helper", emit)
    build.addresses([adder("unaware", 1)])
    assert emitted == []
    for name in ("caller_a", "caller_b"):
        text = (
            f"declare i64 @rn_test_helper(i64)\ndefine i64 @{name}(i64 %x) {{\n"
            f"  %y = call i64 @rn_test_helper(i64 %x)\n  ret i64 %y\n}}\n; {next(_UNIQUE)}"
        )
        assert call(build.addresses([(name, text)])[0], 5) == 105
    assert emitted == [context.current().target.name]


def test_memcpy_and_memset_are_found() -> None:
    text = """declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define i64 @copier(i64 %to) {
  %p = inttoptr i64 %to to ptr
  %half = getelementptr i8, ptr %p, i64 600
  call void @llvm.memset.p0.i64(ptr %p, i8 7, i64 600, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %half, ptr %p, i64 600, i1 false)
  ret i64 0
}
"""
    buffer = ctypes.create_string_buffer(1200)
    call(build.addresses([("copier", text)])[0], ctypes.addressof(buffer))
    assert buffer.raw == b"\7" * 1200


def test_bad_text_is_a_verifier_error() -> None:
    with pytest.raises(VerifierError, match="broken"):
        build.addresses([("broken", "define i64 @broken(i64 %x) { ret i64 %nothing }")])
    text = "define i64 @unlinked(i64 %x) {\n  %y = call i64 @rn_nobody_defines_this(i64 %x)\n  ret i64 %y\n}\n"
    with pytest.raises(VerifierError, match="unlinked"):
        build.addresses([("unlinked", text + "declare i64 @rn_nobody_defines_this(i64)")])
    assert call(build.addresses([adder("after_errors", 1)])[0], 1) == 2


def test_verify_finds_what_parsing_does_not() -> None:
    # A use that its definition does not dominate: each line is well formed, the function is not.
    text = """define i64 @undominated(i1 %c, i64 %x) {
  br i1 %c, label %a, label %b
a:
  %y = add i64 %x, 1
  br label %b
b:
  ret i64 %y
}
"""
    with switches.override(verify=True), pytest.raises(VerifierError, match="dominate"):
        build.object_code(text)


@pytest.mark.parametrize("row", targets.TARGETS, ids=lambda row: row.name)
def test_every_target_gives_objects_and_assembly(row: targets.InstructionSet) -> None:
    module = adder("everywhere", 4)
    with switches.override(target=row.name):
        assert len(build.object_code(module[1])) > 100
        assert "everywhere:" in build.assembly(module[1]).replace("_everywhere", "everywhere")
        if not row.runs_here:
            with pytest.raises(DeviceError, match=row.name):
                build.addresses([module])


def test_each_effort_has_machine_code_of_its_own() -> None:
    module, before = adder("tried", 5), counts()
    addresses = []
    for effort in (0, 1, 2, 3, 2):
        with switches.override(effort=effort):
            addresses += build.addresses([module])
    assert len({int(a) for a in addresses}) == 4
    assert addresses[4] == addresses[2]
    assert since(before)[0] == 4


def test_every_effort_gives_the_same_bits() -> None:
    rng = np.random.default_rng(8)
    x, w = (rn.asarray(rng.standard_normal((37, 37)).astype(np.float32)) for _ in range(2))

    def loss(x: Any, w: Any) -> Any:
        return rn.sum(rn.softmax(rn.tanh(x @ w) / 3, axis=-1) * rn.sin(x) * 7)

    results = []
    for effort in (0, 1, 2, 3):
        with switches.override(effort=effort):
            results.append([g.numpy() for g in rn.compile(rn.grad(loss, argnums=(0, 1)))(x, w)])
    for gradients in results[1:]:
        for a, b in zip(results[0], gradients, strict=True):
            np.testing.assert_array_equal(a, b)


def test_keys_differ_by_text_target_and_effort() -> None:
    rows = [replace(row, effort=effort) for row in targets.TARGETS for effort in (0, 2)]
    compilers = [build.compiler(row) for row in rows]
    assert len({c.key(text) for c in compilers for text in ("a", "b")}) == 2 * len(compilers)


def test_threads_building_the_same_text_compile_it_once() -> None:
    modules = [adder(f"shared{i}", i) for i in range(8)]
    before, functions = counts(), []

    def work() -> None:
        functions.append(build.addresses(modules))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(functions) == 6 and all(addresses == functions[0] for addresses in functions)
    assert since(before)[:2] == (8, 0)


_CHILD = """
import ctypes, sys
from runnel.backends.cpu.codegen import build
from runnel.backends.host import objects
modules = []
for i in range(12):
    modules.append((f"f{i}", f"define i64 @f{i}(i64 %x) {{\\n  %y = mul i64 %x, {i}\\n  ret i64 %y\\n}}"))
found = build.addresses(modules)
values = [ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(a)(3) for a in found]
if values != [3 * i for i in range(12)]:
    sys.exit(f"wrong values {values}")
print(objects.statistics.compiled, objects.statistics.loaded)
"""


def _start(folder: Path) -> "subprocess.Popen[str]":
    program = f"from runnel.core import switches\nswitches.cache_dir.set({str(folder)!r})\n{_CHILD}"
    return subprocess.Popen([sys.executable, "-W", "error", "-c", program], stdout=subprocess.PIPE, text=True)


def test_a_second_process_compiles_nothing(cache_folder: Path) -> None:
    assert _start(cache_folder).communicate()[0].split() == ["12", "0"]
    assert _start(cache_folder).communicate()[0].split() == ["0", "12"]


def test_processes_may_fill_one_cache_at_once(cache_folder: Path) -> None:
    children = [_start(cache_folder) for _ in range(3)]
    outputs = [child.communicate()[0].split() for child in children]
    assert all(child.returncode == 0 for child in children)
    assert all(int(compiled) + int(loaded) == 12 for compiled, loaded in outputs)
    assert not list(cache_folder.glob("*.tmp"))
    assert _start(cache_folder).communicate()[0].split() == ["0", "12"]
