"""Checkpoints, autocast, scaling, hooks, pruning, parametrizations, and state dicts that are changed in place."""

import copy
import io
import pickle
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.utils.parametrize as parametrize
import torch.nn.utils.prune as prune
from torch.nn.utils import (
    clip_grad_norm_,
    clip_grad_value_,
    parameters_to_vector,
    remove_weight_norm,
    spectral_norm,
    vector_to_parameters,
    weight_norm,
)
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

TOLERANCE = 5e-4


def fixed(m):
    for i, p in enumerate(m.parameters()):
        p.data = (torch.arange(p.numel(), dtype=p.dtype).reshape(p.shape) * 0.17 + i).sin() * 0.5
    return m


net = fixed(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)))
x = torch.linspace(-1, 1, 12).view(3, 4)
x.requires_grad = True
o = checkpoint(net, x, use_reentrant=False)
o.sum().backward()
print(x.grad, net[0].weight.grad.norm())
x.grad = None
net.zero_grad()
print(checkpoint_sequential(net, 2, x, use_reentrant=False).sum())
print(net[0].weight.grad)
with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
    out = net(x)
    print(
        out.dtype,
        F.softmax(out, -1).dtype,
        torch.is_autocast_enabled(),
        torch.is_autocast_cpu_enabled() if hasattr(torch, "is_autocast_cpu_enabled") else True,
        torch.get_autocast_dtype("cpu"),
    )
scaler = torch.amp.GradScaler("cpu", enabled=True)
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(3):
    opt.zero_grad(set_to_none=True)
    loss = net(x).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True)
    scaler.step(opt)
    scaler.update()
    print(loss.item())
acc = 4
opt.zero_grad()
for i in range(8):
    loss = net(x * (i + 1)).abs().mean() / acc
    loss.backward()
    if (i + 1) % acc == 0 or i + 1 == 8:
        clip_grad_value_(net.parameters(), clip_value=0.5)
        opt.step()
        opt.zero_grad()
        print(loss.item())
v = parameters_to_vector(net.parameters())
print(v.shape, v.sum())
vector_to_parameters(v * 0.9, net.parameters())
print(net[0].bias.sum())
acts = {}


def get(name):
    return lambda m, i, o: acts.update({name: o.detach()})


hs = [m.register_forward_hook(get(n)) for n, m in net.named_modules() if isinstance(m, nn.ReLU)]
net(x)
print({k: v.shape for k, v in acts.items()})
[h.remove() for h in hs]
hh = net.register_forward_pre_hook(lambda m, i: (i[0] * 2,))
hk = net.register_forward_hook(lambda m, args, kwargs, out: out + 1, with_kwargs=True)
print(net(x).sum())
hh.remove()
hk.remove()
bh = net[2].register_full_backward_hook(lambda m, gi, go: (gi[0] * 0.5,))
x.grad = None
net(x).sum().backward()
print(x.grad.norm(), len(net._forward_hooks))
bh.remove()
m = fixed(nn.Linear(4, 3))
prune.l1_unstructured(m, "weight", amount=0.5)
print(m.weight, [n for n, _ in m.named_buffers()], [n for n, _ in m.named_parameters()])
prune.remove(m, "weight")
print(m.weight.count_nonzero(), prune.is_pruned(m))
m = fixed(nn.Linear(4, 3))
prune.ln_structured(m, name="weight", amount=0.34, n=2, dim=0)
prune.custom_from_mask(m, "bias", torch.tensor([1, 0, 1]))
print(m.weight.sum(1), m.bias)
ms = [(fixed(nn.Linear(4, 3)), "weight"), (fixed(nn.Linear(3, 2)), "weight")]
prune.global_unstructured(ms, pruning_method=prune.L1Unstructured, amount=0.2)
print([float((a.weight == 0).sum()) for a, _ in ms])


class Sym(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)

    def right_inverse(self, A):
        return A.triu()


l = fixed(nn.Linear(3, 3))
parametrize.register_parametrization(l, "weight", Sym())
print(torch.allclose(l.weight, l.weight.T), l.parametrizations.weight.original.shape, parametrize.is_parametrized(l))
print(l)
with parametrize.cached():
    print(l(torch.ones(3)))
parametrize.remove_parametrizations(l, "weight", leave_parametrized=True)
import torch.nn.utils.parametrizations as P

wn = P.weight_norm(fixed(nn.Linear(4, 2)))
print(wn.parametrizations.weight.original0.shape, wn(torch.ones(4)))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    w = weight_norm(fixed(nn.Linear(4, 2)), name="weight")
    print([n for n, _ in w.named_parameters()], w.weight_g.flatten())
    remove_weight_norm(w)
    print(w.weight.shape)
sn = spectral_norm(fixed(nn.Linear(4, 2)), n_power_iterations=50)
sn(torch.ones(4))
print(torch.linalg.matrix_norm(sn.weight, 2))
b = io.BytesIO()
torch.save(net.state_dict(), b)
b.seek(0)
n2 = copy.deepcopy(net)
print(n2.load_state_dict(torch.load(b)))
print(torch.equal(n2(x), net(x)))
p = pickle.loads(pickle.dumps(torch.arange(3.0)))
print(p, pickle.loads(pickle.dumps(net))[0].weight.shape)
sd = net.state_dict()
sd2 = {"module." + k: v for k, v in sd.items()}
sd2 = {k.replace("module.", ""): v for k, v in sd2.items()}
print(net.load_state_dict(sd2, strict=True))
sd2.pop("0.weight")
r = net.load_state_dict(sd2, strict=False)
print(r.missing_keys, r.unexpected_keys, r)
try:
    net.load_state_dict({"0.weight": torch.zeros(1)})
except RuntimeError:
    print("RuntimeError")
del sd["4.bias"]
sd["extra"] = torch.zeros(1)
print(len(sd))
e = copy.deepcopy(net).requires_grad_(False).eval()
print(all(not q.requires_grad for q in e.parameters()))
for q, r in zip(e.parameters(), net.parameters()):
    q.data.mul_(0.99).add_(r.data, alpha=0.01)
for k, v in e.state_dict().items():
    if v.dtype.is_floating_point:
        v *= 0.5
        v += 0.5 * net.state_dict()[k].detach()
print(parameters_to_vector(e.parameters()).sum())
for k, v in e.state_dict().items():
    v.copy_(torch.ones_like(v))
print(parameters_to_vector(e.parameters()).sum())
