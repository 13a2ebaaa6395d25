#!/usr/bin/env python3
"""Writes docs/internals/layout.md: a sentence for each file, the first of its docstring, in the order of design.md.

``scripts/layout.py --check`` writes nothing and fails if the page is out of date.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "internals" / "layout.md"
HEAD = """# The layout

A sentence for each file, written by `scripts/layout.py` from the docstrings. Folders stand in the order of `design.md`:
a file imports from its own folder and from folders further down. `tests/` mirrors these folders.
"""


def folder_rows(design: str) -> list[tuple[list[str], str]]:
    """The table of ``docs/internals/design.md``: for each row, top to bottom, its folders and what they know."""
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (.+) \|$", design, flags=re.MULTILINE)
    return [(re.findall(r"`(\w+)`", names), what) for names, what in rows]


def first_sentence(path: Path) -> str:
    """Of the module's docstring, on one line; '' if it has none."""
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(doc.split("\n\n")[0].split())
    plain = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", paragraph).replace("``", "`")
    return re.split(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\bal\.)\s", plain)[0]  # initials and "et al." end no sentence


def files(folder: Path, *, deep: bool = True) -> list[Path]:
    """The Python files of ``folder`` that hold anything, its own before those of folders inside it."""
    found = folder.rglob("*.py") if deep else folder.glob("*.py")
    return sorted((p for p in found if p.stat().st_size), key=lambda p: (len(p.parts), p.name != "__init__.py", p))


def section(title: str, paths: list[Path]) -> list[str]:
    rows = [f"| `{path.relative_to(ROOT).as_posix()}` | {first_sentence(path)} |" for path in paths]
    return ["", f"## {title}", "", "| file | what it is for |", "| --- | --- |", *rows]


def page() -> str:
    """The text of ``docs/internals/layout.md``."""
    package = ROOT / "runnel"
    lines = [HEAD.rstrip("\n"), *section("`runnel`", files(package, deep=False))]
    for names, what in folder_rows((ROOT / "docs" / "internals" / "design.md").read_text(encoding="utf-8")):
        paths = [path for name in names for path in files(package / name)]
        lines += section(f"{', '.join(f'`{name}`' for name in names)}: {what}", paths)
    for name in ("examples", "benchmarks", "scripts"):
        lines += section(f"`{name}`", files(ROOT / name))
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    text = page()
    if arguments == ["--check"]:
        current = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        if current != text:
            print("docs/internals/layout.md is out of date; run scripts/layout.py", file=sys.stderr)
        return int(current != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
