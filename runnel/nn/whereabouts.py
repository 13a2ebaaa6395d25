"""Notes on errors that name the module where they were raised, such as ``encoder.layers.0.linear1``.

The note is extended while the error passes through the calls of modules, from the inside out: each call puts the name
of the module below in front of the path. If that module has several names, the first one counts. Calls that raise no
error do no work for this.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from runnel.core import public, tracebacks


class Located(Protocol):
    """A module, which may contain others by name."""

    def forward(self, *args: Any, **kwargs: Any) -> Any: ...

    def named_children(self) -> Iterable[tuple[str, object]]: ...

    def named_modules(self) -> Iterable[tuple[str, object]]: ...


class Whereabouts(str):
    """The note: a sentence, and its parts. It refers to modules by ``id``, so that an error keeps none alive."""

    path: str
    innermost: str
    line: str
    outermost: int

    def __new__(cls, path: str, innermost: str, line: str, outermost: object) -> Whereabouts:
        kind = type(outermost).__name__
        place = f"{path} ({innermost}) of {kind}" if path else kind
        note = super().__new__(cls, f"In {place}, at {line}." if line else f"In {place}.")
        note.path, note.innermost, note.line, note.outermost = path, innermost, line, id(outermost)
        return note

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)


def located(module: Located, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Exception:
    """Return the error that a call of ``module`` raises for ``error``, with a note that ends at this module."""
    notes: list[str] = getattr(error, "__notes__", [])
    if notes and isinstance(notes[-1], Whereabouts):
        notes[-1] = _prefixed(module, notes[-1])
        tracebacks.skip_own(error)
        return error
    line = tracebacks.raised_at(error) or tracebacks.user_line()
    forward: Any = type(module).forward
    if tracebacks.is_own(forward):
        error = public.explained(type(module).__name__, forward, (module, *args), kwargs, error)
    error.add_note(Whereabouts("", type(module).__name__, line, module))
    return error


def _prefixed(module: Located, note: Whereabouts) -> Whereabouts:
    """Return the note with the path from ``module``, which called the module where the note ends."""
    name = _name_in(module, note.outermost) or f"<{note.innermost}>"
    path = f"{name}.{note.path}" if note.path else name
    return Whereabouts(path, note.innermost, note.line, module)


def _name_in(module: Located, identity: int) -> str | None:
    for name, child in module.named_children():
        if id(child) == identity:
            return name
    return next((path for path, below in module.named_modules() if path and id(below) == identity), None)
