"""Data sets, their samples in order and in batches, and loaders of well-known ones as arrays."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from runnel.core import public
from runnel.data.characters import Characters
from runnel.data.cifar10 import cifar10
from runnel.data.classification import Classification
from runnel.data.collating import default_collate, default_convert
from runnel.data.datasets import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
)
from runnel.data.digits import digits
from runnel.data.imdb import imdb
from runnel.data.loader import DataLoader
from runnel.data.mnist import mnist
from runnel.data.randomness import sample_rng
from runnel.data.sampling import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from runnel.data.splitting import random_split
from runnel.data.sst import Tree, sst
from runnel.data.tiny_shakespeare import tiny_shakespeare
from runnel.data.workers.info import WorkerInfo, get_worker_info

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "Characters",
    "Classification",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "Tree",
    "WeightedRandomSampler",
    "WorkerInfo",
    "cifar10",
    "default_collate",
    "default_convert",
    "digits",
    "get_worker_info",
    "imdb",
    "mnist",
    "random_split",
    "sample_rng",
    "sst",
    "tiny_shakespeare",
]

public.offer(globals(), __all__)
del public
