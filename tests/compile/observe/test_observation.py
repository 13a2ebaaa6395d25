"""Test an observation: reasons, nothing left behind, nothing kept alive, threads."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest

from runnel.compile.capture import RULES
from runnel.compile.observe.observation import observe
from runnel.compile.observe.recorder import NotCapturable
from runnel.compile.rules import Rules
from tests.compile.observe.observed import Observed

SCALE = 2


class Config:
    def __init__(self) -> None:
        self.scale, self.clip, self.names = 0.5, 1.0, ["a", "b"]


class Model:
    def __init__(self) -> None:
        self.weight, self.training = 2.0, True

    def __call__(self, x: float) -> float:
        return x * self.weight if self.training else x


class Trainer:
    def __init__(self) -> None:
        self.model, self.cfg, self.losses, self.count = Model(), Config(), [], 0
        self.figure = object()

    def step(self, x: float) -> float:
        loss = (self.model(x) - 1.0) * self.cfg.scale * SCALE
        self.losses.append(loss)
        self.last = loss
        return loss


def test_only_what_is_read_is_guarded() -> None:
    trainer = Trainer()
    step = Observed(Trainer.step)
    for change in (
        lambda: None,
        lambda: setattr(trainer, "count", 5),
        lambda: setattr(trainer, "figure", [1] * 1000),
        lambda: trainer.losses.clear(),
        lambda: trainer.cfg.names.append("c"),
        lambda: setattr(trainer.cfg, "clip", 3.0),
        lambda: setattr(trainer, "cfg", Config()),
        lambda: setattr(Config, "unrelated", 1),
    ):
        change()
        assert step(trainer, 3.0) == 5.0
    assert step.runs == 1
    assert trainer.losses == [5.0] * 5
    del Config.unrelated  # type: ignore[attr-defined]


def test_reason_of_another_run() -> None:
    trainer = Trainer()
    step = Observed(Trainer.step)
    step(trainer, 3)
    trainer.model.training = False
    step(trainer, 3)
    assert step.reasons == ["self.model.training changed from True to False"]
    guard = step.kept[0].guard
    assert guard.why(Trainer.step, (trainer,), {}) == "the number of arguments"
    assert guard.why(Trainer.step, (trainer, 4), {}) == "x changed from 3 to 4"
    del trainer.model
    assert guard.why(Trainer.step, (trainer, 3), {}) == "self.model cannot be read"


def test_everything_is_taken_back() -> None:
    box: dict[str, Any] = {"items": [1, 2], "table": {"a": 1, "b": 2}, "members": {1}}

    class Holder:
        x = 1

    holder = Holder()

    def f() -> None:
        box["items"].sort(key=lambda v: -v)
        box["items"] += [3]
        del box["table"]["a"]
        box["table"]["c"] = 1
        box["members"].add(5)
        box["new"] = 1
        holder.x = 2
        holder.y = 3  # type: ignore[attr-defined]
        Holder.z = 4  # type: ignore[attr-defined]

    saved = [box["items"], box["table"]]
    one = observe(f, (), {}, RULES)
    assert box == {"items": [1, 2], "table": {"a": 1, "b": 2}, "members": {1}}
    assert list(box["table"]) == ["a", "b"]
    assert box["items"] is saved[0] and box["table"] is saved[1]
    assert vars(holder) == {} and not hasattr(Holder, "z")
    values = one.guard.holds(f, (), {})
    assert values is not None
    one.replay(values)
    assert box["items"] == [2, 1, 3] and box["table"] == {"b": 2, "c": 1} and holder.y == 3 and Holder.z == 4  # type: ignore[attr-defined]


@pytest.mark.parametrize("end", ["raises", "refused"])
def test_taken_back_when_it_does_not_end(end: str) -> None:
    import time

    log: list[int] = []

    def f() -> None:
        log.append(1)
        if end == "raises":
            raise KeyError(1)
        time.time()

    with pytest.raises((KeyError, NotCapturable)):
        observe(f, (), {}, RULES)
    assert log == []


def test_guards_keep_nothing_alive() -> None:
    def make() -> tuple[Any, list[weakref.ref[Any]]]:
        class Local:
            def __init__(self) -> None:
                self.inner = Model()

        reference = Local()
        other = Model()

        def f(local: Any) -> Any:
            return local.inner(2.0), other.weight, local.inner is other, {other: 1}[other]

        one = observe(f, (reference,), {}, RULES)
        assert one.guard.holds(f, (reference,), {}) is not None
        return one, [weakref.ref(x) for x in (reference, other, reference.inner, Local, f)]

    one, references = make()
    gc.collect()
    assert [r() for r in references] == [None] * len(references)
    assert one.guard.is_retired


def test_recorders_end_with_their_run() -> None:
    """Without the collector: a model that is dropped right after its first step is gone."""
    gc.collect()
    gc.disable()
    try:
        trainer = Trainer()
        one = observe(Trainer.step, (trainer, 1.0), {}, RULES)
        reference = weakref.ref(trainer.model)
        del trainer
        assert reference() is None
    finally:
        gc.enable()
    assert one.guard.reads > 0


def test_threads_record_for_themselves() -> None:
    """Each recorder belongs to a call: others of the same functions, recorded or not, neither see nor disturb it."""
    trainers = [Trainer() for _ in range(4)]
    results: list[Any] = []

    def work(trainer: Trainer, number: int) -> None:
        for i in range(12):
            step = Observed(Trainer.step) if number % 2 else Trainer.step
            assert step(trainer, float(i)) == (i * 2.0 - 1.0) * 0.5 * SCALE
        results.append((number, len(trainer.losses)))

    threads = [threading.Thread(target=work, args=(t, i)) for i, t in enumerate(trainers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [(i, 12) for i in range(4)]


def test_runs_within_runs() -> None:
    """A handler or a nested call may observe while another call is observed."""
    inner = Observed(lambda n: [n * SCALE])

    class Native(Rules):
        def native(self, function: Any) -> Any:
            if function is relay:
                return lambda rec, f, args, kwargs: (f, args, kwargs)
            return super().native(function)

    def relay(n: int) -> Any:
        return tuple(inner(n))

    def f(n: int) -> Any:
        return relay(n), n + SCALE

    outer = Observed(f, Native())
    assert outer(3) == ((6,), 5) == outer(3)
    assert inner.runs == 1 and outer.runs == 1


def test_refusal_names_line_and_remedy() -> None:
    import random

    def helper() -> float:
        return random.gauss(0, 1)

    def f() -> float:
        return helper()

    with pytest.raises(NotCapturable) as caught:
        observe(f, (), {}, RULES)
    line = helper.__code__.co_firstlineno + 1
    assert caught.value.where == f"{__file__}:{line}"
    assert "random numbers" in caught.value.reason and "argument" in caught.value.remedy


def test_caught_refusals_count() -> None:
    import time

    def f() -> int:
        try:
            time.time()
        except BaseException:
            return 0
        return 1

    with pytest.raises(NotCapturable):
        observe(f, (), {}, RULES)


def test_same_value_is_one_check() -> None:
    config = Config()

    def f() -> float:
        return config.scale + config.scale + config.scale

    one = observe(f, (), {}, RULES)
    assert one.guard.text.count("'scale' in") == 1  # that the class holds nothing that goes before it
    assert one.guard.text.count(".scale") == 1
