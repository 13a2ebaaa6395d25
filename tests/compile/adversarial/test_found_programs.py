"""What random programs of stateful Python (``python -m tests.fuzz programs``) found, made small."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

FOUND: Final = stories("""
## items_of_what_cannot_be_changed, eager: perhaps
row, members, steps = (1, [2]), frozenset([1]), [0]
def step(x):
    steps[0] += 1
    try: row[0] = 2
    except TypeError as e: x = x + len(str(e))
    try: row[1] += [3]
    except TypeError as e: x = x + len(str(e))
    try: members[0] += 1
    except TypeError as e: x = x + len(str(e))
    del row[1]
#> row = [1, [2]]
#> row = (1, 2)
## lengths_that_c_code_asks_for
class Sized:
    def __init__(self): self.asked = 0
    def __len__(self):
        self.asked += 1
        return 2
    def __iter__(self): return iter((1, 2))
class Hinting(Sized):
    def __len__(self): raise TypeError
    def __length_hint__(self):
        self.asked += 1
        return 9
class Grown(list):
    asked = 0
    def __len__(self):
        self.asked += 1
        return 2
made = [Sized(), Hinting(), Grown((1, 2))]
def step(x):
    for one in made:
        x = x + sum([*one]) + sum(list(one)) + tuple(one)[0] + sorted(one)[0] + max(*one) + len({*one}) + len([0] + [*one])
        local = [5, 6]
        local.extend(one)
        local[:1] = one
        total, *rest = one
    return x, local, rest
#> Sized.__len__ = lambda self: 7
#> del Sized.__len__
## items_given_to_a_part_of_a_list
class Lazy:
    asked = 0
    def __getitem__(self, i):
        self.asked += 1
        return (1, 2)[i]
lazy = Lazy()
def step(x):
    local = [3, 4, 5]
    local[1:2] = lazy
    return x * sum(local)
#> Lazy.__getitem__ = lambda self, i: (5, 6, 7)[i]
## where_arrays_lie
array = np.float32([1, 2, 4]); view = array[1:]
def step(x):
    if np.shares_memory(array, view): x = x + 1
    return x, np.may_share_memory(view, array), np.ascontiguousarray(array) is array, np.array_equal(array, view)
#> array = array.copy()
#> view = array[:2]
#> array = np.float32([[1, 0], [2, 0]])[:, 0]
## a_float_that_cannot_be_divided_by
def arguments(i): return tensor(1.0, 2.0), [0.0, 0.0, 2.0, 0.0][i % 4]
def step(x, s):
    try: return x * 1.0 % s
    except ZeroDivisionError: pass
    try: 1.0 / s
    except ZeroDivisionError as problem: return x, str(problem)
    try: 2.0 ** (s * 1000.0)
    except OverflowError as problem: return x, str(problem)
    return x
#> pass
## a_name_of_a_parameter, eager: is kept for a Parameter or buffer
class Block(nn.Module):
    def __init__(self): self.bias, self.last = rn.Parameter(rn.ones((3,))), None
block = Block()
def step(x):
    try: block.bias = x
    except TypeError as problem: x = x + len(str(problem))
    try: block.bias = 3
    except TypeError as problem: x = x + len(str(problem))
    block.last = x.sum()
    return x * block.bias
#> block.last = block.bias
#> block.last = None
## memory_of_own_arrays, eager: numpy.shares_memory() asks where arrays lie in memory
array = np.ones(3)
def step(x): return x, np.shares_memory(np.ones(2), array)
""")

# What numbers that vary are used for, and what comes of it is not: that it fails at a later call is to be seen.
FAILING: Final = (
    "5 // (4 - n)", "5 % (4 - n)", "1 << (4 - n)", "1 / (n - 4.0)", "2.0 ** (n * 250)", "math.sqrt(3 - n)", "chr(1114108 + n)",
    "float('1' + 'e' * (n // 4))", "int('0123a'[n])", "divmod(1, 4 - n)", "'%c' % (1114108 + n)", "del values[0]", "values.pop()",
    "values.remove(n)", "heapq.heappop(values)", "values[3 - n] = 1; values.pop()", "ring.popleft()", "del ring[-1]",
    "raw.append(252 + n)", "raw[0] = 252 + n", "del raw[0]", "table.pop(n)", "del table[n]", "(1, 2, 3, 4)[n]",
)  # fmt: skip
_FAILS: Final = """
steps, values, ring, raw = [0], [1, 2, 3, 4], collections.deque([1, 2, 3, 4]), bytearray(b'abcd')
table = {{1: 1, 2: 2, 3: 3}}
def step(x):
    steps[0] += 1
    n = steps[0]
    try: {statement}
    except Exception as problem: return x, type(problem).__name__, str(problem)
    return x * 2
"""


@pytest.mark.parametrize("statement", FAILING)
def test_what_fails_at_a_later_call(statement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Story(_FAILS.format(statement=statement), ["pass"], None, 9).run(monkeypatch)


@pytest.mark.parametrize("story", FOUND)
def test_found(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
