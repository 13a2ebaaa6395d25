"""Storages of tensors: whether two tensors show the same memory, and how large it is."""

from __future__ import annotations

import weakref
from typing import Any, Final, NoReturn

from runnel.core.errors import UnsupportedError
from runnel.ops.arguments import Array

_SHARED: Final[list[weakref.ref[Any]]] = []


def share_memory_(x: Any) -> Any:
    """Return ``x``, and refuse to start processes by ``torch.multiprocessing`` as long as it lives."""
    _SHARED.append(weakref.ref(x))
    return x


def is_anything_shared() -> bool:
    """Return whether anything lives that :func:`share_memory_` was called for."""
    _SHARED[:] = [known for known in _SHARED if known() is not None]
    return bool(_SHARED)


class StorageView:
    """The elements of a tensor and of all views of it, as one vector. It can be read and compared, not changed."""

    def __init__(self, x: Any, itemsize: int) -> None:
        view = x.read()._view
        self._base = x if view is None else view.root.base
        self._itemsize = itemsize

    def data_ptr(self) -> int:
        """Return the address of the first element, the same for all that share the storage."""
        return int(self._base.read().address)

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return int(self._base.size * self._base.dtype.itemsize)

    def size(self) -> int:
        """Return the number of elements; bytes for an untyped storage."""
        return self.nbytes() // self._itemsize

    __len__ = size

    def element_size(self) -> int:
        """Return the bytes of an element; 1 for an untyped storage."""
        return self._itemsize

    @property
    def device(self) -> Any:
        """The device."""
        return self._base.device

    def untyped(self) -> StorageView:
        """Return the same storage in bytes."""
        return StorageView(self._base, 1)

    def is_shared(self) -> bool:
        """Return whether other processes see the memory."""
        return False

    def tolist(self) -> list[Any]:
        """Return the elements as numbers."""
        flat = self._base.detach().reshape(-1)
        values: list[Any] = flat.tolist() if self._itemsize > 1 else list(flat.numpy().tobytes())
        return values

    def resize_(self, size: int) -> NoReturn:
        """Refuse: a storage keeps its size."""
        raise UnsupportedError("[resize_] a storage cannot be resized; make a new tensor.")


def untyped_storage(x: Array) -> StorageView:
    """Return the storage of ``x`` in bytes."""
    return StorageView(x, 1)


def storage(x: Array) -> StorageView:
    """Return the storage of ``x`` in elements."""
    return StorageView(x, x.dtype.itemsize)
