"""A tour of tensors: making them, indexing, reductions with positions, shapes, in-place methods."""

import numpy as np
import torch


def main():
    data = [[1.0, 2.0, 3.0], [6.0, 5.0, 4.0]]
    x = torch.tensor(data)
    y = torch.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3))
    numbers = [
        x.sum().item(),
        (x @ y.T).sum().item(),
        x.mul(y).mean().item(),
        x.std().item(),
        x.var(dim=1).sum().item(),
    ]
    values, indices = x.max(dim=1)
    numbers += [values.sum().item(), indices.sum().item(), torch.max(x).item(), torch.max(x, y).sum().item()]
    ordered, places = torch.sort(x, dim=1, descending=True)
    numbers += [ordered[1, 0].item(), places[0, 0].item(), x.argmax().item(), x.norm().item(), x.median().item()]
    ones, zeros = torch.ones_like(x), torch.zeros(2, 3)
    joined = torch.cat([ones, zeros, x], dim=1)
    assert joined.shape == (2, 9) and torch.stack([x, y]).size() == (2, 2, 3)
    assert torch.equal(ones, torch.ones(2, 3)) and not torch.equal(ones, zeros)
    assert [t.shape[1] for t in joined.split(4, dim=1)] == [4, 4, 1]
    z = x.clone()
    z.add_(5)
    z[:, 1] = 0
    z[z > 9] = -1
    numbers += [z.sum().item(), x[0, -1].item(), x[:, [0, 2]].sum().item(), x.t()[2].sum().item()]
    assert x.dtype == torch.float32 and torch.tensor([1, 2]).dtype == torch.int64 and x.long().dtype == torch.long
    assert isinstance(x, torch.Tensor) and torch.is_tensor(x) and x.dim() == 2 and x.numel() == 6 and len(x) == 2
    a, b = torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")
    numbers += [(a * 3 + b).float().sum().item(), torch.nonzero(x > 3).sum().item(), torch.where(x > 3)[1].sum().item()]
    numbers += [x.view(3, 2)[2, 0].item(), x.unsqueeze(0).expand(4, 2, 3).sum().item(), x.repeat(2, 2).sum().item()]
    numbers += [
        torch.einsum("ij,kj->ik", x, y).sum().item(),
        x.cumsum(dim=1)[1, 2].item(),
        x.clamp(min=2, max=4).sum().item(),
    ]
    numbers += [
        x.topk(2, dim=1).values.sum().item(),
        x.flip(0)[0, 0].item(),
        x.permute(1, 0).contiguous().view(-1)[1].item(),
    ]
    top = torch.nn.functional.one_hot(indices, num_classes=3)
    assert top.dtype == torch.int64
    numbers += [top.sum().item(), float(x.new_zeros(2).sum()), x.new_full((2,), 3.5).sum().item()]
    assert f"{x.sum():.2f}" == "21.00" and x.tolist() == data and x.numpy().shape == (2, 3)
    return numbers
