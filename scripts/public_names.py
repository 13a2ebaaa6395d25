"""Every public name with its object, signature and docstring, for pages of documentation."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple

NAMESPACES = (
    "runnel", "runnel.fft", "runnel.linalg", "runnel.special", "runnel.random", "runnel.nn", "runnel.nn.functional",
    "runnel.nn.init", "runnel.nn.utils", "runnel.nn.utils.rnn", "runnel.nn.utils.parametrize",
    "runnel.nn.utils.parametrizations", "runnel.nn.utils.prune", "runnel.optim", "runnel.optim.lr_scheduler",
    "runnel.optim.swa_utils", "runnel.autograd", "runnel.tree", "runnel.tree_util", "runnel.distributions",
    "runnel.data", "runnel.data.transforms", "runnel.data.text", "runnel.train", "runnel.memory", "runnel.passes",
    "runnel.declarative",
)  # fmt: skip


class Name(NamedTuple):
    """A public name. ``signature`` is None for what cannot be called."""

    namespace: str
    name: str
    value: Any
    signature: inspect.Signature | None
    doc: str


def public_names(namespaces: tuple[str, ...] = NAMESPACES) -> Iterator[Name]:
    """Yield the names of ``namespaces``, and then the methods of Tensor, in order."""
    for namespace in namespaces:
        module = importlib.import_module(namespace)
        for name in sorted(module.__all__):
            yield described(namespace, name, getattr(module, name))
    tensor = importlib.import_module("runnel").Tensor
    for name in dir(tensor):
        if not name.startswith("_"):
            yield described("runnel.Tensor", name, getattr(tensor, name))


def described(namespace: str, name: str, value: Any) -> Name:
    try:
        signature = inspect.signature(value) if callable(value) else None
    except ValueError:  # of classes that are written in C
        signature = None
    return Name(namespace, name, value, signature, inspect.getdoc(value) or "")
