"""PyTorch's results for the cases of ``cases.py``, and the same cases in Runnel."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from runnel import nn, optim
from runnel.optim import lr_scheduler, swa_utils
from tests.optim import cases


@cache
def recorded() -> dict[str, Any]:
    """All that ``record.py`` wrote."""
    return json.loads(gzip.decompress(Path(__file__).with_name("pytorch.json.gz").read_bytes()))


def parameters(kind: str, dtype: str = "float64") -> list[nn.Parameter]:
    return [nn.Parameter(cases.start(shape).astype(dtype), name=f"p{i}") for i, shape in enumerate(cases.shapes(kind))]


def pytorchs_state(saved: dict[str, Any]) -> dict[str, Any]:
    """A state of an optimizer as PyTorch has it: JSON made words of the Parameters' numbers and lists of tuples."""
    groups = [
        {key: tuple(v) if isinstance(v, list) and key != "params" else v for key, v in group.items()}
        for group in saved["param_groups"]
    ]
    state = {
        int(number): {key: np.asarray(v) for key, v in retained.items()} for number, retained in saved["state"].items()
    }
    return {"state": state, "param_groups": groups}


def schedule(optimizer: optim.Optimizer, kind: str, options: dict[str, Any]) -> Any:
    return cases.schedule((lr_scheduler, swa_utils), optimizer, kind, options)
