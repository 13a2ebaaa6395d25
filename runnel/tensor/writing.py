"""Write at basic keys and masks, and read at masks, with NumPy: what ``ops.put`` and ``ops.getitem`` compute.

Positions and masks are not part of a plan or program, so that a loop over them compiles nothing.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from runnel import ops
from runnel.backends import base
from runnel.backends.host.memory import Storage
from runnel.core.avals import aval, row_major
from runnel.core.dtypes import bool_
from runnel.core.recall import LESSON, Recalled
from runnel.ops.promotion import constant, scalar_array
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.handle import Handle
from runnel.tensor.stand_in import StandIn
from runnel.tensor.trace import ACTIVE

_BASIC: Final = frozenset({int, type(None), type(...)})
_SCALARS: Final = frozenset({bool, int, float})


assigned: Final = Recalled(lambda x, key, value: x.update("setitem", lambda before: written(before, key, value)))


def elements_at(x: Any, mask: Any) -> Any:
    """Return the elements that a mask chooses; None where they are recorded or traced: the method of tensors."""
    if ACTIVE.trace is not None or ACTIVE.level is not None or mask.__class__ is not x.__class__:
        return None
    if x.requires_grad and RECORDING.get():
        return None
    array = x.numpy()[mask.numpy()]
    return x._over(aval(array.shape, x._aval.dtype, x._aval.device), Storage.wrap(array), 0, row_major(array.shape))


def written(x: Any, key: Any, value: Any) -> Any:
    """Return ``x`` with ``value`` at ``key``, as :func:`runnel.ops.put` does."""
    if ACTIVE.trace is None and not x.requires_grad and x._level is None and not x._aval.dtype.is_complex:
        if isinstance(key, Handle) and value.__class__ in _SCALARS and _is_mask(x, key):
            return ops.where(key, _number(x, value), x)
        spoiled = LESSON.is_spoiled
        index, new = _index(key), _new(x, value)
        if index is not None and new is not None:
            storage = base.of(x._aval.device).allocate(x._aval.nbytes)
            array = storage.ndarray(x._aval.shape, x._aval.dtype.numpy, writeable=True)
            array[...] = x.numpy()
            try:
                array[index] = new
            except (IndexError, ValueError):
                return ops.put(x, key, value)  # which says what is wrong
            result = x._over(x._aval, storage, 0, row_major(x._aval.shape))
            LESSON.spare(spoiled)
            LESSON.note("write", x, index, new if value.__class__ in _SCALARS else value.read(), result)
            return result
    return ops.put(x, key, value)


def _number(x: Any, value: Any) -> Any:
    return constant(x, value, x._aval.dtype, x._aval.ndim)


def _index(key: Any) -> Any:
    """Return ``key`` for NumPy; None if it is not basic."""
    items = key if key.__class__ is tuple else (key,)
    return items if all(_is_basic(k) for k in items) else None


def _is_mask(x: Any, key: Handle[Any]) -> bool:
    is_mask = key._aval.dtype is bool_ and key._aval.shape == x._aval.shape and key._level is None
    return is_mask and bool(key._aval.shape)


def _is_basic(k: Any) -> bool:
    if k.__class__ is slice:
        return all(each is None or each.__class__ is int for each in (k.start, k.stop, k.step))
    return k.__class__ in _BASIC


def _new(x: Any, value: Any) -> np.ndarray[Any, Any] | None:
    """Return ``value`` as an array of the dtype of ``x``; None if ops convert it, or record it."""
    kind = value.__class__
    if kind in _SCALARS:
        return scalar_array(value, x._aval.dtype)
    if isinstance(value, StandIn):
        value = value.read()
    if not isinstance(value, Handle) or value.requires_grad or value._level is not None:
        return None
    return value.numpy() if value._aval.dtype is x._aval.dtype and value._aval.device is x._aval.device else None
