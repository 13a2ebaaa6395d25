"""Averages of weights over the end of training, with a schedule of their own and new statistics of batch norm."""

import numpy as np
import torch
from torch import nn, optim
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn


def main():
    rng = np.random.default_rng(28)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    for p in model.parameters():
        p.data.copy_(torch.from_numpy(rng.normal(0, 0.5, tuple(p.shape)).astype(np.float32)))
    loader = [
        (
            torch.from_numpy(rng.normal(size=(6, 4)).astype(np.float32)),
            torch.from_numpy(rng.normal(size=(6, 1)).astype(np.float32)),
        )
        for _ in range(2)
    ]
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    swa_model = AveragedModel(model)
    ema_model = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    swa_scheduler = SWALR(optimizer, swa_lr=0.02, anneal_epochs=2)
    losses = []
    for epoch in range(6):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            ema_model.update_parameters(model)
        losses.append(loss.item())
        if epoch > 2:
            swa_model.update_parameters(model)
            swa_scheduler.step()
        else:
            scheduler.step()
    update_bn(loader, swa_model)
    swa_model.eval()
    ema_model.eval()
    with torch.no_grad():
        losses += [nn.functional.mse_loss(m(loader[0][0]), loader[0][1]).item() for m in (swa_model, ema_model)]
    return [*losses, int(swa_model.n_averaged), optimizer.param_groups[0]["lr"]]
