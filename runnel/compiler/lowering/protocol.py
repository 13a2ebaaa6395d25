"""The protocol of lowerings, which kernel families implement.

A row of table ``lower`` is a :class:`Lowering`, or one of the forms of ``loops.rules``, for which ``families.py`` names
the class. The compiler calls the methods and never tests the type: fusion asks what may join a kernel, the planner
builds kernels, passes and transforms ask which rewrites of a node are valid. A family from outside the package
subclasses :class:`Lowering` and registers an instance (docs/extend/ops.md).
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, ClassVar, Final

from runnel.compiler.lowering.operands import OffsetTables, Operands
from runnel.compiler.plan_ir.calls import Allocation, BufferView, Call, MemorySpace
from runnel.compiler.plan_ir.clusters import Cluster, Form
from runnel.compiler.plan_ir.rates import ORDINARY_RATE
from runnel.compiler.plan_ir.regions import PlanBody, Section
from runnel.compiler.plan_ir.strides import Extents, ResultAxes, Strided
from runnel.core import tables
from runnel.core.avals import Shape, ShapedArray
from runnel.core.errors import MissingRuleError
from runnel.core.records import record
from runnel.core.tables import Op
from runnel.graph.node import Result, Value
from runnel.loops.ir import Expr, Stmt

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
        members = {x.index: x for x in self.cluster.members if isinstance(x, Result)}
        return [
            self.targets[members[i]][0]
            if i in members
            else Allocation(MemorySpace.ARENA, aval.dtype, aval.size, "unused")
            for i, aval in enumerate(next(iter(members.values())).node.avals)
        ]

    def copies(self) -> list[Call]:
        """Calls that copy results to their other places."""
        copy = Operands(self.operands.views, self.operands.sources).copy
        return [copy(x, allocation) for x in self.cluster.members for allocation in self.targets[x][1:]]


class Lowering:
    """The lowering of the ops that share a rule. The defaults are those of a standalone kernel: nothing is fused with
    it, and it reads its operands in any order. Most families override ``kernels``; those with elementwise epilogues
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
    stores_unread: ClassVar[bool] = True  # it needs memory for unused results
    reduction: str | None = None  # the operation of a reduction
    recompute_rank: ClassVar[int] = 2  # 0 elementwise, 1 reductions, 2 more work than these
    rate: ClassVar[float] = ORDINARY_RATE  # operations per second, for rematerialization

    def __init__(self, rule: Any = None) -> None:
        self.rule = rule

    # Fusion -----------------------------------------------------------------------------------------------------------

    def form(self, node: Value, views: dict[Value, Strided]) -> Form:
        """The form of the cluster that ``node`` begins."""
        return Form.STANDALONE if self.epilogue_axes(node) is None else Form.ROOTED

    def epilogue_axes(self, node: Value) -> ResultAxes | None:
        """Return the axes of the result over which elementwise members may follow in the kernel; None if none may."""
        return None

    def point_shape(self, node: Value) -> Shape:
        """Return the shape of the points that ``node`` visits."""
        return node.aval.shape

    def reduced_axes(self, node: Value) -> tuple[int, ...]:
        """Return the axes that ``node`` reduces, counted among those of its operand that are not 1."""
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
        """Offset and strides of the result as a view of a source with ``strides``; None if there is none."""
        return None

    def position_steps(self, node: Value) -> Shape | None:
        """Return the steps of the position argument of ``expression`` along the axes of the result; None
        without one."""
        return None

    def expression(self, node: Value, operands: list[Expr], position: Expr | None) -> Expr:
        """Return an element of the result, from those of the operands at the same point."""
        return operands[0]

    def value_of_empty_row(self, node: Value) -> Any:
        """Return the element of result rows that get none of the operand's rows; None if it is not constant."""
        return None

    def is_function_of_elements(self, node: Value) -> bool:
        """Return whether the result is constant where each operand is, as computed by table ``reference`` for one
        element."""
        return False

    def agrees_with_reference(self, node: Value) -> bool:
        """Return whether table ``reference`` computes the same bits as compiled code."""
        return self.moves_bits

    def is_matmul(self, node: Value) -> bool:
        """Return whether it is A[..., M, K]·B[..., K, N], so that (A·B)ᵀ = Bᵀ·Aᵀ."""
        return False

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
        """As a member of a cluster (``elementwise.members.Members``): declare the reaches of ``statements``."""

    def statements(self, node: Value, members: Any) -> list[Stmt]:
        """As a member of a cluster: the statements that compute ``node`` at a point."""
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
