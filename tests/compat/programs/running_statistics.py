"""Normalizations with statistics that move, as modules and as functions of plain tensors, saved and loaded in part."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(2)])
        self.norm = nn.BatchNorm1d(2)
        self.gain = nn.Parameter(torch.ones(2))
        self.register_buffer("scale", torch.tensor(3.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = F.leaky_relu(layer(x)) * self.scale
        return self.norm(x) * self.gain


def main() -> list[float]:
    net, other = Net(), Net()
    with torch.no_grad():
        for i, parameter in enumerate(net.parameters()):
            parameter.copy_(torch.sin(torch.arange(parameter.numel()).float() + i).reshape(parameter.shape))
    x = torch.cos(torch.arange(8).float()).reshape(4, 2)
    for _ in range(3):
        net(x)
    state = net.state_dict()
    del state["gain"]
    report = other.load_state_dict(state, strict=False)
    other.eval()
    mean, variance = torch.zeros(2), torch.ones(2)
    for momentum in (0.1, 0.5):
        F.batch_norm(x, mean, variance, training=True, momentum=momentum)
    image = torch.cos(torch.arange(60).float()).reshape(2, 6, 5)
    means, variances = torch.zeros(6), torch.ones(6)
    F.instance_norm(image, means, variances, momentum=0.3)
    return [
        float(value)
        for value in [
            len(report.missing_keys), other.norm.num_batches_tracked, *other(x).flatten(), *mean, *variance, *means,
            *variances, nn.GroupNorm(3, 6)(image).pow(3).sum(), nn.LayerNorm([6, 5])(image).pow(3).sum(),
        ]
    ]  # fmt: skip
