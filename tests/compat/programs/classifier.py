"""A small convolutional network on synthetic pictures, trained with momentum, then its accuracy by class."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

CLASSES = ("up", "down", "left", "right")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 3)
        self.pool = nn.MaxPool2d(2, 2)
        self.conv2 = nn.Conv2d(6, 8, 3)
        self.fc1 = nn.Linear(8 * 2 * 2, 20)
        self.fc2 = nn.Linear(20, len(CLASSES))

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        x = torch.flatten(x, 1)
        return self.fc2(F.relu(self.fc1(x)))


def fill(module, rng):
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.from_numpy(rng.uniform(-0.25, 0.25, tuple(p.shape)).astype(np.float32)))


def main():
    rng = np.random.default_rng(1)
    labels = np.arange(48) % 4
    pictures = rng.normal(0, 0.5, (48, 3, 14, 14)).astype(np.float32)
    for picture, label in zip(pictures, labels):
        (picture[:, :7], picture[:, 7:], picture[:, :, :7], picture[:, :, 7:])[label][...] += 1.0
    loader = DataLoader(
        TensorDataset(torch.from_numpy(pictures), torch.from_numpy(labels)), batch_size=8, shuffle=False
    )
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    net = Net().to(device)
    fill(net, rng)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for epoch in range(3):
        running_loss = 0.0
        for i, data in enumerate(loader, 0):
            inputs, targets = data[0].to(device), data[1].to(device)
            optimizer.zero_grad()
            outputs = net(inputs)
            loss = criterion(outputs, targets)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
        losses.append(running_loss / (i + 1))
    correct, total = 0, 0
    by_class = dict.fromkeys(CLASSES, 0)
    net.eval()
    with torch.no_grad():
        for images, targets in loader:
            _, predicted = torch.max(net(images).data, 1)
            total += targets.size(0)
            correct += (predicted == targets).sum().item()
            for target, prediction in zip(targets, predicted):
                by_class[CLASSES[target]] += int(target == prediction)
    return [*losses, correct / total, *by_class.values()]
