"""A polynomial fitted to a sine, in six ways: by hand, with gradients, nn, optim, a module, and a Function."""

import math

import torch

STEPS = 40


def points():
    x = torch.linspace(-math.pi, math.pi, 200)
    return x, torch.sin(x)


def by_hand():
    x, y = points()
    a, b, c, d = (torch.tensor(v) for v in (0.1, 0.2, -0.1, 0.05))
    for _ in range(STEPS):
        error = a + b * x + c * x**2 + d * x**3 - y
        loss = error.pow(2).mean().item()
        slope = 2.0 * error / len(x)
        a = a - 1e-3 * slope.sum()
        b = b - 1e-3 * (slope * x).sum()
        c = c - 1e-3 * (slope * x**2).sum()
        d = d - 1e-3 * (slope * x**3).sum()
    return loss


def with_gradients():
    x, y = points()
    weights = [torch.tensor(v, requires_grad=True) for v in (0.1, 0.2, -0.1, 0.05)]
    a, b, c, d = weights
    for _ in range(STEPS):
        loss = (a + b * x + c * x**2 + d * x**3 - y).pow(2).mean()
        loss.backward()
        with torch.no_grad():
            for w in weights:
                w -= 1e-3 * w.grad
                w.grad = None
    return loss.item()


def powers():
    x, y = points()
    return x.unsqueeze(-1).pow(torch.tensor([1, 2, 3])), y


def start(model):
    linear = model[0]
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[0.2, -0.1, 0.05]]))
        linear.bias.fill_(0.1)


def with_nn():
    xx, y = powers()
    model = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1))
    start(model)
    loss_fn = torch.nn.MSELoss(reduction="mean")
    for _ in range(STEPS):
        loss = loss_fn(model(xx), y)
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for param in model.parameters():
                param -= 1e-3 * param.grad
    return loss.item()


def with_optim():
    xx, y = powers()
    model = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1))
    start(model)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        loss = torch.nn.functional.mse_loss(model(xx), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


class Cubic(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Parameter(torch.tensor(0.1))
        self.b = torch.nn.Parameter(torch.tensor(0.2))
        self.c = torch.nn.Parameter(torch.tensor(-0.1))
        self.d = torch.nn.Parameter(torch.tensor(0.05))

    def forward(self, x):
        return self.a + self.b * x + self.c * x**2 + self.d * x**3

    def string(self):
        return f"y = {self.a.item():.4f} + {self.b.item():.4f} x + {self.c.item():.4f} x^2 + {self.d.item():.4f} x^3"


def with_module():
    x, y = points()
    model = Cubic()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        loss = torch.nn.MSELoss()(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert model.string().startswith("y = ")
    return loss.item()


class Legendre3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


def with_function():
    x, y = points()
    a, b, c, d = (torch.full((), v, requires_grad=True) for v in (0.0, -1.0, 0.0, 0.3))
    for _ in range(STEPS):
        loss = (a + b * Legendre3.apply(c + d * x) - y).pow(2).mean()
        loss.backward()
        with torch.no_grad():
            for w in (a, b, c, d):
                w -= 1e-3 * w.grad
                w.grad = None
    return loss.item()


def main():
    return [by_hand(), with_gradients(), with_nn(), with_optim(), with_module(), with_function()]
