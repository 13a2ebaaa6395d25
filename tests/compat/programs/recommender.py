"""Matrix factorization with biases, and a small network over two embeddings."""

import torch
import torch.nn as nn
import torch.nn.functional as F

TOLERANCE = 5e-4


class MF(nn.Module):
    def __init__(self, nu, ni, k=4):
        super().__init__()
        self.u, self.i = (nn.Embedding(nu, k), nn.Embedding(ni, k))
        self.ub, self.ib = (nn.Embedding(nu, 1), nn.Embedding(ni, 1))
        self.mu = nn.Parameter(torch.zeros(1))
        for e in (self.u, self.i):
            nn.init.normal_(e.weight, std=0.1)
        nn.init.zeros_(self.ub.weight)
        nn.init.zeros_(self.ib.weight)

    def forward(self, u, i):
        return (self.u(u) * self.i(i)).sum(1) + self.ub(u).squeeze(-1) + self.ib(i).squeeze() + self.mu


class NCF(nn.Module):
    def __init__(self, nu, ni):
        super().__init__()
        self.e = nn.ModuleDict({"u": nn.Embedding(nu, 4), "i": nn.Embedding(ni, 4)})
        self.mlp = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.SiLU(), nn.Linear(8, 1), nn.Flatten(0))

    def forward(self, u, i):
        return self.mlp(torch.cat([self.e["u"](u), self.e["i"](i)], dim=-1))


torch.manual_seed(42)
u = torch.arange(40) % 6
i = torch.arange(40) * 7 % 5
r = ((u * 3 + i * 2) % 5 + 1).float()
for cls, opt_cls, kw in (
    (MF, torch.optim.Adagrad, dict(lr=0.1)),
    (NCF, torch.optim.AdamW, dict(lr=0.02, weight_decay=0.01)),
    (MF, torch.optim.SparseAdam, dict(lr=0.05)),
):
    m = cls(6, 5)
    for j, p in enumerate(m.parameters()):
        if cls is NCF and p.dim() == 1 and (j != 4):
            nn.init.zeros_(p)
        if p.numel() > 1 and (not (cls is NCF and p.dim() == 1)):
            p.data = torch.cos(torch.arange(p.numel()) * 2.1 + j).view(p.shape) * 0.3
    if opt_cls is torch.optim.SparseAdam:
        continue
    opt = opt_cls(m.parameters(), **kw)
    losses = []
    for ep in range(6):
        perm = torch.arange(40).roll(ep * 3)
        for b in perm.split(16):
            opt.zero_grad()
            loss = F.mse_loss(m(u[b], i[b]), r[b]) + 0.001 * sum(p.pow(2).sum() for p in m.parameters())
            loss.backward()
            opt.step()
        losses.append(loss.item())
    with torch.no_grad():
        rmse = ((m(u, i) - r) ** 2).mean().sqrt()
    print(cls.__name__, ["%.4f" % l for l in losses], rmse, f"{rmse:.3f}")
full = torch.full((6, 5), float("nan"))
full[u, i] = r
mask = ~torch.isnan(full)
print(mask.sum(), torch.nansum(full), full[mask].mean(), torch.nan_to_num(full).sum(1))
top = torch.topk(torch.where(mask, full, torch.tensor(-1.0)), k=2, dim=1)
print(top.values, top[1])
U, S, V = torch.svd(torch.nan_to_num(full))
rec = U[:, :2] @ torch.diag(S[:2]) @ V[:, :2].t()
print(S, (rec - torch.nan_to_num(full)).norm())
