"""Test ways of training around a compiled forward: the bits of eager mode, parameters included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, ops, optim
from runnel.nn import functional as F
from tests.tensor.differentiable.programs import agree, bits, numbers

pytestmark = pytest.mark.suite


Compiles = Callable[[Callable[..., Any]], Callable[..., Any]]


def network(*layers: nn.Module) -> nn.Module:
    rn.manual_seed(0)
    rng = np.random.default_rng(0)
    result = nn.Sequential(nn.Linear(5, 8), *layers, nn.Linear(8, 3))
    for p in result.parameters():
        p.assign(rng.standard_normal(p.shape).astype(np.float32) * 0.5)
    return result


def batch(seed: int) -> tuple[rn.Tensor, rn.Tensor]:
    labels = rn.asarray(np.random.default_rng(seed + 100).integers(0, 3, 6))
    return numbers(seed, 6, 5), labels


def state(model: nn.Module) -> list[Any]:
    return [v.numpy().copy() for v in model.state_dict().values()]


def images(seed: int) -> rn.Tensor:
    return numbers(seed, 2, 3, 8, 8)


def convolutions() -> nn.Module:
    result = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.BatchNorm2d(4), nn.Conv2d(4, 5, 3), nn.Tanh(),
        nn.Flatten(),
    )  # fmt: skip
    for i, p in enumerate(result.parameters()):
        p.assign(numbers(i, *p.shape) * 0.3)
    return result


def a_network_of_images(compiles: Compiles) -> Any:
    model = convolutions()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    loss = compiles(lambda x: (model(x) ** 2).mean())
    for i in range(3):
        optimizer.zero_grad()
        x = images(i).requires_grad_()
        loss(x).backward()
        optimizer.step()
    return state(model), x.grad


def micro_batches(compiles: Compiles) -> Any:
    model = network(nn.ReLU())
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    loss = compiles(lambda x, y: F.cross_entropy(model(x), y))
    for i in range(4):
        optimizer.zero_grad(set_to_none=i % 2 == 0)
        for j in range(3):
            (loss(*batch(3 * i + j)) / 3).backward()
        optimizer.step()
    return state(model)


def losses_added_up(compiles: Compiles) -> Any:
    model = network(nn.Tanh())
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    loss = compiles(lambda x, y: F.cross_entropy(model(x), y))
    for i in range(3):
        optimizer.zero_grad()
        sum(loss(*batch(3 * i + j)) for j in range(3)).backward()
        optimizer.step()
    return state(model)


def scaled_losses(compiles: Compiles) -> Any:
    model, scale, skipped = network(nn.ReLU()), 2.0**16, []
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    loss = compiles(lambda x, y: F.cross_entropy(model(x), y))
    for i in range(6):
        optimizer.zero_grad()
        x, y = batch(i)
        (loss(x * (1e30 if i == 2 else 1.0), y) * scale).backward()
        grads = [p.grad for p in model.parameters()]
        finite = all(bool(ops.isfinite(g).all()) for g in grads)
        skipped.append(not finite)
        if finite:
            for p, g in zip(model.parameters(), grads, strict=True):
                p.grad = g / scale
            optimizer.step()
        scale = scale * 2 if finite else scale / 2
    return state(model), np.asarray(skipped)


def clipped(compiles: Compiles) -> Any:
    model = network(nn.GELU())
    optimizer = optim.AdamW(model.parameters(), lr=0.02)
    loss, norms = compiles(lambda x, y: F.cross_entropy(model(x), y)), []
    for i in range(4):
        optimizer.zero_grad()
        loss(*batch(i)).backward()
        norms.append(nn.utils.clip_grad_norm_(list(model.parameters()), 0.5))
        if norms[-1].item() > 100.0:
            continue
        optimizer.step()
    return state(model), norms


def training_and_evaluation(compiles: Compiles) -> Any:
    model = network(nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3))
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    loss, results = compiles(lambda x, y: F.cross_entropy(model(x), y)), []
    for i in range(4):
        model.train()
        optimizer.zero_grad()
        loss(*batch(i)).backward()
        optimizer.step()
        model.eval()
        results.append(loss(*batch(50 + i)).detach())
        with rn.no_grad():
            results.append(loss(*batch(60 + i)))
    return state(model), results


def frozen_in_between(compiles: Compiles) -> Any:
    model = network(nn.ReLU())
    loss, results = compiles(lambda x, y: F.cross_entropy(model(x), y)), []
    for i in range(4):
        for p in model[0].parameters():
            p.requires_grad = i % 2 == 0
        model.zero_grad()
        value = loss(*batch(i))
        model[0].weight.requires_grad = True  # after the forward: that one's gradients are settled
        value.backward()
        results.append([p.grad for p in model.parameters()])
    return results


def stepped_before_the_backward(compiles: Compiles) -> Any:
    """Gradients are by the values that the forward has seen."""
    model = network(nn.Sigmoid())
    optimizer = optim.SGD(model.parameters(), lr=0.5)
    loss = compiles(lambda x, y: F.cross_entropy(model(x), y))
    first, second = loss(*batch(0)), loss(*batch(1))
    second.backward()
    optimizer.step()
    third = loss(*batch(0))
    optimizer.zero_grad()
    first.backward()
    actual = [p.grad for p in model.parameters()]
    optimizer.step()
    model.zero_grad()
    third.backward()
    return actual, [p.grad for p in model.parameters()], state(model)


def retained(compiles: Compiles) -> Any:
    model = network(nn.ReLU())
    loss = compiles(lambda x, y: F.cross_entropy(model(x), y))
    value = loss(*batch(0))
    value.backward(retain_graph=True)
    once = [p.grad for p in model.parameters()]
    (value * 2).backward(retain_graph=True)
    value.backward(rn.asarray(0.5))
    return once, [p.grad for p in model.parameters()]


def averaged_weights(compiles: Compiles) -> Any:
    model, shadow = network(nn.Tanh()), {}
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    loss = compiles(lambda x, y: F.cross_entropy(model(x), y))
    for i in range(4):
        optimizer.zero_grad()
        loss(*batch(i)).backward()
        optimizer.step()
        for name, p in model.named_parameters():
            value = p.value
            shadow[name] = value if name not in shadow else shadow[name] * 0.9 + value * 0.1
    saved = {name: p.value for name, p in model.named_parameters()}
    model.load_state_dict(shadow)
    with_shadow = loss(*batch(9)).detach()
    model.load_state_dict(saved)
    return list(shadow.values()), with_shadow, loss(*batch(9)).detach()


def tied_in_between(compiles: Compiles) -> Any:
    model, results = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Tanh(), nn.Linear(4, 4, bias=False)), []
    for i, p in enumerate(model.parameters()):
        p.assign(numbers(i, 4, 4))
    loss = compiles(lambda x: (model(x) * x).sum())
    for i in range(3):
        if i == 1:
            model[2].weight = model[0].weight
        model.zero_grad()
        loss(numbers(i, 3, 4)).backward()
        results.append([p.grad for p in model.parameters()])
    return results


def two_models_in_turns(compiles: Compiles) -> Any:
    """Two players, the one's results in the other's loss."""
    rn.manual_seed(1)
    maker, judge = nn.Linear(2, 3), nn.Linear(3, 1)
    for i, p in enumerate([*maker.parameters(), *judge.parameters()]):
        p.assign(numbers(i, *p.shape))
    first, second = optim.SGD(maker.parameters(), lr=0.1), optim.Adam(judge.parameters(), lr=0.1)
    make, judged = compiles(lambda z: ops.tanh(maker(z))), compiles(lambda x: ops.sigmoid(judge(x)).mean())
    for i in range(3):
        second.zero_grad()
        (judged(make(numbers(i, 4, 2)).detach()) - judged(numbers(10 + i, 4, 3))).backward()
        second.step()
        first.zero_grad()
        (-judged(make(numbers(i, 4, 2)))).backward()
        first.step()
    return state(maker), state(judge)


def gradients_as_values(compiles: Compiles) -> Any:
    w, x = numbers(0, 3, 3), numbers(1, 2, 3)
    f = compiles(lambda w, x: (ops.tanh(x @ w) ** 2).sum())
    value, gradient = rn.value_and_grad(f)(w, x)
    both = rn.grad(f, argnums=(0, 1))(w, x)
    out, pull = rn.vjp(f, w, x)
    return value, gradient, both, out, pull(rn.asarray(2.0))


def compiled_around_compiled(compiles: Compiles) -> Any:
    model = network(nn.ReLU())
    inner = compiles(lambda x: model(x))
    outer = compiles(lambda x, y: F.cross_entropy(inner(x), y) + inner(x * 0.5).mean())
    whole = compiles(lambda x, y: rn.value_and_grad(lambda x: outer(x, y))(x))
    outer(*batch(0)).backward()
    inner(batch(1)[0]).sum().backward()
    return [p.grad for p in model.parameters()], whole(*batch(2))


def checkpointed(compiles: Compiles) -> Any:
    model = network(nn.GELU(), nn.Tanh())
    inside = compiles(lambda x, y: F.cross_entropy(rn.checkpoint(lambda x: model(x))(x), y))
    part = compiles(lambda x: model(x))
    inside(*batch(0)).backward()
    x, y = batch(1)
    F.cross_entropy(rn.checkpoint(lambda x: part(x))(x), y).backward()
    return [p.grad for p in model.parameters()]


def in_low_precision(compiles: Compiles) -> Any:
    model = network(nn.ReLU())
    loss = compiles(lambda x, y: F.cross_entropy(model(x), y))
    with rn.autocast():
        value = loss(*batch(0))
    value.backward()
    loss(*batch(1)).backward()
    return [p.grad for p in model.parameters()]


def scheduled(compiles: Compiles) -> Any:
    model = network(nn.ReLU())
    optimizer = optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    scheduler = optim.StepLR(optimizer, step_size=2, gamma=0.5)
    loss = compiles(lambda x, y: F.cross_entropy(model(x), y))
    for i in range(5):
        optimizer.zero_grad()
        loss(*batch(i)).backward()
        optimizer.step()
        scheduler.step()
        if i == 3:
            optimizer.param_groups[0]["momentum"] = 0.0
    return state(model)


def some_without_gradients(compiles: Compiles) -> Any:
    """Parts of the model take turns, so the optimizer meets other Parameters with gradients each time."""
    model = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
    for i, p in enumerate(model.parameters()):
        p.assign(numbers(i, *p.shape))
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    losses = [compiles(lambda x, layer=layer: (layer(x) ** 2).mean()) for layer in model]
    for i in (0, 1, 0, 0, 1):
        optimizer.zero_grad()
        losses[i](numbers(i, 2, 3)).backward()
        optimizer.step()
    return state(model)


@pytest.mark.parametrize(
    "run",
    [
        a_network_of_images, micro_batches, losses_added_up, scaled_losses, clipped, training_and_evaluation,
        frozen_in_between, stepped_before_the_backward, retained, averaged_weights, tied_in_between,
        two_models_in_turns, gradients_as_values, compiled_around_compiled, checkpointed, in_low_precision, scheduled,
        some_without_gradients,
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_same_bits(run: Callable[[Compiles], Any]) -> None:
    agree(run)


@pytest.mark.parametrize("run", [micro_batches, training_and_evaluation, stepped_before_the_backward, retained])
def test_same_bits_within_a_budget(run: Callable[[Compiles], Any]) -> None:
    assert bits(run(rn.compile(memory_budget="4KB"))) == bits(run(lambda function: function))


def test_residuals_lie_as_both_programs_compute_them() -> None:
    """Images are stored with their channels last, so that neither program brings them into another order."""
    model = convolutions()
    loss = rn.compile(lambda x: (model(x) ** 2).mean())
    loss(images(0))
    (derivative,) = [executable.captured.derivative for executable in loss.executables()]
    shapes = {node.aval.shape for node in derivative.residuals if node.aval.ndim == 4}
    assert shapes and {shape[-1] for shape in shapes} <= {4, 5}
