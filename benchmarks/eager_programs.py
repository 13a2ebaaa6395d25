"""The programs of ``eager_overhead.py``: what everyday eager code does, on tensors so small that only calls cost time.

They read the same in Runnel, in its names of PyTorch, and in PyTorch.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

Step = Callable[[], Any]
Own = Callable[[np.ndarray], Any]


def loaded(library: str) -> tuple[Any, Any, Own]:
    """Return the package, its ``nn``, and the function that makes an array its own; on one thread."""
    package = importlib.import_module(library)
    if library == "torch":
        package.set_num_threads(1)
    own = package.asarray if library == "runnel" else package.from_numpy
    return package, importlib.import_module(f"{library}.nn"), own


def programs(library: str) -> dict[str, Step]:
    """Return the programs by name."""
    package, nn, own = loaded(library)
    rng = np.random.default_rng(0)

    def array(*shape: int) -> Any:
        return own(rng.random(shape, np.float32))

    parts = (arithmetic, shapes, indexing, layers, derivatives, values, steps)
    return {name: step for part in parts for name, step in part(package, nn, array, own).items()}


def arithmetic(package: Any, nn: Any, array: Any, own: Own) -> dict[str, Step]:
    """Return elementwise ops, reductions and products."""
    functional = nn.functional
    x, y, m, p = array(16), array(16), array(8, 8), nn.Parameter(array(16))
    z = array(16)
    condition = x > 0.5
    return {
        "x + y": lambda: x + y,
        "x * 2.0": lambda: x * 2.0,
        "1.0 - x": lambda: 1.0 - x,
        "-x": lambda: -x,
        "x.exp()": lambda: x.exp(),
        "x > y": lambda: x > y,
        "x == 1": lambda: x == 1,
        "x.clamp(0, 1)": lambda: x.clamp(0, 1),
        "where(c, x, y)": lambda: package.where(condition, x, y),
        "relu(x)": lambda: functional.relu(x),
        "z += y": lambda: z.__iadd__(y),
        "z.mul_(0.99)": lambda: z.mul_(0.99),
        "z.add_(y, alpha=0.1)": lambda: z.add_(y, alpha=0.1),
        "z.zero_()": lambda: z.zero_(),
        "p + x, recorded": lambda: p + x,
        "p * 2.0, recorded": lambda: p * 2.0,
        "m @ m": lambda: m @ m,
        "x.sum()": lambda: x.sum(),
        "m.sum(1)": lambda: m.sum(1),
        "m.sum(dim=-1, keepdim=True)": lambda: m.sum(dim=-1, keepdim=True),
        "x.mean()": lambda: x.mean(),
        "m.mean(0)": lambda: m.mean(0),
        "x.max()": lambda: x.max(),
        "m.max(dim=1)": lambda: m.max(dim=1),
        "m.argmax(1)": lambda: m.argmax(1),
        "x.norm()": lambda: x.norm(),
        "m.std(0)": lambda: m.std(0),
        "m.cumsum(0)": lambda: m.cumsum(0),
        "x.any()": lambda: condition.any(),
    }


def shapes(package: Any, nn: Any, array: Any, own: Own) -> dict[str, Step]:
    """Return views, and functions that put arrays together or take them apart."""
    x, m, r = array(16), array(8, 8), nn.Parameter(array(4, 4))
    return {
        "x.reshape(4, 4)": lambda: x.reshape(4, 4),
        "x.view(-1, 4)": lambda: x.view(-1, 4),
        "m.view(m.size(0), -1)": lambda: m.view(m.size(0), -1),
        "m.flatten()": lambda: m.flatten(),
        "m.t()": lambda: m.t(),
        "m.T": lambda: m.T,
        "m.transpose(0, 1)": lambda: m.transpose(0, 1),
        "m.permute(1, 0)": lambda: m.permute(1, 0),
        "x.unsqueeze(0)": lambda: x.unsqueeze(0),
        "x.unsqueeze(0).squeeze(0)": lambda: x.unsqueeze(0).squeeze(0),
        "x.expand(4, 16)": lambda: x.expand(4, 16),
        "m.contiguous()": lambda: m.contiguous(),
        "r.reshape(-1), recorded": lambda: r.reshape(-1),
        "cat([x, x])": lambda: package.cat([x, x]),
        "stack([x, x])": lambda: package.stack([x, x]),
        "m.split(4, 1)": lambda: m.split(4, 1),
        "m.chunk(2)": lambda: m.chunk(2),
        "m.unbind(0)": lambda: m.unbind(0),
        "m.shape": lambda: m.shape,
        "m.size(0)": lambda: m.size(0),
        "m.dim()": lambda: m.dim(),
        "m.numel()": lambda: m.numel(),
        "len(m)": lambda: len(m),
    }


def indexing(package: Any, nn: Any, array: Any, own: Own) -> dict[str, Step]:
    """Return reads and writes at positions."""
    x, m, z, w = array(16), array(8, 8), array(16), array(8, 8)
    mask, index = x > 0.5, own(np.array([1, 3, 5]))
    rows, positions = own(np.arange(8)), own(np.zeros((8, 1), np.int64))

    def write() -> None:
        z[0] = 1.0

    def write_row() -> None:
        w[1] = x[:8]

    def write_masked() -> None:
        z[mask] = 0.0

    return {
        "x[3]": lambda: x[3],
        "x[-1]": lambda: x[-1],
        "x[1:3]": lambda: x[1:3],
        "m[0]": lambda: m[0],
        "m[:, 0]": lambda: m[:, 0],
        "m[1, 2]": lambda: m[1, 2],
        "m[:, None]": lambda: m[:, None],
        "m[..., :4]": lambda: m[..., :4],
        "x[mask]": lambda: x[mask],
        "x[index]": lambda: x[index],
        "m[rows, rows]": lambda: m[rows, rows],
        "m.gather(1, positions)": lambda: m.gather(1, positions),
        "z[0] = 1.0": write,
        "w[1] = x[:8]": write_row,
        "z[mask] = 0.0": write_masked,
        "m.scatter_add(1, positions, m)": lambda: m.scatter_add(1, positions, m),
        "m.masked_fill(m > 0.5, 0.0)": lambda: m.masked_fill(m > 0.5, 0.0),
        "m.topk(2)": lambda: m.topk(2),
        "for row in m": lambda: list(m),
    }


def values(package: Any, nn: Any, array: Any, own: Own) -> dict[str, Step]:
    """Return what goes between Python, NumPy and tensors, and copies."""
    x, scalar, p = array(16), array(16).sum(), nn.Parameter(array(16))
    numbers, state = [1.0, 2.0, 3.0, 4.0], np.zeros(4, np.float32)
    tensor = package.tensor if hasattr(package, "tensor") else package.asarray
    dtype = package.float64
    return {
        "scalar.item()": lambda: scalar.item(),
        "x.sum().item()": lambda: x.sum().item(),
        "float(scalar)": lambda: float(scalar),
        "if scalar > 0": lambda: bool(scalar > 0),
        "x.tolist()": lambda: x.tolist(),
        "x.numpy()": lambda: x.detach().numpy(),
        "tensor(1.0)": lambda: tensor(1.0),
        "tensor(4 floats)": lambda: tensor(numbers),
        "tensor(array)": lambda: tensor(state),
        "from_numpy(array)": lambda: own(state),
        "zeros(4, 4)": lambda: package.zeros(4, 4),
        "ones((4, 4))": lambda: package.ones((4, 4)),
        "full((4,), 2.0)": lambda: package.full((4,), 2.0),
        "zeros_like(x)": lambda: package.zeros_like(x),
        "arange(8)": lambda: package.arange(8),
        "randn(4, 4)": lambda: (package.randn if hasattr(package, "randn") else package.random.normal)(4, 4),
        "rand(1)": lambda: package.rand(1),
        "x.detach()": lambda: x.detach(),
        "p.detach()": lambda: p.detach(),
        "x.clone()": lambda: x.clone(),
        "x.to(float64)": lambda: x.to(dtype),
        "x.float()": lambda: x.float(),
        "x.to('cpu')": lambda: x.to("cpu"),
        "with no_grad()": lambda: nothing(package),
    }


def nothing(package: Any) -> None:
    """Enter and leave ``no_grad``."""
    with package.no_grad():
        pass


def layers(package: Any, nn: Any, array: Any, own: Own) -> dict[str, Step]:
    """Return layers and their functions, forward."""
    functional = nn.functional
    rows, weight, bias, ones, zeros = array(8, 16), array(16, 16), array(16), own(np.ones(16, np.float32)), array(16)
    image, kernel = array(1, 3, 8, 8), array(4, 3, 3, 3)
    table, tokens = array(10, 16), own(np.arange(8))
    logits, labels = array(32, 10), own(np.arange(32) % 10)
    linear, sequential = nn.Linear(16, 16), nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
    cell, lstm, gru = nn.LSTMCell(8, 16), nn.LSTM(8, 16), nn.GRU(8, 16)
    norm = nn.BatchNorm1d(16)
    one, state, sequence = array(1, 8), (array(1, 16), array(1, 16)), array(1, 1, 8)
    query = array(1, 2, 4, 8)

    def act() -> int:
        with package.no_grad():
            return int(sequential(rows[:1]).argmax(1).item())

    return {
        "softmax(rows)": lambda: functional.softmax(rows, dim=-1),
        "log_softmax(rows)": lambda: functional.log_softmax(rows, dim=-1),
        "linear(rows, weight, bias)": lambda: functional.linear(rows, weight, bias),
        "conv2d(image, kernel)": lambda: functional.conv2d(image, kernel, padding=1),
        "max_pool2d(image, 2)": lambda: functional.max_pool2d(image, 2),
        "embedding(tokens, table)": lambda: functional.embedding(tokens, table),
        "layer_norm(rows)": lambda: functional.layer_norm(rows, (16,), ones, zeros),
        "gelu(rows)": lambda: functional.gelu(rows),
        "dropout(rows)": lambda: functional.dropout(rows, 0.5),
        "mse_loss(rows, rows)": lambda: functional.mse_loss(rows, rows),
        "cross_entropy(logits, labels)": lambda: functional.cross_entropy(logits, labels),
        "one_hot(tokens, 10)": lambda: functional.one_hot(tokens, 10),
        "attention": lambda: functional.scaled_dot_product_attention(query, query, query),
        "nn.Linear": lambda: linear(rows),
        "nn.BatchNorm1d": lambda: norm(rows),
        "nn.LSTMCell, batch 1": lambda: cell(one, state),
        "nn.LSTM, one step": lambda: lstm(sequence),
        "nn.GRU, one step": lambda: gru(sequence),
        "MLP, no_grad, argmax, item": act,
    }


def derivatives(package: Any, nn: Any, array: Any, own: Own) -> dict[str, Step]:
    """Return forward and backward of short chains."""
    x, y, p, q = array(16), array(16), nn.Parameter(array(16)), nn.Parameter(array(16, 16))
    rows = array(4, 16)

    def backward(loss: Callable[[], Any]) -> Step:
        def step() -> None:
            p.grad = q.grad = None
            loss().backward()

        return step

    return {
        "backward of p.sum()": backward(lambda: p.sum()),
        "backward of ((p * x + y) * x).sum()": backward(lambda: ((p * x + y) * x).sum()),
        "backward of (p[0] * 2)": backward(lambda: p[0] * 2),
        "backward of ((rows @ q).relu() ** 2).mean()": backward(lambda: ((rows @ q).relu() ** 2).mean()),
        "backward of p.exp().log().sigmoid().tanh().sum()": backward(lambda: p.exp().log().sigmoid().tanh().sum()),
        "backward of q.view(-1)[:8].sum()": backward(lambda: q.view(-1)[:8].sum()),
    }


def steps(package: Any, nn: Any, array: Any, own: Own) -> dict[str, Step]:
    """Return what programs do in each step: optimizers, distributions, small networks."""
    functional = nn.functional
    distributions = importlib.import_module(f"{package.__name__}.distributions")
    logits = array(1, 4)

    def drawn() -> Any:
        choice = distributions.Categorical(logits=logits)
        return choice.log_prob(choice.sample())

    def small() -> Any:
        return nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))

    def prepared(optimizer: Any, network: Any) -> Step:
        functional.mse_loss(network(array(8, 4)), array(8, 2)).backward()
        return lambda: optimizer.step()

    nets = [small() for _ in range(5)]
    sgd, adam = package.optim.SGD(nets[0].parameters(), 1e-3), package.optim.Adam(nets[1].parameters(), 1e-3)
    clearing = package.optim.SGD(nets[2].parameters(), 1e-3)
    online, target = nets[3:]
    learner = package.optim.Adam(online.parameters(), 1e-3)
    before, after, reward, action = array(32, 4), array(32, 4), array(32), own(np.arange(32).reshape(32, 1) % 2)

    def learn() -> None:
        with package.no_grad():
            best = target(after).max(1)[0]
        loss = functional.smooth_l1_loss(online(before).gather(1, action).squeeze(1), reward + 0.99 * best)
        learner.zero_grad()
        loss.backward()
        learner.step()

    return {
        "Categorical: sample, log_prob": drawn,
        "zero_grad": lambda: clearing.zero_grad(),
        "SGD.step": prepared(sgd, nets[0]),
        "Adam.step": prepared(adam, nets[1]),
        "a step of DQN": learn,
        "a step of the MLP of mlp_b32": mlp(package, nn, array, own),
    }


def mlp(package: Any, nn: Any, array: Any, own: Own) -> Step:
    """Return the eager step of the case ``mlp_b32`` of ``runnel bench``."""
    network = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = package.optim.Adam(network.parameters(), 1e-3)
    x, y = array(32, 784), own(np.arange(32) % 10)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(x), y).backward()
        optimizer.step()

    return step
