"""Parameters and buffers, and their dtypes and devices."""

from __future__ import annotations

from typing import Any, Self

from runnel.core.devices import Device, as_device
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import DType, Dtype, as_dtype, float32
from runnel.core.errors import ArgumentError, DTypeError, UnsupportedError
from runnel.core.html import variable_html
from runnel.core.recall import settles
from runnel.tensor.variable import Variable


@settles
class Parameter(Variable):
    """A Variable that is trained. As an attribute of a Module it is one of the module's ``parameters()``.

    Args:
        data: the first value.
        requires_grad: whether ``backward()`` computes a gradient.
        name: the name in messages; by default, the name of the attribute.
        dtype: the dtype; by default the dtype of ``data``, or float32 for Python numbers.
        device: the device; by default the device of ``data``.

    Attributes:
        is_sparse: whether the gradient has few rows, so that only some optimizers accept the Parameter.

    Example:
        >>> scale = nn.Parameter(rn.ones(3))
        >>> (scale * 2).sum().backward()
        >>> scale.grad
        Tensor([2., 2., 2.], dtype=float32)
    """

    __slots__ = ("is_sparse",)

    _repr_html_ = variable_html

    def __new__(cls, *args: Any, **options: Any) -> Self:
        if hasattr(cls, "__torch_function__"):
            raise UnsupportedError(
                f"[{cls.__name__}] __torch_function__ of a Parameter is not called; give it to a class that holds one."
            )
        made = object.__new__(cls)
        if cls.__new__ is not Parameter.__new__:  # of a class whose own __new__ says what the value is
            Parameter.__init__(made, *args, **options)
        return made

    def __init_subclass__(cls) -> None:
        """Let a class with ``__new__`` and without ``__init__`` take arguments as it likes, as in PyTorch."""
        super().__init_subclass__()
        if "__new__" in cls.__dict__ and "__init__" not in cls.__dict__:
            cls.__init__ = _made  # type: ignore[method-assign, assignment]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return object.__new__, (type(self),), self.__getstate__()

    def __init__(
        self, data: Any, requires_grad: bool = True, *, name: str = "", dtype: Dtype = None, device: Any = None
    ) -> None:
        super().__init__(data, requires_grad=requires_grad, name=name, dtype=dtype, device=device)
        self.is_sparse = False


def _made(parameter: Parameter, *args: Any, **options: Any) -> None:
    """Do nothing after ``__new__``."""


class Buffer(Variable):
    """A Variable that is state and not trained. As an attribute of a Module it is one of the module's ``buffers()``.

    Args:
        data: the first value.
        persistent: include the buffer in ``state_dict()``.
    """

    __slots__ = ("persistent",)

    _repr_html_ = variable_html

    def __init__(self, data: Any, *, persistent: bool = True) -> None:
        super().__init__(data)
        self.persistent = persistent


def named_in(variable: Variable, name: str) -> None:
    """Set the name of ``variable`` to its name in a module, unless it has one. A shared Variable keeps the first."""
    if not variable.name:
        variable.name = name


def parameter_dtype(dtype: Dtype) -> DType:
    """Return the dtype of a layer's Parameters, float32 by default."""
    return float32 if dtype is None else as_dtype(dtype)


def destination(where: tuple[Any, ...], device: Any, dtype: Dtype) -> tuple[Device | None, DType | None]:
    """Return the device and the float dtype that the arguments of ``Module.to`` name; None for no change."""
    for one in where:
        if isinstance(one, TensorLike):
            device, dtype = one.aval.device, one.dtype
        elif isinstance(one, bool) or one is None:
            continue  # PyTorch's non_blocking
        elif is_dtype(one):
            if dtype is not None:
                raise ArgumentError(f"[to] must get one dtype; got {dtype} and {one}.")
            dtype = one
        else:
            if device is not None:
                raise ArgumentError(f"[to] must get one device; got {device} and {one}.")
            device = one
    kind = None if dtype is None else as_dtype(dtype)
    if kind is not None and not kind.is_float:
        raise DTypeError(f"[to] dtype must be floating-point; got {kind.name}.")
    return None if device is None else as_device(device), kind


def is_dtype(value: Any) -> bool:
    """Return whether ``value`` names a dtype."""
    if isinstance(value, Device):
        return False
    try:
        as_dtype(value)
    except (TypeError, ValueError):
        return False
    return True
