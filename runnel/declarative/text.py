"""Print a declared graph: one operation per line, or as Graphviz DOT and SVG."""

from __future__ import annotations

from typing import Any, Final

from runnel.core.arrays import short_repr
from runnel.core.dtypes import DType
from runnel.declarative.calls import Arguments, Slot
from runnel.declarative.control import Body
from runnel.declarative.graph import Graph, default_graph
from runnel.declarative.operation import Operation, ordered
from runnel.graph.printer import Drawn, svg

_PLAIN: Final = (bool, int, float, str, list, tuple, dict, slice, DType, Body)


def to_text(graph: Graph | None = None) -> str:
    """Return ``graph``, by default the current one, as text with a line for each operation.

    A line has its name, function, inputs and what is known of its outputs. Bodies of branches and loops follow their
    operation, indented.
    """
    lines: list[str] = []
    rest = [("", x) for x in reversed((default_graph() if graph is None else graph).operations)]
    while rest:
        indent, operation = rest.pop()
        lines.append(f"{indent}{described(operation)}")
        for body in reversed(bodies_of(operation)):
            rest += [(f"{indent}    ", x) for x in reversed(body.operations)]
    return "\n".join(lines)


def described(operation: Operation) -> str:
    """Return one operation as a line."""
    arguments = operation.attributes().get("arguments")
    if isinstance(arguments, Arguments):
        inside = _listed(operation, arguments)
    else:
        inside = ", ".join([*[x.name for x in operation.inputs], *_attributes(operation)])
    outputs = ", ".join(str(x.static) for x in operation.outputs)
    behind = f" after {', '.join(x.name for x in operation.control_inputs)}" if operation.control_inputs else ""
    return f"{operation.name} = {operation.label}({inside}){f': {outputs}' if outputs else ''}{behind}"


def bodies_of(operation: Operation) -> list[Body]:
    """Return the bodies of a branch or loop."""
    arguments = operation.attributes().get("arguments")
    return [x for x in arguments.leaves if isinstance(x, Body)] if isinstance(arguments, Arguments) else []


def _listed(operation: Operation, arguments: Arguments) -> str:
    args, kwargs = arguments.filled([_Name(x.name) for x in operation.inputs])
    return ", ".join([*map(_shown, args), *(f"{name}={_shown(x)}" for name, x in kwargs.items())])


def _attributes(operation: Operation) -> list[str]:
    """Return the properties that are not shown elsewhere in the line."""
    return [f"{name}={_shown(value)}" for name, value in operation.attributes().items() if value is not None]


class _Name(str):
    """A tensor's name, printed without quotes."""

    __slots__ = ()


def _shown(value: Any) -> str:
    if isinstance(value, _Name):
        return str(value)
    if isinstance(value, (list, tuple)) and any(isinstance(x, (_Name, Slot)) for x in value):
        return f"[{', '.join(map(_shown, value))}]"
    return repr(value) if isinstance(value, _PLAIN) else short_repr(value)


_COLOURS: Final = {
    "placeholder": "#d9e8fb", "variable": "#fde9c8", "constant": "#eeeeee", "gradient": "#f9dada",
    "assign": "#e0f2d8", "minimize": "#e0f2d8",
}  # fmt: skip


def to_dot(graph: Graph | None = None) -> str:
    """Return ``graph``, by default the current one, in the DOT language; control dependencies are dashed."""
    operations = (default_graph() if graph is None else graph).operations
    lines = ["digraph declared {", "  node [shape=box, style=filled];"]
    for x in operations:
        colour = _COLOURS.get(x.kind, "#ffffff")
        lines.append(f'  {_quoted(x.name)} [label={_quoted(f"{x.name}: {x.label}")}, fillcolor="{colour}"];')
    for x in operations:
        for tensor in x.inputs:
            lines.append(
                f"  {_quoted(tensor.operation.name)} -> {_quoted(x.name)} [label={_quoted(str(tensor.static))}];"
            )
        lines += [f"  {_quoted(before.name)} -> {_quoted(x.name)} [style=dashed];" for before in x.control_inputs]
    return "\n".join([*lines, "}"])


def to_svg(graph: Graph | None = None) -> str:
    """Return ``graph``, by default the current one, as an SVG drawing.

    Earlier operations are above later ones, control dependencies are dashed, and the full text of an operation appears
    under the pointer.
    """
    operations = ordered((default_graph() if graph is None else graph).operations)
    number = {x: i for i, x in enumerate(operations)}
    return svg([_drawn(x, number) for x in operations])


def _drawn(x: Operation, number: dict[Operation, int]) -> Drawn:
    known = ", ".join(str(tensor.static) for tensor in x.outputs)
    return Drawn(
        x.name,
        f"{x.label} {known}",
        f"{x.name}: {x.label} {known}".strip(),
        _COLOURS.get(x.kind, "#ffffff"),
        tuple(number[tensor.operation] for tensor in x.inputs),
        tuple(number[before] for before in x.control_inputs),
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
