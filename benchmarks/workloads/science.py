"""Workloads of science, tables and graphs: derivatives of derivatives, scans, messages along edges, clusters."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from control import mlp
from names import F, Step, compiled, draws, ints, nn, scan, torch, trained


def eager_mlp() -> Step:
    model = mlp(784, 256, 128, 10)
    loss = lambda x, y: F.cross_entropy(model(x), y)  # noqa: E731
    return trained(loss, model.parameters(), draws(32, 784), ints(10, 32), eager=True)


def weights(*sizes: int) -> list[Any]:
    """Return matrices and biases of an MLP as plain tensors."""
    pairs = itertools.pairwise(sizes)
    return [t for a, b in pairs for t in (draws(a, b) / a**0.5, torch.zeros(b))]


def dense(parameters: Any, x: Any) -> Any:
    for place in range(0, len(parameters) - 2, 2):
        x = torch.tanh(x @ parameters[place] + parameters[place + 1])
    return x @ parameters[-2] + parameters[-1]


def hvp() -> Step:
    """A Hessian-vector product: the derivative, along a direction, of a gradient."""
    parameters, x, y = weights(64, 512, 512, 10), draws(256, 64), ints(10, 256)
    direction = [torch.ones_like(p) for p in parameters]

    @compiled
    def step(x: Any, y: Any, parameters: Any, direction: Any) -> Any:
        slope = torch.func.grad(lambda p: F.cross_entropy(dense(p, x), y))
        return torch.func.jvp(slope, (parameters,), (direction,))[1]

    return lambda: step(x, y, parameters, direction)


def heat(parameters: Any, residual: Any) -> Step:
    """Return a step that trains a network to obey the heat equation at 1,000 places."""
    parameters = [nn.Parameter(p) for p in parameters]
    return trained(
        lambda x, t: (residual(parameters, x, t) ** 2).mean(), parameters, draws(1000, 1), draws(1000, 1, seed=1)
    )


def pinn() -> Step:
    """Derivatives forward in the inputs, backward in the weights."""

    def residual(p: Any, x: Any, t: Any) -> Any:
        def u(x: Any, t: Any) -> Any:
            return dense(p, torch.cat([x, t], 1))

        def slope(x: Any) -> Any:
            return torch.func.jvp(lambda x: u(x, t), (x,), (torch.ones_like(x),))[1]

        in_time = torch.func.jvp(lambda t: u(x, t), (t,), (torch.ones_like(t),))[1]
        return in_time - 0.1 * torch.func.jvp(slope, (x,), (torch.ones_like(x),))[1]

    return heat(weights(2, 64, 64, 64, 1), residual)


def pinn_reverse() -> Step:
    """Return the same with derivatives by backward passes, as most programs compute them."""

    def residual(p: Any, x: Any, t: Any) -> Any:
        x, t = x.detach().requires_grad_(True), t.detach().requires_grad_(True)
        u = dense(p, torch.cat([x, t], 1))
        in_x, in_time = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
        return in_time - 0.1 * torch.autograd.grad(in_x.sum(), x, create_graph=True)[0]

    return heat(weights(2, 64, 64, 64, 1), residual)


def neural_ode() -> Step:
    """Twenty steps of Runge and Kutta's method through a small network, and back."""
    model = mlp(2, 64, 2, act=nn.Tanh)

    def loss(x: Any, y: Any) -> Any:
        for _ in range(20):
            a = model(x)
            b = model(x + 0.025 * a)
            c = model(x + 0.025 * b)
            x = x + 0.05 / 6 * (a + 2 * b + 2 * c + model(x + 0.05 * c))
        return F.mse_loss(x, y)

    return trained(loss, model.parameters(), draws(128, 2), draws(128, 2, seed=1))


def maml() -> Step:
    """Four tasks, three steps of each learned inside, and the gradient through them."""
    start = [nn.Parameter(p) for p in weights(1, 40, 40, 1)]

    def task(start: Any, x: Any, y: Any) -> Any:
        wrong = lambda p, x, y: F.mse_loss(dense(p, x), y)  # noqa: E731
        p = start
        for _ in range(3):
            slopes = torch.func.grad(wrong)(p, x[:10], y[:10])
            p = [a - 0.01 * slope for a, slope in zip(p, slopes, strict=True)]
        return wrong(p, x[10:], y[10:])

    def loss(x: Any, y: Any) -> Any:
        return torch.func.vmap(lambda x, y: task(start, x, y))(x, y).mean()

    return trained(loss, start, draws(4, 20, 1), draws(4, 20, 1, seed=1))


def persample() -> Step:
    """The gradient of each sample, clipped, and their mean: private learning."""
    parameters, x, y = weights(784, 128, 10), draws(64, 784), ints(10, 64)

    @compiled
    def step(parameters: Any, x: Any, y: Any) -> Any:
        slope = torch.func.grad(lambda p, x, y: F.cross_entropy(dense(p, x[None]), y[None]))
        slopes = torch.func.vmap(slope, in_dims=(None, 0, 0))(parameters, x, y)
        lengths = torch.sqrt(sum((s * s).flatten(1).sum(1) for s in slopes))
        factors = torch.clamp(1 / (lengths + 1e-6), max=1.0)
        return [torch.tensordot(factors, s, dims=1) / 64 for s in slopes]

    return lambda: step(parameters, x, y)


def kmeans() -> Step:
    """Ten rounds of Lloyd's algorithm: 4,096 points of 32 numbers, 64 centers."""
    points, first = draws(4096, 32), draws(64, 32, seed=1)

    @compiled
    def step(points: Any, centers: Any) -> Any:
        for _ in range(10):
            far = (centers * centers).sum(1) - 2 * points @ centers.T
            near = far.argmin(1)
            sums = torch.zeros(64, 32).index_add(0, near, points)
            counts = torch.zeros(64).index_add(0, near, torch.ones(4096))
            centers = sums / torch.clamp(counts, min=1.0)[:, None]
        return centers

    return lambda: step(points, first)


def kalman() -> Step:
    """A Kalman filter of 4 states over 200 observations of 2 numbers, for 32 tracks."""
    move, see = torch.eye(4) + 0.1 * torch.eye(4).roll(2, 1), torch.eye(4)[:2]
    seen = draws(200, 32, 2)

    @compiled
    def step(seen: Any) -> Any:
        def one(carry: Any, row: Any) -> Any:
            x, p = carry
            x, p = x @ move.T, move @ p @ move.T + 0.01 * torch.eye(4)
            gain = torch.linalg.solve(see @ p @ see.T + 0.1 * torch.eye(2), see @ p).transpose(-1, -2)
            x = x + (gain @ (row[0] - x @ see.T)[..., None])[..., 0]
            p = (torch.eye(4) - gain @ see) @ p
            return (x, p), x

        with torch.no_grad():
            return scan(one, (torch.zeros(32, 4), torch.eye(4).repeat(32, 1, 1)), (seen,))[1]

    return lambda: step(seen)


def tabular() -> Step:
    """Twenty columns of categories and ten of numbers, embedded and normalized."""
    tables = nn.ModuleList([nn.Embedding(1000, 16) for _ in range(20)])
    layers = [nn.Linear(330, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, 128), nn.BatchNorm1d(128), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(128, 1))

    def loss(kinds: Any, numbers: Any, y: Any) -> Any:
        columns = [table(kinds[:, place]) for place, table in enumerate(tables)]
        return F.binary_cross_entropy_with_logits(model(torch.cat([*columns, numbers], 1))[:, 0], y)

    data = ints(1000, 1024, 20), draws(1024, 10), ints(2, 1024).float()
    return trained(loss, [*tables.parameters(), *model.parameters()], *data)


def factors() -> Step:
    """Recommend by the product of a user's and a film's factors, with biases."""
    users, films, fair, good = (
        nn.Embedding(6000, 64),
        nn.Embedding(4000, 64),
        nn.Embedding(6000, 1),
        nn.Embedding(4000, 1),
    )

    def loss(user: Any, film: Any, stars: Any) -> Any:
        guess = (users(user) * films(film)).sum(1) + fair(user)[:, 0] + good(film)[:, 0]
        return F.mse_loss(guess, stars)

    parameters = [p for table in (users, films, fair, good) for p in table.parameters()]
    return trained(loss, parameters, ints(6000, 2048), ints(4000, 2048, seed=1), draws(2048))


def deepsets() -> Step:
    each, whole = mlp(3, 128, 128), mlp(128, 128, 10)

    def loss(x: Any, y: Any) -> Any:
        return F.cross_entropy(whole(each(x).max(1).values), y)

    return trained(loss, [*each.parameters(), *whole.parameters()], draws(32, 256, 3), ints(10, 32))


def edges(nodes: int, count: int) -> tuple[Any, Any]:
    drawn = np.random.default_rng(0).integers(0, nodes, (2, count))
    return torch.as_tensor(drawn[0]), torch.as_tensor(drawn[1])


def gcn() -> Step:
    """Two layers over the sizes of Cora: 2,708 papers of 1,433 words, 10,556 citations."""
    first, second = nn.Linear(1433, 16), nn.Linear(16, 7)
    source, target = edges(2708, 10556)
    x, scale = (draws(2708, 1433) > 2).float(), draws(10556).abs()

    def spread(h: Any) -> Any:
        return torch.zeros(2708, h.shape[1]).index_add(0, target, h[source] * scale[:, None])

    def loss(x: Any, y: Any) -> Any:
        return F.cross_entropy(spread(second(F.relu(spread(first(x)))))[:140], y)

    return trained(loss, [*first.parameters(), *second.parameters()], x, ints(7, 140))


def gat_edges() -> Step:
    """Attention along the edges of a graph: four heads of 16."""
    dense, output = nn.Linear(64, 64), nn.Linear(64, 7)
    left, right = (nn.Parameter(draws(4, 16, seed=seed) * 0.1) for seed in (1, 2))
    source, target = edges(1000, 8000)

    def loss(x: Any, y: Any) -> Any:
        h = dense(x).view(-1, 4, 16)
        weights = torch.exp(F.leaky_relu((h * left).sum(-1)[source] + (h * right).sum(-1)[target], 0.2))
        total = torch.zeros(1000, 4).index_add(0, target, weights) + 1e-9
        sent = torch.zeros(1000, 4, 16).index_add(0, target, h[source] * weights[..., None])
        return F.cross_entropy(output(F.elu(sent / total[..., None]).flatten(1)), y)

    return trained(loss, [*dense.parameters(), *output.parameters(), left, right], draws(1000, 64), ints(7, 1000))


class Causal(nn.Module):
    def __init__(self, inputs: int, outputs: int, dilation: int) -> None:
        super().__init__()
        self.conv, self.ahead = nn.Conv1d(inputs, outputs, 3, dilation=dilation), 2 * dilation
        self.shortcut = nn.Conv1d(inputs, outputs, 1)

    def forward(self, x: Any) -> Any:
        return F.relu(self.conv(F.pad(x, (self.ahead, 0)))) + self.shortcut(x)


def tcn() -> Step:
    model = nn.Sequential(
        Causal(8, 64, 1), Causal(64, 64, 2), Causal(64, 64, 4), Causal(64, 64, 8), nn.Conv1d(64, 1, 1)
    )
    loss = lambda x, y: F.mse_loss(model(x), y)  # noqa: E731
    return trained(loss, model.parameters(), draws(32, 8, 256), draws(32, 1, 256, seed=1))


WORKLOADS = {
    made.__name__: made
    for made in (
        eager_mlp, hvp, pinn, pinn_reverse, neural_ode, maml, persample, kmeans, kalman, tabular, factors, deepsets,
        gcn, gat_edges, tcn,
    )
}  # fmt: skip
