"""The page of PyTorch's names is up to date, and nearly all of them are there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT: dict[str, Any] = runpy.run_path(str(ROOT / "scripts" / "pytorch_names.py"), run_name="names")


def test_the_page_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert SCRIPT["main"](["--check"]) == 0, capsys.readouterr().err


def test_nearly_all_names_are_there() -> None:
    there, every = map(int, re.findall(r"(\d+) of (\d+) names are there", SCRIPT["text"]())[0])
    assert there / every >= 0.95
