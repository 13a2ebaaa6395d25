"""Random stateful programs: functions that read and change a small world, which changes between calls."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.compile.observe.observed import check

pytestmark = pytest.mark.suite


PRELUDE = """
import collections, contextlib, dataclasses, functools, itertools, operator
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
class Field:
    def __set_name__(self, owner, name): self.name = "_" + name
    def __get__(self, owner, kind=None): return self if owner is None else vars(owner).get(self.name, 4)
    def __set__(self, owner, value): vars(owner)[self.name] = value % 20
@dataclasses.dataclass(slots=True)
class Row:
    n: int = 0
    parts: list = dataclasses.field(default_factory=list)
    def __post_init__(self): self.parts.append(self.n)
    def __iter__(self): yield from self.parts
class Table(dict):
    misses = 0
    def __missing__(self, key):
        Table.misses += 1
        self[key] = len(key)
        return self[key]
    def __setitem__(self, key, value): super().__setitem__(key, value % 30)
class Last(Other):
    level = Field()
    def __getattr__(self, name):
        if name.startswith("made_"): return len(name) + self.n % 2
        raise AttributeError(name)
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        if name == "half": self.table["half"] = value // 2
    @property
    def twice(self): return self.n * 2 + self.level
    @twice.setter
    def twice(self, value): self.n = value // 2
    @contextlib.contextmanager
    def held(self, by):
        self.n += by
        try: yield self.n
        except KeyError: log.append("missing")
        finally: self.n -= by
    def upto(self, end):
        try:
            for i in range(end):
                got = yield i * self.n
                if got: log.append(got)
        finally: self.table["upto"] = end
def counter(start):
    at = start
    def up(by=1):
        nonlocal at
        at = (at + by) % 40
        return at
    def get(): return at
    return up, get
up, get = counter(3)
rows, pair, ring = [Row(1), Row(2)], (Row(3), 5), collections.deque([1, 2, 3], maxlen=4)
table, some, order = Table(x=1), {1, 2}, collections.OrderedDict(p=1, q=2)
a, b = Thing(1), Last(2)
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
    "b.level", "b.twice", "b.made_up", "up()", "up({o}.n)", "get()", "rows[0].n", "sum(rows[-1])", "pair[0].n", "ring[0]", "ring[-1]",
    "sum(ring)", "len(ring)", "table['x']", "table['new']", "Table.misses", "len(table)", "sum(some)", "(3 in some)", "len(some)",
    "next(iter(order.values()))", "list(order)[-1] * 2 == 'qq'", "len(f'{{count:>{{get() % 5}}}}')", "sum(b.upto(3))",
    "(lambda k=count: k + get())()", "functools.reduce(operator.add, ring, 0)", "len([*itertools.chain(ring, {o}.items)])",
    "max(rows, key=lambda r: r.n).n", "[r.n for r in rows if r.n % 2 == 0 or r is rows[0]][0]", "next(b.upto(2))",
    "(second := {o}.n) + second", "sorted([{o}.n, count, get()])[1]", "dict(zip('ab', ring))['a']", "len({{**{o}.table, 'k': 1}})",
)  # fmt: skip
STATEMENTS = (
    "{o}.n = {e} % 50", "{o}.n += 1", "{o}.items.append({e} % 50)", "{o}.items[0] = {e} % 50", "{o}.table['b'] = {e} % 50",
    "{o}.extra = {e} % 50", "count = {e} % 50", "log.append({e})", "del {o}.items[1:-1]", "{o}.table.pop('b', None)",
    "{o}.items = [{e}, {e}]", "names['b'] = {o}", "world.reverse()", "{o}.items.sort()", "log.append(({e}, [{e}]))",
    "Thing.kind = {e} % 5", "{o}.last = {o}.items", "{o}.table = dict({o}.table, c={e})", "world[0] = {o}",
    "b.level = {e}", "b.twice = {e} % 50", "b.half = {e} % 50", "rows[0].n = {e} % 50", "rows[-1].parts.append({e} % 50)", "rows.append(Row({e} % 50))",
    "rows[:] = rows[-2:]", "pair[0].n += 1", "ring.append({e} % 50)", "ring.appendleft({e} % 50)", "ring.rotate(1)", "ring.extend([{e} % 9, 2])",
    "table['x'] = {e}", "table.pop('new', None)", "some.add({e} % 9)", "some.discard({e} % 9)", "order.move_to_end('p')", "order['q'] = {e} % 50",
    "order.update(r={e} % 50)", "up({e} % 7)", "setattr({o}, 'extra', {e} % 50)", "vars({o})['n'] = {e} % 50", "{o}.__dict__.update(n={e} % 50)",
    "Other.kind = {e} % 5", "Last.grade = {e} % 5", "names.update(b={o})", "names['a'], names['b'] = names['b'], names['a']",
    "table.update(x={e} % 9)", "{o}.items[:] = {o}.items[-3:]", "world.insert(0, world.pop())", "{o}.items = {o}.items + [{e} % 9]",
)  # fmt: skip
BLOCKS = (
    "if {e} % 2:\n{s}\nelse:\n{t}", "for i in range({e} % 3):\n{s}", "for x in list({o}.items):\n{s}", "while len(log) < 4:\n    log.append(1)\n{s}",
    "try:\n{s}\n    {o}.missing\nexcept AttributeError:\n{t}", "if {o}:\n{s}\nelif {p} is {o}:\n{t}", "for k, v in list({o}.table.items()):\n    total += v\n{s}",
    "with b.held({e} % 4) as held:\n    total += held\n{s}", "for v in b.upto({e} % 4):\n    if v > 9: break\n{s}",
    "try:\n{s}\n    table['x'] // ({e} % 2)\nexcept ZeroDivisionError:\n{t}\nfinally:\n    log.append(0)",
    "for i, (k, r) in enumerate(zip(order, rows)):\n    total += i + r.n\n{s}", "with contextlib.suppress(KeyError):\n    with b.held(1):\n        order['none']\n{s}",
    "def inner(k={e}):\n    nonlocal total\n    total += k % 7\n    return total\ntotal += inner() + inner(2)", "for r in rows:\n    if r.n > 40: continue\n    r.n += 1\nelse:\n{s}",
    "match rows[-1]:\n    case Row(n=0):\n{S}\n    case Row(parts=[first, *_]) if first % 2:\n        total += first\n    case _:\n{T}",
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
    space: dict[str, Any] = {"__name__": __name__}
    exec(compile(text, f"<program {seed}>.py", "exec"), space)

    def change(statement: str) -> Any:
        return lambda: exec(
            f"global count\ntry:\n    {statement}\nexcept (IndexError, AttributeError, KeyError, TypeError): pass",
            space,
        )

    call: Any = ((), {})
    steps: list[Any] = [call, call]
    for statement in changes:
        steps += [change(statement), call, ((2,), {}), call]
    return (
        space["f"],
        steps,
        lambda: (
            [space[n] for n in ("a", "b", "world", "count", "log", "rows", "ring", "table", "order")]
            + [space["Thing"].kind]
        ),
    )


@pytest.mark.parametrize("first", range(0, 30, 10))
def test_random_programs(first: int) -> None:
    for seed in range(first, first + 10):
        check(lambda seed=seed: make(seed))
