"""The matrix of ops and tables. ``runnel ops`` prints it; a hole is a hole everybody can see."""

from __future__ import annotations

from typing import Any

from runnel.core.records import record
from runnel.core.tables import Op, Table

PRESENT, ABSENT, EMPTY = "present", "absent", "empty table"


@record
class Row:
    """One op: its name, signature and doc, and for each table whether it has a rule there."""

    name: str
    signature: str
    doc: str
    cells: dict[str, str]


def matrix() -> list[Row]:
    """Return a row for each op, by name.

    A table in which no op has a rule is an intended hole ("empty table")."""
    tables: dict[str, Table[Any]] = Table.registry
    unused = {name for name, table in tables.items() if not any(True for _ in table)}

    def cell(op: Op, name: str) -> str:
        return EMPTY if name in unused else PRESENT if op in tables[name] else ABSENT

    return [
        Row(op.name, op.signature, op.doc, {name: cell(op, name) for name in tables})
        for _, op in sorted(Op.registry.items())
    ]


def as_text(rows: list[Row] | None = None) -> str:
    """Return the matrix for a terminal: + a rule, - none, · none yet for any op."""
    table = matrix() if rows is None else rows
    tables = list(Table.registry)
    marks = {PRESENT: "+", ABSENT: "-", EMPTY: "·"}
    width = max((len(row.name) for row in table), default=2)
    lines = ["op".ljust(width) + "  " + "  ".join(tables)]
    for row in table:
        cells = "  ".join(marks[row.cells[t]].center(len(t)) for t in tables)
        lines.append(f"{row.name.ljust(width)}  {cells}".rstrip())
    holes = sum(cell == ABSENT for row in table for cell in row.cells.values())
    lines.append(f"{len(table)} ops, {len(tables)} tables, {holes} holes.  + a rule   - none   · none yet for any op")
    return "\n".join(lines)
