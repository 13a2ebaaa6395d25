"""Functions of tensors whose sizes differ from call to call: few traces, and the bits of eager calls."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from runnel.core.errors import ArgumentError
from runnel.nn import functional as F
from tests.random_numbers import RNG


def t(*shape):
    return rn.asarray(RNG.standard_normal(shape).astype(np.float32))


def ids(n, most=20):
    return rn.asarray(RNG.integers(0, most, (2, n)))


def attention(x):
    q, k, v = rn.split(x, 8, dim=-1)
    scores = q @ k.transpose(1, 2) / 8**0.5
    hidden = rn.tril(rn.ones(x.shape[1], x.shape[1])) == 0
    return F.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1) @ v


def embedded(tokens):
    table = rn.reshape(rn.arange(20 * 4).float(), (20, 4))
    return F.embedding(tokens, table) + rn.arange(tokens.shape[1])[:, None]


def written(x):
    y = x.clone()
    y[:, 1:] = x[:, :-1] * 2
    y[:, -1] += 1
    return y


def branched(x):
    return x * 2 if x.size(0) > 6 else x - 1


def sequences(n):
    return (t(2, n, 24),)


def rows(n):
    return (t(2, n),)


# The function, its arguments for a length, and the most traces for the lengths below.
ROWS = [
    ("maps", lambda x: rn.tanh(x) * 2 + x.shape[1], rows, 2),
    ("sum", lambda x: x.sum(), rows, 2),
    ("mean", lambda x: x.mean(dim=1), sequences, 3),
    ("var", lambda x: x.var(dim=1), sequences, 3),
    ("softmax", lambda x: F.softmax(x, dim=1), rows, 2),
    ("max", lambda x: x.max(dim=1), rows, 4),
    ("sort", lambda x: rn.sort(x, dim=1), rows, 4),
    ("reshape", lambda x: x.reshape(2, -1, 6).sum(dim=1), sequences, 3),
    ("size", lambda x: x.view(x.size(0) * x.size(1), -1).sum(dim=0), sequences, 3),
    ("len", lambda x: x.sum() / len(x), lambda n: (t(n),), 2),
    ("matrix product", lambda x: x @ x.transpose(1, 2), sequences, 4),
    ("linear", lambda x: F.linear(x, rn.ones(3, 24)), sequences, 4),
    ("layer norm", lambda x: F.layer_norm(x, (24,)), sequences, 2),
    ("attention by hand", attention, sequences, 4),
    ("attention", lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), lambda n: (t(1, 2, n, 8),), 3),
    ("cat", lambda x, y: rn.cat([x, y], 1), lambda n: (t(2, n, 4), t(2, 1, 4)), 2),
    ("two lengths", lambda x, y: x @ y.transpose(1, 2), lambda n: (t(2, n, 4), t(2, n + 3, 4)), 4),
    ("slices", lambda x: (x[:, 1:] - x[:, :-1])[:, : x.shape[1] // 2].sum(dim=1), sequences, 3),
    ("last row", lambda x: x[:, -1] * 1, sequences, 2),
    ("written", written, rows, 3),
    ("pad", lambda x: F.pad(x, (1, 2)), rows, 2),
    ("embedding", embedded, lambda n: (ids(n),), 3),
    ("one hot", lambda y: F.one_hot(y, 20).sum(dim=1), lambda n: (ids(n),), 3),
    ("cross entropy", lambda x, y: F.cross_entropy(x.view(-1, 4), y.view(-1)), lambda n: (t(2, n, 4), ids(n, 4)), 3),
    ("where", lambda x: rn.where(x > 0, x, rn.zeros_like(x)), rows, 2),
    ("repeat", lambda x: x.repeat(2, 1).flip(1), rows, 2),
    ("branch", branched, lambda n: (t(n),), 3),
    ("list", lambda pair: pair[0] + pair[1], lambda n: ([t(n), t(n)],), 2),
    ("solve", lambda x: rn.linalg.solve(x + 9 * rn.eye(x.shape[0]), x[:, :1]), lambda n: (t(n, n),), 8),
    ("scan", lambda x: rn.scan(lambda c, y: (c + y, c * y), rn.zeros(3), x), lambda n: (t(n, 3),), 3),
]


def flat(result):
    return [y for x in result for y in flat(x)] if isinstance(result, (list, tuple)) else [result.numpy()]


@pytest.mark.parametrize(("function", "arguments", "traces"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_few_traces_serve_many_lengths(function, arguments, traces):
    compiled = rn.compile(function)
    with rn.no_grad():
        for n in (4, 5, 9, 6, 13, 24, 30, 5):
            args = arguments(n)
            for expected, found in zip(flat(function(*args)), flat(compiled(*args)), strict=True):
                np.testing.assert_array_equal(found, expected, strict=True)
    assert compiled.statistics["traces"] <= traces


def test_training_steps_on_uneven_batches():
    def trained(mode):
        rn.manual_seed(0)
        net = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 8), nn.ReLU())
        head = nn.Linear(8, 3)
        optimizer = optim.Adam([*net.parameters(), *head.parameters()], lr=0.01)

        def step(tokens, labels):
            optimizer.zero_grad()
            loss = F.cross_entropy(head(net(tokens).mean(dim=1)), labels)
            loss.backward()
            optimizer.step()
            return loss

        run = rn.compile(step) if mode else step
        draw = np.random.default_rng(1)
        losses = [
            float(run(rn.asarray(draw.integers(0, 20, (4, n))), rn.asarray(draw.integers(0, 3, 4))))
            for n in (5, 9, 7, 12, 6, 30, 9)
        ]
        return losses, [p.numpy() for p in net.parameters()], run.statistics["traces"] if mode else 0

    eager, compiled = trained(False), trained(True)
    assert eager[0] == compiled[0]
    for expected, found in zip(eager[1], compiled[1], strict=True):
        np.testing.assert_array_equal(found, expected)
    assert compiled[2] <= 3


def test_closures_of_one_code_with_traces_for_ranges():
    layer = nn.Linear(3, 2)
    for wrap in (lambda y: (y, None), lambda y: [y], lambda y: (y + 1, 2)):
        f = rn.compile(lambda pair, wrap=wrap: wrap(layer(pair[0] + pair[1])))
        with rn.no_grad():
            for n in (6, 4, 5, 6, 3, 7, 30, 3):
                pair = (t(n, 3), t(n, 3))
                np.testing.assert_array_equal(f(pair)[0].numpy(), wrap(layer(pair[0] + pair[1]))[0].numpy())


def test_sizes_are_plain_ints_for_the_function():
    seen = []

    @rn.compile
    def f(x):
        n = x.shape[0]
        seen.append((type(n) is int, isinstance(n, int), f"{n}", n * 2, x.numel()))
        return x * n

    for n in (3, 4, 5, 6):
        f(rn.ones(n))
    assert seen == [(True, True, str(n), 2 * n, n) for n in (3, 4, 5, 6)]


@pytest.mark.parametrize("dynamic", [None, True, False])
def test_the_option(dynamic):
    f = rn.compile(lambda x: x * 2, dynamic=dynamic)
    for n in range(2, 8):
        assert f(rn.ones(n)).tolist() == [2.0] * n
    assert f.statistics["traces"] == {None: 2, True: 1, False: 6}[dynamic]


def test_a_budget_holds_for_each_length_and_options_are_not_dropped():
    f = rn.compile(lambda x: rn.tanh(x) @ x.T, dynamic=True, memory_budget="1MB")
    for n in (4, 5):
        assert f(rn.ones(n, 3)).shape == (n, n)
    assert f.statistics["traces"] == 2
    with pytest.raises(ArgumentError, match=r"\[compile\] dynamic must be given where"):
        rn.compile(f, dynamic=False)


def test_a_function_that_needs_the_number_is_traced_for_each():
    f = rn.compile(lambda x: sum(x[i] for i in range(x.shape[0])))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(2, 6):
            assert f(rn.ones(n)).item() == n
    assert f.statistics["traces"] == 4


def test_tensors_that_the_function_changes_or_returns():
    def f(x, y):
        x[0] = 5.0
        y.add_(1)
        return x[:2], y

    compiled = rn.compile(f)
    for n in (3, 4, 5, 6):
        a, b, c, d = (rn.ones(n) for _ in range(4))
        for expected, found in zip(f(a, b), compiled(c, d), strict=True):
            np.testing.assert_array_equal(found.numpy(), expected.numpy())
        np.testing.assert_array_equal(c.numpy(), a.numpy())
        np.testing.assert_array_equal(d.numpy(), b.numpy())


def test_weights_that_change_between_lengths():
    layer = nn.Linear(8, 8)
    f = rn.compile(lambda x: layer(x))
    with rn.no_grad():
        for n in (3, 4, 5, 6, 4, 5):
            x = t(n, 8)
            np.testing.assert_array_equal(f(x).numpy(), layer(x).numpy())
            layer.weight.mul_(0.5)
    assert f.statistics["traces"] <= 3


def test_lengths_of_zero_and_one_and_other_kinds():
    f = rn.compile(lambda x: x.sum(dim=0) + x.shape[0])
    for x in (
        rn.ones(3, 2),
        rn.ones(4, 2),
        rn.ones(1, 2),
        rn.ones(0, 2),
        rn.ones(5, 3),
        rn.ones((6, 2), dtype="int64"),
    ):
        np.testing.assert_array_equal(f(x).numpy(), (x.sum(dim=0) + x.shape[0]).numpy(), strict=True)


def test_gradients_outside_see_each_length():
    w = nn.Parameter(t(4))
    f = rn.compile(lambda x: (x * w).sum())
    for n in (2, 3, 4, 5):
        x = t(n, 4)
        w.grad = None
        f(x).backward()
        found, w.grad = w.grad, None
        (x * w).sum().backward()
        np.testing.assert_array_equal(found.numpy(), w.grad.numpy())


def test_hoisted_constants_have_memory_for_intermediate_values():
    weights = [rn.Variable(rn.randn(256, 256)) for _ in range(3)]

    @rn.compile
    def infer(x):
        with rn.no_grad():
            return x @ rn.tanh(rn.tanh(weights[0] @ weights[1]) @ weights[2])

    for length in (3, 4, 5, 9):
        x = rn.randn(length, 256)
        np.testing.assert_array_equal(infer(x).numpy(), infer.function(x).numpy())
