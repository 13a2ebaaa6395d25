"""Test gradients of compiled functions that are differentiated again: they have the bits of eager mode.

Each case calls functions, differentiates their gradients outside, and returns the values to compare.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, ops, optim
from runnel.backends.host import memory
from runnel.core.errors import CaptureWarning, GradientError
from runnel.nn import functional as F

from .programs import bits, gradients, leaf, numbers, parameter, programs

pytestmark = pytest.mark.suite


Compiles = Callable[[Callable[..., Any]], Callable[..., Any]]


def array(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def penalized(loss: rn.Tensor, parameters: Any) -> list[Any]:
    """A gradient penalty: backward over the loss and the squares of its gradients."""
    loss.backward(create_graph=True)
    first = [p.grad for p in parameters]
    for p in parameters:
        p.grad = None
    total = loss
    for g in first:
        total = total + (g * g).sum()
    total.backward()
    return [*first, *gradients(parameters)]


def mlp() -> nn.Sequential:
    rn.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))


def a_penalty(compiles: Compiles) -> Any:
    model = mlp()
    f = compiles(lambda x, y: F.cross_entropy(model(x), y))
    y = rn.asarray(np.array([0, 2, 1, 1]))
    return [penalized(f(numbers(i, 4, 5), y), list(model.parameters())) for i in (1, 2)]


def of_arrays(compiles: Compiles) -> Any:
    model, x, y = mlp(), array(1, 4, 5), np.array([0, 2, 1, 1])
    f = compiles(lambda x, y: F.cross_entropy(model(rn.asarray(x) / 3.0), rn.asarray(y)))
    results = []
    for _ in range(3):
        loss = f(x, y)
        x += 1.0  # the next batch in the same memory
        y[:] = (y + 1) % 3
        results.append(penalized(loss, list(model.parameters())))
    return results


def of_an_array_in_a_closure(compiles: Compiles) -> Any:
    w, mask = parameter(0, 3), array(1, 3)
    f = compiles(lambda: (w * w * mask).sum())
    return penalized(f(), [w])


def with_dropout(compiles: Compiles) -> Any:
    rn.manual_seed(3)
    model = nn.Sequential(nn.Linear(5, 7), nn.Dropout(0.5), nn.Tanh(), nn.Linear(7, 3), nn.Dropout(0.3))
    f = compiles(lambda x: (model(x) ** 2).sum())
    return [penalized(f(numbers(i, 4, 5)), list(model.parameters())) for i in range(3)]


def with_random_numbers_of_its_own(compiles: Compiles) -> Any:
    rn.manual_seed(5)
    w = parameter(0, 4)
    f = compiles(lambda: (rn.sin(w * rn.randn(4)) * rn.rand(4)).sum())
    losses = [f(), f(), f()]
    return [penalized(loss, [w]) for loss in losses]


def with_a_batch_norm(compiles: Compiles) -> Any:
    rn.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Tanh(), nn.Flatten(), nn.Linear(12, 2))
    f = compiles(lambda x: (model(x) ** 2).mean())
    actual = [penalized(f(numbers(i, 3, 2, 4, 4)), list(model.parameters())) for i in range(3)]
    return [actual, *model.state_dict().values()]


def squares_of_images(compiles: Compiles) -> Any:
    rn.manual_seed(0)
    layers = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.GELU(), nn.Conv2d(4, 4, 3, padding=1), nn.GELU())
    f = compiles(lambda x: (layers(x) ** 2).mean())
    return penalized(f(numbers(0, 4, 4, 4, 4)), list(layers.parameters()))


def with_a_step_inside(compiles: Compiles) -> Any:
    """An optimizer's step of one network in a function whose result is differentiated by another."""
    critic, actor = mlp(), nn.Linear(5, 5)
    optimizer = optim.Adam(critic.parameters(), lr=0.1)

    def function(x: Any) -> Any:
        optimizer.zero_grad()
        (critic(actor(x).detach()) ** 2).sum().backward()
        optimizer.step()
        return (critic(actor(x)) ** 3).sum()

    f = compiles(function)
    results = []
    for i in range(3):
        loss = f(numbers(i, 4, 5))
        optimizer.zero_grad()
        results.append(penalized(loss, list(actor.parameters())))
    return [results, *(p.value for p in critic.parameters())]


def with_a_variable_that_is_assigned(compiles: Compiles) -> Any:
    w, total = parameter(0, 3), rn.Variable(np.ones(3, np.float32))

    def function(x: Any) -> Any:
        y = rn.sin(w * x) * total
        total.assign(total * 2.0 + y.detach())
        return (y * y * total).sum()

    f = compiles(function)
    losses = [f(numbers(i, 3)) for i in range(3)]  # all before the first is differentiated
    return [[penalized(loss, [w]) for loss in losses], total.value]


def with_a_parameter_that_is_assigned(compiles: Compiles) -> Any:
    w, x = parameter(0, 3), leaf(1, 3)

    def function(x: Any) -> Any:
        y = rn.exp(w * x)
        with rn.no_grad():
            w.assign(w * 0.5)
        return (y * y).sum() + (w * w * w * x).sum()

    f = compiles(function)
    losses = [f(x), f(x)]
    return [*(penalized(loss, [w, x]) for loss in losses), w.value]


def where_parameters_change_before_backward(compiles: Compiles) -> Any:
    model = mlp()
    optimizer = optim.SGD(model.parameters(), lr=0.5)
    f = compiles(lambda x: (model(x) ** 2).sum())

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = f(x)
        loss.backward()
        optimizer.step()

    update = compiles(step)
    parameters = list(model.parameters())
    retained = f(numbers(0, 4, 5))
    retained.backward(create_graph=True)
    first = [p.grad for p in parameters]
    for i in range(3):
        update(numbers(i, 4, 5))
    optimizer.zero_grad()
    total = retained
    for g in first:
        total = total + (g * g).sum()
    total.backward()
    return gradients(parameters)


def with_effects(compiles: Compiles) -> Any:
    class Model(nn.Module):
        def __init__(self) -> None:
            self.layer, self.calls, self.history = nn.Linear(5, 3), 0, []

        def forward(self, x: Any) -> Any:
            self.calls += 1
            y = rn.tanh(self.layer(x))
            self.history.append(y.detach().sum())
            return y * (1.0 / self.calls)

    rn.manual_seed(0)
    model = Model()
    f = compiles(lambda x: (model(x) ** 2).sum())
    actual = [penalized(f(numbers(i, 4, 5)), list(model.parameters())) for i in range(4)]
    return [actual, model.history, rn.asarray(float(model.calls))]


def where_gradients_are_read(compiles: Compiles) -> Any:
    w, v = parameter(0, 3), parameter(1, 3)
    (w * w).sum().backward()
    f = compiles(lambda x: (w.grad * v * v * x).sum())
    loss = f(numbers(2, 3))
    w.grad = None
    return penalized(loss, [v])


def numbers_that_change(compiles: Compiles) -> Any:
    w = parameter(0, 3)
    f = compiles(lambda x, rate: ((w * x) ** 3 * (rate * 2.0)).sum())
    losses = [f(numbers(i, 3), 0.1 * i + 0.3) for i in range(3)]
    return [penalized(loss, [w]) for loss in losses]


def several_calls(compiles: Compiles) -> Any:
    cell = nn.RNNCell(3, 4)
    with rn.no_grad():
        for i, p in enumerate(cell.parameters()):
            p.assign(numbers(i, *p.shape) * 0.5)
    f = compiles(lambda x, h: cell(x, h))
    h, loss = numbers(9, 2, 4), None
    for i in range(4):
        h = f(numbers(i, 2, 3), h)
        loss = (h * h).sum() if loss is None else loss + (h * h).sum()
    return penalized(loss, list(cell.parameters()))


def several_results(compiles: Compiles) -> Any:
    w, x = parameter(0, 3), leaf(1, 3)

    def function(x: Any) -> Any:
        h = rn.tanh(w * x)
        return h, {"square": (h * h).sum(), "exp": rn.exp(h)}

    h, more = compiles(function)(x)
    return penalized((h * more["exp"]).sum() + more["square"], [w, x])


def results_of_which_one_is_made_of_the_other(compiles: Compiles) -> Any:
    x = leaf(1, 6, 4)
    mean, variance = compiles(ops.channel_moments)(x)
    return penalized((mean * variance).sum(), [x])


def results_in_objects(compiles: Compiles) -> Any:
    class Box:
        def __init__(self, inside: Any) -> None:
            self.inside = inside

    w = parameter(0, 3)
    return penalized(compiles(lambda x: Box((w * w * x).sum()))(numbers(1, 3)).inside, [w])


def third_derivatives(compiles: Compiles) -> Any:
    f = compiles(lambda x: (rn.sin(x) * x * x).sum())
    h = lambda x: rn.grad(f)(x).sum()  # noqa: E731
    return [rn.grad(h)(numbers(0, 3)), rn.grad(lambda x: rn.grad(h)(x).sum())(numbers(0, 3))]


def a_hessian_row_by_row(compiles: Compiles) -> Any:
    x = leaf(0, 4)
    y = compiles(lambda x: (x[1:] * rn.exp(x[:-1])).sum())(x)
    y.backward(create_graph=True)
    g, rows = x.grad, []
    for i in range(4):
        x.grad = None
        g[i].backward(retain_graph=True)
        rows.append(x.grad)
    return rows


def an_op_of_several_results(compiles: Compiles) -> Any:
    x = leaf(0, 6)
    f = compiles(lambda x: rn.sort(x * x))
    return penalized((f(x) * numbers(1, 6)).sum(), [x])


def attention(compiles: Compiles) -> Any:
    rn.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, batch_first=True)
    f = compiles(lambda x: (layer(x) ** 2).mean())
    return [penalized(f(numbers(i, 2, 5, 8)), list(layer.parameters())) for i in range(2)]


def a_scan(compiles: Compiles) -> Any:
    w, x = parameter(0, 3), leaf(1, 5, 3)
    f = compiles(lambda x: rn.scan(lambda h, row: (rn.tanh(h * w + row), h), rn.zeros(3), x)[0].sum())
    return penalized(f(x), [w, x])


def a_checkpoint(compiles: Compiles) -> Any:
    w, x = parameter(0, 3, 3), leaf(1, 2, 3)
    f = compiles(lambda x: (rn.checkpoint(lambda x: rn.tanh(x @ w) ** 2)(x) * x).sum())
    return penalized(f(x), [w, x])


def a_checkpoint_of_several_results(compiles: Compiles) -> Any:
    """Of which some have cotangents, and others not."""
    w, x = parameter(0, 3), leaf(1, 3)
    f = compiles(lambda x: rn.checkpoint(lambda x: (rn.tanh(x * w), rn.exp(x * w), x * 2, w * w))(x))
    collected = []
    for chosen in ((0,), (1, 3), (0, 1, 2, 3), (1,)):
        results = f(x)
        collected.append(penalized(sum((results[i] ** 2 * numbers(i, 3)).sum() for i in chosen), [w, x]))
        w.grad = x.grad = None
    return collected


def a_checkpoint_of_many_results(compiles: Compiles) -> Any:
    w, x = parameter(0, 3), leaf(1, 3)
    f = compiles(lambda x: sum(rn.checkpoint(lambda x: [rn.tanh(x * w * i) for i in range(6)])(x)))
    return penalized((f(x) ** 2).sum(), [w, x])


def a_checkpoint_alone(compiles: Compiles) -> Any:
    w, x = parameter(0, 3), leaf(1, 3)
    y = compiles(lambda x: rn.checkpoint(lambda x: rn.tanh(x * w) ** 2)(x))(x)
    return penalized((y * y).sum(), [w, x])


def checkpoints_in_checkpoints(compiles: Compiles) -> Any:
    w, x = parameter(0, 3), leaf(1, 3)

    def inner(x: Any) -> Any:
        return rn.sin(x * w), rn.exp(x) * w

    def outer(x: Any) -> Any:
        a, b = rn.checkpoint(inner)(x)
        return a * b, rn.tanh(a)

    f = compiles(lambda x: rn.checkpoint(outer)(x))
    a, b = f(x)
    h = lambda x: rn.grad(lambda x: (f(x)[0] * f(x)[1]).sum())(x).sum()  # noqa: E731
    return penalized((a * b).sum(), [w, x]), rn.grad(h)(numbers(2, 3))


@rn.custom_vjp
def cube(x: Any) -> Any:
    return x * x * x


cube.defvjp(lambda x: (x * x * x, (x, x * x)), lambda saved, g: (g * saved[1] * 3.0 + 0.0 * saved[0],))


@rn.custom_vjp
def exponential(x: Any) -> Any:
    return rn.exp(x)


exponential.defvjp(lambda x: (rn.exp(x), x), lambda x, g: (g * exponential(x) * 2.0,))


def derivatives_given_in_python(compiles: Compiles) -> Any:
    w, x = parameter(0, 3), leaf(1, 3)
    f = compiles(lambda x: (cube(w * x) * w + exponential(x * w)).sum())
    third = compiles(lambda x: (cube(x) + exponential(x)).sum())
    thrice = rn.grad(lambda x: rn.grad(lambda x: rn.grad(third)(x).sum())(x).sum())
    return [penalized(f(x), [w, x]), thrice(numbers(2, 3))]


def what_is_written_between(compiles: Compiles) -> Any:
    w, x, y = leaf(1, 3) * 1.0, leaf(0, 3), leaf(2, 3)
    f = compiles(lambda x, y: (w * x * x * y).sum())
    z = y * 1.0
    loss = f(x, z)
    loss.backward(create_graph=True, retain_graph=True)
    w[0] = 5.0
    z[1] = 7.0
    g = x.grad
    x.grad = y.grad = None
    (g * g).sum().backward()
    return gradients([x, y])


def a_leaf_made_inside(compiles: Compiles) -> Any:
    def function(x: Any) -> Any:
        inner = (x * 2.0).detach().requires_grad_()
        return inner, (inner * inner * inner * x).sum()

    x = leaf(0, 3)
    inner, loss = compiles(function)(x)
    return penalized(loss, [x, inner])


def under_autocast(compiles: Compiles) -> Any:
    model = mlp()

    def function(x: Any) -> Any:
        with rn.autocast():
            return (model(x).astype(rn.float32) ** 2).sum()

    return penalized(compiles(function)(numbers(0, 4, 5)), list(model.parameters()))


def each_result_of_a_factorization(compiles: Compiles) -> Any:
    x = leaf(0, 3, 3)
    found = []
    for factor in (rn.linalg.svd, rn.linalg.qr, lambda x: rn.linalg.eigh(x + x.mT), rn.linalg.slogdet):
        for number in range(len(factor(x))):
            f = compiles(lambda x, factor=factor, number=number: factor(rn.linalg.matrix_exp(x))[number])
            if f(x).requires_grad:
                (first,) = rn.autograd.grad(rn.sin(f(x)).sum(), [x], create_graph=True)
                (second,) = rn.autograd.grad(rn.sin(first).sum(), [x], create_graph=True)
                found += [first, second, *rn.autograd.grad(second.sum(), [x])]
    return found


CASES = [
    a_penalty, of_arrays, of_an_array_in_a_closure, with_dropout, with_random_numbers_of_its_own, with_a_batch_norm,
    squares_of_images, with_a_step_inside, with_a_variable_that_is_assigned, with_a_parameter_that_is_assigned,
    where_parameters_change_before_backward, with_effects, where_gradients_are_read, numbers_that_change, several_calls,
    several_results, results_of_which_one_is_made_of_the_other, results_in_objects, third_derivatives,
    a_hessian_row_by_row, an_op_of_several_results, each_result_of_a_factorization, attention,
    a_scan, a_checkpoint, a_checkpoint_alone, a_checkpoint_of_many_results,
    a_checkpoint_of_several_results, checkpoints_in_checkpoints,
    derivatives_given_in_python, what_is_written_between, a_leaf_made_inside, under_autocast,
]  # fmt: skip


@pytest.mark.parametrize("run", CASES)
def test_same_bits(run: Callable[[Compiles], Any]) -> None:
    results: list[Any] = []

    def compiles(function: Callable[..., Any]) -> Callable[..., Any]:
        results.append(rn.compile(function))
        return results[-1]

    eager = bits(run(lambda function: function))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert bits(run(compiles)) == eager
    assert all("op by op" in str(w.message) for w in caught if w.category is CaptureWarning)
    assert all(programs(f) for f in results)


def test_a_checkpoint_of_many_results_of_which_some_get_no_gradient() -> None:
    """That its gradients cannot be differentiated outside is said when somebody asks; the first are there."""
    w, x = parameter(0, 3), leaf(1, 3)

    @rn.custom_vjp
    def held_back(a: Any, b: Any) -> Any:
        return a + b

    held_back.defvjp(lambda a, b: (a + b, None), lambda retained, g: (g, None))

    def function(x: Any) -> Any:
        a, b, c, d, e = rn.checkpoint(lambda x: [rn.tanh(x * w * i) for i in range(1, 6)])(x)
        return held_back(a * b * c * d, e)

    def gradient(function: Any) -> Any:
        x.grad = w.grad = None
        function(x).sum().backward(create_graph=True)
        return x.grad

    expected = gradient(function)
    actual = gradient(rn.compile(function))
    assert bits(actual) == bits(expected)
    with pytest.warns(CaptureWarning, match="op by op"), pytest.raises(GradientError, match="more than 4 results"):
        actual.sum().backward()


def test_it_is_said_once() -> None:
    w = parameter(0, 3)
    f = rn.compile(lambda x: (w * w * x).sum(), name="square")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        penalized(f(numbers(0, 3)), [w])
        w.grad = None
        penalized(f(numbers(1, 3)), [w])
    assert len(caught) == 1 and "'square'" in str(caught[0].message)


def test_a_tape_that_was_freed_is_not_made_anew() -> None:
    w = parameter(0, 3)
    loss = rn.compile(lambda x: (w * w * w * x).sum())(numbers(0, 3))
    loss.backward(create_graph=True)
    g, w.grad = w.grad, None
    loss.backward()
    with pytest.raises(GradientError, match="freed"):
        g.sum().backward()


@pytest.mark.filterwarnings("ignore::runnel.core.errors.CaptureWarning")
def test_nothing_is_kept_when_the_tape_is_gone() -> None:
    w, x = parameter(0, 1 << 14), numbers(0, 1 << 14)
    f = rn.compile(lambda x: (rn.sin(w) * w * x).sum())
    gc.collect()
    gc.disable()
    try:
        lives = []
        for _ in range(6):  # the first calls learn
            penalized(f(x), [w])
            w.grad = None
            lives.append(memory.statistics().live)
    finally:
        gc.enable()
    assert lives[4] == lives[5]


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (lambda: mlp(), (4, 5)),
        (lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU()), (3, 2, 4, 4)),
        (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True), (2, 5, 8)),
    ],
)
def test_a_plain_step_keeps_what_its_backward_reads(model: Callable[[], nn.Module], data: tuple[int, ...]) -> None:
    """Making the tape again needs nothing more."""
    result = model()
    loss = rn.compile(lambda x: (result(x) ** 2).mean())
    loss(numbers(0, *data)).backward()
    derivative = programs(loss)[-1].captured.derivative
    read = {i for part in derivative.parts for pullback in part.pullbacks for i in pullback.reads}
    assert not [x for i, x in enumerate(derivative.stored) if i not in read]


def test_a_value_that_nobody_reads_is_not_held() -> None:
    v, x = parameter(0, 3), numbers(1, 3)
    loss = rn.compile(lambda x: ((v * x) + v).sum())(x)
    assert loss._record is not None
    assert loss._record.call.hold is None  # type: ignore[attr-defined]
