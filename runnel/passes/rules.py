"""Rules: a pattern, and what is written in its place. Some rules make a pass."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from runnel.compiler.passes.pipeline import Pass
from runnel.core.errors import PassError, VerifierError
from runnel.graph.graph import Graph
from runnel.graph.node import Value
from runnel.graph.rewriting import rewrite
from runnel.passes.patterns import Pattern
from runnel.passes.written import written


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
    """The pass called ``name`` that replaces each value of a graph by the first of ``rules`` that is about it.

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
