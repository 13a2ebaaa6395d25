"""Sessions: what runs, what it gives, and how it is kept."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.declarative as dg
from runnel.core import switches
from runnel.core.errors import GraphError
from runnel.declarative import session as sessions
from runnel.declarative.plan import LONGEST, CompiledPlan

F = rn.nn.functional


def data(rows: int = 32) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x, truth = rng.standard_normal((rows, 4)).astype(np.float32), rng.standard_normal((4, 1)).astype(np.float32)
    return x, x @ truth, truth


class Linear:
    """The graph of a linear regression."""

    def __init__(self) -> None:
        self.x, self.y = dg.placeholder(shape=(None, 4), name="x"), dg.placeholder(shape=(None, 1), name="y")
        self.w = dg.Variable(np.zeros((4, 1), np.float32), name="w")
        self.loss = rn.mean((self.x @ self.w - self.y) ** 2)

    def feeds(self, rows: int = 32) -> dict[Any, Any]:
        x, y, _ = data(rows)
        return {self.x: x, self.y: y}


@pytest.mark.parametrize("fused", [True, False])
def test_a_linear_model_is_trained(fused: bool) -> None:
    net = Linear()
    (slope,) = dg.gradients(net.loss, [net.w])
    step = dg.assign_sub(net.w, 0.1 * slope)
    with dg.Session(fused=fused) as session:
        session.run(dg.initializer())
        losses = [session.run([net.loss, step], net.feeds())[0].item() for _ in range(100)]
        assert losses[0] > 1 > 1e-6 > losses[-1]
        np.testing.assert_allclose(session.run(net.w).numpy(), data()[2], atol=1e-3)


@pytest.mark.parametrize("optimizer", [rn.optim.SGD, rn.optim.Adam, rn.optim.RMSprop])
def test_optimizers_compute_what_they_compute_live(optimizer: Any) -> None:
    net = Linear()
    train = dg.minimize(net.loss, optimizer, lr=0.05)
    session = dg.Session()
    session.run(dg.initializer())
    live = rn.Parameter(np.zeros((4, 1), np.float32))
    optimize = optimizer([live], lr=0.05)
    x, y, _ = data()
    for i in range(4):
        if i == 2:
            session.optimizer(train).param_groups[0]["lr"] = 0.01
            optimize.param_groups[0]["lr"] = 0.01
        loss, nothing = session.run([net.loss, train], net.feeds())
        optimize.zero_grad()
        expected = rn.mean((rn.asarray(x) @ live - rn.asarray(y)) ** 2)
        expected.backward()
        optimize.step()
        assert nothing is None
        assert loss.numpy().tobytes() == expected.numpy().tobytes()
        assert session.run(net.w).numpy().tobytes() == live.numpy().tobytes()


def test_the_state_of_optimizers_starts_again_with_the_variables() -> None:
    net = Linear()
    train, init = dg.minimize(net.loss, rn.optim.Adam, lr=0.05), dg.initializer()
    session = dg.Session()

    def trained() -> bytes:
        session.run(init)
        for _ in range(3):
            session.run(train, net.feeds())
        return session.run(net.w).numpy().tobytes()

    assert trained() == trained()


def test_ancestors_of_what_is_fetched_run_and_nothing_else() -> None:
    counts = {"a": 0, "b": 0}

    def counted(name: str) -> Any:
        def count(value: np.ndarray) -> np.ndarray:
            counts[name] += 1
            return value

        return lambda x: rn.pure_callback(count, rn.zeros((2,)), x)

    x = dg.placeholder(shape=(2,), name="x")
    a = dg.call(counted("a"), x, name="a")
    b = dg.call(counted("b"), x, name="b")
    both = a * 2 + b
    session = dg.Session()
    session.run(a * 2, {x: np.ones(2)})
    assert counts == {"a": 1, "b": 0}
    assert [op.name for op in session.plan(a).operations] == ["x", "a"]
    session.run(both, {x: np.ones(2), a: np.zeros(2)})  # what is fed is not computed
    assert counts == {"a": 1, "b": 1}
    assert "a" not in [op.name for op in session.plan(both, {x: 0, a: 0}).operations]


def test_intermediate_tensors_are_fed() -> None:
    x = dg.placeholder(shape=(3,))
    h = rn.exp(x)
    y = h + 1
    session = dg.Session()
    np.testing.assert_array_equal(session.run(y, {h: np.arange(3.0)}).numpy(), [1, 2, 3])
    values, indices = rn.topk(x, 2)
    assert session.run([values, indices], {x: [1, 3, 2], indices: [7, 7]})[1].numpy().tolist() == [7, 7]


def test_fetches_are_nested() -> None:
    x = dg.placeholder(shape=())
    nothing = dg.group(x + 1)
    session = dg.Session()
    result = session.run({"a": (x, [x * 2]), "b": nothing}, {x: 3.0})
    assert (result["a"][0].item(), result["a"][1][0].item(), result["b"]) == (3, 6, None)
    assert session.run([[x], x], {x: 1.0})[0][0].item() == 1
    assert session.run([], {}) == []


def test_each_session_has_separate_values() -> None:
    v = dg.Variable(1.0, name="v")
    more = dg.assign_add(v, 1.0)
    init = dg.initializer()
    one, other = dg.Session(), dg.Session()
    for session in (one, other):
        session.run(init)
    for _ in range(3):
        one.run(more)
    assert (one.run(v).item(), other.run(v).item()) == (4, 1)
    assert one.variable(v) is not other.variable(v)


def test_programs_are_made_for_shapes_and_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Watched(CompiledPlan):
        def __init__(self, plan: Any, avals: Any, *rest: Any) -> None:
            made.append(tuple(avals))
            super().__init__(plan, avals, *rest)

    monkeypatch.setattr(sessions, "CompiledPlan", Watched)
    net = Linear()
    session = dg.Session()
    session.run(dg.initializer())
    made.clear()
    for rows in (8, 16, 8, 16, 8):
        session.run(net.loss, net.feeds(rows))
    assert [avals[0].shape[0] for avals in made] == [8, 16]


def test_fused_runs_and_single_operations_give_the_same_bits() -> None:
    x = dg.placeholder(shape=(None, 8))
    k = dg.Variable(np.random.default_rng(1).standard_normal((5, 8)).astype(np.float32))
    loss = F.cross_entropy(F.layer_norm(F.gelu(F.linear(x, k)), (5,)), rn.asarray(np.array([0, 4, 2])))
    fetches = [loss, *dg.gradients(loss, [x, k])]
    value = np.random.default_rng(2).standard_normal((3, 8)).astype(np.float32)
    bits = []
    for fused in (True, False):
        session = dg.Session(fused=fused)
        session.run(dg.initializer())
        bits.append([t.numpy().tobytes() for t in session.run(fetches, {x: value})])
    assert bits[0] == bits[1]


def test_autocast_and_threads_come_from_the_call() -> None:
    x = dg.placeholder(shape=(4, 4))
    y = x @ x
    session = dg.Session()
    value = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    plain = session.run(y, {x: value})
    with rn.autocast(rn.bfloat16):
        assert session.run(y, {x: value}).dtype is rn.bfloat16
    with switches.override(num_threads=1):
        assert session.run(y, {x: value}).numpy().tobytes() == plain.numpy().tobytes()


def test_random_operations_draw_at_each_run() -> None:
    noise = dg.call(rn.rand, (3,))
    twice = noise * 2
    x = dg.Variable(np.ones(3, np.float32))
    dropped = F.dropout(x, 0.5) * 3
    slope = dg.gradients(dropped, [x])[0]
    session = dg.Session()
    session.run(dg.initializer())
    first, second = session.run([noise, twice])
    assert (first * 2).numpy().tobytes() == second.numpy().tobytes()
    assert session.run(noise).numpy().tobytes() != first.numpy().tobytes()
    for _ in range(3):  # the gradient belongs to the draw that was made
        value, g = session.run([dropped, slope])
        np.testing.assert_array_equal(value.numpy(), g.numpy())


def test_threads_run_one_session() -> None:
    v = dg.Variable(0.0)
    more = dg.assign_add(v, 1.0)
    session = dg.Session()
    session.run(dg.initializer())
    workers = [threading.Thread(target=lambda: [session.run(more) for _ in range(50)]) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert session.run(v).item() == 200


def test_runs_of_many_operations_have_no_program() -> None:
    x = dg.placeholder(shape=())
    y = x
    for _ in range(LONGEST + 1):
        y = y + 1
    session = dg.Session()
    assert len(session.plan(y, {x: 0.0}).operations) == LONGEST + 1
    with pytest.raises(GraphError, match="operation by operation; it has no program"):
        session.program(y, {x: 0.0})
    assert session.run(y, {x: 0.0}).item() == LONGEST + 1


def test_reports_on_a_run() -> None:
    net = Linear()
    session = dg.Session()
    session.run(dg.initializer())
    seen = session.program(net.loss, net.feeds())
    assert "matmul" in str(seen.schedule) and seen.memory is not None
