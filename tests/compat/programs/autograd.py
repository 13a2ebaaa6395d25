"""A tour of automatic differentiation: backward, accumulation, no_grad, detach, gradients of gradients."""

import torch
from torch import autograd


def main():
    x = torch.ones(2, 2, requires_grad=True)
    y = x + 2
    z = y * y * 3
    out = z.mean()
    assert y.grad_fn is not None and x.is_leaf and not y.is_leaf
    out.backward()
    numbers = [out.item(), x.grad.sum().item()]
    a = torch.tensor([2.0, 3.0], requires_grad=True)
    b = torch.tensor([6.0, 4.0], requires_grad=True)
    q = 3 * a**3 - b**2
    q.backward(gradient=torch.tensor([1.0, 1.0]))
    numbers += a.grad.tolist() + b.grad.tolist()
    for _ in range(2):
        (a * a).sum().backward()
    numbers += a.grad.tolist()
    a.grad.zero_()
    with torch.no_grad():
        w = a * 2
        a -= 0.5
    assert not w.requires_grad and a.requires_grad and not (a * 2).detach().requires_grad
    numbers += a.tolist()
    t = torch.tensor(1.5, requires_grad=True)
    (first,) = autograd.grad(t**4, t, create_graph=True)
    (second,) = autograd.grad(first, t)
    numbers += [first.item(), second.item()]
    u = torch.tensor([1.0, 2.0], requires_grad=True)
    v = u.exp()
    v.retain_grad()
    seen = []
    handle = v.register_hook(lambda g: seen.append(g.sum().item()))
    (v * v).sum().backward()
    handle.remove()
    numbers += seen + v.grad.tolist() + u.grad.tolist()
    (gone,) = autograd.grad((u * 2).sum(), t, allow_unused=True)
    assert gone is None
    return numbers
