"""Find the values that statements of the loop IR read, write and depend on, for code generation."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from runnel.loops import scalar
from runnel.loops.ir import (
    Acc,
    Apply,
    Check,
    Contract,
    Expr,
    For,
    Host,
    Index,
    Let,
    Load,
    Param,
    Position,
    Product,
    Ref,
    Stmt,
    Store,
    Update,
    Var,
)

Access = tuple[str, Index]
Accesses = dict[Access, None]


def statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """Yield every statement, including statements inside loops."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, For):
            yield from statements(stmt.body)


def operands(stmt: Stmt) -> tuple[Expr, ...]:
    """Return the expressions a statement evaluates (a loop: those of its bounds)."""
    if isinstance(stmt, Let | Update | Check):
        return (stmt.value,)
    if isinstance(stmt, Store):
        return (*(expr for expr, _ in stmt.index.gathered), stmt.value)
    if isinstance(stmt, Product):
        counts = [x for x in (stmt.m, stmt.n, stmt.k) if isinstance(x, Ref)]
        return (*(expr for at in (stmt.a_at, stmt.b_at, stmt.c_at) for expr, _ in at.gathered), *counts)
    if isinstance(stmt, For):
        return tuple(x for x in (stmt.begin, stmt.end) if isinstance(x, Ref))
    return ()


def parts(expr: Expr) -> list[Expr]:
    """Return an expression and its subexpressions, shared ones once."""
    if type(expr) is not Apply and type(expr) is not Load:
        return [expr]
    every: list[Expr] = []
    waiting: list[Expr] = [expr]
    visited = {id(expr)}
    while waiting:
        part = waiting.pop()
        every.append(part)
        if type(part) is Apply:
            inside: Iterable[Expr] = part.args
        elif type(part) is Load and part.index.gathered:
            inside = [x for x, _ in part.index.gathered]
        else:
            continue
        for x in inside:
            if id(x) not in visited:
                visited.add(id(x))
                waiting.append(x)
    return every


def accesses(body: Iterable[Stmt], known: dict[int, Accesses] | None = None) -> Accesses:
    """Return every (buffer, index) loaded or stored, in order of appearance.

    ``known`` collects the accesses of each nested loop by its id, so that they are computed once.
    """
    accessed: Accesses = {}
    for stmt in body:
        for expr in operands(stmt):
            for part in parts(expr):
                if type(part) is Load:
                    accessed[part.buffer, part.index] = None
        if isinstance(stmt, For):
            inside = accesses(stmt.body, known)
            if known is not None:
                known[id(stmt)] = inside
            accessed.update(inside)
        elif isinstance(stmt, Store):
            accessed[stmt.buffer, stmt.index] = None
        elif isinstance(stmt, Product):
            accessed.update({(stmt.a, stmt.a_at): None, (stmt.b, stmt.b_at): None, (stmt.c, stmt.c_at): None})
    return accessed


def stored_buffers(body: Iterable[Stmt]) -> set[str]:
    stored = [stmt for stmt in statements(body) if isinstance(stmt, Store | Product)]
    return {stmt.buffer if isinstance(stmt, Store) else stmt.c for stmt in stored}


def updated(body: Iterable[Stmt]) -> set[str]:
    """Return the accumulators that are updated."""
    return {stmt.name for stmt in statements(body) if isinstance(stmt, Update)}


def updated_in_lanes(body: Iterable[Stmt]) -> set[str]:
    """Return the accumulators that are updated inside a vec loop."""
    return {n for stmt in statements(body) if isinstance(stmt, For) and stmt.kind == "vec" for n in updated(stmt.body)}


def update_runs(body: Iterable[Stmt]) -> Iterator[list[str]]:
    """Runs of accumulators that are updated in consecutive statements."""
    run: list[str] = []
    for stmt in body:
        if isinstance(stmt, Update):
            run.append(stmt.name)
            continue
        if run:
            yield run
            run = []
        if isinstance(stmt, For):
            yield from update_runs(stmt.body)
    if run:
        yield run


def reads(body: Iterable[Stmt], name: str) -> bool:
    """Return whether any expression refers to ``name``."""
    return any(
        isinstance(part, Ref) and part.name == name
        for stmt in statements(body)
        for expr in operands(stmt)
        for part in parts(expr)
    )


def params(body: Iterable[Stmt], accessed: Accesses, apart: Container[str] = ()) -> set[str]:
    """Return the names of the params that bounds, strides, offsets and contractions use, and of those that expressions
    use but for ``apart``; ``accessed`` are the accesses."""
    used: set[object] = set()
    for stmt in statements(body):
        if isinstance(stmt, For):
            used.update((stmt.begin, stmt.end))
        elif isinstance(stmt, Check):
            used.add(stmt.code)
        elif isinstance(stmt, Host):
            used.add(stmt.function)
        elif isinstance(stmt, Contract):
            used.update((stmt.k, stmt.a_row, stmt.a_k, stmt.b_k, stmt.b_col, stmt.c_row))
            if stmt.batch is not None:
                b = stmt.batch
                used.update((b.m, b.n, b.a_step, b.b_step, b.c_step))
            if stmt.panels is not None:
                used.add(stmt.panels.step)
        elif isinstance(stmt, Product):
            used.update((stmt.m, stmt.n, stmt.k, stmt.a_row, stmt.a_k, stmt.b_k, stmt.b_col, stmt.c_row))
        used.update(
            part for expr in operands(stmt) for part in parts(expr) if type(part) is Param and part.name not in apart
        )
    for _, index in accessed:
        used.add(index.offset)
        used.update(stride for _, stride in (*index.terms, *index.gathered))
    return {p.name for p in used if isinstance(p, Param)}


def numbers(body: Iterable[Stmt]) -> set[str]:
    """Return the names of the params whose bits are floats (:func:`of_bits`) in expressions."""
    held = {of_bits(part) for stmt in statements(body) for expr in operands(stmt) for part in parts(expr)}
    return {param.name for param in held if param is not None}


def of_bits(expr: Expr) -> Param | None:
    """Return the param whose low bits ``expr`` reads as a float: a constant that is not in the code."""
    if type(expr) is not Apply or expr.op is not scalar.bitcast or not expr.dtype.is_float:
        return None
    (bits,) = expr.args
    if type(bits) is Apply and bits.op is scalar.cast and bits.dtype.is_integer:
        (bits,) = bits.args
    return bits if type(bits) is Param else None


def buffers(body: Iterable[Stmt], accessed: Accesses) -> set[str]:
    """Return the names of the buffers that are used; ``accessed`` are the accesses."""
    names = {name for name, _ in accessed}
    for stmt in body:
        if isinstance(stmt, Contract):
            names.update((stmt.a, stmt.b, stmt.c))
            if stmt.indirect is not None:
                names.update((stmt.indirect.rows, stmt.indirect.ks))
    return names


def invariant(loop: For) -> list[tuple[str, Expr]]:
    """Return the largest loads and computations in the loop's own statements that give the same value in every
    iteration, each with the name that a Let gives it (or "").

    A load counts as invariant if the loop stores to no buffer of that name: two buffers of a kernel are one piece of
    memory only where they are used at identical positions.
    """
    inside = list(statements(loop.body))
    unsteady: set[Var | str] = {loop.var, *updated(loop.body)}
    unsteady.update(s.var for s in inside if isinstance(s, For))
    unsteady.update(s.name for s in inside if isinstance(s, Acc))
    own = {id(s) for s in loop.body}
    unsteady.update(s.name for s in inside if isinstance(s, Let) and id(s) not in own)
    written = stored_buffers(loop.body)
    invariant: dict[int, bool] = {}

    def is_invariant(expr: Expr) -> bool:
        known = invariant.get(id(expr))
        if known is None:
            if isinstance(expr, Ref):
                known = expr.name not in unsteady
            elif isinstance(expr, Position):
                known = expr.var not in unsteady
            elif isinstance(expr, Load):
                known = (
                    expr.buffer not in written
                    and not any(var in unsteady and stride != 0 for var, stride in expr.index.terms)
                    and all(is_invariant(x) for x, _ in expr.index.gathered)
                )
            else:
                known = not isinstance(expr, Apply) or all(is_invariant(x) for x in expr.args)
            invariant[id(expr)] = known
        return known

    invariants: dict[int, tuple[str, Expr]] = {}
    visited: set[int] = set()

    def collect(expr: Expr) -> None:
        if id(expr) in visited:
            return
        visited.add(id(expr))
        if is_invariant(expr):
            if isinstance(expr, Load | Apply):
                invariants[id(expr)] = ("", expr)
        elif isinstance(expr, Apply):
            for x in expr.args:
                collect(x)
        elif isinstance(expr, Load):
            for x, _ in expr.index.gathered:
                collect(x)

    for stmt in loop.body:
        if isinstance(stmt, Let):
            if is_invariant(stmt.value):
                invariants[id(stmt)] = (stmt.name, stmt.value)
                continue
            unsteady.add(stmt.name)
        for expr in operands(stmt):
            collect(expr)
    return list(invariants.values())
