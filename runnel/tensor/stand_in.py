"""The base class of objects that array functions read as tensors: Variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from runnel import ops
from runnel.core.avals import Shape
from runnel.core.dispatch import ViewStep
from runnel.core.dtypes import DType
from runnel.core.errors import TracedValueError
from runnel.core.recall import recalled
from runnel.core.tables import Op
from runnel.tensor.handle import T
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.traced_values import counted


class StandIn(ArrayMethods[T]):
    """A cell that holds a tensor. ``update`` puts another in."""

    __slots__ = ()

    def update(self, name: str, change: Callable[[T], T]) -> Self:
        """Put in what ``change`` makes of the present value; on an error that stays. ``name`` is for messages."""
        raise NotImplementedError

    def __setitem__(self, key: Any, value: Any) -> None:
        """Put in the present value with ``value`` at ``key``."""
        self.update("setitem", lambda x: ops.put(x, key, value))

    def apply_op(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        tensors = tuple([x.read() for x in inputs])
        return tensors[0].apply_op(op, tensors, attrs)

    def apply_view(self, op: Op, attrs: dict[str, Any], shape: Shape | None = None) -> Any:
        return self.read().apply_view(op, attrs, shape)

    def view_by(self, step: ViewStep) -> Any:
        return self.read().view_by(step)

    def separate(self) -> T:
        return self.handle()

    def alias(self) -> T:
        aliased: T = self.read().alias()
        return aliased

    def apply_composed(self, composition: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.read().apply_composed(composition, args, kwargs)

    def views_by(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        value = self.read()
        made = function(value, *args, **kwargs)
        return value.alias() if made is value else made  # a value alone follows no writes

    def lift(self, array: Any, dtype: DType) -> T:
        return self.read().lift(array, dtype)

    def known(self) -> np.ndarray | None:
        return self.read().known()

    def _unknown(self, message: str) -> TracedValueError:
        return counted(TracedValueError(message))

    def contiguous(self, memory_format: Any = None) -> T:
        """Return a view of all elements, which lie in dense row-major memory."""
        return self.alias()

    def __pos__(self) -> T:
        return self.alias()

    def handle(self) -> T:
        """Return a tensor with the present value, through which gradients flow."""
        return self.read().handle()

    @recalled
    def detach(self) -> T:
        """Return a view of all elements without a tape."""
        return self.read().detach()

    def detach_(self) -> Self:
        """Require no gradient from now on; returns the Variable itself."""
        self.requires_grad = False
        return self

    def without_tape(self) -> T:
        """Return the present value, without a tape."""
        return self.read().without_tape()

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Return the present value as a read-only NumPy array, which later changes do not reach."""
        return self.read().numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.read().__array__(dtype, copy)

    def item(self) -> bool | int | float | complex:
        """Return the only element as a Python number."""
        return self.read().item()

    def tolist(self) -> Any:
        return self.read().tolist()

    def __format__(self, spec: str) -> str:
        """Format the number of a value without axes, as of a tensor; without ``spec``, show what has axes as usual."""
        return format(self.read(), spec) if spec or not self.ndim else str(self)

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
