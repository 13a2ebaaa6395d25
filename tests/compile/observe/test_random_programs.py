"""Random stateful programs: functions that read and change a small world, which changes between calls."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.compile.observe.observed import check

pytestmark = pytest.mark.suite


PRELUDE = """
class Thing:
    kind = 1
    def __init__(self, n):
        self.n, self.items, self.table = n, [n, n + 1], {"a": n}
    @property
    def twice(self): return self.n * 2
    def bump(self, by=1):
        self.n += by
        return self.n
    def __add__(self, other): return self.n + (other.n if isinstance(other, Thing) else other)
    def __bool__(self): return self.n % 3 != 0
class Other(Thing):
    def bump(self, by=2): return super().bump(by) + self.kind
a, b = Thing(1), Other(2)
world = [a, b]
names = {"a": a, "b": b}
count = 0
log = []
"""
OBJECTS = ("a", "b", "world[0]", "world[-1]", "names['a']", "names.get('b', a)", "pick(count)")
NUMBERS = (
    "{o}.n", "len({o}.items)", "{o}.items[0]", "{o}.items[-1]", "{o}.table['a']", "{o}.table.get('b', 5)", "{o}.twice",
    "{o}.kind", "count", "len(log)", "sum({o}.items)", "({o} + {p})", "getattr({o}, 'extra', 3)", "{o}.bump()",
    "(1 if {o} else 2)", "({o} is {p})", "max({o}.items)", "len(world)", "[x * 2 for x in {o}.items][-1]",
    "(7 if 'b' in {o}.table else 8)", "next(iter({o}.table.values()))", "(type({o}) is Thing)", "sum(t.n for t in world)",
)  # fmt: skip
STATEMENTS = (
    "{o}.n = {e} % 50", "{o}.n += 1", "{o}.items.append({e} % 50)", "{o}.items[0] = {e} % 50", "{o}.table['b'] = {e} % 50",
    "{o}.extra = {e} % 50", "count = {e} % 50", "log.append({e})", "del {o}.items[1:-1]", "{o}.table.pop('b', None)",
    "{o}.items = [{e}, {e}]", "names['b'] = {o}", "world.reverse()", "{o}.items.sort()", "log.append(({e}, [{e}]))",
    "Thing.kind = {e} % 5", "{o}.last = {o}.items", "{o}.table = dict({o}.table, c={e})", "world[0] = {o}",
)  # fmt: skip
BLOCKS = (
    "if {e} % 2:\n{s}\nelse:\n{t}", "for i in range({e} % 3):\n{s}", "for x in list({o}.items):\n{s}", "while len(log) < 4:\n    log.append(1)\n{s}",
    "try:\n{s}\n    {o}.missing\nexcept AttributeError:\n{t}", "if {o}:\n{s}\nelif {p} is {o}:\n{t}", "for k, v in list({o}.table.items()):\n    total += v\n{s}",
    "match {o}:\n    case Other(n=n) if n % 2:\n{S}\n    case Thing():\n{T}",
)  # fmt: skip


class Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def number(self) -> str:
        r = self.random
        text = r.choice(NUMBERS).format(o=r.choice(OBJECTS), p=r.choice(OBJECTS))
        if r.random() < 0.3:
            text = f"({text} {r.choice('+-*')} {self.number()})"
        return text

    def statement(self) -> str:
        r = self.random
        return r.choice(STATEMENTS).format(o=r.choice(OBJECTS), e=self.number())

    def block(self, depth: int = 0) -> str:
        r = self.random
        lines = []
        for _ in range(r.randint(1, 3)):
            if depth < 2 and r.random() < 0.4:
                s, t = self.indented(depth), self.indented(depth)
                lines.append(
                    r.choice(BLOCKS).format(
                        o=r.choice(OBJECTS), p=r.choice(OBJECTS), e=self.number(), s=s, t=t,
                        S=s.replace("    ", "        ", 1).replace("\n    ", "\n        "), T=t.replace("    ", "        ", 1).replace("\n    ", "\n        "),
                    )
                )  # fmt: skip
            else:
                lines.append(self.statement())
            if r.random() < 0.5:
                lines.append(f"total += {self.number()}")
        return "\n".join(lines)

    def indented(self, depth: int) -> str:
        return "\n".join("    " + line for line in self.block(depth + 1).split("\n"))

    def program(self) -> tuple[str, list[str]]:
        body = "\n".join("    " + line for line in self.block().split("\n"))
        text = f"{PRELUDE}\ndef pick(i): return world[i % len(world)]\ndef f(x=1):\n    global count\n    total = x\n{body}\n    return total, {self.number()}\n"
        return text, [self.statement() for _ in range(4)]


def make(seed: int) -> Any:
    text, changes = Writer(seed).program()
    space: dict[str, Any] = {"__name__": f"random_program_{seed}"}
    exec(compile(text, f"<program {seed}>.py", "exec"), space)

    def change(statement: str) -> Any:
        return lambda: exec(f"global count\ntry:\n    {statement}\nexcept (IndexError, AttributeError): pass", space)

    call: Any = ((), {})
    steps: list[Any] = [call, call]
    for statement in changes:
        steps += [change(statement), call, ((2,), {}), call]
    return space["f"], steps, lambda: [space[n] for n in ("a", "b", "world", "count", "log")] + [space["Thing"].kind]


@pytest.mark.parametrize("first", range(0, 50, 10))
def test_random_programs(first: int) -> None:
    for seed in range(first, first + 10):
        check(lambda seed=seed: make(seed))
