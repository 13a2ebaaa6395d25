"""Programs written for PyTorch, run as they stand, or with their import lines changed to ``runnel.compat.torch``.

Nothing of Runnel is imported here: ``scripts/record_pytorch_losses.py`` runs this under PyTorch's own Python.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

PROGRAMS = Path(__file__).parent / "programs"
EXPECTED = Path(__file__).parent / "expected.json"

TORCH = "torch"
RUNNEL = "runnel.compat.torch"


def names() -> list[str]:
    """The programs, by name."""
    return sorted(path.stem for path in PROGRAMS.glob("*.py"))


def imported_from(source: str, library: str) -> str:
    """Return ``source`` with PyTorch's import lines changed to ``library``, and nothing else."""
    source = re.sub(r"^import torch$", f"import {library} as torch", source, flags=re.MULTILINE)
    return re.sub(r"^(from|import) torch\b", rf"\1 {library}", source, flags=re.MULTILINE)


def numbers_in(value: Any) -> list[float]:
    """Return the numbers in what a program prints or returns: in tensors, containers and strings."""
    if isinstance(value, type):
        return []
    if hasattr(value, "detach"):
        value = value.detach().double().tolist() if not value.is_complex() else [value.real, value.imag]
    if isinstance(value, str):
        return [float(number) for number in re.findall(r"(?<![\w.])-?\d+\.?\d*(?:e-?\d+)?(?!\w)", value)]
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [number for part in value for number in numbers_in(part)]
    return [float(value)] if isinstance(value, (bool, int, float)) else []


def run(name: str, library: str) -> dict[str, Any]:
    """Return the numbers of a program with ``library`` in its import lines, and their tolerance.

    The numbers are the result of ``main()``, or what a script without it prints."""
    path = PROGRAMS / f"{name}.py"
    source = path.read_text(encoding="utf-8")
    if library != TORCH:
        source = imported_from(source, library)
    seen: list[Any] = []
    module = sys.modules[f"programs.{name}"] = ModuleType(f"programs.{name}")  # where classes look for theirs
    namespace = vars(module)
    namespace["print"] = lambda *values: seen.append(numbers_in(values))
    exec(compile(source, str(path), "exec"), namespace)
    given = namespace["main"]() if "main" in namespace else seen
    return {"numbers": numbers_in(given), "tolerance": namespace.get("TOLERANCE", 2e-5)}
