"""Outputs of batches as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from runnel.core.errors import ArgumentError


def joined(outputs: Iterable[Any]) -> Any:
    """Arrays of the batches joined along their first axis, in the structure that the outputs have."""
    listed = list(outputs)
    if not listed:
        raise ArgumentError("[predict] the data give no batches.")
    return _joined(listed)


def _joined(outputs: list[Any]) -> Any:
    first = outputs[0]
    if isinstance(first, Mapping):
        return {key: _joined([output[key] for output in outputs]) for key in first}
    if isinstance(first, list | tuple):
        return type(first)(_joined(list(part)) for part in zip(*outputs, strict=True))
    arrays = [output.numpy() for output in outputs]
    return np.concatenate(arrays) if arrays[0].ndim else np.stack(arrays)
