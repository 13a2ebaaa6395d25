"""Objects that copy and pickle as functions do: a copy is the object itself, a pickle is a name."""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any, Final, Literal, Self


class FunctionLike:
    """An object in place of a function, with its ``__module__`` and ``__qualname__``.

    If it is found under that name, as a decorated function is, a pickle holds only the name. Otherwise the class
    decides what a pickle holds (``by_value``).
    """

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce_ex__(self, protocol: Any) -> str | tuple[Any, ...]:
        name = _name_of(self)
        return self.by_value(protocol) if name is None or _travels(self.__module__) else name

    def by_value(self, protocol: Any) -> str | tuple[Any, ...]:
        """Return the content of a pickle of an object without a name."""
        return object.__reduce_ex__(self, protocol)


def _name_of(thing: Any) -> str | None:
    """Return the name under which the module of ``thing`` has it, or None."""
    name: str = thing.__qualname__
    holder: Any = sys.modules.get(thing.__module__)
    for part in name.split("."):
        holder = getattr(holder, part, None)
    return name if holder is thing else None


def _travels(module: str) -> bool:
    """Return whether cloudpickle (or joblib's) is pickling functions of the main script by value. The receiving
    process has another main script, and cloudpickle does not ask objects."""
    frame = sys._getframe() if module == "__main__" else None
    while frame is not None:
        if str(frame.f_globals.get("__name__")).endswith("cloudpickle"):
            return True
        frame = frame.f_back
    return False


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
