"""A convolutional network on CIFAR-10: 0.75 to 0.80 of the test images after ten epochs.

    python examples/cifar10_cnn.py [--data-dir DIR] [--quick]

Network, training and expected accuracies come from the Rosetta benchmark of deep-learning frameworks
(I. Karmanov et al., github.com/ilkarman/DeepLearningFrameworks): two pairs of 3×3 convolutions and two dense layers,
3,441,592 parameters, stochastic gradient descent with momentum, images as they are.
"""

from __future__ import annotations

import numpy as np
from running import Training, accuracy, options, run

import runnel as rn
from runnel import data, nn, optim
from runnel.nn import functional as F

BATCH = 64


class CNN(nn.Module):
    """Pool before the ReLU: the order changes nothing, and leaves a quarter of the work."""

    def __init__(self) -> None:
        self.conv1 = nn.Conv2d(3, 50, 3, padding=1)
        self.conv2 = nn.Conv2d(50, 50, 3, padding=1)
        self.conv3 = nn.Conv2d(50, 100, 3, padding=1)
        self.conv4 = nn.Conv2d(100, 100, 3, padding=1)
        self.dense1 = nn.Linear(100 * 8 * 8, 512)
        self.dense2 = nn.Linear(512, 10)
        for name, parameter in self.named_parameters():
            if name.endswith("weight"):
                nn.init.xavier_uniform_(parameter)
            else:
                nn.init.zeros_(parameter)

    def forward(self, x: rn.Tensor) -> rn.Tensor:
        x = F.relu(self.conv1(x))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        x = F.dropout(x, 0.25, self.training)
        x = F.relu(self.conv3(x))
        x = F.relu(F.max_pool2d(self.conv4(x), 2))
        x = F.dropout(x, 0.25, self.training)
        x = F.relu(self.dense1(x.flatten(1)))
        x = F.dropout(x, 0.5, self.training)
        return self.dense2(x)


def main() -> None:
    chosen = options(__doc__, epochs=10)
    images = data.cifar10(chosen.data_dir)
    order = np.random.default_rng(chosen.seed)
    model = CNN()
    optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    @rn.compile
    def step(x: rn.Tensor, y: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    @rn.compile
    def labels(x: rn.Tensor) -> rn.Tensor:
        return model(x).argmax(axis=1)

    training = Training("cifar10_cnn", step, chosen.steps)
    tested = 1000 if chosen.quick else len(images.test_y)
    reached = 0.0
    for epoch in range(chosen.epochs):
        model.train()
        loss = training.epoch(images.batches(BATCH, order), len(images.train_y) // BATCH)
        model.eval()
        reached = accuracy(labels, images.test_x[:tested], images.test_y[:tested])
        print(f"epoch {epoch + 1}: loss {loss:.3f}, test accuracy {reached:.4f}, {training.epoch_s[-1]:.1f} s")
    training.report(chosen.json, parameters=model.num_parameters(), test_accuracy=round(reached, 4))


if __name__ == "__main__":
    run(main)
