"""Pages whose code runs: their blocks in order, in one namespace, each with the output that the page promises."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs").rglob("*.md"))
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """Python code, the line of the page that it starts on, and the text block right behind it (None: no promise)."""

    code: str
    line: int
    output: str | None


def blocks(text: str) -> list[Block]:
    """The Python blocks of a page."""
    actual = list(_BLOCK.finditer(text))
    following = [*actual[1:], None]
    results = []
    for this, after in zip(actual, following, strict=True):
        if this[1] != "python":
            continue
        promised = after is not None and after[1] == "text" and not text[this.end() : after.start()].strip()
        line = text.count("\n", 0, this.start(2)) + 1
        results.append(Block(this[2], line, after[2] if promised and after is not None else None))
    return results


def prose(text: str) -> str:
    """A page without its blocks."""
    return _BLOCK.sub("", text)


def shell_lines(text: str) -> list[str]:
    """The commands of a page's shell blocks."""
    return [line for block in _BLOCK.finditer(text) if block[1] in ("sh", "bash") for line in block[2].splitlines()]
