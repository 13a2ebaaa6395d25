"""Simplification of values one by one: algebra, constant folding, and common subexpressions.

The algebra keeps every bit, including NaN, infinities and the sign of zero; each identity is one row of :data:`ROWS`.
x + 0 and a float sum over axes of size 1 are not among them: both turn -0 into +0. Another module adds a row by
``simplify.ROWS.append(Identity(op, "the identity", rewrite))``.

Folding evaluates nodes that read only constants, where NumPy and compiled code agree on every bit. The lowerings say
which nodes these are: data movement; all ops on integers and bools; and, on floats, single operations that IEEE 754
rounds correctly. Transcendental functions, float reductions and contractions are not folded. Results with a NaN are
not folded either, because its sign and payload differ between machines.

Common subexpressions are found by value numbering (Cocke and Schwartz, "Programming Languages and Their Compilers",
1970) over the whole graph.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

import numpy as np

from runnel.compiler.lowering.protocol import lowering_of
from runnel.core.avals import ShapedArray, aval
from runnel.core.errors import VerifierError
from runnel.core.lengths import is_static
from runnel.core.pytree import flatten
from runnel.core.records import record
from runnel.core.tables import Op
from runnel.graph.graph import Graph
from runnel.graph.hashing import attrs_key, constant_key
from runnel.graph.interpreter import evaluate
from runnel.graph.node import Constant, Node, Result, Value, applied, reapplied
from runnel.graph.rewriting import rewrite
from runnel.ops.conversion import cast_p, stop_gradient_p
from runnel.ops.elementwise.arithmetic import abs_p, add_p, div_p, maximum_p, minimum_p, mul_p, neg_p, sub_p
from runnel.ops.elementwise.comparison import and_p, not_p, or_p, where_p
from runnel.ops.indexing.gather import take_p
from runnel.ops.reductions.primitives import all_p, any_p, max_p, min_p, prod_p
from runnel.ops.shapes.broadcasting import broadcast_p, sum_p
from runnel.ops.shapes.pieces import concat_p, slice_p
from runnel.ops.shapes.views import permute_p, reshape_p

Rewrite = Callable[[Value], Value | None]
_LARGEST_LOOKED_AT = 4096  # most elements of a constant that is compared


@record
class Identity:
    """``rewrite(node)`` is a cheaper node of the same value and aval, or None where the identity does not apply."""

    op: Op
    doc: str
    rewrite: Rewrite


def simplify(graph: Graph) -> Graph:
    """Apply every row wherever it applies, until none does."""
    rows: dict[Op, list[Rewrite]] = {}
    for row in ROWS:
        rows.setdefault(row.op, []).append(row.rewrite)

    def visit(node: Value) -> Value:
        simpler: Value | None = node
        while simpler is not None:
            node = simpler
            tried = rows.get(node.op, ()) if node.op is not None else ()
            simpler = next((new for rewrite_ in tried if (new := rewrite_(node)) is not None), None)
        return node

    return rewrite(graph, visit)


def is_filled(node: Value, value: int | float) -> bool:
    """Return whether every element of ``node`` is the constant ``value``, to the sign of zero."""
    while node.op in (broadcast_p, reshape_p, permute_p):
        node = node.inputs[0]
    if not node.is_constant or not 0 < node.value.size <= _LARGEST_LOOKED_AT:
        return False
    expected = np.asarray(value, node.value.dtype)
    return bool(np.all(node.value == expected) and np.all(_signs(node.value) == _signs(expected)))


def _signs(x: Any) -> Any:
    return np.signbit(x.real.astype(np.float64))


def _neutral(place: int, number: int | float, *, floats: bool = True) -> Rewrite:
    """Replace op(x, number) by x, the number being input ``place``; ``floats=False``: on integers only."""

    def rewrite_(node: Value) -> Value | None:
        operand = node.inputs[1 - place]
        if (
            operand.aval is node.aval
            and (floats or not node.aval.dtype.is_float)
            and is_filled(node.inputs[place], number)
        ):
            return operand
        return None

    return rewrite_


def _same(place: int = 0, when: Callable[[Value], bool] = lambda node: True) -> Rewrite:
    """Replace the node by its input ``place``, if their avals are one and ``when`` holds."""
    return lambda node: node.inputs[place] if node.inputs[place].aval is node.aval and when(node) else None


def _undone(node: Value) -> Value | None:
    """Replace op(op(x)) by x."""
    inner = node.inputs[0]
    return inner.inputs[0] if inner.op is node.op else None


def _through(op: Op, when: Callable[[Value], bool] = lambda node: True) -> Rewrite:
    """Replace outer(op(x)) by outer(x), with outer's attributes, if ``when`` holds of outer."""

    def rewrite_(node: Value) -> Value | None:
        inner = node.inputs[0]
        return reapplied(node, inner.inputs) if inner.op is op and when(node) else None

    return rewrite_


def _permute_of_permute(node: Value) -> Value | None:
    inner = node.inputs[0]
    if inner.op is not permute_p:
        return None
    axes = tuple(inner.attrs["axes"][a] for a in node.attrs["axes"])
    return applied(permute_p, inner.inputs, {"axes": axes}, node.aval, node.where)


def _permute_of_take(node: Value) -> Value | None:
    """Replace a permuted take of rows by a take with permuted indices."""
    inner = node.inputs[0]
    if inner.op is not take_p or inner.attrs["axis"] != 0:
        return None
    source, indices = inner.inputs
    order, n = node.attrs["axes"], indices.aval.ndim
    if tuple(order[n:]) != tuple(range(n, node.aval.ndim)):
        return None
    shape = tuple(indices.aval.shape[a] for a in order[:n])
    permuted = applied(permute_p, (indices,), {"axes": tuple(order[:n])}, aval(shape, indices.aval.dtype), node.where)
    return applied(take_p, (source, permuted), inner.attrs, node.aval, inner.where)


def _there_and_back(node: Value) -> Value | None:
    """Return a cast to a wider dtype and back."""
    inner = node.inputs[0]
    if inner.op is cast_p and inner.inputs[0].aval is node.aval and _holds(inner.aval, node.aval):
        return inner.inputs[0]
    return None


def _holds(wide: ShapedArray, narrow: ShapedArray) -> bool:
    """Return whether ``wide`` represents every value of ``narrow``: for these dtypes, same kind and more bytes."""
    return wide.dtype.kind == narrow.dtype.kind and wide.dtype.itemsize > narrow.dtype.itemsize


def _is_in_order(node: Value) -> bool:
    return list(node.attrs["axes"]) == list(range(node.aval.ndim))


def _is_whole(node: Value) -> bool:
    return not any(node.attrs["starts"]) and all(step == 1 for step in node.attrs["steps"])


def _is_alone(node: Value) -> bool:
    return len(node.inputs) == 1


def _is_twice(node: Value) -> bool:
    return node.inputs[-1] is node.inputs[-2]


def _is_integer(node: Value) -> bool:
    return not node.aval.dtype.is_float


def _has_sign(node: Value) -> bool:
    return node.aval.dtype.kind in ("int", "float")


def _rows(ops: Sequence[Op], doc: str, rewrite_: Rewrite) -> list[Identity]:
    return [Identity(op, doc, rewrite_) for op in ops]


ROWS: list[Identity] = [
    Identity(mul_p, "x·1 is x", _neutral(1, 1)),
    Identity(mul_p, "1·x is x", _neutral(0, 1)),
    Identity(div_p, "x/1 is x", _neutral(1, 1)),
    Identity(sub_p, "x - (+0) is x", _neutral(1, 0)),
    Identity(add_p, "x + 0 is x on integers", _neutral(1, 0, floats=False)),
    Identity(add_p, "0 + x is x on integers", _neutral(0, 0, floats=False)),
    Identity(add_p, "x + (-0.0) is x", _neutral(1, -0.0)),
    Identity(add_p, "-0.0 + x is x", _neutral(0, -0.0)),
    *_rows((neg_p, not_p), "twice is not at all", _undone),
    Identity(abs_p, "||x|| is |x|", lambda node: node.inputs[0] if node.inputs[0].op is abs_p else None),
    Identity(abs_p, "|-x| is |x|, if x has a sign", _through(neg_p, _has_sign)),
    *_rows((maximum_p, minimum_p, and_p, or_p), "of x with itself is x", _same(0, _is_twice)),
    Identity(where_p, "a choice between x and x is x", _same(1, _is_twice)),
    Identity(cast_p, "a cast to its own dtype is x", _same()),
    Identity(cast_p, "a cast to a wider dtype and back is x", _there_and_back),
    Identity(stop_gradient_p, "a value is a value", _same()),
    Identity(reshape_p, "a reshape to its own shape is x", _same()),
    Identity(reshape_p, "of two reshapes the last decides", _through(reshape_p)),
    Identity(permute_p, "axes in their order are x", _same(0, _is_in_order)),
    Identity(permute_p, "two orders of axes are one", _permute_of_permute),
    Identity(permute_p, "rows taken in another order are rows of permuted indices", _permute_of_take),
    Identity(broadcast_p, "a broadcast to its own shape is x", _same()),
    Identity(broadcast_p, "of two broadcasts the last decides", _through(broadcast_p)),
    Identity(slice_p, "the whole is x", _same(0, _is_whole)),
    Identity(concat_p, "one array laid after none is x", _same(0, _is_alone)),
    *_rows((prod_p, max_p, min_p, any_p, all_p), "over axes of size 1 it is x", _same()),
    Identity(sum_p, "a sum of integers over axes of size 1 is x", _same(0, _is_integer)),
]


SMALL: Final = (
    4096  # bytes: a folded constant may grow to this; a larger one (a broadcast, an iota) costs more than computing it
)
MAX_BYTES: Final = 1 << 20  # of one folded constant
MAX_WORK: Final = 1 << 22  # elements computed in one graph


def fold_constants(graph: Graph, max_bytes: int = MAX_BYTES, max_work: int = MAX_WORK) -> Graph:
    """Evaluate constant nodes, while constants stay small and the work bounded."""
    work = 0

    def visit(node: Value) -> Value:
        nonlocal work
        if not isinstance(node, Result) or not node.inputs or not all(x.is_constant for x in node.inputs):
            return node
        if not is_static(flatten((node.aval.shape, node.attrs))[0]):
            return node
        read = sum(x.aval.nbytes for x in node.inputs)
        cost = node.aval.size + sum(x.aval.size for x in node.inputs)
        if node.aval.nbytes > min(max_bytes, max(read, SMALL)) or work + cost > max_work or not agrees(node):
            return node
        work += cost
        (value,) = evaluate(node.node, [x.value for x in node.inputs])
        return _constant(node, value) if _is_settled(node, value) else node

    return rewrite(graph, visit)


def _constant(node: Value, value: Any) -> Value:
    own = np.array(value)
    own.flags.writeable = False
    return Constant(node.aval, own, node.where)


def agrees(node: Value) -> bool:
    """Return whether table ``reference`` computes the same bits as compiled code for this node."""
    return lowering_of(node).agrees_with_reference(node)


def _is_settled(node: Value, value: Any) -> bool:
    """Return False where the sign of a NaN depends on the machine."""
    return not node.aval.dtype.is_float or lowering_of(node).moves_bits or not np.isnan(value).any()


def merge_common_subexpressions(graph: Graph) -> Graph:
    """Compute every value by one node, the first of the equal ones."""
    constants: dict[bytes, Value] = {}
    first: dict[Hashable, dict[int, Result]] = {}  # the needed results of a node, by number

    def visit(value: Value) -> Value:
        if not isinstance(value, Result):
            return constants.setdefault(constant_key(value), value)
        key = _key(value.node)
        if key is None:
            return value
        known = first.setdefault(key, {})
        if value.index not in known:
            other = next(iter(known.values()), value)
            known[value.index] = value if other.node is value.node else Result(other.node, value.index)
        return known[value.index]

    return rewrite(graph, visit)


def _key(node: Node) -> Hashable:
    """Return a key, equal for nodes with equal results; None for a node with attributes that cannot be compared."""
    try:
        return node.op, node.inputs, attrs_key(node.attrs), node.avals
    except VerifierError:
        return None
