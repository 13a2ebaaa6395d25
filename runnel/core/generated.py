"""Functions made of lines of code, for calls that take no longer than a few dozen of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def function(head: str, lines: Sequence[str], space: dict[str, Any], what: str) -> Any:
    """The function of these lines, which reads names in ``space``."""
    space_of_function: dict[str, Any] = {}  # a function in its own namespace would keep itself alive
    source = f"def {head}:\n" + "".join(f"    {line}\n" for line in lines)
    exec(compile(source, f"<{what}>", "exec"), space, space_of_function)
    return space_of_function[head.partition("(")[0]]
