"""Custom optimizers beside the library's, all schedules, LBFGS and averaged models."""

import math

import torch
from torch import nn, optim
from torch.optim import lr_scheduler
from torch.optim.lr_scheduler import *
from torch.optim.optimizer import Optimizer, required

TOLERANCE = 5e-4


class MySGD(Optimizer):
    def __init__(self, params, lr=required, momentum=0, weight_decay=0, nesterov=False):
        if lr is not required and lr < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        defaults = dict(lr=lr, momentum=momentum, weight_decay=weight_decay, nesterov=nesterov)
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("nesterov", False)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                d_p = p.grad
                if group["weight_decay"] != 0:
                    d_p = d_p.add(p, alpha=group["weight_decay"])
                if group["momentum"] != 0:
                    param_state = self.state[p]
                    if "momentum_buffer" not in param_state:
                        buf = param_state["momentum_buffer"] = torch.clone(d_p).detach()
                    else:
                        buf = param_state["momentum_buffer"]
                        buf.mul_(group["momentum"]).add_(d_p)
                    d_p = buf
                p.add_(d_p, alpha=-group["lr"])
        return loss


class AdamOld(Optimizer):
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-08):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps))

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad.data
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p.data)
                    state["exp_avg_sq"] = torch.zeros_like(p.data)
                exp_avg, exp_avg_sq = (state["exp_avg"], state["exp_avg_sq"])
                beta1, beta2 = group["betas"]
                state["step"] += 1
                exp_avg.mul_(beta1).add_(grad, alpha=1 - beta1)
                exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
                denom = exp_avg_sq.sqrt().add_(group["eps"])
                step_size = group["lr"] * math.sqrt(1 - beta2 ** state["step"]) / (1 - beta1 ** state["step"])
                p.data.addcdiv_(exp_avg, denom, value=-step_size)


def make():
    m = nn.Linear(3, 1)
    with torch.no_grad():
        m.weight.copy_(torch.tensor([[0.5, -0.3, 0.1]]))
        m.bias.fill_(0.2)
    return m


x = torch.arange(12.0).view(4, 3) / 6 - 1
y = (x**2).sum(1, keepdim=True)
for cls, kw in (
    (MySGD, dict(lr=0.05, momentum=0.9, weight_decay=0.001)),
    (AdamOld, dict(lr=0.05)),
    (optim.NAdam, dict(lr=0.01)),
    (optim.RAdam, dict(lr=0.01)),
    (optim.Adamax, dict(lr=0.01)),
    (optim.ASGD, dict(lr=0.01)),
    (optim.Rprop, dict(lr=0.01)),
    (optim.Adagrad, dict(lr=0.1, lr_decay=0.1)),
):
    m = make()
    opt = cls(m.parameters(), **kw)
    for _ in range(4):
        opt.zero_grad()
        loss = nn.functional.mse_loss(m(x), y)
        loss.backward()
        opt.step()
    print(cls.__name__, loss.item(), len(opt.state), sorted(opt.param_groups[0].keys() & {"lr", "params"}))


def lrs(s, o, n=8, metric=False):
    out = []
    for i in range(n):
        o.step()
        out.append(round(o.param_groups[0]["lr"], 6))
        s.step(1.0 / (1 + min(i, 2))) if metric else s.step()
    return out


S = lambda: optim.SGD(make().parameters(), lr=0.1, momentum=0.9)
for f in (
    lambda o: StepLR(o, 2, 0.5),
    lambda o: ExponentialLR(o, 0.9),
    lambda o: LambdaLR(o, lr_lambda=lambda e: 0.95**e),
    lambda o: MultiplicativeLR(o, lambda e: 0.9),
    lambda o: CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2),
    lambda o: OneCycleLR(o, max_lr=0.1, total_steps=10, pct_start=0.3),
    lambda o: OneCycleLR(o, 0.1, epochs=2, steps_per_epoch=5, anneal_strategy="linear", three_phase=True),
    lambda o: CyclicLR(o, 0.01, 0.1, step_size_up=3, mode="triangular2"),
    lambda o: SequentialLR(o, [LinearLR(o, 0.1, total_iters=3), CosineAnnealingLR(o, 5)], milestones=[3]),
    lambda o: ChainedScheduler([ConstantLR(o, 0.5, 2), ExponentialLR(o, 0.9)]),
    lambda o: PolynomialLR(o, 4, 2.0),
    lambda o: LinearLR(o, start_factor=1 / 3, end_factor=1.0, total_iters=5),
):
    o = S()
    print(lrs(f(o), o))
o = S()
print(lrs(ReduceLROnPlateau(o, mode="min", factor=0.1, patience=1, threshold=0.001, min_lr=0.0001), o, metric=True))
o = S()
s = lr_scheduler.StepLR(o, 1, last_epoch=-1)
o.step()
s.step()
sd = s.state_dict()
print(s.get_last_lr(), s.last_epoch, sd["gamma"])
o2 = S()
s2 = lr_scheduler.StepLR(o2, 1)
s2.load_state_dict(sd)
print(s2.last_epoch, s2.optimizer is o2)


class WarmupPoly(lr_scheduler._LRScheduler):
    def __init__(self, optimizer, warm, last_epoch=-1):
        self.warm = warm
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [b * min(1.0, (self.last_epoch + 1) / self.warm) for b in self.base_lrs]


o = S()
print(lrs(WarmupPoly(o, 4), o))
for g in o.param_groups:
    g["lr"] *= 0.1
    g["lr"] = g["lr"] / 2
print(o.param_groups[0]["lr"], o.defaults["momentum"], o.state_dict()["param_groups"][0]["params"])
o.add_param_group({"params": nn.Linear(1, 1).parameters(), "lr": 7.0})
print(len(o.param_groups), o.param_groups[1]["lr"])
m = make()
lb = optim.LBFGS(m.parameters(), lr=0.5, max_iter=4, history_size=5, line_search_fn="strong_wolfe")


def closure():
    lb.zero_grad()
    l = ((m(x) - y) ** 2).mean()
    l.backward()
    return l


for _ in range(3):
    print(lb.step(closure).item())
ema = torch.optim.swa_utils.AveragedModel(m, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
ema.update_parameters(m)
m.weight.data.add_(1)
ema.update_parameters(m)
print(ema.module.weight, ema(x)[0], int(ema.n_averaged))
swa = optim.swa_utils.AveragedModel(m)
sw = optim.swa_utils.SWALR(o, swa_lr=0.05, anneal_epochs=2)
swa.update_parameters(m)
o.step()
sw.step()
print(o.param_groups[0]["lr"])
try:
    optim.SGD([], lr=0.1)
except ValueError as e:
    print("Error", e)
try:
    optim.SGD(m.parameters(), lr=-1)
except ValueError as e:
    print("Error", e)
