"""Resolve a parsed expression with the shapes of its operands: sizes, ranges of indices, and bounds of subscripts."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

from runnel.core.avals import MOST, Shape
from runnel.core.records import record
from runnel.expressions import syntax, values
from runnel.expressions.affine import Affine, combined, greatest, index, least, least_within, number, rank
from runnel.expressions.syntax import Access, Axis, Call, Comparison, Name, Node, Number, Statement
from runnel.expressions.values import Compute, Element, Expression, Literal, Value

MOST_INDEX: Final = 1 << 40  # no coefficient or extent is larger, so that positions are exact in int64


@functools.lru_cache(maxsize=4096)
def resolved(text: str, shapes: tuple[Shape, ...], sizes: tuple[tuple[str, int], ...] = ()) -> Expression:
    """Return the expression ``text`` for operands of ``shapes``, with ``sizes`` for some names."""
    return _Resolver(syntax.parse(text), shapes, dict(sizes)).expression()


@functools.lru_cache(maxsize=1024)
def operand_names(text: str, sizes: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the names of the operands of ``text`` in order of appearance; ``sizes`` are not operands."""
    statement = syntax.parse(text)
    known = {*sizes, *_bound_names(statement)}
    return tuple(dict.fromkeys(name for name, _ in _accessed(statement.value) if name not in known))


def _accessed(node: Node) -> list[tuple[str, Node]]:
    """Return the arrays and bare names in a value, from left to right."""
    if isinstance(node, Access):
        return [(node.name, node)]
    if isinstance(node, Name):
        return [(node.text, node)]
    return [each for arg in node.args for each in _accessed(arg)] if isinstance(node, Call) else []


def _bound_names(statement: Statement) -> list[str]:
    """Return the names of sizes, which follow the colon of an operand's axis."""
    accesses = [node for _, node in _accessed(statement.value) if isinstance(node, Access)]
    return [axis.size.text for access in accesses for axis in access.axes if isinstance(axis.size, Name)]


@record
class _Subscript:
    """A subscript of an axis of ``size`` (None for a result whose size is not stated)."""

    form: Affine
    size: int | None
    array: str
    axis: int
    at: int


@record
class _Limit:
    """The condition ``form`` ≥ 0 of the comparison at ``at``."""

    form: Affine
    at: int


class _Resolver:
    """One pass over a statement."""

    def __init__(self, statement: Statement, shapes: Sequence[Shape], sizes: dict[str, int]) -> None:
        self.statement = statement
        self.sizes = dict(sizes)
        self.names = operand_names(statement.text, tuple(sizes))
        if len(shapes) != len(self.names):
            statement.fail(0, f"{len(self.names)} operands ({', '.join(self.names)}) expected; got {len(shapes)}.")
        self.shapes = dict(zip(self.names, shapes, strict=True))
        if statement.target.name in self.shapes:
            statement.fail(statement.target.at, f"the result '{statement.target.name}' is an operand, too; rename one.")
        self.used: dict[str, int] = {}  # indices of subscripts, where each appears first
        self.subscripts: list[_Subscript] = []

    def fail(self, at: int, why: str) -> NoReturn:
        self.statement.fail(at, why)

    def expression(self) -> Expression:
        statement = self.statement
        self._bind_sizes(statement.value)
        value = self._value(statement.value)
        target = [self._subscript(statement.target, i, axis) for i, axis in enumerate(statement.target.axes)]
        limits = [limit for comparison in statement.constraints for limit in self._limits(comparison)]
        extents = self._extents(target, limits)
        shape = tuple(self._target_size(s, extents) for s in target)
        target = [_Subscript(s.form, n, s.array, s.axis, s.at) for s, n in zip(target, shape, strict=True)]
        box = {name: (0, extent) for name, extent in extents.items()}
        compound = [x for x in limits if len(x.form.names) != 1]
        never = any(not x.form.names and x.form.constant < 0 for x in compound)
        if never:
            extents = dict.fromkeys(extents, 0) if extents else extents
        forms = tuple(dict.fromkeys(x.form for x in compound if x.form.names))
        if 0 not in extents.values():
            forms = tuple(form for form in forms if least(form, box) < 0)
            for subscript in (*self.subscripts, *target):
                self._prove(subscript, box, forms)
        if never and not extents:
            self.fail(statement.constraints[0].at, "the constraint never holds.")
        forms_of_target = tuple(s.form for s in target)
        if statement.aggregation == "assign":
            free = [name for name, extent in extents.items() if extent > 1]
            if rank(form for form in forms_of_target if form.names) < len(free):
                extra = next((n for n in free if not any(n in f.names for f in forms_of_target)), free[-1])
                self.fail(
                    self.used[extra], f"'=' assigns each element once, but many '{extra}' meet one; use '+=' or 'max='."
                )
        indices = tuple(sorted(extents.items(), key=lambda item: self.used[item[0]]))
        shapes = tuple(self.shapes[name] for name in self.names)
        return Expression(
            statement.aggregation, statement.target.name, forms_of_target, shape, indices, forms, value, self.names,
            shapes,
        )  # fmt: skip

    # Sizes ------------------------------------------------------------------------------------------------------------

    def _bind_sizes(self, node: Node) -> None:
        """Bind the names after colons to the sizes of the operands' axes."""
        for name, access in _accessed(node):
            if isinstance(access, Access):
                self._check_rank(access, name)
                for i, axis in enumerate(access.axes):
                    if isinstance(axis.size, Name) and axis.size.text not in self.sizes:
                        self.sizes[axis.size.text] = self.shapes[name][i]
        for name, access in _accessed(node):
            if isinstance(access, Access):
                for i, axis in enumerate(access.axes):
                    if axis.size is not None and self._size(axis.size) != self.shapes[name][i]:
                        self.fail(
                            axis.size.at,
                            f"axis {i} of '{name}' has {self.shapes[name][i]} elements, not {self._size(axis.size)}.",
                        )

    def _check_rank(self, access: Access, name: str) -> None:
        if name not in self.shapes:
            self.fail(access.at, f"'{name}' is a size, so it has no subscripts.")
        if len(access.axes) != len(self.shapes[name]):
            self.fail(
                access.at,
                f"'{name}' has {len(access.axes)} subscripts here, and the shape {self.shapes[name]}.",
            )

    def _size(self, node: Node) -> int:
        """Return a size: integers and names of sizes, with + - * //."""
        if isinstance(node, Number) and isinstance(node.value, int):
            return node.value
        if isinstance(node, Name):
            if node.text not in self.sizes:
                known = f"; the sizes are {', '.join(self.sizes)}" if self.sizes else ""
                self.fail(
                    node.at,
                    f"no size is called '{node.text}'{known}. Give it by keyword, or as an axis 'i: {node.text}'.",
                )
            return self.sizes[node.text]
        if isinstance(node, Call) and node.function in ("add", "sub", "mul", "floordiv", "neg"):
            args = [self._size(x) for x in node.args]
            if node.function == "neg":
                return -args[0]
            a, b = args
            if node.function == "floordiv":
                if b == 0:
                    self.fail(node.at, "a size is divided by 0.")
                return a // b
            return a + b if node.function == "add" else a - b if node.function == "sub" else a * b
        return self.fail(node.at, "a size consists of integers and sizes with + - * //.")

    # Subscripts and constraints ---------------------------------------------------------------------------------------

    def _affine(self, node: Node) -> Affine:
        """Return an affine form of indices, with sizes as numbers."""
        form = self._form(node)
        if max((abs(c) for _, c in form.terms), default=0) > MOST_INDEX or abs(form.constant) > MOST_INDEX:
            self.fail(node.at, "the numbers of a subscript are at most 2**40.")
        return form

    def _form(self, node: Node) -> Affine:
        if isinstance(node, Number):
            if not isinstance(node.value, int):
                self.fail(node.at, f"{node.value!r} is not an integer; subscripts must be integers.")
            return number(node.value)
        if isinstance(node, Name):
            if node.text in self.sizes:
                return number(self.sizes[node.text])
            if node.text in self.shapes:
                self.fail(node.at, f"'{node.text}' is an array; subscripts are affine in indices.")
            return index(node.text)
        if isinstance(node, Call):
            if node.function in ("add", "sub", "neg"):
                signs = (-1,) if node.function == "neg" else (1, 1 if node.function == "add" else -1)
                return combined((sign, self._form(x)) for sign, x in zip(signs, node.args, strict=True))
            if node.function in ("mul", "floordiv", "div"):
                a, b = (self._form(x) for x in node.args)
                if node.function == "mul" and (not a.names or not b.names):
                    return b.scaled(a.constant) if not a.names else a.scaled(b.constant)
                if node.function == "floordiv" and not a.names and not b.names and b.constant:
                    return number(a.constant // b.constant)
        return self.fail(node.at, "subscripts and constraints are affine: integers times indices, and sums of these.")

    def _subscript(self, access: Access, i: int, axis: Axis) -> _Subscript:
        form, at = self._affine(axis.subscript), axis.at
        for name in form.names:
            if name == self.statement.target.name:
                self.fail(at, f"'{name}' is the result; subscripts are affine in indices.")
            self.used.setdefault(name, at)
        if access.name in self.shapes:
            size: int | None = self.shapes[access.name][i]
        else:
            size = None if axis.size is None else self._size(axis.size)
            if size is not None and (size < 0 or size >= MOST):
                self.fail(axis.size.at if axis.size else at, f"an axis has {size} elements.")
        return _Subscript(form, size, access.name, i, at)

    def _limits(self, c: Comparison) -> list[_Limit]:
        """Return the forms that are ≥ 0 if the comparison holds.

        A single 'e < n' also means 0 ≤ e, as in a subscript.
        """
        left, right = self._affine(c.left), self._affine(c.right)
        for name in (*left.names, *right.names):
            if name not in self.used:
                self.fail(c.at, f"no subscript has the index '{name}'.")
        forms = {
            "<": [(right - left).plus(-1)],
            "<=": [right - left],
            ">": [(left - right).plus(-1)],
            ">=": [left - right],
            "==": [right - left, left - right],
        }.get(c.sign)
        if forms is None:
            self.fail(c.at, "constraints are made with <, <=, >, >= and ==.")
        if c.sign == "<" and c.is_alone and not right.names:
            forms.append(left)
        return [_Limit(form, c.at) for form in forms]

    # The value --------------------------------------------------------------------------------------------------------

    def _value(self, node: Node) -> Value:
        if isinstance(node, Number):
            return Literal(node.value)
        if isinstance(node, Access):
            subscripts = [self._subscript(node, i, axis) for i, axis in enumerate(node.axes)]
            self.subscripts += subscripts
            return Element(node.name, tuple(s.form for s in subscripts))
        if isinstance(node, Name):
            if node.text in self.sizes:
                return Literal(self.sizes[node.text])
            if self.shapes[node.text]:
                self.fail(node.at, f"'{node.text}' has the shape {self.shapes[node.text]}; write its subscripts.")
            return Element(node.text, ())
        if node.function == "floordiv":
            self.fail(node.at, "'//' is for sizes; values are divided with '/'.")
        args = tuple(self._value(x) for x in node.args)
        for i, (arg, value) in enumerate(zip(node.args, args, strict=True)):
            is_truth = isinstance(value, Compute) and value.function in values.COMPARISONS
            if is_truth != (node.function == "where" and i == 0):
                what = "the condition of 'where' is a comparison" if node.function == "where" and i == 0 else (
                    "a comparison is the condition of a 'where'"
                )  # fmt: skip
                self.fail(arg.at, what + ", as in where(A[i] > 0, A[i], 0).")
        return Compute(node.function, args)

    # Ranges -----------------------------------------------------------------------------------------------------------

    def _extents(self, target: list[_Subscript], limits: list[_Limit]) -> dict[str, int]:
        stated: dict[str, int] = {}  # by constraints of one index
        for limit in limits:
            if len(limit.form.names) == 1:
                ((name, c),) = limit.form.terms
                if c < 0:
                    stated[name] = min(stated.get(name, MOST_INDEX), max(limit.form.constant // -c + 1, 0))
                elif limit.form.constant < 0:
                    self.fail(limit.at, f"indices begin at 0; write '{name} + {-(limit.form.constant // c)}' instead.")
        plain: dict[str, _Subscript] = {}
        extents = dict(stated)
        for s in (*self.subscripts, *target):
            if (alone := s.form.plain) is None or s.size is None:
                continue
            other = plain.setdefault(alone, s)
            if other.size != s.size and stated.get(alone, MOST_INDEX) > min(other.size or 0, s.size):
                self.fail(
                    s.at,
                    f"'{alone}' is below {s.size} by axis {s.axis} of '{s.array}' and below {other.size} by axis "
                    f"{other.axis} of '{other.array}'.",
                )
            extents[alone] = min(extents.get(alone, MOST_INDEX), s.size)
        single = [s for s in (*self.subscripts, *target) if len(s.form.names) == 1 and s.size is not None]
        self._abstract_eval(single, extents, {})
        waiting = [s for s in (*self.subscripts, *target) if len(s.form.names) > 1 and s.size is not None]
        cut = [x.form for x in limits if len(x.form.names) > 1]
        before = -1
        while before != len(extents):
            before = len(extents)
            ready = [s for s in waiting if sum(n not in extents for n in s.form.names) == 1]
            self._abstract_eval([s for s in ready if not any(_is_cut(s.form, form) for form in cut)], extents, extents)
        for name, at in self.used.items():
            if name not in extents:
                self.fail(at, f"the range of '{name}' is not known; state it, as in 'where {name} < 8'.")
        return extents

    def _abstract_eval(self, subscripts: list[_Subscript], extents: dict[str, int], known: Mapping[str, int]) -> None:
        """Infer the largest ranges of indices for which ``subscripts`` stay inside their arrays."""
        inferred: dict[str, int] = {}
        for s in subscripts:
            names = [n for n in s.form.names if n not in known]
            if len(names) != 1 or names[0] in extents or s.size is None:
                continue
            (name,) = names
            rest = s.form.without(name)
            box = {n: (0, max(known[n], 1)) for n in rest.names}
            c = s.form.coefficient(name)
            room = s.size - 1 - greatest(rest, box) if c > 0 else least(rest, box)
            extent = max(room // abs(c) + 1, 0)
            inferred[name] = min(inferred.get(name, extent), extent)
        extents.update(inferred)

    def _target_size(self, s: _Subscript, extents: dict[str, int]) -> int:
        if s.size is not None:
            return s.size
        if s.form.plain is None:
            self.fail(s.at, f"the size of axis {s.axis} of the result is not known; state it, as in '{s.form}: 8'.")
        return extents[s.form.plain]

    def _prove(self, s: _Subscript, box: dict[str, tuple[int, int]], forms: tuple[Affine, ...]) -> None:
        """Raise an error unless a subscript stays inside its axis."""
        size = s.size or 0
        low, high = least_within(s.form, box, forms), -least_within(s.form.scaled(-1), box, forms)
        if low < 0 or high >= size:
            self.fail(
                s.at,
                f"'{s.form}' runs from {low} to {high}, and axis {s.axis} of '{s.array}' has {size} elements; "
                f"leave out the rest with 'where 0 <= {s.form} < {size}'.",
            )


def _is_cut(form: Affine, limit: Affine) -> bool:
    """Return True if a constraint limits a form itself, so that it says nothing about its indices."""
    return limit.terms in (form.terms, form.scaled(-1).terms)
