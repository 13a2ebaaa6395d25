"""Blocks whose values are computed again in backward: gradients are those without."""

import numpy as np
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


class Deep(nn.Module):
    def __init__(self, again):
        super().__init__()
        self.again = again
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(5, 5), nn.GELU()) for _ in range(3)])

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.again else block(x)
        return x


def main():
    rng = np.random.default_rng(21)
    models = [Deep(False), Deep(True)]
    for p in models[0].parameters():
        p.data.copy_(torch.from_numpy(rng.normal(0, 0.5, tuple(p.shape)).astype(np.float32)))
    models[1].load_state_dict(models[0].state_dict())
    x = torch.from_numpy(rng.normal(size=(4, 5)).astype(np.float32)).requires_grad_()
    numbers = []
    for model in models:
        x.grad = None
        loss = model(x).pow(2).sum()
        loss.backward()
        numbers += [loss.item(), x.grad.sum().item(), sum(p.grad.abs().sum().item() for p in model.parameters())]
    assert numbers[:3] == numbers[3:]
    stack = nn.Sequential(*(block for block in models[0].blocks))
    x.grad = None
    checkpoint_sequential(stack, 2, x, use_reentrant=False).sum().backward()
    return [*numbers, x.grad.sum().item()]
