"""Tensors, and whole training states, in files."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from runnel.io.native import export_native
from runnel.io.safetensors import load_file, save_file
from runnel.io.saving import load, save

__all__ = ["export_native", "load", "load_file", "save", "save_file"]
