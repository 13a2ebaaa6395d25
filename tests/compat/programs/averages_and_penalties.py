"""Moving averages of weights in three styles, and a Wasserstein GAN with a gradient penalty."""

import copy

import torch
import torch.nn as nn
from torch.nn.utils import spectral_norm
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn

TOLERANCE = 5e-4


class EMA:
    def __init__(self, model, decay):
        self.model, self.decay, self.shadow, self.backup = (model, decay, {}, {})

    def register(self):
        for n, p in self.model.named_parameters():
            if p.requires_grad:
                self.shadow[n] = p.data.clone()

    def update(self):
        for n, p in self.model.named_parameters():
            if p.requires_grad:
                assert n in self.shadow
                new_average = (1.0 - self.decay) * p.data + self.decay * self.shadow[n]
                self.shadow[n] = new_average.clone()

    def apply_shadow(self):
        for n, p in self.model.named_parameters():
            if p.requires_grad:
                self.backup[n] = p.data
                p.data = self.shadow[n]

    def restore(self):
        for n, p in self.model.named_parameters():
            if p.requires_grad:
                p.data = self.backup[n]
        self.backup = {}


class ModelEMA:
    def __init__(self, model, decay=0.9):
        self.ema = copy.deepcopy(model).eval()
        self.updates = 0
        self.decay = lambda x: decay
        for p in self.ema.parameters():
            p.requires_grad_(False)

    def update(self, model):
        self.updates += 1
        d = self.decay(self.updates)
        msd = model.state_dict()
        for k, v in self.ema.state_dict().items():
            if v.dtype.is_floating_point:
                v *= d
                v += (1 - d) * msd[k].detach()


net = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1))
for i, p in enumerate(net.parameters()):
    if p.dim() == 2:
        p.data = torch.sin(torch.arange(p.numel()) * 1.3 + i).view_as(p) * 0.5
    elif i in (1, 5):
        p.data.zero_()
x = torch.stack([torch.sin(torch.arange(32.0)), torch.cos(torch.arange(32.0) * 0.7)], 1)
y = (x[:, :1] * x[:, 1:]).sign()
ema = EMA(net, 0.8)
ema.register()
me = ModelEMA(net)
swa = AveragedModel(net)
opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 4)
swas = SWALR(opt, anneal_strategy="linear", anneal_epochs=2, swa_lr=0.02)
for ep in range(6):
    opt.zero_grad()
    loss = nn.functional.soft_margin_loss(net(x), y)
    loss.backward()
    opt.step()
    ema.update()
    me.update(net)
    if ep >= 3:
        swa.update_parameters(net)
        swas.step()
    else:
        sched.step()
    print(ep, loss.item(), opt.param_groups[0]["lr"])
update_bn([(x, y)], swa)
net.eval()
swa.eval()
before = net(x).mean().item()
ema.apply_shadow()
mid = net(x).mean().item()
ema.restore()
print(before, mid, net(x).mean().item(), swa(x).mean().item(), me.ema(x).mean().item())
G = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
D = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
for m in (G, D):
    for i, p in enumerate(m.parameters()):
        p.data = torch.cos(torch.arange(p.numel()) * 1.7 + i).view_as(p) * 0.4


def gradient_penalty(D, real, fake, eps):
    inter = (eps * real + (1 - eps) * fake).requires_grad_(True)
    out = D(inter)
    g = torch.autograd.grad(
        outputs=out,
        inputs=inter,
        grad_outputs=torch.ones_like(out),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    return ((g.view(g.size(0), -1).norm(2, dim=1) - 1) ** 2).mean()


og, od = (torch.optim.Adam(G.parameters(), 0.01, (0.0, 0.9)), torch.optim.Adam(D.parameters(), 0.01, (0.0, 0.9)))
for it in range(4):
    for p in D.parameters():
        p.requires_grad = True
    for k in range(2):
        z = torch.sin(torch.arange(64.0).view(32, 2) + it + k)
        od.zero_grad()
        fake = G(z).detach()
        ld = D(fake).mean() - D(x).mean() + 10 * gradient_penalty(D, x, fake, torch.linspace(0, 1, 32).view(-1, 1))
        ld.backward()
        od.step()
    for p in D.parameters():
        p.requires_grad = False
    og.zero_grad()
    lg = -D(G(z)).mean()
    lg.backward()
    og.step()
    print(ld.item(), lg.item())
sn = nn.Sequential(spectral_norm(nn.Conv2d(1, 2, 3)), nn.LeakyReLU(0.1, True))
print([n for n, _ in sn.named_parameters()], [n for n, _ in sn.named_buffers()], sn(torch.ones(1, 1, 4, 4)).shape)
