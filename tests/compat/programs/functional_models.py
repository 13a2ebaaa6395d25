"""Learning to learn and models as functions: gradients of samples, ensembles, Jacobians."""

import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vjp,
    vmap,
)

TOLERANCE = 5e-4


def net(params, x):
    x = F.linear(x, params[0], params[1])
    x = torch.relu(x)
    x = F.linear(x, params[2], params[3])
    x = torch.relu(x)
    return F.linear(x, params[4], params[5])


rng = np.random.RandomState(0)
params = [
    torch.tensor(rng.randn(*s) * 0.4, dtype=torch.float32, requires_grad=True)
    for s in ((8, 1), (8,), (8, 8), (8,), (1, 8), (1,))
]
opt = torch.optim.Adam(params, lr=0.01)


def sample_tasks(outer, inner):
    As = torch.from_numpy(rng.uniform(0.1, 0.5, outer)).float()
    phases = torch.from_numpy(rng.uniform(0.0, np.pi, outer)).float()

    def sample(n):
        xs = torch.from_numpy(rng.uniform(-5, 5, (outer, n, 1))).float()
        return (xs, As.reshape(-1, 1, 1) * torch.sin(xs + phases.reshape(-1, 1, 1)))

    return (*sample(inner), *sample(inner))


for it in range(3):
    opt.zero_grad()

    def get_loss_for_task(x1, y1, x2, y2):

        def inner_loss(params, x1, y1):
            return ((net(params, x1) - y1) ** 2).mean()

        grads = grad(inner_loss)(params, x1, y1)
        new_params = [params[i] - 0.1 * grads[i] for i in range(len(params))]
        v_f = net(new_params, x2)
        return torch.nn.MSELoss()(v_f, y2)

    inner_losses = vmap(get_loss_for_task)(*sample_tasks(4, 5))
    loss2 = sum(inner_losses) / 4
    loss2.backward()
    opt.step()
    print(loss2.item())
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
for p in model.parameters():
    p.data.copy_(torch.tensor(rng.randn(*p.shape)))
params = {k: v.detach() for k, v in model.named_parameters()}
buffers = {k: v.detach() for k, v in model.named_buffers()}


def compute_loss(params, buffers, sample, target):
    batch, targets = (sample.unsqueeze(0), target.unsqueeze(0))
    predictions = functional_call(model, (params, buffers), (batch,))
    return F.cross_entropy(predictions, targets)


ft = vmap(grad(compute_loss), in_dims=(None, None, 0, 0))
data, tgt = (torch.tensor(rng.randn(5, 3)).float(), torch.tensor([0, 1, 1, 0, 1]))
per = ft(params, buffers, data, tgt)
print({k: v.shape for k, v in per.items()}, per["0.weight"].norm(2, dim=(1, 2)))
x = torch.tensor(rng.randn(3)).float()
f = lambda x: functional_call(model, params, (x,))
print(jacrev(f)(x), torch.allclose(jacrev(f)(x), jacfwd(f)(x), atol=1e-06), hessian(lambda x: f(x).sum())(x))
print(jvp(f, (x,), (torch.ones(3),)), vjp(f, x)[1](torch.ones(2)))
print(
    vmap(jacrev(f))(data).shape,
    torch.func.vmap(torch.dot)(data, data),
    torch.vmap(torch.mv, in_dims=(None, 0))(torch.eye(3), data).shape,
)
g, v = grad_and_value(lambda x: f(x).pow(2).sum())(x)
print(g, v)
models = [copy.deepcopy(model) for _ in range(3)]
sp, sb = stack_module_state(models)
base = copy.deepcopy(models[0]).to("meta") if False else models[0]
fm = lambda p, b, x: functional_call(base, (p, b), (x,))
print(vmap(fm, in_dims=(0, 0, None))(sp, sb, data).sum())
print(
    vmap(lambda x: x.sum(), in_dims=1, out_dims=0)(torch.arange(6.0).view(2, 3)),
    vmap(lambda x, y: (x * y, x + y), (0, None))(torch.arange(3.0), torch.tensor(2.0)),
)
print(
    torch.autograd.functional.hvp(lambda x: (x**3).sum(), x, torch.ones(3)),
    torch.autograd.functional.vhp(lambda x: (x**3).sum(), x, torch.ones(3))[1],
    torch.autograd.functional.jvp(f, x, torch.ones(3))[1],
)
vs, gs = torch.func.grad_and_value(lambda p: p["a"] ** 2 + p["b"])({"a": torch.tensor(3.0), "b": torch.tensor(1.0)})[
    ::-1
]
print(vs, gs)
