"""Dense layers, embeddings, dropout and layers that change shapes."""

from __future__ import annotations

import functools
import operator
from typing import Any

from runnel import ops
from runnel.compat.keras.layers.base import Layer, activated
from runnel.core.dtypes import int64 as _INT
from runnel.nn import functional as F
from runnel.nn.parameter import Parameter


class Dense(Layer):
    """activation(x·kernel + bias) along the last axis; the kernel is (inputs, units)."""

    kernel: Parameter
    bias: Parameter

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.units, self.activation, self.use_bias = units, activation, use_bias
        self._initializers = kernel_initializer, bias_initializer

    def build(self, input_shape: Any) -> None:
        self.add_weight((input_shape[-1], self.units), self._initializers[0], "kernel")
        if self.use_bias:
            self.add_weight((self.units,), self._initializers[1], "bias")

    def call(self, inputs: Any) -> Any:
        value = inputs @ self.kernel
        return activated(value + self.bias if self.use_bias else value, self.activation)


class Embedding(Layer):
    """A vector for each of ``input_dim`` labels: ``embeddings`` is (input_dim, output_dim)."""

    embeddings: Parameter

    def __init__(
        self, input_dim: int, output_dim: int, embeddings_initializer: Any = "uniform", name: str = "", **options: Any
    ) -> None:
        super().__init__(name, **options)
        self.input_dim, self.output_dim = input_dim, output_dim
        self._initializer = embeddings_initializer

    def build(self, input_shape: Any) -> None:
        self.add_weight((self.input_dim, self.output_dim), self._initializer, "embeddings")

    def call(self, inputs: Any) -> Any:
        labels = inputs if inputs.dtype.is_integer else ops.cast(inputs, _INT)
        return F.embedding(labels, self.embeddings)


class Activation(Layer):
    """An activation, by its name or function."""

    def __init__(self, activation: Any, **options: Any) -> None:
        super().__init__(**options)
        self.activation = activation

    def call(self, inputs: Any) -> Any:
        return activated(inputs, self.activation)


class ReLU(Activation):
    def __init__(self, **options: Any) -> None:
        super().__init__("relu", **options)


class Softmax(Activation):
    def __init__(self, **options: Any) -> None:
        super().__init__("softmax", **options)


class Flatten(Layer):
    """Flatten all axes except the batch."""

    def call(self, inputs: Any) -> Any:
        return inputs.flatten(1) if inputs.ndim > 1 else inputs.reshape((-1, 1))


class Reshape(Layer):
    """Reshape the samples; one entry may be -1."""

    def __init__(self, target_shape: tuple[int, ...], **options: Any) -> None:
        super().__init__(**options)
        self.target_shape = tuple(target_shape)

    def call(self, inputs: Any) -> Any:
        return inputs.reshape((inputs.shape[0], *self.target_shape))


class Permute(Layer):
    """Permute the axes of the samples, counted from 1."""

    def __init__(self, dims: tuple[int, ...], **options: Any) -> None:
        super().__init__(**options)
        self.dims = tuple(dims)

    def call(self, inputs: Any) -> Any:
        return inputs.permute((0, *self.dims))


class Rescaling(Layer):
    """x·scale + offset."""

    def __init__(self, scale: float, offset: float = 0.0, **options: Any) -> None:
        super().__init__(**options)
        self.scale, self.offset = scale, offset

    def call(self, inputs: Any) -> Any:
        return inputs * self.scale + self.offset


class Dropout(Layer):
    """In training, zero elements with probability ``rate`` and scale the others."""

    def __init__(self, rate: float, **options: Any) -> None:
        super().__init__(**options)
        self.rate = rate

    def call(self, inputs: Any) -> Any:
        return F.dropout(inputs, self.rate, self.training)


class Add(Layer):
    """The sum of a list of inputs."""

    def call(self, inputs: Any) -> Any:
        return functools.reduce(operator.add, inputs)


class Multiply(Layer):
    """The product of a list of inputs."""

    def call(self, inputs: Any) -> Any:
        return functools.reduce(operator.mul, inputs)


class Concatenate(Layer):
    """Join a list of inputs along an axis."""

    def __init__(self, axis: int = -1, **options: Any) -> None:
        super().__init__(**options)
        self.axis = axis

    def call(self, inputs: Any) -> Any:
        return ops.concat(list(inputs), axis=self.axis)
