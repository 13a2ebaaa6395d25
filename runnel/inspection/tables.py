"""Tables and quantities as plain text, for reports in a terminal."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], left: Container[str] = ()) -> str:
    """Return a table with heads, whose columns are aligned to the right except the columns ``left``."""
    lines = [tuple(heads), *(tuple(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    text = []
    for line in lines:
        cells = [
            cell.ljust(width) if head in left else cell.rjust(width)
            for head, cell, width in zip(heads, line, widths, strict=True)
        ]
        text.append("  ".join(cells).rstrip())
    return "\n".join(text)


def size(nbytes: float) -> str:
    """Return a number of bytes with its binary unit: ``1.5 MiB``."""
    for unit in ("B", "KiB", "MiB"):
        if abs(nbytes) < 1024:
            return f"{nbytes:.0f} B" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024
    return f"{nbytes:.2f} GiB"


def count(number: float) -> str:
    """Return a number with a metric letter: ``12.3 M``."""
    for letter in ("", " k", " M"):
        if abs(number) < 1000:
            return f"{number:.0f}" if not letter else f"{number:.1f}{letter}"
        number /= 1000
    return f"{number:.1f} G"


def microseconds(seconds: float) -> str:
    """Return seconds in µs with three or four digits."""
    value = seconds * 1e6
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def line(where: str) -> str:
    """Return a source line without the folder of its file."""
    return os.path.basename(where)


def indented(text: str) -> str:
    """Return every line indented by two spaces."""
    return "".join(f"  {line}\n" if line else "\n" for line in text.splitlines())
