"""Changes of things outside, and from several threads."""

from __future__ import annotations

import threading

import pytest

import runnel as rn
from runnel import nn
from runnel.compile import compile
from runnel.core.errors import CaptureWarning
from tests.compile.capture.agreeing import check, same, tensor

GLOBAL_COUNT = 0


def test_changes_outside_happen_at_each_call() -> None:
    global GLOBAL_COUNT
    log: list[object] = []
    table = {"n": 0}
    count = 0

    class Holder:
        hits = 0

    holder = Holder()
    net = nn.Linear(1, 1)

    def appends(x):
        log.append(x.shape)
        return x

    def stores(x):
        table["n"] += 1
        return x

    def sets(x):
        holder.hits += 1
        return x

    def sets_class(x):
        Holder.hits += 1
        return x

    def sets_module(x):
        net.last = x * 2
        return x

    def bumps(x):
        global GLOBAL_COUNT
        GLOBAL_COUNT += 1
        return x

    def rebinds(x):
        nonlocal count
        count += 1
        return x

    def remembers(x, calls=[]):  # noqa: B006
        calls.append(1)
        return x

    def state() -> list[object]:
        last = getattr(net, "last", None)
        calls = list(remembers.__defaults__[0])
        reference = None if last is None else last.tolist()
        return [list(log), table["n"], holder.hits, vars(Holder)["hits"], reference, GLOBAL_COUNT, count, calls]

    GLOBAL_COUNT = 0
    for place, function in enumerate(
        (appends, stores, sets, sets_class, sets_module, bumps, rebinds, remembers), start=0
    ):
        compiled = compile(function)
        for i in range(4):
            before = state()
            same(compiled(tensor(i)), tensor(i))
            after = state()
            assert before[:place] == after[:place] and before[place] != after[place], function.__name__
    assert state()[:1] == [[(1,)] * 4]
    assert state()[4:] == [[6.0], 4, 4, [1] * 4]
    assert table["n"] == 4


def test_changed_arguments_are_changed_at_each_call() -> None:
    def appends(x, out):
        out.append(x * 2)
        return x

    def stores(table):
        table["y"] = table["x"] + 1

    compiled, out = compile(appends), []
    for i in range(4):
        compiled(tensor(i), out)
    assert [t.item() for t in out] == [0, 2, 4, 6]
    compiled = compile(stores)
    for i in range(4):
        table = {"x": tensor(i)}
        compiled(table)
        assert (list(table), table["y"].item()) == (["x", "y"], i + 1)


def test_writes_into_tensors() -> None:
    saved = tensor(1, 2)

    def argument(x):
        x[0] = 5
        return x * 2

    def captured(x):
        saved[0] = 5
        return x * saved

    for function in (argument, captured):
        x, compiled = tensor(1, 2), compile(function)
        assert compiled(x).tolist() == ([10, 4] if function is argument else [5, 4])
        assert (x.tolist(), saved.tolist()) == ([5, 2], [1, 2]) if function is argument else ([1, 2], [5, 2])
        assert [e.native is not None for e in compiled.executables()] == [True]

    def copies(x):
        x = x + 0
        x[0] = 5
        return x * 2

    check(copies, (tensor(1, 2),), (tensor(3, 4),))
    saved.copy_(tensor(1, 7))
    f = compile(lambda x: x * saved)
    assert f(tensor(1, 1)).tolist() == [1, 7]
    saved[0] = 3
    assert f(tensor(1, 1)).tolist() == [3, 7]


def test_iterators_are_advanced_eagerly() -> None:
    batches = iter([tensor(1), tensor(2)])
    f = compile(lambda: next(batches) + 1)
    with pytest.warns(CaptureWarning, match="batches"):
        assert f().item() == 2
    assert f().item() == 3


def test_two_threads() -> None:
    v = rn.Variable([0.0])

    @compile
    def f(x):
        v.assign(v + 1)
        return x * 2 + 1

    wrong: list[object] = []

    def work(seed: int) -> None:
        for i in range(200):
            x = tensor(seed, i, seed * i)
            if f(x).tolist() != [2 * seed + 1, 2 * i + 1, 2 * seed * i + 1]:
                wrong.append((seed, i))

    team = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    assert not wrong
    assert v.item() == 400
