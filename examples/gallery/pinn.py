"""A physics-informed network: a damped spring, from its equation alone.

    python examples/gallery/pinn.py [--quick] [--picture pinn.png]

M. Raissi, P. Perdikaris and G. Karniadakis, "Physics-informed neural networks", 2019. The network is u(t); its
derivatives u' and u'' come from forward mode (`rn.jvp`, twice), and the loss is how far u'' + 4u' + 100u is from 0,
with u(0) = 1 and u'(0) = 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from showing import run

import runnel as rn
from runnel import nn, optim

DAMPING, STIFFNESS, WIDTH, POINTS = 4.0, 100.0, 32, 64


def exact(t: np.ndarray) -> np.ndarray:
    """The solution: e^(-δt)·(cos ωt + δ/ω·sin ωt) with δ half the damping and ω² = stiffness - δ²."""
    delta = DAMPING / 2
    omega = np.sqrt(STIFFNESS - delta**2)
    return np.exp(-delta * t) * (np.cos(omega * t) + delta / omega * np.sin(omega * t))


def train(steps: int) -> dict[str, Any]:
    hidden = nn.Linear(1, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh()
    network = nn.Sequential(*hidden, nn.Linear(WIDTH, 1))
    optimizer = optim.Adam(network.parameters(), lr=5e-3)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)

    def u(t: rn.Tensor) -> rn.Tensor:
        """1 - t² · network, which is 1 at 0 with slope 0."""
        return 1 - (10 * t) ** 2 * network(2 * t - 1)

    def slope(t: rn.Tensor) -> rn.Tensor:
        return rn.jvp(u, (t,), (rn.ones_like(t),))[1]

    @rn.compile
    def step() -> rn.Tensor:
        optimizer.zero_grad()
        t = rn.rand(POINTS, 1)
        velocity, acceleration = rn.jvp(slope, (t,), (rn.ones_like(t),))
        residual = acceleration + DAMPING * velocity + STIFFNESS * u(t)
        loss = (rn.exp(-4 * t) * (residual / STIFFNESS) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(steps):
        step()
        schedule.step()
    t = np.linspace(0, 1, 200, dtype=np.float32)
    found = u(rn.asarray(t[:, None])).numpy()[:, 0]
    return {"reached": {"largest error": np.abs(found - exact(t)).max()}, "t": t, "found": found}


def draw(axes: Any, t: np.ndarray, found: np.ndarray) -> None:
    axes.plot(t, exact(t), color="0.7", linewidth=4, label="exact")
    axes.plot(t, found, "--", label="network")
    axes.set(xlabel="t", ylabel="u")
    axes.legend()


if __name__ == "__main__":
    run(__doc__, train, steps=5000, quick=30, draw=draw)
