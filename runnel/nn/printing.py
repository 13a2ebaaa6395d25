"""The ``repr`` of a module: the tree of its modules, with the number of their Parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
