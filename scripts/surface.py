#!/usr/bin/env python3
"""Writes what users see of Runnel from the declarations in the source: namespaces, methods and docs/reference.md.

Declarations are those of ``runnel.core.surface``. ``scripts/surface.py --check`` writes nothing and fails if a file is
out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from surface_parts.declarations import declarations
from surface_parts.methods import methods_text
from surface_parts.modules import namespace_text
from surface_parts.namespaces import NAMESPACES
from surface_parts.places import METHODS, PACKAGE, REFERENCE, ROOT
from surface_parts.reference import reference_text


def stages() -> Iterator[dict[Path, str]]:
    """What is written, by path: the package's files first, since the page is written with them at hand."""
    every = declarations()
    known = {*NAMESPACES, "Tensor", "Tensor_"}
    for d in every:
        for unknown in (p.namespace for p in d.places if p.namespace not in known):
            raise SystemExit(f"scripts/surface.py: {d.module}.{d.name} names a place that does not exist: {unknown}.")
    written = {PACKAGE / space.file: namespace_text(name, every) for name, space in NAMESPACES.items()}
    yield {**written, PACKAGE / METHODS: methods_text(every)}
    yield {REFERENCE: reference_text(every)}


def main(arguments: list[str]) -> int:
    stale = False
    for files in stages():
        for path, text in files.items():
            if path.exists() and path.read_text(encoding="utf-8") == text:
                continue
            stale = True
            if arguments == ["--check"]:
                print(f"{path.relative_to(ROOT)} is out of date; run scripts/surface.py.", file=sys.stderr)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    return int(stale and arguments == ["--check"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
