"""Functions with derivatives of their own: several results, constants, arguments without gradients, second order."""

import torch
from torch.autograd import Function


class Scaled(Function):
    @staticmethod
    def forward(ctx, x, y, factor):
        ctx.save_for_backward(x, y)
        ctx.factor = factor
        return x * y * factor, x + y

    @staticmethod
    def backward(ctx, grad_product, grad_sum):
        x, y = ctx.saved_tensors
        return grad_product * y * ctx.factor + grad_sum, grad_product * x * ctx.factor + grad_sum, None


class Clipped(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[x < 0] = 0
        return grad_input


class Cube(Function):
    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x**2


class StraightThrough(Function):
    @staticmethod
    def forward(ctx, x):
        assert ctx.needs_input_grad == (True,)
        return (x > 0).float()

    @staticmethod
    def backward(ctx, grad_output):
        return torch.nn.functional.hardtanh(grad_output)


def main():
    x = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    y = torch.tensor([0.5, 4.0, -1.0], requires_grad=True)
    product, total = Scaled.apply(x, y, 2.0)
    (product.sum() + (total**2).sum()).backward()
    numbers = [product.sum().item(), *x.grad.tolist(), *y.grad.tolist()]
    z = torch.tensor([-1.0, 2.0, 0.5], requires_grad=True)
    (Clipped.apply(z) * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    numbers += z.grad.tolist()
    w = torch.tensor(2.0, requires_grad=True)
    (first,) = torch.autograd.grad(Cube.apply(w), w, create_graph=True)
    (second,) = torch.autograd.grad(first, w)
    numbers += [first.item(), second.item()]
    v = torch.tensor([0.3, -0.2], requires_grad=True)
    (StraightThrough.apply(v) * torch.tensor([0.5, 7.0])).sum().backward()
    return numbers + v.grad.tolist()
