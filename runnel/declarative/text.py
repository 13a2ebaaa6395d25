"""A declared graph as text: an operation a line."""

from __future__ import annotations

from typing import Any, Final

from runnel.core.dtypes import DType
from runnel.core.showing import short_repr
from runnel.declarative.calls import Arguments, Slot
from runnel.declarative.control import Body
from runnel.declarative.graph import Graph, default_graph
from runnel.declarative.operation import Operation

_PLAIN: Final = (bool, int, float, str, list, tuple, dict, slice, DType, Body)


def to_text(graph: Graph | None = None) -> str:
    """``graph``, by default the one that is being declared: of each operation its name, what it does with which
    inputs, and what is known of its outputs; the bodies of branches and loops behind the operation, indented."""
    lines: list[str] = []
    rest = [("", x) for x in reversed((default_graph() if graph is None else graph).operations)]
    while rest:
        indent, operation = rest.pop()
        lines.append(f"{indent}{described(operation)}")
        for body in reversed(bodies_of(operation)):
            rest += [(f"{indent}    ", x) for x in reversed(body.operations)]
    return "\n".join(lines)


def described(operation: Operation) -> str:
    """One operation as a line."""
    arguments = operation.attributes().get("arguments")
    if isinstance(arguments, Arguments):
        inside = _listed(operation, arguments)
    else:
        inside = ", ".join([*[x.name for x in operation.inputs], *_attributes(operation)])
    outputs = ", ".join(str(x.static) for x in operation.outputs)
    behind = f" after {', '.join(x.name for x in operation.control_inputs)}" if operation.control_inputs else ""
    return f"{operation.name} = {operation.label}({inside}){f': {outputs}' if outputs else ''}{behind}"


def bodies_of(operation: Operation) -> list[Body]:
    """The bodies that an operation carries out."""
    arguments = operation.attributes().get("arguments")
    return [x for x in arguments.leaves if isinstance(x, Body)] if isinstance(arguments, Arguments) else []


def _listed(operation: Operation, arguments: Arguments) -> str:
    args, kwargs = arguments.filled([_Name(x.name) for x in operation.inputs])
    return ", ".join([*map(_shown, args), *(f"{name}={_shown(x)}" for name, x in kwargs.items())])


def _attributes(operation: Operation) -> list[str]:
    """What the operation has besides its inputs, but for what its text says elsewhere."""
    return [f"{name}={_shown(value)}" for name, value in operation.attributes().items() if value is not None]


class _Name(str):
    """The name of a tensor, which is shown without quotes."""

    __slots__ = ()


def _shown(value: Any) -> str:
    if isinstance(value, _Name):
        return str(value)
    if isinstance(value, (list, tuple)) and any(isinstance(x, (_Name, Slot)) for x in value):
        return f"[{', '.join(map(_shown, value))}]"
    return repr(value) if isinstance(value, _PLAIN) else short_repr(value)
