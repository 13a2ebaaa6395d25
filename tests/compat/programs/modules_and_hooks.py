"""Modules of modules, buffers, and hooks on calls, gradients and Parameters."""

from collections import OrderedDict

import numpy as np
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.layers = nn.ModuleList([nn.Linear(size, size) for _ in range(2)])
        self.gates = nn.ParameterDict(
            {"left": nn.Parameter(torch.ones(size)), "right": nn.Parameter(torch.zeros(size))}
        )
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, x):
        self.calls += 1
        h = self.norm(x)
        for layer in self.layers:
            h = torch.tanh(layer(h))
        return x * self.gates["left"] + h * (1 + self.gates["right"])


def main():
    rng = np.random.default_rng(17)
    net = nn.Sequential(OrderedDict([("first", Block(4)), ("second", Block(4)), ("head", nn.Linear(4, 2))]))
    for name, p in net.named_parameters():
        if "layers" in name or "head" in name:
            p.data.copy_(torch.from_numpy(rng.normal(0, 0.5, tuple(p.shape)).astype(np.float32)))
    seen, grads = {}, {}
    handles = [
        net.first.register_forward_hook(lambda m, args, out: seen.__setitem__("first", out.detach().mean().item()))
    ]
    handles.append(net.second.register_forward_pre_hook(lambda m, args: (args[0] * 2,)))
    handles.append(
        net.head.register_full_backward_hook(lambda m, gin, gout: grads.__setitem__("head", gout[0].abs().sum().item()))
    )
    handles.append(net.head.weight.register_hook(lambda g: g * 0.5))
    x = torch.from_numpy(rng.normal(size=(3, 4)).astype(np.float32))
    loss = net(x).pow(2).sum()
    loss.backward()
    numbers = [loss.item(), seen["first"], grads["head"], net.head.weight.grad.abs().sum().item()]
    for handle in handles:
        handle.remove()
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    net(x).sum().backward()
    numbers += [net.head.weight.grad.abs().sum().item(), net.first.calls.item()]
    names = [name for name, _ in net.named_modules()]
    assert "first.layers.1" in names and len(list(net.children())) == 3 and len(net.state_dict()) == 20
    numbers.append(sum(p.numel() for p in net.parameters()))
    return numbers
