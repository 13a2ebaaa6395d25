#!/usr/bin/env python3
"""Writes what users see of Runnel from the declarations in the source: namespaces, methods and docs/reference.md.

Declarations are those of ``runnel.core.surface``. ``scripts/surface.py --check`` writes nothing and fails if a file is
out of date.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "runnel"
WIDTH = 120
NOTE = "# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.\n"


class Namespace(NamedTuple):
    """A module that offers what is declared for it. ``modules`` are offered too: (package, name). ``rules`` are modules
    of its folder that are imported for what they register."""

    file: str
    doc: str
    modules: tuple[tuple[str, str], ...] = ()
    rules: tuple[str, ...] = ()
    is_public: bool = True  # else it is for code of this package, which needs no checks of arguments
    forwards: tuple[str, ...] = ()  # modules whose names it has as well
    late: tuple[tuple[str, str], ...] = ()  # modules that are imported when they are asked for


NAMESPACES = {
    "rn": Namespace(
        "__init__.py",
        "Runnel: a deep-learning framework that is Python down to the machine code.",
        (
            ("runnel", "fft"),
            ("runnel", "linalg"),
            ("runnel", "nn"),
            ("runnel", "ops"),
            ("runnel", "optim"),
            ("runnel", "random"),
            ("runnel", "special"),
            ("runnel.core", "switches"),
            ("runnel.tensor", "debug"),
        ),
        late=tuple(
            ("runnel", name)
            for name in ("autograd", "data", "distributions", "memory", "passes", "train", "tree", "tree_util")
        ),
    ),
    "autograd": Namespace(
        "autograd.py",
        "Differentiation as PyTorch spells it: gradients along the tape, and derivatives of one's own.",
    ),
    "tree": Namespace(
        "tree.py", "Nested containers under the names of ``jax.tree``: mapped, taken apart, put together."
    ),
    "tree_util": Namespace(
        "tree_util.py", "Nested containers under the names of ``jax.tree_util``; registration of classes as containers."
    ),
    "fft": Namespace("fft.py", 'Discrete Fourier transforms (Array API, "Fourier transform functions").'),
    "linalg": Namespace("linalg.py", "Linear algebra: factorizations and systems of equations."),
    "special": Namespace("special.py", "Special functions, under PyTorch's and SciPy's names."),
    "random": Namespace(
        "random/__init__.py",
        "Random numbers: generators and keys, distributions under NumPy's names, permutations and choices.",
    ),
    "distributions": Namespace(
        "distributions/__init__.py",
        "Distributions of probability, with PyTorch's names: random values with gradients, log-probabilities, moments.",
        tuple(("runnel.distributions", name) for name in ("constraints", "kl", "transforms")),
    ),
    "nn": Namespace(
        "nn/__init__.py",
        "Networks: modules that hold Parameters, and the functions they are made of.",
        (("runnel.nn", "functional"), ("runnel.nn", "init"), ("runnel.nn", "utils")),
    ),
    "functional": Namespace(
        "nn/functional.py",
        "The functions of networks under PyTorch's names and argument order, usually imported as ``F``.",
    ),
    "utils": Namespace(
        "nn/utils/__init__.py",
        "Utilities for modules and their Parameters: gradient clipping, parametrized weights, pruning.",
        tuple(("runnel.nn.utils", name) for name in ("parametrizations", "parametrize", "prune", "rnn")),
    ),
    "optim": Namespace(
        "optim/__init__.py",
        "Optimizers and learning-rate schedules.",
        (("runnel.optim", "lr_scheduler"), ("runnel.optim", "swa_utils")),
    ),
    "lr_scheduler": Namespace(
        "optim/lr_scheduler/__init__.py",
        "Learning-rate schedules, with PyTorch's names, arguments and saved states.",
    ),
    "swa_utils": Namespace(
        "optim/swa_utils/__init__.py",
        "Averages of a model's Parameters over training, and the rate that goes with them, with PyTorch's names.",
    ),
    "ops": Namespace(
        "ops/__init__.py",
        "The ops: primitives with their rules, and the functions composed of them. Importing this fills the tables.\n\n"
        "Each function takes any :class:`~runnel.core.dispatch.TensorLike`; no kind of tensor is known here.",
        rules=("callbacks", "linalg"),
        is_public=False,
    ),
    "transforms": Namespace(
        "transforms/__init__.py",
        "Function transforms: gradients of any order, custom derivatives, checkpointing, vectorizing maps and loops.",
        rules=("control_batching", "control_forward"),
        is_public=False,
    ),
    "io": Namespace("io/__init__.py", "Tensors, and whole training states, in files.", is_public=False),
    "data": Namespace(
        "data/__init__.py",
        "Data sets, their samples in order and in batches, and loaders of well-known ones as arrays.",
        late=(("runnel.data", "text"), ("runnel.data", "transforms")),
    ),
    "image_transforms": Namespace(
        "data/transforms/__init__.py",
        "Transforms of images, under torchvision's names.",
    ),
    "text": Namespace("data/text/__init__.py", "Texts as numbers: words, vocabularies, sequences of one length."),
    "train": Namespace(
        "train/__init__.py",
        "Training: ``Trainer`` with its callbacks and metrics.",
    ),
}


def door(path: str, doc: str, *forwards: str, parts: str = "") -> Namespace:
    """A module of PyTorch's, "torch.nn": names of ``forwards``, what is declared for it, and its modules ``parts``."""
    folder = "runnel.compat." + path
    file = folder.replace("runnel.", "").replace(".", "/") + ("/__init__.py" if parts else ".py")
    return Namespace(file, doc, forwards=forwards, late=tuple((folder, part) for part in parts.split()))


DOORS = {
    path: door(path, doc, *forwards.split(), parts=parts)
    for path, forwards, parts, doc in (
        (
            "torch",
            "runnel runnel.nn.functional",
            "accelerator amp autograd backends cuda distributed distributions fft func jit linalg mps nn optim random "
            "signal special testing utils xpu",
            "Runnel under PyTorch's modules and names: ``import runnel.compat.torch as torch``.",
        ),
        ("torch.accelerator", "", "", "Accelerators, of which there are none."),
        ("torch.amp", "", "", "Products in lower precision."),
        (
            "torch.autograd",
            "runnel.autograd runnel",
            "functional",
            "Gradients along the tape, and functions with derivatives of their own.",
        ),
        ("torch.autograd.functional", "", "", "Jacobians, second derivatives, and products with them."),
        (
            "torch.backends",
            "",
            "cuda cudnn mkldnn mps",
            "What PyTorch computes with: settings that have no effect here.",
        ),
        ("torch.backends.cuda", "", "matmul", "Settings that have no effect."),
        ("torch.backends.cuda.matmul", "", "", "Settings that have no effect: attributes can be set."),
        ("torch.backends.mkldnn", "", "", "Settings that have no effect: attributes can be set."),
        ("torch.backends.cudnn", "", "", "Settings that have no effect: attributes can be set."),
        ("torch.backends.mps", "", "", "A device that is not there."),
        ("torch.cuda", "", "amp", "GPUs, of which there are none."),
        ("torch.cuda.amp", "", "", "Products in lower precision on GPUs, of which there are none."),
        ("torch.distributed", "", "", "Several processes, which there are not."),
        ("torch.distributions", "runnel.distributions", "", "Distributions of random numbers."),
        ("torch.fft", "runnel.fft", "", "Fourier transforms."),
        ("torch.func", "runnel", "", "Functions on functions."),
        ("torch.jit", "", "", "Functions and modules as they are."),
        ("torch.linalg", "runnel.linalg", "", "Linear algebra."),
        ("torch.mps", "", "", "A device that is not there."),
        ("torch.xpu", "", "", "A device that is not there."),
        ("torch.nn", "runnel.nn", "functional init modules parameter utils", "Networks: modules and their functions."),
        ("torch.nn.functional", "runnel.nn.functional", "", "The functions of networks."),
        ("torch.nn.init", "runnel.nn.init", "", "First values of Parameters."),
        ("torch.nn.modules", "runnel.nn", "", "Networks: modules."),
        ("torch.nn.parameter", "runnel.nn", "", "Parameters."),
        (
            "torch.nn.utils",
            "runnel.nn.utils",
            "parametrizations parametrize prune rnn stateless",
            "What is done to modules and all of their Parameters.",
        ),
        ("torch.nn.utils.parametrizations", "runnel.nn.utils.parametrizations", "", "Weights of a given form."),
        ("torch.nn.utils.parametrize", "runnel.nn.utils.parametrize", "", "Parameters that are computed from others."),
        ("torch.nn.utils.prune", "runnel.nn.utils.prune", "", "Parameters with elements kept at zero."),
        ("torch.nn.utils.rnn", "runnel.nn.utils.rnn", "", "Sequences of unlike lengths."),
        ("torch.nn.utils.stateless", "", "", "Modules as functions of their Parameters."),
        ("torch.optim", "runnel.optim", "lr_scheduler optimizer swa_utils", "Optimizers."),
        ("torch.optim.lr_scheduler", "runnel.optim.lr_scheduler", "", "Learning-rate schedules."),
        ("torch.optim.optimizer", "runnel.optim", "", "Optimizers."),
        ("torch.optim.swa_utils", "runnel.optim.swa_utils", "", "Averages of Parameters over training."),
        ("torch.random", "runnel", "", "The default generator."),
        ("torch.signal", "", "windows", "Signals."),
        ("torch.signal.windows", "", "", "Windows for Fourier transforms."),
        ("torch.special", "runnel.special", "", "Special functions."),
        ("torch.testing", "", "", "Comparison in tests."),
        ("torch.utils", "", "checkpoint data", "Data, and values that are computed again."),
        ("torch.utils.checkpoint", "", "", "Values that are computed again in backward."),
        ("torch.utils.data", "runnel.data", "dataloader dataset sampler", "Data sets, orders and batches."),
        ("torch.utils.data.dataloader", "runnel.data", "", "Batches."),
        ("torch.utils.data.dataset", "runnel.data", "", "Data sets."),
        ("torch.utils.data.sampler", "runnel.data", "", "Orders of samples."),
    )
}
NAMESPACES |= DOORS
# modules that are imported when a name of theirs is asked for
LATE = (
    "runnel.core.library.",
    "runnel.distributions.",
    "runnel.expressions.",
    "runnel.nn.rare.",
    "runnel.nn.utils.",
    "runnel.ops.library.",
    "runnel.random.",
    "runnel.tensor.library.",
    "runnel.transforms.library.",
)
GATHERING = ("ops", "transforms", "io")  # what files of these folders offer in ``rn`` is offered by the folder, too
METHODS = "tensor/function_methods.py"
REFERENCE = ROOT / "docs" / "reference.md"


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
        doc = (ast.get_docstring(self.node) if self.node is not None else None) or ""
        paragraph = " ".join(doc.split("\n\n")[0].split())
        return re.split(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\bal\.)\s", paragraph)[0].rstrip(":")

    def names_in(self, namespace: str) -> tuple[str, ...]:
        return next((place.names for place in self.places if place.namespace == namespace), ())


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


# Namespaces -----------------------------------------------------------------------------------------------------------


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


def kind(name: str) -> int:
    """Constants stand before classes, and these before the rest."""
    return 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2


def natural(name: str) -> list[object]:
    """Texts and numbers by turns, so that numbers are in order of value."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def import_lines(imports: Iterable[tuple[str, str, str]], width: int = WIDTH) -> str:
    """``from module import name as alias``, sorted."""
    by_module: dict[str, list[tuple[str, str]]] = {}
    for module, name, alias in sorted(
        set(imports), key=lambda x: (x[0], kind(x[1]), natural(x[1].lower()), x[1], x[1] != x[2], x[2])
    ):
        by_module.setdefault(module, []).append((name, alias))
    text = ""
    for module, names in by_module.items():
        parts = [name if name == alias else f"{name} as {alias}" for name, alias in names]
        line = f"from {module} import {', '.join(parts)}\n"
        text += line if len(line) <= width + 1 else f"from {module} import ({rows(parts)})\n"
    return text


def rows(parts: Iterable[str]) -> str:
    """What stands in brackets with a line for each part."""
    return "\n" + "".join(f"    {part},\n" for part in parts)


def namespace_text(name: str, every: list[Declaration]) -> str:
    """The file of a namespace."""
    space = NAMESPACES[name]
    imports = [(module, member, member) for module, member in space.modules]
    imports += [(d.module, d.name, alias) for d, names in in_namespace(name, every) for alias in names]
    late = [each for each in imports if name in DOORS or is_late(*each[:2])]
    imports = [each for each in imports if each not in late]
    late += [(module, member, member) for module, member in space.late]
    if space.is_public:
        imports.append(("runnel.core", "public", "public"))
    shown = [alias for module, member, alias in [*imports, *late] if member != "public"]
    if len(set(shown)) != len(shown):
        twice = sorted({alias for alias in shown if shown.count(alias) > 1})
        raise SystemExit(f"scripts/surface.py: {name} is offered {', '.join(twice)} more than once.")
    offered = sorted(shown, key=lambda name: (kind(name), natural(name)))
    doc = space.doc if "\n" not in space.doc else space.doc + "\n"
    rules = ", ".join(f"{module} as {module}" for module in space.rules)
    first = f"from runnel.{name} import {rules}\n" if rules else ""
    typing = "from typing import TYPE_CHECKING\n\n" if late else ""
    text = f'"""{doc}"""\n\n{NOTE}\n{typing}{first}{import_lines(imports)}\n'
    if late:
        text += "if TYPE_CHECKING:\n" + indented(import_lines(late, WIDTH - 4)) + "\n"
    line = f"__all__ = [{', '.join(map(quoted, offered))}]"
    text += line if len(line) <= WIDTH else f"__all__ = [{rows(map(quoted, offered))}]"
    if late:
        places = sorted((natural(alias), alias, f"{module}:{member}") for module, member, alias in late)
        text += f"\n_LATE = {{{rows(f'{quoted(alias)}: {quoted(at)}' for _, alias, at in places)}}}"
    options = [", _LATE"] if late else []
    if space.forwards:
        comma = "," if len(space.forwards) == 1 else ""
        options.append(f", forwards=({', '.join(map(quoted, space.forwards))}{comma})")
    offer = f"public.offer(globals(), __all__{''.join(options)})"
    gone = "TYPE_CHECKING, public" if late else "public"
    return text + (f"\n\n{offer}\ndel {gone}\n" if space.is_public else "\n")


def indented(text: str) -> str:
    return "".join(f"    {line}" if line.strip() else line for line in text.splitlines(keepends=True))


def quoted(name: str) -> str:
    return f'"{name}"'


# Methods --------------------------------------------------------------------------------------------------------------

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


# The reference --------------------------------------------------------------------------------------------------------

REFERENCE_HEAD = """# Reference

What users find where, written by `scripts/surface.py` from the declarations in the source. `help(name)` says more. A
name in brackets is an alias. A method with `_` behind its name gives its array the value of the function.
"""
TITLES = {
    "rn": "`runnel`, usually imported as `rn`",
    "fft": "`rn.fft`",
    "autograd": "`rn.autograd`",
    "tree": "`rn.tree`",
    "tree_util": "`rn.tree_util`",
    "linalg": "`rn.linalg`",
    "special": "`rn.special`",
    "random": "`rn.random`",
    "distributions": "`rn.distributions`",
    "functional": "`rn.nn.functional`, usually imported as `F`",
    "nn": "`rn.nn`",
    "utils": "`rn.nn.utils`",
    "optim": "`rn.optim`",
    "lr_scheduler": "`rn.optim.lr_scheduler`",
    "swa_utils": "`rn.optim.swa_utils`",
    "data": "`rn.data`",
    **{path: f"`runnel.compat.{path}`: what differs from `runnel`" for path in DOORS},
}


def reference_text(every: list[Declaration]) -> str:
    """The page of the documentation."""
    text = REFERENCE_HEAD
    for namespace, title in TITLES.items():
        rows = sorted(in_namespace(namespace, every), key=lambda row: (kind(row[1][0]), natural(row[1][0])))
        if not rows:
            continue
        text += f"\n## {title}\n\n| name | methods | what it is |\n| --- | --- | --- |\n"
        text += "".join(f"| {spelled(names)} | {methods_of(d)} | {as_markdown(d.summary)} |\n" for d, names in rows)
    only = [d for d in every if not any(d.names_in(n) for n in TITLES) and methods_of(d)]
    text += "\n## Methods alone\n\n| methods | what it is |\n| --- | --- |\n"
    return text + "".join(f"| {methods_of(d)} | {as_markdown(d.summary)} |\n" for d in sorted(only, key=methods_of))


def spelled(names: tuple[str, ...]) -> str:
    return f"`{names[0]}`" + (f" ({', '.join(f'`{alias}`' for alias in names[1:])})" if names[1:] else "")


def methods_of(d: Declaration) -> str:
    every = [*d.names_in("Tensor"), *(f"{name}_" for name in d.names_in("Tensor_"))]
    return ", ".join(f"`{name}`" for name in every)


def as_markdown(summary: str) -> str:
    plain = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", summary).replace("``", "`")
    return plain.replace("|", "\\|")


# --------------------------------------------------------------------------------------------------------------------


def files() -> dict[Path, str]:
    """What is written, by path."""
    every = declarations()
    known = {*NAMESPACES, "Tensor", "Tensor_"}
    for d in every:
        for unknown in (p.namespace for p in d.places if p.namespace not in known):
            raise SystemExit(f"scripts/surface.py: {d.module}.{d.name} names a place that does not exist: {unknown}.")
    written = {PACKAGE / space.file: namespace_text(name, every) for name, space in NAMESPACES.items()}
    return {**written, PACKAGE / METHODS: methods_text(every), REFERENCE: reference_text(every)}


def main(arguments: list[str]) -> int:
    stale = [p for p, text in files().items() if not p.exists() or p.read_text(encoding="utf-8") != text]
    if arguments == ["--check"]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date; run scripts/surface.py.", file=sys.stderr)
        return 1 if stale else 0
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
