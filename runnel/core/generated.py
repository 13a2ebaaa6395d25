"""Generated Python code: functions made of lines, for calls that take no longer than a few dozen of them. What has the
same text is compiled by Python once."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any, Final, Literal

_MOST: Final = 1024  # texts


def function(head: str, lines: Sequence[str], space: dict[str, Any], what: str) -> Any:
    """The function of these lines, which reads names in ``space``."""
    return from_text(f"def {head}:\n" + "".join(f"    {line}\n" for line in lines), f"<{what}>", space)


def from_text(text: str, file: str, space: dict[str, Any]) -> FunctionType:
    """The one function that ``text`` defines, without default values; it reads names in ``space``.

    Its code is a copy: the interpreter specializes code for the namespace that it reads first. Built-in names are put
    into ``space``, as ``exec`` does: what warns in a call from there looks for them.
    """
    space.setdefault("__builtins__", vars(builtins))
    (code,) = [part for part in bytecode(text, file).co_consts if isinstance(part, CodeType)]
    return FunctionType(code.replace(), space)


@functools.lru_cache(_MOST)
def bytecode(text: str, file: str, mode: Literal["exec", "eval"] = "exec") -> CodeType:
    """The code of ``text``."""
    return compile(text, file, mode)
