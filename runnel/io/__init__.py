"""Tensors, and whole training states, in files."""

from runnel.io.safetensors import load_file, save_file
from runnel.io.saving import load, save

__all__ = ["load", "load_file", "save", "save_file"]
