"""Python as text: names in order, imports, indentation."""

from __future__ import annotations

import re
from collections.abc import Iterable

WIDTH = 120
NOTE = "# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.\n"


def kind(name: str) -> int:
    """Constants stand before classes, and these before the rest."""
    return 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2


def natural(name: str) -> list[object]:
    """Texts and numbers by turns, so that numbers are in order of value."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def import_lines(imports: Iterable[tuple[str, str, str]], width: int = WIDTH) -> str:
    """``from module import name as alias``, sorted."""
    by_module: dict[str, list[tuple[str, str]]] = {}
    for module, name, alias in sorted(
        set(imports), key=lambda x: (x[0], kind(x[1]), natural(x[1].lower()), x[1], x[1] != x[2], x[2])
    ):
        by_module.setdefault(module, []).append((name, alias))
    text = ""
    for module, names in by_module.items():
        parts = [name if name == alias else f"{name} as {alias}" for name, alias in names]
        line = f"from {module} import {', '.join(parts)}\n"
        text += line if len(line) <= width + 1 else f"from {module} import ({rows(parts)})\n"
    return text


def rows(parts: Iterable[str]) -> str:
    """What stands in brackets with a line for each part."""
    return "\n" + "".join(f"    {part},\n" for part in parts)


def indented(text: str) -> str:
    return "".join(f"    {line}" if line.strip() else line for line in text.splitlines(keepends=True))


def quoted(name: str) -> str:
    return f'"{name}"'
