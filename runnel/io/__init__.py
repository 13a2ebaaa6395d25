"""Tensors in files."""

from runnel.io.safetensors import load_file, save_file

__all__ = ["load_file", "save_file"]
