#!/usr/bin/env python3
"""Writes tests/compat/expected.json: what PyTorch gives for the programs of tests/compat/programs.

Run it by a Python that has PyTorch; Runnel is not needed. Names of programs choose some of them; the others stay.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
RUNNING = runpy.run_path(str(ROOT / "tests" / "compat" / "running.py"))


def main(chosen: list[str]) -> None:
    path: Path = RUNNING["EXPECTED"]
    known = json.loads(path.read_text(encoding="utf-8"))["programs"] if path.exists() else {}
    torch.set_num_threads(1)
    programs = {
        name: RUNNING["run"](name, "torch")["numbers"] if not chosen or name in chosen else known[name]
        for name in RUNNING["names"]()
    }
    page = {"written by": "scripts/record_pytorch_losses.py", "pytorch": torch.__version__, "programs": programs}
    path.write_text(json.dumps(page, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
