"""Layers under Keras' names: their values beside NumPy's, in both orders of channels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.compat.keras as keras
from runnel.compat.keras import layers as L
from runnel.core.errors import ArgumentError


def images(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((2, 7, 6, 3)).astype(np.float32)


def windows(x: np.ndarray, size: tuple[int, int], stride: int, same: bool, fill: float) -> list[list[np.ndarray]]:
    """The windows of channels-last images, by TensorFlow's rule for "same"."""
    pads = [(0, 0)] * 4
    for axis, window in zip((1, 2), size, strict=True):
        if same:
            missing = max((-(-x.shape[axis] // stride) - 1) * stride + window - x.shape[axis], 0)
            pads[axis] = (missing // 2, missing - missing // 2)
    x = np.pad(x, pads, constant_values=fill)
    rows, columns = ((x.shape[axis] - window) // stride + 1 for axis, window in zip((1, 2), size, strict=True))
    return [
        [x[:, i * stride : i * stride + size[0], j * stride : j * stride + size[1]] for j in range(columns)]
        for i in range(rows)
    ]


def over_windows(found: list[list[np.ndarray]], function: Any) -> np.ndarray:
    return np.stack([np.stack([function(w) for w in row], axis=1) for row in found], axis=1)


@pytest.mark.parametrize(("stride", "padding"), [(1, "same"), (2, "same"), (2, "valid")])
def test_convolution_and_pooling(stride: int, padding: str) -> None:
    x, same = images(), padding == "same"
    convolution = L.Conv2D(5, (3, 2), strides=stride, padding=padding)
    value = convolution(rn.asarray(x)).numpy()
    kernel, bias = convolution.get_weights()
    assert kernel.shape == (3, 2, 3, 5) and not bias.any()
    found = over_windows(windows(x, (3, 2), stride, same, 0), lambda w: np.einsum("bhwc,hwcf->bf", w, kernel))
    np.testing.assert_allclose(value, found, rtol=1e-4, atol=1e-5)
    for layer, fill, function in (
        (L.MaxPooling2D((3, 2), stride, padding), -np.inf, lambda w: w.max((1, 2))),
        (L.AveragePooling2D((3, 2), stride, padding), np.nan, lambda w: np.nanmean(w, (1, 2))),
    ):
        expected = over_windows(windows(x, (3, 2), stride, same, fill), function)
        np.testing.assert_allclose(layer(rn.asarray(x)).numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda **o: L.Conv2D(4, 3, padding="same", **o),
        lambda **o: L.MaxPooling2D(2, **o),
        lambda **o: L.GlobalAveragePooling2D(**o),
        lambda **o: L.ZeroPadding2D(((1, 0), (2, 1)), **o),
    ],
)
def test_both_orders_of_channels_agree(make: Any) -> None:
    x = images()
    last, first = make(), make(data_format="channels_first")
    one = last(rn.asarray(x)).numpy()
    first(rn.asarray(x.transpose(0, 3, 1, 2)))
    first.set_weights(last.get_weights())
    other = first(rn.asarray(x.transpose(0, 3, 1, 2))).numpy()
    np.testing.assert_allclose(one, other.transpose(0, 2, 3, 1) if other.ndim == 4 else other, rtol=1e-5, atol=1e-6)


def test_orders_of_channels_make_programs_of_as_many_kernels() -> None:
    counts = []
    for order in ("channels_last", "channels_first"):
        layer = L.Conv2D(4, 3, activation="relu", data_format=order)
        x = rn.asarray(images() if order == "channels_last" else images().transpose(0, 3, 1, 2).copy())
        layer(x)
        with rn.no_grad():
            counts.append(len(rn.compile(lambda x, layer=layer: layer(x)).program(x).plan.calls))
    assert counts[0] <= counts[1]


def test_batch_normalization_moves_its_averages() -> None:
    x, layer = images(), L.BatchNormalization(momentum=0.75)
    value = layer(rn.asarray(x)).numpy()
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    np.testing.assert_allclose(value, (x - mean) / np.sqrt(variance + 1e-3), rtol=1e-4, atol=1e-5)
    _, _, moving_mean, moving_variance = layer.get_weights()
    np.testing.assert_allclose(moving_mean, 0.25 * mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(moving_variance, 0.75 + 0.25 * variance, rtol=1e-4)
    layer.eval()
    expected = (x - moving_mean) / np.sqrt(moving_variance + 1e-3)
    np.testing.assert_allclose(layer(rn.asarray(x)).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_attention_of_heads() -> None:
    x = np.random.default_rng(1).standard_normal((2, 5, 6)).astype(np.float32)
    layer = L.MultiHeadAttention(2, 4)
    value = layer(rn.asarray(x), rn.asarray(x)).numpy()
    weights = {name: p.numpy() for name, p in layer.named_parameters()}
    q, k, v = (
        (x @ weights[f"{n}_kernel"]).reshape(2, 5, 2, 4).transpose(0, 2, 1, 3) for n in ("query", "key", "value")
    )
    scores = np.exp(q @ k.transpose(0, 1, 3, 2) / 2)
    heads = (scores / scores.sum(-1, keepdims=True)) @ v
    expected = heads.transpose(0, 2, 1, 3).reshape(2, 5, 8) @ weights["output_kernel"]
    np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5)


def test_shapes_of_symbols() -> None:
    words = keras.Input((9,), dtype="int64")
    x = L.Embedding(20, 8)(words)
    assert x.shape == (None, 9, 8)
    assert L.LSTM(4)(x).shape == (None, 4) and L.GRU(4, return_sequences=True)(x).shape == (None, 9, 4)
    assert L.Flatten()(x).shape == (None, 72) and L.Reshape((3, -1))(x).shape == (None, 3, 24)
    assert L.Concatenate()([x, x]).shape == (None, 9, 16) and L.Add()([x, x]).shape == (None, 9, 8)


def test_recurrent_layers_return_the_last_output_or_all() -> None:
    x = rn.asarray(np.random.default_rng(2).standard_normal((3, 5, 4)).astype(np.float32))
    for kind in (L.LSTM, L.GRU):
        layer = kind(6, return_sequences=True)
        every = layer(x).numpy()
        layer.return_sequences = False
        np.testing.assert_array_equal(layer(x).numpy(), every[:, -1])


def test_custom_layers() -> None:
    class Scaled(L.Layer):
        def build(self, input_shape: Any) -> None:
            self.scale = self.add_weight((input_shape[-1],), "ones", "scale")

        def call(self, inputs: Any) -> Any:
            return inputs * self.scale

    model = keras.Sequential([keras.Input((3,)), Scaled(), L.Dense(1)])
    assert [w.shape for w in model.get_weights()] == [(3,), (3, 1), (1,)]
    assert model.output_shape == (None, 1) and model.count_params() == 7


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (lambda: L.Conv2D(2, 3, padding="full"), r"\[Conv2D\] padding must be 'valid' or 'same'; got 'full'"),
        (lambda: L.Dense(2, activation="rely")(rn.ones((1, 2))), r"\[activation\] there is no activation 'rely'"),
        (lambda: L.Dense(2, kernel_initializer="x")(rn.ones((1, 2))), r"there is no initializer 'x'; there are zeros"),
        (lambda: L.Dense(2, units2=3), r"\[Dense\] does not take units2"),
        (
            lambda: L.Dense(2).set_weights([1]),
            r"\[set_weights\] weights of Dense must have shapes \[\]; got \[\(\)",
        ),
    ],
)
def test_refusals(attempt: Any, sentence: str) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        attempt()


class Residual(L.Layer):
    """A layer of layers, made where ``made_in`` says, whose weights follow from what ``call`` gives them."""

    def __init__(self, units: int, made_in: str = "__init__", **options: Any) -> None:
        super().__init__(**options)
        self.units, self.made_in = units, made_in
        if made_in == "__init__":
            self._make(3)

    def _make(self, size: int) -> None:
        self.inner = L.Dense(self.units, activation="relu")
        self.drop, self.norm = L.Dropout(0.5), L.BatchNormalization()
        self.outer = L.Dense(size)

    def build(self, input_shape: Any) -> None:
        if self.made_in == "build":
            self._make(input_shape[-1])

    def call(self, x: Any) -> Any:
        return x + self.outer(self.norm(self.drop(self.inner(x))))


@pytest.mark.parametrize("made_in", ["__init__", "build"])
def test_layers_of_layers_in_a_graph_of_layers(made_in: str) -> None:
    rn.manual_seed(0)
    inputs = keras.Input((3,))
    hidden = Residual(5, made_in)(Residual(4, made_in)(inputs))
    assert hidden.shape == (None, 3)
    model = keras.Model(inputs, L.Dense(2)(hidden))
    assert model.layers[0].inner.weights[0].shape == (3, 4) and model.count_params() == 113
    assert (model.layers[0].norm.moving_mean.numpy() == 0).all(), "making weights trains nothing"
    model.compile("sgd", "mse")
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3)
    losses = model.fit(x, x[:, :2], epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert keras.Sequential([keras.Input((3,)), Residual(4, made_in)]).predict(x).shape == (8, 3)
