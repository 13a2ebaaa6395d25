#!/usr/bin/env python3
"""Check the mechanical part of the language rules: phrases, spelling, how docstrings begin, and commit subjects.

CONTRIBUTING.md has the rules. ``scripts/language.txt`` says how many findings each folder may still have; the numbers
may only go down. Without arguments, print the findings of folders that exceed their number and fail if there are any.
``--list FOLDER`` prints all findings of a folder. ``--lower`` writes the present counts, unless there are more in all.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_suffix(".txt")
SINCE = "dd41c493"  # subjects are checked after this commit; earlier ones cannot be changed any more
FOLDERS = ("runnel", "docs", "tests", "benchmarks", "examples", "scripts")
PAGES = ("README.md", "CONTRIBUTING.md")

PHRASES = {
    "repeat the noun": r"\b(that|those) of\b(?! (course|it))",
    "write 'your own', 'custom' or 'separate'": r"\bof (one's|its|their|your) own\b",
    "write 'not a'": r"\b(is|are) no \w+ of\b",
    "write 'inside' or 'outside'": r"\b(inside|outside) of\b",
    "name the actor": r"(?:^|[.:;!?] )(?-i:Who|What|Whether)\b[^?]*?[.;:]",
    "write 'again' or 'new'": r"\banew\b",
    "write 'must' or 'will'": r"\bshall\b",
    "write 'after'": r"\b(stands?|comes?|lies|lie) behind\b",
    "write 'is' or 'appears'": r"\bstands? (in|for|there|at|before)\b",
    "write 'is supported' or 'exists'": r"\b(is|are) not there\b",
    "write 'alternating'": r"\bby turns\b",
}
BRITISH = (
    r"\b\w+(?:oris|alis|eris|imis|ymis|omis|inis|unis|onis|anis|ilis|tris)(?:e|es|ed|ing|ation|ations|er|ers)\b"
    r"|\b(?:colour|behaviour|favour|neighbour|honour)\w*|\b(?:centre|modelling|labelled|cancelled|grey|artefact)\w*"
)
NOT_BRITISH = re.compile(
    r"(?i)(pre|sur|com|pro|dis|en|de|ad|re|su|ex)?(raise|rise|mise|vise|wise|cise)\w*|promis\w+|revis\w+|premis\w+"
    r"|otheris\w+|serialis\b|tris|polaris|minist\w+|finis\w+|unison|vanis\w+|publis\w+|polis\w+|admin\w+|iris\w*|demise\w*"
)
RULES = {rule: re.compile(pattern, re.MULTILINE | re.IGNORECASE) for rule, pattern in PHRASES.items()}
SPELLING = re.compile(BRITISH, re.IGNORECASE)
# A function's docstring begins with an imperative verb, so not with one of these.
NOUNS = re.compile(
    r"(What|Whether|Where|How|Of|It|As|The|An?|Its?|That|Those|This|These|Which|Who|Why|In|On|At|For|By|All|Each|Every"
    r"|Is|Are|One|Some|No|Same|Also|Elements?|Values?|Number|Numbers|Names?|Shape|Tensors?|Bytes)\b"
)
SUBJECT = re.compile(r"[a-z][a-z0-9_/., -]*: [a-z]\S* .*[^.]|Revert .*|Merge .*")


class Finding(NamedTuple):
    """A place where a rule is broken."""

    path: str
    line: int
    rule: str
    text: str


def phrases(text: str, path: str, line: int) -> Iterator[Finding]:
    """Yield what breaks the rules in a piece of prose that starts at a line."""
    for rule, pattern in RULES.items():
        for found in pattern.finditer(text):
            yield Finding(path, line + text.count("\n", 0, found.start()), rule, " ".join(found[0].split())[:60])
    for found in SPELLING.finditer(text):
        if not NOT_BRITISH.fullmatch(found[0]):
            yield Finding(path, line + text.count("\n", 0, found.start()), "spell American English", found[0])


def of_python(path: str, text: str) -> Iterator[Finding]:
    """Yield findings in the comments, docstrings and longer strings of a source file."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield from phrases(token.string, path, token.start[0])
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(" ") >= 3:
            yield from phrases(node.value, path, node.lineno)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and path.startswith("runnel/"):
            yield from beginning(node, path)


def beginning(node: ast.FunctionDef | ast.AsyncFunctionDef, path: str) -> Iterator[Finding]:
    """Yield a finding if the docstring of a function, unless it is a property, does not begin with a verb."""
    docstring = ast.get_docstring(node)
    decorators = " ".join(ast.unparse(each) for each in node.decorator_list)
    if docstring and "property" not in decorators and (NOUNS.match(docstring) or not docstring[0].isalpha()):
        yield Finding(path, node.lineno, "begin with a verb", docstring.splitlines()[0][:60])


def of_markdown(path: str, text: str) -> Iterator[Finding]:
    """Yield findings in the prose of a page, without its code."""
    without = re.sub(r"^```.*?^```$", lambda m: "\n" * m[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)
    yield from phrases(re.sub(r"`[^`\n]*`", "`…`", without), path, 1)


def of_commits() -> Iterator[Finding]:
    """Yield findings in the subjects of commits since SINCE; none where there is no history."""
    command = ["git", "-C", str(ROOT), "log", "--format=%h %s", f"{SINCE}..HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for row in done.stdout.splitlines():
        commit, _, subject = row.partition(" ")
        if not SUBJECT.fullmatch(subject) or len(subject) > 72:
            yield Finding("commits", 0, "write 'area: imperative', at most 72 characters", f"{commit} {subject}")


def findings() -> Iterator[Finding]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            name = str(path.relative_to(ROOT))
            if path.suffix == ".py" and path.name not in ("language.py", "test_language.py"):
                yield from of_python(name, path.read_text(encoding="utf-8"))
            elif path.suffix == ".md":
                yield from of_markdown(name, path.read_text(encoding="utf-8"))
    for name in PAGES:
        yield from of_markdown(name, (ROOT / name).read_text(encoding="utf-8"))
    yield from of_commits()


def folder_of(path: str) -> str:
    """Return the row of the table that a file counts in: two levels of folders."""
    parts = path.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def allowed() -> dict[str, int]:
    rows = (row.rsplit(maxsplit=1) for row in TABLE.read_text(encoding="utf-8").splitlines() if row)
    return {folder: int(count) for folder, count in rows}


def main() -> int:
    """Return 1 if a folder has more findings than the table allows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", metavar="FOLDER", help="print all findings of a folder, such as runnel/nn")
    parser.add_argument("--lower", action="store_true", help="write the present counts, unless there are more in all")
    options = parser.parse_args()
    found: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings():
        found[folder_of(finding.path)].append(finding)
    if options.list:
        chosen = [f for folder, each in found.items() if f"{folder}/".startswith(f"{options.list}/") for f in each]
        print("\n".join(f"{f.path}:{f.line}: {f.rule}: {f.text}" for f in chosen))
        print(*(f"{count} {rule}" for rule, count in Counter(f.rule for f in chosen).most_common()), sep="\n")
        return 0
    table = allowed() if TABLE.exists() else {folder: len(each) for folder, each in found.items()}
    if options.lower:
        more = sum(map(len, found.values())) - sum(table.values())
        if more > 0:
            print(f"{more} findings more than the table allows; mend these first", file=sys.stderr)
            return 1
        rows = [f"{folder} {len(each)}" for folder, each in sorted(found.items())]
        TABLE.write_text("\n".join(rows) + "\n", encoding="utf-8")
        return 0
    over = {folder: each for folder, each in found.items() if len(each) > table.get(folder, 0)}
    for folder, each in sorted(over.items()):
        print(*(f"{f.path}:{f.line}: {f.rule}: {f.text}" for f in each), sep="\n")
        print(f"{folder}: {len(each)} findings, {table.get(folder, 0)} allowed")
    return int(bool(over))


if __name__ == "__main__":
    sys.exit(main())
