"""The declarations in the source, as `runnel.core.surface` has them: read, not imported."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from surface_parts.namespaces import GATHERING, LATE, NAMESPACES
from surface_parts.places import METHODS, PACKAGE, ROOT


class Place(NamedTuple):
    """A namespace, with the names there, aliases after the first."""

    namespace: str
    names: tuple[str, ...]


class Declaration(NamedTuple):
    """Something that users find in some places. ``node`` is its definition, where there is one."""

    module: str
    name: str
    places: tuple[Place, ...]
    options: dict[str, object]
    node: ast.FunctionDef | ast.ClassDef | None

    @property
    def summary(self) -> str:
        """The first sentence of its docstring."""
        if self.node is not None:
            return first_sentence(ast.get_docstring(self.node) or "")
        return ""

    def names_in(self, namespace: str) -> tuple[str, ...]:
        return next((place.names for place in self.places if place.namespace == namespace), ())


def first_sentence(doc: str) -> str:
    paragraph = " ".join(doc.split("\n\n")[0].split())
    return re.split(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\bal\.)\s", paragraph)[0].rstrip(":")


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def place(text: str, name: str) -> Place:
    namespace, colon, names = text.partition(":")
    return Place(namespace, tuple(names.split()) if colon else (name,))


@functools.cache
def declarations() -> list[Declaration]:
    """All there are, by module and line."""
    found: list[Declaration] = []
    exported: dict[str, str] = {}  # functions that are offered as another module wraps them: to that module
    written = {PACKAGE / METHODS, *(PACKAGE / space.file for space in NAMESPACES.values())}
    for path in sorted(set(PACKAGE.rglob("*.py")) - written):
        tree, module = parsed(path), module_name(path)
        for node in tree.body:
            found += declared(node, module)
        if module == "runnel.ops.precision":
            exported = {f"runnel.ops.{ast.unparse(call.args[0])}": module for call in wrapping(tree)}
    return [d._replace(module=exported.get(f"{d.module}.{d.name}", d.module)) for d in found]


def wrapping(tree: ast.Module) -> Iterator[ast.Call]:
    """The calls ``function = in_low(module.function)`` of a module."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and node.value.args:
            yield node.value


def declared(node: ast.stmt, module: str) -> Iterator[Declaration]:
    """What a statement of a module declares."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        for call in node.decorator_list:
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "offered":
                places = tuple(place(ast.literal_eval(text), node.name) for text in call.args)
                options = {k.arg or "": ast.literal_eval(k.value) for k in call.keywords}
                yield Declaration(module, node.name, places, options, node)
        return
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and ast.unparse(call.func) == "offered_names":
        namespace, *names = map(ast.literal_eval, call.args)
        for name in names:
            yield Declaration(module, name, (Place(namespace, (name,)),), {}, None)


def in_namespace(namespace: str, every: Iterable[Declaration]) -> list[tuple[Declaration, tuple[str, ...]]]:
    """What a namespace offers, and under which names. In ``functional``, a function of ``runnel.nn`` stands for that of
    ``runnel.ops``: it has PyTorch's arguments."""
    folder = f"runnel.{namespace}."
    if namespace == "functional":
        of_networks = [d for d in every if d.module.startswith("runnel.nn.")]
        above = {name for d in of_networks for name in d.names_in(namespace)}
        others = [d for d in every if d not in of_networks and not above & {*d.names_in(namespace)}]
        return [(d, d.names_in(namespace)) for d in (*of_networks, *others) if d.names_in(namespace)]
    return [
        (d, names)
        for d in every
        for names in [d.names_in(namespace)]
        + (
            [d.names_in("rn")]
            if namespace in GATHERING and d.module.startswith(folder) and not is_late(d.module, d.name)
            else []
        )
        if names
    ]


def is_late(module: str, member: str) -> bool:
    """Whether it is imported when it is asked for, and not with the namespace."""
    return f"{module}.{member}".startswith(LATE)


def listed(path: Path) -> list[str]:
    """What a file without declarations offers: what its ``__all__`` names, or its functions and classes."""
    tree = parsed(path)
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    named = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return [name for name in named if not name.startswith("_")]
