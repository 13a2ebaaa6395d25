"""Data sets as NumPy arrays."""

from runnel.data.classification import Classification
from runnel.data.digits import digits
from runnel.data.mnist import mnist

__all__ = ["Classification", "digits", "mnist"]
