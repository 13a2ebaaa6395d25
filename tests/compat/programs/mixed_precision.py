"""Products in bfloat16 under autocast, with the loop of a gradient scaler."""

import numpy as np
import torch
from torch import nn

TOLERANCE = 2e-2  # bfloat16 has eight bits, and the two libraries round different values to it


def main():
    rng = np.random.default_rng(27)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    for p in model.parameters():
        p.data.copy_(torch.from_numpy(rng.normal(0, 0.3, tuple(p.shape)).astype(np.float32)))
    x = torch.from_numpy(rng.normal(size=(16, 8)).astype(np.float32))
    y = torch.from_numpy(rng.integers(0, 4, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    losses = []
    for _ in range(6):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            output = model(x)
            assert output.dtype is torch.bfloat16
            loss = nn.functional.cross_entropy(output, y)
        assert loss.dtype is torch.float32
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert all(p.dtype is torch.float32 and p.grad.dtype is torch.float32 for p in model.parameters())
    return losses
