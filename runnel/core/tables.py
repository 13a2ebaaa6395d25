"""Ops, and the tables of their rules.

An :class:`Op` is a name, a signature and a docstring. Everything that can be *done* with it is in the tables below:
the only tables. Register a rule with ``table.register(op, rule)`` or ``@table.rule(op)``, from any module, in this
package or outside it. A missing rule raises :class:`~runnel.core.errors.MissingRuleError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from runnel.core.errors import MissingRuleError
from runnel.core.tracebacks import shorten

Rule = TypeVar("Rule")


class Op:
    """A primitive operation.

    Attributes:
        name: the name, unique among ops.
        signature: the names of its inputs and attributes.
        doc: a sentence about it.
        multiple_results: whether it returns a tuple of results.
        regions: the names of its attributes that are graphs.
        version: of an op from outside the package, covers all its rules. Programs with the op are kept on disk under
            it, so it must change whenever a rule does. Programs with an op whose rules have no version are not kept.
        is_late: whether an op of the package is imported on demand; its rules then count as the package's.
    """

    __slots__ = ("doc", "is_late", "multiple_results", "name", "regions", "signature", "version")
    doc: str
    name: str
    signature: str
    multiple_results: bool
    regions: tuple[str, ...]
    version: str | None
    is_late: bool
    registry: dict[str, Op] = {}  # noqa: RUF012 - the one list of all ops, filled by construction

    def __init__(
        self,
        name: str,
        signature: str,
        doc: str,
        *,
        multiple_results: bool = False,
        regions: tuple[str, ...] = (),
        version: str | None = None,
        is_late: bool = False,
    ) -> None:
        if name in Op.registry:
            raise ValueError(
                f"An op called '{name}' exists already ({Op.registry[name].signature}); choose another name."
            )
        self.name = name
        self.signature = signature
        self.doc = doc
        self.multiple_results = multiple_results or bool(regions)
        self.regions = regions
        self.version = version
        self.is_late = is_late
        Op.registry[name] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return _registered, (Op, self.name)

    def __repr__(self) -> str:
        return f"Op({self.name})"


def _registered(kind: type[Op] | type[Table[Any]], name: str) -> Op | Table[Any]:
    """Return the op or table called ``name``, which a copy or pickle of it refers to."""
    if name not in kind.registry:
        raise LookupError(
            f"There is no {kind.__name__.lower()} called '{name}'; import the module that makes it first."
        )
    return kind.registry[name]


class Table(Generic[Rule]):
    """One capability: a rule for each op that has it. ``doc`` says what a rule is called with and who reads it.
    Where programs on disk depend on its rules, the table ``shapes_programs``: tables of the package do; one from
    outside is read by passes from outside, and programs with these are not kept on disk."""

    registry: dict[str, Table[Any]] = {}  # noqa: RUF012 - the columns of `runnel ops`
    registrations = 0  # of rules without a version, in all tables
    own_registrations: int | None = None  # by the package; None until all of its rules are registered

    def __init__(self, name: str, doc: str, *, shapes_programs: bool = False) -> None:
        if name in Table.registry:
            raise ValueError(f"A table called '{name}' exists already; choose another name.")
        self.name = name
        self.doc = doc
        self._shapes_programs = shapes_programs
        self._rules: dict[Op, Rule] = {}
        self.get: Callable[[Op], Rule | None] = self._rules.get  # asked for every node of a graph, many times
        Table.registry[name] = self

    def register(self, op: Op, rule: Rule, *, replace: bool = False) -> Rule:
        if op in self._rules and not replace:
            raise ValueError(f"[{op.name}] table '{self.name}' has a rule already; pass replace=True to change it.")
        self._rules[op] = rule
        Table.registrations += self._shapes_programs and op.version is None and (replace or not op.is_late)
        return rule

    def rule(self, op: Op, *, replace: bool = False) -> Callable[[Rule], Rule]:
        def decorate(rule: Rule) -> Rule:
            return self.register(op, rule, replace=replace)

        return decorate

    def __reduce__(self) -> tuple[Any, ...]:
        return _registered, (Table, self.name)

    def __contains__(self, op: object) -> bool:
        return op in self._rules

    def __iter__(self) -> Iterator[Op]:
        return iter(self._rules)

    def __getitem__(self, op: Op) -> Rule:
        try:
            return self._rules[op]
        except KeyError:
            missing = MissingRuleError(
                f"[{op.name}] no rule in table '{self.name}'; register one with "
                f"`{self.name}.register(op, rule)` (docs/internals/tables.md, section '{self.name}')."
            )
        try:
            raise missing
        except MissingRuleError:
            shorten(missing)
            raise


abstract_eval: Table[Callable[..., Any]] = Table(
    "abstract_eval",
    "rule(*avals, **attrs) -> ShapedArray: result shape and dtype; raises ShapeError/DTypeError. Read by every call.",
    shapes_programs=True,
)
reference: Table[Callable[..., Any]] = Table(
    "reference",
    "rule(*arrays, **attrs) -> ndarray: NumPy, the oracle of the tests and of constant folding.",
    shapes_programs=True,
)
vjp: Table[Callable[..., Any]] = Table(
    "vjp",
    "rule(g, out, *inputs, **attrs) -> tuple of cotangents, one per input: a value, None where there is none, or a "
    "function of no arguments that makes it (called only if it is needed). Written with ops, so it works on values and "
    "in traces. Read by the tape.",
    shapes_programs=True,
)
jvp: Table[Any] = Table(
    "jvp",
    "rule(tangents, out, *inputs, **attrs) -> list of terms, whose sum is the tangent of out; tangents are None where "
    "they are zero, which not all are. Written with ops. TRANSPOSED, or no rule, where the transpose of the vjp "
    "serves. Read by rn.jvp.",
    shapes_programs=True,
)
axes: Table[Any] = Table(
    "axes",
    "an AxisRule of runnel.core.axes (Aligned, Batching, ...): what the op does when an axis is added, or axes are "
    "reordered or merged. Read by rn.vmap, by hoisting out of scans, and by the passes on layouts and rows.",
    shapes_programs=True,
)
decompose: Table[Callable[..., Any]] = Table(
    "decompose",
    "rule(*values, **attrs) -> value: the op made of simpler ones, written with ops; None leaves it as it is. Read by "
    "pass `decompose`, before anything is lowered: such an op needs no rule in `lower`.",
    shapes_programs=True,
)
lower: Table[Any] = Table(
    "lower",
    "a rule object of runnel.loops.rules (Elementwise, Reduction, View, ...): how the op becomes loops.",
    shapes_programs=True,
)
cost: Table[Callable[..., Any]] = Table(
    "cost", "rule(*avals, **attrs) -> floating-point operations. Read by reports.", shapes_programs=True
)
write_back: Table[Callable[..., Any]] = Table(
    "write_back",
    "rule(x, new, **attrs) -> value: x with new in place of the elements that the op, a view, shows. Written with ops. "
    "Read by writes to views.",
)  # the writes are ops themselves, which programs on disk know
complex_rules: Table[Any] = Table(
    "complex",
    "a ByNumPy of runnel.core.rules (HOLOMORPHIC, LINEAR, ...), by which NumPy carries the op out on complex "
    "operands, or NATIVE: its own rules take them. Read by every call of an op with complex operands.",
)  # the host carries these ops out, and such programs are not kept on disk
