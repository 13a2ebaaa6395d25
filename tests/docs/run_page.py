"""Runs the Python blocks of a page and compares what they print: ``python -m tests.docs.run_page PAGE``.

A process of its own, because a page adds ops, tables and passes to registries that all tests share.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import sys
import types
from pathlib import Path

from tests.docs.pages import Block, blocks

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run(page: Path) -> list[str]:
    """What is wrong with the page: a sentence for each block whose output is not the promised one."""
    module = types.ModuleType("page")
    sys.modules["page"] = module
    wrong = []
    for block in blocks(page.read_text(encoding="utf-8")):
        printed = io.StringIO()
        # Line numbers of the page, so that errors and programs name the place a reader can look at.
        code = compile("\n" * (block.line - 1) + block.code, str(page), "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, module.__dict__)
        wrong += difference(page, block, printed.getvalue())
    return wrong


def difference(page: Path, block: Block, printed: str) -> list[str]:
    """What is wrong with what ``block`` printed."""
    promised = block.output or ""
    if doctest.OutputChecker().check_output(promised, printed, OPTIONS):
        return []
    return [f"{page.name}:{block.line} promises\n{promised}but prints\n{printed}"]


if __name__ == "__main__":
    problems = run(Path(sys.argv[1]))
    print("\n".join(problems))
    sys.exit(bool(problems))
