"""Training states to a file and back: the model, the optimizer, the schedule and the epoch."""

import os
import tempfile

import numpy as np
import torch
from torch import nn, optim


def make():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = optim.Adam(model.parameters(), lr=0.05)
    return model, optimizer, optim.lr_scheduler.ExponentialLR(optimizer, 0.9)


def epoch(model, optimizer, scheduler, x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    scheduler.step()
    return loss.item()


def main():
    rng = np.random.default_rng(26)
    x = torch.from_numpy(rng.normal(size=(8, 3)).astype(np.float32))
    y = torch.from_numpy(rng.normal(size=(8, 1)).astype(np.float32))
    model, optimizer, scheduler = make()
    for p in model.parameters():
        p.data.copy_(torch.from_numpy(rng.normal(0, 0.5, tuple(p.shape)).astype(np.float32)))
    losses = [epoch(model, optimizer, scheduler, x, y) for _ in range(3)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.pt")
        torch.save(
            {
                "epoch": 3,
                "model_state_dict": model.state_dict(),
                "optimizer_state_dict": optimizer.state_dict(),
                "scheduler_state_dict": scheduler.state_dict(),
                "losses": losses,
            },
            path,
        )
        other, other_optimizer, other_scheduler = make()
        checkpoint = torch.load(path, weights_only=True)
    other.load_state_dict(checkpoint["model_state_dict"])
    other_optimizer.load_state_dict(checkpoint["optimizer_state_dict"])
    other_scheduler.load_state_dict(checkpoint["scheduler_state_dict"])
    assert checkpoint["losses"] == losses and checkpoint["epoch"] == 3
    going_on = [epoch(model, optimizer, scheduler, x, y) for _ in range(2)]
    resumed = [epoch(other, other_optimizer, other_scheduler, x, y) for _ in range(2)]
    assert going_on == resumed
    missing = nn.Linear(3, 4).load_state_dict({"weight": torch.ones(4, 3)}, strict=False).missing_keys
    assert list(missing) == ["bias"]
    return losses + resumed
