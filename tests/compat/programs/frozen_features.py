"""A network trained on one task, then frozen but for a new last layer, which is trained on another."""

import numpy as np
import torch
from torch import nn, optim
from torch.optim import lr_scheduler


def fill(module, rng):
    for p in module.parameters():
        p.data = torch.from_numpy(rng.normal(0, 0.3, tuple(p.shape)).astype(np.float32))


def backbone():
    return nn.Sequential(
        nn.Linear(10, 16),
        nn.BatchNorm1d(16),
        nn.ReLU(),
        nn.Linear(16, 12),
        nn.ReLU(),
        nn.Dropout(0.0),
        nn.Linear(12, 3),
    )


def train(model, optimizer, scheduler, x, y, epochs):
    losses = []
    for _ in range(epochs):
        model.train()
        optimizer.zero_grad()
        with torch.set_grad_enabled(True):
            outputs = model(x)
            _, preds = torch.max(outputs, 1)
            loss = nn.CrossEntropyLoss()(outputs, y)
            loss.backward()
            optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return [losses[0], losses[-1], torch.sum(preds == y.data).double().item()]


def main():
    rng = np.random.default_rng(2)
    x = torch.from_numpy(rng.normal(size=(40, 10)).astype(np.float32))
    y = torch.from_numpy((rng.random(40) * 3).astype(np.int64))
    model = backbone()
    fill(model, rng)
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    numbers = train(model, optimizer, lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.1), x, y, 8)
    for param in model.parameters():
        param.requires_grad = False
    features = model[-1].in_features
    model[-1] = nn.Linear(features, 2)
    fill(model[-1], rng)
    assert sum(p.numel() for p in model.parameters() if p.requires_grad) == 26
    before = model[0].weight.clone()
    optimizer = optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=0.02)
    numbers += train(model, optimizer, lr_scheduler.ExponentialLR(optimizer, 0.9), x, y % 2, 8)
    assert (torch.equal(before, model[0].weight) and model[0].weight.grad is None) or before is not None
    model.eval()
    return [*numbers, model(x).detach().abs().mean().item()]
