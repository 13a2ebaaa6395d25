"""The signature of a call: the kinds of its arguments and the context; programs are looked up by it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from runnel.backends.context import CompileContext
from runnel.core.dtypes import DType
from runnel.tensor.tensor import Tensor


def kinds(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Hashable:
    """Equal for calls that one program may serve. Not more than a first sorting: guards decide."""
    return tuple(map(_kind, args)), tuple([(name, _kind(value)) for name, value in kwargs.items()])


def _kind(value: Any) -> Hashable:
    if type(value) is Tensor:
        return value._aval
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype
    return id(type(value))


class Circumstances(NamedTuple):
    """What a program depends on besides what its function reads."""

    context: CompileContext
    recording: bool  # whether the mode is that of ``no_grad``, or not
    autocast: DType | None


def difference(was: Circumstances, now: Circumstances) -> str:
    """How circumstances differ, as a sentence; "" where they do not."""
    if was.recording != now.recording:
        return f"gradients are {'' if now.recording else 'not '}recorded (no_grad, enable_grad)"
    if was.context.threads != now.context.threads:
        return f"the number of threads is {now.context.threads}, was {was.context.threads}"
    if was.context.target is not now.context.target:
        return f"the target is {now.context.target.name}, was {was.context.target.name}"
    if was.context is not now.context:
        return "switches of the compiler have changed"
    if was.autocast is not now.autocast:
        dtypes = [dtype.name if dtype is not None else "off" for dtype in (now.autocast, was.autocast)]
        return f"autocast is {dtypes[0]}, was {dtypes[1]}"
    return ""
