"""Merged rows: values computed from a matrix product reshaped to more axes are computed in the product's two axes.

A layer on (batch, time, features) multiplies a matrix of batch·time rows and reshapes the result to three axes. The
elementwise ops after it (bias, activation, residual), reductions along the features or over all rows, and random bits
form *regions*; a region that reads such a product is moved to its rows and columns, where it can be the product's
epilogue, and its results are reshaped to their original axes. No order of summation changes: rows keep their order.
"""

from __future__ import annotations

import math
from typing import Any

from runnel.compiler.lowering.protocol import lowering_of
from runnel.core import tables
from runnel.core.avals import Shape, aval
from runnel.graph.graph import Graph
from runnel.graph.node import Value, applied, reapplied
from runnel.graph.rewriting import Rewriter
from runnel.ops.shapes.broadcasting import broadcast_p
from runnel.ops.shapes.views import reshape_p

LEAST_AXES = 3


def merge_rows(graph: Graph) -> Graph:
    """Move each region after a product of matrices to the product's rows and columns."""
    values = graph.values
    chosen = _chosen(values)
    if not chosen:
        return graph
    rewriter = Rewriter()
    known = rewriter.known
    flat: dict[Value, Value] = {}
    for node in values:
        if node in chosen:
            flat[node] = _moved(node, tuple(flat.get(x) or _two_axes(known[x]) for x in node.inputs))
            known[node] = _reshaped(flat[node], node.aval.shape)
        elif node.op is reshape_p:
            known[node] = _reshaped(known[node.inputs[0]], node.aval.shape)
        else:
            known[node] = rewriter.keep(node)
    return rewriter.graph(graph)


def _chosen(nodes: list[Value]) -> set[Value]:
    """Return the nodes of all regions that read a product of matrices."""
    cluster_of: dict[Value, list[Value]] = {}  # a node's region, the same list for all in it
    touched: set[Value] = set()
    for node in nodes:
        rows = _rows(node)
        if rows is None:
            continue
        cluster_of[node] = [node]
        for x in node.inputs:
            source = _unrepeated(x)
            if source in cluster_of and _rows(source) == rows and cluster_of[source] is not cluster_of[node]:
                small, large = sorted((cluster_of[source], cluster_of[node]), key=len)
                large += small
                cluster_of.update(dict.fromkeys(small, large))
            elif _is_product(source, rows):
                touched.add(node)
    regions = {id(cluster_of[node]): cluster_of[node] for node in touched}
    return {node for region in regions.values() for node in region}


def _rows(node: Value) -> Shape | None:
    """Return the axes of ``node`` to be merged; None where it must not be changed."""
    if node.op is None:
        return None
    lowering = lowering_of(node)
    if not lowering.merges_rows:
        return None
    shape = lowering.point_shape(node)
    if len(shape) < LEAST_AXES:
        return None
    if lowering.reduction is not None and len(shape) - 1 not in node.attrs["axes"] and shape[-1:] == (1,):
        return None  # of one column the rows are the vector axis
    if _merged(node) is None:
        return None
    rows = shape[:-1]
    return rows if all(_merges(x, rows) for x in node.inputs) else None


def _merged(node: Value) -> dict[str, Any] | None:
    """Return the attributes of ``node`` in two axes; None where its values would change."""
    rule = tables.axes.get(node.op)  # type: ignore[arg-type]
    attrs: dict[str, Any] | None = (
        None if rule is None else rule.with_rows_merged(node.attrs, len(lowering_of(node).point_shape(node)))
    )
    return attrs


def _merges(x: Value, rows: Shape) -> bool:
    """Return whether ``x`` can be viewed with ``rows`` merged, or with one row, without a copy."""
    if all(n == 1 for n in x.aval.shape[:-1]):
        return True
    if x.aval.shape[:-1] != rows:
        return False
    if x.op is broadcast_p:
        return _merges(x.inputs[0], rows)
    return x.op is None or x.op is reshape_p or not lowering_of(x).is_view


def _unrepeated(x: Value) -> Value:
    """Return the source of ``x`` before repetition."""
    while x.op is broadcast_p:
        x = x.inputs[0]
    return x


def _is_product(x: Value, rows: Shape) -> bool:
    """Return whether ``x`` is a product of matrices with its rows split into ``rows``."""
    while x.op is reshape_p:
        x = x.inputs[0]
    return lowering_of(x).is_product and x.aval.ndim == 2 and x.aval.shape[0] == math.prod(rows)


def _moved(node: Value, inputs: tuple[Value, ...]) -> Value:
    """Return ``node`` in two axes."""
    attrs = _merged(node) or {}
    shape = (math.prod(node.aval.shape[:-1]), node.aval.shape[-1])
    return reapplied(node, inputs, attrs, aval(shape, node.aval.dtype))


def _two_axes(x: Value) -> Value:
    """Merge all axes of ``x`` except the last."""
    return _reshaped(x, (math.prod(x.aval.shape[:-1]), x.aval.shape[-1]))


def _reshaped(x: Value, shape: Shape) -> Value:
    """Reshape ``x``; two reshapes are merged into one."""
    source = x.inputs[0] if x.op is reshape_p else x
    if source.aval.shape == shape:
        return source
    return applied(reshape_p, (source,), {"shape": shape}, aval(shape, x.aval.dtype), x.where)
