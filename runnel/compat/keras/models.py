"""Keras's models: sequences and graphs of layers, and subclasses; a Trainer runs ``fit`` and ``evaluate``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from runnel.compat.keras import callbacks as keras_callbacks, losses, metrics as keras_metrics, optimizers
from runnel.compat.keras.layers.base import Layer, Symbol
from runnel.compile.boundary import set_observed
from runnel.compile.compiled import compile as compiled
from runnel.core.errors import ArgumentError
from runnel.data.datasets import TensorDataset
from runnel.data.loader import DataLoader
from runnel.io.saving import load, save
from runnel.nn.containers import ModuleList
from runnel.nn.summaries import Summary, summary
from runnel.tensor.creation import asarray
from runnel.tensor.grad_mode import no_grad
from runnel.train.batches import joined
from runnel.train.trainer import Trainer

set_observed(__name__, True)


class Model(Layer):
    """A model: ``Model(inputs, outputs)`` of symbols, or a subclass with layers and ``call(inputs)``."""

    optimizer: Any = None
    stop_training = False

    def __init__(self, inputs: Any = None, outputs: Any = None, name: str = "") -> None:
        super().__init__(name)
        self._trainer: list[Trainer] = []  # in a list, so that it is not a submodule
        self._compiled: dict[str, Any] = {}
        self._is_ready = False
        if inputs is None:
            return
        self._inputs = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
        self._output = outputs
        self._order = _ordered(outputs, self._inputs)
        self.layers = ModuleList(list(dict.fromkeys(symbol.layer for symbol in self._order)))
        self.built = True

    def call(self, inputs: Any) -> Any:
        if "_order" not in self.__dict__:
            raise ArgumentError(f"[{type(self).__name__}] a subclass of Model must define call(inputs).")
        listed = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
        if len(listed) != len(self._inputs):
            raise ArgumentError(f"[{self.name}] takes {len(self._inputs)} inputs; got {len(listed)}.")
        values = {id(symbol): value for symbol, value in zip(self._inputs, listed, strict=True)}
        for symbol in self._order:
            values[id(symbol)] = symbol.layer(*_replaced(symbol.args, values), **symbol.options)
        return _replaced(self._output, values)

    # Training ---------------------------------------------------------------------------------------------------------

    def compile(  # type: ignore[override]
        self, optimizer: Any = "rmsprop", loss: Any = None, metrics: Sequence[Any] = ()
    ) -> None:
        """Set the optimizer, loss and metrics, by name or as objects."""
        function = losses.get(loss)
        self.optimizer = optimizers.get(optimizer)
        self._compiled = {"loss": function, "metrics": keras_metrics.named(metrics, function)}
        self._trainer.clear()

    def fit(
        self,
        x: Any,
        y: Any = None,
        batch_size: int = 32,
        epochs: int = 1,
        verbose: int = 1,
        callbacks: Sequence[Any] = (),
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        initial_epoch: int = 0,
    ) -> keras_callbacks.History:
        """Train for ``epochs - initial_epoch`` epochs.

        Args:
            x: an array, a list of arrays for several inputs, or batches (x, y) such as a DataLoader.
            y: the targets; None for batches.
            batch_size, shuffle: how to split arrays into batches.
            validation_split: the share of the samples, at the end, that is kept for validation.
            validation_data: (x, y), or batches.
        """
        if validation_split and (y is None or not 0 < validation_split < 1):
            raise ArgumentError("[fit] validation_split lies in (0, 1), and goes with arrays x and y.")
        if validation_split:
            cut = int(len(y) * (1 - validation_split))
            validation_data = _cut(x, slice(cut, None)), y[cut:]
            x, y = _cut(x, slice(0, cut)), y[:cut]
        data = _batches(x, y, batch_size, shuffle)
        validation = None
        if validation_data is not None:
            their_x, their_y = validation_data if isinstance(validation_data, tuple) else (validation_data, None)
            validation = _batches(their_x, their_y, batch_size, shuffle=False)
        trainer = self._ready(data)
        history = keras_callbacks.History()
        shown = [_Lines(epochs)] if verbose else []
        self.stop_training, trainer.stopped = False, ""
        trainer.begin_epoch_anew()
        trainer.epochs = initial_epoch or 0
        trainer.callbacks = [keras_callbacks.Relay(self, [*callbacks, history, *shown])]
        trainer.fit(data, epochs, validation)
        return history

    def evaluate(self, x: Any, y: Any = None, batch_size: int = 32, verbose: int = 0, return_dict: bool = False) -> Any:
        """Return the loss and the metrics as a list, or as a dict by name; only the loss if there are no metrics."""
        data = _batches(x, y, batch_size, False)
        figures = self._ready(data).evaluate(data)
        values = list(figures.values())
        return figures if return_dict else values if len(values) > 1 else values[0]

    def predict(self, x: Any, batch_size: int = 32, verbose: int = 0) -> Any:
        """Return the outputs for all samples in evaluation mode, as NumPy arrays.

        ``x`` is an array, a list of arrays for several inputs, or batches (x, y), whose targets are ignored.
        """
        batches = x
        if isinstance(x, np.ndarray | list) or hasattr(x, "numpy"):
            listed = x if isinstance(x, list) else [x]
            batches = [(*(a[i : i + batch_size] for a in listed), None) for i in range(0, len(listed[0]), batch_size)]
        self._build_by(next(iter(batches), ()))
        with _evaluating(self), no_grad():
            return joined(self._predicted(_inputs_of(batch)) for batch in batches)

    @compiled
    def _predicted(self, inputs: Any) -> Any:
        return self(inputs)

    def _ready(self, data: Any) -> Trainer:
        """Return the Trainer, made once the weights exist."""
        if not self._compiled:
            raise ArgumentError("[Model] call compile(optimizer, loss) first.")
        if not self._trainer:
            self._build_by(next(iter(data), ()))
            loss: Callable[[Any, Any], Any] = self._compiled["loss"]
            self._trainer.append(
                Trainer(
                    _Joined(self),
                    _ByOutput(loss),
                    self.optimizer.build(self.trainable_weights),
                    metrics=self._compiled["metrics"],
                    clip_norm=self.optimizer.clipnorm,
                    clip_value=self.optimizer.clipvalue,
                    progress=False,
                )
            )
        return self._trainer[0]

    def _build_by(self, batch: Any) -> None:
        """Call the model once so that each layer makes its weights."""
        if self._is_ready:
            return
        if not batch:
            raise ArgumentError("[Model] there are no samples.")
        with _evaluating(self), no_grad():
            self(_inputs_of(batch))
        self._is_ready = True

    # Looking at it, saving --------------------------------------------------------------------------------------------

    def summary(self, *inputs: Any, depth: int | None = None, dtype: Any = "float32", print_fn: Any = print) -> Summary:
        """Print the table of :func:`runnel.nn.summary`, with outputs for a batch of one if the shape is known."""
        shapes = [(1, *symbol.shape[1:]) for symbol in self.__dict__.get("_inputs", ())]
        table = summary(self, *(inputs or (shapes if len(shapes) == 1 else ())), depth=depth, dtype=dtype)
        print_fn(str(table))
        return table

    def save_weights(self, path: Any) -> None:
        """Write all weights to a file."""
        save(self.state_dict(), path)

    def load_weights(self, path: Any) -> None:
        """Load weights that ``save_weights`` or a ModelCheckpoint wrote."""
        self.load_state_dict(load(path))


class _ByOutput:
    """A loss of (target, output) called as (output, target)."""

    def __init__(self, loss: Callable[[Any, Any], Any]) -> None:
        self.loss = loss

    def __call__(self, output: Any, target: Any) -> Any:
        return self.loss(target, output)


class Sequential(Model):
    """A sequence of layers; the first may be an ``Input``."""

    def __init__(self, layers: Sequence[Any] = (), name: str = "") -> None:
        super().__init__(name=name)
        self.layers = ModuleList()
        for layer in layers:
            self.add(layer)

    def add(self, layer: Any) -> None:
        """Append a layer."""
        if isinstance(layer, Symbol) and not len(self.layers):
            self._inputs = [layer]
            return
        if not isinstance(layer, Layer):
            raise ArgumentError(
                f"[Sequential] layers must be Layers, after an optional Input; got {type(layer).__name__}."
            )
        if not len(self.layers) and layer.first_shape is not None:
            self._inputs = [Symbol(layer.first_shape)]
        self.layers.append(layer)
        self.built = False
        if self.__dict__.get("_inputs"):
            self.ensure_built(self._inputs[0].shape)

    def build(self, input_shape: Any) -> None:
        shape = tuple(input_shape)
        for layer in self.layers:
            if isinstance(layer, Layer):
                shape = layer.output_shape_of(shape)

    def call(self, inputs: Any) -> Any:
        for layer in self.layers:
            inputs = layer(inputs)
        return inputs

    @property
    def output_shape(self) -> Any:
        """Shape of the output, with None for the batch."""
        return self.output_shape_of(self._inputs[0].shape)


class _Joined(Layer):
    """A model that takes its inputs as separate arguments."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model
        self.built = True

    def call(self, first: Any, *others: Any) -> Any:
        return self.model([first, *others] if others else first)


class _Lines(keras_callbacks.Callback):
    """A printed line for each epoch."""

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        figures = " - ".join(f"{name}: {value:.4f}" for name, value in logs.items() if isinstance(value, float))
        print(f"Epoch {epoch + 1}/{self.epochs} - {figures}", flush=True)


@contextmanager
def _evaluating(model: Model) -> Iterator[None]:
    """Switch to evaluation mode, and restore the modes afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        known = {id(module): mode for module, mode in modes}
        for module in model.modules():  # some of which may have been made meanwhile
            module.training = known.get(id(module), True)


def _inputs_of(batch: Any) -> Any:
    """Return the inputs of a batch without its target: a tensor, or a list of several."""
    inputs = [asarray(x) for x in batch[:-1]]
    return inputs[0] if len(inputs) == 1 else inputs


def _ordered(outputs: Any, inputs: list[Symbol]) -> list[Symbol]:
    """Return the symbols that the outputs need, each after its arguments."""
    done: dict[int, Symbol] = {id(symbol): symbol for symbol in inputs}
    order: list[Symbol] = []

    def visit(value: Any) -> None:
        if isinstance(value, list | tuple):
            for item in value:
                visit(item)
        elif isinstance(value, Symbol) and id(value) not in done:
            if value.layer is None:
                raise ArgumentError(f"[Model] the outputs need an input of shape {value.shape} that is not in inputs.")
            visit(value.args)
            done[id(value)] = value
            order.append(value)

    visit(outputs)
    return order


def _replaced(value: Any, values: dict[int, Any]) -> Any:
    """Replace the symbols in ``value`` by their values."""
    if isinstance(value, list | tuple):
        return type(value)(_replaced(item, values) for item in value)
    return values[id(value)] if isinstance(value, Symbol) else value


def _batches(x: Any, y: Any, batch_size: int, shuffle: bool) -> Any:
    if y is None:
        return x
    listed = x if isinstance(x, list) else [x]
    sizes = {len(array) for array in (*listed, y)}
    if len(sizes) != 1:
        raise ArgumentError(f"[fit] x and y must have the same number of samples; got {sorted(sizes)}.")
    return DataLoader(TensorDataset(*(asarray(a) for a in (*listed, y))), batch_size, shuffle=shuffle)


def _cut(x: Any, part: slice) -> Any:
    return [a[part] for a in x] if isinstance(x, list) else x[part]
