"""TinyFlow's data sets: MNIST and CIFAR-10 in batches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runnel import data
from runnel.data.classification import Classification
from runnel.data.download import Folder


class ArrayPacker:
    """Images and labels in batches; after the last whole batch it starts again."""

    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        self.images = images
        self.labels = labels
        self.ptr = 0

    def next_batch(self, batch_size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the next ``batch_size`` images and labels."""
        if self.ptr + batch_size >= len(self.labels):
            self.ptr = 0
        part = slice(self.ptr, self.ptr + batch_size)
        self.ptr = part.stop
        return self.images[part], self.labels[part]


class MNISTData(NamedTuple):
    train: ArrayPacker
    test: ArrayPacker


class CIFAR10Data(NamedTuple):
    train: ArrayPacker
    test: ArrayPacker


def get_mnist(flatten: bool = False, onehot: bool = False, folder: Folder | None = None) -> MNISTData:
    """Return MNIST in a fixed order: 60,000 digits for training, 10,000 for testing.

    ``folder`` has the files; by default they are downloaded once.
    """
    images, labels = _joined(data.mnist(folder))
    order = np.random.RandomState(1234).permutation(len(labels))
    images = images[order].reshape((-1, 784) if flatten else (-1, 1, 28, 28))
    labels = labels[order].astype(np.float32)
    if onehot:
        labels = (labels[:, None] == np.arange(10)).astype(np.float32)
    count = len(labels) * 6 // 7
    return MNISTData(ArrayPacker(images[:count], labels[:count]), ArrayPacker(images[count:], labels[count:]))


def get_cifar10(swap_axes: bool = False, folder: Folder | None = None) -> CIFAR10Data:
    """Return CIFAR-10 with pixels in [0, 1]; with ``swap_axes`` the channels are last."""
    every = data.cifar10(folder)
    packers = []
    for images, labels in ((every.train_x, every.train_y), (every.test_x, every.test_y)):
        pixels = images.reshape(-1, 3, 32, 32)
        packers.append(ArrayPacker(pixels.transpose(0, 2, 3, 1) if swap_axes else pixels, labels.astype(np.float32)))
    return CIFAR10Data(*packers)


def _joined(every: Classification) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate([every.train_x, every.test_x]), np.concatenate([every.train_y, every.test_y])
