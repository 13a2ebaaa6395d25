"""Objects that array functions read as tensors: Variables, and the ``data`` of a leaf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol, Self
from weakref import WeakValueDictionary

import numpy as np

from runnel import ops
from runnel.core.avals import ShapedArray
from runnel.core.dtypes import DType
from runnel.core.errors import TracedValueError
from runnel.core.tables import Op
from runnel.tensor.grad_mode import recording
from runnel.tensor.handle import T
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.traced_values import counted


class StandIn(ArrayMethods[T]):
    """A cell that holds a tensor. ``update`` puts another in."""

    __slots__ = ()
    is_cell = True

    def update(self, name: str, change: Callable[[T], T]) -> Self:
        """Put in what ``change`` makes of the present value; on an error that stays. ``name`` is for messages."""
        raise NotImplementedError

    def __setitem__(self, key: Any, value: Any) -> None:
        """Put in the present value with ``value`` at ``key``."""
        self.update("setitem", lambda x: ops.put(x, key, value))

    def apply_op(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        tensors = tuple([x.read() for x in inputs])
        return tensors[0].apply_op(op, tensors, attrs)

    def apply_composed(self, composition: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.read().apply_composed(composition, args, kwargs)

    def lift(self, array: Any, dtype: DType) -> T:
        return self.read().lift(array, dtype)

    def known(self) -> np.ndarray | None:
        return self.read().known()

    def _unknown(self, message: str) -> TracedValueError:
        return counted(TracedValueError(message))

    def contiguous(self, memory_format: Any = None) -> T:
        """Return the present value in dense row-major memory."""
        return self.read().contiguous()

    def handle(self) -> T:
        """Return a tensor with the present value, through which gradients flow."""
        return self.read().handle()

    def detach(self) -> T:
        """Return the present value without a tape."""
        return self.read().detach()

    def numpy(self) -> np.ndarray:
        """Return the present value as a read-only NumPy array, which later changes do not reach."""
        return self.read().numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.read().__array__(dtype, copy)

    def item(self) -> bool | int | float | complex:
        """Return the only element as a Python number."""
        return self.read().item()

    def tolist(self) -> Any:
        return self.read().tolist()

    def __float__(self) -> float:
        return float(self.read())

    def __int__(self) -> int:
        return int(self.read())

    def __bool__(self) -> bool:
        return bool(self.read())

    def __index__(self) -> int:
        return self.read().__index__()

    def __len__(self) -> int:
        return len(self.read())

    def __hash__(self) -> int:
        return id(self)


class Owner(Protocol[T]):
    """The owner of a :class:`Data`: a leaf or a Variable."""

    @property
    def aval(self) -> ShapedArray: ...

    def detach(self) -> T: ...

    def update(self, name: str, change: Callable[[T], T]) -> object: ...


class Data(StandIn[T]):
    """A leaf's value without its tape; writing to it changes the leaf as under ``no_grad``. ``x.data`` creates it.

    After ``x.data = y``, earlier ``Data`` objects keep the previous value, as in PyTorch, where ``x`` gets other
    memory: ``kept = x.data; x.data = y; x.data = kept`` restores ``x``.
    """

    __slots__ = ("__weakref__", "_owner")

    def __init__(self, owner: Owner[T]) -> None:
        self._owner = owner

    @property
    def aval(self) -> ShapedArray:
        return self._owner.aval

    def read(self) -> T:
        return self._owner.detach()

    def update(self, name: str, change: Callable[[T], T]) -> Self:
        """Give the owner the value that ``change`` makes of its present one, without a tape."""
        with recording(False):
            self._owner.update(name, change)
        return self

    def __repr__(self) -> str:
        return repr(self.read())


_HANDED_OUT: Final = WeakValueDictionary[int, Data[Any]]()  # by the id of the owner, which lives as long as its Data


def _data(owner: Owner[Any]) -> Data[Any]:
    known = _HANDED_OUT.get(id(owner))
    if known is None:
        known = _HANDED_OUT[id(owner)] = Data(owner)
    return known


def _replace(owner: Owner[Any], value: Any) -> None:
    """Give ``owner`` another value, and what stood for it until now the one that it had."""
    before = _HANDED_OUT.get(id(owner))
    kept = None if before is None or before is value else owner.detach()
    Data(owner).update("data", lambda x: value.read() if isinstance(value, ArrayMethods) else x.lift(value, x.dtype))
    if before is not None and kept is not None:
        before._owner = kept
        del _HANDED_OUT[id(owner)]


data_of: property = property(_data, _replace, doc="The value without a tape. Writing to it changes the leaf.")
