"""Programs written for PyTorch, run as they stand, or with their import lines changed to ``runnel.compat.torch``.

Nothing of Runnel is imported here: ``scripts/record_pytorch_losses.py`` runs this under PyTorch's own Python.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent / "programs"
EXPECTED = Path(__file__).parent / "expected.json"

TORCH = "torch"
RUNNEL = "runnel.compat.torch"


def names() -> list[str]:
    """The programs, by name."""
    return sorted(path.stem for path in PROGRAMS.glob("*.py"))


def imported_from(source: str, library: str) -> str:
    """``source`` with PyTorch's import lines changed to those of ``library``, and nothing else."""
    source = re.sub(r"^import torch$", f"import {library} as torch", source, flags=re.MULTILINE)
    return re.sub(r"^(from|import) torch\b", rf"\1 {library}", source, flags=re.MULTILINE)


def run(name: str, library: str) -> dict[str, Any]:
    """What a program gives with ``library`` in its import lines: its numbers, and how far they may be off."""
    path = PROGRAMS / f"{name}.py"
    source = path.read_text(encoding="utf-8")
    if library != TORCH:
        source = imported_from(source, library)
    namespace: dict[str, Any] = {"__name__": f"programs.{name}"}
    exec(compile(source, str(path), "exec"), namespace)
    return {"numbers": [float(number) for number in namespace["main"]()], "tolerance": namespace.get("TOLERANCE", 2e-5)}
