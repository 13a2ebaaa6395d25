"""Data sets, their samples in order and in batches, and loaders of well-known ones as arrays."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public
from runnel.data.array_dataset import ArrayDataset
from runnel.data.characters import Characters
from runnel.data.cifar10 import cifar10
from runnel.data.cifar100 import cifar100
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
from runnel.data.mnist import fashion_mnist, mnist
from runnel.data.packing import Packed, pack_collate
from runnel.data.randomness import sample_rng
from runnel.data.readers.arrays import open_array, open_arrays
from runnel.data.readers.images import ImageFolder, read_image
from runnel.data.readers.lines import TextLines
from runnel.data.readers.tables import TableDataset
from runnel.data.sampling import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from runnel.data.sharding import DistributedSampler
from runnel.data.splitting import random_split
from runnel.data.sst import Tree, sst
from runnel.data.tiny_shakespeare import tiny_shakespeare
from runnel.data.workers.info import WorkerInfo, get_worker_info

if TYPE_CHECKING:
    from runnel.data import text, transforms

__all__ = [
    "ArrayDataset",
    "BatchSampler",
    "ChainDataset",
    "Characters",
    "Classification",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "ImageFolder",
    "IterableDataset",
    "Packed",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TableDataset",
    "TensorDataset",
    "TextLines",
    "Tree",
    "WeightedRandomSampler",
    "WorkerInfo",
    "cifar10",
    "cifar100",
    "default_collate",
    "default_convert",
    "digits",
    "fashion_mnist",
    "get_worker_info",
    "imdb",
    "mnist",
    "open_array",
    "open_arrays",
    "pack_collate",
    "random_split",
    "read_image",
    "sample_rng",
    "sst",
    "text",
    "tiny_shakespeare",
    "transforms",
]
_LATE = {
    "text": "runnel.data:text",
    "transforms": "runnel.data:transforms",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
