"""A program made smaller for as long as its fault stays: events, statements and expressions are left out."""

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Callable, Iterator

from tests.fuzz.language.grammar import Program

Faulty = Callable[[Program], bool]


def smallest(program: Program, is_faulty: Faulty, seconds: float = 120.0) -> Program:
    """What is left when nothing more can be left out, or the time is over."""
    end = time.monotonic() + seconds
    again = True
    while again and time.monotonic() < end:
        again = False
        for ways in (_fewer_events, _fewer_statements, _simpler_expressions):
            at = 0
            while time.monotonic() < end:
                candidates = list(ways(program))
                found = next(
                    (
                        i
                        for i in range(at, len(candidates))
                        if time.monotonic() < end and _is_valid(candidates[i]) and is_faulty(candidates[i])
                    ),
                    None,
                )
                if found is None:
                    break
                program, at, again = candidates[found], found, True
    return program


def _is_valid(program: Program) -> bool:
    try:
        compile(program.source, "<smaller>", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def _fewer_events(program: Program) -> Iterator[Program]:
    for i in range(len(program.events)):
        yield program._replace(events=program.events[:i] + program.events[i + 1 :])


def _bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                yield body


def _fewer_statements(program: Program) -> Iterator[Program]:
    tree = ast.parse(program.source)
    for number, body in enumerate(_bodies(tree)):
        for i, statement in enumerate(body):
            if isinstance(statement, ast.Pass) and len(body) == 1:
                continue
            smaller = copy.deepcopy(tree)
            twin = list(_bodies(smaller))[number]
            twin[i : i + 1] = [] if len(body) > 1 or body is tree.body else [ast.Pass()]
            yield program._replace(source=ast.unparse(smaller))
            inner = getattr(statement, "body", None)
            if inner and isinstance(inner, list) and not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                smaller = copy.deepcopy(tree)
                list(_bodies(smaller))[number][i : i + 1] = inner
                yield program._replace(source=ast.unparse(smaller))


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
            try:
                yield program._replace(source=ast.unparse(ast.fix_missing_locations(tree)))
            except (ValueError, AttributeError):
                pass
            _put(parent, field, i, node)


def _put(parent: ast.AST, field: str, i: int, node: ast.AST) -> None:
    value = getattr(parent, field)
    if isinstance(value, list):
        value[i] = node
    else:
        setattr(parent, field, node)
