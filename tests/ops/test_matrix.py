"""The op × table matrix, and that the package exports what its modules define."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path

import runnel
import runnel.ops
from runnel import methods
from runnel.core.tables import Op, Table, abstract_eval
from runnel.ops.matrix import ABSENT, EMPTY, PRESENT, as_text, matrix


def test_matrix_says_what_the_tables_hold() -> None:
    rows = {row.name: row for row in matrix()}
    assert set(rows) == set(Op.registry)
    for name, row in rows.items():
        assert list(row.cells) == list(Table.registry)
        for table, cell in row.cells.items():
            assert (cell == PRESENT) == (Op.registry[name] in Table.registry[table])
            assert cell in (PRESENT, ABSENT, EMPTY)


def test_a_new_op_shows_its_holes() -> None:
    op = Op("_only_for_this_test", "x", "An op without a vjp.")
    try:
        abstract_eval.register(op, lambda x: x)
        (row,) = (r for r in matrix() if r.name == op.name)
        assert row.cells["abstract_eval"] == PRESENT and row.cells["vjp"] == ABSENT
        assert op.name in as_text()
    finally:
        del Op.registry[op.name]
        del abstract_eval._rules[op]


def test_exports_are_unique_and_documented() -> None:
    assert len(runnel.ops.__all__) == len(set(runnel.ops.__all__))
    for name in runnel.ops.__all__:
        assert inspect.getdoc(getattr(runnel.ops, name)), name


def test_functions_of_the_modules_are_exported() -> None:
    """A public function is exported unless other modules of the package are its only kind of user."""
    outside = [p.read_text(encoding="utf-8") for p in Path(runnel.__file__).parent.glob("**/*.py")]
    sources = {
        m.name: importlib.import_module(m.name) for m in pkgutil.walk_packages(runnel.ops.__path__, "runnel.ops.")
    }
    texts = {name: inspect.getsource(module) for name, module in sources.items()}
    for name, module in sources.items():
        for function, value in vars(module).items():
            if inspect.isfunction(value) and value.__module__ == module.__name__ and not function.startswith("_"):
                used = sum(function in text for text in outside) > 1 or texts[name].count(function) > 1
                offered = function in runnel.ops.__all__ or f"{module.__name__}:{function}" in methods.METHODS.values()
                assert offered or used or name == "runnel.ops.matrix", f"{name}.{function}"


def test_every_table_has_a_section_in_the_docs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "internals" / "tables.md").read_text(encoding="utf-8")
    sections = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert sections == list(Table.registry)
