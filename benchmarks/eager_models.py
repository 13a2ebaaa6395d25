"""Training steps of small networks, eagerly, in Runnel under its names of PyTorch, and in PyTorch.

    python benchmarks/eager_models.py [--torch peers/torch/bin/python] [--rounds 4] [--seconds 0.3] [--only TEXT]

A step is forward, loss, backward and the optimizer's update, after ten such steps. Each network has a process in each
library, with one thread; they take turns, and a figure is the best CPU time of a step.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
OURS = "runnel.compat.torch"

Step = Callable[[], Any]


def networks(library: str) -> dict[str, Callable[[], Step]]:
    """Return by name what prepares a step of each network."""
    torch: Any = importlib.import_module(library)
    nn, F = torch.nn, torch.nn.functional
    Adam, SGD = torch.optim.Adam, torch.optim.SGD
    torch.manual_seed(0)
    if library == "torch":
        torch.set_num_threads(1)

    def training(network: Any, loss: Callable[[Any], Any], optimizer: Any = Adam) -> Step:
        update = optimizer(network.parameters(), 1e-3)

        def step() -> None:
            update.zero_grad()
            loss(network).backward()
            update.step()

        return step

    def classifying(network: Any, batch: int, size: int, channels: int = 3) -> Step:
        x, y = torch.randn(batch, channels, size, size), torch.randint(0, 10, (batch,))
        return training(network, lambda n: F.cross_entropy(n(x), y), SGD)

    def convolution(inputs: int, outputs: int, size: int = 3, stride: int = 1, groups: int = 1) -> Any:
        layer = nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False)
        return nn.Sequential(layer, nn.BatchNorm2d(outputs), nn.ReLU())

    def head(features: int) -> Any:
        return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(features, 10))

    class Dense(nn.Module):  # type: ignore[misc, name-defined]
        """A layer that adds features to those it got."""

        def __init__(self, inputs: int, growth: int) -> None:
            super().__init__()
            self.new = nn.Sequential(convolution(inputs, 4 * growth, 1), convolution(4 * growth, growth))

        def forward(self, x: Any) -> Any:
            return torch.cat([x, self.new(x)], 1)

    class Ghost(nn.Module):  # type: ignore[misc, name-defined]
        """Half of the features by a convolution, the rest from these by a cheap one."""

        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__()
            self.first = convolution(inputs, outputs // 2, 1)
            self.cheap = convolution(outputs // 2, outputs // 2, 3, 1, outputs // 2)

        def forward(self, x: Any) -> Any:
            y = self.first(x)
            return torch.cat([y, self.cheap(y)], 1)

    class Inverted(nn.Module):  # type: ignore[misc, name-defined]
        """Wide depthwise features of several sizes between narrow ones, weighted by their means."""

        def __init__(self, width: int, sizes: tuple[int, ...]) -> None:
            super().__init__()
            self.wide = convolution(width, 4 * width, 1)
            each = 4 * width // len(sizes)
            self.depthwise = nn.ModuleList([convolution(each, each, size, 1, each) for size in sizes])
            self.weights = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(4 * width, 4 * width, 1), nn.Hardsigmoid())
            self.narrow = nn.Sequential(nn.Conv2d(4 * width, width, 1, bias=False), nn.BatchNorm2d(width))

        def forward(self, x: Any) -> Any:
            parts = self.wide(x).chunk(len(self.depthwise), 1)
            y = torch.cat([layer(part) for layer, part in zip(self.depthwise, parts, strict=True)], 1)
            return x + self.narrow(y * self.weights(y))

    class Residual(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, width: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                convolution(width, width), nn.Conv2d(width, width, 3, 1, 1), nn.BatchNorm2d(width)
            )

        def forward(self, x: Any) -> Any:
            return F.relu(x + self.body(x))

    def dense() -> Step:
        layers = [convolution(3, 16), *[Dense(16 + 8 * i, 8) for i in range(12)]]
        return classifying(nn.Sequential(*layers, head(112)), 4, 16)

    def ghost() -> Step:
        return classifying(nn.Sequential(convolution(3, 16), *[Ghost(16, 16) for _ in range(8)], head(16)), 4, 16)

    def mobile() -> Step:
        return classifying(nn.Sequential(convolution(3, 16), *[Inverted(16, (3,)) for _ in range(6)], head(16)), 4, 16)

    def mixed() -> Step:
        layers = [Inverted(16, (3, 5, 7, 9)) for _ in range(4)]
        return classifying(nn.Sequential(convolution(3, 16), *layers, head(16)), 4, 16)

    def residual() -> Step:
        return classifying(nn.Sequential(convolution(3, 32), *[Residual(32) for _ in range(4)], head(32)), 4, 16)

    def unet() -> Step:
        down, deep, up = convolution(3, 16), convolution(16, 32), nn.ConvTranspose2d(32, 16, 2, 2)
        last, x, y = nn.Conv2d(32, 2, 3, 1, 1), torch.randn(2, 3, 32, 32), torch.randint(0, 2, (2, 32, 32))

        def loss(_: Any) -> Any:
            fine = down(x)
            return F.cross_entropy(last(torch.cat([fine, up(deep(F.max_pool2d(fine, 2)))], 1)), y)

        return training(nn.ModuleList([down, deep, up, last]), loss)

    def vae() -> Step:
        encoder, decoder = nn.Linear(64, 32), nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 64))
        moments, x = nn.Linear(32, 16), torch.rand(32, 64)

        def loss(_: Any) -> Any:
            mean, log_variance = moments(F.relu(encoder(x))).chunk(2, 1)
            z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
            divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum(1).mean()
            return F.binary_cross_entropy_with_logits(decoder(z), x, reduction="sum") / 32 + divergence

        return training(nn.ModuleList([encoder, decoder, moments]), loss)

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        """Attention and a network for each place, written out."""

        def __init__(self, width: int, heads: int, feed: Any, causal: bool) -> None:
            super().__init__()
            self.heads, self.causal, self.feed = heads, causal, feed
            self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            n, t, width = x.shape
            parts = self.qkv(self.before(x)).view(n, t, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
            q, k, v = parts.unbind(0)
            scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
            if self.causal:
                scores = scores.masked_fill(torch.tril(torch.ones(t, t)) == 0, float("-inf"))
            x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, width))
            return x + self.feed(self.after(x))

    def feed(width: int) -> Any:
        return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    class Experts(nn.Module):  # type: ignore[misc, name-defined]
        """Each token goes to the expert that a gate chooses, so the shapes differ from step to step."""

        def __init__(self, width: int, count: int) -> None:
            super().__init__()
            self.gate, self.experts = nn.Linear(width, count), nn.ModuleList([feed(width) for _ in range(count)])

        def forward(self, x: Any) -> Any:
            rows = x.reshape(-1, x.shape[-1])
            share, chosen = self.gate(rows).softmax(-1).max(-1)
            result = torch.zeros_like(rows)
            for number, expert in enumerate(self.experts):
                (places,) = (chosen == number).nonzero(as_tuple=True)
                result = result.index_add(0, places, expert(rows[places]) * share[places].unsqueeze(1))
            return result.view_as(x)

    def language(blocks: list[Any]) -> Step:
        words, places, norm, out = nn.Embedding(64, 32), nn.Embedding(16, 32), nn.LayerNorm(32), nn.Linear(32, 64)
        body, x, y = nn.Sequential(*blocks), torch.randint(0, 64, (4, 16)), torch.randint(0, 64, (4, 16))

        def loss(_: Any) -> Any:
            logits = out(norm(body(words(x) + places(torch.arange(16)))))
            return F.cross_entropy(logits.flatten(0, 1), y.flatten())

        return training(nn.ModuleList([words, places, norm, out, body]), loss)

    def gpt() -> Step:
        return language([Block(32, 4, feed(32), True) for _ in range(3)])

    def experts() -> Step:
        return language([Block(32, 4, Experts(32, 4), True) for _ in range(2)])

    def vit() -> Step:
        patches, body = nn.Conv2d(3, 32, 4, 4), nn.Sequential(*[Block(32, 4, feed(32), False) for _ in range(3)])
        out = nn.Linear(32, 10)

        class Vision(nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.parts = nn.ModuleList([patches, body, out])
                self.places = nn.Parameter(torch.zeros(1, 16, 32))

            def forward(self, x: Any) -> Any:
                return out(body(patches(x).flatten(2).transpose(1, 2) + self.places).mean(1))

        return classifying(Vision(), 4, 16)

    def hyper_lstm() -> Step:
        """A small LSTM that scales the gates of a larger one, step by step in Python."""
        small, scale = nn.LSTMCell(16 + 32, 8), nn.Linear(8, 128)
        inner, outer, norm = nn.Linear(16, 128), nn.Linear(32, 128, bias=False), nn.LayerNorm(32)
        x = torch.randn(12, 8, 16)

        def loss(_: Any) -> Any:
            h, c, state = torch.zeros(8, 32), torch.zeros(8, 32), (torch.zeros(8, 8), torch.zeros(8, 8))
            for row in x:
                state = small(torch.cat([row, h], 1), state)
                write, keep, new, show = ((inner(row) + outer(h)) * scale(state[0])).chunk(4, 1)
                c = torch.sigmoid(keep) * c + torch.sigmoid(write) * torch.tanh(new)
                h = torch.sigmoid(show) * torch.tanh(norm(c))
            return h.pow(2).mean()

        return training(nn.ModuleList([small, scale, inner, outer, norm]), loss)

    def ppo_lstm() -> Step:
        """Ten steps of a policy with memory, each with a sampled action, and two updates."""
        body, memory, policy, value = nn.Linear(4, 32), nn.LSTM(32, 16), nn.Linear(16, 2), nn.Linear(16, 1)
        update = Adam([p for m in (body, memory, policy, value) for p in m.parameters()], 1e-3)
        Categorical = importlib.import_module(f"{library}.distributions").Categorical

        def run(x: Any, hidden: Any) -> tuple[Any, Any, Any]:
            y, hidden = memory(F.relu(body(x)).view(-1, 1, 32), hidden)
            return policy(y).softmax(-1), value(y).squeeze(1), hidden

        def step() -> None:
            first = hidden = (torch.zeros(1, 1, 16), torch.zeros(1, 1, 16))
            states, actions, before = torch.rand(10, 4), [], []
            for x in states:
                p, _, hidden = run(x, hidden)
                actions.append([Categorical(p.view(-1)).sample().item()])
                before.append([p.view(-1)[actions[-1][0]].item()])
            taken, old = torch.tensor(actions), torch.tensor(before)
            for _ in range(2):
                p, v, _ = run(states, first)
                ratio = (p.squeeze(1).gather(1, taken).log() - old.log()).exp()
                advantage = (1.0 - v).detach()
                clipped = torch.min(ratio * advantage, ratio.clamp(0.9, 1.1) * advantage)
                update.zero_grad()
                (F.smooth_l1_loss(v, torch.ones_like(v)) - clipped).mean().backward()
                update.step()

        return step

    def sac() -> Step:
        """An actor with a normal distribution, two critics, their targets, and a learned temperature."""
        Normal = importlib.import_module(f"{library}.distributions").Normal
        actor = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 2))
        critics = [nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1)) for _ in range(4)]
        heat = torch.zeros(1, requires_grad=True)
        updates = [Adam(m.parameters(), 1e-3) for m in (actor, *critics[:2])] + [Adam([heat], 1e-3)]
        s, a, r, after = torch.randn(32, 3), torch.rand(32, 1), torch.randn(32, 1), torch.randn(32, 3)

        def drawn(x: Any) -> tuple[Any, Any]:
            mean, spread = actor(x).chunk(2, 1)
            normal = Normal(mean, F.softplus(spread) + 1e-3)
            u = normal.rsample()
            return torch.tanh(u), normal.log_prob(u) - torch.log(1 - torch.tanh(u).pow(2) + 1e-6)

        def least(x: Any, action: Any, pair: list[Any]) -> Any:
            values = [critic(torch.cat([x, action], 1)) for critic in pair]
            return torch.min(values[0], values[1])

        def descend(update: Any, loss: Any) -> None:
            update.zero_grad()
            loss.backward()
            update.step()

        def step() -> None:
            with torch.no_grad():
                action, log = drawn(after)
                target = r + 0.98 * (least(after, action, critics[2:]) - heat.exp() * log)
            for critic, update in zip(critics[:2], updates[1:3], strict=True):
                descend(update, F.smooth_l1_loss(critic(torch.cat([s, a], 1)), target))
            action, log = drawn(s)
            descend(updates[0], (heat.exp().detach() * log - least(s, action, critics[:2])).mean())
            descend(updates[3], -(heat.exp() * (log.detach() - 1.0)).mean())
            for critic, copy in zip(critics[:2], critics[2:], strict=True):
                for p, q in zip(critic.parameters(), copy.parameters(), strict=True):
                    q.data.copy_(q.data * 0.99 + p.data * 0.01)

        return step

    return {
        f.__name__: f
        for f in (
            dense, ghost, mobile, mixed, residual, unet, vae, gpt, experts, vit, hyper_lstm, ppo_lstm, sac,
        )
    }  # fmt: skip


def serve(library: str, name: str) -> None:
    """Print the milliseconds of a step in each turn: a line of stdin says how many seconds one takes."""
    step = networks(library)[name]()
    for _ in range(10):
        step()
    for line in sys.stdin:
        least, end = float("inf"), time.perf_counter() + float(line)
        while time.perf_counter() < end:
            begun = time.process_time()
            step()
            least = min(least, time.process_time() - begun)
        print(least * 1e3, flush=True)


def started(python: str, library: str, name: str) -> subprocess.Popen[str]:
    paths = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "RUNNEL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    command = [python, str(Path(__file__).resolve()), "--serve", library, name]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def measured(sides: dict[str, str], name: str, rounds: int, seconds: float) -> dict[str, float]:
    """Return the best milliseconds of a step of each library; raise RuntimeError if one fails."""
    least = dict.fromkeys(sides, float("inf"))
    processes = {library: started(python, library, name) for library, python in sides.items()}
    try:
        for _ in range(rounds):
            for library, process in processes.items():
                assert process.stdin is not None and process.stdout is not None
                process.stdin.write(f"{seconds}\n")
                process.stdin.flush()
                line = process.stdout.readline()
                if not line:
                    raise RuntimeError(f"{library} failed at {name}")
                least[library] = min(least[library], float(line))
    finally:
        for process in processes.values():
            process.communicate()
    return least


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", metavar="PYTHON", help="an interpreter that has PyTorch")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each network and turn")
    parser.add_argument("--only", default="", help="measure only networks whose names contain this")
    parser.add_argument("--serve", nargs=2, metavar=("LIBRARY", "NAME"), help="measure when asked by stdin")
    options = parser.parse_args()
    if options.serve:
        serve(*options.serve)
        return 0
    sides = {OURS: sys.executable} | ({"torch": options.torch} if options.torch else {})
    print(f"| ms | {' | '.join(sides)} |{' ratio |' if options.torch else ''}")
    print(f"| --- |{' ---: |' * (len(sides) + bool(options.torch))}")
    ratios: list[float] = []
    for name in networks(OURS):
        if options.only in name:
            least = measured(sides, name, options.rounds, options.seconds)
            row = [f"{figure:.2f}" for figure in least.values()]
            if options.torch:
                ratios.append(least[OURS] / least["torch"])
                row.append(f"{ratios[-1]:.2f}")
            print(f"| {name} | {' | '.join(row)} |", flush=True)
    if ratios:
        print(f"\nGeometric mean of {len(ratios)} ratios: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
