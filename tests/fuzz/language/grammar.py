"""A grammar of stateful Python, and programs drawn from it.

The grammar comes in parts (``parts_*.py``): texts that begin with ``## name``. A part has sections: headings at the
left margin, with indented lines. ``code:`` makes a piece of a world; every other section has the ways to write
something: ``num:`` a number, ``stat:`` a statement, ``block:`` statements of several lines (with empty lines between),
``change:`` a change between two calls. In all of them ``$num`` becomes a number, ``$(a||b)`` one of several texts,
``$id`` a new number, ``$body`` statements. Rows that begin with ``~`` are drawn rarely.
"""

from __future__ import annotations

import ast
import random
import re
import textwrap
from collections.abc import Iterator
from typing import Final, NamedTuple

Sections = dict[str, list[str]]

_HOLE: Final = re.compile(r"\$(\w+|\()")
_DEEPEST: Final = 3
_RARE: Final = "~ "  # marks what makes a program run eagerly, which tests little
_CHANCE: Final = 0.04
_LITERALS: Final = {
    "int": ("0", "1", "2", "3", "-1", "5", "7"),
    "small": ("0", "1", "2", "3"),
    "float": ("0.5", "-1.25", "2.0", "0.1", "-0.0", "1e3"),
    "key": ("'a'", "'b'", "'c'", "'gain'"),
}


def parts_of(text: str) -> dict[str, Sections]:
    """The parts of a text, by name."""
    found: dict[str, Sections] = {}
    for piece in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        name, _, body = piece.partition("\n")
        found[name.strip()] = dict(_sections(body))
    return found


def _sections(body: str) -> Iterator[tuple[str, list[str]]]:
    pieces = re.split(r"^(\w+):\n", body, flags=re.MULTILINE)
    for heading, lines in zip(pieces[1::2], pieces[2::2], strict=True):
        text = textwrap.dedent(lines).strip("\n")
        if heading == "code":
            yield heading, [text]
        elif heading in ("block", "step"):
            yield heading, [one.strip("\n") for one in re.split(r"\n\s*\n", text)]
        else:
            yield heading, [line for line in text.split("\n") if line.strip()]


class Program(NamedTuple):
    """A world with a ``step`` in it; what happens then, a line each: calls of ``step``, or changes of the world."""

    source: str
    events: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.source}\n# events\n" + "\n".join(self.events)


class Writer:
    """Draws a program from some parts of a grammar; ``core`` is always among them."""

    def __init__(self, parts: dict[str, Sections], seed: int, most: int = 5) -> None:
        self.random = random.Random(seed)
        names = [name for name in parts if name != "core"]
        drawn = self.random.sample(names, self.random.randint(1, min(most, len(names))))
        self.names = ["core", *sorted(drawn, key=names.index)]
        self.parts: list[Sections] = []  # whose names exist where the text being written stands
        self.drawn = [parts[name] for name in self.names]
        self.count = 0
        self.functions: list[str] = []  # helpers that a body may call

    def choose(self, kind: str) -> str:
        """A text for ``kind``: first a part is drawn, so that small parts are seen as often as large ones."""
        pools = [part[kind] for part in self.parts if kind in part]
        if not pools:
            return "pass" if kind == "stat" else self.random.choice(_LITERALS["int"])
        while True:
            text = self.random.choice(self.random.choice(pools))
            if not text.startswith(_RARE):
                return text
            if self.random.random() < _CHANCE:
                return text.removeprefix(_RARE)

    def expand(self, text: str, depth: int = 0) -> str:
        """``text`` with its holes filled."""
        self.count += 1
        own = str(self.count)
        lines = []
        for line in text.split("\n"):
            bare = line.lstrip()
            margin = line[: len(line) - len(bare)]
            if bare == "$body":
                lines.append(textwrap.indent(self.body(depth + 1), margin))
            else:
                lines.append(margin + self._filled(bare, depth, own))
        return "\n".join(lines)

    def _filled(self, text: str, depth: int, own: str) -> str:
        out = ""
        while (hole := _HOLE.search(text)) is not None:
            out += text[: hole.start()]
            if hole[1] == "(":
                end = _closing(text, hole.end())
                way = self.random.choice(text[hole.end() : end].split("||"))
                text = way + text[end + 1 :]
            else:
                out += self._hole(hole[1], depth, own)
                text = text[hole.end() :]
        return out + text

    def _hole(self, kind: str, depth: int, own: str) -> str:
        if kind == "id":
            return own
        if kind in _LITERALS:
            return self.random.choice(_LITERALS[kind])
        if kind == "plain":  # what an f-string can hold before CPython 3.12
            text = self._hole("num", depth + 1, own)
            return "total" if set(text) & set("'{\\\n") else text
        if kind == "call":
            return self.random.choice(self.functions) if self.functions else "(lambda y, n: (y, n))"
        for _ in range(20):
            text = self.choose(kind)
            if depth <= _DEEPEST or "$" not in text:
                break
        else:
            text = self.random.choice([t for t in self.parts[0].get(kind, ["1"]) if "$" not in t] or ["1"])
        return self.expand(text, depth + 1)

    def body(self, depth: int = 0) -> str:
        """Some statements."""
        lines = []
        for _ in range(self.random.randint(1, 2 if depth else 6)):
            chance = self.random.random()
            if depth < 2 and chance < 0.35:
                lines.append(self.expand(self.choose("block"), depth))
            elif chance < 0.45:
                stat = textwrap.indent(self.expand(self.choose("stat"), depth), "    ")
                lines.append(f"try:\n{stat}\nexcept Exception as problem:\n    log.append(str(problem))")
            else:
                lines.append(self.expand(self.choose("stat"), depth))
            if self.random.random() < 0.4:
                lines.append(self.expand(self.random.choice(("total += $num", "y = y * $num + $tensor")), depth))
        return "\n".join(lines)

    def program(self) -> Program:
        """A world of the parts, some helpers, and a ``step``; calls of it between changes."""
        world = []
        for part in self.drawn:
            world += [self.expand(code) for code in part.get("code", ())]
            self.parts.append(part)
        scope = f"    global {', '.join(sorted(_variables(world)))}"
        for number in range(self.random.randint(0, 2)):
            name = f"helper{number}"
            world.append(
                f"def {name}(y, total=0, *, x=None, s=1, extra=None):\n{scope}\n    x = y if x is None else x\n"
                f"{textwrap.indent(self.body(1), '    ')}\n    return y, total"
            )
            self.functions.append(name)
            if self.random.random() < 0.3:
                world.append(f"fast{number} = rn.compile({name})")
                self.functions.append(f"fast{number}")
        world.append(self._step(scope))
        return Program("\n".join(world), tuple(self._events()))

    def _step(self, scope: str) -> str:
        results = self.expand("y, total, $num, $(y.sum()||$text||$num||$seq||$tensor)")
        lines = f"{scope.strip()}\ny = x * 1.0\ntotal = 0\n{self.body()}\nreturn {results}"
        return _placed(self.expand(self.choose("step")), lines)

    def _events(self) -> Iterator[str]:
        call = self._call("step")
        yield from (call, call)
        for _ in range(self.random.randint(3, 7)):
            for _ in range(self.random.choice((0, 1, 1, 2, 3))):
                yield self.expand(self.choose(self.random.choice(("change", "change", "stat"))), 2)
            if self.random.random() < 0.4:
                yield self._call(self.random.choice(("step", "step", *self.functions)))
            yield call
            if self.random.random() < 0.5:
                yield call

    def _call(self, name: str) -> str:
        extra = self.expand(f", extra={self.choose('extra')}") if self.random.random() < 0.3 else ""
        number = self.expand("s=$number" if name != "step" else "$(s=$number||$number)")
        kept = "last = " if self.random.random() < 0.3 else ""
        return f"{kept}{name}({self.expand(self.choose('argument'))}, {number}{extra})"


def _placed(text: str, lines: str) -> str:
    """``text`` with ``lines`` at the place that is marked ``STEP``."""
    out = []
    for line in text.split("\n"):
        bare = line.lstrip()
        out.append(textwrap.indent(lines, line[: len(line) - len(bare)]) if bare == "STEP" else line)
    return "\n".join(out)


def _variables(world: list[str]) -> set[str]:
    """The names to which the code of a world gives values, but functions and classes."""
    statements = [one for code in world for one in ast.parse(code).body if isinstance(one, ast.Assign)]
    nodes = [node for one in statements for target in one.targets for node in ast.walk(target)]
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _closing(text: str, start: int) -> int:
    """Where the parenthesis closes that was opened before ``start``."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if not depth:
            return at
    raise ValueError(text)
