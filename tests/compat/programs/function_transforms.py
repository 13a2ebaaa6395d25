"""Jacobians, Hessians and maps over batches, by transforms of functions and by torch.autograd.functional."""

import numpy as np
import torch
from torch.autograd.functional import hessian, hvp, jacobian, jvp, vjp
from torch.func import grad, jacfwd, jacrev, vmap


def predict(weight, bias, x):
    return torch.tanh(torch.nn.functional.linear(x, weight, bias))


def main():
    rng = np.random.default_rng(22)
    weight, bias, x, v = (torch.from_numpy(rng.normal(size=s)) for s in ((3, 3), (3,), (3,), (3,)))
    batch = torch.from_numpy(rng.normal(size=(4, 3)))
    by_rows = jacrev(predict, argnums=2)(weight, bias, x)
    by_columns = jacfwd(predict, argnums=2)(weight, bias, x)
    assert torch.allclose(by_rows, by_columns)
    numbers = [by_rows.sum().item(), by_rows.norm().item()]
    every = vmap(jacrev(predict, argnums=2), in_dims=(None, None, 0))(weight, bias, batch)
    assert every.shape == (4, 3, 3)
    numbers.append(every.abs().sum().item())
    both = jacrev(predict, argnums=(0, 1))(weight, bias, x)
    numbers += [part.sum().item() for part in both]

    def loss(x):
        return predict(weight, bias, x).pow(2).sum()

    numbers += [torch.func.hessian(loss)(x).sum().item(), grad(loss)(x).sum().item(), hessian(loss, x).trace().item()]
    numbers += [hvp(loss, x, v)[1].sum().item(), vjp(lambda x: predict(weight, bias, x), x, v)[1].sum().item()]
    numbers += [jvp(lambda x: predict(weight, bias, x), x, v)[1].sum().item()]
    at_two = jacobian(lambda a, b: a * b.sum(), (x, v))
    numbers += [at_two[0].sum().item(), at_two[1].sum().item()]
    y, pull = torch.func.vjp(torch.sin, x)
    numbers += [y.sum().item(), pull(torch.ones(3, dtype=torch.float64))[0].sum().item()]
    value, tangent = torch.func.jvp(torch.exp, (x,), (v,))
    numbers += [value.sum().item(), tangent.sum().item()]
    dots = torch.vmap(torch.dot)(batch, batch * 2)
    outer = torch.vmap(lambda a, b: a * b, in_dims=(0, 1), out_dims=1)(weight, weight)
    return [*numbers, *dots.tolist(), outer[0, 1].item()]
