"""Dispatch: ops call :func:`apply`, and their operands decide how it runs.

Ops stand below tensors, so that an op's file needs to know no kind of tensor; a Tensor runs the op, a traced Tensor
records it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from runnel.core.avals import Shape, ShapedArray
from runnel.core.dtypes import DType
from runnel.core.errors import TracedValueError
from runnel.core.tables import Op


class ViewStep(NamedTuple):
    """A step from a tensor to a view of it: read, write and layout.

    ``look(x)`` returns the view. ``put(x, new)`` returns x with the elements of the view replaced by new.
    ``layout(shape, strides)`` returns the shape and strides (in elements) of the view.
    """

    look: Callable[[Any], Any]
    put: Callable[[Any, Any], Any]
    layout: Callable[[Shape, Shape], tuple[Shape, Shape]]


class TensorLike:
    """Anything an op can be applied to: it has an aval and knows how to apply an op to itself and its peers."""

    __slots__ = ()

    requires_grad: bool = False  # whether what is computed from it is recorded, to be differentiated

    @property
    def aval(self) -> ShapedArray:
        raise NotImplementedError

    @property
    def shape(self) -> Shape:
        return self.aval.shape

    @property
    def dtype(self) -> DType:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    @property
    def size(self) -> int:
        return self.aval.size

    @property
    def is_weak(self) -> bool:
        """True for a run-time Python scalar: it takes the dtype of the array it meets."""
        return False

    @property
    def is_transposed(self) -> bool:
        """True where the last two axes lie swapped in memory: its gradient had better lie so too."""
        return False

    def summary(self) -> str:
        """Return the shape and dtype for messages."""
        return str(self.aval)

    def known(self) -> Any:
        """Return the values as a NumPy array if they are known now; None if they exist only when a program runs."""
        return None

    def _unknown(self, message: str) -> TracedValueError:
        """Return the error for a value that decides what is computed while :meth:`shaping` returns None."""
        return TracedValueError(message)

    def shaping(self) -> Any:
        """Return the values that the shape of a result depends on. Besides ``known`` values these are values outside
        a function being compiled, which compares them at each later call."""
        return self.known()

    def handle(self) -> Any:
        """Another handle of the same value: what is written to it leaves this one."""
        return self

    def apply_op(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        raise NotImplementedError

    def elements_at(self, mask: Any) -> Any:
        """Return the elements that ``mask`` chooses along the first axes, where this needs no program, since the next
        mask will choose another number of elements; else None."""
        return None

    def apply_view(self, op: Op, attrs: dict[str, Any], shape: Shape | None = None) -> Any:
        """Apply a view op, and give the result ``shape``, which differs in axes of size 1. The result shows elements of
        this value: a write to either is seen through the other."""
        result = self.apply_op(op, (self,), attrs)
        if shape is None or shape == result.shape:
            return result
        return result.apply_op(Op.registry["reshape"], (result,), {"shape": shape})

    def view_by(self, step: ViewStep) -> Any:
        """Return the view that ``step`` makes of this value."""
        return step.look(self)

    def separate(self) -> Any:
        """Return this value as one that shows no other value's elements: functions that copy return it."""
        return self

    def alias(self) -> Any:
        """Return another handle of the same elements: a write to either is seen through the other."""
        return self

    def apply_composed(self, composition: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a function that is composed of ops (:mod:`runnel.core.composed`); by default op by op."""
        return composition.function(*args, **kwargs)

    def views_by(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a function that returns views of this value (:mod:`runnel.core.viewing`)."""
        return function(self, *args, **kwargs)

    def lift(self, array: Any, dtype: DType) -> Any:
        """Return a constant (a Python scalar or a NumPy array) as a value of this kind."""
        raise NotImplementedError


def required(x: TensorLike, message: str) -> Any:
    """Return the values of ``x``, which the shape of a result depends on, as a NumPy array; TracedValueError with
    ``message`` if they exist only when a program runs."""
    values = x.shaping()
    if values is None:
        raise x._unknown(message)
    return values


class RunTimeNumber:
    """A Python number that exists when the program runs. To ops it is a number, until it meets an array."""

    __slots__ = ()

    def as_array(self, dtype: DType, ndim: int) -> Any:
        """Return this number as a value of shape (1,) * ``ndim``, rounded to ``dtype`` like a Python number."""
        raise NotImplementedError


def apply(op: Op, *inputs: Any, **attrs: Any) -> Any:
    """Apply ``op`` to tensors. At least one input is a TensorLike; it decides how the op is carried out. Gives the
    result, or a tuple of results where table ``abstract_eval`` gives a tuple of avals."""
    return inputs[0].apply_op(op, inputs, attrs)
