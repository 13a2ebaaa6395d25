"""Pages whose code runs: their blocks in order, in one namespace, each with the output that the page promises."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs").rglob("*.md"))
FRAGMENTS = {"docs/internals/tables.md"}  # pages that quote parts of source files
VARY = "<!-- numbers vary -->"  # before an output: its fractions and times need only be about right
_VARYING = re.compile(r"(?<![\w.,≈])(?:≈ )?(\d[\d,]*\.\d+|\d[\d,]*(?= ?(?:ns|µs|ms|s|x)\b))")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """Python code, the line of the page where it starts, and the text block right after it (None: prints nothing)."""

    code: str
    line: int
    output: str | None


def blocks(text: str) -> list[Block]:
    """Return the Python blocks of a page."""
    actual = list(_BLOCK.finditer(text))
    results = []
    for this, after in itertools.zip_longest(actual, actual[1:]):
        if this[1] != "python":
            continue
        line = text.count("\n", 0, this.start(2)) + 1
        results.append(Block(this[2], line, promised(after, text[this.end() : after.start()]) if after else None))
    return results


def promised(after: re.Match[str], between: str) -> str | None:
    """Return the output that a text block promises for the code before it, or None if other text is in between."""
    if after[1] != "text" or between.strip() not in ("", VARY):
        return None
    return _VARYING.sub(r"≈ \1", after[2]) if between.strip() else after[2]


def runnable() -> list[str]:
    """Return the pages that have Python blocks, as paths relative to the root of the repository."""
    named = [(str(page.relative_to(ROOT)), page) for page in (README, *PAGES)]
    return [name for name, page in named if name not in FRAGMENTS and blocks(page.read_text(encoding="utf-8"))]


def prose(text: str) -> str:
    """Return a page without its blocks."""
    return _BLOCK.sub("", text)


def shell_lines(text: str) -> list[str]:
    """Return the commands of a page's shell blocks."""
    return [line for block in _BLOCK.finditer(text) if block[1] in ("sh", "bash") for line in block[2].splitlines()]
