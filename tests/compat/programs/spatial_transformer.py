"""A network that turns its input by an affine map that it computes itself, before it classifies."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, kernel_size=3)
        self.conv2_drop = nn.Dropout2d(0.0)
        self.fc1 = nn.Linear(4 * 5 * 5, 3)
        self.localization = nn.Sequential(nn.Conv2d(1, 4, kernel_size=5), nn.MaxPool2d(2, stride=2), nn.ReLU(True))
        self.fc_loc = nn.Sequential(nn.Linear(4 * 4 * 4, 8), nn.ReLU(True), nn.Linear(8, 3 * 2))

    def stn(self, x):
        xs = self.localization(x)
        theta = self.fc_loc(xs.view(-1, 4 * 4 * 4)).view(-1, 2, 3)
        grid = F.affine_grid(theta, x.size(), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)

    def forward(self, x):
        x = self.stn(x)
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv1(x)), 2))
        return F.log_softmax(self.fc1(x.view(-1, 4 * 5 * 5)), dim=1)


def main():
    rng = np.random.default_rng(14)
    model = Net()
    for _, p in sorted(model.named_parameters()):
        p.data = torch.from_numpy(rng.uniform(-0.2, 0.2, tuple(p.shape)).astype(np.float32))
    model.fc_loc[2].weight.data.mul_(0.1)
    model.fc_loc[2].bias.data.copy_(torch.tensor([1, 0, 0, 0, 1, 0], dtype=torch.float))
    data = torch.from_numpy(rng.normal(size=(6, 1, 12, 12)).astype(np.float32))
    target = torch.tensor([0, 1, 2, 0, 1, 2])
    optimizer = optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        test_loss = F.nll_loss(model(data), target, reduction="sum").item()
        pred = model(data).max(1, keepdim=True)[1]
        correct = pred.eq(target.view_as(pred)).sum().item()
    return [*losses, test_loss, correct]
