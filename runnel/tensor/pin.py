"""Pins: the memory of Variables that programs are bound to."""

from __future__ import annotations

from typing import Final

from runnel.tensor.tensor import Tensor


class Pin:
    """Keeps a Variable's memory alive for the programs that are bound to it. They hold the pin and not the tensor, so
    that whoever holds the tensor is somebody who reads its value."""

    __slots__ = ("address", "offset", "storage")

    def __init__(self, tensor: Tensor) -> None:
        self.storage: Final = tensor._storage
        self.offset: Final = tensor._layout[0]
        self.address: Final = tensor.address

    def holds(self, tensor: Tensor) -> bool:
        """Whether this is the memory of ``tensor``: values can be parts of one block."""
        return tensor._storage is self.storage and tensor._layout[0] == self.offset
