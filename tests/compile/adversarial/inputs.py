"""Calls and tensors of adversarial functions."""

from __future__ import annotations

from typing import Any

import runnel as rn
from tests.compile.adversarial.worlds import call, tensor


def warm(*args: Any, **kwargs: Any) -> list[Any]:
    """Three calls."""
    return [call(*args, **kwargs)] * 3


def x() -> rn.Tensor:
    return tensor(1.0, -2.0, 3.0, 0.5)
