"""Containers whose keys are counters, and that are read after they were written: what is read depends on the key."""

from __future__ import annotations

import pytest

import runnel as rn
from tests.compile.adversarial.stories import Story, stories

KEYS = stories("""
## a_key_that_is_asked_for, traces: 99
table, n = {}, 0
def step(x):
    global n
    table[n] = 1; n += 1
    return x * (2 if 3 in table else 1)
#> n = 0
#> table.clear()
## an_item_that_is_written_and_read, traces: 99
table, n = {1: 2.0}, 0
def step(x):
    global n
    table[n] = 5.0
    y = x * table[1]
    n = 1 - n
    return y
#> table[1] = 8.0
#> n = 0
## members_of_a_set, traces: 99
seen, n = set(), 0
def step(x):
    global n
    seen.add(n % 3); n += 1
    return x * len(seen) + (1 if 2 in seen else 0)
#> seen.clear()
#> n = 2
## a_ring, traces: 99
ring, n = [1.0, 2.0, 3.0], 0
def step(x):
    global n
    ring[n % 3] = ring[(n + 1) % 3] + 1; n += 1
    return x * ring[0]
#> n = 2
#> ring[0] = 9.0
## a_default, traces: 99
tables, n = {'a': {}}, 0
def step(x):
    global n
    tables['a'][n] = 1.0
    factor = tables['a'].get(2, 0.5)
    n += 1
    return x * factor
#> tables['a'] = {2: 7.0}
## counts_by_members_of_an_enumeration, traces: 7
Phase = enum.Enum("Phase", "TRAIN EVAL")
counts, best, phase, n = {Phase.TRAIN: 0, Phase.EVAL: 0}, {Phase.TRAIN: 9.0}, Phase.TRAIN, 0
def step(x):
    global phase, n
    counts[phase] += 1
    n += 1
    if phase in best:
        best[phase] = best[phase] * 0.5
    y = x * 2 if phase is Phase.TRAIN else x * counts[phase]
    phase = Phase.EVAL if n % 2 else Phase.TRAIN
    return y
#> n = 4
#> counts[Phase.EVAL] = 7
#> best = {}
#> phase = Phase.TRAIN
## members_that_a_class_compares, traces: 99
class Phase(enum.Enum):
    TRAIN, EVAL = 1, 2
    def __eq__(self, other):
        return str(self) == str(other)
    def __hash__(self):
        return 5
counts, n = {Phase.TRAIN: 0, Phase.EVAL: 0}, 0
def step(x):
    global n
    n += 1
    counts[Phase(1 + n % 2)] += 1
    return x * counts[Phase.TRAIN]
## members_that_are_numbers, eager: can be watched
Phase = enum.IntEnum("Phase", "TRAIN EVAL")
members = list(Phase)
counts, n = {Phase.TRAIN: 0, 2: 0}, 0
def step(x):
    global n
    n += 1
    counts[members[n % 2]] += 1
    return x * counts[1]
## a_count_with_another_step
ids, last = itertools.count(0, 1), []
def step(x):
    number = next(ids) + next(ids)
    last.append(number)
    return x * number
#> ids = itertools.count(3, -4)
""")


@pytest.mark.parametrize("story", KEYS)
def test_keys(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)


class Inherited(dict[str, str]):
    pass


KEYS_ALONE = ("[k for k in d]", "list(d)", "tuple(d)", "[*d]", "(lambda *keys: keys)(*d)", "{k: 1 for k in d}")
ITEMS = (
    "{**d}",
    "dict(d)",
    "dict(Inherited(d))",
    "list(d.values())",
    "[d[k] for k in d]",
    "sorted(d, key=d.get)",
    "d | {}",
)


@pytest.mark.parametrize("way", [*KEYS_ALONE, *ITEMS])
def test_what_is_read_of_a_dict_that_is_gone_over(way: str) -> None:
    d = {"a": "one", "b": "two"}
    space = {"d": d, "Inherited": Inherited}
    plain = eval(f"lambda x: (x, {way})", space)
    f, x = rn.compile(plain), rn.ones(2)
    for change in (lambda: None, lambda: d.update(a="three"), lambda: d.update(c="four"), lambda: d.pop("a"), d.clear):
        traces = f.statistics["traces"]
        change()
        for _ in range(2):
            assert f(x)[1] == plain(x)[1]
        if d.get("a") == "three" and len(d) == 2 and way in KEYS_ALONE:
            assert f.statistics["traces"] == traces
