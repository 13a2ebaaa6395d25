"""The order of effects in a trace, by tokens.

A token is an array of no elements. It goes through loops and branches as a Variable that they assign does, so it has
what is asked of one there: ``aval``, ``name``, ``read`` and ``assign``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from runnel.backends.context import default_device
from runnel.core.avals import ShapedArray
from runnel.core.devices import Device
from runnel.graph.node import Input, InputKind, Value
from runnel.ops.callbacks import TOKEN
from runnel.ops.requirement import required
from runnel.tensor import tensor as tensors
from runnel.tensor.grad_mode import run_recording
from runnel.tensor.tensor import Tensor
from runnel.tensor.trace import ACTIVE
from runnel.tensor.tracing import Trace


def no_token(device: Device | None = None) -> Tensor:
    """Return the token before all effects."""
    return tensors.from_numpy(np.zeros(TOKEN.shape, TOKEN.dtype.numpy), TOKEN.dtype, copy=False, device=device)


class Order:
    """The order of the effects of ``trace``; without one effects happen at once, and have no other order."""

    name = "order of effects"
    aval: ShapedArray = TOKEN

    def __init__(self, trace: Trace | None, device: Device | None = None) -> None:
        self.before: Input | None = None  # of a body: its first token comes from around it
        if trace is not None and trace.is_body:
            self.before = trace.input(TOKEN, InputKind.ARGUMENT, "order")
            self._token = tensors.symbolic(self.before)
        elif trace is not None:
            self._token = tensors.symbolic(trace.constant(np.zeros(TOKEN.shape, TOKEN.dtype.numpy), TOKEN.dtype))
        else:
            self._token = no_token(device)
        self._trace = trace

    def read(self) -> Tensor:
        """Return the token of the last effect."""
        return self._token

    def assign(self, token: Tensor) -> None:
        """There was an effect, which gave ``token``."""
        if token._level is not None:
            token = token._level.as_state(token, self.name)
        if self._trace is not None:
            self._token = token

    def last(self) -> Value | None:
        """Return the value of the last effect's token in the graph; None if the trace has no effects."""
        return self._token._node


class Effects:
    """The order of effects in a trace, if it has any."""

    def __init__(self) -> None:
        self.order: Order | None = None


_AT_ONCE: Final[dict[Device, Order]] = {}


def order_of(trace: Trace | None, device: Device | None) -> Order:
    """Return the order of effects in ``trace``; without a trace, the order on ``device``."""
    if trace is None:
        device = device or default_device()
        return _AT_ONCE.get(device) or _AT_ONCE.setdefault(device, Order(None, device))
    effects = trace.facet(Effects)
    if effects.order is None:
        effects.order = Order(trace)
        trace.last_effect = effects.order.last
    return effects.order


def require_at_run(facts: Callable[[], Any], message: str) -> None:
    """Let a program stop with the ValueError ``message`` unless all elements of ``facts()`` are true when it runs."""
    trace = ACTIVE.trace
    if trace is None or trace.is_body or trace.refuse is None:
        return
    checked = run_recording(False, lambda: required(facts(), message)).read()
    while checked._level is not None:
        checked = checked.primary
    trace.checks.append(tensors.node_of(checked, trace))
