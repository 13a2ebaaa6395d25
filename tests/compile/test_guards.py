"""What a compiled function reads from outside is watched, wherever it hangs; reasons for tracing again are told."""

from __future__ import annotations

import collections
import enum
import functools
import types

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from runnel.compile import compile
from runnel.compile.checks import array_differs, differs, items_differ
from runnel.core import switches
from runnel.core.errors import CaptureError

SETTINGS = types.SimpleNamespace(scale=1.0, nested={"shift": [0.0, 1.0]})
MODULE = types.ModuleType("settings_of_test")


def tensor(*values: float) -> rn.Tensor:
    return rn.asarray(np.array(values, np.float32))


class Mode(enum.Enum):
    PLAIN = 1
    DOUBLE = 2


def test_values_are_told_apart() -> None:
    nan = float("nan")
    for a, b in [(1, True), (1, 1.0), (0.0, -0.0), (nan, 1.0), ("a", b"a"), (1.0, nan), (np.float32(1), np.float64(1))]:
        assert differs(a, b)
        assert items_differ([a], (b,))
    for a, b in [(nan, float("nan")), (1.5, 1.5), ("x" * 50, "".join(["x"] * 50)), (np.float32(nan), np.float32(nan))]:
        assert not differs(a, b)
    assert items_differ([1], (1, 2))


def test_arrays_are_told_apart() -> None:
    a = np.arange(6.0).reshape(2, 3)
    assert not array_differs(a, a.copy())
    assert not array_differs(a.T, a.T.copy())
    for other in (a.reshape(3, 2), a.astype(np.float32), a + 1, np.where(a == 0, -0.0, a)):
        assert array_differs(other, a)


def watched(function, change, expected_reason: str) -> None:
    """After ``change``, the compiled function gives what the eager one gives, having told why."""
    compiled, x = compile(function), tensor(1, 2)
    assert compiled(x).tolist() == function(x).tolist()
    before = compiled(x).tolist()
    change()
    after = compiled(x).tolist()
    assert after == function(x).tolist()
    assert after != before, "the change must make a difference"
    assert expected_reason in compiled.retraces[-1]
    assert compiled(x).tolist() == after
    assert len(compiled.retraces) <= 1


class TestWatched:
    def test_attributes_of_plain_objects(self) -> None:
        SETTINGS.scale = 1.0
        watched(
            lambda x: x * SETTINGS.scale,
            lambda: setattr(SETTINGS, "scale", 2.0),
            "SETTINGS.scale changed from 1.0 to 2.0",
        )

    def test_deep_containers(self) -> None:
        SETTINGS.nested = {"shift": [0.0, 1.0]}
        watched(
            lambda x: x + SETTINGS.nested["shift"][1],
            lambda: SETTINGS.nested["shift"].__setitem__(1, 5.0),
            "nested['shift']",
        )

    @pytest.mark.parametrize("make", [dict, collections.OrderedDict, lambda d: collections.defaultdict(int, d)])
    def test_dicts(self, make) -> None:
        table = make({"a": 1.0, "b": tensor(1, 1)})
        watched(lambda x: sum(table.values()) + x, lambda: table.update(c=3.0), "table")

    def test_sets_and_deques(self) -> None:
        names, queue = {"a"}, collections.deque([1.0, tensor(1, 1)])
        watched(lambda x: x * len(names), lambda: names.add("b"), "names")
        watched(lambda x: x + queue[-1], lambda: queue.append(7.0), "queue")

    def test_called_functions(self) -> None:
        power = 1.0

        def outer(x):
            return inner(x) + 1

        def inner(x):
            return x * power

        def change() -> None:
            nonlocal power
            power = 3.0

        watched(outer, change, "power changed from 1.0 to 3.0")

    def test_replaced_functions(self) -> None:
        def helper(x):
            return x + 1

        def change() -> None:
            nonlocal helper

            def helper(x):
                return x + 2

        watched(lambda x: helper(x), change, "helper")

    def test_partials_methods_and_properties(self) -> None:
        class Thing:
            factor = 2.0

            def __init__(self) -> None:
                self.hidden = 1.0

            @property
            def shown(self) -> float:
                return self.hidden * 10

            def times(self, x, by):
                return x * by * self.factor

        thing = Thing()
        times = functools.partial(thing.times, by=2.0)
        watched(lambda x: times(x), lambda: setattr(Thing, "factor", 5.0), "factor")
        watched(
            lambda x: x + thing.shown, lambda: setattr(thing, "hidden", 4.0), "thing.hidden changed from 1.0 to 4.0"
        )
        watched(lambda x: thing.times(x, 1.0), lambda: setattr(thing, "factor", 7.0), "thing")

    def test_getattr_with_a_name(self) -> None:
        holder = types.SimpleNamespace()
        watched(lambda x: x + getattr(holder, "extra", 0.0), lambda: setattr(holder, "extra", 1.0), "holder")

    def test_slots(self) -> None:
        class Slotted:
            __slots__ = ("gain",)

        slotted = Slotted()
        slotted.gain = 1.0
        watched(lambda x: x * slotted.gain, lambda: setattr(slotted, "gain", 2.0), "slotted.gain")

    def test_modules_of_python(self) -> None:
        MODULE.rate = 1.0  # type: ignore[attr-defined]
        watched(lambda x: x * MODULE.rate, lambda: setattr(MODULE, "rate", 2.0), "MODULE.rate")

    def test_defaults_and_enums(self) -> None:
        def f(x, scale=1.0, *, mode=Mode.PLAIN):
            return x * 2 if mode is Mode.DOUBLE else x * scale

        compiled, x = compile(f), tensor(1)
        assert [compiled(x).item(), compiled(x, mode=Mode.DOUBLE).item(), compiled(x).item()] == [1, 2, 1]
        f.__defaults__ = (5.0,)
        assert compiled(x).item() == 5
        f.__kwdefaults__ = {"mode": Mode.DOUBLE}
        assert compiled(x).item() == 2

    def test_a_global_that_appears(self) -> None:
        namespace: dict[str, object] = {}
        exec("def f(x):\n    return x + (late if 'late' in globals() else 0.0)", namespace)
        compiled, x = compile(namespace["f"]), tensor(1)
        assert compiled(x).item() == 1
        namespace["late"] = 2.0
        assert compiled(x).item() == 3

    def test_objects_among_arguments(self) -> None:
        f = compile(lambda x, s: x * s.scale)
        settings, x = types.SimpleNamespace(scale=2.0), tensor(1)
        assert f(x, settings).item() == 2
        settings.scale = 3.0
        assert f(x, settings).item() == 3
        assert f(x, types.SimpleNamespace(scale=3.0)).item() == 3
        assert f.statistics["traces"] == 2
        assert f(x, types.SimpleNamespace(scale=4.0)).item() == 4

    def test_functions_among_arguments(self) -> None:
        f = compile(lambda x, g: g(x))
        assert [f(tensor(1), lambda x, k=k: x + k).item() for k in (1.0, 2.0, 1.0)] == [2, 3, 2]
        assert f.statistics["traces"] == 2

    def test_lists_in_modules(self) -> None:
        class Net(nn.Module):
            def __init__(self) -> None:
                self.scales = [1.0]

            def forward(self, x):
                for s in self.scales:
                    x = x * s
                return x

        net = Net()
        watched(lambda x: net(x), lambda: net.scales.append(3.0), "net.scales")

    def test_modules_that_change(self) -> None:
        net = nn.Sequential(nn.ReLU())
        watched(lambda x: net(x - 1.5) + x, lambda: net.append(nn.Tanh()), "net")

    def test_requires_grad_of_a_variable(self) -> None:
        v = rn.Variable([1.0, 2.0], requires_grad=True)
        f = compile(lambda: v * 2)
        assert f().requires_grad
        v.requires_grad = False
        assert not f().requires_grad

    def test_too_much_is_an_error(self) -> None:
        many = [object() for _ in range(300_000)]
        with pytest.raises(CaptureError, match="many"):
            compile(lambda x: x * len(many))(tensor(1))


class TestReasons:
    def test_of_signatures(self) -> None:
        f = compile(lambda x, n=1: x * n, name="scaled")
        f(tensor(1))
        f(tensor(1, 2))
        f(tensor(1, 2), 3)
        f(tensor(1, 2), 4)
        assert f.retraces == [
            "retrace of scaled(): argument 'x' is float32[2], was float32[1]",
            "retrace of scaled(): the arguments are x, n; they were x",
            "retrace of scaled(): argument 'n' is 4, was 3",
        ]

    def test_are_printed(self, capsys: pytest.CaptureFixture[str]) -> None:
        f = compile(lambda x: x + 1)
        with switches.override(debug=1):
            f(tensor(1))
            f(tensor(1, 2))
        assert "retrace of <lambda>(): argument 'x'" in capsys.readouterr().err


class TestFloats:
    """Float arguments are run-time data: no retrace, and the bits that eager gives."""

    VALUES = (0.1, 1 / 3, -2.5, 1e-8, 16777217.0, 0.1 + 2**-30, 1e300, float("inf"))

    @pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32"])
    def test_beside_tensors(self, dtype: str) -> None:
        def f(x, lr, decay):
            return x * lr, lr * x - 0.5 * decay, x / lr, 1 - lr * decay * x, (lr * 3 + decay - 1 / 3) * x

        compiled = compile(f)
        x = rn.asarray([1, 3, 5]).astype(dtype)
        for lr in self.VALUES:
            for decay in self.VALUES[:3]:
                for a, b in zip(compiled(x, lr, decay), f(x, lr, decay), strict=True):
                    assert a.dtype is b.dtype
                    assert a.numpy().tobytes() == b.numpy().tobytes(), (lr, decay)
        assert compiled.statistics["traces"] == 1
        assert f(x, 0.1, 0.2)[0].shape == (3,)

    def test_among_themselves(self) -> None:
        def f(a, b):
            return a * b, a + b * 3, a - 1, -a, abs(b), a / 7, [2 - a]

        compiled = compile(f)
        for a in self.VALUES:
            for b in self.VALUES:
                expected, got = f(a, b), compiled(a, b)
                assert repr(got) == repr(expected)
        assert compiled.statistics["traces"] == 1

    @pytest.mark.parametrize(
        "use",
        [
            lambda x, lr: x * (lr**0.5), lambda x, lr: x if lr > 0.2 else -x, lambda x, lr: x * round(lr, 1),
            lambda x, lr: x * {0.1: 2}.get(lr, 5), lambda x, lr: x * len(f"{lr}"), lambda x, lr: x * int(lr * 9),
            lambda x, lr: x / (1 / lr), lambda x, lr: x * (lr // 0.2), lambda x, lr: x * lr.is_integer(),
            lambda x, lr: x + np.sqrt(lr), lambda x, lr: x * isinstance(lr, float), lambda x, lr: x * (lr == 0.1),
            lambda x, lr: x + rn.full((2,), lr), lambda x, lr: x * max(lr, 0.2), lambda x, lr: x * (lr or 1.0),
            lambda x, lr: x + (lr is None or lr != None),  # noqa: E711
        ],
    )  # fmt: skip
    def test_any_use(self, use) -> None:
        compiled, x = compile(use), tensor(1, 2)
        for lr in (0.1, 0.3, 0.0625, 0.1):
            got, expected = compiled(x, lr), use(x, lr)
            assert got.numpy().tobytes() == expected.numpy().tobytes()

    def test_caught_looks_count(self) -> None:
        def f(x, lr):
            try:
                return x * float(lr)
            except Exception:
                return -x

        compiled = compile(f)
        assert [compiled(tensor(1), v).item() for v in (2.0, 3.0)] == [2, 3]

    def test_division_by_zero(self) -> None:
        with pytest.raises(ZeroDivisionError):
            compile(lambda x, lr: x * (1 / lr))(tensor(1), 0.0)


@pytest.mark.parametrize("make", [
    lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3), lambda p: optim.AdamW(p, lr=0.01),
])  # fmt: skip
def test_training_step_is_eager_to_the_bit(make) -> None:
    rng = np.random.default_rng(0)
    xs = [rn.asarray(rng.standard_normal((6, 3)).astype(np.float32)) for _ in range(3)]
    ys = [rn.asarray(rng.integers(0, 2, 6)) for _ in range(3)]

    def trained(wrap):
        rn.manual_seed(1)
        model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Dropout(0.3), nn.Linear(5, 2))
        optimizer = make(model.parameters())

        @wrap
        def step(x, y):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        losses = []
        for i in range(10):
            if i == 5:
                optimizer.param_groups[0]["lr"] = 0.02
            losses.append(step(xs[i % 3], ys[i % 3]).item())
        return losses, [p.numpy().tobytes() for p in model.parameters()], step

    losses, parameters, step = trained(compile)
    assert (losses, parameters) == trained(lambda f: f)[:2]
    assert not [r for r in step.retraces if "lr" in r]


def test_consumed_and_kept_gradients() -> None:
    for keep in (False, True):
        w = nn.Parameter([1.0, 2.0])
        optimizer = optim.SGD([w], lr=0.5)

        def step(x, w=w, optimizer=optimizer):
            optimizer.zero_grad()
            (w * x).sum().backward()
            optimizer.step()

        compiled = compile(step, keep_grads=keep)
        compiled(tensor(1, 1))
        compiled(tensor(2, 4))
        if keep:
            assert w.grad.tolist() == [2, 4]
        else:
            with pytest.raises(rn.core.errors.GradientError, match="keep_grads"):
                _ = w.grad
        for _ in range(5):
            compiled(tensor(0, 0))
        w.grad = tensor(7, 7)  # set from outside between calls that take the quick way
        compiled(tensor(0, 0))
        if keep:
            assert w.grad.tolist() == [0, 0]
        else:
            with pytest.raises(rn.core.errors.GradientError, match="keep_grads"):
                _ = w.grad
        w.grad = None
        assert w.numpy().tolist() == [-0.5, -0.5]
