"""Save declared graphs as JSON: the operations in order, by name."""

from __future__ import annotations

import json
import os
from typing import Any, Final

from runnel import optim
from runnel.core.errors import FileError, GraphError, RunnelError
from runnel.core.files import read_regular, write_atomically
from runnel.declarative.calls import Call, Constant, Slot
from runnel.declarative.control import Body, BodyGraph
from runnel.declarative.gradients import Gradient
from runnel.declarative.graph import Graph, default_graph
from runnel.declarative.operation import Declared, Operation
from runnel.declarative.packing import (
    function_called,
    function_name,
    packed,
    packed_arguments,
    packed_array,
    packed_static,
    unpacked,
    unpacked_arguments,
    unpacked_array,
    unpacked_static,
)
from runnel.declarative.state import Assign, Group, Placeholder, Read, VariableOperation
from runnel.declarative.training import Minimize, require_hyperparameters

_FORMAT: Final = 1
_LARGEST: Final = 1 << 32
_LONGEST: Final = 600  # characters of a message, which may quote the file
_Path = str | os.PathLike[str]


def save(path: _Path, graph: Graph | None = None) -> None:
    """Write ``graph``, by default the current one, to ``path`` as JSON, without the values of variables.

    GraphError for calls of functions outside ``rn``; FileError if the file cannot be written. An existing file is
    unchanged in both cases.
    """
    text = to_json(default_graph() if graph is None else graph)
    try:
        write_atomically(path, [text.encode()])
    except OSError as error:
        raise FileError(f"[save] '{os.fspath(path)}' cannot be written: {error}.") from error


def load(path: _Path) -> Graph:
    """Return the graph that :func:`save` wrote to ``path``.

    Everything in the file is checked: shapes and dtypes are inferred again, and only functions of ``rn`` can be called.
    FileError if the file is truncated, changed or not a graph.
    """
    try:
        text = read_regular(path, _LARGEST)[0]
    except OSError as error:
        raise FileError(f"[load] '{os.fspath(path)}' cannot be read: {error}.") from error
    try:
        return from_json(text.decode())
    except UnicodeDecodeError:
        raise FileError(f"[load] '{os.fspath(path)}' is not a graph: it is not text.") from None
    except GraphError as error:
        raise FileError(f"[load] '{os.fspath(path)}' is not a complete graph: {_reason(error)}") from None


def to_json(graph: Graph) -> str:
    return json.dumps({"format": _FORMAT, **_packed_graph(graph)}, separators=(",", ":"), allow_nan=False)


def from_json(text: str) -> Graph:
    """Return the graph of :func:`to_json`; GraphError if the text is not valid."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise GraphError(f"[load] the text is not JSON, or is truncated: {error}.") from None
    except RecursionError:
        raise GraphError("[load] values are nested too deeply.") from None
    try:
        if not isinstance(value, dict):
            raise ValueError("it is not an object")
        if value["format"] != _FORMAT:
            raise ValueError(f"the format is {value['format']!r}, and not {_FORMAT}")
        graph = Graph(_string(value["name"]))
        _fill(graph, value["operations"])
        return graph
    except RecursionError:
        raise GraphError("[load] values are nested too deeply.") from None
    except Exception as error:  # whatever is wrong in it: nothing of it is used
        reason = _reason(error)
        reason = reason if len(reason) <= _LONGEST else f"{reason[:_LONGEST]} ..."
        raise GraphError(f"[load] {reason}") from None


def _reason(error: Exception) -> str:
    """Return what is wrong with a text, from the error that it caused."""
    if isinstance(error, KeyError):
        return f"{error} is missing."
    if isinstance(error, (RunnelError, ValueError)) or str(error).startswith("["):
        return f"{str(error).removeprefix('[load] ').removesuffix('.')}."
    return f"a value has the wrong type ({error})."


# Out --------------------------------------------------------------------------------------------------------------


def _packed_graph(graph: Graph) -> dict[str, Any]:
    return {"name": graph.name, "operations": [_packed_operation(x) for x in graph.operations]}


def _packed_operation(x: Operation) -> dict[str, Any]:
    packing: dict[str, Any] = {"name": x.name, "kind": x.kind}
    if x.inputs:
        packing["inputs"] = [tensor.name for tensor in x.inputs]
    if x.control_inputs:
        packing["after"] = [before.name for before in x.control_inputs]
    if isinstance(x, Constant):
        packing |= packed_array(x.value)
    elif isinstance(x, Call):
        packing |= {"function": function_name(x.function), "arguments": packed_arguments(x.arguments, _packed_body)}
    elif isinstance(x, (Placeholder, VariableOperation)):
        packing |= packed_static(x.outputs[0].static)
    if isinstance(x, Minimize):
        packing["hyperparameters"] = packed(x.hyperparameters, _refused)
        packing |= {"optimizer": x.optimizer.__name__, "variables": [v.name for v in x.variables]}
    elif not isinstance(x, (Constant, Call)):
        packing |= x.attributes()
    return packing


def _packed_body(value: Any) -> Any:
    if not isinstance(value, Body):
        return _refused(value)
    return {
        "body": {
            **_packed_graph(value.graph),
            "parameters": [x.name for x in value.parameters],
            "results": [x.name for x in value.outputs],
            "structure": packed(_tree_of(value), _refused),
        }
    }


def _tree_of(body: Body) -> Any:
    """Return the structure of a body's results, with the number of each result as a leaf."""
    return body.filled(list(range(len(body.outputs))))


def _refused(value: Any) -> Any:
    raise GraphError(f"[save] an argument {value!r} of type {type(value).__name__} cannot be saved.")


# In ---------------------------------------------------------------------------------------------------------------


def _fill(graph: Graph, operations: Any) -> None:
    """Declare ``operations`` in ``graph``."""
    if not isinstance(operations, list):
        raise ValueError("the operations are not a list")
    with graph:
        for number, value in enumerate(operations):
            try:
                operation = _unpacked_operation(graph, value)
                if operation.name != value["name"]:
                    raise ValueError(f"the name {value['name']!r} occurs twice")
            except RecursionError:
                raise
            except Exception as error:
                name = f", {value['name']!r}" if isinstance(value, dict) and "name" in value else ""
                raise ValueError(f"operation {number}{name}: {_reason(error)}") from None
    for value in operations:
        if "after" in value:
            graph.operation(value["name"]).add_control_inputs(*map(graph.operation, value["after"]))


def _unpacked_operation(graph: Graph, value: Any) -> Operation:
    if not isinstance(value, dict):
        raise ValueError("it is not an object")
    name, kind = _string(value["name"]), value["kind"]
    inputs = [_tensor(graph, x) for x in value.get("inputs", ())]
    if kind == Constant.kind:
        return Constant(graph, name, unpacked_array(value))
    if kind == Placeholder.kind:
        return Placeholder(graph, name, unpacked_static(value))
    if kind == VariableOperation.kind:
        initial = value["initial"]
        return VariableOperation(
            graph, name, unpacked_static(value), None if initial is None else _tensor(graph, initial)
        )
    if kind == Read.kind:
        return Read(_variable(graph, value["variable"]).variable, name)
    if kind == Assign.kind:
        (assigned,) = inputs
        return Assign(_variable(graph, value["variable"]).variable, assigned, name)
    if kind == Group.kind:
        return Group(graph, name, (), bool(value["initialises"]))
    if kind == Call.kind:
        arguments = unpacked_arguments(value["arguments"], _BodyReader(graph, name).unpacked)
        if sorted(x.number for x in arguments.leaves if isinstance(x, Slot)) != [*range(len(inputs))]:
            raise ValueError(f"its arguments do not refer to its {len(inputs)} inputs, once to each")
        return Call(graph, name, function_called(value["function"]), arguments, inputs)
    if kind == Gradient.kind:
        return _unpacked_gradient(graph, value, inputs)
    if kind == Minimize.kind:
        variables = [_variable(graph, x) for x in value["variables"]]
        optimizer = getattr(optim, value["optimizer"]) if value["optimizer"] in optim.__all__ else None
        if not (isinstance(optimizer, type) and issubclass(optimizer, optim.Optimizer)):
            raise ValueError(f"unknown optimizer {value['optimizer']!r}")
        if not variables or len(variables) != len(inputs):
            raise ValueError("a training step has a gradient for each of its variables")
        hyperparameters = unpacked(value["hyperparameters"], _unknown)
        require_hyperparameters(optimizer, hyperparameters)
        return Minimize(name, optimizer, hyperparameters, variables, inputs)
    raise ValueError(f"unknown kind of operation {kind!r}")


def _unpacked_gradient(graph: Graph, value: dict[str, Any], inputs: list[Declared]) -> Operation:
    of = graph.operation(value["of"])
    if not isinstance(of, (Call, Gradient)) or any(x is not y for x, y in zip(inputs, of.inputs, strict=False)):
        raise ValueError(f"{value['of']!r} is not differentiable, or has other inputs")
    through, asked = map(_numbers, (value["through"], value["asked"]))
    if len(inputs) != len(of.inputs) + len(through) or not {*through} <= {*range(len(of.outputs))}:
        raise ValueError(f"cotangents for outputs {through} of {value['of']!r}")
    if not {*asked} <= {*range(len(of.inputs))}:
        raise ValueError(f"{value['of']!r} has no inputs {asked}")
    return Gradient(of, through, inputs[len(of.inputs) :], asked, value["name"])


class _BodyReader:
    def __init__(self, graph: Graph, name: str) -> None:
        self._graph = graph
        self._name = name

    def unpacked(self, value: Any) -> Body:
        ((kind, inside),) = value.items()
        if kind != "body":
            raise ValueError(f"unknown kind of argument {kind!r}")
        graph = BodyGraph(self._graph, _string(inside["name"]))
        _fill(graph, inside["operations"])
        parameters = [_tensor(graph, x) for x in inside["parameters"]]
        results = [_tensor(graph, x) for x in inside["results"]]
        if not all(isinstance(x.operation, Placeholder) for x in parameters):
            raise ValueError("a parameter of a body is not a placeholder")
        return Body.of_tree(graph, parameters, results, unpacked(inside["structure"], _unknown))


def _tensor(graph: Graph, name: Any) -> Declared:
    operation, _, index = _string(name).partition(":")
    outputs = {x.name: x for x in graph.operation(operation).outputs}
    if name not in outputs:
        raise ValueError(f"'{operation}' has no output {index or 0}")
    return outputs[name]


def _variable(graph: Graph, name: Any) -> VariableOperation:
    operation = graph.operation(_string(name))
    if not isinstance(operation, VariableOperation):
        raise ValueError(f"{name!r} is not a variable")
    return operation


def _numbers(value: Any) -> list[int]:
    if not isinstance(value, list) or not all(type(x) is int for x in value):
        raise ValueError(f"{value!r} is not a list of ints")
    return value


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a name")
    return value


def _unknown(value: Any) -> Any:
    raise ValueError(f"unknown kind of argument {next(iter(value), None)!r}")
