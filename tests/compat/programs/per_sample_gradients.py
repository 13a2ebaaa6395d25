"""The gradient of each sample by itself, by vmap over grad of a functional call, compared with a loop."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, vmap


def main():
    rng = np.random.default_rng(23)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
    for p in model.parameters():
        p.data.copy_(torch.from_numpy(rng.normal(0, 0.5, tuple(p.shape)).astype(np.float32)))
    data = torch.from_numpy(rng.normal(size=(5, 4)).astype(np.float32))
    targets = torch.from_numpy(rng.integers(0, 3, 5))
    params = {k: v.detach() for k, v in model.named_parameters()}
    buffers = {k: v.detach() for k, v in model.named_buffers()}

    def compute_loss(params, buffers, sample, target):
        predictions = functional_call(model, (params, buffers), (sample.unsqueeze(0),))
        return F.cross_entropy(predictions, target.unsqueeze(0))

    each = vmap(grad(compute_loss), in_dims=(None, None, 0, 0))(params, buffers, data, targets)
    for i in range(5):
        loss = F.cross_entropy(model(data[i : i + 1]), targets[i : i + 1])
        expected = torch.autograd.grad(loss, list(model.parameters()))
        for name, g in zip(params, expected):
            torch.testing.assert_close(each[name][i], g, atol=1e-5, rtol=1e-5)
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in each.values()]).norm(dim=0)
    return norms.tolist()
