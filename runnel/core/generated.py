"""Make Python functions from lines of code. Python compiles equal texts once."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any, Final, Literal

_MOST: Final = 1024  # texts


def function(head: str, lines: Sequence[str], space: dict[str, Any], what: str) -> Any:
    """Return the function of these lines, which reads names in ``space``."""
    return from_text(f"def {head}:\n" + "".join(f"    {line}\n" for line in lines), f"<{what}>", space)


def from_text(text: str, file: str, space: dict[str, Any]) -> FunctionType:
    """Return the function that ``text`` defines, without default values; it reads names in ``space``.

    Its code is a copy, because the interpreter specializes code for the namespace that it reads first. Built-in names
    are put into ``space``, as ``exec`` does, because warnings raised by a call from there look for them.
    """
    space.setdefault("__builtins__", vars(builtins))
    (code,) = [part for part in bytecode(text, file).co_consts if isinstance(part, CodeType)]
    return FunctionType(code.replace(), space)


@functools.lru_cache(_MOST)
def bytecode(text: str, file: str, mode: Literal["exec", "eval"] = "exec") -> CodeType:
    """Return the code of ``text``."""
    return compile(text, file, mode)
