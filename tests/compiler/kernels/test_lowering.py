"""The protocol of kernel families: the compiler asks objects, and nothing outside a family looks at its types."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import runnel as rn
from runnel.compiler.kernels.families import FAMILIES
from runnel.compiler.lowering.protocol import Lowering, lowering_for
from runnel.compiler.plan_ir.clusters import Form
from runnel.core import tables
from runnel.core.errors import MissingRuleError
from runnel.core.tables import Op, lower
from runnel.loops import rules
from tests.test_house import PACKAGE, import_graph, module_name, parsed, sources

KERNELS = PACKAGE / "compiler" / "kernels"


def family_of(path: Path) -> str | None:
    """Return the family of kernels that a file is part of: a module or package of ``compiler/kernels``."""
    inside = path.relative_to(KERNELS).with_suffix("").parts if path.is_relative_to(KERNELS) else ()
    return inside[0] if inside and inside[0] not in ("__init__", "families", "bounds") else None


def classes_of_families() -> dict[str, str]:
    """The full names of all classes of families, and of the forms of rules, with the family of each."""
    families = {f"{rules.__name__}.{name}": "rules" for name, x in vars(rules).items() if isinstance(x, type)}
    for path in sources():
        family = family_of(path)
        if family is not None:
            names = [node.name for node in parsed(path).body if isinstance(node, ast.ClassDef)]
            families |= {f"{module_name(path)}.{name}": family for name in names}
    return families


def names_of(tree: ast.Module, module: str) -> dict[str, str]:
    """Return the full names that a module's names mean."""
    names = {node.name: f"{module}.{node.name}" for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return names


def type_tests(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The expressions that a module compares types of objects with, by isinstance, issubclass, match or type()."""
    for node in ast.walk(tree):
        tested: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1:
            if node.func.id in ("isinstance", "issubclass"):
                tested = [node.args[1]]
        elif isinstance(node, ast.MatchClass):
            tested = [node.cls]
        elif isinstance(node, ast.Compare | ast.Subscript | ast.Dict) and any(map(is_type_call, ast.walk(node))):
            tested = [node]  # type: ignore[list-item]
        for expr in tested:
            for part in ast.walk(expr):
                if isinstance(part, ast.Name | ast.Attribute):
                    yield part.lineno, ast.unparse(part)


def is_type_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type"


def foreign_type_tests(tree: ast.Module, module: str, family: str | None, known: dict[str, str]) -> list[str]:
    """The type tests of a module on classes of another family, or on forms of rules."""
    names = names_of(tree, module)
    tests = []
    for line, text in type_tests(tree):
        first, *rest = text.split(".")
        full = ".".join([names.get(first, first), *rest])
        if known.get(full, family) != family:
            tests.append(f"{module}:{line} {text}")
    return tests


@pytest.mark.suite
def test_no_type_of_a_family_is_tested_outside_of_it() -> None:
    known = classes_of_families()
    assert len(set(known.values())) > 8
    offenders = [
        line
        for path in sources()
        for line in foreign_type_tests(parsed(path), module_name(path), family_of(path), known)
    ]
    assert offenders == []


@pytest.mark.parametrize(
    "text",
    [
        "from runnel.loops.rules import View\ndef f(x):\n    return isinstance(x, View)\n",
        "from runnel.loops import rules\ndef f(x):\n    return isinstance(x, rules.View | int)\n",
        "from runnel.loops.rules import View as V\ndef f(x):\n    match x:\n        case V():\n            return 1\n",
        "from runnel.loops.rules import View\ndef f(x):\n    return type(x) is View\n",
        "from runnel.compiler.kernels.copies import ViewLowering as V\nissubclass(int, (V, int))\n",
    ],
)
def test_type_tests_are_found(text: str) -> None:
    assert foreign_type_tests(ast.parse(text), "runnel.other", None, classes_of_families())


def test_types_of_the_own_family_may_be_tested() -> None:
    text = "from runnel.compiler.kernels.copies import ViewLowering as V\ndef f(x):\n    isinstance(x, V)\n"
    assert foreign_type_tests(ast.parse(text), "m", "copies", classes_of_families()) == []


@pytest.mark.suite
def test_rules_are_looked_up_in_one_place() -> None:
    """Readers of table ``lower`` ask for a lowering."""
    readers = {
        module_name(path)
        for path in sources()
        for node in ast.walk(parsed(path))
        if (isinstance(node, ast.Call) and ast.unparse(node.func) in ("lower.get", "tables.lower.get"))
        or (isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("lower", "tables.lower"))
    }
    assert readers == {lowering_for.__module__}


def test_no_driver_reads_the_names_of_kernels() -> None:
    """Names of kernels tell the compiler nothing."""
    text = [(path, line) for path in (PACKAGE / "compiler").rglob("*.py") for line in path.read_text().splitlines()]
    assert [str(path) for path, line in text if "kernel.name.startswith" in line or "kernel.name ==" in line] == []


@pytest.mark.suite
def test_only_kernels_import_families() -> None:
    """Only ``families.py`` and other kernels import what is in a family."""
    families = {family for family in classes_of_families().values() if family != "rules"}
    prefixes = tuple(f"runnel.compiler.kernels.{family}" for family in families)
    offenders = [
        f"{name} imports {target}"
        for name, targets in import_graph().items()
        for target in targets
        if target.startswith(prefixes) and not name.startswith("runnel.compiler.kernels.")
    ]
    assert offenders == []


def test_every_form_of_rule_has_a_family() -> None:
    forms = {x for x in vars(rules).values() if isinstance(x, type) and x.__module__ == rules.__name__}
    assert set(FAMILIES) == forms


def test_a_rule_without_a_family_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    rules_by_op = dict(lower._rules)
    monkeypatch.setattr(lower, "_rules", rules_by_op)
    monkeypatch.setattr(lower, "get", rules_by_op.get)
    monkeypatch.setattr(tables.Table, "registrations", tables.Table.registrations)
    monkeypatch.setattr(Op, "registry", dict(Op.registry))
    op = Op("odd", "x", "An op with a rule that nobody knows.")
    lower.register(op, object())
    with pytest.raises(MissingRuleError, match=r"\[odd\] table 'lower' holds .* no family of kernels"):
        lowering_for(op)


def test_an_instance_stands_for_itself_and_a_new_rule_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    rules_by_op = dict(lower._rules)
    monkeypatch.setattr(lower, "_rules", rules_by_op)
    monkeypatch.setattr(lower, "get", rules_by_op.get)
    monkeypatch.setattr(tables.Table, "registrations", tables.Table.registrations)
    monkeypatch.setattr(Op, "registry", dict(Op.registry))
    op, own = Op("odd", "x", "An op whose rule changes."), Lowering()
    assert not lowering_for(op).is_expression
    lower.register(op, own)
    assert lowering_for(op) is own
    lower.register(op, rules.Elementwise(lambda avals, x: x), replace=True)
    assert lowering_for(op).is_expression
    lower.register(op, rules.HostCall(), replace=True)
    assert lowering_for(op).runs_on_host


def test_subclasses_of_a_form_belong_to_its_family(monkeypatch: pytest.MonkeyPatch) -> None:
    rules_by_op = dict(lower._rules)
    monkeypatch.setattr(lower, "_rules", rules_by_op)
    monkeypatch.setattr(lower, "get", rules_by_op.get)
    monkeypatch.setattr(tables.Table, "registrations", tables.Table.registrations)
    monkeypatch.setattr(Op, "registry", dict(Op.registry))

    class Gentle(rules.Elementwise):
        """A form from outside."""

    op = Op("odd", "x", "An op of a form from outside.")
    lower.register(op, Gentle(lambda avals, x: x))
    x = rn.asarray([1.0])
    graph = rn.compile(lambda x: rn.exp(x)).program(x).graph
    assert lowering_for(op).form(graph.outputs[0], {}) is Form.NEST
