"""PyTorch's functional recurrent cells and networks, which take their weights as arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.core.errors import ArgumentError, ShapeError
from runnel.nn.recurrence import State, next_state
from runnel.nn.recurrent import GRU, LSTM, RNN, RNNBase
from runnel.nn.utils.rnn import PackedSequence
from runnel.ops.arguments import Array


def _cell(name: str, kind: str, gates: int, input: Array, state: State, weights: Sequence[Any]) -> State:
    w_ih, w_hh, b_ih, b_hh = weights
    if input.ndim not in (1, 2) or not state or any(h.ndim != input.ndim for h in state):
        raise ShapeError(
            f"[{name}] input must have shape (batch, features) or (features,), and states as many axes; got "
            f"{', '.join(str(x.shape) for x in (input, *state))}."
        )
    size = state[0].shape[-1]
    if w_ih.shape != (gates * size, input.shape[-1]) or w_hh.shape != (gates * size, size):
        raise ShapeError(
            f"[{name}] an input of {input.shape[-1]} and a state of {size} features need weights of shapes "
            f"{(gates * size, input.shape[-1])} and {(gates * size, size)}; got {w_ih.shape} and {w_hh.shape}."
        )
    return next_state(kind, input, state, w_ih, w_hh, b_ih, b_hh)


def rnn_tanh_cell(
    input: Array, hx: Array, w_ih: Array, w_hh: Array, b_ih: Array | None = None, b_hh: Array | None = None
) -> Array:
    """Return one step of an Elman network: tanh(w_ih·x + b_ih + w_hh·h + b_hh)."""
    return _cell("rnn_tanh_cell", "tanh", 1, input, (hx,), (w_ih, w_hh, b_ih, b_hh))[0]


def rnn_relu_cell(
    input: Array, hx: Array, w_ih: Array, w_hh: Array, b_ih: Array | None = None, b_hh: Array | None = None
) -> Array:
    """Return one step of an Elman network: relu(w_ih·x + b_ih + w_hh·h + b_hh)."""
    return _cell("rnn_relu_cell", "relu", 1, input, (hx,), (w_ih, w_hh, b_ih, b_hh))[0]


def gru_cell(
    input: Array, hx: Array, w_ih: Array, w_hh: Array, b_ih: Array | None = None, b_hh: Array | None = None
) -> Array:
    """Return one step of a gated recurrent unit with the weights of ``nn.GRUCell``."""
    return _cell("gru_cell", "gru", 3, input, (hx,), (w_ih, w_hh, b_ih, b_hh))[0]


def lstm_cell(
    input: Array, hx: Sequence[Array], w_ih: Array, w_hh: Array, b_ih: Array | None = None, b_hh: Array | None = None
) -> tuple[Array, Array]:
    """Return the pair (h, c) after one step of an LSTM with the weights of ``nn.LSTMCell``."""
    h, c = _cell("lstm_cell", "lstm", 4, input, tuple(hx), (w_ih, w_hh, b_ih, b_hh))
    return h, c


# --- whole networks -----------------------------------------------------------------------------------------------


def _network(
    kind: type[RNNBase], params: Sequence[Array], has_biases: bool, num_layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
) -> Any:  # fmt: skip
    """Return a layer of ``nn`` with these weights, without drawing initial ones."""
    runs = num_layers * (1 + bool(bidirectional))
    parts = ["weight_ih", "weight_hh", *(("bias_ih", "bias_hh") if has_biases else ())]
    is_projected = kind is LSTM and len(params) == runs * (len(parts) + 1)
    if is_projected:
        parts.append("weight_hr")
    if num_layers < 1 or len(params) != runs * len(parts):
        raise ArgumentError(
            f"[{kind.__name__.lower()}] {num_layers} layers{' in both directions' if bidirectional else ''} need "
            f"{runs * len(parts)} weights, {', '.join(parts)} of each; got {len(params)}."
        )
    layer: Any = kind.__new__(kind)
    layer.input_size, layer.hidden_size = params[0].shape[-1], params[0].shape[0] // kind.gates
    layer.num_layers, layer.bias, layer.batch_first = num_layers, has_biases, batch_first
    layer.dropout, layer.bidirectional, layer.training = dropout, bool(bidirectional), train
    layer.proj_size = params[len(parts) - 1].shape[0] if is_projected else 0
    given = iter(params)
    for number in range(num_layers):
        for suffix in layer._suffixes(number):
            for part in parts:
                setattr(layer, f"{part}_{suffix}", next(given))
    return layer


def _run(kind: type[RNNBase], input: Array, args: Sequence[Any], names: dict[str, Any], **more: Any) -> tuple[Any, ...]:
    """Run a network in one of PyTorch's forms: (input, hx, params, …, batch_first) or (data, batch_sizes, hx, params,
    …)."""
    order = ["hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional"]
    is_packed = len(args) == 8 and not isinstance(args[1], bool) and isinstance(args[2], (tuple, list))
    is_packed = is_packed or "batch_sizes" in names
    order = ["batch_sizes", *order] if is_packed else [*order, "batch_first"]
    given = dict(zip(order, args, strict=False)) | names
    if len(args) > len(order) or given.keys() != set(order):
        raise ArgumentError(f"[{kind.__name__.lower()}] takes (input, {', '.join(order)}); got {len(args) + 1}.")
    hx, sizes = given.pop("hx"), given.pop("batch_sizes", None)
    layer = _network(kind, **{"batch_first": False, **given})
    for name, value in more.items():
        setattr(layer, name, value)
    output, last = layer(PackedSequence(input, sizes) if is_packed else input, hx)
    output = output.data if is_packed else output
    return (output, *last) if isinstance(last, tuple) else (output, last)


def rnn_tanh(input: Array, *args: Any, **names: Any) -> tuple[Array, Array]:
    """Run an Elman network with tanh and return its output and last states.

    The arguments are (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first) or, for
    packed sequences, (data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional).
    """
    return _run(RNN, input, args, names, nonlinearity="tanh")


def rnn_relu(input: Array, *args: Any, **names: Any) -> tuple[Array, Array]:
    """Run an Elman network with relu; the arguments are the same as for :func:`rnn_tanh`."""
    return _run(RNN, input, args, names, nonlinearity="relu")


def gru(input: Array, *args: Any, **names: Any) -> tuple[Array, Array]:
    """Run a network of gated recurrent units; the arguments are the same as for :func:`rnn_tanh`."""
    return _run(GRU, input, args, names)


def lstm(input: Array, *args: Any, **names: Any) -> tuple[Array, Array, Array]:
    """Run an LSTM and return its output, last h and last c.

    The arguments are the same as for :func:`rnn_tanh`, with the pair (h, c) as ``hx``.
    """
    return _run(LSTM, input, args, names)
