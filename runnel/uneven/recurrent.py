"""Recurrent layers over rows of different lengths: ``recur`` along chains whose order is computed where they are."""

from __future__ import annotations

from typing import Any

from runnel import ops
from runnel.core.dispatch import apply
from runnel.core.dtypes import int64
from runnel.core.errors import ShapeError, UnsupportedError
from runnel.nn.recurrence import STEPS, stepping
from runnel.ops.indexing.segments import counting_sort_p
from runnel.tensor import random
from runnel.transforms.order import Order
from runnel.transforms.recur import recur
from runnel.uneven import rows
from runnel.uneven.value import Ragged


def recurrent(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Ragged, Any]:
    """Return the output of ``nn.RNN``, ``nn.GRU`` or ``nn.LSTM``, and the last states of all layers."""

    def forward(input: Ragged, hx: Any = None) -> tuple[Ragged, Any]:
        name = type(layer).__name__
        if hx is not None or not isinstance(input, Ragged) or isinstance(input.values, Ragged):
            raise UnsupportedError(f"[{name}] input must have one ragged axis and hx must be None; states begin as 0.")
        if input.ndim != 3 or input.values.shape[1] != layer.input_size:
            raise ShapeError(f"[{name}] input must be (rows, length, {layer.input_size}); got {input}.")
        orders = [chains(input, bool(back)) for back in range(1 + layer.bidirectional)] if input.total else []
        x, last = input.values, []
        for number in range(layer.num_layers):
            if number and layer.dropout and layer.training:
                x = random.dropout(x, layer.dropout)
            outputs = []
            for back, suffix in enumerate(layer._suffixes(number)):
                states = _states(layer, x, suffix, orders[back] if orders else None)
                last.append([_last(Ragged.made(h, input.offsets), bool(back)) for h in states])
                outputs.append(states[0])
            x = ops.concat(outputs, -1) if len(outputs) > 1 else outputs[0]
        ends = tuple(ops.stack(list(states)) for states in zip(*last, strict=True))
        return Ragged.made(x, input.offsets), ends[0] if layer.states == 1 else ends

    return forward(*args, **kwargs)


def chains(x: Ragged, reverse: bool = False) -> Order:
    """Return the order of elements that depend on the one before (or after) them in their row. It has as many waves as
    elements, most of them empty, so that lengths stay data."""
    total, place = x.total, rows.positions(x)
    step, here = 1, ops.iota(place, (total,), 0, int64)
    if reverse:
        lengths = x.lengths
        place, step = ops.take(lengths, rows.labels(x), 0) - 1 - place, -1
    table = apply(counting_sort_p, place, rows=total)
    order = ops.narrow(table, 0, total + 2, total)
    places = ops.put(ops.full_like(here, 0), (order,), here)
    before = ops.minimum(ops.maximum(order - step, 0), total - 1)
    links = ops.where(ops.take(place, order, 0) > 0, ops.take(places, before, 0), here)
    return Order(ops.expand_dims(links, 0), order, places, ops.narrow(table, 0, 0, total + 1))


def _states(layer: Any, x: Any, suffix: str, order: Order | None) -> tuple[Any, ...]:
    """Return the states of one layer in one direction, for each element."""
    weight_ih, bias_ih, weight, bias, projection = layer._weights(suffix)
    sizes = (layer.proj_size or layer.hidden_size, layer.hidden_size)[: layer.states]
    if order is None:
        return tuple(ops.full_like(x, 0, (0, size)) for size in sizes)
    step = stepping(STEPS[layer.kind], weight, bias, projection)
    first = tuple(ops.full_like(x, 0, (size,)) for size in sizes)
    states: tuple[Any, ...] = recur(
        lambda below, now: step(below[0], now)[0], first, order, ops.linear(x, weight_ih, bias_ih)
    )
    return states


def _last(x: Ragged, backwards: bool) -> Any:
    """Return the state after each row; 0 for an empty one."""
    if not x.total:
        return ops.full_like(x.values, 0, (x.count, *x.values.shape[1:]))
    offsets = rows.checked_offsets(x)
    place = offsets[:-1] if backwards else offsets[1:] - 1
    found = ops.take(x.values, ops.minimum(ops.maximum(place, 0), x.total - 1), 0)
    return ops.where(rows.column(x.lengths, found) > 0, found, 0)
