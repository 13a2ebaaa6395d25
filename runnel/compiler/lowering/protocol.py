"""The protocol of lowerings, which kernel families implement, and properties of nodes that follow from it.

A row of table ``lower`` is a :class:`Lowering`, or one of the forms of ``loops.rules``, for which ``families.py`` names
the class. The compiler calls the methods and never tests the type: fusion asks which nodes may join a kernel, the
planner builds kernels, passes and transforms ask which rewrites of a node are valid. A family from outside the package
subclasses :class:`Lowering` and registers an instance (docs/extend/ops.md).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable
from typing import Any, ClassVar, Final

import numpy as np

from runnel.compiler.lowering.operands import OffsetTables, Operands
from runnel.compiler.plan_ir.calls import Allocation, BufferView, Call, MemorySpace
from runnel.compiler.plan_ir.clusters import Cluster, Form
from runnel.compiler.plan_ir.cost import ORDINARY_RATE
from runnel.compiler.plan_ir.plan import PlanBody, Section
from runnel.compiler.plan_ir.strides import Extents, ResultAxes, Strided
from runnel.core import tables
from runnel.core.avals import Shape, ShapedArray, row_major
from runnel.core.dtypes import int64
from runnel.core.errors import MissingRuleError
from runnel.core.records import record
from runnel.core.tables import Op
from runnel.graph.graph import Graph
from runnel.graph.node import Result, Value
from runnel.loops import uses
from runnel.loops.ir import Apply, Const, Expr, Ref, Stmt

IndexBound = tuple[Value, int, int | None]  # indices, their exclusive bound, and one other value that is allowed


@record
class Request:
    """A cluster to be lowered to calls, and its memory. ``targets`` are the places where its members must be stored,
    ``subviews`` the parts of larger arrays that some of them are stored into too; ``in_place`` numbers those operands
    of the root that their producers have stored in its result already."""

    cluster: Cluster
    operands: Operands
    targets: dict[Value, list[Allocation]]
    subviews: dict[Value, list[BufferView]]
    in_place: Container[int]
    offsets: OffsetTables
    plan_body: PlanBody

    @property
    def node(self) -> Value:
        return self.cluster.root

    def results(self) -> list[Allocation]:
        """Return a place for each result of the node, new ones for unused results."""
        members = [x for x in self.cluster.members if isinstance(x, Result)]
        places = {x.index: self.targets[x][0] for x in members if x in self.targets}
        return [
            places.get(i) or Allocation(MemorySpace.ARENA, aval.dtype, aval.size, "unused")
            for i, aval in enumerate(members[0].node.avals)
        ]

    def copies(self) -> list[Call]:
        """Return calls that copy results to their other places."""
        copy = Operands(self.operands.views, self.operands.sources).copy
        return [copy(x, allocation) for x in self.cluster.members for allocation in self.targets.get(x, ())[1:]]


class Lowering:
    """The lowering of the ops that share a rule. The defaults describe a standalone kernel: nothing is fused with it,
    and it reads its operands in any order. Most families override ``kernels``; families with elementwise epilogues
    define ``epilogue_axes`` and override ``build``."""

    is_view: ClassVar[bool] = False  # it computes nothing where ``layout`` finds strides
    is_product: ClassVar[bool] = False  # of matrices: A, B, and sums over k
    reads_at_point: ClassVar[bool] = True  # in a fused kernel it reads operands only at its own point
    needs_rows: ClassVar[bool] = False  # a loop over the first axis around all others
    is_expression: ClassVar[bool] = False  # ``expression`` returns its elements
    has_literals: bool = False  # constant operands should be part of the code
    merges_rows: ClassVar[bool] = False  # its leading axes may be merged, where table ``axes`` agrees
    moves_bits: ClassVar[bool] = False  # each element of the result is one of an operand, to the bit
    holds_operand: ClassVar[bool] = False  # an operand that is stored in its result may be read from there
    stays_in_step: ClassVar[bool] = False  # it may stop the program or call the host: never moved out of a loop
    runs_on_host: ClassVar[bool] = False  # eager calls use table ``reference``
    reduction: str | None = None  # the operation of a reduction
    recompute_rank: ClassVar[int] = 2  # 0 elementwise, 1 reductions, 2 more work than these
    rate: ClassVar[float] = ORDINARY_RATE  # operations per second, for rematerialization

    def __init__(self, rule: Any = None) -> None:
        self.rule = rule

    # Fusion -----------------------------------------------------------------------------------------------------------

    def form(self, node: Value, views: dict[Value, Strided]) -> Form:
        """Return the form of the cluster that ``node`` begins."""
        return Form.STANDALONE if self.epilogue_axes(node) is None else Form.ROOTED

    def epilogue_axes(self, node: Value) -> ResultAxes | None:
        """Return the axes of the result over which elementwise members may follow in the kernel; None if none may."""
        return None

    def point_shape(self, node: Value) -> Shape:
        """Return the shape of the points that ``node`` visits."""
        return node.aval.shape

    def reduced_axes(self, node: Value) -> tuple[int, ...]:
        """Return the axes that ``node`` reduces, counted among the axes of its operand that are not 1."""
        return ()

    def may_overwrite(self, cluster: Cluster, result: Value, views: dict[Value, Strided]) -> bool:
        """Return whether the kernel of ``cluster``, whose root this lowers, may store ``result`` over a value that its
        members read only at their own point."""
        return False

    def reads_by_strides(self, node: Value, x: Value, view: Strided) -> bool:
        """Return whether operand ``x`` may be the strided ``view``, without a copy."""
        return False

    def takes_subview(self, node: Value, shape: Shape, strides: Shape, size: int) -> bool:
        """Return whether the kernel of the cluster whose root is ``node`` can store a result of ``shape`` with
        ``strides`` into an array of ``size`` elements as efficiently as densely."""
        return False

    def subviews(self, node: Value) -> dict[int, tuple[int, Shape]]:
        """Return the operands, by number, that are parts of the result: offset and strides of each in the result."""
        return {}

    # What it computes -------------------------------------------------------------------------------------------------

    def layout(
        self, source: ShapedArray, strides: Shape, result: ShapedArray, attrs: dict[str, Any]
    ) -> tuple[int, Shape] | None:
        """Return offset and strides of the result as a view of a source with ``strides``; None if there is none."""
        return None

    def position_steps(self, node: Value) -> Shape | None:
        """Return the steps of the position argument of ``expression`` along the axes of the result; None
        without one."""
        return None

    def expression(self, node: Value, operands: list[Expr], position: Expr | None) -> Expr:
        """Return an element of the result, from the operands' elements at the same point."""
        return operands[0]

    def value_in_empty_row(self, node: Value, values: list[Any]) -> Any:
        """Return the element of result rows that get none of an operand's rows, or in which all elements of each
        operand are one of ``values``, arrays of one element or None where unknown; None if the rows are not constant.
        """
        return None

    def agrees_with_reference(self, node: Value) -> bool:
        """Return whether table ``reference`` computes the same bits as compiled code."""
        return self.moves_bits

    def packable(self, node: Value) -> Extents | None:
        """Return the axes of a product whose second operand may be packed in panels; None for all others."""
        return None

    def index_bound(self, node: Value) -> IndexBound | None:
        """Return the operand whose elements must be in a range; None if there is none."""
        return None

    def may_fail(self, node: Value) -> bool:
        """Return whether the kernel itself may stop the program."""
        return False

    # Building ---------------------------------------------------------------------------------------------------------

    def declare(self, node: Value, members: Any) -> None:
        """Declare the reaches of ``statements`` as a member of a cluster (``kernels.members.Members``)."""

    def statements(self, node: Value, members: Any) -> list[Stmt]:
        """Return the statements that compute ``node`` at a point, as a member of a cluster."""
        return [members.let(node)]

    def build(self, request: Request) -> Section:
        """Return the calls and loops that compute the cluster."""
        section = Section()
        calls = self.kernels(request, request.results())
        section.add([*request.operands.before, *calls, *request.copies()])
        return section

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        """Return the calls that compute the node of a STANDALONE cluster into ``results``."""
        node = request.node
        raise MissingRuleError(
            f"[{node.op.name if node.op else '?'}] has no rule in table 'lower' that a program can run "
            f"(docs/internals/tables.md, section 'lower'); it was applied at {node.where}."
        )


_MISSING: Final = Lowering()
_FAMILIES: Final[dict[type, Callable[[Any], Lowering]]] = {}  # by form of rule
_KNOWN: Final[dict[Op | None, tuple[Any, Lowering]]] = {}  # the rule of each op, and its lowering


def register(families: dict[type, Callable[[Any], Lowering]]) -> None:
    """Register the lowerings of forms of rules."""
    _FAMILIES.update(families)


def lowering_for(op: Op | None) -> Lowering:
    """Return the lowering of ``op``; one that supports nothing where table ``lower`` has no rule."""
    if op is None:
        return _MISSING
    rule, known = tables.lower.get(op), _KNOWN.get(op)
    if known is not None and known[0] is rule:
        return known[1]
    if rule is None:
        return _MISSING
    lowering = rule if isinstance(rule, Lowering) else _of_form(op, rule)
    _KNOWN[op] = rule, lowering
    return lowering


def _of_form(op: Op, rule: Any) -> Lowering:
    family = next((_FAMILIES[kind] for kind in type(rule).__mro__ if kind in _FAMILIES), None)
    if family is None:
        raise MissingRuleError(
            f"[{op.name}] table 'lower' holds {rule!r}, which no family of kernels knows; register a form of "
            "runnel.loops.rules or a Lowering (docs/extend/ops.md)."
        )
    return family(rule)


def lowering_of(value: Value) -> Lowering:
    """Return the lowering of the op of ``value``."""
    op = value.op
    known = _KNOWN.get(op)
    if known is not None and op is not None and known[0] is tables.lower.get(op):
        return known[1]
    return lowering_for(op)


def is_reduction(node: Value) -> bool:
    """Return whether a node combines elements (a reduction over axes of size 1 does not)."""
    return bool(lowering_for(node.op).reduced_axes(node))


def resolve_views(graph: Graph, strides: dict[Value, Shape] | None = None) -> dict[Value, Strided]:
    """Return, for every node, its base and strides: itself, unless its op is a view that needs no copy. ``strides`` are
    the strides of inputs that are not dense.

    A view that strides cannot express (a reshape that merges axes out of order) is its own base: it is copied.
    """
    views: dict[Value, Strided] = {}
    for node in graph.values:
        viewed = _view(views[node.inputs[0]], node) if lowering_of(node).is_view else None
        own = (strides or {}).get(node, row_major(node.aval.shape))
        views[node] = viewed if viewed is not None else Strided(node, 0, own)
    return views


def _view(source: Strided, node: Value) -> Strided | None:
    viewed = lowering_of(node).layout(node.inputs[0].aval, source.strides, node.aval, node.attrs)
    return None if viewed is None else Strided(source.base, source.offset + viewed[0], viewed[1])


_COUNTED: dict[Hashable, tuple[float, float]] = {}  # by lowering, dtypes and attributes, whatever the shapes
_MOST_COUNTED = 4096

COSTLY = 4.0  # a value of more additions is kept in memory rather than computed twice


def inline_constant(node: Value) -> bool:
    """Return whether a value is a constant of one element, which is part of the code."""
    return node.is_constant and node.aval.size == 1


def cost_of(node: Value) -> float:
    """Return the operations per element, in additions."""
    return _counts(node)[0]


def code_size(node: Value) -> float:
    """Return the same with shared subexpressions counted once: the size of the code."""
    return _counts(node)[1]


def _counts(node: Value) -> tuple[float, float]:
    lowering = lowering_of(node)
    if not lowering.is_expression:
        return 1.0, 1.0
    if any(isinstance(value, np.ndarray) for value in node.attrs.values()):
        return _count(node, lowering)
    key = (lowering, node.aval.dtype, *[x.aval.dtype for x in node.inputs], *node.attrs.values())
    known = _COUNTED.get(key)
    if known is None:
        if len(_COUNTED) >= _MOST_COUNTED:
            _COUNTED.clear()
        known = _COUNTED[key] = _count(node, lowering)
    return known


def _count(node: Value, lowering: Lowering) -> tuple[float, float]:
    value = lowering.expression(node, [Ref("x", x.aval.dtype) for x in node.inputs], Const(0, int64))
    totals: dict[int, float] = {}
    return _total(value, totals), float(sum(part.op.cost for part in uses.parts(value) if isinstance(part, Apply)))


def _total(value: Expr, known: dict[int, float]) -> float:
    """Return the operations of an expression, shared ones counted at each use."""
    if not isinstance(value, Apply):
        return 0.0
    if id(value) not in known:
        known[id(value)] = value.op.cost + sum(_total(a, known) for a in value.args)
    return known[id(value)]


def chain_is_costly(node: Value, inside: set[Value], views: dict[Value, Strided]) -> bool:
    """Return whether computing ``node`` again costs more than loading it."""
    total, stack, visited = 0.0, [node], set[Value]()
    while stack and total <= COSTLY:
        n = stack.pop()
        if n in visited:
            continue
        visited.add(n)
        total += cost_of(n)
        stack.extend(b for b in (views[x].base for x in n.inputs) if b in inside)
    return total > COSTLY
