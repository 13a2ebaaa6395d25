"""Weights with the smallest values masked: one layer, several at once, masks of one's own."""

import numpy as np
import torch
import torch.nn.utils.prune as prune
from torch import nn


def main():
    rng = np.random.default_rng(19)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    for p in model.parameters():
        p.data.copy_(torch.from_numpy(rng.normal(0, 0.5, tuple(p.shape)).astype(np.float32)))
    prune.l1_unstructured(model[0], name="weight", amount=0.3)
    prune.ln_structured(model[2], name="weight", amount=0.5, n=2, dim=1)
    numbers = [(model[0].weight == 0).sum().item(), (model[2].weight == 0).sum().item()]
    assert "weight_orig" in dict(model[0].named_parameters()) and "weight_mask" in dict(model[0].named_buffers())
    x = torch.from_numpy(rng.normal(size=(4, 6)).astype(np.float32))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        numbers.append(loss.item())
    assert (model[0].weight[model[0].weight_mask == 0] == 0).all()
    prune.remove(model[0], "weight")
    prune.remove(model[2], "weight")
    prune.global_unstructured(
        [(model[0], "weight"), (model[2], "weight")], pruning_method=prune.L1Unstructured, amount=0.6
    )
    zeros = sum((m.weight == 0).sum().item() for m in (model[0], model[2]))
    return [*numbers, zeros, model(x).sum().item()]
