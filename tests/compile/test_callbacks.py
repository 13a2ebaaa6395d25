"""Test Python functions that programs call: their order, their errors, and what they may read."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import ArgumentError, CaptureError, GradientError, SideEffectError, StateError
from runnel.tensor.kept_values import HOLDS


def test_pure_callback_with_trees() -> None:
    def parts(x: Any, *, scale: int) -> Any:
        return {"sum": x.sum(dtype=np.float32), "twice": (x * scale,)}

    def function(x: Any, scale: int) -> Any:
        expected = {"sum": rn.ShapeDtypeStruct((), "float32"), "twice": (x,)}
        result = rn.pure_callback(parts, expected, x + 1, scale=scale)
        return result["twice"][0] - result["sum"]

    compiled = rn.compile(function)
    for scale in (2, 2, 3):
        x = rn.asarray(np.arange(4, dtype=np.float32) + scale)
        assert compiled(x, scale).numpy().tobytes() == function(x, scale).numpy().tobytes()


def test_what_callbacks_get_is_theirs() -> None:
    retained: list[Any] = []
    function = rn.compile(lambda x: rn.debug.callback(retained.append, x * 2))
    for i in range(3):
        function(rn.ones((3,)) * i)
    assert [x.tolist() for x in retained] == [[0.0] * 3, [2.0] * 3, [4.0] * 3]
    with pytest.raises(ValueError, match="read-only"):
        retained[0][0] = 1


@pytest.mark.parametrize("threads", ["1", "2"])
def test_the_order_is_the_programs(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNNEL_NUM_THREADS", threads)
    recorded: list[str] = []

    def note(what: str, x: Any) -> None:
        recorded.append(f"{what} {float(x):g}")

    def function(xs: Any) -> Any:
        rn.debug.callback(note, "first", xs.sum())

        def step(c: Any, x: Any) -> Any:
            rn.debug.callback(note, "step", x)
            return rn.cond(x > 1, lambda c: note_in("large", c), lambda c: note_in("small", c), c + x), x

        def note_in(what: str, c: Any) -> Any:
            rn.debug.callback(note, what, c)
            return c * 1

        total, _ = rn.scan(step, rn.zeros(()), xs)
        total = rn.while_loop(lambda c: c > 1, lambda c: note_in("halved", c * 0.5), total)
        rn.debug.callback(note, "last", total)
        return total

    xs = rn.asarray(np.array([1.0, 2.0, 0.5], np.float32))
    expected = function(xs).item()
    expected_result, recorded[:] = list(recorded), []
    compiled = rn.compile(function)
    for _ in range(2):
        assert compiled(xs).item() == expected
        assert recorded == expected_result
        recorded.clear()


def test_nothing_is_left_out_and_pure_ones_may_be() -> None:
    calls: list[str] = []

    def counted(x: Any) -> Any:
        calls.append("pure")
        return x

    @rn.compile
    def function(x: Any) -> Any:
        rn.pure_callback(counted, x, x)
        rn.debug.callback(lambda v: calls.append("debug"), x)
        return x + 1

    function(rn.ones(()))
    assert calls == ["debug"]


def test_numbers_that_change_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    function = rn.compile(lambda x, rate: rn.debug.print("{:.3f} {:.2f}", rate * 2, x * rate))
    for rate in (0.1, 0.2, 0.3, 0.4):
        function(rn.ones(()), rate)
    assert capsys.readouterr().out == "0.200 0.10\n0.400 0.20\n0.600 0.30\n0.800 0.40\n"


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    function = rn.compile(lambda x, n: rn.debug.print("x {} of {n}: {y:.2f}", x, n=n, y=x.sum()))
    for n in (2, 2, 3):
        function(rn.ones((n,)), n)
    eager = capsys.readouterr().out
    assert eager == "x [1. 1.] of 2: 2.00\nx [1. 1.] of 2: 2.00\nx [1. 1. 1.] of 3: 3.00\n"
    with pytest.raises(ArgumentError, match="must be a format string"):
        rn.debug.print(rn.ones(()))


def test_errors_come_out_and_variables_stay_whole() -> None:
    w = rn.nn.Parameter(np.ones(3, np.float32))
    rule = rn.optim.SGD([w], 0.5)
    fails = [False]

    def checked(x: Any) -> Any:
        if fails[0]:
            raise KeyError("not today")
        return x

    @rn.compile
    def step(x: Any) -> Any:
        rule.zero_grad()
        loss = ((w * x) ** 2).sum()
        loss.backward()
        rule.step()
        return rn.pure_callback(checked, loss, loss.detach())

    first = step(rn.ones((3,)))
    after = w.numpy().copy()
    fails[0] = True
    for _ in range(2):
        with pytest.raises(KeyError, match="not today"):
            step(rn.ones((3,)))
        assert w.numpy().tobytes() == after.tobytes()
    fails[0] = False
    assert step(rn.ones((3,))).item() < first.item()


def test_interrupts_are_errors() -> None:
    def interrupted(x: Any) -> Any:
        raise KeyboardInterrupt

    function = rn.compile(lambda x: rn.pure_callback(interrupted, x, x))
    with pytest.raises(KeyboardInterrupt):
        function(rn.ones((2,)))


def test_results_are_checked() -> None:
    wrong = {
        "shape": lambda x: np.zeros(3, np.float32),
        "dtype": lambda x: np.zeros(2),
        "structure": lambda x: (x, x),
    }
    for function in (
        lambda f: lambda x: rn.pure_callback(f, x, x),
        lambda f: rn.compile(lambda x: rn.pure_callback(f, x, x)),
    ):
        for result in wrong.values():
            with pytest.raises(ArgumentError, match=r"\[pure_callback\] the function gave"):
                function(result)(rn.ones((2,)))
    with pytest.raises(ArgumentError, match="things with shape and dtype"):
        rn.pure_callback(np.sin, "float32", rn.ones((2,)))


def test_gradients_need_a_rule() -> None:
    def sine(x: Any) -> Any:
        return rn.pure_callback(np.sin, x, x)

    with pytest.raises(GradientError, match=r"pure_callback. has no gradient.*custom_vjp"):
        rn.grad(lambda x: sine(x).sum())(rn.ones((2,)))
    ruled = rn.custom_vjp(sine)
    ruled.defvjp(lambda x: (sine(x), x), lambda x, g: (g * rn.cos(x),))
    for function in (rn.grad(lambda x: ruled(x).sum()), rn.compile(rn.grad(lambda x: ruled(x).sum()))):
        np.testing.assert_allclose(function(rn.ones((2,))).numpy(), np.cos(np.ones(2)), rtol=1e-6)
    recorded: list[float] = []

    def loss(x: Any) -> Any:
        rn.debug.callback(lambda v: recorded.append(float(v)), x.sum())
        return (x**2).sum()

    assert rn.compile(rn.grad(loss))(rn.ones((2,))).tolist() == [2.0, 2.0] and recorded == [2.0]


class Logger:
    def __init__(self) -> None:
        self.factor = 2.0
        self.seen: list[float] = []

    def note(self, x: Any) -> None:
        self.seen.append(float(x) * self.factor)


def test_what_a_callback_reads_it_reads_when_it_runs() -> None:
    logger = Logger()
    function = rn.compile(lambda x: rn.debug.callback(logger.note, x))
    function(rn.ones(()))
    logger.factor = 3.0
    function(rn.ones(()))
    assert logger.seen == [2.0, 3.0]


def test_another_function_is_called_when_there_is_another() -> None:
    holder = Logger()
    holder.seen = []
    functions = {"now": lambda x: x + 1}

    @rn.compile
    def function(x: Any) -> Any:
        return rn.pure_callback(functions["now"], x, x)

    assert function(rn.ones(())).item() == 2.0
    functions["now"] = lambda x: x + 2
    assert function(rn.ones(())).item() == 3.0


def test_functions_made_inside() -> None:
    recorded: list[Any] = []

    @rn.compile
    def function(x: Any, n: int) -> Any:
        def note(v: Any) -> None:
            recorded.append((n, float(v)))

        rn.debug.callback(note, x)
        return x

    for n in (1, 2, 2):
        function(rn.ones(()) * n, n)
    assert recorded == [(1, 1.0), (2, 2.0), (2, 2.0)]

    @rn.compile
    def wrong(x: Any) -> Any:
        y = x + 1
        rn.debug.callback(lambda v: recorded.append(y), x)
        return y

    with pytest.raises(CaptureError, match="reads a tensor of the compiled function"):
        wrong(rn.ones(()))


def test_conditions_have_no_effects() -> None:
    def condition(x: Any) -> Any:
        rn.debug.print("x {}", x)
        return x < 3

    with pytest.raises(SideEffectError, match="must not have effects"):
        rn.while_loop(condition, lambda x: x + 1, rn.zeros(()))


def test_many_threads_and_calls_within_calls() -> None:
    inner = rn.compile(lambda x: x * 2)

    @rn.compile
    def function(x: Any) -> Any:
        return rn.pure_callback(lambda a: inner(rn.asarray(a)).numpy(), x, x) + 1

    x = rn.ones((50, 50))
    expected = function(x).numpy().tobytes()
    results: list[bytes] = []
    threads = [threading.Thread(target=lambda: results.append(function(x).numpy().tobytes())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4


@pytest.mark.parametrize("threads", ["1", "2"])
def test_large_programs_in_callbacks(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads of a team are free for what a callback runs; it may call the very function it is in."""
    monkeypatch.setenv("RUNNEL_NUM_THREADS", threads)
    inner = rn.compile(lambda x: x @ x)

    @rn.compile
    def function(x: Any) -> Any:
        return (rn.pure_callback(lambda a: inner(rn.asarray(a)).numpy(), x, x) @ x).sum()

    x = rn.ones((300, 300)) * 0.01
    assert function(x).item() == pytest.approx(8100, rel=1e-4)

    @rn.compile
    def halved(x: Any) -> Any:
        return rn.pure_callback(lambda a: a if a.sum() < 1 else halved(rn.asarray(a * np.float32(0.5))).numpy(), x, x)

    assert halved(rn.ones((3,))).tolist() == [0.25] * 3


def test_a_callback_does_not_wait_for_its_own_program() -> None:
    w = rn.Variable(np.zeros(3, np.float32))
    other = rn.compile(lambda: w.assign(w + 1))

    @rn.compile
    def step(use: Any, x: Any) -> Any:
        w.assign(w + x)
        rn.debug.callback(lambda v: use(), x)
        return w.read()

    for use in (w.numpy, other):
        before = w.numpy().copy()
        with pytest.raises(StateError, match="a Variable which this program is changing"):
            step(use, rn.ones((3,)))
        assert w.numpy().tobytes() == before.tobytes() and HOLDS.writing == 0
    assert step(lambda: None, rn.ones((3,))).tolist() == [1.0] * 3
