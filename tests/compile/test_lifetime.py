"""Test that all that is made for a model goes with it, and that no later model is taken for it."""

from __future__ import annotations

import gc
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from runnel.backends.host import memory
from runnel.compile import cache
from runnel.core import functions as generated
from runnel.core.errors import RunnelError
from runnel.nn import functional as F
from runnel.tensor import composing

pytestmark = pytest.mark.suite


@contextmanager
def counting_alone() -> Iterator[None]:
    """No garbage collection in the block: what goes, goes since nobody refers to it."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def data(rows: int = 8, width: int = 16) -> tuple[rn.Tensor, rn.Tensor]:
    drawn = np.random.default_rng(rows + width)
    x = drawn.standard_normal((rows, width)).astype(np.float32)
    return rn.asarray(x), rn.asarray(drawn.integers(0, 4, rows))


def network(width: int = 32) -> nn.Sequential:
    return nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Dropout(0.1), nn.LayerNorm(width), nn.Linear(width, 4))


def references(model: nn.Module, *more: Any) -> list[weakref.ref[Any]]:
    return [weakref.ref(x) for x in (model, *model.modules(), *model.parameters(), *more)]


def train_compiled(width: int) -> list[weakref.ref[Any]]:
    model, (x, y) = network(width), data()
    optimizer = optim.AdamW(model.parameters(), 1e-3)
    schedule = optim.StepLR(optimizer, 2)

    @rn.compile
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(4):
        step(x, y)
        schedule.step()
    executable = step.executables()[0]
    return references(model, optimizer, schedule, step, executable, executable.native, executable.native.program)


def keep_gradients(width: int) -> list[weakref.ref[Any]]:
    model, (x, y) = network(width), data()

    @rn.compile(keep_grads=True)
    def gradients(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    for _ in range(3):
        gradients(x, y)
    assert model[0].weight.grad is not None
    return references(model, gradients, *gradients.executables())


def train_eagerly(width: int) -> list[weakref.ref[Any]]:
    model, (x, y) = network(width), data()
    optimizer = optim.SGD(model.parameters(), 0.1, momentum=0.9)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    unused = F.cross_entropy(model(x), y)  # its tape is never used
    return references(model, optimizer, loss, unused)


def serve(width: int) -> list[weakref.ref[Any]]:
    model, (x, _) = network(width * 32), data()
    model.eval().requires_grad_(False)
    predict = rn.compile(lambda x: model(x))
    for _ in range(3):
        predict(x)
    (executable,) = predict.executables()
    return references(model, predict, executable, executable.native)


def differentiate_later(width: int) -> list[weakref.ref[Any]]:
    model, (x, y) = network(width), data()
    forward = rn.compile(lambda x: F.cross_entropy(model(x), y))
    for _ in range(2):
        loss = forward(x)
        loss.backward()
    return references(model, forward, loss, *forward.executables())


def transform(width: int) -> list[weakref.ref[Any]]:
    weight = rn.Variable(np.eye(4, dtype=np.float32), requires_grad=True)
    x = rn.ones((width, 4))

    def looped(y: Any) -> Any:
        last, every = rn.scan(lambda carry, row: (rn.tanh(carry @ weight + row), carry.sum()), y[0], y)
        return last.sum() + every.sum()

    functions = [looped, lambda y: rn.checkpoint(lambda z: rn.tanh(z @ weight), y).sum()]
    for function in functions:
        rn.grad(function)(x)
        rn.compile(lambda y, function=function: rn.value_and_grad(function)(y))(x)
        value, pull = rn.vjp(function, x)
        pull(rn.ones(value.shape))
    return [weakref.ref(weight), *map(weakref.ref, functions)]


@pytest.mark.parametrize(
    "run",
    [train_compiled, keep_gradients, train_eagerly, serve, differentiate_later, transform],
    ids=lambda f: f.__name__,
)
def test_all_is_gone_at_once(run: Callable[[int], list[weakref.ref[Any]]]) -> None:
    composing.clear()  # so that programs of compositions are made by the first calls, whatever ran before
    for _ in range(6):
        run(24)  # what is made once in a process is made, programs of compositions too
    with counting_alone():
        live = memory.statistics().live
        gone = run(24)
        assert [reference() for reference in gone if reference() is not None] == []
        assert memory.statistics().live <= live
    assert len(gone) >= 3


def test_a_method_compiled_on_its_object_is_collected() -> None:
    class Trainer:
        def __init__(self) -> None:
            self.model = network()
            self.predict = rn.compile(self._predict)

        def _predict(self, x: Any) -> Any:
            return self.model(x).detach()

    def once() -> weakref.ref[Any]:
        trainer, (x, _) = Trainer(), data()
        assert [trainer.predict(x).shape for _ in range(3)] == [(8, 4)] * 3
        return weakref.ref(trainer)

    composing.clear()
    for _ in range(6):
        once()  # programs of compositions, which draw the weights, are made once in a process
    gc.collect()
    before = cache.size()[1], memory.statistics().live
    gone = [once() for _ in range(3)]
    gc.collect()
    assert [reference() for reference in gone] == [None] * 3
    assert (cache.size()[1], memory.statistics().live) <= before


class Scale(nn.Module):
    def __init__(self, by: float) -> None:
        self.by = rn.Variable(np.full(3, by, np.float32))
        self.flag = by > 5

    def forward(self, x: Any) -> Any:
        return x * self.by if self.flag else x - self.by


def test_programs_of_a_function_go_with_the_models_it_was_called_with() -> None:
    apply = rn.compile(lambda model, x: model(x))
    x = rn.ones((3,))
    with counting_alone():
        live = 0
        for i in range(20):
            model = Scale(i)
            assert apply(model, x).tolist() == model(x).tolist() == apply(model, x).tolist()
            assert apply.statistics["programs"] == 1
            del model
            assert apply.statistics["programs"] == 0
            live = memory.statistics().live if i == 7 else live
        assert memory.statistics().live <= live
    assert "gone" in apply.retraces[-1]


def test_an_identity_that_comes_again_is_another_object() -> None:
    """Python gives the memory of what is gone to what comes next."""
    apply = rn.compile(lambda x: HELD.model(x))  # noqa: F821 (set below)
    apply.function.__globals__["HELD"] = reference = types.SimpleNamespace(model=None)
    x, identities = rn.ones((3,)), set()
    try:
        for i in range(60):
            reference.model = None
            reference.model = Scale(i % 11)
            identities.add(id(reference.model))
            assert apply(x).tolist() == reference.model(x).tolist() == apply(x).tolist()
    finally:
        del apply.function.__globals__["HELD"]
    assert len(identities) < 60, "no identity came again: the test shows nothing"


@pytest.mark.parametrize("replacement", [None, "another"])
def test_what_stands_in_the_place_of_something_gone_is_seen(replacement: Any) -> None:
    """None is what a reference to something gone gives, and is not what was there."""

    class Marker:
        pass

    holder = types.SimpleNamespace(mark=Marker(), table={Marker(): 1.0}, kinds={Marker()})

    def looks(x: Any) -> Any:
        return x * (2.0 if holder.mark is None else 3.0), x * (5.0 if None in holder.table else 7.0), len(holder.kinds)

    compiled, x = rn.compile(looks), rn.ones(())
    assert [float(v) for v in compiled(x)] == [3, 7, 1]
    holder.mark = replacement
    assert float(compiled(x)[0]) == float(looks(x)[0])
    holder.table = {replacement: 1.0}
    assert float(compiled(x)[1]) == float(looks(x)[1])
    holder.kinds = {replacement, "more"}
    assert compiled(x)[2] == 2


def test_a_change_that_ends_what_was_there() -> None:
    holder = types.SimpleNamespace(layer=Scale(1))

    def clears(x: Any) -> Any:
        holder.layer = None
        return x + 1

    compiled = rn.compile(clears)
    for _ in range(3):
        assert compiled(rn.ones((3,))).tolist() == [2.0] * 3
        assert holder.layer is None
        holder.layer = Scale(2)
    assert compiled.statistics["traces"] == 1


def test_sets_and_dicts_of_objects_are_told_apart() -> None:
    marks = [Scale(i) for i in range(3)]
    saved = types.SimpleNamespace(frozen={marks[0], "all"}, order={marks[0]: 1, marks[1]: 2})

    def reads(x: Any) -> Any:
        chosen = [m for m in marks if m in saved.frozen]
        return sum((m(x) for m in [*chosen, *saved.order]), x * 0.0)

    compiled, x = rn.compile(reads), rn.ones((3,))

    def change(name: str, value: Any) -> None:
        setattr(saved, name, value)

    for make in (
        lambda: None,
        lambda: saved.frozen.add(marks[1]),
        lambda: saved.frozen.remove(marks[0]),
        lambda: change("order", {marks[1]: 2, marks[0]: 1}),
        lambda: change("order", {marks[2]: 2, marks[0]: 1}),
    ):
        make()
        traces = compiled.statistics["traces"]
        assert compiled(x).tolist() == reads(x).tolist()
        assert compiled.statistics["traces"] == traces + 1
        compiled(x)
        assert compiled.statistics["traces"] == traces + 1


def test_results_that_are_objects_are_not_kept_by_the_program() -> None:
    class Local:
        pass

    def build() -> tuple[Any, weakref.ref[Any]]:
        model = Scale(2)
        compiled = rn.compile(lambda x: (model.by, Local, x + 1))
        for _ in range(3):
            by, kind, _ = compiled(rn.ones((3,)))
            assert by is model.by
            assert kind is Local
        return compiled.executables()[0], weakref.ref(model)

    executable, model = build()
    assert model() is None
    assert executable.is_over


def test_errors_leave_nothing() -> None:
    def stop(model: nn.Module, x: Any, y: Any, where: str) -> Any:
        hidden = model[0](x)
        if where == "python":
            raise KeyError(where)
        if where == "shape":
            return hidden @ rn.ones((3, 3))
        if where == "value":
            return float(hidden.sum())
        if where == "effect":
            model.extra = 1
        return rn.take(model[4].bias, y + 100)  # a fault of the run

    def once(where: str) -> list[weakref.ref[Any]]:
        model, (x, y) = network(), data()
        compiled = rn.compile(lambda x, y: stop(model, x, y, where))
        for _ in range(2):
            with pytest.raises((RunnelError, KeyError, IndexError)):
                compiled(x, y)
        return references(model)

    composing.clear()
    for where in ("python", "shape", "value", "effect", "run"):
        for _ in range(6):
            once(where)
        gc.collect()
        live = memory.statistics().live
        gone = once(where)
        gc.collect()  # tracebacks and their frames refer to one another
        assert [reference() for reference in gone if reference() is not None] == [], where
        assert memory.statistics().live <= live, where


def test_a_report_keeps_its_program_but_not_the_model() -> None:
    def once() -> tuple[Any, list[weakref.ref[Any]], int]:
        model, (x, _) = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)), data(width=512)
        model.requires_grad_(False)
        compiled = rn.compile(lambda x: model(x))
        compiled(x)
        return compiled.program(x), references(model), sum(p.size * 4 for p in model.parameters())

    once()
    with counting_alone():
        before = memory.statistics().live
        report, gone, weights = once()
        assert [reference() for reference in gone if reference() is not None] == []
        assert memory.statistics().live - before < weights / 4
        assert "2 calls of 2 kernels" in str(report)
        assert len(report.passes) > 1
        del report
        assert memory.statistics().live <= before


def test_clearing_lets_programs_go_and_the_next_call_makes_them_anew() -> None:
    x = rn.ones((3,))
    double, triple = rn.compile(lambda x: x * 2), rn.compile(lambda x: x * 3)
    assert (double(x).tolist(), triple(x).tolist()) == ([2, 2, 2], [3, 3, 3])
    gone = weakref.ref(double.executables()[0])
    double.clear_cache()
    assert gone() is None
    assert (double.statistics["programs"], triple.statistics["programs"]) == (0, 1)
    assert double(x).tolist() == [2, 2, 2]
    rn.clear_caches()
    assert cache.size()[1] == 0
    assert triple(x).tolist() == [3, 3, 3]


def test_a_closure_made_anew_runs_the_program_of_its_twin() -> None:
    model, x = network(), data()[0]
    model.eval().requires_grad_(False)
    traces = [(f := rn.compile(lambda x: model(x)), f(x), f.statistics["traces"])[2] for _ in range(3)]
    assert traces == [1, 0, 0]


class Keyed(nn.Module):
    """Reads a dict under a key that is an object, and the members of a set."""

    def __init__(self) -> None:
        self.key = Key()
        self.rows = {self.key: nn.Linear(16, 4)}
        self.members = {Key()}

    def forward(self, x: rn.Tensor) -> rn.Tensor:
        key = next(iter(self.rows))
        return self.rows[key](x) * len([m.factor for m in self.members])


class Key:
    """An object with an attribute, compared by identity."""

    factor = 2


def forward_of_a_layer() -> Any:
    layer, (x, _) = nn.Linear(16, 4), data()
    fn = rn.compile(layer)
    for _ in range(3):
        fn(x)
    return layer


def step_of_a_model() -> Any:
    model, (x, labels) = network(), data()
    optimizer = optim.Adam(model.parameters(), lr=0.01)

    @rn.compile
    def step(x: rn.Tensor, labels: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):
        step(x, labels)
    return model


def forward_by_keys() -> Any:
    model, (x, _) = Keyed(), data()
    fn = rn.compile(model)
    for _ in range(3):
        fn(x)
    return model


def membership_of_objects() -> Any:
    key, (x, _) = Key(), data()
    table = {key: 1}
    fn = rn.compile(lambda x: x * 2 if key in table else x)
    for _ in range(3):
        fn(x)
    return key


@pytest.mark.parametrize("use", [forward_of_a_layer, step_of_a_model, forward_by_keys, membership_of_objects])
def test_equal_models_share_the_code_that_python_compiles(use: Callable[[], Any]) -> None:
    """Each is alive, and so at another address, while the next one is there."""
    composing.clear()
    alive = [use() for _ in range(6)]  # by then the compositions that draw weights are programs
    before = generated.bytecode.cache_info().misses
    alive += [use() for _ in range(3)]
    assert generated.bytecode.cache_info().misses == before


def test_clear_caches_lets_go_of_generated_code() -> None:
    forward_of_a_layer()
    rn.clear_caches()
    assert generated.bytecode.cache_info().currsize == 0
