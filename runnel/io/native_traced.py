"""A function as a graph for a program without Python: traced, with all that it reads from outside."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MethodType
from typing import Any, NamedTuple

import numpy as np

from runnel.backends.context import default_device
from runnel.core import pytree
from runnel.core.arrays import short_repr
from runnel.core.devices import CPU
from runnel.core.errors import ArgumentError, DeviceError, SideEffectError
from runnel.graph.graph import Graph
from runnel.graph.node import Value
from runnel.io import native_c
from runnel.nn.module import Module
from runnel.tensor.creation import asarray
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor
from runnel.tensor.tracer import Tracer
from runnel.tensor.variable import Variable


class Traced(NamedTuple):
    """A function as a graph; its inputs by where their values come from."""

    graph: Graph
    function: str
    inputs: dict[Value, str]  # those that a call gives, with their names
    variables: dict[Value, tuple[str, Variable]]
    captured: dict[Value, np.ndarray]
    outputs: list[str]


def traced(function: Any, example_inputs: Sequence[Any], name: str) -> Traced:
    plain = getattr(function, "function", function)
    label = getattr(plain, "__qualname__", type(plain).__name__)
    tracer = Tracer()
    leaves, structure = pytree.flatten(list(example_inputs))
    named = dict(zip(pytree.paths(structure), leaves, strict=True))
    texts = [_spelled(path, _parameters(function)) for path, x in named.items() if _is_array(x)]
    names = iter(native_c.identifiers(texts, (name, "model")))
    inputs: dict[Value, str] = {}
    with tracer:
        arguments: list[Any] = []
        for leaf in leaves:
            if _is_array(leaf):
                value = asarray(leaf).aval
                tracer.trace.settle(value.device)
                own = next(names)
                leaf = tracer.argument(value, own)
                inputs[tracer.node(leaf)] = own
            arguments.append(leaf)
        results = function(*pytree.unflatten(structure, arguments))
        _require_no_effects(label, tracer)
        tops, top_structure = pytree.flatten(results)
        graph = tracer.graph([_output(label, x) for x in tops], name)
    device = tracer.trace.device or default_device()
    if device is not CPU:
        raise DeviceError(f"[export_native] '{label}' computes on {device}, and machine code is that of cpu; move it.")
    captured: dict[Value, np.ndarray] = {}
    captured.update((node, np.ascontiguousarray(_numpy(value))) for node, value in tracer.captures.items())
    captured.update((node, np.array(getter(), np.float64)) for node, getter in tracer.numbers.items())
    paths = [_spelled(path, []) or "output" for path in pytree.paths(top_structure)]
    outputs = native_c.identifiers(
        [f"output{path}" if path[:1].isdigit() else path for path in paths], (*inputs.values(), name, "model")
    )
    return Traced(graph, label, inputs, _named(function, tracer.bound_variables), captured, outputs)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (ArrayMethods, np.ndarray)) and not isinstance(leaf, Variable)


def _numpy(value: Any) -> np.ndarray:
    array: np.ndarray = value.numpy() if isinstance(value, Tensor) else np.asarray(value)
    return array


def python_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """What calls of a function run: of a module its ``forward``, of a compiled function the one that was compiled."""
    called = getattr(function, "forward", function)
    inner: Callable[..., Any] = getattr(called, "function", called)
    owner = getattr(called, "__self__", None)
    return inner if inner is called or owner is None else MethodType(inner, owner)


def _parameters(function: Callable[..., Any]) -> list[str]:
    """The names of a function's parameters, as far as there are some."""
    try:
        every = inspect.signature(python_function(function)).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in every if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _spelled(path: str, parameters: Sequence[str]) -> str:
    """A path in a list of arguments, with the parameter's name in place of its number."""
    first, _, rest = path.removeprefix("[").partition("]")
    if not parameters or not first.isdigit() or int(first) >= len(parameters):
        return path.strip("[]'").replace("']['", "_").replace("][", "_")
    return f"{parameters[int(first)]}{rest}"


def _require_no_effects(label: str, tracer: Tracer) -> None:
    if tracer.calls_python:
        raise SideEffectError(
            f"[export_native] '{label}' calls Python (prints, callbacks), which C programs are without."
        )
    for variable in tracer.gradients_used:
        raise SideEffectError(
            f"[export_native] '{label}' uses the .grad of {variable.described}; take gradients with runnel.grad inside."
        )


def _output(label: str, x: Any) -> Tensor:
    if not isinstance(x, (ArrayMethods, np.ndarray)):
        raise ArgumentError(f"[export_native] '{label}' returns {short_repr(x)}, and outputs of a program are tensors.")
    return asarray(x)


def _named(function: Any, variables: Mapping[Value, Variable]) -> dict[Value, tuple[str, Variable]]:
    """Variables with names: those in the module that the function is, or is a method of, else their own."""
    module = function if isinstance(function, Module) else getattr(function, "__self__", None)
    known: dict[int, str] = {}
    if isinstance(module, Module):
        known = {id(x): name for name, x in (*module.named_buffers(), *module.named_parameters())}
    used: set[str] = set()
    named: dict[Value, tuple[str, Variable]] = {}
    for node, variable in variables.items():
        base = own = known.get(id(variable)) or variable.name or "variable"
        while own in used:
            own = f"{base}_{len(used)}"
        used.add(own)
        named[node] = own, variable
    return named
