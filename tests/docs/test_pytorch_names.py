"""PyTorch's names for networks: nearly all exist here, and each missing one has a reason."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

SCRIPT: dict[str, Any] = runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "pytorch_names.py"))


def test_nearly_all_names_exist() -> None:
    every, there = re.findall(r"Of the (\d+) names .*?, (\d+) \(", SCRIPT["text"]())[0]
    assert int(there) / int(every) >= 0.95
