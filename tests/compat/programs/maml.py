"""Meta-learning: a step of gradient descent inside the loss that is differentiated, by hand and by transforms."""

import numpy as np
import torch
import torch.nn.functional as F
from torch.func import grad, vmap


def net(params, x):
    for i in range(2):
        x = torch.relu(F.linear(x, params[2 * i], params[2 * i + 1]))
    return F.linear(x, params[4], params[5])


def main():
    rng = np.random.default_rng(25)
    shapes = [(8, 1), (8,), (8, 8), (8,), (1, 8), (1,)]
    params = [torch.from_numpy(rng.normal(0, 0.5, s).astype(np.float32)).requires_grad_() for s in shapes]
    optimizer = torch.optim.Adam(params, lr=1e-2)
    x1, x2 = (torch.from_numpy(rng.uniform(-3, 3, (4, 5, 1)).astype(np.float32)) for _ in range(2))
    phases = torch.from_numpy(rng.uniform(0, 3, (4, 1, 1)).astype(np.float32))
    y1, y2 = torch.sin(x1 + phases), torch.sin(x2 + phases)
    losses = []
    for _ in range(3):
        total = 0.0
        for task in range(4):
            inner = F.mse_loss(net(params, x1[task]), y1[task])
            grads = torch.autograd.grad(inner, params, create_graph=True)
            adapted = [p - 0.1 * g for p, g in zip(params, grads)]
            total = total + F.mse_loss(net(adapted, x2[task]), y2[task])
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        losses.append(total.item())

    def meta_loss(params):
        def of_task(x1, y1, x2, y2):
            g = grad(lambda p: F.mse_loss(net(p, x1), y1))(params)
            return F.mse_loss(net([p - 0.1 * d for p, d in zip(params, g)], x2), y2)

        return vmap(of_task)(x1, y1, x2, y2).sum()

    values = [p.detach() for p in params]
    losses.append(meta_loss(values).item())
    return losses + [g.abs().sum().item() for g in grad(meta_loss)(values)]
