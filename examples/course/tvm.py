"""As much of TVM's interface as the course's second assignment uses: contexts, and arrays that kernels write into."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

import runnel as rn


class Context(NamedTuple):
    """A device. There is one kind here."""

    kind: str
    number: int


def context(target: str, number: int = 0) -> Context:
    """The device that code for ``target`` runs on."""
    if target not in ("llvm", "cpu"):
        raise ValueError(f"kernels are built for 'llvm'; received {target!r}")
    return Context("cpu", number)


def cpu(number: int = 0) -> Context:
    """The processor."""
    return Context("cpu", number)


class NDArray:
    """An array whose memory stays where it is: ``variable`` holds it, and kernels assign to that."""

    def __init__(self, values: Any, ctx: Context | None = None) -> None:
        self.ctx = ctx or cpu()
        self.variable = rn.Variable(values, requires_grad=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.variable.shape

    @property
    def dtype(self) -> str:
        return self.variable.dtype.name

    def asnumpy(self) -> np.ndarray:
        """A copy of the values."""
        return np.array(self.variable.numpy())

    def copyfrom(self, values: Any) -> None:
        """Take other values of the same shape."""
        values = np.asarray(values)
        if values.shape != self.shape:
            raise ValueError(f"an array of shape {self.shape} takes no values of shape {values.shape}")
        self.variable.assign(rn.asarray(values.astype(self.dtype)))


def array(values: Any, ctx: Context | None = None) -> NDArray:
    """``values`` as an array on a device."""
    return NDArray(np.asarray(values), ctx)


nd = SimpleNamespace(array=array)
ndarray = SimpleNamespace(NDArray=NDArray)
