"""Parameters that are computed from others: a symmetric weight, an orthogonal one, weight norm, spectral norm."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.utils.parametrize as parametrize


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)


class MatrixExponential(nn.Module):
    def forward(self, X):
        return torch.matrix_exp(X)


class Skew(nn.Module):
    def forward(self, X):
        A = X.triu(1)
        return A - A.transpose(-1, -2)


def linear(rng, rows, columns):
    layer = nn.Linear(columns, rows)
    layer.weight.data.copy_(torch.from_numpy(rng.normal(0, 0.5, (rows, columns)).astype(np.float32)))
    layer.bias.data.zero_()
    return layer


def main():
    rng = np.random.default_rng(18)
    layer = linear(rng, 3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert torch.allclose(layer.weight, layer.weight.T) and parametrize.is_parametrized(layer)
    x = torch.from_numpy(rng.normal(size=(5, 3)).astype(np.float32))
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    numbers = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = (layer(x) - 1).pow(2).mean()
        loss.backward()
        optimizer.step()
        numbers.append(loss.item())
    parametrize.remove_parametrizations(layer, "weight")
    assert torch.allclose(layer.weight, layer.weight.T) and not parametrize.is_parametrized(layer)
    turned = linear(rng, 3, 3)
    parametrize.register_parametrization(turned, "weight", Skew())
    parametrize.register_parametrization(turned, "weight", MatrixExponential())
    weight = turned.weight
    numbers += [(weight @ weight.T).diagonal().sum().item(), torch.dist(weight.T @ weight, torch.eye(3)).item() < 1e-5]
    turned(x).sum().backward()
    numbers.append(turned.parametrizations.weight.original.grad.abs().sum().item())
    normed = nn.utils.parametrizations.weight_norm(linear(rng, 2, 3))
    normed(x).pow(2).sum().backward()
    numbers += [normed.parametrizations.weight.original0.grad.sum().item(), normed.weight.norm().item()]
    return [float(n) for n in numbers]
