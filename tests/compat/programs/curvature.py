"""Jacobians, Hessians and products with them, tangent kernels and gradients of samples, by transforms and by hand."""

import logging

import torch
from torch import nn
from torch.autograd.functional import hessian as hess2, jacobian, vjp as vjp2
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from torch.nn import functional as F

TOLERANCE = 5e-4

logging.basicConfig(level=logging.WARNING)
torch.manual_seed(0)
W = torch.sin(torch.arange(12.0)).view(3, 4)
b = torch.cos(torch.arange(3.0))
x = torch.linspace(-1, 1, 4)


def predict(weight, bias, x):
    return F.linear(x, weight, bias).tanh()


def compute_jac(xp):
    jr = [torch.autograd.grad(predict(W, b, xp), xp, vec)[0] for vec in torch.eye(3)]
    return torch.stack(jr)


xp = x.clone().requires_grad_()
print(compute_jac(xp))
_, vjp_fn = vjp(lambda x: predict(W, b, x), x)
(ft,) = vmap(vjp_fn)(torch.eye(3))
print(ft, torch.allclose(ft, jacrev(predict, argnums=2)(W, b, x)))
J = jacrev(predict, argnums=(0, 1))(W, b, x)
print(J[0].shape, J[1])
print(jacfwd(predict, argnums=2)(W, b, x))
H = hessian(predict, argnums=2)(W, b, x)
print(H.shape, H[0])
X = torch.stack([x, x * 2])
print(vmap(jacrev(predict, argnums=2), in_dims=(None, None, 0))(W, b, X).shape)
print(
    jacobian(lambda a, c: a * c.sum(), (torch.ones(2), torch.arange(2.0))),
    hess2(lambda a: (a**3).sum(), torch.tensor([1.0, 2.0])),
    vjp2(lambda a: a.exp(), torch.zeros(2), torch.ones(2)),
)


def hvp(f, primals, tangents):
    return jvp(grad(f), primals, tangents)[1]


f = lambda x: x.sin().sum()
print(
    hvp(f, (x,), (torch.ones(4),)),
    vmap(grad(lambda t: t**3))(torch.arange(3.0)),
    grad(grad(torch.sin))(torch.tensor(1.0)),
)


class Net(nn.Module):
    def __init__(s):
        super().__init__()
        s.c = nn.Conv2d(1, 2, 3)
        s.l = nn.Linear(8, 3)

    def forward(s, x):
        return F.log_softmax(s.l(F.relu(s.c(x)).flatten(1)), 1)


net = Net()
for i, p in enumerate(net.parameters()):
    p.data = torch.sin(torch.arange(p.numel()) * 0.9 + i).view_as(p) * 0.5
data, tgt = (torch.cos(torch.arange(64.0)).view(4, 1, 4, 4), torch.tensor([0, 1, 2, 0]))
params = {k: v.detach() for k, v in net.named_parameters()}


def loss_fn(params, d, t):
    return F.nll_loss(functional_call(net, params, d.unsqueeze(0)), t.unsqueeze(0))


per = vmap(grad(loss_fn), (None, 0, 0))(params, data, tgt)
for i in range(4):
    net.zero_grad()
    F.nll_loss(net(data[i : i + 1]), tgt[i : i + 1]).backward()
    assert all((torch.allclose(per[k][i], p.grad, atol=1e-05) for k, p in net.named_parameters()))
print({k: tuple(v.shape) for k, v in per.items()}, per["l.bias"])


def ntk(fx, params, x1, x2):
    j1 = vmap(jacrev(fx), (None, 0))(params, x1)
    j2 = vmap(jacrev(fx), (None, 0))(params, x2)
    return sum((torch.einsum("Naf,Mbf->NMab", a.flatten(2), b_.flatten(2)) for a, b_ in zip(j1.values(), j2.values())))


print(ntk(lambda p, x: functional_call(net, p, (x.unsqueeze(0),)).squeeze(0), params, data[:2], data[2:]).sum((2, 3)))
ff = vmap(grad(loss_fn), in_dims=(None, 0, 0), randomness="different", chunk_size=2)
print(ff(params, data, tgt)["c.bias"])
out, jf = linearize(lambda x: x**2, x)
print(out, jf(torch.ones(4)))
fim = sum(torch.outer(g, g) for g in torch.cat([v.flatten(1) for v in per.values()], 1)) / 4
print(fim.shape, fim.trace())
with torch.no_grad():
    vec = torch.nn.utils.parameters_to_vector(net.parameters())
    d = torch.sin(torch.arange(vec.numel()).float())
    ls = []
    for a in (-0.1, 0, 0.1):
        torch.nn.utils.vector_to_parameters(vec + a * d, net.parameters())
        ls.append(F.nll_loss(net(data), tgt).item())
    print(ls)
l = F.nll_loss(net(data), tgt)
gs = torch.autograd.grad(l, net.parameters(), create_graph=True)
fl = torch.cat([g.reshape(-1) for g in gs])
v = torch.ones_like(fl)
hv = torch.autograd.grad(fl @ v, list(net.parameters()))
print(sum(h.sum() for h in hv), fl.norm())
