"""Distributions in compiled steps with Parameters: as eagerly, and they learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import runnel as rn
from runnel import distributions as D, nn, optim


def losses(make: Callable[[], tuple[nn.Module, Callable[[], Any]]], steps: int, compiled: bool) -> list[float]:
    rn.manual_seed(0)
    model, loss_of = make()
    optimizer = optim.Adam(model.parameters(), lr=0.05)

    def step() -> Any:
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss

    run = rn.compile(step) if compiled else step
    return [float(run()) for _ in range(steps)]


def autoencoder() -> tuple[nn.Module, Callable[[], Any]]:
    x = rn.asarray((np.random.default_rng(0).uniform(size=(16, 6)) < 0.5).astype(np.float32))
    model = nn.ModuleDict({"encode": nn.Linear(6, 4), "decode": nn.Linear(2, 6)})
    prior = D.Independent(D.Normal(rn.zeros(2), rn.ones(2)), 1)

    def loss() -> Any:
        mean, width = model["encode"](x).chunk(2, -1)
        posterior = D.Independent(D.Normal(mean, nn.functional.softplus(width) + 0.1), 1)
        z = posterior.rsample()
        evidence = D.Independent(D.Bernoulli(logits=model["decode"](z)), 1).log_prob(x)
        return (D.kl_divergence(posterior, prior) - evidence).mean()

    return model, loss


def policy() -> tuple[nn.Module, Callable[[], Any]]:
    states = rn.asarray(np.random.default_rng(0).standard_normal((32, 3)).astype(np.float32))
    right = states.argmax(1)
    model = nn.Linear(3, 3)

    def loss() -> Any:
        d = D.Categorical(logits=model(states))
        action = d.sample()
        reward = (action == right).astype(rn.float32) - 0.5
        return -(d.log_prob(action) * reward).mean() - 0.01 * d.entropy().mean()

    return model, loss


def shapes() -> tuple[nn.Module, Callable[[], Any]]:
    """A gamma distribution by its samples' mean and spread."""
    model = nn.ParameterList([nn.Parameter(np.zeros(1, np.float32)), nn.Parameter(np.zeros(1, np.float32))])

    def loss() -> Any:
        d = D.Gamma(model[0].exp(), model[1].exp())
        x = d.rsample((64,))
        return (x.mean() - 3) ** 2 + (x.var() - 1) ** 2 * 0.1

    return model, loss


def test_autoencoder() -> None:
    eager, compiled = losses(autoencoder, 4, False), losses(autoencoder, 40, True)
    assert compiled[:4] == eager and np.mean(compiled[-5:]) < compiled[0] - 0.2


def test_policy_gradient() -> None:
    eager, compiled = losses(policy, 4, False), losses(policy, 4, True)
    assert compiled == eager
    rn.manual_seed(0)
    model, loss = policy()
    before = float((model(rn.eye(3)).argmax(1) == rn.arange(3)).astype(rn.float32).mean())
    optimizer = optim.Adam(model.parameters(), lr=0.05)

    @rn.compile
    def step() -> Any:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    for _ in range(150):
        step()
    assert float((model(rn.eye(3)).argmax(1) == rn.arange(3)).astype(rn.float32).mean()) == 1 >= before


def test_gamma_by_its_moments() -> None:
    eager, compiled = losses(shapes, 3, False), losses(shapes, 60, True)
    assert compiled[:3] == eager and np.mean(compiled[-10:]) < 0.3 * compiled[0]


def test_a_distribution_from_outside_is_watched() -> None:
    d = {"prior": D.Normal(0.0, 1.0)}

    @rn.compile
    def log_prob(x: Any) -> Any:
        return d["prior"].log_prob(x)

    x = rn.asarray([0.5, 1.0])
    np.testing.assert_array_equal(log_prob(x).numpy(), d["prior"].log_prob(x).numpy())
    d["prior"] = D.Normal(1.0, 2.0)
    np.testing.assert_array_equal(log_prob(x).numpy(), d["prior"].log_prob(x).numpy())
