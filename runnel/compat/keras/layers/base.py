"""The base of layers: weights are made when the input's shape is known, and calls on symbols are recorded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from runnel import ops
from runnel.compat.keras import activations
from runnel.core.avals import ShapedArray, aval
from runnel.core.dtypes import Dtype, as_dtype
from runnel.core.errors import ArgumentError
from runnel.declarative.inference import abstract
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter
from runnel.tensor import tracing
from runnel.tensor.creation import zeros
from runnel.tensor.grad_mode import no_grad
from runnel.tensor.random import next_key
from runnel.tensor.tensor import Tensor


class Symbol:
    """The output of ``layer`` for ``args``, or an input of a model; ``shape`` begins with None for the batch."""

    def __init__(
        self, shape: Any, dtype: Any = "float32", layer: Any = None, args: Any = (), options: Any = None
    ) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.layer = layer
        self.args = args
        self.options = options or {}

    def __repr__(self) -> str:
        return f"<symbol of shape {self.shape}>"


def Input(shape: Sequence[int | None], dtype: Dtype = "float32", name: str = "") -> Symbol:
    """Return a symbol of a model's input; ``shape`` is the shape of one sample, without the batch."""
    return Symbol((None, *shape), dtype)


def shape_of(value: Any) -> Any:
    """Return the shape of an input with None for the batch; a list of shapes for several inputs."""
    if isinstance(value, list | tuple):
        return [shape_of(item) for item in value]
    return (None, *tuple(value.shape)[1:])


Shape = tuple[int | None, ...]
_BATCH = (6, 10)  # two batch sizes: an axis whose size differs between them is the batch


class Layer(Module):
    """The base class. A subclass makes its weights in ``build(input_shape)`` by ``add_weight`` and defines ``call``.

    Called on an ``Input``, it returns a symbol of its output for a Model.
    """

    def __init__(self, name: str = "", trainable: bool = True, **options: Any) -> None:
        shape = options.pop("input_shape", None)
        if options.pop("input_dim", None) is not None or options:
            raise ArgumentError(f"[{type(self).__name__}] does not take {', '.join(options) or 'input_dim'}.")
        self.name = name or _unique(type(self).__name__)
        self._trainable = trainable
        self._fixed: tuple[str, ...] = ()  # weights that are never trained
        self.built = False
        self.first_shape: Any = None if shape is None else (None, *shape)

    @property
    def trainable(self) -> bool:
        """True if training changes the weights, also of inner layers; setting it affects models compiled later."""
        return self._trainable

    @trainable.setter
    def trainable(self, flag: bool) -> None:
        layers = [module for module in self.modules() if isinstance(module, Layer)]
        fixed = {id(getattr(layer, name)) for layer in layers for name in layer._fixed}
        for layer in layers:
            layer._trainable = bool(flag)
        for parameter in self.parameters():
            parameter.requires_grad_(bool(flag) and id(parameter) not in fixed)

    def build(self, input_shape: Any) -> None:
        """Make the weights for inputs of a shape whose first entry, the batch, is None."""

    def call(self, *args: Any, **options: Any) -> Any:
        """Compute the output."""
        raise NotImplementedError(f"[{type(self).__name__}] a Layer defines call(inputs).")

    def add_weight(
        self, shape: Sequence[int], initializer: Any = "glorot_uniform", name: str = "weight", trainable: bool = True
    ) -> Parameter:
        """Add a Parameter as attribute ``name``."""
        weight = Parameter(initial(initializer, tuple(shape)), requires_grad=trainable and self.trainable)
        setattr(self, name, weight)
        if not trainable:
            self._fixed += (name,)
        return weight

    def ensure_built(self, shape: Any) -> None:
        if not self.built:
            self.build(shape)
            self.built = True

    def forward(self, inputs: Any, *others: Any, **options: Any) -> Any:
        if not self.built:
            self.ensure_built(shape_of(inputs))
        return tracing.method(self, "call")(inputs, *others, **options)

    def __call__(self, *args: Any, **options: Any) -> Any:
        if args and any(isinstance(x, Symbol) for x in _flat(args)):
            return self._declared(args, options)
        return super().__call__(*args, **options)

    def _declared(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Return the symbol of the output for symbols."""
        self.ensure_built(shape_of(args[0]))
        shapes = output_shapes(self, args, options)
        return Symbol(shapes.shape, shapes.dtype, self, args, options)

    def output_shape_of(self, shape: Any, dtype: Any = "float32") -> Shape:
        """Return the shape of the output for inputs of a shape."""
        self.ensure_built(shape)
        return output_shapes(self, (Symbol(shape, dtype),), {}).shape

    # Weights ----------------------------------------------------------------------------------------------------------

    @property
    def weights(self) -> list[Any]:
        """Parameters and then buffers."""
        return [*self.parameters(), *self.buffers()]

    @property
    def trainable_weights(self) -> list[Any]:
        return [p for p in self.parameters() if p.requires_grad]

    def get_weights(self) -> list[np.ndarray]:
        """Return copies of the weights."""
        return [weight.numpy().copy() for weight in self.weights]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set the weights to values of the same shapes, in the order of ``get_weights``."""
        own = self.weights
        theirs = [np.asarray(value) for value in weights]
        if [w.shape for w in own] != [w.shape for w in theirs]:
            raise ArgumentError(
                f"[set_weights] weights of {type(self).__name__} must have shapes {[w.shape for w in own]}; got "
                f"{[w.shape for w in theirs]}."
            )
        for weight, value in zip(own, theirs, strict=True):
            weight.assign(value)

    def count_params(self) -> int:
        """Return the number of elements of all weights."""
        return sum(weight.size for weight in self.weights)


def output_shapes(layer: Any, args: Any, options: dict[str, Any]) -> Symbol:
    """Return the symbol of an output by calling the layer on abstract tensors in evaluation mode."""
    modes = [(module, module.training) for module in layer.modules()]
    layer.eval()
    try:
        if not all(module.built for module in layer.modules() if isinstance(module, Layer)):
            _build_inside(layer, args, options)
        first, second = (_shape_with(layer, args, options, size) for size in _BATCH)
    finally:
        for module, mode in modes:
            module.training = mode
    shape = tuple(None if a != b else a for a, b in zip(first[0], second[0], strict=True))
    return Symbol(shape, first[1])


def _build_inside(layer: Any, args: Any, options: dict[str, Any]) -> None:
    """Build inner layers, whose input shapes only ``call`` knows, by calling the layer on zeros."""
    with no_grad():
        layer(*_filled(args, [zeros(x.shape, dtype=x.dtype) for x in _avals(args, _BATCH[0])]), **options)


def _avals(args: Any, batch: int) -> list[ShapedArray]:
    """Return shapes and dtypes of the symbols among arguments for a batch size."""
    symbols = [x for x in _flat(args) if isinstance(x, Symbol)]
    return [aval(tuple(batch if n is None else n for n in x.shape), as_dtype(x.dtype)) for x in symbols]


def _shape_with(layer: Any, args: Any, options: dict[str, Any], batch: int) -> tuple[tuple[int, ...], Any]:
    avals = _avals(args, batch)
    result = abstract(lambda *tensors: layer(*_filled(args, list(tensors)), **options), avals)
    if len(result.avals) != 1:
        raise ArgumentError(f"[{layer.name}] gives several outputs; a layer of a Model gives one tensor.")
    return result.avals[0].shape, result.avals[0].dtype.name


def _flat(value: Any) -> Iterable[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _filled(value: Any, tensors: list[Any]) -> Any:
    """Replace the symbols in ``value`` by tensors."""
    if isinstance(value, list | tuple):
        return type(value)(_filled(item, tensors) for item in value)
    return tensors.pop(0) if isinstance(value, Symbol) else value


_COUNTS: dict[str, int] = {}


def _unique(kind: str) -> str:
    """Return ``dense``, ``dense_1``, …."""
    snake = "".join(f"_{c.lower()}" if c.isupper() and i and not kind[i - 1].isupper() else c.lower()
                    for i, c in enumerate(kind))  # fmt: skip
    count = _COUNTS.get(snake, 0)
    _COUNTS[snake] = count + 1
    return f"{snake}_{count}" if count else snake


def initial(initializer: Any, shape: tuple[int, ...]) -> Tensor | np.ndarray:
    """Return initial values by a name of Keras or by a function of a shape."""
    if callable(initializer):
        return initializer(shape)
    if initializer in ("zeros", "ones"):
        return np.full(shape, float(initializer == "ones"), np.float32)
    receptive = int(np.prod(shape[:-2])) if len(shape) > 2 else 1
    fan_in, fan_out = (shape[0] * receptive, shape[-1] * receptive) if len(shape) < 3 else (
        shape[-2] * receptive, shape[-1] * receptive
    )  # fmt: skip
    limits = {
        "glorot_uniform": (6 / (fan_in + fan_out)) ** 0.5,
        "he_uniform": (6 / fan_in) ** 0.5,
        "uniform": 0.05,
    }
    deviations = {"glorot_normal": (2 / (fan_in + fan_out)) ** 0.5, "he_normal": (2 / fan_in) ** 0.5, "normal": 0.05}
    if initializer in limits:
        return (ops.uniform(next_key(None, None), shape, as_dtype("float32")) * 2 - 1) * limits[initializer]
    if initializer in deviations:
        return ops.normal(next_key(None, None), shape, as_dtype("float32")) * deviations[initializer]
    known = ", ".join(["zeros", "ones", *limits, *deviations])
    raise ArgumentError(f"[initializer] there is no initializer {initializer!r}; there are {known}.")


def activated(value: Any, activation: Any) -> Any:
    return activations.get(activation)(value)
