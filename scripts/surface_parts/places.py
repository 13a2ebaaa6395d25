"""Where the files are that `scripts/surface.py` reads and writes."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "runnel"
METHODS = "tensor/function_methods.py"
REFERENCE = ROOT / "docs" / "reference.md"
