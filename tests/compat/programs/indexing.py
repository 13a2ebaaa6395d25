"""Elements read, masked and written by every kind of key."""

import torch


def wave(*shape: int) -> torch.Tensor:
    count = 1
    for size in shape:
        count *= size
    return torch.cos(torch.arange(count).float() * 0.7).reshape(shape)


def main() -> list[float]:
    x = wave(4, 5).clone()
    x[x < 0] = 0
    x[1:3, ::2] += 1
    x[:, -1] *= 2
    x[[0, 2], [1, 3]] = 7.0
    x[..., 0] = torch.arange(4.0)
    x[torch.tensor([True, False, True, False])] -= 1
    rows = torch.tensor([[0, 1], [2, 3]])
    found = [
        x.sum(), x[rows].sum(), x[:, rows].shape[1], x[-1, 2], x[1].argmax(), x[x > 1].mean(),
        x.index_select(1, torch.tensor([4, 0])).sum(), x.take(torch.tensor([3, 8])).sum(),
        x.masked_fill(x > 2, -1).sum(), torch.gather(x, 1, rows.repeat(2, 1)).sum(),
        torch.zeros(4, 5).scatter_add(1, rows.repeat(2, 1), x).sum(), x.scatter(0, rows, 9.0).sum(),
    ]  # fmt: skip
    leaf = wave(3, 4).requires_grad_()
    (leaf[[0, 0, 2]] * leaf[:, 1:2]).sum().backward()
    y = torch.zeros(3, 3)
    y.fill_diagonal_(2)
    y.add_(1).mul_(2).clamp_(max=5)
    y.sub_(torch.ones(3), alpha=2)
    y.index_add_(0, torch.tensor([0, 0]), torch.ones(2, 3))
    y.masked_fill_(y == 0, -1)
    return [float(value) for value in [*found, *leaf.grad.flatten(), *y.flatten()]]
