"""Layers that take their sizes from the first input, and Parameters without a shape."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from runnel.core.dtypes import Dtype
from runnel.core.errors import ShapeError
from runnel.nn.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    Convolution,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from runnel.nn.derived import with_own_class
from runnel.nn.linear import Linear
from runnel.nn.module import Module
from runnel.nn.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from runnel.nn.parameter import Parameter, parameter_dtype
from runnel.ops.arguments import Array
from runnel.tensor.creation import zeros
from runnel.tensor.variable import Variable


class _Uninitialized(Variable):
    """A Variable of no elements until ``materialize`` gives it a shape."""

    def __init__(self, dtype: Dtype = None, **options: Any) -> None:
        super().__init__(zeros((0,), parameter_dtype(dtype)), **options)

    @property
    def is_uninitialized(self) -> bool:
        """Return whether the Variable has no shape yet."""
        return self.size == 0

    def materialize(self, shape: Any, device: Any = None, dtype: Dtype = None) -> None:
        """Fill with zeros of ``shape``. Raise an error in a compiled function."""
        kind = self.dtype if dtype is None else parameter_dtype(dtype)
        self.become(zeros(tuple(shape), kind, device=self.aval.device if device is None else device))


class UninitializedParameter(_Uninitialized, Parameter):
    """A Parameter without a shape, until ``materialize(shape)`` sets one."""

    def __init__(self, requires_grad: bool = True, *, dtype: Dtype = None) -> None:
        super().__init__(dtype, requires_grad=requires_grad)


class UninitializedBuffer(_Uninitialized):
    """A buffer without a shape, until ``materialize(shape)`` sets one."""

    def __init__(self, *, dtype: Dtype = None) -> None:
        super().__init__(dtype=dtype)


_SIZE: Final = 1  # the size that a lazy layer is made with


class _Lazy(Module):
    """The base of layers that become a ``cls_to_become`` at their first call, or when a state is loaded."""

    cls_to_become: ClassVar[type[Module]]
    unknown: ClassVar[tuple[str, ...]] = ("weight",)

    def forget_sizes(self) -> None:
        """Replace the Parameters and buffers by ones without a shape."""
        for name in self.unknown:
            value = self.__dict__.get(name)
            if isinstance(value, Parameter):
                setattr(self, name, UninitializedParameter(value.requires_grad, dtype=value.dtype))
            elif isinstance(value, Variable):
                setattr(self, name, UninitializedBuffer(dtype=value.dtype))
        self.register_load_state_dict_pre_hook(_fitted)

    def has_uninitialized_params(self) -> bool:
        """Return whether sizes are still unknown."""
        values = (self.__dict__.get(name) for name in self.unknown)
        return any(isinstance(x, _Uninitialized) and x.is_uninitialized for x in values)

    def take_size(self, size: int) -> None:
        """Make the Parameters for inputs with this number of channels, with initial values."""
        raise NotImplementedError

    def initialize_parameters(self, x: Any) -> None:
        """Make the Parameters for the input ``x``."""
        raise NotImplementedError

    def forward(self, x: Array) -> Any:
        if self.has_uninitialized_params():
            self.initialize_parameters(x)
        self.settle()
        return self.forward(x)

    def settle(self) -> None:
        """Become a layer of ``cls_to_become``."""
        with_own_class(self, self.cls_to_become)
        self._load_state_dict_pre_hooks = tuple(h for h in self._load_state_dict_pre_hooks if h.function is not _fitted)


def _fitted(module: _Lazy, state: Any, prefix: str, *_: Any) -> None:
    """Give a lazy layer the shapes of the state that is about to be loaded."""
    for name in module.unknown:
        value = module.__dict__.get(name)
        if isinstance(value, _Uninitialized) and value.is_uninitialized and prefix + name in state:
            value.materialize(tuple(state[prefix + name].shape))
            if name == "weight":
                module.sizes_from(value.shape)


class LazyLinear(_Lazy, Linear):
    """``Linear`` that takes ``in_features`` from its first input."""

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, *, dtype: Dtype = None) -> None:
        Linear.__init__(self, _SIZE, out_features, bias, dtype=dtype)
        self.in_features = 0
        self.forget_sizes()

    def sizes_from(self, shape: tuple[int, ...]) -> None:
        self.in_features = shape[1]

    def initialize_parameters(self, x: Any) -> None:
        self.in_features = x.shape[-1]
        weight: Any = self.weight
        weight.materialize((self.out_features, self.in_features))
        self.reset_parameters()


class _LazyConvolution(_Lazy, Convolution):
    """The base of convolutions that take ``in_channels`` from their first input."""

    cls_to_become: ClassVar[type[Any]]
    in_axis: ClassVar[int] = 1  # of the weight

    def __init__(self, out_channels: int, kernel_size: Any, *args: Any, **kwargs: Any) -> None:
        groups = kwargs.get("groups", 1)
        self.cls_to_become.__init__(self, groups, out_channels, kernel_size, *args, **kwargs)
        self.in_channels = 0
        self.forget_sizes()

    def sizes_from(self, shape: tuple[int, ...]) -> None:
        self.in_channels = shape[1] * self.groups if self.in_axis else shape[0]

    def initialize_parameters(self, x: Any) -> None:
        if x.ndim not in (self.spatial + 1, self.spatial + 2):
            raise ShapeError(
                f"[{type(self).__name__}] x must have a batch axis, a channel axis and {self.spatial} spatial ones; "
                f"got shape {x.shape}."
            )
        self.in_channels = x.shape[-self.spatial - 1]
        if self.in_channels % self.groups:
            raise ShapeError(
                f"[{type(self).__name__}] groups={self.groups} must divide the channels; got {self.in_channels}."
            )
        channels = (self.out_channels, self.in_channels)
        first, second = channels if self.in_axis else channels[::-1]
        weight: Any = self.weight
        weight.materialize((first, second // self.groups, *self.kernel_size))
        self.reset_parameters()


class _LazyConvTranspose(_LazyConvolution):
    in_axis = 0


class _LazyNorm(_Lazy):
    """The base of normalizations that take ``num_features`` from their first input."""

    cls_to_become: ClassVar[type[Any]]
    unknown = ("weight", "bias", "running_mean", "running_var")
    num_features: int

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.cls_to_become.__init__(self, _SIZE, *args, **kwargs)
        self.num_features = 0
        self.forget_sizes()

    def sizes_from(self, shape: tuple[int, ...]) -> None:
        self.num_features = shape[0]

    def channel_axis(self, ndim: int) -> int:
        """Return the axis of the channels of an input with ``ndim`` axes."""
        return 1

    def initialize_parameters(self, x: Any) -> None:
        layer: Any = self
        self.num_features = x.shape[self.channel_axis(x.ndim)]
        for name in self.unknown:
            value = self.__dict__.get(name)
            if isinstance(value, _Uninitialized):
                value.materialize((self.num_features,))
        layer.reset_parameters()


class _LazyInstanceNorm(_LazyNorm):
    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        bias: bool = True,
        dtype: Dtype = None,
    ) -> None:
        super().__init__(eps, momentum, affine, track_running_stats, bias=bias, dtype=dtype)

    def channel_axis(self, ndim: int) -> int:
        layer: Any = self
        return 0 if ndim == layer.axes[0] - 1 else 1


def _lazy(name: str, kind: type[Module], base: type[_Lazy]) -> Any:
    """Return the class of lazy layers that become a ``kind``."""
    doc = f"``{kind.__name__}`` that takes the number of its input channels from its first input."
    return type(name, (base, kind), {"__module__": __name__, "__doc__": doc, "cls_to_become": kind})


LazyConv1d = _lazy("LazyConv1d", Conv1d, _LazyConvolution)
LazyConv2d = _lazy("LazyConv2d", Conv2d, _LazyConvolution)
LazyConv3d = _lazy("LazyConv3d", Conv3d, _LazyConvolution)
LazyConvTranspose1d = _lazy("LazyConvTranspose1d", ConvTranspose1d, _LazyConvTranspose)
LazyConvTranspose2d = _lazy("LazyConvTranspose2d", ConvTranspose2d, _LazyConvTranspose)
LazyConvTranspose3d = _lazy("LazyConvTranspose3d", ConvTranspose3d, _LazyConvTranspose)
LazyBatchNorm1d = _lazy("LazyBatchNorm1d", BatchNorm1d, _LazyNorm)
LazyBatchNorm2d = _lazy("LazyBatchNorm2d", BatchNorm2d, _LazyNorm)
LazyBatchNorm3d = _lazy("LazyBatchNorm3d", BatchNorm3d, _LazyNorm)
LazyInstanceNorm1d = _lazy("LazyInstanceNorm1d", InstanceNorm1d, _LazyInstanceNorm)
LazyInstanceNorm2d = _lazy("LazyInstanceNorm2d", InstanceNorm2d, _LazyInstanceNorm)
LazyInstanceNorm3d = _lazy("LazyInstanceNorm3d", InstanceNorm3d, _LazyInstanceNorm)
