"""The steps of recurrent networks, and the compositions that run them: a cell, and layers over a sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from runnel import ops
from runnel.core.composed import composed
from runnel.transforms.scan import scan

State = tuple[Any, ...]
Step = Callable[[Any, State, Any, Any], State]  # of the input's contribution, the state, and weight_hh and bias_hh


def _tanh_step(x: Any, state: State, weight: Any, bias: Any) -> State:
    return (ops.tanh(x + ops.linear(state[0], weight, bias)),)


def _relu_step(x: Any, state: State, weight: Any, bias: Any) -> State:
    return (ops.relu(x + ops.linear(state[0], weight, bias)),)


def _gru_step(x: Any, state: State, weight: Any, bias: Any) -> State:
    """Return the next state (h,). ``x`` contains the reset gate, the update gate and the new value side by side.

    K. Cho et al., 2014, with the reset gate after the product.
    """
    (h,) = state
    size = h.shape[-1]
    past = ops.linear(h, weight, bias)
    reset = ops.sigmoid(_gate(x, 0, size) + _gate(past, 0, size))
    update = ops.sigmoid(_gate(x, 1, size) + _gate(past, 1, size))
    new = ops.tanh(_gate(x, 2, size) + reset * _gate(past, 2, size))
    return (new + update * (h - new),)


def _lstm_step(x: Any, state: State, weight: Any, bias: Any) -> State:
    """Return the next state (h, c).

    ``x`` contains the input gate, the forget gate, the cell value and the output gate side by side (S. Hochreiter,
    J. Schmidhuber, 1997; F. Gers et al., 2000).
    """
    h, c = state
    size = c.shape[-1]
    total = x + ops.linear(h, weight, bias)
    keep = ops.sigmoid(_gate(total, 1, size))
    write = ops.sigmoid(_gate(total, 0, size))
    cell = keep * c + write * ops.tanh(_gate(total, 2, size))
    return ops.sigmoid(_gate(total, 3, size)) * ops.tanh(cell), cell


def _gate(x: Any, number: int, size: int) -> Any:
    return ops.narrow(x, x.ndim - 1, number * size, size)


STEPS: Final[dict[str, Step]] = {"tanh": _tanh_step, "relu": _relu_step, "gru": _gru_step, "lstm": _lstm_step}


@composed
def next_state(
    kind: str, x: Any, state: State, weight_ih: Any, weight: Any, bias_ih: Any = None, bias: Any = None
) -> State:
    """Return the state of a cell after ``x`` of shape (batch, features) or (features,)."""
    rows = tuple(ops.reshape(h, (-1, h.shape[-1])) for h in state)
    projected = ops.linear(ops.reshape(x, (-1, x.shape[-1])), weight_ih, bias_ih)
    after = STEPS[kind](projected, rows, weight, bias)
    return tuple(ops.reshape(h, before.shape) for h, before in zip(after, state, strict=True))


def stepping(step: Step, weight: Any, bias: Any, projection: Any) -> Callable[[State, Any], tuple[State, Any]]:
    """Return ``step`` with its weights, as ``scan`` takes it; a ``projection`` multiplies h."""

    def run(carry: State, x: Any) -> tuple[State, Any]:
        after = step(x, carry, weight, bias)
        if projection is not None:
            after = (ops.linear(after[0], projection), *after[1:])
        return after, after[0]

    return run


@composed
def run_layers(
    kind: str, bidirectional: bool, x: Any, first: State, weights: tuple[tuple[Any, ...], ...]
) -> tuple[Any, ...]:
    """Run layers over ``x`` (steps, batch, features); return the output, and the last states, stacked.

    ``first`` are stacked states, one for each layer and direction, and ``weights`` their (weight_ih, bias_ih,
    weight_hh, bias_hh, weight_hr).
    """
    outputs: list[Any] = []
    last: list[State] = []
    for number, (weight_ih, bias_ih, weight, bias, projection) in enumerate(weights):
        state = tuple(ops.getitem(h, number) for h in first)
        step, backwards = stepping(STEPS[kind], weight, bias, projection), bidirectional and number % 2 == 1
        after, output = scan(step, state, ops.linear(x, weight_ih, bias_ih), reverse=backwards)
        last.append(after)
        outputs.append(output)
        if backwards or not bidirectional:
            x = ops.concat(outputs, -1) if bidirectional else output
            outputs.clear()
    return x, *(ops.stack(list(states)) for states in zip(*last, strict=True))
