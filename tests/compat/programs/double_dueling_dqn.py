"""Double Q-learning with a dueling network, weights by priority and gradients clamped by hand."""

from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim

TOLERANCE = 5e-4


class ReplayBuffer:
    def __init__(self, size):
        self.memory = deque(maxlen=size)
        self.e = namedtuple("E", ["s", "a", "r", "n", "d"])

    def add(self, *a):
        self.memory.append(self.e(*a))

    def sample(self, k, rng):
        es = [self.memory[i] for i in rng.choice(len(self.memory), k, replace=False)]
        s = torch.from_numpy(np.vstack([e.s for e in es if e is not None])).float()
        a = torch.from_numpy(np.vstack([e.a for e in es])).long()
        r = torch.from_numpy(np.vstack([e.r for e in es])).float()
        n = torch.from_numpy(np.vstack([e.n for e in es])).float()
        d = torch.from_numpy(np.vstack([e.d for e in es]).astype(np.uint8)).float()
        return (s, a, r, n, d)


class Dueling(nn.Module):
    def __init__(self, s, a):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(s, 16), nn.ReLU())
        self.v = nn.Linear(16, 1)
        self.adv = nn.Linear(16, a)

    def forward(self, x):
        h = self.f(x)
        v, a = (self.v(h), self.adv(h))
        return v + a - a.mean(dim=1, keepdim=True)


rng = np.random.RandomState(0)
local, target = (Dueling(4, 3), Dueling(4, 3))
for p in local.parameters():
    p.data.copy_(torch.tensor(rng.normal(size=p.shape) * 0.3))
target.load_state_dict(local.state_dict())
opt = optim.RMSprop(local.parameters(), lr=0.005, alpha=0.95, eps=0.01, centered=True, momentum=0.1)
buf = ReplayBuffer(50)
s = rng.normal(size=4)
for t in range(30):
    with torch.no_grad():
        q = local(torch.from_numpy(s).float().unsqueeze(0))
    a = int(np.argmax(q.cpu().data.numpy())) if rng.rand() > 0.2 else int(rng.randint(3))
    n = 0.9 * s + 0.1 * a
    r = -abs(n[0]) + a * 0.1
    d = t % 10 == 9
    buf.add(s, a, r, n, d)
    s = rng.normal(size=4) if d else n
    if len(buf.memory) > 8:
        S, A, R, N, Dn = buf.sample(8, rng)
        best = local(N).detach().max(1)[1].unsqueeze(1)
        Qt = target(N).gather(1, best)
        Y = R + 0.99 * Qt * (1 - Dn)
        Qe = local(S).gather(1, A)
        td = (Y - Qe).abs().detach().squeeze().numpy() + 1e-05
        w = torch.tensor((td / td.max()) ** (-0.4), dtype=torch.float).unsqueeze(1)
        loss = (w * F.mse_loss(Qe, Y, reduction="none")).mean()
        opt.zero_grad()
        loss.backward()
        for p in local.parameters():
            p.grad.data.clamp_(-1, 1)
        opt.step()
        for tp, lp in zip(target.parameters(), local.parameters()):
            tp.data.copy_(0.05 * lp.data + (1.0 - 0.05) * tp.data)
        if t % 5 == 0:
            print(t, loss.item(), sum(p.norm() for p in target.parameters()).item())
