"""Summarize modules: their outputs, Parameters and operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np

from runnel.core import html
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import Dtype, as_dtype
from runnel.core.errors import ArgumentError, CaptureError, DTypeError
from runnel.core.tables import Op, cost
from runnel.graph.node import Result, Value
from runnel.inspection import tables
from runnel.nn.module import Module
from runnel.tensor import tensor as tensors
from runnel.tensor.creation import asarray
from runnel.tensor.grad_mode import no_grad
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.random import get_rng_state, set_rng_state
from runnel.tensor.tracer import Tracer
from runnel.tensor.tracing import Trace

_HEADS = ("module", "class", "output", "calls", "parameters", "bytes", "FLOPs")


class Row(NamedTuple):
    """A module: its first path, and the figures of it and all below it. ``calls`` is 0 if it was not called."""

    path: str
    kind: str
    depth: int
    output: str
    calls: int
    parameters: int
    nbytes: int
    flops: int | None


class Summary:
    """A table with a row for each module; ``str()`` is the table, and notebooks show it as one.

    Attributes:
        rows: a :class:`Row` for each module, parents first; each module once.
        parameters: how many numbers all Parameters hold, each counted once.
        trainable: how many numbers the Parameters hold that require a gradient.
        nbytes: the size of all Parameters and buffers in bytes.
        flops: floating-point operations of a call, two for a multiply-add; None if they could not be counted.
    """

    def __init__(self, model: Module, rows: list[Row], flops: int | None, depth: int | None) -> None:
        self.rows = rows
        self.parameters = model.num_parameters()
        self.trainable = model.num_parameters(trainable_only=True)
        self.nbytes = _nbytes(model)
        self.flops = flops
        self._shown = [row for row in rows if depth is None or row.depth <= depth]

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                "  " * row.depth + (row.path.rpartition(".")[2] or "(model)"),
                row.kind,
                row.output,
                str(row.calls) if row.calls else "-",
                f"{row.parameters:,}",
                tables.size(row.nbytes),
                "-" if row.flops is None else tables.count(row.flops),
            )
            for row in self._shown
        ]

    def _totals(self) -> str:
        flops = "" if self.flops is None else f"; {tables.count(self.flops)} FLOPs a call"
        fixed = self.parameters - self.trainable
        return (
            f"{self.parameters:,} parameters{f', {fixed:,} of them not trained' if fixed else ''}; "
            f"{tables.size(self.nbytes)} with buffers{flops}"
        )

    def __str__(self) -> str:
        return f"{tables.table(_HEADS, self._cells(), left=('module', 'class', 'output'))}\n{self._totals()}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = [(row[0].replace(" ", "\u2003"), *row[1:]) for row in self._cells()]
        return html.table(_HEADS, cells) + html.pre(self._totals())


def summary(model: Module, *inputs: Any, depth: int | None = None, dtype: Dtype = "float32") -> Summary:
    """Return a table of the modules of ``model``.

    Each row has the class of a module, the shape of its output, and how often it is called; and, including the modules
    below, the numbers and bytes of its Parameters and its floating-point operations. A module with several names has
    one row; sums count shared Parameters once.

    The model is called in evaluation mode, on tensors without values. If it needs values, it is called on values, and
    operations are not counted. The model does not change.

    Args:
        model: a Module.
        inputs: shapes of arguments, such as ``(1, 3, 32, 32)``, or tensors or arrays; none for a table without outputs.
        depth: how many levels of modules to show below ``model``.
        dtype: the dtype of inputs that are shapes; floats are random, and integers are 0.

    Raises:
        ArgumentError: an input is neither a shape nor an array.
    """
    if not isinstance(model, Module):
        raise ArgumentError(f"[summary] model must be a Module; got {type(model).__name__}.")
    if not inputs:
        return Summary(model, _rows(model, _Calls()), None, depth)
    examples = [_example(x, dtype) for x in inputs]
    try:
        calls = _traced(model, examples)
    except (CaptureError, NotImplementedError):
        calls = _run(model, examples)
    except DTypeError as error:
        error.add_note(f"[summary] inputs given as shapes are {dtype}; pass dtype=, such as 'int64' for indices.")
        raise
    return Summary(model, _rows(model, calls), calls.total, depth)


class _Calls:
    """The calls of each module, by its id."""

    def __init__(self) -> None:
        self.count: dict[int, int] = {}
        self.output: dict[int, str] = {}
        self.flops: dict[int, int] = {}
        self.total: int | None = None


class _CountingTrace(Trace):
    """A trace that counts operations by the table ``cost``."""

    flops = 0

    def record(self, op: Op, inputs: tuple[Value, ...], attrs: dict[str, Any]) -> tuple[Result, ...]:
        rule = cost.get(op)
        self.flops += 0 if rule is None else int(rule(*(x.aval for x in inputs), **attrs))
        return super().record(op, inputs, attrs)


def _traced(model: Module, examples: Sequence[Any]) -> _Calls:
    """Call the model on tensors without values."""
    trace, calls = _CountingTrace(tensors.serial_now()), _Calls()
    tracer = Tracer(trace=trace)
    with _as_it_was(model), _watched(model, calls, lambda: trace.flops), tracer, no_grad():
        model(*[tracer.argument(x.aval, f"x{i}") for i, x in enumerate(examples)])
    calls.total = trace.flops
    return calls


def _run(model: Module, examples: Sequence[Any]) -> _Calls:
    """Call the model on values."""
    calls = _Calls()
    with _as_it_was(model), _watched(model, calls, None), no_grad():
        model(*examples)
    return calls


@contextmanager
def _as_it_was(model: Module) -> Iterator[None]:
    """Set evaluation mode; restore modes and the random state afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    random = get_rng_state()
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            if module.training != mode:
                module.training = mode
        set_rng_state(random)


@contextmanager
def _watched(model: Module, calls: _Calls, flops: Any) -> Iterator[None]:
    """Record the calls of all modules."""
    begun: list[int] = []

    def before(module: Module, args: Any) -> None:
        begun.append(flops() if flops is not None else 0)

    def after(module: Module, args: Any, result: Any) -> None:
        start, key = begun.pop(), id(module)
        calls.count[key] = calls.count.get(key, 0) + 1
        calls.output[key] = _shape(result)
        if flops is not None:
            calls.flops[key] = calls.flops.get(key, 0) + flops() - start

    with ExitStack() as stack:
        for module in list(model.modules()):
            stack.callback(module.register_forward_pre_hook(before).remove)
            stack.callback(module.register_forward_hook(after).remove)
        yield


def _shape(result: Any) -> str:
    """Return the shapes of a result as a string."""
    if isinstance(result, TensorLike):
        return str(tuple(result.shape))
    if isinstance(result, Mapping):
        return f"{{{', '.join(f'{key}: {_shape(item)}' for key, item in result.items())}}}"
    if isinstance(result, list | tuple):
        return f"[{', '.join(map(_shape, result))}]"
    return "-" if result is None else type(result).__name__


def _example(value: Any, dtype: Dtype) -> Any:
    """Return an input as a tensor."""
    if isinstance(value, ArrayMethods | np.ndarray):
        return asarray(value)
    if isinstance(value, list | tuple) and all(
        isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in value
    ):
        kind = as_dtype(dtype).numpy
        noise = np.random.default_rng(0).standard_normal(value)
        return asarray(noise.astype(kind) if as_dtype(dtype).is_float else np.zeros(value, kind))
    raise ArgumentError(
        f"[summary] an input must be a shape, such as (1, 3, 32, 32), a tensor or an array; got {value!r}."
    )


def _rows(model: Module, calls: _Calls) -> list[Row]:
    return [
        Row(
            path,
            type(module).__name__,
            path.count(".") + 1 if path else 0,
            calls.output.get(id(module), "-"),
            calls.count.get(id(module), 0),
            module.num_parameters(),
            _nbytes(module),
            calls.flops.get(id(module)),
        )
        for path, module in model.named_modules()
    ]


def _nbytes(module: Module) -> int:
    return sum(v.size * v.dtype.itemsize for v in (*module.parameters(), *module.buffers()))
