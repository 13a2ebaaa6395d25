"""Recurrent layers, attention and normalization."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel import ops
from runnel.compat.keras.layers.base import Layer, initial
from runnel.core.errors import ArgumentError
from runnel.nn import functional as F
from runnel.nn.parameter import Parameter
from runnel.nn.recurrent import GRU as TorchGRU, LSTM as TorchLSTM
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class BatchNormalization(Layer):
    """Normalize each channel (``axis``) over the batch, then scale and shift it.

    In evaluation, and if the layer is not trainable, it uses moving averages: moving ← momentum·moving + (1 -
    momentum)·batch.
    """

    gamma: Parameter
    beta: Parameter
    moving_mean: Variable
    moving_variance: Variable

    def __init__(
        self,
        axis: int = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.axis, self.momentum, self.epsilon, self.center, self.scale = axis, momentum, epsilon, center, scale

    def build(self, input_shape: Any) -> None:
        channels = (input_shape[self.axis],)
        if self.scale:
            self.add_weight(channels, "ones", "gamma")
        if self.center:
            self.add_weight(channels, "zeros", "beta")
        self.register_buffer("moving_mean", np.zeros(channels, np.float32))
        self.register_buffer("moving_variance", np.ones(channels, np.float32))

    def call(self, inputs: Any) -> Any:
        axis = self.axis % inputs.ndim
        broad = tuple(-1 if i == axis else 1 for i in range(inputs.ndim))
        if self.training and self.trainable:
            axes = tuple(i for i in range(inputs.ndim) if i != axis)
            mean, variance = inputs.mean(axis=axes), inputs.var(axis=axes, correction=0)
            for moving, now in ((self.moving_mean, mean), (self.moving_variance, variance)):
                moving.assign(moving.value * self.momentum + now.without_tape() * (1 - self.momentum))
        else:
            mean, variance = self.moving_mean.value, self.moving_variance.value
        value = (inputs - mean.reshape(broad)) / ops.sqrt(variance.reshape(broad) + self.epsilon)
        if self.scale:
            value = value * self.gamma.reshape(broad)
        return value + self.beta.reshape(broad) if self.center else value


class LayerNormalization(Layer):
    """Normalize each sample along the last axis, then scale and shift it."""

    gamma: Parameter
    beta: Parameter

    def __init__(self, epsilon: float = 1e-3, center: bool = True, scale: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self.epsilon, self.center, self.scale = epsilon, center, scale

    def build(self, input_shape: Any) -> None:
        if self.scale:
            self.add_weight((input_shape[-1],), "ones", "gamma")
        if self.center:
            self.add_weight((input_shape[-1],), "zeros", "beta")

    def call(self, inputs: Any) -> Any:
        gamma, beta = self.gamma if self.scale else None, self.beta if self.center else None
        return F.layer_norm(inputs, (inputs.shape[-1],), gamma, beta, self.epsilon)


class _Recurrent(Layer):
    """A batch-first layer of ``nn`` with Keras's initial kernels and biases."""

    kind: Any = TorchLSTM

    def __init__(self, units: int, return_sequences: bool = False, go_backwards: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.units, self.return_sequences, self.go_backwards = units, return_sequences, go_backwards

    def build(self, input_shape: Any) -> None:
        inputs, units = input_shape[-1], self.units
        self.cell = self.kind(inputs, units, batch_first=True)
        rows = self.cell.weight_hh_l0.shape[0]
        self.cell.weight_ih_l0.assign(_transposed(initial("glorot_uniform", (inputs, rows))))
        noise = initial("normal", (rows, units))
        q, _ = np.linalg.qr(noise.numpy() if isinstance(noise, Tensor) else noise)
        self.cell.weight_hh_l0.assign(q.astype(np.float32))
        self.cell.bias_ih_l0.assign(self.first_bias(rows))
        self.cell.bias_hh_l0.assign(np.zeros(rows, np.float32))

    def first_bias(self, rows: int) -> np.ndarray:
        return np.zeros(rows, np.float32)

    def call(self, inputs: Any) -> Any:
        outputs, _ = self.cell(ops.flip(inputs, axis=1) if self.go_backwards else inputs)
        return outputs if self.return_sequences else outputs[:, -1]


class LSTM(_Recurrent):
    """Long short-term memory. The bias of the forget gate starts at 1.

    It returns the last output, or all of them with ``return_sequences``.
    """

    def first_bias(self, rows: int) -> np.ndarray:
        bias = np.zeros(rows, np.float32)
        bias[self.units : 2 * self.units] = 1
        return bias


class GRU(_Recurrent):
    """Gated recurrent units with the reset gate after the product (Keras's ``reset_after=True``)."""

    kind = TorchGRU


class MultiHeadAttention(Layer):
    """Attention of ``query`` to ``value`` in several heads; kernels are (inputs, heads · head size)."""

    output_kernel: Parameter
    output_bias: Parameter

    def __init__(
        self, num_heads: int, key_dim: int, value_dim: int | None = None, dropout: float = 0.0, **options: Any
    ) -> None:
        super().__init__(**options)
        self.num_heads, self.key_dim, self.value_dim, self.rate = num_heads, key_dim, value_dim or key_dim, dropout

    def build(self, input_shape: Any) -> None:
        shape = input_shape[0] if isinstance(input_shape, list) else input_shape
        for name, size in (("query", self.key_dim), ("key", self.key_dim), ("value", self.value_dim)):
            self.add_weight((shape[-1], self.num_heads * size), "glorot_uniform", f"{name}_kernel")
            self.add_weight((self.num_heads * size,), "zeros", f"{name}_bias")
        self.add_weight((self.num_heads * self.value_dim, shape[-1]), "glorot_uniform", "output_kernel")
        self.add_weight((shape[-1],), "zeros", "output_bias")

    def call(self, query: Any, value: Any = None, key: Any = None, use_causal_mask: bool = False) -> Any:
        if value is None:
            raise ArgumentError("[MultiHeadAttention] call it on query and value: attention(x, x) for self-attention.")
        key = value if key is None else key
        queries, keys, values = (
            self._heads(x @ getattr(self, f"{name}_kernel") + getattr(self, f"{name}_bias"))
            for name, x in (("query", query), ("key", key), ("value", value))
        )
        rate = self.rate if self.training else 0.0
        heads = F.scaled_dot_product_attention(queries, keys, values, dropout_p=rate, is_causal=use_causal_mask)
        joined = heads.permute((0, 2, 1, 3)).flatten(2)
        return joined @ self.output_kernel + self.output_bias

    def _heads(self, x: Any) -> Any:
        return x.reshape((x.shape[0], x.shape[1], self.num_heads, -1)).permute((0, 2, 1, 3))


def _transposed(values: Any) -> np.ndarray:
    array = values.numpy() if isinstance(values, Tensor) else values
    return np.ascontiguousarray(array.T)
