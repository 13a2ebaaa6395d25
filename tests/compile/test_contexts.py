"""Test targets and thread counts that change within one process: other programs, the same bits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from runnel.backends import context
from runnel.backends.cpu import target as targets
from runnel.backends.host import threads
from runnel.compiler import disk_cache
from runnel.core import switches
from runnel.core.errors import SettingError
from runnel.core.records import replace
from runnel.core.switches import RESOLVED
from runnel.core.tables import Table
from runnel.tensor import eager

pytestmark = pytest.mark.suite


HERE = [row.name for row in targets.TARGETS if row.runs_here]
CONTEXTS = [(name, count) for name in HERE for count in (1, 2, 3)]


@pytest.fixture(autouse=True)
def plans() -> Iterator[None]:
    """Plans of single ops are this test's own."""
    eager.clear()
    yield
    eager.clear()


def data(*shape: int, seed: int = 0) -> rn.Tensor:
    return rn.asarray(np.random.default_rng(seed).standard_normal(shape, np.float32))


def bits(value: Any) -> bytes:
    return b"".join(x.numpy().tobytes() for x in (value if isinstance(value, tuple) else (value,)))


def products(x: Any, y: Any) -> Any:
    return rn.softmax(x @ y), (x * y).sum(axis=0), rn.tanh(x).mean()


def images(x: Any, y: Any) -> Any:
    return nn.functional.conv2d(x.reshape(1, 4, 40, 40), y[:36, :4].reshape(4, 4, 3, 3), padding=1)


def steps(x: Any, y: Any) -> Any:
    return rn.scan(lambda carry, row: (rn.tanh(carry @ y + row), carry), x[0], x)


def attended(x: Any, y: Any) -> Any:
    q = x.reshape(2, 4, 80, 10)
    return nn.functional.scaled_dot_product_attention(q, q, q)


FUNCTIONS = (products, images, steps, attended)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("compiled", [False, True])
def test_every_context_gives_the_same_bits(function: Callable[..., Any], compiled: bool) -> None:
    x, y = data(80, 80), data(80, 80, seed=1)
    run = rn.compile(function) if compiled else function
    with switches.override(target=HERE[-1], num_threads=1):
        expected = bits(run(x, y))
    for _ in range(2):  # with programs made, and with programs found; the second time each is audited
        for name, count in [*CONTEXTS, *CONTEXTS[::-1]]:
            with switches.override(target=name, num_threads=count):
                assert bits(run(x, y)) == expected, (name, count)
                assert bits(run(x, y)) == expected, (name, count)
    if compiled:
        assert run.statistics["programs"] == run.statistics["traces"] == len(CONTEXTS)


def test_programs_are_made_for_the_context_in_force() -> None:
    @rn.compile
    def step(x: Any) -> Any:
        return rn.tanh(x @ x)

    x = data(200, 200)
    for name, count in CONTEXTS:
        with switches.override(target=name, num_threads=count):
            for _ in range(4):
                step(x)
            native = step.executables()[0].native if len(step.executables()) == 1 else None
            result = [e.native.recipe.context for e in step.executables() if e.native is not None]
            assert context.current() in result
            assert native is None or native.recipe.context is context.current()
            assert step.program(x).plan.threads == count
    assert {(c.target.name, c.threads) for c in result} == {*CONTEXTS}


def test_plans_of_single_ops_are_made_for_the_context_in_force() -> None:
    x = data(300, 300)
    for name, count in CONTEXTS:
        with switches.override(target=name, num_threads=count):
            before = len(eager._PLANS)
            x @ x
            x @ x
            assert len(eager._PLANS) == before + 1
            (plan,) = list(eager._PLANS.young.values())[before:]
            assert isinstance(plan, eager.Running) and plan.program.plan.threads == count


@pytest.mark.parametrize("make", [optim.Adam, optim.SGD])
def test_an_optimizers_steps_have_programs_for_each_context(make: Any) -> None:
    def trained(contexts: list[tuple[str, int]]) -> bytes:
        rn.manual_seed(0)
        layer = nn.Linear(40, 30)
        optimizer = make(layer.parameters(), lr=0.1)
        for name, count in contexts:
            with switches.override(target=name, num_threads=count):
                optimizer.zero_grad()
                (layer(data(20, 40)) ** 2).mean().backward()
                optimizer.step()
        return bits((layer.weight, layer.bias))

    assert trained(CONTEXTS) == trained(CONTEXTS[:1] * len(CONTEXTS)) == trained(CONTEXTS[::-1])


def test_a_compiled_training_goes_on_through_changes() -> None:
    def trained(contexts: list[tuple[str, int]]) -> bytes:
        rn.manual_seed(0)
        layer = nn.Linear(40, 30)
        optimizer = optim.Adam(layer.parameters(), lr=0.1)

        @rn.compile
        def step(x: Any) -> Any:
            optimizer.zero_grad()
            loss = (layer(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        for name, count in contexts:
            with switches.override(target=name, num_threads=count):
                step(data(20, 40))
        return bits((layer.weight, layer.bias))

    contexts = CONTEXTS * 2 + CONTEXTS[::-1]
    assert trained(contexts) == trained(CONTEXTS[:1] * len(contexts))


@pytest.mark.parametrize("compiled", [False, True])
def test_device_target_and_threads_change_inside_of_one_process(compiled: bool) -> None:
    """Each on its own and all together, eagerly and compiled; tensors stay where they were made."""

    def function(x: Any, w: Any) -> Any:
        return rn.softmax(x @ w), (x * 2 + w).sum(axis=0), rn.argsort(x)

    def operands() -> tuple[rn.Tensor, rn.Tensor]:
        rng = np.random.default_rng(8)
        return rn.tensor(rng.standard_normal((9, 9))), rn.tensor(rng.standard_normal((9, 9)))

    run = rn.compile(function) if compiled else function
    expected = bits(run(*operands()))
    here = operands()
    every = [(device.name, *way) for device in rn.devices() for way in CONTEXTS]
    for device, name, count in [*every, *every[::-1]]:
        with switches.override(device=device, target=name, num_threads=count):
            now = context.current()
            assert (now.device.name, now.target.name, now.threads) == (device, name, count)
            result = run(*operands())
            assert bits(result) == expected
            assert {x.device.name for x in result} == {device}
            assert {x.device.name for x in run(*here)} == {"cpu"}


def test_every_part_of_a_context_is_in_every_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Contexts that differ in one part have separate plans, and separate programs on disk."""
    graph = rn.compile(lambda x: x.tanh()).program(data(3)).graph
    x, here = data(3), context.current()
    changes: dict[str, Any] = {"threads": here.threads + 1, "precision": "other", "stress": 1, "cache": here.cache * 2}
    others = [here, *(replace(here, **{name: value}) for name, value in changes.items())]
    monkeypatch.setattr(Table, "registrations", Table.own_registrations)
    with switches.override(verify=False, cache=True, cache_dir=str(tmp_path)):
        assert len({disk_cache.key(graph, each, None) for each in others}) == len(others)
    for each in others:
        before = len(eager._PLANS)
        state = switches.State()  # as after a change of a switch
        state.context = each
        monkeypatch.setattr(RESOLVED, "state", state)
        x.tanh()
        assert len(eager._PLANS) == before + 1


def test_work_that_has_begun_keeps_its_context() -> None:
    with switches.override(num_threads=2):
        before = context.current()
        with context.entered(before), switches.override(num_threads=3):
            assert context.current() is before
            assert context.switched().threads == 3
            recorded: list[context.CompileContext] = []
            other = threading.Thread(target=lambda: recorded.append(context.current()))
            other.start()
            other.join()
            assert recorded == [context.switched()]
        assert context.current() is context.switched() is before


def test_a_switch_that_changes_while_a_function_is_traced_does_not_mix() -> None:
    counts = [3]

    @rn.compile
    def changing(x: Any) -> Any:
        for count in counts:
            switches.num_threads.set(count)
        return rn.tanh(x @ x) + 1

    x = data(120, 120)
    with switches.override(num_threads=2):
        expected = bits(rn.tanh(x @ x) + 1)
        assert bits(changing(x)) == expected
        assert changing.program(x).plan.threads == 3


def test_delays_of_stress_tests_belong_to_a_context() -> None:
    with switches.override(stress=0):
        calm = context.current()
    with switches.override(stress=5):
        assert context.current() is not calm
    with switches.override(stress=0):
        assert context.current() is calm


def test_limits_are_read_again_when_a_switch_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    with switches.override(num_threads=0):
        monkeypatch.setattr(threads, "affinity_count", lambda: 3)
        monkeypatch.setattr(threads, "cgroup_cpus", lambda: None)
        switches.num_threads.set(0)
        assert context.current().threads == 3
        monkeypatch.setattr(threads, "cgroup_cpus", lambda: 1.5)
        assert context.current().threads == 3
        switches.num_threads.set(0)
        assert context.current().threads == 2


def test_a_target_that_there_is_not_is_told() -> None:
    message = r"\[target\] must be one of host, avx512_bf16"
    with pytest.raises(SettingError, match=message), switches.override(target="sse"):
        pass
