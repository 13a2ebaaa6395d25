"""Functions of one sample that run for many: values and gradients of one-by-one execution."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from runnel.core.errors import ArgumentError, GradientError, LevelError, RunnelError, ShapeError
from tests.random_numbers import RNG

WIDTH = 6


def vector(*shape):
    return rn.asarray(RNG.standard_normal(shape or (WIDTH,)).astype(np.float32))


class Leaf(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x):
        i, o, u = rn.chunk(self.linear(x), 3, -1)
        c = rn.sigmoid(i) * rn.tanh(u)
        return rn.sigmoid(o) * rn.tanh(c), c


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2 * WIDTH, 5 * WIDTH)

    def forward(self, left, right):
        (h1, c1), (h2, c2) = left, right
        i, f1, f2, o, u = rn.chunk(self.linear(rn.concat([h1, h2], -1)), 5, -1)
        c = rn.sigmoid(i) * rn.tanh(u) + rn.sigmoid(f1) * c1 + rn.sigmoid(f2) * c2
        return rn.sigmoid(o) * rn.tanh(c), c


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.characters = nn.Embedding(20, WIDTH), nn.Embedding(20, WIDTH)
        self.leaf, self.cell, self.out = Leaf(), Cell(), nn.Linear(WIDTH, 4)
        self.forward_cell, self.backward_cell = nn.LSTMCell(WIDTH, WIDTH), nn.LSTMCell(WIDTH, WIDTH)
        self.both, self.gates = nn.Linear(2 * WIDTH, WIDTH), nn.Linear(3 * WIDTH, WIDTH)
        self.loss = nn.CrossEntropyLoss()
        self.start = nn.Parameter(rn.zeros(WIDTH) + 0.5)
        self.dropout = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(WIDTH)


def tree(depth=3):
    if depth == 0 or RNG.random() < 0.3:
        return word()
    return tree(depth - 1), tree(depth - 1)


def word(most=20):
    return rn.asarray(int(RNG.integers(0, most)))


def words(least=1, most=7):
    return [word() for _ in range(RNG.integers(least, most))]


def encoded(m, t):
    return m.cell(encoded(m, t[0]), encoded(m, t[1])) if isinstance(t, tuple) else m.leaf(m.embedding(t))


def tree_lstm(m, t):
    return m.loss(m.out(encoded(m, t)[0]), rn.asarray(1))


def chain(cell, xs, start):
    states, state = [], (start, start)
    for x in xs:
        state = cell(x, state)
        states.append(state[0])
    return states


def tagged(m, xs):
    there = chain(m.forward_cell, xs, m.start.read() * 1)
    back = chain(m.backward_cell, xs[::-1], rn.zeros(WIDTH))[::-1]
    return [m.out(m.both(rn.concat([a, b]))) for a, b in zip(there, back, strict=True)]


def tagger(m, sentence):
    tags = tagged(m, [m.embedding(x) for x in sentence])
    return rn.stack([m.loss(t, x % 4) for t, x in zip(tags, sentence, strict=True)]).sum()


def with_characters(m, sentence):
    def of(letters):
        return chain(m.backward_cell, [m.characters(x) for x in letters], rn.zeros(WIDTH))[-1]

    tags = tagged(m, [of(letters) if len(letters) > 1 else m.embedding(letters[0]) for letters in sentence])
    return sum(m.loss(t, rn.asarray(2)) for t in tags)


def parser(m, sentence):
    """Shift and reduce as a list of actions says; an LSTM reads the stack."""
    buffer, stack, losses = [m.embedding(x) for x in sentence[0]], [], []
    for action in sentence[1]:
        state = stack[-1][1] if stack else (m.start.read() * 1, m.start.read() * 1)
        losses.append(m.loss(m.out(state[0]), rn.asarray(action)))
        if action == 0:
            x = buffer.pop(0)
        else:
            (right, _), (left, _) = stack.pop(), stack.pop()
            x = rn.tanh(m.both(rn.concat([left, right])))
            state = stack[-1][1] if stack else (m.start.read() * 1, m.start.read() * 1)
        stack.append((x, m.forward_cell(x, state)))
    return rn.stack(losses).mean()


def actions(count):
    sequence, depth, left = [], 0, count
    while left or depth > 1:
        if left and (depth < 2 or RNG.random() < 0.5):
            sequence, depth, left = [*sequence, 0], depth + 1, left - 1
        else:
            sequence, depth = [*sequence, 1], depth - 1
    return sequence


def parsed():
    sentence = words(2)
    return sentence, actions(len(sentence))


def graph(m, sample):
    nodes, edges = sample
    states = [m.embedding(x) for x in nodes]
    for _ in range(2):
        sums = [rn.zeros(WIDTH) for _ in states]
        for a, b in edges:
            sums[b] = sums[b] + m.both(rn.concat([states[a], states[b]]))
        states = [rn.tanh(x + y) for x, y in zip(states, sums, strict=True)]
    return rn.stack(states).max(dim=0).values


def graphs():
    nodes = words(2)
    count = len(nodes)
    return nodes, [tuple(RNG.integers(0, count, 2).tolist()) for _ in range(RNG.integers(1, 6))]


def recursion(m, sample):
    x, n = sample
    if n == 0:
        return x
    if n % 2:
        return rn.relu(m.both(rn.concat([recursion(m, (x * 2, n // 2)), recursion(m, (x - 1, n - 1))])))
    return m.start * recursion(m, (x, n - 1)) - x / 3


def looking(m, x):
    """Look at values in the middle."""
    for _ in range(5):
        x = rn.tanh(m.both(rn.concat([x, m.start.read() * 1])))
        if x.sum().item() > 0:
            x = -x
        if float(x[0]) > 0.1:
            break
    return x * x.max()


def nested(m, x):
    h = rn.tanh(x)
    return {"a": [h, (h + x, x)], "b": m.out(h), "c": "text", "d": rn.arange(3)}


def sequences(m, sample):
    """Matrices of several lengths, cut and joined."""
    x = rn.tanh(sample)
    y = rn.concat([x[1:], x[:1]])
    return (rn.stack([y[0], x[-1], sample[0]]) + m.start).reshape(-1)[: 2 * WIDTH].sum()


CASES = [
    ("tree LSTM", tree_lstm, tree),
    ("BiLSTM tagger", tagger, words),
    ("characters", with_characters, lambda: [words() for _ in range(RNG.integers(1, 5))]),
    ("parser", parser, parsed),
    ("graph", graph, graphs),
    ("recursion", recursion, lambda: (vector(), int(RNG.integers(0, 7)))),
    ("values asked for", looking, vector),
    ("nested results", nested, vector),
    ("sequences", sequences, lambda: vector(int(RNG.integers(2, 5)), WIDTH)),
    ("no operand", lambda m, x: m.start * 2, lambda: None),
    ("the sample itself", lambda m, x: x, vector),
    ("dropout", lambda m, x: m.out(m.dropout(m.dropout(x) + 1)), vector),
    ("running statistics", lambda m, x: m.out(m.norm(x)[0]), lambda: vector(2, WIDTH)),
    ("half precision", lambda m, x: (x.bfloat16() * 2 + m.start.bfloat16()).float().sum(), vector),
    ("a detached value", lambda m, x: m.out(rn.tanh(m.start * x).detach() * m.start), vector),
    ("no gradient", lambda m, x: x + _without(m, x), vector),
    ("a function compiled", lambda m, x: squared(x * 2, m.start), vector),
    ("results of one op", lambda m, x: rn.topk(x * m.start, 2).values, vector),
]  # fmt: skip


def _without(m, x):
    with rn.no_grad():
        return m.out(x).sum()


@rn.compile
def squared(x, y):
    return x * x + y


def leaves(result):
    return [x for x in rn.tree.flatten(result)[0] if isinstance(x, rn.Tensor)]


def both_ways(function, make, count=5):
    """Return values and gradients of a batch, and of its samples one by one."""
    rn.manual_seed(0)
    network = Network()
    samples = [make() for _ in range(count)]
    batched = rn.autobatch(lambda sample: function(network, sample))
    answers = []
    for run in (batched.one_by_one, batched):
        rn.manual_seed(1)
        network.norm.reset_running_stats()
        values = leaves(run(samples))
        ends = [x for x in values if x.requires_grad]
        if ends:
            sum((x.float() ** 2).sum() for x in ends).backward()
        gradients = {name: p.grad for name, p in network.named_parameters()}
        answers.append((values, gradients, network.norm.running_mean.numpy().copy()))
        network.zero_grad()
    return answers


@pytest.mark.parametrize(("function", "make"), [x[1:] for x in CASES], ids=[x[0] for x in CASES])
def test_values_and_gradients_are_those_of_one_by_one_execution(function, make):
    (values, gradients, state), (batched, of_batch, state_of_batch) = both_ways(function, make)
    assert len(values) == len(batched)
    for x, y in zip(values, batched, strict=True):
        assert x.dtype is y.dtype
        assert x.requires_grad == y.requires_grad
        np.testing.assert_array_equal(x.numpy(), y.numpy())
    for name, x in gradients.items():
        y = of_batch[name]
        assert (x is None) == (y is None), name
        if x is not None:
            np.testing.assert_allclose(y.numpy(), x.numpy(), rtol=1e-5, atol=1e-5 * float(abs(x).max()), err_msg=name)
    np.testing.assert_array_equal(state, state_of_batch)


def test_a_report_counts_calls_and_groups():
    network = Network()
    batched = rn.autobatch(lambda sample: tree_lstm(network, sample))
    with pytest.raises(ArgumentError, match="must be called before its report"):
        batched.report()
    batched([((word(), word()), word()) for _ in range(5)])
    report = batched.report()
    assert (report.samples, report.calls, report.groups) == (5, 5 * (3 + 3 + 2 + 2), 1 + 1 + 2 + 2)
    assert 0 < report.copied <= report.read
    assert "5 samples: 50 calls in 6 groups" in str(report)


def test_pieces_and_schedules_are_kept():
    network = Network()
    batched = rn.autobatch(lambda sample: tree_lstm(network, sample))
    trees = [(word(), word()), ((word(), word()), word())]
    batched(trees)
    pieces, schedules = len(batched._known.pieces), len(batched._known.schedules)
    batched([(word(), word()), ((word(), word()), word())])
    assert (len(batched._known.pieces), len(batched._known.schedules)) == (pieces, schedules)
    batched(trees[::-1])
    assert (len(batched._known.pieces), len(batched._known.schedules)) == (pieces, schedules + 1)


def test_a_module_in_another_mode_is_another_piece():
    network = Network()
    batched = rn.autobatch(lambda x: network.both(rn.concat([x, x])) + network.dropout(x))
    network.eval()
    xs = [vector(), vector()]
    same = [batched(xs).numpy() for _ in range(2)]
    np.testing.assert_array_equal(*same)
    network.train()
    assert (batched(xs).numpy() != same[0]).any()


def test_weights_that_changed_are_read_again():
    network = Network()
    batched = rn.autobatch(lambda x: network.out(x))
    xs = [vector(), vector()]
    batched(xs)
    network.out.weight.assign(rn.ones(4, WIDTH))
    np.testing.assert_array_equal(batched(xs).numpy(), batched.one_by_one(xs).numpy())


class Method:
    def __init__(self, factor):
        self.factor = factor

    @rn.autobatch
    def scaled(self, x, more, *, least=0.0):
        return rn.maximum(x * self.factor + more, least)


def test_methods_and_further_arguments():
    xs = [vector(), vector()]
    for factor in (2.0, 3.0):
        expected = np.maximum(np.stack([x.numpy() * np.float32(factor) + 1 for x in xs]), 0.5)
        np.testing.assert_array_equal(Method(factor).scaled(xs, 1, least=0.5).numpy(), expected)


def test_gradients_of_arguments_of_grad():
    xs = [vector(), vector(), vector()]
    batched = rn.autobatch(lambda x, w: rn.tanh(w @ x).sum())
    w = vector(WIDTH, WIDTH)
    got, expected = (rn.grad(lambda w: run(xs, w).sum())(w) for run in (batched, batched.one_by_one))  # noqa: B023
    np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


class Node:
    def __init__(self):
        self.child = self


def walked(node):
    return walked(node.child)


def list_of_itself():
    loop = []
    loop.append(loop)
    return loop


NETWORK = Network()
ERRORS = [
    ("no samples", lambda x: x, [], ArgumentError, "samples must not be empty"),
    ("no list", lambda x: x, 3, ArgumentError, "samples must be a list of samples; got int"),
    ("a cycle", walked, [Node()], ArgumentError, "a sample has a cycle"),
    ("a list of itself", walked, [list_of_itself()], RunnelError, "holds itself"),
    ("structures", lambda x: x if x.shape == (1,) else (x, x), [rn.ones(1), rn.ones(2)], ArgumentError,
     "same structure for all samples"),
    ("shapes", lambda x: x * 2, [rn.ones(1), rn.ones(2)], ShapeError, "result 0 must have the same shape and dtype"),
    ("wrong shapes inside", lambda x: NETWORK.out(x), [rn.ones(WIDTH + 1)], ShapeError, "linear"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "samples", "error", "match"), [x[1:] for x in ERRORS],
                         ids=[x[0] for x in ERRORS])  # fmt: skip
def test_errors(function, samples, error, match):
    with pytest.raises(error, match=match):
        rn.autobatch(function)(samples)


def test_a_value_of_a_sample_ends_with_the_call():
    kept = []
    rn.autobatch(lambda x: kept.append(x * 2) or x * 3)([vector()])
    for use in (lambda x: x + 1, lambda x: x.numpy(), lambda x: x.item(), float):
        with pytest.raises(LevelError, match="after the call that batches the samples has ended"):
            use(kept[0])


def test_no_call_inside_of_transforms():
    batched = rn.autobatch(lambda x: x * 2)
    for call in (rn.vmap(lambda x: batched([x])), rn.autobatch(batched)):
        with pytest.raises(LevelError, match="must be called outside"):
            call(rn.ones(2, 2))


def test_gradients_of_gradients_are_refused():
    batched = rn.autobatch(lambda x: x**2)
    with pytest.raises(GradientError, match="cannot be differentiated again"):
        rn.grad(lambda x: rn.grad(lambda x: batched([x, x]).sum())(x).sum())(rn.ones(2))


def test_nothing_is_left_after_an_error():
    network = Network()
    before = network.norm.running_mean.numpy().copy()

    def failing(x):
        y = network.out(x)
        if x[0].item() > 0:
            raise ValueError("the sample is wrong")
        return y

    batched = rn.autobatch(failing)
    with pytest.raises(ValueError, match="the sample is wrong"):
        batched([rn.ones(WIDTH)])
    assert batched([-rn.ones(WIDTH)]).shape == (1, 4)
    np.testing.assert_array_equal(network.norm.running_mean.numpy(), before)
