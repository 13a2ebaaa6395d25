"""Proximal policy optimization: the same pole, by a policy that is changed a little at a time.

    python examples/gallery/ppo.py [--quick] [--picture ppo.png]

J. Schulman et al., "Proximal policy optimization algorithms", 2017, with advantages after J. Schulman et al., "High-
dimensional continuous control using generalized advantage estimation", 2016.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from cartpole import Carts, draw
from showing import run

import runnel as rn
from runnel import nn, optim
from runnel.distributions import Categorical

WIDTH, CARTS, HORIZON, EPOCHS, BATCH = 64, 16, 64, 4, 256
DISCOUNT, TRACE, CLIP = 0.99, 0.95, 0.2


class Actor(nn.Module):
    """A distribution over pushes, and what a state is worth."""

    def __init__(self) -> None:
        self.policy = nn.Sequential(nn.Linear(4, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 2))
        self.value = nn.Sequential(nn.Linear(4, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1))

    def forward(self, state: rn.Tensor) -> tuple[Categorical, rn.Tensor]:
        return Categorical(logits=self.policy(state)), self.value(state)[..., 0]


def advantages(values: np.ndarray, fallen: np.ndarray, ended: np.ndarray) -> np.ndarray:
    """How much better than expected each step was; ``values`` has one row more, of what comes last."""
    result, ahead = np.zeros_like(values[:-1]), np.zeros(CARTS, np.float32)
    for time in range(HORIZON - 1, -1, -1):
        surprise = 1 + DISCOUNT * values[time + 1] * ~fallen[time] - values[time]
        ahead = surprise + DISCOUNT * TRACE * ahead * ~ended[time]
        result[time] = ahead
    return result


def train(steps: int) -> dict[str, Any]:
    actor = Actor()
    optimizer = optim.Adam(actor.parameters(), lr=2e-3)

    @rn.compile
    def act(state: rn.Tensor) -> tuple[rn.Tensor, rn.Tensor, rn.Tensor]:
        with rn.no_grad():
            policy, value = actor(state)
            action = policy.sample()
            return action, policy.log_prob(action), value

    @rn.compile
    def step(state: rn.Tensor, action: rn.Tensor, before: rn.Tensor, gain: rn.Tensor, worth: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        policy, value = actor(state)
        ratio = rn.exp(policy.log_prob(action) - before)
        gain = (gain - gain.mean()) / (gain.std() + 1e-6)
        better = rn.minimum(ratio * gain, rn.clip(ratio, 1 - CLIP, 1 + CLIP) * gain).mean()
        loss = -better + 0.5 * ((value - worth) ** 2).mean() - 0.01 * policy.entropy().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(actor.parameters(), 0.5)
        optimizer.step()
        return loss

    carts, order = Carts(CARTS, seed=0), np.random.default_rng(0)
    for _ in range(steps):
        taken = []
        for _ in range(HORIZON):
            state = carts.state
            action, log_prob, value = (result.numpy() for result in act(rn.asarray(state)))
            _, fallen, ended = carts.step(action)
            taken.append((state, action, log_prob, value, fallen, ended))
        state, action, log_prob, value, fallen, ended = (np.stack(column) for column in zip(*taken, strict=True))
        last = act(rn.asarray(carts.state))[2].numpy()
        gain = advantages(np.concatenate([value, last[None]]), fallen, ended)
        columns = [a.reshape(HORIZON * CARTS, *a.shape[2:]) for a in (state, action, log_prob, gain, gain + value)]
        for _ in range(EPOCHS):
            for chosen in order.permutation(HORIZON * CARTS).reshape(-1, BATCH):
                step(*(rn.asarray(column[chosen]) for column in columns))
    return carts.report()


if __name__ == "__main__":
    run(__doc__, train, steps=60, quick=2, draw=draw)
