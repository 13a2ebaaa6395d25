#!/usr/bin/env python3
"""Breaks rules of ops on purpose, one at a time, and says which the tests do not notice.

    python scripts/mutations.py --each 5 --seed 0 [--families reductions orders]
    python scripts/mutations.py --rules --each 5 --seed 0 [--families reductions orders] [--only "^sum vjp"]

Each mutation changes one call or number of one line of a family's files, in a copy of the repository (its working tree
as it is), and runs the tests of ops and the suites until the first failure. A mutation that survives is printed as a
diff: a test is missing, or the change makes no difference.

With ``--rules``, it breaks rows of the tables of so many ops of each family: the value, the kernel, the shape,
the shape without elements, the dtype, the derivatives and the op with another axis (`breaking.py`). R. DeMillo,
R. Lipton, F. Sayward, "Hints on Test Data Selection", 1978.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FAMILIES = {
    "elementwise": ("arithmetic", "transcendental", "activations", "library/circular"),
    "reductions": ("reductions", "statistics", "broadcasting"),
    "contractions": ("contraction", "library/products"),
    "convolutions": ("convolution_rules", "max_pooling", "pooling"),
    "indexing": ("indexing", "assignment", "library/scattering"),
    "orders": ("sorting", "library/cumulative", "library/order"),
    "matrices": ("linalg", "library/matrices"),
    "random": ("random",),
    "losses and attention": ("losses", "attention_terms", "attention_primitives"),
    "shapes": ("views", "pieces", "padding"),
}
SWAPS = {
    "multiply(": "add(", "subtract(": "add(", "add(": "subtract(", "divide(": "multiply(", "sin(": "cos(",
    "cos(": "sin(", "exp(": "tanh(", "greater(": "less(", "less(": "greater(", "maximum(": "minimum(",
    "minimum(": "maximum(", " + 1": " + 2", " - 1": " - 2", "[::-1]": "", "-1": "0", ", 0)": ", 1)", "2.0": "3.0",
    "0.5": "0.25", "not ": "", " and ": " or ", " < ": " <= ", " > ": " >= ",
}  # fmt: skip
TESTS = ("tests/ops", "tests/suites", "tests/transforms", "tests/random", "tests/nn")
SECONDS = 600  # after which a run of tests counts as a failure: the change made a loop endless


class Mutation(NamedTuple):
    """A line of a file with another text."""

    file: str
    number: int
    text: str


def mutations(file: str) -> Iterator[Mutation]:
    """All of a file: of lines of functions, but not of their docstrings or of sentences about mistakes."""
    text = (ROOT / file).read_text(encoding="utf-8")
    lines = text.splitlines()
    code: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            body = node.body if isinstance(node.body, list) else [node.body]
            code.update(i for part in body for i in range(part.lineno, (part.end_lineno or part.lineno) + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Constant, ast.JoinedStr, ast.Raise)):
            is_text = not isinstance(node, ast.Constant) or isinstance(node.value, str)
            if is_text and node.end_lineno:
                code.difference_update(range(node.lineno, node.end_lineno + 1))
    for number in sorted(code):
        line = lines[number - 1]
        end = len(line.partition("  #")[0])
        for old, new in SWAPS.items():
            for found in re.finditer(rf"(?<![\w.]){re.escape(old)}" if old[0].isalpha() else re.escape(old), line):
                if found.start() < end:
                    yield Mutation(file, number, line[: found.start()] + new + line[found.end() :])


def of_rules(options: argparse.Namespace) -> int:
    """Break rules in the tables, in one process that has collected the tests once."""
    with tempfile.TemporaryDirectory(prefix="runnel-mutations-") as cache:
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "scripts")]), "RUNNEL_CACHE_DIR": cache,
            "BREAK_EACH": str(options.each), "BREAK_SEED": str(options.seed), "BREAK_ONLY": options.only,
            "BREAK_FAMILIES": ",".join(options.families or ()),
        }  # fmt: skip
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "breaking", *TESTS]
        return subprocess.run(command, cwd=ROOT, env=environment).returncode


def survives(folder: Path, mutation: Mutation) -> bool:
    """Return True if no test fails in the copy with one line changed; tests of the file itself run first."""
    path = folder / mutation.file
    original = path.read_text(encoding="utf-8")
    lines = original.splitlines(keepends=True)
    lines[mutation.number - 1] = mutation.text + "\n"
    path.write_text("".join(lines), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(folder), "RUNNEL_CACHE_DIR": str(folder / "cache")}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        *_nearest(mutation.file),
        *TESTS,
    ]
    try:
        return (
            subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=SECONDS).returncode == 0
        )
    except subprocess.TimeoutExpired:
        return False
    finally:
        path.write_text(original, encoding="utf-8")


def _nearest(file: str) -> list[str]:
    """The tests that are named after a file."""
    return [str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests").rglob(f"test_{Path(file).stem}*.py"))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=5, help="mutations of each family")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--families", nargs="+")
    parser.add_argument("--rules", action="store_true", help="break rows of tables instead of lines")
    parser.add_argument("--only", default="", help="with --rules: a pattern of the op's name and the rule's")
    options = parser.parse_args()
    if options.rules:
        return of_rules(options)
    families = options.families or list(FAMILIES)
    survived = 0
    with tempfile.TemporaryDirectory(prefix="runnel-mutations-") as scratch:
        folder = Path(scratch, "copy")
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".git", "__pycache__", ".mypy_cache", ".*_cache"))
        for family in families:
            every = [m for name in FAMILIES[family] for m in mutations(f"runnel/ops/{name}.py")]
            for mutation in random.Random(f"{family} {options.seed}").sample(every, min(options.each, len(every))):
                before = (ROOT / mutation.file).read_text(encoding="utf-8").splitlines()[mutation.number - 1]
                lives = survives(folder, mutation)
                survived += lives
                print(f"{family:20} {mutation.file}:{mutation.number} {'SURVIVES' if lives else 'found'}", flush=True)
                print(f"    - {before.strip()}\n    + {mutation.text.strip()}", flush=True)
    print(f"{survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
