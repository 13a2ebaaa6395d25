"""Workloads of reinforcement learning: updates on recorded data, without an environment."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from names import F, Step, compiled, draws, ints, nn, scan, torch


def mlp(*sizes: int, act: Any = nn.ReLU) -> nn.Module:
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), act()]
    return nn.Sequential(*layers[:-1])


def ppo() -> Step:
    """128 steps of 16 environments: advantages by a scan, then 4 epochs of 4 minibatches."""
    policy, value = mlp(8, 64, 64, 4, act=nn.Tanh), mlp(8, 64, 64, 1, act=nn.Tanh)
    parameters = [*policy.parameters(), *value.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=3e-4)
    states, actions, rewards = draws(129, 16, 8), ints(4, 128, 16), draws(128, 16, seed=1)
    alive, order = (draws(128, 16, seed=2) < 2).float(), np.random.default_rng(0)

    @compiled
    def look(states: Any, actions: Any, rewards: Any, alive: Any) -> Any:
        with torch.no_grad():
            values = value(states)[..., 0]
            logs = torch.log_softmax(policy(states[:-1]), -1).gather(-1, actions[..., None])[..., 0]
            surprise = rewards + 0.99 * values[1:] * alive - values[:-1]

            def back(ahead: Any, row: Any) -> Any:
                ahead = row[0] + 0.95 * 0.99 * row[1] * ahead
                return ahead, ahead

            gains = torch.flip(scan(back, torch.zeros(16), (torch.flip(surprise, [0]), torch.flip(alive, [0])))[1], [0])
            return logs, gains, gains + values[:-1]

    @compiled
    def update(states: Any, actions: Any, before: Any, gains: Any, worth: Any) -> Any:
        optimizer.zero_grad()
        logs = torch.log_softmax(policy(states), -1)
        ratio = torch.exp(logs.gather(-1, actions[:, None])[:, 0] - before)
        gains = (gains - gains.mean()) / (gains.std() + 1e-8)
        better = torch.minimum(ratio * gains, torch.clamp(ratio, 0.8, 1.2) * gains).mean()
        entropy = -(torch.exp(logs) * logs).sum(-1).mean()
        loss = -better + 0.5 * F.mse_loss(value(states)[:, 0], worth) - 0.01 * entropy
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 0.5)
        optimizer.step()
        return loss

    def step() -> Any:
        logs, gains, worth = look(states, actions, rewards, alive)
        columns = [states[:-1].reshape(-1, 8), actions.flatten(), logs.flatten(), gains.flatten(), worth.flatten()]
        for _ in range(4):
            for chosen in np.split(order.permutation(2048), 4):
                rows = torch.as_tensor(chosen)
                loss = update(*(column[rows] for column in columns))
        return loss

    return step


def dqn() -> Step:
    online, target = mlp(4, 64, 64, 2), mlp(4, 64, 64, 2)
    optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)

    @compiled
    def step(state: Any, action: Any, reward: Any, after: Any) -> Any:
        optimizer.zero_grad()
        with torch.no_grad():
            wanted = reward + 0.99 * target(after).max(-1).values
        loss = F.smooth_l1_loss(online(state).gather(1, action[:, None])[:, 0], wanted)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mine, other in zip(target.parameters(), online.parameters(), strict=True):
                mine.mul_(0.995).add_(other, alpha=0.005)
        return loss

    data = draws(64, 4), ints(2, 64), draws(64, seed=1), draws(64, 4, seed=2)
    return lambda: step(*data)


def sac() -> Step:
    """Two critics, a squashed normal policy, a trained temperature, targets that follow slowly."""
    actor, heat = mlp(17, 256, 256, 12), nn.Parameter(torch.zeros(1))
    critics, targets = (
        nn.ModuleList([mlp(23, 256, 256, 1) for _ in "12"]),
        nn.ModuleList([mlp(23, 256, 256, 1) for _ in "12"]),
    )
    on_actor, on_critics, on_heat = (
        torch.optim.Adam(list(p), lr=3e-4) for p in (actor.parameters(), critics.parameters(), [heat])
    )

    def act(state: Any, noise: Any) -> Any:
        mean, spread = actor(state).chunk(2, dim=-1)
        spread = torch.clamp(spread, -5, 2)
        raw = mean + torch.exp(spread) * noise
        log = (-0.5 * noise * noise - spread - 0.919).sum(-1) - (2 * (0.693 - raw - F.softplus(-2 * raw))).sum(-1)
        return torch.tanh(raw), log

    @compiled
    def step(state: Any, action: Any, reward: Any, after: Any, noise: Any, other: Any) -> Any:
        with torch.no_grad():
            then, log = act(after, noise)
            both = torch.cat([after, then], -1)
            worth = torch.minimum(targets[0](both)[:, 0], targets[1](both)[:, 0]) - torch.exp(heat) * log
            wanted = reward + 0.99 * worth
        both = torch.cat([state, action], -1)
        wrong = sum(F.mse_loss(critic(both)[:, 0], wanted) for critic in critics)
        on_critics.zero_grad()
        wrong.backward()
        on_critics.step()
        now, log = act(state, other)
        both = torch.cat([state, now], -1)
        worth = torch.minimum(critics[0](both)[:, 0], critics[1](both)[:, 0])
        on_actor.zero_grad()
        (torch.exp(heat).detach() * log - worth).mean().backward()
        on_actor.step()
        on_heat.zero_grad()
        (-heat * (log.detach() - 6.0)).mean().backward()
        on_heat.step()
        with torch.no_grad():
            for mine, theirs in zip(targets.parameters(), critics.parameters(), strict=True):
                mine.mul_(0.995).add_(theirs, alpha=0.005)
        return wrong

    states = draws(256, 17), draws(256, 6, seed=1), draws(256, seed=2), draws(256, 17, seed=3)
    noises = draws(256, 6, seed=4), draws(256, 6, seed=5)
    return lambda: step(*states, *noises)


WORKLOADS = {made.__name__: made for made in (ppo, dqn, sac)}
