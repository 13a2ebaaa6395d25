"""Data sets of images under torchvision's names."""

from runnel.compat.torchvision.datasets.refusals import REFUSED
from runnel.core.namespaces import namespace

_PLACES = """
cifar: CIFAR10 CIFAR100 STL10 SVHN
folder: DatasetFolder FakeData ImageFolder VisionDataset
mnist: EMNIST FashionMNIST KMNIST MNIST QMNIST
"""
PLACED = {
    name: f"{__name__}.{row.partition(':')[0]}:{name}"
    for row in _PLACES.strip().replace("\n    ", " ").splitlines()
    for name in row.partition(":")[2].split()
} | {name: f"{__name__}.refusals:{name}" for name in REFUSED}
__all__, __getattr__, __dir__ = namespace(__name__, PLACED, checked=False)
