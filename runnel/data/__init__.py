"""Data sets as NumPy arrays."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from runnel.data.characters import Characters
from runnel.data.cifar10 import cifar10
from runnel.data.classification import Classification
from runnel.data.digits import digits
from runnel.data.imdb import imdb
from runnel.data.mnist import mnist
from runnel.data.sst import Tree, sst
from runnel.data.tiny_shakespeare import tiny_shakespeare

__all__ = ["Characters", "Classification", "Tree", "cifar10", "digits", "imdb", "mnist", "sst", "tiny_shakespeare"]
