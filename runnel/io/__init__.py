"""Tensors, and whole training states, in files."""

from runnel.core.namespaces import namespace

NAMES = {
    "export_native": "runnel.io.native:export_native",
    "load": "runnel.io.saving:load",
    "load_file": "runnel.io.safetensors:load_file",
    "save": "runnel.io.saving:save",
    "save_file": "runnel.io.safetensors:save_file",
}

__all__, __getattr__, __dir__ = namespace(__name__, NAMES, checked=False)
