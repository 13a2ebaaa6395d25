"""Record in ``names.json`` the names in PyTorch's modules for networks, with their arguments' names.

python tests/suites/pytorch/record_names.py     (with torch 2.13, and without Runnel)
"""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

PLACE = Path(__file__).with_name("names.json")
MODULES = (
    "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils", "torch.nn.utils.rnn",
    "torch.nn.utils.parametrizations", "torch.nn.utils.parametrize", "torch.nn.utils.prune",
)  # fmt: skip

# Of these the names alone, of all that can be called: the page tells which are missing.
WHOLE = {
    "torch": torch, "torch.Tensor": torch.Tensor, "torch.special": torch.special, "torch.fft": torch.fft,
    "torch.linalg": torch.linalg, "torch.testing": torch.testing,
}  # fmt: skip


def names(module: ModuleType) -> list[str]:
    """Return the names of a module: its own functions and classes, and the names in ``__all__``."""
    offered = set(getattr(module, "__all__", ()))
    results = []
    for name, value in vars(module).items():
        if name.startswith("_") or isinstance(value, ModuleType) or not callable(value):
            continue
        is_own = getattr(value, "__module__", None) in (module.__name__, None) or module.__name__ == "torch.nn"
        if name in offered or is_own or getattr(value, "__module__", "").startswith("torch._C._nn"):
            results.append(name)
    return sorted(results)


def arguments(value: Any) -> list[str] | None:
    """The names of a callable's arguments; None where they are not known."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return None
    return [p.name for p in parameters]


def main() -> None:
    modules = {path: importlib.import_module(path) for path in MODULES}
    actual = {
        path: {name: arguments(getattr(module, name)) for name in names(module)} for path, module in modules.items()
    }
    methods = [n for n, f in vars(torch.nn.Module).items() if not n.startswith("_") and callable(f)]
    actual["torch.nn.Module"] = {name: arguments(getattr(torch.nn.Module, name)) for name in sorted(methods)}
    whole = {
        path: [name for name in dir(place) if not name.startswith("_") and callable(getattr(place, name, None))]
        for path, place in WHOLE.items()
    }
    recorded = {"torch": torch.__version__, "names": actual, "whole": whole}
    PLACE.write_text(json.dumps(recorded, indent=0) + "\n")


if __name__ == "__main__":
    main()
