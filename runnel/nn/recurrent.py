"""Recurrent layers under PyTorch's names and with its parameters: RNN, GRU and LSTM, in layers and both directions.

What the input contributes to all steps is one large product before the loop; the loop is a ``scan``. Packed sequences
run through it padded, and the states of one that has ended stay as they are: what is compiled then follows from the
longest length, and not from all of them.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.nn import init
from runnel.nn.module import Module
from runnel.nn.packing import PackedSequence, reordered
from runnel.nn.parameter import Parameter, parameter_dtype
from runnel.nn.recurrent_cells import State, elman_step, gru_step, lstm_step, require_nonlinearity
from runnel.tensor import random
from runnel.tensor.creation import asarray, zeros
from runnel.transforms.scan import scan

MOST_LAYERS: Final = 10_000


class RNNBase(Module):
    """What RNN, GRU and LSTM share: everything but the step."""

    gates: int
    states: int = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        dtype: Any = None,
    ) -> None:
        name = type(self).__name__
        if proj_size and not (self.states == 2 and 0 < proj_size < hidden_size):
            raise ValueError(
                f"[{name}] proj_size is for LSTM, and less than hidden_size ({hidden_size}); received {proj_size}."
            )
        if not 0 <= dropout <= 1:
            raise ValueError(f"[{name}] dropout is a probability; received {dropout}.")
        if not 1 <= num_layers <= MOST_LAYERS:
            raise ValueError(f"[{name}] has 1 to {MOST_LAYERS} layers; received {num_layers}.")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = dropout
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        out_size = proj_size or hidden_size  # the size of what a layer gives
        rows, kind = self.gates * hidden_size, parameter_dtype(dtype)
        for layer in range(num_layers):
            columns = input_size if layer == 0 else out_size * (1 + bidirectional)
            for suffix in self._suffixes(layer):
                setattr(self, f"weight_ih_{suffix}", Parameter(zeros((rows, columns), kind)))
                setattr(self, f"weight_hh_{suffix}", Parameter(zeros((rows, out_size), kind)))
                if bias:
                    setattr(self, f"bias_ih_{suffix}", Parameter(zeros((rows,), kind)))
                    setattr(self, f"bias_hh_{suffix}", Parameter(zeros((rows,), kind)))
                if proj_size:
                    setattr(self, f"weight_hr_{suffix}", Parameter(zeros((proj_size, hidden_size), kind)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values, uniform in ±1/√hidden_size."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size else 0.0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The Parameters of each layer, and of each direction of it."""
        return [
            [p for name, p in self.named_parameters(recurse=False) if name.partition("_l")[2] == suffix[1:]]
            for layer in range(self.num_layers)
            for suffix in self._suffixes(layer)
        ]

    def flatten_parameters(self) -> None:
        """Nothing: where Parameters lie in memory does not matter."""

    def _suffixes(self, layer: int) -> list[str]:
        return [f"l{layer}", f"l{layer}_reverse"] if self.bidirectional else [f"l{layer}"]

    def _step(self, x: Any, state: State, weight: Any, bias: Any) -> State:
        raise NotImplementedError

    # Running ----------------------------------------------------------------------------------------------------------

    def _run(self, input: Any, hx: State | None) -> tuple[Any, State]:
        """The output, of the kind of the input, and the last states of shape (layers · directions, batch, hidden)."""
        if isinstance(input, PackedSequence):
            initial = None if hx is None else reordered(hx, input.steps.order)
            data, last = self._layers(input.data, input, self._first(initial, input.steps.batch, input.data))
            return input._replace(data=data), reordered(last, input.steps.back)
        batched = input.ndim == 3
        if input.ndim not in (2, 3) or input.shape[-1] != self.input_size:
            raise ShapeError(
                f"[{type(self).__name__}] takes an input of two or three axes, the last of size {self.input_size}; got "
                f"shape {input.shape}."
            )
        x = ops.moveaxis(input, 0, 1) if batched and self.batch_first else input
        if not batched:
            x = ops.expand_dims(x, 1)
            hx = None if hx is None else tuple(ops.expand_dims(h, 1) for h in hx)
        output, last = self._layers(x, None, self._first(hx, x.shape[1], x))
        if not batched:
            return ops.squeeze(output, 1), tuple(ops.squeeze(h, 1) for h in last)
        return (ops.moveaxis(output, 0, 1) if self.batch_first else output), last

    def _first(self, hx: State | None, batch: int, like: Any) -> State:
        rows = (self.num_layers * (1 + self.bidirectional), batch)
        sizes = (self.proj_size or self.hidden_size, self.hidden_size)[: self.states]
        if hx is None:
            return tuple(ops.full_like(like, 0, (*rows, size)) for size in sizes)
        for h, size in zip(hx, sizes, strict=True):
            if h.shape != (*rows, size):
                raise ShapeError(f"[{type(self).__name__}] needs first states of shape {(*rows, size)}; got {h.shape}.")
        return tuple(hx)

    def _layers(self, x: Any, packed: PackedSequence | None, first: State) -> tuple[Any, State]:
        """All layers over ``x`` of shape (steps, batch, features), or over the rows of a packed sequence."""
        last: list[State] = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = random.dropout(x, self.dropout, self.training)
            outputs = []
            for suffix in self._suffixes(layer):
                state = tuple(ops.getitem(h, len(last)) for h in first)
                output, after = self._direction(x, packed, state, suffix)
                outputs.append(output)
                last.append(after)
            x = ops.concat(outputs, -1) if self.bidirectional else outputs[0]
        return x, tuple(ops.stack(list(states)) for states in zip(*last, strict=True))

    def _direction(self, x: Any, packed: PackedSequence | None, state: State, suffix: str) -> tuple[Any, State]:
        names = (f"{name}_{suffix}" for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh", "weight_hr"))
        weight_ih, bias_ih, weight, bias, projection = (getattr(self, name, None) for name in names)
        padded = (
            x if packed is None else packed._replace(data=x).padded(packed.steps.rows(len(packed.steps.sizes)), 0.0)
        )
        projected = ops.linear(padded, weight_ih, bias_ih)
        backwards = suffix.endswith("reverse")

        def step(carry: State, x: Any) -> tuple[State, Any]:
            after = self._step(x, carry, weight, bias)
            if projection is not None:
                after = (ops.linear(after[0], projection), *after[1:])
            return after, after[0]

        if packed is None:
            after, output = scan(step, state, projected, reverse=backwards)
            return output, after
        return _packed(step, state, projected, packed, backwards)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (
            ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0), ("bidirectional", False),
            ("proj_size", 0),
        ):  # fmt: skip
            value = getattr(self, name)
            text += "" if value == usual else f", {name}={value}"
        return text


def _packed(step: Any, state: State, projected: Any, packed: PackedSequence, backwards: bool) -> tuple[Any, State]:
    """The rows that ``step`` gives for packed sequences, of which ``projected`` is the padded batch, and the last state
    of each. Forwards, sequences stop as they end; backwards, they begin at their last step."""
    there = packed.steps.live(projected.shape[0])

    def masked(carry: State, element: Any) -> tuple[State, Any]:
        x, live = element
        after, output = step(carry, x)
        return tuple(ops.where(live, new, old) for new, old in zip(after, carry, strict=True)), output

    live = asarray(there[:, :, None], device=projected.device)
    last, output = scan(masked, state, (projected, live), reverse=backwards)
    rows = asarray(np.flatnonzero(there), device=projected.device)
    return ops.take(ops.reshape(output, (there.size, output.shape[2])), rows, 0), last


class RNN(RNNBase):
    """An Elman network: hₜ is tanh, or relu, of weight_ih·xₜ + bias_ih + weight_hh·hₜ₋₁ + bias_hh.

    Parameters are called as in PyTorch: ``weight_ih_l0`` of shape (hidden_size, input_size), ``weight_hh_l0``,
    ``bias_ih_l0``, ``bias_hh_l0``, and with ``_reverse`` for the other direction.

    Called with an input of shape (steps, batch, input_size), or (batch, steps, input_size) with ``batch_first``, or
    (steps, input_size), or a packed sequence; and, optionally, with the first states (layers · directions, batch,
    hidden_size). Gives the last layer's states at all steps, and all layers' last states.
    """

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: Any = None,
    ) -> None:
        require_nonlinearity(nonlinearity)
        self.nonlinearity = nonlinearity
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, dtype)

    def _step(self, x: Any, state: State, weight: Any, bias: Any) -> State:
        return elman_step(x, state, weight, bias, self.nonlinearity)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        output, (h,) = self._run(input, None if hx is None else (hx,))
        return output, h


class GRU(RNNBase):
    """A network of gated recurrent units; arguments, parameters and results as those of :class:`RNN`. The rows of the
    weights, three times ``hidden_size``, are those of the reset gate, the update gate and the new value."""

    gates = 3

    def _step(self, x: Any, state: State, weight: Any, bias: Any) -> State:
        return gru_step(x, state, weight, bias)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        output, (h,) = self._run(input, None if hx is None else (hx,))
        return output, h


class LSTM(RNNBase):
    """A network of long short-term memories; as :class:`RNN`, but that first and last states are pairs (h, c), and that
    with ``proj_size`` h is weight_hr times what it would be (H. Sak et al., 2014). The rows of the weights, four times
    ``hidden_size``, are those of input gate, forget gate, cell value and output gate."""

    gates = 4
    states = 2

    def _step(self, x: Any, state: State, weight: Any, bias: Any) -> State:
        return lstm_step(x, state, weight, bias)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, tuple[Any, Any]]:
        output, (h, c) = self._run(input, hx)
        return output, (h, c)
