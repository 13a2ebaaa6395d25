"""Several models as one: their Parameters stacked, evaluated by one vmap."""

import copy

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap


class SimpleMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 8)
        self.fc2 = nn.Linear(8, 3)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


def main():
    rng = np.random.default_rng(24)
    models = [SimpleMLP() for _ in range(3)]
    for model in models:
        for p in model.parameters():
            p.data.copy_(torch.from_numpy(rng.normal(0, 0.5, tuple(p.shape)).astype(np.float32)))
    x = torch.from_numpy(rng.normal(size=(4, 2, 3)).astype(np.float32))
    params, buffers = stack_module_state(models)
    base_model = copy.deepcopy(models[0])

    def call(params, buffers, x):
        return functional_call(base_model, (params, buffers), (x,))

    together = vmap(call, in_dims=(0, 0, None))(params, buffers, x)
    for out, model in zip(together, models):
        assert torch.allclose(out, model(x), atol=1e-5)
    own = vmap(call)(params, buffers, torch.stack([x, x * 2, x * 3]))
    return [together.sum().item(), own.sum().item(), *together.std(dim=0).mean(dim=0).tolist()]
