"""Test programs on disk: they equal new ones, and damaged or unknown ones are compiled again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.backends import base, context
from runnel.backends.base import WINDOW, CommandBuffer
from runnel.backends.cpu.codegen import build, products
from runnel.backends.cpu.compiler import Functions
from runnel.backends.host import objects
from runnel.backends.host.objects import ObjectCache
from runnel.compile import cache
from runnel.compile.calling import CompiledProgram
from runnel.compiler import disk_cache, plan
from runnel.compiler.command_buffer import command_buffer
from runnel.compiler.program import Program
from runnel.core import switches
from runnel.core.devices import CPU
from runnel.core.errors import AxisError, MemoryBudgetError
from runnel.core.records import fields, replace
from runnel.core.tables import Table

pytestmark = pytest.mark.suite


ROOT = Path(__file__).resolve().parents[2]
PREFIX = b"runnel program"
BACKEND = base.of(CPU)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A separate folder; checked programs are always made again, so nothing is checked here. Rules that other tests
    have registered are forgotten."""
    monkeypatch.setattr(Table, "registrations", Table.own_registrations)
    with switches.override(verify=False, cache=True, cache_dir=str(tmp_path / "cache")):
        yield tmp_path / "cache"


def native_of(compiled: Any, *args: Any) -> CompiledProgram:
    native = compiled._executable_for(args, {}).native
    assert native is not None
    return native


def dense_step(x: Any, y: Any) -> Any:
    return rn.softmax(x @ y) * 2.0 + x.sum()


def looped(x: Any, y: Any) -> Any:
    last, every = rn.scan(lambda carry, row: (rn.tanh(carry @ y + row), carry), x[0], x)
    return last, every.sum()


def counted(x: Any, y: Any) -> Any:
    return rn.while_loop(
        lambda state: state[0] < 5, lambda state: (state[0] + 1, rn.tanh(state[1] @ y)), (x[0, 0] * 0, x)
    )


def chosen(x: Any, y: Any) -> Any:
    return rn.cond(x.sum() > 0, lambda: x @ y, lambda: x - y.sum())


PROGRAMS = (dense_step, looped, counted, chosen)


def arguments(size: int = 64) -> tuple[rn.Tensor, rn.Tensor]:
    drawn = np.random.default_rng(0).standard_normal((2, size, size), np.float32)
    return rn.asarray(drawn[0]), rn.asarray(drawn[1])


def bits(value: Any) -> list[bytes]:
    return [x.numpy().tobytes() for x in (value if isinstance(value, tuple) else (value,))]


def fresh(function: Callable[..., Any]) -> Any:
    """Compiled as in a new process: no program in memory."""
    cache.clear()
    return rn.compile(function)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the graphs that are planned."""
    names: list[str] = []
    made = plan.Plan

    def noted(graph: Any, *parts: Any) -> plan.Plan:
        names.append(graph.name)
        return made(graph, *parts)

    monkeypatch.setattr(plan, "Plan", noted)
    return names


def programs_in(folder: Path) -> list[Path]:
    actual = [path for path in sorted(folder.iterdir()) if PREFIX in path.read_bytes()[:100]]
    return actual


def same(a: CommandBuffer, b: CommandBuffer) -> bool:
    def equal(x: Any, y: Any) -> bool:
        if isinstance(x, np.ndarray):
            return x.dtype == y.dtype and np.array_equal(x, y)
        if isinstance(x, tuple):
            return len(x) == len(y) and all(map(equal, x, y))
        return type(x) is type(y) and x == y

    return all(equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(CommandBuffer))


@pytest.mark.parametrize("function", PROGRAMS)
def test_what_is_read_runs_as_what_was_made(function: Callable[..., Any], plans: list[str], folder: Path) -> None:
    args = arguments()
    result = bits(fresh(function)(*args))
    assert function.__name__ in plans
    assert len(programs_in(folder)) == 1
    plans.clear()
    compiled = fresh(function)
    assert bits(compiled(*args)) == result
    assert function.__name__ not in plans


@pytest.mark.parametrize("function", PROGRAMS)
@pytest.mark.parametrize("threads", [1, 2])
def test_the_plan_made_later_is_the_one_on_disk(function: Callable[..., Any], threads: int) -> None:
    args = arguments()
    with switches.override(num_threads=threads):
        fresh(function)(*args)
        native = native_of(fresh(function), *args)
        read = disk_cache.load(disk_cache.key(native.recipe.graph, native.recipe.context, None))
        assert len(read) == 1
        assert same(read[0], command_buffer(native.plan, BACKEND))
        inspection = fresh(function).program(*args)
        assert len(inspection.schedule) == len(inspection.plan.calls) == len(read[0].heads)
        assert inspection.memory.peak == read[0].arena


def test_command_buffers_survive_the_way_to_bytes_and_back() -> None:
    for function in PROGRAMS:
        native = native_of(fresh(function), *arguments())
        before = (
            command_buffer(native.plan, BACKEND),
            replace(command_buffer(native.plan, BACKEND), constants=np.arange(13, dtype=np.uint8)),
        )
        after = disk_cache.decoded(disk_cache.encoded(before))
        assert len(after) == 2
        assert all(map(same, before, after))


def test_a_preparation_is_kept_with_its_program(plans: list[str]) -> None:
    weight = rn.Variable(rn.ones((160, 160)))

    def serve(x: Any) -> Any:
        return x @ rn.exp(weight)

    x = rn.ones((160, 160))
    result = fresh(serve)(x).numpy()
    assert len(plans) >= 2
    plans.clear()
    again = fresh(serve)
    assert np.array_equal(again(x).numpy(), result)
    assert not plans
    weight.assign(weight.read() * 0.0)
    assert np.array_equal(again(x).numpy(), np.full((160, 160), 160, np.float32))
    assert again.program(x).hoisted_constants is not None


def test_training_goes_on_as_if_nothing_were_kept(plans: list[str]) -> None:
    def losses() -> list[float]:
        weight = rn.Parameter(rn.ones((40, 30)) * 0.1)
        optimizer = rn.optim.SGD([weight], lr=0.1, momentum=0.9)

        def step(x: Any, rate: float) -> Any:
            optimizer.zero_grad()
            loss = ((x @ weight) ** 2).mean() * rate
            loss.backward()
            optimizer.step()
            return loss

        compiled = fresh(step)
        return [float(compiled(rn.ones((20, 40)) * i, 0.5 * i)) for i in range(1, 6)]

    first = losses()
    assert "step" in plans
    plans.clear()
    assert losses() == first
    assert "step" not in plans


def test_an_index_out_of_range_is_told_as_ever() -> None:
    def pick(table: Any, i: Any) -> Any:
        return rn.take(table, i, 0)

    table, wrong = rn.ones((4, 3)), rn.asarray(np.array([0, 7]))
    messages = []
    for _ in range(2):
        compiled = fresh(pick)
        with pytest.raises(AxisError) as caught:
            compiled(table, wrong)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "[0, 4)" in messages[0]
    assert f"{Path(__file__).name}" in messages[0]


def test_a_program_without_its_machine_code_is_made_anew(plans: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    args = arguments()
    result = bits(fresh(dense_step)(*args))
    plans.clear()

    def gone(expected: Any) -> list[int]:
        raise LookupError

    monkeypatch.setattr(build, "_FUNCTIONS", Functions())
    monkeypatch.setattr(build, "filed", gone)
    assert bits(fresh(dense_step)(*args)) == result
    assert plans == ["dense_step"]


def test_machine_code_is_found_by_name_or_not_at_all() -> None:
    plan = native_of(fresh(dense_step), *arguments()).plan
    kernels = list({call.kernel.name: call.kernel for call in plan.calls}.values())
    named = [(kernel.name, products.symbols(kernel)) for kernel in kernels]
    assert build.filed(named) == build.kernels(kernels)
    with pytest.raises(LookupError):
        build.filed([*named, ("map_0000000000000000", ())])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"something else",
        b"runnel program 1\n",
        b"runnel program 1\n" + (5).to_bytes(8, "little") + b"{[}]x",
        b"runnel program 1\n" + (2).to_bytes(8, "little") + b"{}",
        b"runnel program 1\n" + (16).to_bytes(8, "little") + b'[{"arena": 123}]',
        b"runnel program 1\n" + (1 << 40).to_bytes(8, "little") + b"[]",
    ],
)
def test_a_file_of_another_form_is_a_miss(content: bytes, plans: list[str]) -> None:
    args = arguments()
    native = native_of(fresh(dense_step), *args)
    result = bits(dense_step(*args))
    key = disk_cache.key(native.recipe.graph, native.recipe.context, None)
    disk = objects.current()
    assert disk is not None
    assert key is not None
    disk.put(key, content)
    assert disk_cache.load(key) == ()
    plans.clear()
    assert bits(fresh(dense_step)(*args)) == result
    assert plans == ["dense_step"]
    assert len(disk_cache.load(key)) == 1


def test_a_file_cut_short_is_a_miss() -> None:
    content = disk_cache.encoded([command_buffer(native_of(fresh(dense_step), *arguments()).plan, BACKEND)])
    assert len(disk_cache.decoded(content)) == 1
    for length in (len(content) - 1, len(content) // 2, 40):
        assert disk_cache.decoded(content[:length]) == ()


def test_a_buffer_whose_numbers_lead_astray_is_a_miss() -> None:
    good = command_buffer(native_of(fresh(counted), *arguments()).plan, BACKEND)  # with jumps
    assert len(disk_cache.decoded(disk_cache.encoded([good]))) == 1

    def moved(row: int, column: int, word: int) -> tuple[Any, ...]:
        commands = good.commands[0].copy()
        commands[row, column] = word
        return (commands, *good.commands[1:])

    bad = [
        {"arena": -1}, {"arena": "1"}, {"inputs": 2.5}, {"outputs": (-8,)}, {"output_of": (99,)}, {"is_long": 1},
        {"kernels": ((3, ()),)}, {"kernels": ()}, {"words": good.words.astype(np.int32)}, {"words": good.words[:1]},
        {"constants": good.words}, {"heads": good.heads.T.copy()}, {"commands": ()}, {"commands": (good.heads,)},
        {"commands": moved(0, 0, len(good.kernels) + 1)}, {"commands": moved(0, 0, WINDOW - 1)},
        {"commands": moved(0, 1, -8)}, {"commands": moved(0, 1, 4)}, {"commands": moved(0, 1, good.words.nbytes)},
        {"commands": moved(-1, 0, 1)},
    ]  # fmt: skip
    for changes in bad:
        assert disk_cache.decoded(disk_cache.encoded([replace(good, **changes)])) == (), changes


def forget() -> None:
    """A new process knows nothing of the old one."""
    build.compiler.cache_clear()
    build._provided.cache_clear()
    objects.digest.cache_clear()
    rn.clear_caches()


def test_damaged_files_are_made_anew_and_results_stay(folder: Path) -> None:
    """Every kind of entry: machine code of kernels and of products, programs, preparations."""
    random = np.random.default_rng(3)
    x, y = arguments()
    forget()
    result = [bits(fresh(f)(x, y)) for f in PROGRAMS]
    for _ in range(12):
        whole = {path: path.read_bytes() for path in sorted(folder.glob("*.rno"))}
        for path in random.choice(list(whole), len(whole) // 2, replace=False):
            content = bytearray(whole[path])
            kind = random.integers(5)
            if kind == 0:
                content[random.integers(len(content))] ^= 1 << int(random.integers(8))
            elif kind == 1:
                del content[random.integers(len(content)) :]
            elif kind == 2:
                content = bytearray(whole[random.choice(list(whole))])
            path.unlink()
            if kind == 3:
                os.mkfifo(path)
            elif kind < 3:
                path.write_bytes(content)
        forget()
        assert [bits(fresh(f)(x, y)) for f in PROGRAMS] == result


def test_sealed_files_with_bad_bodies_are_made_anew(folder: Path) -> None:
    random = np.random.default_rng(4)
    x, y = arguments()
    forget()
    result = bits(fresh(dense_step)(x, y))
    disk = objects.current()
    assert disk is not None
    keys = [path.stem for path in folder.glob("*.rno")]
    whole = {key: disk.get(key) for key in keys}
    for bad in (b"", b"no machine code", random.bytes(3000), None):
        for key, body in whole.items():
            assert body is not None
            disk.put(key, body[: len(body) // 3] if bad is None else bad)
        forget()
        before = objects.statistics.compiled
        assert bits(fresh(dense_step)(x, y)) == result
        assert objects.statistics.compiled > before
        assert {key: disk.get(key) for key in keys} == whole


def test_the_key_tells_apart_what_gives_other_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = [native_of(fresh(f), *arguments(n)).captured.graph for f in (dense_step, looped) for n in (64, 65)]
    contexts = []
    for threads, row in ((1, "host"), (2, "host"), (1, "neon")):
        with switches.override(num_threads=threads, target=row):
            contexts.append(context.current())
    keys = {disk_cache.key(graph, c, budget) for graph in graphs for c in contexts for budget in (None, 1 << 20)}
    assert len(keys) == 24
    assert all(key is not None and len(key) == 64 for key in keys)
    assert disk_cache.key(graphs[0], contexts[0], None) in keys
    monkeypatch.setattr("runnel.backends.host.objects.digest", lambda *folders: "other sources")
    assert disk_cache.key(graphs[0], contexts[0], None) not in keys


def test_nothing_is_kept_where_others_have_a_say(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    graph = native_of(fresh(dense_step), *arguments()).captured.graph
    assert disk_cache.key(graph, context.current(), None) is not None
    with monkeypatch.context() as patch:
        patch.setattr(Table, "registrations", Table.registrations + 1)
        assert disk_cache.key(graph, context.current(), None) is None
    for switch in ({"cache": False}, {"verify": True}):
        with switches.override(**switch):
            assert disk_cache.key(graph, context.current(), None) is None
    assert disk_cache.load(None) == ()
    before = programs_in(folder)
    disk_cache.save(None, [])
    assert programs_in(folder) == before


def test_very_large_programs_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "LARGEST", 100)
    native = native_of(fresh(dense_step), *arguments())
    assert disk_cache.load(disk_cache.key(native.recipe.graph, native.recipe.context, None)) == ()


def test_a_program_of_another_budget_is_another() -> None:
    def chain(x: Any) -> Any:
        return rn.exp(x) @ rn.sin(x)

    x = rn.ones((64, 64))
    fresh(chain)(x)
    for _ in range(2):
        cache.clear()
        with pytest.raises(MemoryBudgetError):
            rn.compile(chain, memory_budget=100)(x)


def test_every_rule_of_the_package_is_there_when_programs_are_filed() -> None:
    """Whatever part of the package is imported later: it registers nothing, or programs would no longer be kept."""
    code = (
        "import importlib, pkgutil, runnel\n"
        "from runnel.core.tables import Table\n"
        "from runnel.compiler import disk_cache\n"
        "for module in pkgutil.walk_packages(runnel.__path__, 'runnel.'):\n"
        "    if not module.name.endswith('__main__'): importlib.import_module(module.name)\n"
        "print(Table.registrations - Table.own_registrations, Table.own_registrations)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    later, own = map(int, done.stdout.split())
    assert own > 100
    assert later == 0


PROCESS = """
import json, sys
import numpy as np, runnel as rn
from runnel.compiler import plan
planned = []
made = plan.Plan
plan.Plan = lambda graph, *parts: (planned.append(graph.name), made(graph, *parts))[1]
def step(x, y):
    last, _ = rn.scan(lambda carry, row: (rn.tanh(carry @ y + row), None), x[0], x)
    return rn.softmax(x @ y) + last
x = rn.asarray(np.linspace(-1, 1, 4096, dtype=np.float32).reshape(64, 64))
result = rn.compile(step)(x, x)
print(json.dumps([planned, result.numpy().tobytes().hex()]))
"""


def test_another_process_reads_it(tmp_path: Path) -> None:
    """With other addresses and other hashes of strings."""
    recorded = []
    for seed in ("1", "2"):
        environment = {**os.environ, "RUNNEL_CACHE_DIR": str(tmp_path), "RUNNEL_VERIFY": "0", "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", PROCESS]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        recorded.append(json.loads(done.stdout))
    assert "step" in recorded[0][0]
    assert "step" not in recorded[1][0]
    assert recorded[0][1] == recorded[1][1]


def test_both_buffers_of_a_program_bind_alike(tmp_path: Path) -> None:
    """Commands bound from a plan and from its buffer in another folder differ in addresses alone."""
    plan = native_of(fresh(looped), *arguments()).plan
    inputs = command_buffer(plan, BACKEND)
    read = disk_cache.decoded(disk_cache.encoded([inputs]))[0]
    direct, indirect = Program(plan), Program(lambda: plan, buffer=read)
    for ours, theirs in zip(direct.loaded._commands, indirect.loaded._commands, strict=True):
        assert np.array_equal(ours[:, 0], theirs[:, 0])
        assert np.array_equal(ours[:, 2:], theirs[:, 2:])
    block = plan.blocks[0][0]
    assert block is not None
    assert direct.command(0, block) == indirect.command(0, block)
    assert indirect.plan is plan
    assert ObjectCache(tmp_path, 1 << 20).get("0" * 64) is None
