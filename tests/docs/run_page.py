"""Runs the Python blocks of a page and compares what they print: ``python -m tests.docs.run_page PAGE``.

Each page needs its own process, because it adds ops, tables and passes to registries that all tests share. A promised
output may have `...` for any text, and numbers after `≈`: `≈ 0.08` matches a number that differs by at most a quarter
(or 0.02). With a unit of time, as in `≈ 1.2 ms`, it matches any number, because times depend on the machine.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import sys
import types
from pathlib import Path

from tests.docs.pages import Block, blocks

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_NUMBER = r"[-+]?\d[\d,]*(?:\.\d*)?(?:e[-+]?\d+)?"
_TOKEN = re.compile(rf"≈ ?(?P<about>{_NUMBER})(?P<unit> ?(?:ns|µs|ms|s|x)\b)?|(?P<any>\.\.\.)|(?P<space>\s+)|.")


def run(page: Path) -> list[str]:
    """Run the blocks of a page; return a sentence for each block whose output is not the promised one."""
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
    """Return a sentence about what ``block`` printed if the page promises something else."""
    promised = block.output or ""
    if matches(promised, printed):
        return []
    return [f"{page.name}:{block.line} promises\n{promised}but prints\n{printed}"]


def matches(promised: str, printed: str) -> bool:
    """Return whether the output is the promised one, up to `...`, white space and numbers after `≈`."""
    if "≈" in promised:
        pattern, wanted = "", []
        for token in _TOKEN.finditer(promised.strip()):
            if token["about"]:
                pattern += rf"(?:≈ ?)?({_NUMBER}){re.escape(token['unit'] or '')}"
                wanted.append(None if token["unit"] else token["about"])
            else:
                pattern += ".*?" if token["any"] else r"\s+" if token["space"] else re.escape(token[0])
        found = re.fullmatch(pattern, printed.strip(), flags=re.DOTALL)
        pairs = zip(wanted, found.groups(), strict=True) if found else ()
        return found is not None and all(number is None or near(number, got) for number, got in pairs)
    return doctest.OutputChecker().check_output(promised, printed, OPTIONS)


def near(promised: str, printed: str) -> bool:
    wanted, got = (float(number.replace(",", "")) for number in (promised, printed))
    return abs(wanted - got) <= max(0.25 * abs(wanted), 0.02)


if __name__ == "__main__":
    problems = run(Path(sys.argv[1]))
    print("\n".join(problems))
    sys.exit(bool(problems))
