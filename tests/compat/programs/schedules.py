"""Learning-rate schedules on one small problem: each with the rates and losses that it leads to."""

import torch
from torch import optim
from torch.optim import lr_scheduler


def run(make):
    w = torch.nn.Parameter(torch.tensor([2.0, -3.0]))
    optimizer = optim.SGD([w], lr=0.1, momentum=0.5)
    scheduler = make(optimizer)
    numbers = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = (w**2 * torch.tensor([1.0, 0.5])).sum()
        loss.backward()
        optimizer.step()
        if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
            scheduler.step(loss)
        else:
            scheduler.step()
        numbers += [loss.item(), optimizer.param_groups[0]["lr"]]
    return numbers


def main():
    makers = [
        lambda o: lr_scheduler.StepLR(o, 2, gamma=0.5),
        lambda o: lr_scheduler.MultiStepLR(o, milestones=[2, 4], gamma=0.1),
        lambda o: lr_scheduler.ExponentialLR(o, gamma=0.8),
        lambda o: lr_scheduler.LambdaLR(o, lr_lambda=lambda epoch: 0.9**epoch),
        lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=5, eta_min=0.01),
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, T_0=3),
        lambda o: lr_scheduler.OneCycleLR(o, max_lr=0.2, total_steps=7),
        lambda o: lr_scheduler.CyclicLR(o, base_lr=0.01, max_lr=0.1, step_size_up=2),
        lambda o: lr_scheduler.ReduceLROnPlateau(o, mode="max", factor=0.5, patience=1),
        lambda o: lr_scheduler.SequentialLR(
            o,
            [lr_scheduler.LinearLR(o, start_factor=0.1, total_iters=2), lr_scheduler.PolynomialLR(o, total_iters=5)],
            milestones=[2],
        ),
    ]
    return [number for make in makers for number in run(make)]
