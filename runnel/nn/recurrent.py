"""Recurrent layers with PyTorch's names and parameters: RNN, GRU and LSTM, in several layers and both directions.

One large product computes the contributions of the input to all steps; then a ``scan`` runs the steps. Packed sequences
run padded, and the state of a sequence that has ended does not change. So a program depends only on the longest length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from runnel import ops
from runnel.core.arrays import short_repr
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import Dtype
from runnel.core.errors import ArgumentError, ShapeError
from runnel.nn import init
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter, parameter_dtype
from runnel.nn.recurrence import STEPS, State, next_state, run_layers, stepping
from runnel.nn.utils.rnn import PackedSequence
from runnel.ops.arguments import Array
from runnel.tensor import random
from runnel.tensor.creation import asarray, zeros
from runnel.transforms.scan import scan


class RNNCellBase(Module):
    """The base of the cells: Parameters with PyTorch's names, uniform in ±1/√hidden_size."""

    bias_ih: Parameter | None
    bias_hh: Parameter | None
    gates: int
    kind: str  # in the table of steps
    states: int = 1

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, *, dtype: Dtype = None) -> None:
        kind = parameter_dtype(dtype)
        self.input_size = input_size
        self.hidden_size = hidden_size
        rows = self.gates * hidden_size
        self.weight_ih = Parameter(zeros((rows, input_size), kind))
        self.weight_hh = Parameter(zeros((rows, hidden_size), kind))
        self.register_parameter("bias_ih", Parameter(zeros((rows,), kind)) if bias else None)
        self.register_parameter("bias_hh", Parameter(zeros((rows,), kind)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size else 0.0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def forward(self, input: Array, hx: Array | Sequence[Array] | None = None) -> Any:
        """Return the state after ``input``, given the one before, which is 0 by default."""
        states = self._next(input, _states(self, hx))
        return states[0] if self.states == 1 else states

    def _next(self, x: Any, state: State | None) -> State:
        """Return the states after ``x`` of shape (batch, input_size) or (input_size,)."""
        if x.ndim not in (1, 2) or x.shape[-1] != self.input_size:
            raise ShapeError(
                f"[{type(self).__name__}] input must have shape (batch, {self.input_size}) or ({self.input_size},); "
                f"got {x.shape}."
            )
        shape = (*x.shape[:-1], self.hidden_size)
        states = tuple(zeros(shape, x.dtype) for _ in range(self.states)) if state is None else state
        for h in states:
            if h.shape != shape:
                raise ShapeError(f"[{type(self).__name__}] a state must have shape {shape}; got {h.shape}.")
        return next_state(self.kind, x, tuple(states), self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)

    @property
    def bias(self) -> bool:
        """True if the cell has biases."""
        return self.bias_ih is not None

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(RNNCellBase):
    """Compute one step of an Elman network: h ← tanh(weight_ih·x + bias_ih + weight_hh·h + bias_hh).

    Args:
        input_size: number of input features.
        hidden_size: number of features of the state.
        bias: whether to add biases.
        nonlinearity: "tanh" or "relu".
        dtype: the dtype of the Parameters; float32 by default.

    Shape:
        input ``(N, input_size)``; state and result ``(N, hidden_size)``. The batch may be left out.

    Example:
        >>> nn.RNNCell(10, 20)(rn.ones((3, 10))).shape
        (3, 20)
    """

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        *,
        dtype: Dtype = None,
    ) -> None:
        require_nonlinearity(nonlinearity)
        super().__init__(input_size, hidden_size, bias, dtype=dtype)
        self.nonlinearity = nonlinearity

    @property
    def kind(self) -> str:  # type: ignore[override]
        """The name of the step."""
        return self.nonlinearity


class GRUCell(RNNCellBase):
    """Compute one step of a gated recurrent unit.

    It takes the arguments of :class:`RNNCell`, except ``nonlinearity``, with the same shapes. The rows of the weights
    belong to the reset gate, the update gate and the new value.
    """

    gates = 3
    kind = "gru"


class LSTMCell(RNNCellBase):
    """Compute one step of a long short-term memory, whose state is the pair (h, c).

    It takes the arguments of :class:`RNNCell`, except ``nonlinearity``, with the same shapes. The rows of the weights
    belong to the input gate, the forget gate, the cell value and the output gate.

    Example:
        >>> h, c = nn.LSTMCell(10, 20)(rn.ones((3, 10)))
        >>> h.shape, c.shape
        ((3, 20), (3, 20))
    """

    gates = 4
    kind = "lstm"
    states = 2


def _states(layer: RNNCellBase | RNNBase, hx: Any) -> State | None:
    """Return the states that ``hx`` holds: a tensor, or for LSTM the pair (h, c)."""
    states = (hx,) if layer.states == 1 else tuple(hx) if isinstance(hx, list | tuple) else ()
    if hx is None:
        return None
    if len(states) != layer.states or not all(isinstance(h, TensorLike) for h in states):
        what = "a tensor" if layer.states == 1 else "a pair of tensors (h, c)"
        raise ArgumentError(f"[{type(layer).__name__}] hx must be {what}; got {short_repr(hx)}.")
    return states


def require_nonlinearity(name: str) -> None:
    """Raise ValueError unless ``name`` is a nonlinearity of Elman networks."""
    if name not in ("tanh", "relu"):
        raise ValueError(f"[RNN] nonlinearity must be 'tanh' or 'relu'; got {name!r}.")


MOST_LAYERS: Final = 10_000


class RNNBase(Module):
    """The base of RNN, GRU and LSTM, which define one step. ``states`` is the number of arrays in the state."""

    gates: int
    kind: str  # in the table of steps
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
        *,
        dtype: Dtype = None,
    ) -> None:
        name = type(self).__name__
        if proj_size and not (self.states == 2 and 0 < proj_size < hidden_size):
            raise ValueError(
                f"[{name}] proj_size must be 0, or for LSTM less than hidden_size={hidden_size}; got {proj_size}."
            )
        if not 0 <= dropout <= 1:
            raise ValueError(f"[{name}] dropout must be in [0, 1]; got {dropout}.")
        if not 1 <= num_layers <= MOST_LAYERS:
            raise ValueError(f"[{name}] num_layers must be in [1, {MOST_LAYERS}]; got {num_layers}.")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = dropout
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        out_size = proj_size or hidden_size  # the size of a layer's output
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
        """List the Parameters of each layer and direction."""
        return [
            [p for name, p in self.named_parameters(recurse=False) if name.partition("_l")[2] == suffix[1:]]
            for layer in range(self.num_layers)
            for suffix in self._suffixes(layer)
        ]

    @property
    def _flat_weights_names(self) -> list[str]:
        """List the names of the Parameters."""
        return list(self._parameters)

    @property
    def _flat_weights(self) -> list[Parameter]:
        """List the Parameters."""
        return list(self._parameters.values())

    def flatten_parameters(self) -> None:
        """Do nothing, since the place of Parameters in memory does not matter."""

    def _suffixes(self, layer: int) -> list[str]:
        return [f"l{layer}", f"l{layer}_reverse"] if self.bidirectional else [f"l{layer}"]

    def forward(self, input: Array | PackedSequence, hx: Array | Sequence[Array] | None = None) -> tuple[Any, Any]:
        """Return the output and the last states, given the first ones: h, or for LSTM the pair (h, c)."""
        output, last = self._run(input, _states(self, hx))
        return output, last[0] if self.states == 1 else last

    # Running ----------------------------------------------------------------------------------------------------------

    def _run(self, input: Any, hx: State | None) -> tuple[Any, State]:
        """Return the output, packed like the input, and the last states (layers · directions, batch, hidden)."""
        if isinstance(input, PackedSequence):
            initial = None if hx is None else _reordered(hx, input.steps.order)
            data, last = self._layers(input.data, input, self._first(initial, input.steps.batch, input.data))
            return input._replace(data=data), _reordered(last, input.steps.back)
        batched = input.ndim == 3
        if input.ndim not in (2, 3) or input.shape[-1] != self.input_size:
            raise ShapeError(
                f"[{type(self).__name__}] input must have 2 or 3 axes, the last of size {self.input_size}; got shape "
                f"{input.shape}."
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
                raise ShapeError(f"[{type(self).__name__}] hx must have shape {(*rows, size)}; got {h.shape}.")
        return tuple(hx)

    def _layers(self, x: Any, packed: PackedSequence | None, first: State) -> tuple[Any, State]:
        """Run all layers over ``x`` (steps, batch, features), or over the rows of a packed sequence."""
        is_random = bool(self.dropout) and self.training
        at_once = self.num_layers if packed is None and not is_random else 1
        both, last = 1 + self.bidirectional, []
        for layer in range(0, self.num_layers, at_once):
            if layer and is_random:
                x = random.dropout(x, self.dropout)
            weights = tuple(self._weights(s) for i in range(layer, layer + at_once) for s in self._suffixes(i))
            whole = at_once == self.num_layers
            states = first if whole else tuple(ops.narrow(h, 0, layer * both, both) for h in first)
            x, *after = self._run_layers(x, packed, states, weights)
            last.append(after)
        if len(last) == 1:
            return x, tuple(last[0])
        return x, tuple(ops.concat(list(states), 0) for states in zip(*last, strict=True))

    def _weights(self, suffix: str) -> tuple[Any, ...]:
        names = ("weight_ih", "bias_ih", "weight_hh", "bias_hh", "weight_hr")
        return tuple(getattr(self, f"{name}_{suffix}", None) for name in names)

    def _run_layers(
        self, x: Any, packed: PackedSequence | None, first: State, weights: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        if packed is None:
            return run_layers(self.kind, self.bidirectional, x, first, weights)
        outputs, last = [], []
        for number, (weight_ih, bias_ih, weight, bias, projection) in enumerate(weights):
            padded = packed._replace(data=x).padded(packed.steps.rows(len(packed.steps.sizes)), 0.0)
            projected = ops.linear(padded, weight_ih, bias_ih)
            step = stepping(STEPS[self.kind], weight, bias, projection)
            state = tuple(ops.getitem(h, number) for h in first)
            output, after = _packed(step, state, projected, packed, bool(number))
            outputs.append(output)
            last.append(after)
        x = ops.concat(outputs, -1) if self.bidirectional else outputs[0]
        return x, *(ops.stack(list(states)) for states in zip(*last, strict=True))

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (
            ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0), ("bidirectional", False),
            ("proj_size", 0),
        ):  # fmt: skip
            value = getattr(self, name)
            text += "" if value == usual else f", {name}={value}"
        return text


def _reordered(states: State, order: tuple[int, ...] | None) -> tuple[Any, ...]:
    """Return states of shape (layers, batch, …) with their batch in ``order``."""
    if order is None:
        return tuple(states)
    return tuple(ops.take(h, asarray(np.array(order), device=h.device), 1) for h in states)


def _packed(step: Any, state: State, projected: Any, packed: PackedSequence, backwards: bool) -> tuple[Any, State]:
    """Run ``step`` over packed sequences; return the rows of the output and the last state of each sequence.

    ``projected`` is the padded batch. Forwards, a sequence stops at its end; backwards, it starts there.
    """
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
    """Run an Elman network over sequences: hₜ = tanh(weight_ih·xₜ + bias_ih + weight_hh·hₜ₋₁ + bias_hh).

    Parameters have PyTorch's names: ``weight_ih_l0`` of shape (hidden_size, input_size), ``weight_hh_l0``,
    ``bias_ih_l0``, ``bias_hh_l0``, and with ``_reverse`` for the backward direction. A call ``rnn(input, h0)`` returns
    the output and the last states.

    Args:
        input_size: the size of the input at each step.
        hidden_size: the size of the state h.
        num_layers: number of layers; each takes the states of the previous one.
        nonlinearity: "tanh" or "relu".
        bias: whether to add biases.
        batch_first: the input and the output have the batch as first axis.
        dropout: the probability with which elements between layers are set to 0 in training mode.
        bidirectional: also run backwards, and concatenate both states.
        dtype: the dtype of the Parameters; float32 by default.

    Shape:
        input ``(steps, N, input_size)``, with ``batch_first`` ``(N, steps, input_size)``, or without a batch
        ``(steps, input_size)``; or a packed sequence.
        First and last states ``(num_layers · directions, N, hidden_size)``; by default the first states are 0.
        Output ``(steps, N, directions · hidden_size)``: the states of the last layer at all steps.

    Example:
        >>> output, h = nn.RNN(10, 20)(rn.ones((5, 3, 10)))
        >>> output.shape, h.shape
        ((5, 3, 20), (1, 3, 20))
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
        *,
        dtype: Dtype = None,
    ) -> None:
        require_nonlinearity(nonlinearity)
        self.nonlinearity = nonlinearity
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, dtype=dtype)

    @property
    def kind(self) -> str:  # type: ignore[override]
        """The name of the step."""
        return self.nonlinearity


class GRU(RNNBase):
    """Run gated recurrent units over sequences (K. Cho et al., 2014).

    It takes the arguments of :class:`RNN`, except ``nonlinearity``; it has the same Parameters and shapes, except that
    weights and biases have 3·hidden_size rows, for the reset gate, the update gate and the new value.

    Example:
        >>> output, h = nn.GRU(10, 20, num_layers=2)(rn.ones((5, 3, 10)))
        >>> output.shape, h.shape
        ((5, 3, 20), (2, 3, 20))
    """

    gates = 3
    kind = "gru"


class LSTM(RNNBase):
    """Run long short-term memory over sequences (S. Hochreiter, J. Schmidhuber, 1997; F. Gers et al., 2000).

    It takes the arguments of :class:`RNN`, except ``nonlinearity``. Weights and biases have 4·hidden_size rows, for the
    input gate, the forget gate, the cell value and the output gate. A call ``lstm(input, (h0, c0))`` returns the output
    and the last states ``(h, c)``; otherwise shapes are the same as in :class:`RNN`.

    Args:
        proj_size: if not 0, h is multiplied by ``weight_hr`` and has this size (H. Sak et al., 2014).

    Example:
        >>> output, (h, c) = nn.LSTM(10, 20, batch_first=True)(rn.ones((3, 5, 10)))
        >>> output.shape, h.shape, c.shape
        ((3, 5, 20), (1, 3, 20), (1, 3, 20))
    """

    gates = 4
    kind = "lstm"
    states = 2
