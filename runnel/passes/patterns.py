"""Patterns of values in a graph, and rules that replace the values that match.

    x = anything("x")
    softsign = applied("div", x, applied("add", number(1), applied("abs", x), any_order=True))

A pattern is compared with a value and with the values it is computed from. A name that occurs several times in a
pattern matches the same value at all places. Several rules form a pass.
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
    """Return the op of this name; an op as it is.

    PassError if none is registered under it: those of a module that is not imported yet are not.
    """
    if isinstance(name, Op):
        return name
    known = Op.registry.get(name) if isinstance(name, str) else None
    if known is None:
        near = difflib.get_close_matches(name, Op.registry) if isinstance(name, str) else []
        hint = f"near are {', '.join(near)}" if near else "`runnel ops` lists all names"
        raise PassError(f"[passes] no op is called {short_repr(name)}; {hint}.")
    return known


Bindings = Mapping[str, Value]


class Pattern:
    """What a value may look like. ``name``, if it is not empty, is that of the value in a match."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def match(self, value: Value) -> dict[str, Value] | None:
        """Return the values of the names; None if ``value`` does not look so."""
        bound = self.extended(value, {})
        return None if bound is None else dict(bound)

    def extended(self, value: Value, bound: Bindings) -> Bindings | None:
        """``bound`` and the names that are found here; None if ``value`` does not look so, or a name differs."""
        if not self.name:
            return self.inside(value, bound)
        if self.name in bound:
            return bound if bound[self.name] is value else None
        return self.inside(value, {**bound, self.name: value})

    def inside(self, value: Value, bound: Bindings) -> Bindings | None:
        """Return the same, its own name aside."""
        raise NotImplementedError

    @property
    def names(self) -> frozenset[str]:
        """All names in it."""
        return frozenset({self.name} - {""})


class _Where(Pattern):
    """Any value for which a condition holds."""

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
    """Any value."""
    return _Where(name, _is_any)


def constant(name: str = "") -> Pattern:
    """Return a constant of the graph: its ``value.value`` is a NumPy array."""
    return _Where(name, _is_constant)


def number(value: float, name: str = "") -> Pattern:
    """Return a constant that is everywhere ``value`` (0.0 is not -0.0), of any shape and dtype, as it is or
    broadcast."""
    if not isinstance(value, Real) or (isinstance(value, int) and abs(value) > sys.float_info.max):
        raise PassError(f"[passes] number() takes a number within the range of floats; received {short_repr(value)}.")
    return _Where(name, functools.partial(_is_number, value=value))


def _is_number(candidate: Value, value: float) -> bool:
    return _has(candidate.aval.dtype, value) and is_filled(candidate, value)


def _has(dtype: DType, value: float) -> bool:
    """Return whether ``dtype`` has the number: rounded if it has fractions, else exactly."""
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
    """Return a result of the op ``name`` on such operands, as many as it has; without operands, on any.

    Args:
        name: the op, or its name.
        operands: a pattern for each of its inputs.
        any_order: of two operands, each may be the first one.
        result: which one, of an op of several results.
        called: the name of the value in a match.
        attrs: attributes with the values that they must have.
    """
    found = op(name)
    for x in operands:
        if not isinstance(x, Pattern):
            raise PassError(
                f"[passes] the operands of '{found.name}' are patterns; received {short_repr(x)}. Write "
                "anything('x') or number(1)."
            )
    if any_order and len(operands) != 2:
        raise PassError(f"[passes] any_order is for two operands; '{found.name}' is given {len(operands)}.")
    return _Applied(found, operands, attrs, any_order, result, called)


class Rule:
    """Values that look like ``pattern`` are computed by ``replacement`` instead.

    Args:
        pattern: of the value that is replaced.
        replacement: array code, called with the named parts of the pattern as keyword arguments. It gives a value of
            the same shape and dtype. The new nodes have the source line of the value that they replace.
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
        """What replaces ``value``; None if the rule is not about it."""
        parts = self.pattern.match(value)
        if parts is None or (self.when is not None and not self.when(**parts)):
            return None
        new = written(self.replacement, where=value.where, **parts)
        if new.aval is not value.aval:
            made_by = value.op.name if value.op is not None else "a value"
            where = f" of {value.where}" if value.where else ""
            raise VerifierError(f"the rule about '{made_by}'{where} writes {new.aval!r} in the place of {value.aval!r}")
        return new


def rewriting(name: str, doc: str, *rules: Rule, needs: tuple[str, ...] = (), gives: tuple[str, ...] = ()) -> Pass:
    """Return the pass called ``name`` that replaces each value of a graph by the first of ``rules`` that is about it.

    Values are visited after what they are computed from; what a rule has written is not looked at again in this run.
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
    """PassError unless ``function`` can be called with these names."""
    try:
        inspect.signature(function).bind(**dict.fromkeys(names))
    except TypeError:
        raise PassError(
            f"[passes] the functions of a rule take the names of its pattern, {', '.join(sorted(names)) or 'none'}; "
            f"received one that takes {inspect.signature(function)}."
        ) from None
