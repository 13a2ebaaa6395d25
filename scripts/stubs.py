#!/usr/bin/env python3
"""Writes stubs (``.pyi``) of the namespaces and of the methods of Tensor, for type checkers and editors.

``scripts/stubs.py [FOLDER]`` writes them beside the sources of the package in FOLDER (by default this repository),
where git ignores them. The build writes them into the wheel. The sources are read, and never imported.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
METHODS_HEAD = '''from collections.abc import Callable, Collection, Mapping
from typing import Any, Generic, Self, TypeVar

import numpy as np

from runnel.core.dispatch import TensorLike
{imports}
ResultT = TypeVar("ResultT", bound=TensorLike)

class LateMethod:
    def __init__(self, place: str, *wraps: Callable[[str, Callable[..., Any]], Callable[..., Any]]) -> None: ...
    def __get__(self, instance: Any, owner: type) -> Any: ...

def attach(
    places: Mapping[str, str],
    in_place_only: Mapping[str, str],
    in_place: Collection[str],
    views: Collection[str],
    spread: Collection[str],
) -> None: ...

class FunctionMethods(TensorLike, Generic[ResultT]):
    """Functions of an array as its methods."""

    def update(self, name: str, change: Callable[[Any], Any]) -> Self: ...
    def _other(self, view: Any) -> Any: ...
'''


class Sources:
    """The modules of a package, read as syntax trees."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, module: str) -> Path | None:
        path = self.root.joinpath(*module.split("."))
        return next((p for p in (path.with_suffix(".py"), path / "__init__.py") if p.exists()), None)

    @functools.cache  # noqa: B019 (one object a process)
    def tree(self, module: str) -> ast.Module:
        path = self.path(module)
        return ast.parse("" if path is None else path.read_text(encoding="utf-8"))

    def constant(self, module: str, name: str) -> Any:
        """Return the value of the assignment ``name = ...`` of a module of data, which may import constants.

        Return None if the module does not assign the name."""
        if name not in self.own_names(module):
            return None
        values: dict[str, Any] = {}
        imports = self.imports(module)
        for node in self.tree(module).body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                if name in map(ast.unparse, targets(node)):
                    used = {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)} & imports.keys()
                    values |= {n: self.constant(*imports[n]) for n in used}
                    return eval(compile(ast.Expression(node.value), module, "eval"), values)
                with contextlib.suppress(NameError):  # a value that is not data, such as a call of an imported function
                    values[ast.unparse(targets(node)[0])] = eval(
                        compile(ast.Expression(node.value), module, "eval"), values
                    )
        return None

    def function(self, module: str, name: str) -> tuple[str, ast.FunctionDef] | None:
        """Return the definition of a function, and its module, by way of imports and of calls such as
        ``f = wrapper(module.f)``."""
        imports = self.imports(module)
        for node in self.tree(module).body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return module, node
            if isinstance(node, ast.Assign) and name in names_of(node):
                if isinstance(node.value, ast.Call) and (row := self.row(module, name, node.value)):
                    return row
                value = node.value.args[0] if isinstance(node.value, ast.Call) and node.value.args else node.value
                holder, _, member = ast.unparse(value).rpartition(".")
                if holder in imports:
                    return self.referenced(module, value)
                return self.function(module, member) if member.isidentifier() and member != name else None
        return self.function(*imports[name]) if name in imports else None

    def row(self, module: str, name: str, call: ast.Call) -> tuple[str, ast.FunctionDef] | None:
        """Return the function that a row such as ``_, tan = function_of_floats("tan", ...)`` makes: the factory's inner
        ``function``, with the docstring among the row's arguments; None for other calls."""
        found = self.function(module, ast.unparse(call.func)) if isinstance(call.func, ast.Name) else None
        inner = [n for n in found[1].body if isinstance(n, ast.FunctionDef) and n.name == "function"] if found else []
        if found is not None and isinstance(last := found[1].body[-1], ast.Return) and isinstance(last.value, ast.Call):
            passed = self.row(found[0], name, ast.Call(last.value.func, call.args, []))
            if passed is not None:
                return passed
        if found is None or not inner:
            return None
        doc = [a for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)][-1]
        arguments, returns = inner[0].args, inner[0].returns
        return found[0], ast.FunctionDef(name, arguments, [ast.Expr(doc)], [], returns, type_params=[])

    def referenced(self, module: str, expression: ast.expr) -> tuple[str, ast.FunctionDef] | None:
        """Return the definition of the function that an expression of a module, such as ``ops.elu``, means."""
        holder, _, name = ast.unparse(expression).rpartition(".")
        if not holder:
            return self.function(module, name)
        package, member = self.imports(module)[holder]
        is_namespace = "NAMES" in self.own_names(f"{package}.{member}")
        names = self.constant(f"{package}.{member}", "NAMES") if is_namespace else None
        return self.function(*names[name].split(":")) if names else self.function(f"{package}.{member}", name)

    def text(self, module: str, node: ast.expr | None) -> Any:
        """Return the string that an expression of a module, a literal or a name, means."""
        if isinstance(node, ast.Name):
            assigned = [n for n in self.tree(module).body if isinstance(n, ast.Assign) and node.id in names_of(n)]
            node = assigned[0].value
        return node and ast.literal_eval(node)

    def class_row(self, module: str, name: str) -> tuple[ast.Call, str, ast.arguments] | None:
        """Return the call of a row such as ``ELU = layer("ELU", ...)``, which makes a class, and the module and the
        parameters of ``layer``."""
        for node in self.tree(module).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and name in names_of(node):
                maker = self.function(module, ast.unparse(node.value.func))
                if maker is not None and "base" in {a.arg for a in [*maker[1].args.args, *maker[1].args.kwonlyargs]}:
                    return node.value, maker[0], maker[1].args
        return None

    def imports(self, module: str) -> dict[str, tuple[str, str]]:
        """Return where each imported name of a module is from: (module, name)."""
        return {
            alias.asname or alias.name: (node.module or "", alias.name)
            for node in ast.walk(self.tree(module))
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    def own_names(self, module: str) -> set[str]:
        """Return the constants and classes that a module defines."""
        body = self.tree(module).body
        found = {ast.unparse(t) for n in body if isinstance(n, ast.Assign | ast.AnnAssign) for t in targets(n)}
        return found | {n.name for n in body if isinstance(n, ast.ClassDef)}


def targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def names_of(node: ast.Assign) -> set[str]:
    """Return the names that an assignment defines, also in ``a, b = ...``."""
    elements = [e for t in node.targets for e in (t.elts if isinstance(t, ast.Tuple) else [t])]
    return set(map(ast.unparse, elements))


def stubs(root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """Yield the path in the package, and the text, of each stub."""
    sources = Sources(root)
    for path in sorted((root / "runnel").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "namespace(__name__, NAMES" in text:
            relative = path.relative_to(root)
            module = ".".join(relative.with_suffix("").parts).removesuffix(".__init__")
            yield relative.with_suffix(".pyi").as_posix(), namespace_stub(sources, sources.constant(module, "NAMES"))
    yield "runnel/tensor/function_methods.pyi", methods_stub(sources)
    yield from torch_stubs(sources)


def namespace_stub(sources: Sources, names: dict[str, str], forwards: Iterable[str] = ()) -> str:
    """Return the stub of a module with ``names``, and with all names of the modules ``forwards``."""
    lines = {f"from {module} import *" for module in forwards}
    classes = ""
    for name, place in names.items():
        module, colon, member = place.partition(":")
        if not colon:
            module, _, member = place.rpartition(".")
        row = sources.class_row(module, member) if colon else None
        if row is None:
            lines.add(f"from {module} import {member} as {name}")
        else:
            text, used = class_stub(sources, module, name, *row)
            classes += text
            lines |= {f"from {holder} import {part}" for holder, part in used}
    listed = "".join(f"    {name!r},\n" for name in names)
    return "\n".join(sorted(lines)) + "\n" + classes + ("" if forwards else f"\n__all__ = [\n{listed}]\n")


def class_stub(
    sources: Sources, module: str, name: str, call: ast.Call, maker: str, known: ast.arguments
) -> tuple[str, set[tuple[str, str]]]:
    """Return the class that a row makes, and the names that it uses, as (module, name)."""
    places: dict[str | None, ast.expr] = dict(zip((a.arg for a in known.args), call.args, strict=False))
    places |= {keyword.arg: keyword.value for keyword in call.keywords}
    defaults = [*zip(known.kwonlyargs, known.kw_defaults, strict=True)]
    defaults += zip(known.args[::-1], known.defaults[::-1], strict=False)
    usual = next((ast.unparse(d) for a, d in defaults if a.arg == "base" and d is not None), "")
    base = ast.unparse(places["base"]) if "base" in places else usual
    used = {sources.imports(module).get(base, (maker if base == usual else module, base))}
    found = sources.referenced(module, places["function"]) if "function" in places else None
    if found is None:
        return f"class {name}({base}): ...\n", used
    taken, stored = split_parameters(found[1], *(sources.text(module, places.get(k)) for k in ("options", "inputs")))
    methods = (("__init__", stored, "None"), ("forward", taken, "Any"))
    text = "".join(f"    def {m}(self, {', '.join(parts)}) -> {end}: ...\n" for m, parts, end in methods)
    imports, own = sources.imports(found[0]), sources.own_names(found[0])
    words = {n for part in (*taken, *stored) if part != "*" for n in names_in(f"def f({part}): ...")}
    used |= {imports.get(n, (found[0], n)) for n in words if n in imports or n in own} | {("typing", "Any")}
    return f"class {name}({base}):\n{text.replace('(self, )', '(self)')}", used


def split_parameters(node: ast.FunctionDef, options: str | None, inputs: str | None) -> tuple[list[str], list[str]]:
    """Return the parameters that a layer takes at a call, and those that it stores, as ``runnel.nn.layer`` does."""
    given = node.args
    defaults = [*[None] * (len(given.args) - len(given.defaults)), *given.defaults, *given.kw_defaults]
    pairs = zip([*given.args, *given.kwonlyargs], defaults, strict=True)
    every = {a.arg: parameter(a, default) for a, default in pairs}
    arrays = itertools.takewhile(lambda n: re.fullmatch(r"\w+: [^=]*(Array|Operand)[^=]*", every[n]), every)
    taken = inputs.split(", ") if inputs else list(arrays)
    named = [a.arg for a in given.kwonlyargs]
    chosen = [n for n in every if n not in taken and n != "training"] if options is None else options.split(", ")
    stored = []
    for item in chosen:
        name, _, default = item.partition("=")
        text = every.get(name, name if name == "*" else f"{name}: {type(ast.literal_eval(default or '0')).__name__}")
        text = text.replace(": Array | None", ": Any")
        stored += ["*"] if options is None and named[:1] == [name] else []
        stored.append(f"{text.partition(' = ')[0]} = {default}" if default else text)
    return [every[n] for n in taken], stored


def torch_stubs(sources: Sources) -> Iterator[tuple[str, str]]:
    """Yield the stubs of the modules of ``runnel.compat.torch``, which have no files."""
    top = "runnel.compat.torch"
    forwards, names = (sources.constant(f"{top}.names", name) for name in ("FORWARDS", "NAMES"))
    paths = sorted({"", *forwards, *names} - {"torch"})
    for path in paths:
        parts = [p for p in paths if p and p.rpartition(".")[0] == path]
        own = {p.rpartition(".")[2]: f"{top}.{p}" for p in parts}
        own |= names.get(path or "torch", {})
        shown = forwards.get(path, "").split() if path else ["runnel", "runnel.nn.functional"]
        file = "/".join([*top.split("."), *(path.split(".") if path else [])])
        suffix = "/__init__.pyi" if parts else ".pyi"
        yield file + suffix, namespace_stub(sources, own, [m for m in shown if sources.path(m) or m.startswith(top)])


class Signature(NamedTuple):
    """The parameters of a method after ``self`` as text, and the names that they use."""

    parameters: list[str]
    names: set[str]


def signature(node: ast.FunctionDef, spread: bool) -> Signature:
    """Return the signature of the method that calls a function, which may take its last argument as several."""
    given = node.args
    positional = [*given.posonlyargs, *given.args][1:]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
    defaults = defaults[len(defaults) - len(positional) :]
    parameters = [parameter(a, d) for a, d in zip(positional, defaults, strict=True)]
    if spread:
        parameters[-1] = f"*{positional[-1].arg}: Any"
    if given.vararg:
        parameters.append(f"*{given.vararg.arg}: {ast.unparse(given.vararg.annotation or ast.Name('Any'))}")
    elif given.kwonlyargs and not spread:
        parameters.append("*")
    parameters += [parameter(a, d) for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    return Signature(parameters, {n for text in parameters if ":" in text for n in names_in(f"def f({text}): ...")})


def parameter(a: ast.arg, default: ast.expr | None) -> str:
    annotation = "Any" if a.annotation is None else ast.unparse(a.annotation)
    return f"{a.arg}: {annotation}" + (f" = {ast.unparse(default)}" if default is not None else "")


def names_in(code: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}


def methods_stub(sources: Sources) -> str:
    """Return the stub of the class whose methods ``runnel.methods`` lists."""
    methods, only, in_place, spread = (
        sources.constant("runnel.methods", name) for name in ("METHODS", "IN_PLACE_ONLY", "IN_PLACE", "SPREAD")
    )
    imports: set[tuple[str, str]] = set()
    text = ""
    for name, place in [*methods.items(), *only.items()]:
        found = sources.function(*place.split(":"))
        if found is None:
            text += f"    def {name}(self, *args: Any, **kwargs: Any) -> Any: ...\n"
            continue
        module, node = found
        parts = signature(node, name in spread.split())
        returns = ast.unparse(node.returns) if node.returns is not None else "Any"
        returns = "Self" if name in only else "ResultT" if returns in ("Array", "Any") else returns
        doc = re.split(r"(?<=[.!?])\s", " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split()))[0]
        text += method(name, parts.parameters, returns, doc)
        if name in in_place.split():
            text += method(f"{name}_", parts.parameters, "Self", f"Give this array the value of ``{name}``.")
        imports |= {
            sources.imports(module).get(used, (module, used))
            for used in parts.names | names_in(returns)
            if used in sources.imports(module) or used in sources.own_names(module)
        }
    known = {
        ("collections.abc", "Callable"),
        ("typing", "Any"),
        ("typing", "Self"),
        ("runnel.core.dispatch", "TensorLike"),
    }
    lines = "".join(f"from {module} import {name}\n" for module, name in sorted(imports - known))
    return METHODS_HEAD.format(imports=lines) + text


def method(name: str, parameters: list[str], returns: str, doc: str) -> str:
    end = f'\n        r"""{doc}"""\n' if doc else " ...\n"
    return f"    def {name}({', '.join(['self', *parameters])}) -> {returns}:{end}"


def main(arguments: list[str]) -> None:
    root = Path(arguments[0]) if arguments else ROOT
    for path, text in stubs(root):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
