"""Coupling layers, transformed distributions, and a differential equation that is solved by hand."""

import numpy as np
import torch
from torch import distributions as D, nn

TOLERANCE = 5e-4


class CouplingLayer(nn.Module):
    def __init__(self, dim, hidden, mask):
        super().__init__()
        self.register_buffer("mask", mask)
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.LeakyReLU(0.01), nn.Linear(hidden, 2 * dim))

    def forward(self, x):
        s, t = self.net(x * self.mask).chunk(2, dim=-1)
        s = torch.tanh(s) * (1 - self.mask)
        t = t * (1 - self.mask)
        return (x * torch.exp(s) + t, s.sum(dim=1))

    def inverse(self, z):
        s, t = self.net(z * self.mask).chunk(2, dim=-1)
        s = torch.tanh(s) * (1 - self.mask)
        t = t * (1 - self.mask)
        return (z - t) * (-s).exp()


class RealNVP(nn.Module):
    def __init__(self, n):
        super().__init__()
        masks = torch.from_numpy(np.array([[0, 1], [1, 0]] * (n // 2)).astype(np.float32))
        self.layers = nn.ModuleList(CouplingLayer(2, 8, m) for m in masks)
        self.prior = D.MultivariateNormal(torch.zeros(2), torch.eye(2))

    def log_prob(self, x):
        log_det = x.new_zeros(x.shape[0])
        for l in self.layers:
            x, ld = l(x)
            log_det += ld
        return self.prior.log_prob(x) + log_det


rng = np.random.RandomState(0)
flow = RealNVP(4)
for p in flow.parameters():
    if p.requires_grad:
        p.data = torch.from_numpy(rng.randn(*p.shape)).float() * 0.3
x = torch.from_numpy(rng.randn(32, 2) * [0.5, 1.5] + [1, -1]).float()
opt = torch.optim.Adam([p for p in flow.parameters() if p.requires_grad], lr=0.01)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=4, eta_min=0.0001)
for _ in range(4):
    loss = -flow.log_prob(x).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    sched.step()
    print(loss.item(), sched.get_last_lr()[0])
z = x
for l in flow.layers:
    z, _ = l(z)
for l in reversed(flow.layers):
    z = l.inverse(z)
print((z - x).abs().max() < 1e-05)


def rk4(f, y, t0, t1, n):
    h = (t1 - t0) / n
    t = t0
    for _ in range(n):
        k1 = f(t, y)
        k2 = f(t + h / 2, y + h / 2 * k1)
        k3 = f(t + h / 2, y + h / 2 * k2)
        k4 = f(t + h, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        t += h
    return y


class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 10), nn.Tanh(), nn.Linear(10, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        return self.net(y**3)


func = ODEFunc()
for p in func.parameters():
    with torch.no_grad():
        p[:] = torch.linspace(-0.5, 0.5, p.numel()).view(p.shape)
true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
y0 = torch.tensor([[2.0, 0.0]])
with torch.no_grad():
    true = rk4(lambda t, y: torch.mm(y**3, true_A), y0, 0.0, 0.5, 20)
opt = torch.optim.RMSprop(func.parameters(), lr=0.01)
for it in range(3):
    opt.zero_grad()
    pred = rk4(func, y0, torch.tensor(0.0), torch.tensor(0.5), 10)
    loss = torch.mean(torch.abs(pred - true))
    loss.backward()
    opt.step()
    print(f"Iter {it:04d} | Total Loss {loss.item():.6f}")
base = D.Normal(torch.zeros(2), torch.ones(2))
td = D.TransformedDistribution(
    D.Independent(base, 1),
    [D.transforms.AffineTransform(torch.tensor([1.0, 2.0]), torch.tensor([0.5, 2.0])), D.transforms.TanhTransform()],
)
v = torch.tensor([[0.1, 0.2], [-0.3, 0.9]])
print(td.log_prob(v) if True else 0, td.event_shape, td.rsample((3,)).shape)


class Planar(D.transforms.Transform):
    domain = D.constraints.real
    codomain = D.constraints.real
    bijective = True
    sign = +1

    def _call(self, x):
        return torch.sinh(x)

    def _inverse(self, y):
        return torch.asinh(y)

    def log_abs_det_jacobian(self, x, y):
        return torch.log(torch.cosh(x))


print(D.TransformedDistribution(base, Planar()).log_prob(torch.tensor([0.3, 2.0])))
mix = D.MixtureSameFamily(
    D.Categorical(torch.tensor([0.3, 0.7])), D.Normal(torch.tensor([-1.0, 1.0]), torch.tensor([0.5, 1.0]))
)
print(mix.log_prob(torch.tensor([0.0, 1.0])), mix.mean, mix.variance, mix.cdf(torch.tensor(0.0)))
