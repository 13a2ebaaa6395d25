"""Shrink a program while its fault stays: leave out events, statements and expressions."""

from __future__ import annotations

import ast
import contextlib
import itertools
import time
from collections.abc import Callable, Iterator

from tests.fuzz.language.grammar import Program

Faulty = Callable[[Program], bool]


def smallest(program: Program, is_faulty: Faulty, seconds: float = 120.0) -> Program:
    """Return what remains when nothing more can be left out, or the time is over."""
    end = time.monotonic() + seconds
    again = True
    while again and time.monotonic() < end:
        again = False
        for ways in (_fewer_events, _fewer_statements, _simpler_expressions):
            at = 0
            while (found := _next(ways(program), at, is_faulty, end)) is not None:
                at, program = found
                again = True
    return program


def _next(candidates: Iterator[Program], at: int, is_faulty: Faulty, end: float) -> tuple[int, Program] | None:
    """The first faulty candidate from number ``at`` on, with its number; None where the time is over."""
    for number, candidate in enumerate(itertools.islice(candidates, at, None), at):
        if time.monotonic() > end:
            return None
        if _is_valid(candidate) and is_faulty(candidate):
            return number, candidate
    return None


def _is_valid(program: Program) -> bool:
    try:
        compile(program.source, "<smaller>", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def _chunks(count: int) -> Iterator[tuple[int, int]]:
    """Where to cut: large pieces first."""
    size = count
    while size:
        yield from ((start, min(start + size, count)) for start in range(0, count, size))
        size //= 2


def _fewer_events(program: Program) -> Iterator[Program]:
    for start, end in _chunks(len(program.events)):
        yield program._replace(events=program.events[:start] + program.events[end:])


def _bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                yield body


def _fewer_statements(program: Program) -> Iterator[Program]:
    tree = ast.parse(program.source)
    for number, body in enumerate(_bodies(tree)):
        if len(body) == 1 and isinstance(body[0], ast.Pass):
            continue
        for start, end in _chunks(len(body)):
            is_all = end - start == len(body) and body is not tree.body
            yield _with(program, tree, number, start, end, [ast.Pass()] if is_all else [])
        for i, statement in enumerate(body):
            inner = getattr(statement, "body", None)
            if inner and isinstance(inner, list) and not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                yield _with(program, tree, number, i, i + 1, inner)


def _with(program: Program, tree: ast.Module, number: int, start: int, end: int, new: list[ast.stmt]) -> Program:
    """Other statements in one body; the tree stays as it is."""
    body = list(_bodies(tree))[number]
    before = list(body)
    body[start:end] = new
    text = ast.unparse(tree)
    body[:] = before
    return program._replace(source=text)


def _simpler_expressions(program: Program) -> Iterator[Program]:
    tree = ast.parse(program.source)
    places = [
        (parent, field, i)
        for parent in ast.walk(tree)
        for field, value in ast.iter_fields(parent)
        for i, node in enumerate(value if isinstance(value, list) else [value])
        if isinstance(node, (ast.BinOp, ast.Call, ast.IfExp, ast.BoolOp, ast.Compare, ast.JoinedStr, ast.ListComp))
        or (isinstance(node, ast.Tuple) and len(node.elts) > 1 and isinstance(parent, ast.Return))
    ]
    for parent, field, i in places:
        value = getattr(parent, field)
        node = value[i] if isinstance(value, list) else value
        parts = [p for p in ast.iter_child_nodes(node) if isinstance(p, ast.expr)]
        for part in (ast.Constant(1), *parts):
            _put(parent, field, i, part)
            with contextlib.suppress(ValueError, AttributeError):
                yield program._replace(source=ast.unparse(ast.fix_missing_locations(tree)))
            _put(parent, field, i, node)


def _put(parent: ast.AST, field: str, i: int, node: ast.AST) -> None:
    value = getattr(parent, field)
    if isinstance(value, list):
        value[i] = node
    else:
        setattr(parent, field, node)
