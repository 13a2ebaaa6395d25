"""One step of a recurrent network, as functions of the projected input and the state, and as modules."""

from __future__ import annotations

import math
from typing import Any

from runnel import ops
from runnel.core.dtypes import Dtype
from runnel.core.errors import ShapeError
from runnel.nn import init
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter, parameter_dtype
from runnel.tensor.creation import zeros

State = tuple[Any, ...]


def elman_step(x: Any, state: State, weight: Any, bias: Any, nonlinearity: str) -> State:
    """Return the next state (h,), given ``x`` = weight_ih · input + bias_ih."""
    (h,) = state
    total = x + ops.linear(h, weight, bias)
    return (ops.tanh(total) if nonlinearity == "tanh" else ops.relu(total),)


def gru_step(x: Any, state: State, weight: Any, bias: Any) -> State:
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


def lstm_step(x: Any, state: State, weight: Any, bias: Any) -> State:
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


class RNNCellBase(Module):
    """The base of the cells: Parameters with PyTorch's names, uniform in ±1/√hidden_size."""

    bias_ih: Parameter | None
    bias_hh: Parameter | None
    gates: int
    states: int = 1

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, dtype: Dtype = None) -> None:
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

    def _step(self, x: Any, state: State, weight: Any, bias: Any) -> State:
        raise NotImplementedError

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return the state after ``input``, given the one before, which is 0 by default."""
        states = self._next(input, (hx,) if self.states == 1 and hx is not None else hx)
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
        rows = tuple(ops.reshape(h, (-1, self.hidden_size)) for h in states)
        projected = ops.linear(ops.reshape(x, (-1, self.input_size)), self.weight_ih, self.bias_ih)
        after = self._step(projected, rows, self.weight_hh, self.bias_hh)
        return tuple(ops.reshape(h, shape) for h in after)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias_ih is not None else ", bias=False")


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
        dtype: Dtype = None,
    ) -> None:
        require_nonlinearity(nonlinearity)
        super().__init__(input_size, hidden_size, bias, dtype)
        self.nonlinearity = nonlinearity

    def _step(self, x: Any, state: State, weight: Any, bias: Any) -> State:
        return elman_step(x, state, weight, bias, self.nonlinearity)


class GRUCell(RNNCellBase):
    """Compute one step of a gated recurrent unit.

    It takes the arguments of :class:`RNNCell`, except ``nonlinearity``, with the same shapes. The rows of the weights
    belong to the reset gate, the update gate and the new value.
    """

    gates = 3

    def _step(self, x: Any, state: State, weight: Any, bias: Any) -> State:
        return gru_step(x, state, weight, bias)


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
    states = 2

    def _step(self, x: Any, state: State, weight: Any, bias: Any) -> State:
        return lstm_step(x, state, weight, bias)


def require_nonlinearity(name: str) -> None:
    """Raise ValueError unless ``name`` is a nonlinearity of Elman networks."""
    if name not in ("tanh", "relu"):
        raise ValueError(f"[RNN] nonlinearity must be 'tanh' or 'relu'; got {name!r}.")
