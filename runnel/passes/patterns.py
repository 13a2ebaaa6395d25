"""Patterns of values in a graph, and rules that replace matching values.

    x = anything("x")
    softsign = applied("div", x, applied("add", number(1), applied("abs", x), any_order=True))

A pattern describes a value and the values that it is computed from. A name that occurs several times in a pattern
matches one value at all places. Several rules form a pass.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from runnel.compiler.passes.pipeline import Pass
from runnel.compiler.passes.simplify import is_filled
from runnel.core.arrays import short_repr
from runnel.core.dtypes import DType, bool_
from runnel.core.errors import PassError, VerifierError
from runnel.core.tables import Op
from runnel.graph.graph import Graph
from runnel.graph.node import Result, Value
from runnel.graph.rewriting import rewrite
from runnel.passes.written import written


def op(name: str | Op) -> Op:
    """Return the op with this name; an op as it is.

    Raises:
        PassError: no op of this name is registered. A module registers its ops when it is imported.
    """
    if isinstance(name, Op):
        return name
    known = Op.registry.get(name) if isinstance(name, str) else None
    if known is None:
        near = difflib.get_close_matches(name, Op.registry) if isinstance(name, str) else []
        hint = f"similar names are {', '.join(near)}" if near else "`runnel ops` lists all names"
        raise PassError(f"[passes] the name of an op must be registered; got {short_repr(name)}. {hint.capitalize()}.")
    return known


Bindings = Mapping[str, Value]


class Pattern:
    """A pattern of a value. In a match, the value has the name ``name``, unless it is empty."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def match(self, value: Value) -> dict[str, Value] | None:
        """Return the values of the names; None if ``value`` does not match."""
        bound = self.extended(value, {})
        return None if bound is None else dict(bound)

    def extended(self, value: Value, bound: Bindings) -> Bindings | None:
        """Return ``bound`` and the names that match here; None if ``value`` does not match, or a name differs."""
        if not self.name:
            return self.inside(value, bound)
        if self.name in bound:
            return bound if bound[self.name] is value else None
        return self.inside(value, {**bound, self.name: value})

    def inside(self, value: Value, bound: Bindings) -> Bindings | None:
        """Do the same as :meth:`extended` without the pattern's own name."""
        raise NotImplementedError

    @property
    def names(self) -> frozenset[str]:
        """All names in the pattern."""
        return frozenset({self.name} - {""})


class _Where(Pattern):
    """A value for which a condition holds."""

    def __init__(self, name: str, condition: Callable[[Value], bool]) -> None:
        super().__init__(name)
        self.condition = condition

    def inside(self, value: Value, bound: Bindings) -> Bindings | None:
        return bound if self.condition(value) else None


class _Applied(Pattern):
    """A result of an op."""

    def __init__(
        self, op_: Op, operands: Sequence[Pattern], attrs: Mapping[str, Any], any_order: bool, result: int, name: str
    ) -> None:
        super().__init__(name)
        self.op = op_
        self.operands = tuple(operands)
        self.attrs = dict(attrs)
        self.any_order = any_order
        self.result = result

    def inside(self, value: Value, bound: Bindings) -> Bindings | None:
        if not isinstance(value, Result) or value.op is not self.op or value.index != self.result:
            return None
        if any(key not in value.attrs or value.attrs[key] != attr for key, attr in self.attrs.items()):
            return None
        if not self.operands:
            return bound
        found = self._operands(value.inputs, bound)
        return self._operands(value.inputs[::-1], bound) if found is None and self.any_order else found

    def _operands(self, values: Sequence[Value], bound: Bindings) -> Bindings | None:
        if len(values) != len(self.operands):
            return None
        for operand, value in zip(self.operands, values, strict=True):
            extended = operand.extended(value, bound)
            if extended is None:
                return None
            bound = extended
        return bound

    @property
    def names(self) -> frozenset[str]:
        return super().names.union(*(x.names for x in self.operands))


def _is_any(value: Value) -> bool:
    return True


def _is_constant(value: Value) -> bool:
    return value.is_constant


def anything(name: str = "") -> Pattern:
    """Return a pattern of any value."""
    return _Where(name, _is_any)


def constant(name: str = "") -> Pattern:
    """Return a pattern of a constant, whose ``value.value`` is a NumPy array."""
    return _Where(name, _is_constant)


def number(value: float, name: str = "") -> Pattern:
    """Return a pattern of a constant, also broadcast, of any shape and dtype with all elements ``value``.

    0.0 does not match -0.0.
    """
    if not isinstance(value, Real) or (isinstance(value, int) and abs(value) > sys.float_info.max):
        raise PassError(f"[passes] number() must get a number in the range of floats; got {short_repr(value)}.")
    return _Where(name, functools.partial(_is_number, value=value))


def _is_number(candidate: Value, value: float) -> bool:
    return _has(candidate.aval.dtype, value) and is_filled(candidate, value)


def _has(dtype: DType, value: float) -> bool:
    """Return whether ``dtype`` can represent the number, rounded if it is floating-point, else exactly."""
    if dtype.is_inexact:
        with np.errstate(over="ignore"):
            return bool(np.isinf(np.asarray(value, dtype.numpy)) == math.isinf(value))
    if not float(value).is_integer():
        return False
    limits = None if dtype is bool_ else np.iinfo(dtype.numpy)
    return value in (0, 1) if limits is None else bool(limits.min <= value <= limits.max)


def applied(
    name: str | Op, *operands: Pattern, any_order: bool = False, result: int = 0, called: str = "", **attrs: Any
) -> Pattern:
    """Return a pattern of a result of the op ``name``.

    Args:
        name: the op, or its name.
        operands: a pattern for each of its inputs; without patterns, any inputs match.
        any_order: whether two operands may be in any order.
        result: the number of the result, for an op with several results.
        called: the name of the value in a match.
        attrs: values that attributes must have.
    """
    found = op(name)
    for x in operands:
        if not isinstance(x, Pattern):
            raise PassError(
                f"[passes] the operands of '{found.name}' must be patterns; got {short_repr(x)}. Write "
                "anything('x') or number(1)."
            )
    if any_order and len(operands) != 2:
        raise PassError(f"[passes] any_order must have two operands; '{found.name}' got {len(operands)}.")
    return _Applied(found, operands, attrs, any_order, result, called)


class Rule:
    """A rule that computes values that match ``pattern`` by ``replacement``.

    Args:
        pattern: the pattern of the replaced value.
        replacement: a function of tensors, called with the named parts of the pattern as keyword arguments. It returns
            a value of the same shape and dtype. The new nodes have the source line of the replaced value.
        when: a condition on the named parts, as values of the graph.
    """

    def __init__(
        self, pattern: Pattern, replacement: Callable[..., Any], *, when: Callable[..., bool] | None = None
    ) -> None:
        self.pattern = pattern
        self.replacement = replacement
        self.when = when
        for function in (replacement, when):
            if function is not None:
                _require_parameters(function, pattern.names)

    def __call__(self, value: Value) -> Value | None:
        """Return the replacement of ``value``; None if the rule does not match."""
        parts = self.pattern.match(value)
        if parts is None or (self.when is not None and not self.when(**parts)):
            return None
        new = written(self.replacement, where=value.where, **parts)
        if new.aval is not value.aval:
            made_by = value.op.name if value.op is not None else "a value"
            where = f" of {value.where}" if value.where else ""
            raise VerifierError(f"the rule for '{made_by}'{where} must return {value.aval!r}; got {new.aval!r}")
        return new


def rewriting(name: str, doc: str, *rules: Rule, needs: tuple[str, ...] = (), gives: tuple[str, ...] = ()) -> Pass:
    """Return a pass that replaces each value of a graph by the first of ``rules`` that matches.

    It visits values after their inputs, and does not visit new values in the same run.
    """

    def run(graph: Graph) -> Graph:
        def visit(value: Value) -> Value:
            try:
                return next((new for rule in rules if (new := rule(value)) is not None), value)
            except VerifierError as error:
                raise VerifierError(f"Graph '{graph.name}' after pass '{name}': {error}.") from None

        return rewrite(graph, visit)

    return Pass(name, doc, run, needs, gives)


def _require_parameters(function: Callable[..., Any], names: frozenset[str]) -> None:
    """Raise PassError unless ``function`` can be called with these names."""
    try:
        inspect.signature(function).bind(**dict.fromkeys(names))
    except TypeError:
        raise PassError(
            f"[passes] the functions of a rule must take the names of its pattern, {', '.join(sorted(names)) or 'none'}"
            f"; got {inspect.signature(function)}."
        ) from None
