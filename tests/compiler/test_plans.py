"""Plans give eager's bits: fused or not, for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import runnel as rn
from runnel import ops
from runnel.compiler.passes.permutes import flip_transposed_products
from runnel.compiler.schedule import partition
from runnel.tensor.variable import Variable
from tests.compiler.harness import Traced, same_bits

pytestmark = pytest.mark.suite


def numbers(*shape: int, seed: int = 0) -> rn.Tensor:
    return rn.asarray(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def check(fn, *args, threads=(1, 2, 3, 4)) -> None:
    expected = fn(*args)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for n in threads:
        for fuse in (True, False):
            actual = Traced(fn, args, threads=n, fuse=fuse)(*args)
            for e, f in zip(expected, actual, strict=True):
                assert same_bits(e.numpy(), f), (n, fuse)


@pytest.fixture(autouse=True)
def split_everything(monkeypatch):
    """Small programs are split among threads too, so that every plan is tested with barriers."""
    monkeypatch.setattr(partition, "WORTH_A_TEAM", 0.0)
    monkeypatch.setattr(partition, "WORTH_SPLITTING", 0.0)


CASES = {
    "softmax": lambda x: ops.softmax(x),
    "log_softmax": lambda x: ops.log_softmax(x, 0),
    "layer_norm": lambda x: ops.layer_norm(x, x.shape[-1:]),
    "column_sum_then_map": lambda x: ops.tanh(x.sum(0)) * 2.0,
    "row_sum_and_column_sum": lambda x: (x.sum(0), x.sum(1), x.sum()),
    "shared_intermediate": lambda x: (ops.exp(x) + 1.0, ops.exp(x) * x.T.sum()),
    "transpose_chain": lambda x: (x.T * 2.0).T + x,
    "reshape_that_copies": lambda x: (x.T * 1.0).reshape(-1) + 1.0,
    "concat": lambda x: ops.concat([x, x * 2.0, x[:, 1:]], axis=1),
    "pad": lambda x: ops.pad(x, [(1, 2), (0, 1)], 3.0),
    "flip_slice": lambda x: ops.flip(x, 1)[::2, 1:] + 1.0,
    "where_iota": lambda x: ops.where(x > 0, x, ops.exp(x)).max(1),
    "output_is_input": lambda x: (x, x.T, x + 0.0),
    "scalar_chain": lambda x: (x.mean() - 1.0) / (x.std() + 1e-3),
    "product_epilogue": lambda x: ops.relu(x @ x.T + x.sum(1)),
    "product_row_statistics": lambda x: ops.softmax(x @ x.T / 3.0),
    "product_of_products": lambda x: (x.T @ (x @ x.T)).T @ x.T,
    "gather": lambda x: ops.take(x, ops.argmax(x, 0), 0) * 2.0,
    "variance_of_column": lambda x: ops.var(x, 0) + x.mean(0),
    "integers": lambda x: (ops.cast(x * 10.0, rn.int32) // 3 % 5).sum(1),
    "half": lambda x: ops.cast(ops.cast(x, rn.float16) * 1.5 + 0.1, rn.float32),
    "bfloat": lambda x: ops.cast(x, rn.bfloat16) * ops.cast(x, rn.bfloat16),
    "bools": lambda x: ((x > 0).any(1), (x > 0).all(0)),
    "three_axes": lambda x: ops.softmax(x.reshape(x.shape[0], 1, x.shape[1]) * x.reshape(1, *x.shape), 1).sum((0, 2)),
    "mid_axis": lambda x: (x.reshape(1, *x.shape) * x.reshape(x.shape[0], 1, -1)).sum(1).max(axis=1),
    "batched": lambda x: (ops.broadcast_to(x, (3, *x.shape)) @ x.T).sum(0),
}


@pytest.mark.parametrize("shape", [(5, 7), (1, 9), (8, 1), (33, 20)], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_plan_gives_eager_bits(case, shape):
    check(CASES[case], numbers(*shape))


@pytest.mark.parametrize("case", ["softmax", "column_sum_then_map", "concat", "half"])
def test_empty_arrays(case):
    check(CASES[case], numbers(0, 4), threads=(1, 2))


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=10), st.integers(1, 19), st.integers(1, 35))
def test_random_programs(steps, m, n):
    """A stack machine of ops over matrices (m, n), rows (m, 1) and columns (1, n)."""

    def fn(x):
        values = [x]
        for k, step in enumerate(steps):
            a = values[-1]
            b = values[k % len(values)]
            values.append(
                {
                    "a": lambda a=a, b=b: a + b,
                    "b": lambda a=a, b=b: a * ops.sigmoid(b),
                    "c": lambda a=a, b=b: ops.maximum(a, b) - a.mean(-1, keepdims=True),
                    "d": lambda a=a, b=b: ops.exp(-ops.abs(a)) + b.sum(0, keepdims=True) * 0.01,
                    "e": lambda a=a, b=b: ops.tanh((a @ ops.transpose(b)) @ x * 0.01),
                    "f": lambda a=a, b=b: ops.transpose(ops.transpose(a) * 1.5) + b,
                    "g": lambda a=a, b=b: ops.where(a > b, a, b * 0.5),
                    "h": lambda a=a, b=b: a - b.max(0, keepdims=True) - a.min(),
                }[step]()
            )
        return values[-1], values[len(values) // 2].sum()

    check(fn, numbers(m, n), threads=(1, 2))


def make_training(seed: int = 0):
    rng = np.random.default_rng(seed)
    sizes = [(20, 33), (33, 40), (40, 5)]
    weights = [Variable((rng.standard_normal((b, a)) * 0.1).astype(np.float32), requires_grad=True) for a, b in sizes]
    biases = [Variable(np.zeros(b, np.float32), requires_grad=True) for _, b in sizes]
    momenta = [Variable(np.zeros(p.shape, np.float32)) for p in weights + biases]

    def step(x, y):
        for k, (w, b) in enumerate(zip(weights, biases, strict=True)):
            x = ops.linear(x, w, b)
            x = ops.relu(x) if k < 2 else x
        loss = ops.cross_entropy(x, y)
        loss.backward()
        for p, m in zip(weights + biases, momenta, strict=True):
            new = m * 0.9 + p.grad
            m.assign(new)
            p.assign(p.detach() - 0.1 * new)
            p.grad = None
        return loss

    return step, weights + biases


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("rewrite", [None, flip_transposed_products])
def test_training_step_bits(threads, rewrite):
    x = numbers(24, 20)
    y = rn.asarray(np.random.default_rng(1).integers(0, 5, 24))
    eager, expected = make_training()
    compiled, actual = make_training()
    program = Traced(compiled, (x, y), threads=threads, rewrite=rewrite)
    for _ in range(4):
        loss = eager(x, y)
        assert same_bits(loss.numpy(), program(x, y)[0])
    for e, f in zip(expected, actual, strict=True):
        assert same_bits(e.numpy(), f._tensor.numpy())


def test_swapped_variables():
    a, b = Variable(np.ones(40, np.float32)), Variable(np.zeros(40, np.float32))

    def swap(x):
        old = a.read()
        a.assign(b.read())
        b.assign(old)
        return old + x

    program = Traced(swap, (numbers(40),), threads=2)
    program(numbers(40))
    assert (a._tensor.numpy() == 0).all()
    assert (b._tensor.numpy() == 1).all()


def test_shifted_update_is_not_done_in_place():
    a = Variable(np.arange(50, dtype=np.float32))

    def shift(x):
        a.assign(ops.concat([a[1:], a[:1]]) + x * 0.0)
        return x

    Traced(shift, (numbers(50),), threads=2)(numbers(50))
    assert (a._tensor.numpy() == np.roll(np.arange(50), -1)).all()


def test_reversed_update_is_not_done_in_place():
    a = Variable(np.arange(50, dtype=np.float32))

    def reverse(x):
        a.assign(ops.flip(a, 0) + x * 0.0)
        return x

    Traced(reverse, (numbers(50),), threads=3)(numbers(50))
    assert (a._tensor.numpy() == np.arange(50)[::-1]).all()


def test_weight_update_is_an_epilogue():
    """The gradient of a weight never gets memory beyond the product's place."""
    x = numbers(24, 20)
    y = rn.asarray(np.random.default_rng(1).integers(0, 5, 24))
    step, _ = make_training()
    plan = Traced(step, (x, y), rewrite=flip_transposed_products).plan
    products = [c for c in plan.calls if c.kernel.name.startswith("contract")]
    updates = [c for c in products if any(n.op is not None and n.op.name == "sub" for n in c.nodes)]
    assert len(products) == 8  # three forward, two backward to the inputs of layers, three to weights
    assert len(updates) == 3


@pytest.mark.parametrize("k", [1, 32, 256, 257, 300])
def test_products_of_updates_lie_in_tiles(k):
    """A product that only its epilogue reads has no separate memory, unless k is too long for one go."""
    w = Variable(np.zeros((70, 1100), np.float32))

    def step(x, y):
        w.assign(w * 0.5 + ops.transpose(x) @ y)
        return x.sum()

    x, y = numbers(k, 70, seed=1), numbers(k, 1100, seed=2)
    for threads in (1, 2, 3):
        expected = w.numpy() * np.float32(0.5) + (ops.transpose(x) @ y).numpy()
        traced = Traced(step, (x, y), threads=threads)
        traced(x, y)
        assert same_bits(expected, w._tensor.numpy())
        assert any(life.allocation.label == "product" for life in traced.plan.arena.lives) == (k > 256)
