"""The real data sets, where they are: ``RUNNEL_DATA`` names the folder, else ``../shared/data`` beside the checkout."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("RUNNEL_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")


def folder_of(data_set: str) -> Path:
    """The folder of a data set; skips the test where there is none."""
    folder = FOLDER / data_set
    if not folder.is_dir():
        pytest.skip(f"no data set '{data_set}' in {FOLDER}; RUNNEL_DATA names the folder")
    return folder
