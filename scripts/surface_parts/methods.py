"""The text of the methods of Tensor and Variable that call functions of arrays."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

from surface_parts.declarations import Declaration, declared, is_late, module_name, parsed
from surface_parts.namespaces import LATE
from surface_parts.places import PACKAGE
from surface_parts.text import NOTE, WIDTH, import_lines, indented, quoted

METHODS_DOC = "The methods of Tensor and Variable that call functions of arrays."
METHODS_CLASS = '''
ResultT = TypeVar("ResultT", bound=TensorLike)


@public.methods
class FunctionMethods(TensorLike, Generic[ResultT]):
    """Functions of an array as its methods."""

    __slots__ = ()

    def update(self, name: str, change: Callable[[Any], Any]) -> Self:
        """Give this array the value that ``change`` makes of its present one. ``name`` is for messages."""
        raise NotImplementedError

    def _other(self, view: Any) -> Any:
        """``view`` as a handle that is not this one, so that writing to it leaves this one."""
        raise NotImplementedError
'''


MAKERS = {"spread": "spread", "views": "another"}  # of runnel.tensor.late_methods, by option


class Signature(NamedTuple):
    """The parameters of a method behind ``self`` as text, how it passes them on, and the function's first parameter."""

    parameters: list[str]
    arguments: list[str]
    names: set[str]  # used in annotations and defaults


def signature(node: ast.FunctionDef, spread: bool) -> Signature:
    given = node.args
    positional = [*given.posonlyargs, *given.args][1:]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
    defaults = defaults[len(defaults) - len(positional) :]
    parameters = [parameter(a, d) for a, d in zip(positional, defaults, strict=True)]
    arguments = [a.arg for a in positional]
    if spread:
        last = positional[-1].arg
        parameters[-1], arguments[-1] = f"*{last}: Any", f"gathered({last})"
    if given.vararg:
        parameters.append(f"*{given.vararg.arg}: {ast.unparse(given.vararg.annotation or ast.Name('Any'))}")
        arguments.append(f"*{given.vararg.arg}")
    elif given.kwonlyargs and not spread:
        parameters.append("*")
    parameters += [parameter(a, d) for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    arguments += [f"{a.arg}={a.arg}" for a in given.kwonlyargs]
    names = {x.id for text in parameters if ":" in text for x in ast.walk(ast.parse(f"def f({text}): ..."))
             if isinstance(x, ast.Name)}  # fmt: skip
    return Signature(parameters, arguments, names)


def parameter(a: ast.arg, default: ast.expr | None) -> str:
    annotation = "Any" if a.annotation is None else ast.unparse(a.annotation)
    if default is None:
        return f"{a.arg}: {annotation}"
    is_text = isinstance(default, ast.Constant) and isinstance(default.value, str)
    return f"{a.arg}: {annotation} = {quoted(default.value) if is_text else ast.unparse(default)}"


def methods_text(every: list[Declaration]) -> str:
    """The file of the methods."""
    imports = {("collections.abc", "Callable"), ("runnel.core.dispatch", "TensorLike"), ("runnel.core", "public")}
    imports |= {("typing", name) for name in ("Any", "Generic", "Self", "TypeVar")}
    blocks: dict[str, str] = {}
    late: dict[str, str] = {}  # methods that are there when they are first used
    makers: set[str] = set()
    typed: set[tuple[str, str]] = set()
    for d in every:
        plain, in_place = d.names_in("Tensor"), d.names_in("Tensor_")
        if not (plain or in_place) or not isinstance(d.node, ast.FunctionDef):
            continue
        parts = signature(d.node, bool(d.options.get("spread")))
        returns = ast.unparse(d.node.returns) if d.node.returns is not None else "Any"
        used = set(parts.names)
        width = WIDTH - 4 * is_late(d.module, d.name)
        called = f"{d.module.rpartition('.')[2]}.{d.name}"
        if is_late(d.module, d.name):
            kinds = [maker for option, maker in MAKERS.items() if d.options.get(option)]
            makers |= {*kinds, *(["updating"] if in_place else [])}
            at = quoted(f"{d.module}:{d.name}")
            late |= {name: f"LateMethod({', '.join((at, *kinds))})" for name in plain}
            late |= {f"{name}_": f"LateMethod({at}, updating)" for name in in_place}
        else:
            imports.add((d.module.rpartition(".")[0], d.module.rpartition(".")[2]))
        if d.options.get("spread") and not is_late(d.module, d.name):
            imports.add(("runnel.ops.arguments", "gathered"))
        if plain:
            if returns in ("Array", "Any"):
                returns = "ResultT"
            else:
                used |= {x.id for x in ast.walk(ast.parse(returns)) if isinstance(x, ast.Name)}
        for name in plain:
            result = f"{called}({', '.join(['self', *parts.arguments])})"
            result = f"self._other({result})" if d.options.get("views") else result
            body = ["..."] if is_late(d.module, d.name) else [f"return {result}"]
            blocks[name] = method(name, parts.parameters, returns, d.summary, body, width)
        for name in in_place:
            array = "array" if "x" in parts.arguments else "x"
            change = f"lambda {array}: {called}({', '.join([array, *parts.arguments])})"
            body = f'return self.update("{name}_", {change})'
            lines = [body] if len(body) + 8 <= WIDTH else ["return self.update(", f'    "{name}_", {change}', ")"]
            doc = f"Give this array the value of ``{name}`` of it and the arguments; returns the array itself."
            lines = ["..."] if is_late(d.module, d.name) else lines
            blocks[f"{name}_"] = method(f"{name}_", parts.parameters, "Self", doc, lines, width)
        found = origins(d, used)
        if is_late(d.module, d.name):  # types of theirs are for checkers alone
            typed |= {(module, name) for module, name in found if module.startswith(LATE)}
            found = {(module, name) for module, name in found if not module.startswith(LATE)}
        imports |= found
    if late:
        imports |= {("typing", "TYPE_CHECKING"), *(("runnel.tensor.late_methods", m) for m in ("LateMethod", *makers))}
    std = import_lines((m, n, n) for m, n in imports if not m.startswith("runnel"))
    own = import_lines((m, n, n) for m, n in imports if m.startswith("runnel"))
    if typed:
        own += "\nif TYPE_CHECKING:\n" + indented(import_lines((m, n, n) for m, n in typed))
    head = f'"""{METHODS_DOC}"""\n\n{NOTE}\nfrom __future__ import annotations\n\n{std}\n{own}'
    text = head + METHODS_CLASS + "".join(f"\n{blocks[name]}" for name in sorted(blocks.keys() - late.keys()))
    if late:
        text += "\n    if TYPE_CHECKING:\n" + "".join(f"\n{indented(blocks[name])}" for name in sorted(late))
        text += "\n    else:\n" + "".join(f"        {name} = {late[name]}\n" for name in sorted(late))
    return text


def method(name: str, parameters: list[str], returns: str, doc: str, body: list[str], width: int = WIDTH) -> str:
    lines = [f"    def {name}({', '.join(['self', *parameters])}) -> {returns}:"]
    if len(lines[0]) > width:
        inner = f"        {', '.join(['self', *parameters])}"
        each = [f"        {part}," for part in ["self", *parameters]]
        lines = [f"    def {name}(", *([inner] if len(inner) <= width else each), f"    ) -> {returns}:"]
    told = f'        """{doc}"""'
    if len(told) > width:
        at = told.rindex(" ", 0, width)
        told = told[:at] + "\n        " + told[at + 1 :]
    return "\n".join([*lines, *([told] if doc else []), *(f"        {line}" for line in body)]) + "\n"


def origins(d: Declaration, names: set[str]) -> set[tuple[str, str]]:
    """Where the module of a declaration has the names in its annotations from."""
    defined = PACKAGE.parent / Path(*d.module.split(".")).with_suffix(".py")
    if d.module == "runnel.ops.precision":
        defined = next(p for p in sorted((PACKAGE / "ops").glob("*.py")) if has_definition(p, d.name))
    tree = parsed(defined)
    known = {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    own = {t.id for n in tree.body if isinstance(n, ast.Assign | ast.AnnAssign) for t in targets(n)}
    own |= {n.name for n in tree.body if isinstance(n, ast.ClassDef)}
    return {known[n] for n in names if n in known} | {(module_name(defined), n) for n in names & own - known.keys()}


def targets(node: ast.Assign | ast.AnnAssign) -> list[ast.Name]:
    every = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target for target in every if isinstance(target, ast.Name)]


def has_definition(path: Path, name: str) -> bool:
    return any(d.name == name for node in parsed(path).body for d in declared(node, ""))
