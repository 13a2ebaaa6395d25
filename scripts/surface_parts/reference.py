"""The page docs/reference.md: what users find where."""

from __future__ import annotations

import importlib
import inspect
import re
import sys

from surface_parts.declarations import Declaration, first_sentence, in_namespace, listed, module_name
from surface_parts.doors import DOORS
from surface_parts.places import PACKAGE, ROOT
from surface_parts.text import kind, natural

sys.path.insert(0, str(ROOT))

from runnel.core.dtypes import DType

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
    "image_transforms": "`rn.data.transforms`",
    "text": "`rn.data.text`",
    "train": "`rn.train`",
    **{path: f"`runnel.compat.{path}`: what differs from `runnel`" for path in DOORS},
}


CONSTANTS = {  # what has no docstring
    "layout": "The type of layouts.",
    "required": "The default of an optimizer's argument that has to be given.",
    "memory_format": "The type of memory formats.",
    "__version__": "The version of the package.",
    "USUAL": "The passes that every program goes through, in order.",
    "MemoryPlanner": "A function from the lifetimes of values to the offset of each, in bytes.",
}
LISTED = {  # modules whose names are in their files, or in their ``__all__``
    "nn/init.py": "`rn.nn.init`",
    "nn/utils/rnn.py": "`rn.nn.utils.rnn`",
    "nn/utils/parametrize.py": "`rn.nn.utils.parametrize`",
    "nn/utils/parametrizations.py": "`rn.nn.utils.parametrizations`",
    "nn/utils/prune.py": "`rn.nn.utils.prune`",
    "tensor/debug.py": "`rn.debug`",
    "memory.py": "`rn.memory`",
    "passes/__init__.py": "`rn.passes`",
    "declarative/__init__.py": "`runnel.declarative`",
}


def reference_text(every: list[Declaration]) -> str:
    """The page of the documentation."""
    text = REFERENCE_HEAD
    for namespace, title in TITLES.items():
        rows = sorted(in_namespace(namespace, every), key=lambda row: (kind(row[1][0]), natural(row[1][0])))
        if not rows:
            continue
        text += f"\n## {title}\n\n| name | methods | what it is |\n| --- | --- | --- |\n"
        text += "".join(f"| {spelled(names)} | {methods_of(d)} | {sentence(d)} |\n" for d, names in rows)
    for file, title in LISTED.items():
        module = module_name(PACKAGE / file).removesuffix(".__init__")
        text += f"\n## {title}\n\n| name | what it is |\n| --- | --- |\n"
        for name in sorted(listed(PACKAGE / file), key=lambda name: (kind(name), natural(name))):
            text += f"| `{name}` | {as_markdown(what_it_is(module, name))} |\n"
    only = [d for d in every if not any(d.names_in(n) for n in TITLES) and methods_of(d)]
    text += "\n## Methods alone\n\n| methods | what it is |\n| --- | --- |\n"
    return text + "".join(f"| {methods_of(d)} | {as_markdown(d.summary)} |\n" for d in sorted(only, key=methods_of))


def sentence(d: Declaration) -> str:
    """What is said of it: the docstring in the source, or that of what the source makes by calling a function."""
    return as_markdown(d.summary or what_it_is(d.module, d.name))


def what_it_is(module: str, name: str) -> str:
    if name in CONSTANTS:
        return CONSTANTS[name]
    value = getattr(importlib.import_module(module), name)
    if isinstance(value, DType):
        another = f"; another name of `{value.name}`" if name.rstrip("_") != value.name else ""
        return f"A dtype: {value.kind}, of {value.itemsize} {'byte' if value.itemsize == 1 else 'bytes'}{another}."
    if callable(value):
        return first_sentence(inspect.getdoc(value) or "")
    return f"`{value!r}`"


def spelled(names: tuple[str, ...]) -> str:
    return f"`{names[0]}`" + (f" ({', '.join(f'`{alias}`' for alias in names[1:])})" if names[1:] else "")


def methods_of(d: Declaration) -> str:
    every = [*d.names_in("Tensor"), *(f"{name}_" for name in d.names_in("Tensor_"))]
    return ", ".join(f"`{name}`" for name in every)


def as_markdown(summary: str) -> str:
    plain = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", summary).replace("``", "`")
    return plain.replace("|", "\\|")
