"""Deep Q-learning: a pole is balanced on a cart.

    python examples/gallery/dqn.py [--quick] [--picture dqn.png]

V. Mnih et al., "Human-level control through deep reinforcement learning", 2015: steps are remembered and drawn at
random, and a slower copy of the network says what the future is worth (with H. van Hasselt's double estimate, 2016).
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from cartpole import Carts, draw
from showing import run

import runnel as rn
from runnel import nn, optim
from runnel.nn import functional as F

WIDTH, BATCH, CARTS, MEMORY, DISCOUNT, SLOWNESS = 128, 128, 8, 20_000, 0.99, 0.01


def train(steps: int) -> dict[str, Any]:
    model = nn.Sequential(nn.Linear(4, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 2))
    slow = copy.deepcopy(model)
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)

    @rn.compile
    def step(state: rn.Tensor, action: rn.Tensor, after: rn.Tensor, fallen: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        with rn.no_grad():
            best = model(after).argmax(axis=1, keepdims=True)
            future = slow(after).gather(1, best)[:, 0]
            target = 1 + DISCOUNT * rn.where(fallen, 0.0, future)
        value = model(state).gather(1, action[:, None])[:, 0]
        loss = F.smooth_l1_loss(value, target)
        loss.backward()
        optimizer.step()
        with rn.no_grad():
            for mean, parameter in zip(slow.parameters(), model.parameters(), strict=True):
                mean.lerp_(parameter, SLOWNESS)
        return loss

    values = rn.compile(lambda state: model(state).detach())
    carts, generator = Carts(CARTS, seed=0), np.random.default_rng(0)
    memory = [np.zeros((MEMORY, *shape), kind) for shape, kind in (((4,), "f4"), ((), "i8"), ((4,), "f4"), ((), "?"))]
    for number in range(steps):
        state, explore = carts.state, max(0.02, 1 - 3 * number / steps)
        action = values(rn.asarray(state)).numpy().argmax(axis=1)
        action = np.where(generator.random(CARTS) < explore, generator.integers(2, size=CARTS), action)
        after, fallen, _ = carts.step(action)
        places = (number * CARTS + np.arange(CARTS)) % MEMORY
        for column, news in zip(memory, (state, action, after, fallen), strict=True):
            column[places] = news
        if (number + 1) * CARTS >= BATCH:
            chosen = generator.integers(min(MEMORY, (number + 1) * CARTS), size=BATCH)
            step(*(rn.asarray(column[chosen]) for column in memory))
    return carts.report()


if __name__ == "__main__":
    run(__doc__, train, steps=6000, quick=60, draw=draw)
