"""Convolution and pooling, by default with the channels last as in Keras."""

from __future__ import annotations

from typing import Any

from runnel.compat.keras.layers.base import Layer, activated
from runnel.core.errors import ArgumentError
from runnel.nn import functional as F
from runnel.nn.parameter import Parameter


class _Spatial(Layer):
    """The base of image layers. Inside, channels are first; the permutations cancel in the graph."""

    axes = 2

    def __init__(self, data_format: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        if data_format not in (None, "channels_last", "channels_first"):
            raise ArgumentError(
                f"[{type(self).__name__}] data_format must be 'channels_last' or 'channels_first'; got {data_format!r}."
            )
        self.channels_last = data_format != "channels_first"

    def channels_first(self, x: Any) -> Any:
        return x.permute((0, x.ndim - 1, *range(1, x.ndim - 1))) if self.channels_last else x

    def as_given(self, x: Any) -> Any:
        return x.permute((0, *range(2, x.ndim), 1)) if self.channels_last else x

    def sizes(self, value: Any) -> tuple[int, ...]:
        return (value,) * self.axes if isinstance(value, int) else tuple(value)


class _Windows(_Spatial):
    """The base of layers with moving windows: strides, and the padding "valid" or "same"."""

    def __init__(self, padding: str, **options: Any) -> None:
        super().__init__(**options)
        if padding not in ("valid", "same"):
            raise ArgumentError(f"[{type(self).__name__}] padding must be 'valid' or 'same'; got {padding!r}.")
        self.padding = padding

    def padded(self, x: Any, windows: tuple[int, ...], strides: tuple[int, ...], value: float) -> Any:
        """Pad for "same", which yields size / stride positions; an odd element is added at the end."""
        if self.padding == "valid":
            return x
        widths: list[int] = []
        for size, window, stride in zip(x.shape[2:], windows, strides, strict=True):
            missing = max((-(-size // stride) - 1) * stride + window - size, 0)
            widths = [missing // 2, missing - missing // 2, *widths]
        return F.pad(x, widths, value=value) if any(widths) else x


class _Convolution(_Windows):
    """Convolution: the kernel is (*kernel_size, inputs, filters)."""

    kernel: Parameter
    bias: Parameter

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        groups: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        **options: Any,
    ) -> None:
        super().__init__(padding, data_format=data_format, **options)
        self.filters, self.activation, self.use_bias, self.groups = filters, activation, use_bias, groups
        self.kernel_size, self.strides = self.sizes(kernel_size), self.sizes(strides)
        self.dilation_rate = self.sizes(dilation_rate)
        self._initializers = kernel_initializer, bias_initializer

    def build(self, input_shape: Any) -> None:
        channels = input_shape[-1 if self.channels_last else 1]
        shape = (*self.kernel_size, channels // self.groups, self.filters)
        self.add_weight(shape, self._initializers[0], "kernel")
        if self.use_bias:
            self.add_weight((self.filters,), self._initializers[1], "bias")

    def call(self, inputs: Any) -> Any:
        windows = tuple((size - 1) * d + 1 for size, d in zip(self.kernel_size, self.dilation_rate, strict=True))
        x = self.padded(self.channels_first(inputs), windows, self.strides, 0.0)
        weight = self.kernel.permute((self.axes + 1, self.axes, *range(self.axes)))
        convolve = F.conv2d if self.axes == 2 else F.conv1d
        bias = self.bias if self.use_bias else None
        value = convolve(x, weight, bias, self.strides, 0, self.dilation_rate, self.groups)
        return activated(self.as_given(value), self.activation)


class Conv2D(_Convolution):
    """Convolution of images."""


class Conv1D(_Convolution):
    """Convolution of sequences."""

    axes = 1


class _Pooling(_Windows):
    def __init__(
        self,
        pool_size: Any = 2,
        strides: Any = None,
        padding: str = "valid",
        data_format: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(padding, data_format=data_format, **options)
        self.pool_size = self.sizes(pool_size)
        self.strides = self.pool_size if strides is None else self.sizes(strides)


class MaxPooling2D(_Pooling):
    """Return the largest elements of windows."""

    def call(self, inputs: Any) -> Any:
        x = self.padded(self.channels_first(inputs), self.pool_size, self.strides, float("-inf"))
        return self.as_given(F.max_pool2d(x, self.pool_size, self.strides))


class AveragePooling2D(_Pooling):
    """Return the means of windows; with "same", of their elements inside the image."""

    def call(self, inputs: Any) -> Any:
        x = self.channels_first(inputs)
        value = F.avg_pool2d(self.padded(x, self.pool_size, self.strides, 0.0), self.pool_size, self.strides)
        if self.padding == "same":
            inside = self.padded(x * 0 + 1, self.pool_size, self.strides, 0.0)
            value = value / F.avg_pool2d(inside, self.pool_size, self.strides)
        return self.as_given(value)


class GlobalAveragePooling2D(_Spatial):
    """Return the mean of each channel."""

    def call(self, inputs: Any) -> Any:
        return self.channels_first(inputs).mean(axis=(2, 3))


class GlobalMaxPooling2D(_Spatial):
    """Return the largest element of each channel."""

    def call(self, inputs: Any) -> Any:
        return self.channels_first(inputs).max(axis=(2, 3))


class ZeroPadding2D(_Spatial):
    """Pad images with zeros: a number, (rows, columns) or ((top, bottom), (left, right))."""

    def __init__(self, padding: Any = 1, data_format: str | None = None, **options: Any) -> None:
        super().__init__(data_format, **options)
        rows, columns = (padding, padding) if isinstance(padding, int) else padding
        self.widths = [*(columns if isinstance(columns, tuple) else (columns,) * 2),
                       *(rows if isinstance(rows, tuple) else (rows,) * 2)]  # fmt: skip

    def call(self, inputs: Any) -> Any:
        return self.as_given(F.pad(self.channels_first(inputs), self.widths))
