"""``torch.jit`` and ``torch.compiler``: Python code runs as it stands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final as Final

from runnel.compile import wrappers
from runnel.nn.module import Module
from runnel.tensor.active import ACTIVE

ScriptModule = Module  # what ``torch.jit.script`` gives for a module


class ScriptFunction:
    """PyTorch's class of functions in TorchScript; ``torch.jit.script`` gives functions as they are."""


config: Final = SimpleNamespace(
    cache_size_limit=8, recompile_limit=8, suppress_errors=False, verbose=False, capture_scalar_outputs=False
)


def script(obj: Any, *args: Any, **options: Any) -> Any:
    """The function or module itself: Python code runs as it stands, and :func:`runnel.compile` compiles it."""
    return obj


def as_it_is(function: Any = None, **options: Any) -> Any:
    """A decorator that leaves a function as it is."""
    return function if callable(function) else as_it_is


def annotate(the_type: Any, the_value: Any) -> Any:
    """``the_value``."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether ``obj`` is of the type."""
    return sys.modules["builtins"].isinstance(obj, target_type)


def fork(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of the function, which ``wait`` gives: it is computed at once."""
    return function(*args, **kwargs)


def wait(future: Any) -> Any:
    """What ``fork`` gave."""
    return future


def never_scripting() -> bool:
    """Never: Python code runs as it stands."""
    return False


def is_compiling() -> bool:
    """Whether a function is being captured for compilation."""
    return ACTIVE.trace is not None


def disable(function: Any = None, recursive: bool = True, **options: Any) -> Any:
    """The function as ``runnel.uncompiled`` has it: it runs as it is, and is no part of a program."""
    return disable if function is None else wrappers.uncompiled(function)


def without_compiler(function: Any = None, *args: Any, **options: Any) -> Any:
    """Nothing; a function is given back as it is."""
    return function
