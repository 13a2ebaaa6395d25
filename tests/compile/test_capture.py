"""The acceptance list of capture: each pitfall gives the eager answer, to the bit, or an error; each line is tested."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from runnel.compile import boundary, compile
from runnel.compile.owned import structure
from runnel.core.errors import CaptureWarning, TracedValueError
from runnel.tensor import random

GLOBAL_SCALE = 1.0
GLOBAL_COUNT = 0
GLOBAL_ARRAY = np.arange(3, dtype=np.float32)


def tensor(*values: float) -> rn.Tensor:
    return rn.asarray(np.array(values, np.float32))


def same(a, b) -> None:
    """Equal to the bit, in structure, dtype and shape."""
    assert type(a) is type(b)
    if isinstance(a, rn.Tensor):
        assert a.dtype is b.dtype
        assert a.shape == b.shape
        assert a.numpy().tobytes() == b.numpy().tobytes()
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif dataclasses.is_dataclass(a):
        same(vars(a), vars(b))
    else:
        assert a == b or (a != a and b != b)


def check(function, *calls) -> object:
    """Compiled and eager agree on every call, thrice over; a call is a tuple of arguments."""
    compiled = compile(function)
    for _ in range(3):
        for args in calls:
            same(compiled(*args), function(*args))
    return compiled


class TestOutputs:
    def test_earlier_results_stay(self) -> None:  # line 1
        f = compile(lambda x: x * 2)
        results = [f(tensor(i, i + 1)) for i in range(10)]
        for i, result in enumerate(results):
            assert result.tolist() == [2 * i, 2 * i + 2]

    def test_output_fed_back(self) -> None:  # line 2
        def f(x):
            return x * 2 + 1

        compiled = compile(f)
        x = e = tensor(1, 2, 3)
        for _ in range(6):
            x, e = compiled(x), f(e)
            same(x, e)
        fresh = tensor(7, 8, 9)
        same(compiled(fresh), f(fresh))
        same(compiled(compiled(fresh)), f(f(fresh)))

    def test_shared_intermediates_and_aliases(self) -> None:  # line 3
        def f(x):
            y = x * 3
            return y + 1, y - 1, y, x, y, x[1:], x.reshape(3, 1)

        check(f, (tensor(1, 2, 3),), (tensor(4, 5, 6),))

    def test_alias_of_an_argument_does_not_see_the_next_call(self) -> None:  # line 3
        f = compile(lambda x: x)
        a = f(tensor(1))
        b = f(tensor(2))
        assert (a.tolist(), b.tolist()) == ([1], [2])

    def test_variable_read_after_assignment(self) -> None:  # line 4
        v = rn.Variable([1.0, 2.0])

        @compile
        def f(x):
            before = v + 0
            v.assign(v + x)
            after = v + 0
            v.assign(v * 2)
            return before, after, v.read()

        expected = np.array([1, 2], np.float32)
        for i in range(5):
            before, after, last = f(tensor(i, 1))
            assert before.tolist() == expected.tolist()
            expected = expected + np.array([i, 1], np.float32)
            assert after.tolist() == expected.tolist()
            expected = expected * 2
            assert last.tolist() == expected.tolist() == v.numpy().tolist()

    def test_handles_of_variables_keep_their_value(self) -> None:  # lines 1 and 4
        v = rn.Variable([1.0])

        @compile
        def bump():
            v.assign(v + 1)

        handles = []
        for _ in range(5):
            handles.append(v.read())
            bump()
        assert [h.item() for h in handles] == [1, 2, 3, 4, 5]
        a, b = rn.Variable([1.0]), rn.Variable([2.0])

        @compile
        def swap():
            x, y = a.read(), b.read()
            a.assign(y)
            b.assign(x)

        for _ in range(3):
            swap()
        assert (a.item(), b.item()) == (2, 1)

    def test_fresh_value_assigned_from_outside(self) -> None:  # line 4
        v = rn.Variable([1.0])
        f = compile(lambda: v * 2)
        assert f().item() == 2
        v.assign(tensor(5))
        assert f().item() == 10
        assert f().item() == 10


class TestArguments:
    def test_slices(self) -> None:  # line 5
        x = rn.asarray(np.arange(20, dtype=np.float32).reshape(4, 5))
        calls = [(x[i : i + n],) for i in range(3) for n in (1, 2)] + [(x[:, i:],) for i in range(3)] + [(x[::2],)]
        check(lambda t: t * 2 + 1, *calls)

    def test_same_tensor_twice_and_nests(self) -> None:  # line 9
        x, y = tensor(1, 2), tensor(3, 4)
        check(lambda a, b: a * b + a, (x, x), (x, y), (y, y))

        @dataclasses.dataclass
        class Batch:
            x: rn.Tensor
            scale: float
            name: str

        def nested(batch, pair, table, nothing):
            return {
                "sum": batch.x * batch.scale + pair[0] - pair[1][0],
                "name": batch.name,
                "table": [table["a"] + 1, (table["b"], nothing)],
                "batch": Batch(batch.x + 1, 2.0, "out"),
                "n": 3,
            }

        check(
            nested,
            (Batch(x, 2.0, "p"), (x, [y]), {"a": x, "b": 3}, None),
            (Batch(y, 3.0, "p"), (y, [x]), {"a": y, "b": 3}, None),
            (Batch(y, 3.0, "q"), (y, [x]), {"a": y, "b": 4}, None),
        )

    def test_numbers_and_flags(self) -> None:  # lines 7 and 9
        def f(x, flag=True, n=2, mode="a", lr=0.5):
            y = x * n if flag else x - n
            if mode == "a":
                y = y * lr
            return y if lr > 0 else -y

        x = tensor(1, 2, 3)
        check(
            f,
            (x,),
            (x, False),
            (x, True, 3),
            (x, 1, 3),
            (x, True, 3, "b"),
            (x, True, 3, "a", 0.1),
            (x, True, 3, "a", -0.3),
        )

    def test_positional_and_keywords(self) -> None:  # line 10
        def f(x, y, *, scale=1.0):
            return x - y * scale

        compiled = compile(f)
        x, y = tensor(1, 2), tensor(5, 7)
        for _ in range(3):
            for args, kwargs in [((x, y), {}), ((x,), {"y": y}), ((), {"y": y, "x": x}), ((x, y), {"scale": 3.0})]:
                same(compiled(*args, **kwargs), f(*args, **kwargs))

    def test_dtypes(self) -> None:  # line 10
        dtypes = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8"]
        xs = [rn.asarray([0, 1, 2, 3]).astype(dtype) for dtype in dtypes]
        check(lambda x: (x + x, x * 2, x > 1, x), *[(x,) for x in xs])
        check(lambda x: (x == x, x), *[(x,) for x in (*xs, xs[0] > 1)])

    def test_shapes(self) -> None:  # line 10
        def f(x):
            return (x * 2).sum(), x + 1

        shapes = [(), (0,), (1,), (3,), (2, 3), (0, 3), (3, 1, 2)]
        check(f, *[(rn.asarray(np.ones(s, np.float32)),) for s in shapes])

    def test_layouts_and_numpy_arrays(self) -> None:  # line 10
        base = np.arange(12, dtype=np.float32).reshape(3, 4)
        t = rn.asarray(base)
        check(lambda x: x * 2 + x.sum(0), (t.T,), (t[:, ::2],), (t[::-1],), (t,))
        compiled = compile(lambda x: rn.asarray(x) * 2)
        for array in (base, base.T, base[:, 1:], base[::-1]):
            assert np.array_equal(compiled(array).numpy(), array * 2)
        base[0] = 100
        assert np.array_equal(compiled(base).numpy(), base * 2)
        assert type(compile(lambda x: x * 2)(base)) is np.ndarray


class TestReads:
    def test_closure_global_and_attribute(self) -> None:  # line 6
        global GLOBAL_SCALE
        scale = 1.0

        class Model:
            def __init__(self) -> None:
                self.mult = 2.0

            @compile
            def __call__(self, x):
                return x * self.mult * scale + GLOBAL_SCALE

        model, x = Model(), tensor(1, 2)
        GLOBAL_SCALE = 1.0
        assert model(x).tolist() == [3, 5]
        model.mult = 3.0
        assert model(x).tolist() == [4, 7]
        scale = 2.0
        assert model(x).tolist() == [7, 13]
        GLOBAL_SCALE = 0.0
        assert model(x).tolist() == [6, 12]
        assert "GLOBAL_SCALE changed from 1.0 to 0.0" in Model.__call__.retraces[-1]
        model.mult, scale, GLOBAL_SCALE = 2.0, 1.0, 1.0
        traces = Model.__call__.statistics["traces"]
        assert model(x).tolist() == [3, 5]
        assert Model.__call__.statistics["traces"] == traces

    def test_branches(self) -> None:  # line 7
        flag = True

        @compile
        def f(x, negate):
            y = -x if negate else x
            return y * 2 if flag else y

        x = tensor(1)
        assert (f(x, True).item(), f(x, False).item()) == (-2, 2)
        flag = False
        assert (f(x, True).item(), f(x, False).item()) == (-1, 1)

    def test_training_flag(self) -> None:  # line 7
        model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5))
        f = compile(lambda x: model(x).detach())
        x = tensor(1, 2, 3).reshape(1, 3)
        f(x)
        model.eval()
        for _ in range(3):
            same(f(x), model(x).detach())
        model.train()
        assert (f(x).numpy() == 0).any() or (f(x).numpy() == 0).any() or (f(x).numpy() == 0).any()

    def test_methods_of_two_instances(self) -> None:  # line 8
        class Scaler:
            def __init__(self, by: float, shift: rn.Tensor) -> None:
                self.by = by
                self.shift = shift

            @compile
            def apply(self, x):
                return x * self.by + self.shift

        class Affine(nn.Module):
            def __init__(self) -> None:
                self.linear = nn.Linear(2, 2)

            @compile
            def forward(self, x):
                return self.linear(x).detach()

        a, b, x = Scaler(2.0, tensor(1)), Scaler(3.0, tensor(2)), tensor(1, 2)
        for _ in range(3):
            assert (a.apply(x).tolist(), b.apply(x).tolist()) == ([3, 5], [5, 8])
        a.shift = tensor(10)
        assert a.apply(x).tolist() == [12, 14]
        p, q, x = Affine(), Affine(), x.reshape(1, 2)
        for _ in range(3):
            same(p(x), p.linear(x).detach())
            same(q(x), q.linear(x).detach())

    def test_captured_tensors_and_arrays_are_inputs(self) -> None:
        w, array = tensor(1, 2), np.array([1, 2], np.float32)
        f = compile(lambda x: x * w + rn.asarray(array) + GLOBAL_ARRAY[:2] * array[0])

        def eager(x):
            return x * w + rn.asarray(array) + GLOBAL_ARRAY[:2] * array[0]

        x = tensor(3, 4)
        same(f(x), eager(x))
        w = tensor(5, 6)
        same(f(x), eager(x))
        assert f.statistics["traces"] == 1
        array[1] = 7
        same(f(x), eager(x))
        array[0] = 5
        same(f(x), eager(x))
        GLOBAL_ARRAY[1] += 1
        same(f(x), eager(x))

    def test_a_frozen_parameter_of_a_layer(self) -> None:
        layer = nn.Linear(2, 1)

        @compile
        def step(x):
            layer.zero_grad()
            layer(x).sum().backward()

        x = tensor(1, 2).reshape(1, 2)
        step(x)
        assert layer.weight.grad.tolist() == [[1, 2]]
        layer.weight.requires_grad = False
        step(x)
        assert layer.weight.grad is None and layer.bias.grad.tolist() == [1]

    def test_what_is_written_past_setattr(self) -> None:
        class Model(nn.Module):
            def __init__(self) -> None:
                self.mode, self.inner = "a", nn.Identity()

            def forward(self, x):
                return self.inner(x) * 2 if self.mode == "a" else x

        model = Model()
        f = compile(lambda x: model(x))
        assert f(tensor(1)).item() == 2
        model.__dict__["mode"] = "b"
        assert f(tensor(1)).item() == 1
        vars(model).update(mode="a", inner=nn.ReLU())
        assert f(tensor(-1)).item() == 0


class TestNesting:
    def test_nested(self) -> None:  # line 11
        factor = 2.0

        @compile
        def inner(x):
            return x * factor

        @compile
        def outer(x):
            return inner(x) + inner(x + 1)

        x = tensor(1, 2)
        for _ in range(3):
            assert outer(x).tolist() == [6, 10]
            assert inner(x).tolist() == [2, 4]
        factor = 3.0
        assert outer(x).tolist() == [9, 15]
        assert inner(x).tolist() == [3, 6]

    def test_gradient_inside(self) -> None:  # line 11
        w = rn.Variable([1.0, 2.0], requires_grad=True)

        @compile
        def step(x):
            w.grad = None
            loss = (w * w * x).sum()
            loss.backward()
            return loss, w.grad

        for _ in range(3):
            loss, grad = step(tensor(1, 3))
            assert (loss.item(), grad.tolist(), w.grad.tolist()) == (13, [2, 12], [2, 12])

    def test_gradient_outside_of_an_argument(self) -> None:  # line 11
        f = compile(lambda x: (x * x).sum())
        assert f(tensor(1, 2)).item() == 5
        for _ in range(3):
            x = tensor(1, 2).requires_grad_()
            f(x).backward()
            assert x.grad.tolist() == [2, 4]

    def test_gradient_outside_of_a_variable(self) -> None:  # line 11
        w = rn.Variable([1.0, 2.0], requires_grad=True)
        f = compile(lambda x: ((w * w * x).sum(), w * 3))
        for _ in range(3):
            w.grad = None
            loss, triple = f(tensor(1, 3))
            (loss + triple.sum()).backward()
            assert w.grad.tolist() == [5, 15]
        loss, _ = f(tensor(1, 3))
        w.grad = None
        w.assign(tensor(0, 0))
        loss.backward()
        assert w.grad.tolist() == [2, 12]  # by the values of the time

    def test_gradient_accumulates_as_in_eager(self) -> None:
        def step(w, x):
            loss = (w * w * x).sum()
            loss.backward()
            return loss

        a, b = (rn.Variable([1.0, 2.0], requires_grad=True) for _ in range(2))
        compiled = compile(step)
        for i in range(5):
            same(compiled(a, tensor(i, 1)), step(b, tensor(i, 1)))
            same(a.grad, b.grad)
            if i == 3:
                a.grad = b.grad = None


class TestTracedValues:
    @pytest.mark.parametrize(
        "look",
        [
            lambda x: x.sum().item(),
            lambda x: float(x.sum()),
            lambda x: int(x.sum()),
            lambda x: 1 if x.sum() > 0 else 2,
            lambda x: bool(x.sum()),
            lambda x: f"{x.sum():.2f}",
            lambda x: np.asarray(x),
            lambda x: x.tolist(),
            lambda x: rn.zeros((int(x.sum()),)),
            lambda x: [1, 2, 3][x.sum().astype("int64")],
            lambda x: x == 1 or x,
        ],
    )
    def test_looking_at_a_value(self, look) -> None:  # line 12
        with pytest.raises(TracedValueError, match=r"test_capture\.py:"):
            compile(look)(tensor(1))

    def test_a_caught_error_counts(self) -> None:  # line 12
        def f(x):
            try:
                return x * float(x.sum())
            except Exception:
                return x

        with pytest.raises(TracedValueError):
            compile(f)(tensor(3))

    def test_printing_of_plain_text_is_allowed(self, capsys: pytest.CaptureFixture[str]) -> None:  # line 12
        f = compile(lambda x: (print("shape", x.shape), x + 1)[1])
        assert f(tensor(1)).item() == 2
        assert "shape (1,)" in capsys.readouterr().out


class TestRandom:
    def test_dropout(self) -> None:  # line 13
        f = compile(lambda x: random.dropout(x, 0.5))
        x = rn.ones((64,))
        random.manual_seed(3)
        compiled = [f(x).tolist() for _ in range(5)]
        random.manual_seed(3)
        assert [random.dropout(x, 0.5).tolist() for _ in range(5)] == compiled
        assert compiled[0] != compiled[1]
        random.manual_seed(3)
        assert [(f(x) if i % 2 else random.dropout(x, 0.5)).tolist() for i in range(5)] == compiled


class TestSideEffects:
    def test_changes_outside_happen_at_each_call(self) -> None:  # line 14
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

    def test_changed_arguments_are_changed_at_each_call(self) -> None:  # line 14
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

    def test_writes_into_tensors(self) -> None:  # line 14
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

    def test_iterators_are_advanced_eagerly(self) -> None:  # line 14
        batches = iter([tensor(1), tensor(2)])
        f = compile(lambda: next(batches) + 1)
        with pytest.warns(CaptureWarning, match="batches"):
            assert f().item() == 2
        assert f().item() == 3


class TestFailures:
    def test_an_exception_leaves_what_eager_code_leaves(self) -> None:  # line 16
        v = rn.Variable([1.0, 2.0], requires_grad=True)

        @compile
        def f(x, fail):
            (v * x).sum().backward()
            v.assign(v + x)
            if fail:
                raise KeyError("user")
            return v.read()

        for i, error in enumerate((True, False, True), start=1):
            if error:
                with pytest.raises(KeyError, match="user"):
                    f(tensor(1, 1), True)
            else:
                f(tensor(1, 1), False)
            assert v.numpy().tolist() == [1 + i, 2 + i]
            assert v.grad.tolist() == [i, i]

    def test_interrupt_leaves_variables(self) -> None:  # line 16
        v = rn.Variable([1.0])

        @compile
        def f(interrupt):
            v.assign(v + 1)
            if interrupt:
                raise KeyboardInterrupt
            return v.read()

        f(False)
        with pytest.raises(KeyboardInterrupt):
            f(True)
        assert v.item() == 2
        assert f(False).item() == 3

    def test_index_out_of_range_leaves_variables(self) -> None:  # line 16
        v = rn.Variable([1.0, 2.0, 3.0])

        @compile
        def f(i):
            v.assign(v + v[i].sum())
            return v.read()

        good, bad = rn.asarray([0, 2]), rn.asarray([0, 7])
        assert f(good).tolist() == [5, 6, 7]
        for _ in range(3):
            with pytest.raises(IndexError):
                f(bad)
            assert v.numpy().tolist() == [5, 6, 7]
        assert f(good).tolist() == [17, 18, 19]

    def test_state_made_by_the_first_call(self) -> None:
        class Lazy(nn.Module):
            def __init__(self) -> None:
                self.scale = None

            def forward(self, x):
                if self.scale is None:
                    self.scale = nn.Parameter(rn.ones((3,)))
                return x * self.scale.value

        model = Lazy()
        f = compile(lambda x: model(x))
        for i in range(4):
            assert f(tensor(i, 1, 2)).tolist() == [i, 1, 2]
        assert f.statistics["traces"] == 1
        assert [name for name, _ in model.named_parameters()] == ["scale"]

    def test_state_made_at_each_call_runs_eagerly(self) -> None:
        f = compile(lambda x: rn.Variable([1.0]) + x)
        with pytest.warns(CaptureWarning, match="made inside"):
            for i in range(4):
                assert f(tensor(i)).item() == i + 1


def test_two_threads() -> None:  # line 17
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


class TestHandles:
    """Tensors outside that were given other values, and other handles of them."""

    def test_captured_tensors_after_writes(self) -> None:
        w = rn.asarray(np.arange(3, dtype=np.float32))
        w[0] = 5.0

        def fn(x: rn.Tensor) -> rn.Tensor:
            gradient = rn.grad(lambda x: (x * w * w[:].clone() * w.detach()).sum())(x)
            return gradient + rn.tensor(w) + rn.scan(lambda c, v: (c * w + w[...], c), x, None, length=2)[0]

        compiled = rn.compile(fn)
        for value in (7.0, 8.0):
            assert np.array_equal(compiled(rn.ones(3)).numpy(), fn(rn.ones(3)).numpy())
            w[1] = value
        assert compiled.statistics["traces"] == 1

    def test_handles_made_outside_of_constants(self) -> None:
        zero = rn.zeros_like(rn.asarray(1.0))

        def fn(x: rn.Tensor) -> rn.Tensor:
            zero.add_(1.0)
            return x + zero

        f = rn.compile(fn)
        assert [f(rn.ones(2)).tolist() for _ in range(3)] == [[2, 2], [3, 3], [4, 4]]
        assert zero.item() == 3.0


def test_a_layer_is_looked_into_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is called, as long as the function changes nothing; then what it holds is looked at anew."""
    walked: list[Any] = []
    monkeypatch.setattr(boundary, "structure", lambda value, *rest: walked.append(value) or structure(value, *rest))
    layer = nn.Linear(2, 2)

    def function(x: Any, note: bool) -> Any:
        for _ in range(20):
            x = layer(x)
        if note:
            layer.note = lambda x: x * 2
            x = layer(x)
        return x

    rn.compile(function)(rn.zeros((1, 2)), False)
    assert walked.count(layer) == 1
    rn.compile(function)(rn.zeros((1, 2)), True)
    assert walked.count(layer) == 3 and layer.note(3) == 6
