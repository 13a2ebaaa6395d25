"""Compare a later trace of a function with the one that was compiled."""

from __future__ import annotations

from runnel.compile.capture import Capture
from runnel.core.errors import AuditError
from runnel.graph.graph import Graph
from runnel.graph.hashing import Body, attrs_key, constant_key
from runnel.graph.node import Value
from runnel.ops.callbacks import Callback, callback_p


def compare(name: str, compiled: Capture, now: Capture) -> None:
    """Raise AuditError, with the user's line, when the traces differ."""
    if compiled.same_as(now):
        return
    if compiled.identity() == now.identity() and _differ_only_in_callbacks(compiled.graph, now.graph):
        return
    where, what = _first_difference(compiled.graph, now.graph)
    raise error(name, f"{what}{f' at {where}' if where else ''}")


def error(name: str, difference: str) -> AuditError:
    """Return the error of a call whose repeated trace differs from the program's."""
    return AuditError(
        f"[compile] '{name}' did not do the same when it was traced again: {difference}. It reads something that "
        "Runnel cannot watch (a clock, NumPy's random numbers, a file, hidden state). Pass that as an argument, or use "
        "Runnel's random numbers. Later calls run eagerly."
    )


def _differ_only_in_callbacks(before: Graph, after: Graph) -> bool:
    """Return whether the graphs differ only in the functions that they call, which each trace makes again."""
    return _calls_back(before) and _everything(before) == _everything(after)


def _calls_back(graph: Graph) -> bool:
    return any(
        node.op is callback_p or any(_calls_back(node.attrs[name].graph) for name in node.op.regions)
        for node in graph.nodes
    )


def _everything(graph: Graph) -> tuple[list[tuple[object, ...]], list[int]]:
    """Return a graph in comparable form: its values in order, and the numbers of its results."""
    places = {x: i for i, x in enumerate(graph.values)}
    return [_content(x, places) for x in graph.values], [places[x] for x in (*graph.roots, *graph.updates)]


def _first_difference(before: Graph, after: Graph) -> tuple[str, str]:
    old, new = before.values, after.values
    places_old = {node: i for i, node in enumerate(old)}
    places_new = {node: i for i, node in enumerate(new)}
    readers = {x: node.where for node in reversed(new) for x in node.inputs}
    for a, b in zip(old, new, strict=False):
        if _content(a, places_old) != _content(b, places_new):
            where = b.where or readers.get(b, "")
            if b.is_constant and a.is_constant:
                return where, "a number that it computes with differs"
            return where, f"it applied {_named(b)} where it had applied {_named(a)}"
    return "", "it applied more or fewer ops, returned something else, or used other Variables or arrays"


def _content(node: Value, places: dict[Value, int]) -> tuple[object, ...]:
    if node.is_constant:
        return (constant_key(node),)
    attrs = dict(node.attrs)
    special: list[tuple[object, ...]] = []
    for name, x in node.attrs.items():
        if isinstance(x, Callback):  # made at each trace
            special.append((name, x.name, x.results))
        elif isinstance(x, Body):
            special.append((name, x.recompute, _everything(x.graph)))
        else:
            continue
        del attrs[name]
    return (node.op, node.kind, node.aval, attrs_key(attrs), special, tuple(places[x] for x in node.inputs))


def _named(node: Value) -> str:
    if node.op is not None:
        return f"{node.op.name} -> {node.aval}"
    return "a constant" if node.is_constant else f"an input '{node.name}'"
