"""Copy and pickle tensors: their memory and attributes.

A copy has separate memory. Views of one block become views of one copied block, so that a large array and its slices
are copied once. A small part of a large block is copied without the rest.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from runnel.backends.host.memory import Storage, filled
from runnel.core.errors import GradientError
from runnel.tensor.handle import Handle

_SMALL: Final = 1 << 16  # bytes: a block up to this size goes along with any view of it
_CHANGING: Final = (
    "_storage", "_layout", "_serial", "requires_grad", "_array", "_leaf", "_record", "_view", "_views", "_is_rebound"
)  # fmt: skip
_SHARE: Final = 8  # a larger one does with a view that spans at least this part of it, 1/8


def tensor_state(tensor: Handle[Any]) -> dict[str, Any]:
    """Return the state of a tensor for pickle: its value, whether it requires a gradient, ``.grad``, and user
    attributes. The tape and the Variable it may have been read from are left out."""
    storage, offset, strides = memory_of(tensor)
    state = {"aval": tensor.aval, "storage": storage, "offset": offset, "strides": strides}
    return state | {"requires_grad": tensor.requires_grad, "grad": tensor._grad, "attributes": added_to(tensor)}


def added_to(tensor: Handle[Any]) -> dict[str, Any]:
    """Return the attributes that the user has set. Attributes of tensors themselves have a default in the class."""
    return {name: value for name, value in tensor.__dict__.items() if not hasattr(type(tensor), name)}


def restore_tensor(tensor: Handle[Any], state: dict[str, Any]) -> None:
    """Make a blank tensor what ``state`` says."""
    tensor._aval = state["aval"]
    tensor._storage = state["storage"]
    tensor._layout = (state["offset"], state["strides"])
    if state["requires_grad"]:
        tensor.requires_grad = True
    if state["grad"] is not None:
        tensor._grad = state["grad"]
    tensor.__dict__.update(state["attributes"])


def refuse_non_leaf(tensor: Handle[Any]) -> None:
    """GradientError if ``tensor`` hangs on a tape: a deep copy would lose its gradient without a word."""
    if tensor.requires_grad and tensor._record is not None:
        raise GradientError(
            f"[deepcopy] the tensor of shape {tensor.shape} was computed from tensors that require gradients, and its "
            "tape cannot be copied; copy x.detach()."
        )


def memory_of(tensor: Handle[Any]) -> tuple[Storage, int, tuple[int, ...]]:
    """Return the memory to copy, and the offset (from its first byte) and strides of the tensor in it, in elements."""
    array = tensor.numpy()  # raises for a traced tensor
    storage, (offset, strides) = tensor._storage, tensor._layout
    item = array.itemsize
    if storage is not None and storage.is_whole:
        span = sum((n - 1) * abs(s) for n, s in zip(array.shape, array.strides, strict=True)) + item
        if storage.nbytes <= _SMALL or span * _SHARE >= storage.nbytes:
            return storage, offset + storage.below // item, strides
    return _alone(array)


def _alone(array: np.ndarray) -> tuple[Storage, int, tuple[int, ...]]:
    """Copy only the values, in their order of axes. Values that are repeated without being stored stay so."""
    repeated = [step == 0 for step in array.strides]
    once = array[tuple(slice(0, 1) if r else slice(None) for r in repeated)]
    dense = np.array(once, order="K")
    strides = [0 if r else s // array.itemsize for r, s in zip(repeated, dense.strides, strict=True)]
    outer_first = sorted(range(dense.ndim), key=lambda axis: -dense.strides[axis])
    return filled(dense.transpose(outer_first).reshape(-1).view(np.uint8)), 0, tuple(strides)


def handle_state(tensor: Handle[Any]) -> tuple[Any, ...]:
    """Return the present state of a handle, for :func:`restore`."""
    return dict(tensor.__dict__), *[getattr(tensor, name) for name in _CHANGING]


def restore(tensor: Handle[Any], state: tuple[Any, ...]) -> None:
    """Make a handle, which a trace has given another value, what it was."""
    tensor.__dict__.clear()
    tensor.__dict__.update(state[0])
    for name, value in zip(_CHANGING, state[1:], strict=True):
        setattr(tensor, name, value)
