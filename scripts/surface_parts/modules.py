"""The text of a namespace's file."""

from __future__ import annotations

from surface_parts.declarations import Declaration, in_namespace, is_late
from surface_parts.doors import DOORS
from surface_parts.namespaces import NAMESPACES
from surface_parts.text import NOTE, WIDTH, import_lines, indented, kind, natural, quoted, rows


def namespace_text(name: str, every: list[Declaration]) -> str:
    """The file of a namespace."""
    space = NAMESPACES[name]
    imports = [(module, member, member) for module, member in space.modules]
    imports += [(d.module, d.name, alias) for d, names in in_namespace(name, every) for alias in names]
    late = [each for each in imports if name in DOORS or is_late(*each[:2])]
    imports = [each for each in imports if each not in late]
    late += [(module, member, member) for module, member in space.late]
    if space.is_public:
        imports.append(("runnel.core", "public", "public"))
    shown = [alias for module, member, alias in [*imports, *late] if member != "public"]
    if len(set(shown)) != len(shown):
        twice = sorted({alias for alias in shown if shown.count(alias) > 1})
        raise SystemExit(f"scripts/surface.py: {name} is offered {', '.join(twice)} more than once.")
    offered = sorted(shown, key=lambda name: (kind(name), natural(name)))
    doc = space.doc if "\n" not in space.doc else space.doc + "\n"
    rules = ", ".join(f"{module} as {module}" for module in space.rules)
    first = f"from runnel.{name} import {rules}\n" if rules else ""
    typing = "from typing import TYPE_CHECKING\n\n" if late else ""
    text = f'"""{doc}"""\n\n{NOTE}\n{typing}{first}{import_lines(imports)}\n'
    if late:
        text += "if TYPE_CHECKING:\n" + indented(import_lines(late, WIDTH - 4)) + "\n"
    line = f"__all__ = [{', '.join(map(quoted, offered))}]"
    text += line if len(line) <= WIDTH else f"__all__ = [{rows(map(quoted, offered))}]"
    if late:
        places = sorted((natural(alias), alias, f"{module}:{member}") for module, member, alias in late)
        text += f"\n_LATE = {{{rows(f'{quoted(alias)}: {quoted(at)}' for _, alias, at in places)}}}"
    options = [", _LATE"] if late else []
    if space.forwards:
        comma = "," if len(space.forwards) == 1 else ""
        options.append(f", forwards=({', '.join(map(quoted, space.forwards))}{comma})")
    offer = f"public.offer(globals(), __all__{''.join(options)})"
    gone = "TYPE_CHECKING, public" if late else "public"
    return text + (f"\n\n{offer}\ndel {gone}\n" if space.is_public else "\n")
