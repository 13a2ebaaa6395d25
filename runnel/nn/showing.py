"""Show modules in text: their ``repr``, and notes on errors that name the module where they were raised.

A note names a module by its path, such as ``encoder.layers.0.linear1``. It is extended while the error passes through
the calls of modules, from the inside out: each call puts the name of the module below in front of the path. If that
module has several names, the first one counts. Calls that raise no error do no work for this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from runnel.core import public, tracebacks
from runnel.nn.parameter import Parameter


def lines(module: Any, base: type) -> Iterator[str]:
    """Iterate over the lines of the ``repr`` of ``module``.

    Modules whose class replaces the ``__repr__`` of ``base`` print themselves. Three dots are a module that contains
    itself.
    """
    counts = _parameter_counts(module)
    above: set[int] = set()
    stack = [("", 0, module, False)]
    while stack:
        label, level, now, is_end = stack.pop()
        indent = "  " * level
        if is_end:
            above.discard(id(now))
            yield f"{indent})"
            continue
        if level and type(now).__repr__ is not base.__repr__:  # the user's own
            first, *rest = repr(now).splitlines() or [""]
            yield f"{indent}{label}{first}"
            yield from (f"{indent}{line}" for line in rest)
            continue
        count = counts[id(now)]
        note = f"  # {count:,} parameters" if count else ""
        head = f"{indent}{label}{type(now).__name__}({now.extra_repr()}"
        children = list(now.named_children())
        if id(now) in above or not children:
            yield f"{head}{'...' if children else ''}){note}"
            continue
        yield f"{head}{note}"
        above.add(id(now))
        stack.append(("", level, now, True))
        stack += [(f"({name}): ", level + 1, child, False) for name, child in reversed(children)]


def _parameter_counts(module: Any) -> dict[int, int]:
    """Return how many numbers the Parameters of each module hold, by the module's id."""
    every = list(module.modules())
    if sum(len(list(m.children())) for m in every) != len(every) - 1:  # something is shared
        return {id(m): sum(p.size for p in m.parameters()) for m in every}
    below: dict[int, dict[int, int]] = {}
    counts: dict[int, int] = {}
    for m in reversed(every):  # children before parents
        sizes = {id(p): p.size for p in m.__dict__.values() if isinstance(p, Parameter)}
        for child in m.children():
            more = below.pop(id(child))
            sizes, more = (more, sizes) if len(more) > len(sizes) else (sizes, more)
            sizes.update(more)
        below[id(m)] = sizes
        counts[id(m)] = sum(sizes.values())
    return counts


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
