#!/usr/bin/env python3
"""Writes tests/compat/signatures.txt: the arguments of PyTorch's functions, methods, layers and optimizers.

Run it by a Python that has PyTorch; Runnel is not needed. The arguments of built-in functions are those in PyTorch's
stub files, and in its operator schemas for the modules without stubs. A row is ``arguments: name name ...``, after a
line with the module or class of the names. ``?`` marks arguments that have a default, and ``*`` precedes those that are
passed by keyword.
"""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

PAGE = Path(__file__).resolve().parents[1] / "tests" / "compat" / "signatures.txt"
STUBS = Path(torch.__file__).parent / "_C"
SCHEMAS = ("linalg", "special", "fft")


def main() -> None:
    lines = [f"# PyTorch {torch.__version__}, by scripts/record_pytorch_signatures.py"]
    for owner, rows in recorded().items():
        names = defaultdict(list)
        for name, arguments in sorted(set(rows)):
            names[arguments].append(name)
        lines += [f"[{owner}]", *(f"{arguments}: {' '.join(group)}" for arguments, group in sorted(names.items()))]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{sum(line.partition(': ')[2].count(' ') + 1 for line in lines if ': ' in line)} signatures")


def recorded() -> dict[str, list[tuple[str, str]]]:
    """Return module or class -> (name, arguments)."""
    functions = stubbed(ast.parse((STUBS / "_VariableFunctions.pyi").read_text()), False)
    page = ast.parse((STUBS / "__init__.pyi").read_text())
    base = next(n for n in page.body if isinstance(n, ast.ClassDef) and n.name == "TensorBase")
    methods = stubbed(base, True)
    rows = {
        "torch": members(torch, lambda n: functions.get(n, [])),
        "torch.Tensor": members(torch.Tensor, lambda n: methods.get(n, []), bound=True),
        "torch.nn.functional": members(torch.nn.functional, lambda n: functions.get(n, [])),
        **{f"torch.{m}": members(getattr(torch, m), lambda n, m=m: list(of_schemas(f"{m}_{n}"))) for m in SCHEMAS},
        "torch.nn.init": members(torch.nn.init, lambda n: []),
        "torch.nn.utils": members(torch.nn.utils, lambda n: []),
        "torch.nn.Module": members(torch.nn.Module, lambda n: [], bound=True),
        "torch.optim.Optimizer": members(torch.optim.Optimizer, lambda n: [], bound=True),
    }
    for path, module in (
        ("torch.nn", torch.nn),
        ("torch.optim", torch.optim),
        ("torch.optim.lr_scheduler", torch.optim.lr_scheduler),
        ("torch.utils.data", torch.utils.data),
    ):
        rows[path] = [
            (name, arguments)
            for name, kind in public(module)
            if isinstance(kind, type)
            for arguments in of_python(kind.__init__, True)
        ]
    return rows


def public(owner: Any) -> Iterator[tuple[str, Any]]:
    return ((n, getattr(owner, n)) for n in dir(owner) if not n.startswith("_") and callable(getattr(owner, n)))


def members(owner: Any, builtin: Callable[[str], list[str]], bound: bool = False) -> list[tuple[str, str]]:
    return [
        (name, arguments)
        for name, value in public(owner)
        if not isinstance(value, type) and not getattr(value, "__module__", "").startswith("typing")
        for arguments in (of_python(value, bound) if inspect.isfunction(value) else builtin(name))
    ]


def row(parameters: Iterator[tuple[str, bool, bool]]) -> str:
    """Return the text for (name, has a default, by keyword only) of each parameter."""
    items, keywords = [], False
    for name, optional, by_keyword in parameters:
        if by_keyword and not keywords:
            items.append("*")
            keywords = True
        items.append(name + "?" * optional)
    return " ".join(items) or "()"


def of_python(function: Any, bound: bool) -> list[str]:
    try:
        parameters = list(inspect.signature(function).parameters.values())[bound:]
    except (TypeError, ValueError):
        return []
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return []
    return [row((p.name, p.default is not p.empty, p.kind is p.KEYWORD_ONLY) for p in parameters)]


def stubbed(page: Any, bound: bool) -> dict[str, list[str]]:
    """Return name -> arguments of all forms; forms with starred arguments or names of axes are left out."""
    rows = defaultdict(list)
    for node in page.body:
        if not isinstance(node, ast.FunctionDef):
            continue
        args = node.args
        place = [*args.posonlyargs, *args.args]
        optional = [False] * (len(place) - len(args.defaults)) + [True] * len(args.defaults)
        every = [(a.arg.rstrip("_") if bound else a.arg, o, False) for a, o in zip(place, optional, strict=True)][
            bound:
        ]
        every += [
            (a.arg, d is not None or a.arg == "out", True)
            for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True)
        ]
        named = [name for name, *_ in every]
        if not args.vararg and "names" not in named and "self" not in named:  # the last: older forms, numbers first
            rows[node.name].append(row(iter(every)))
    return rows


def of_schemas(name: str) -> Iterator[str]:
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        arguments = schema.arguments
        if "Dimname" not in str(schema):
            has_out = sum(a.is_out for a in arguments) > 0
            every = [
                ("input" if a.name == "self" else a.name, a.has_default_value(), a.kwarg_only)
                for a in arguments
                if not a.is_out
            ]
            yield row(iter([*every, *[("out", True, True)] * has_out]))


if __name__ == "__main__":
    main()
