"""What random programs of stateful Python (``python -m tests.fuzz programs``) found, made small."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import CaptureWarning
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
## a_gradient_that_depends_on_nothing
weight, other = rn.Parameter(rn.ones((3,))), rn.Parameter(rn.ones((3,)))
seen = []
def step(x):
    seen[:] = [p.grad for p in (weight, other)]
    weight.grad = rn.ones((3,))
    if other.grad is None: other.grad = rn.zeros((3,))
    else: other.grad = rn.ones((3,)) * 2
    return x
#> weight.grad = None
#> other.grad = None
## a_gradient_that_is_another_tensor, eager: becomes 'global saved' itself
weight, saved, seen = rn.Parameter(rn.ones((3,))), rn.ones((3,)), []
def step(x):
    weight.grad = saved
    return x
#> saved.add_(1.0); seen.append((weight.grad is saved, weight.grad * 1))
## a_gradient_of_two, eager: becomes the .grad of
weight, other, seen = rn.Parameter(rn.ones((3,))), rn.Parameter(rn.ones((3,))), []
def step(x):
    weight.grad = other.grad = x * 2
    return x
#> other.grad.add_(1.0); seen.append((weight.grad is other.grad, weight.grad * 1))
## flags_that_are_no_truths
weight, flags = rn.Parameter(rn.ones((3,))), [1]
def step(x): return x * weight, weight.requires_grad
#> weight.requires_grad = 0
#> weight.requires_grad = flags
#> flags.clear()
#> weight.requires_grad_(np.bool_(False))
## nothing_to_print_to
values = [1, 2]
def step(x):
    with contextlib.redirect_stdout(None):
        print('lost', values.pop())
    print('told', len(values))
    values.append(3)
    return x
#> values = [5]
## a_partial_of_a_partial
def affine(a, b=1, *, c=0): return a * 2 + b + c
plus = functools.partial(affine, 2, c=3)
more, told = None, []
def step(x):
    global more
    more = functools.partial(plus, b=5)
    told[:] = [more.func is affine, more.args, more.keywords]
    return x * more() * plus.keywords['c']
#> plus.keywords['c'] = 4; told.append(more())
#> plus = functools.partial(affine, 1)
#> plus = functools.partial(plus, 2)
## partials_that_become_one
def affine(a, b=1, *, c=0): return a * 2 + b + c
plus = functools.partial(affine, 2, c=3)
def step(x):
    more = functools.partial(plus, b=5)
    return x * more(), more
#> plus.keywords['c'] = 4
#> plus = functools.partial(affine, 1)
#> plus = functools.partial(plus, 2)
## objects_of_subclasses_of_built_in_classes
class Metres(float):
    unit = 'm'
    def __add__(self, other): return Metres(float(self) + other)
class Index(int): pass
class Label(str):
    def __new__(cls, text, note=None):
        self = super().__new__(cls, text.upper())
        self.note = note
        return self
class Stack(list):
    def push(self, v):
        self.append(v)
        return self
    def append(self, v): super().append(v + 1)
class Table(dict):
    def __setitem__(self, key, value): super().__setitem__(key, value * 2)
class Members(set): pass
class Bits(enum.IntFlag):
    A, B, C = 1, 2, 4
class Phase(complex): pass
counts, kept, bits = collections.Counter('abca'), {}, Bits.A
def step(x):
    global counts, bits
    counts = counts - collections.Counter(z=1)
    table = Table(start=1)
    table['next'] = len(kept)
    table.note = kept
    bits = (bits ^ Bits.B) | Bits.C
    kept.update(metres=Metres(2.5) + 1, zero=Metres(-0.0), index=Index(3), label=Label('text', x.sum()), table=table, bits=bits,
                stack=Stack([x]).push(3), members=Members((1, 'a')), phase=Phase(1j))
    kept['again'] = kept['stack']
    return x * kept['metres'] + kept['index'], kept['stack'], type(counts).__name__
#> kept['stack'].push(7); kept['label'].note.add_(1.0)
#> counts['z'] = 4
#> Metres.unit = 'mm'; Stack.push = Stack.append
#> kept.clear()
## what_is_added_before_an_iterator_fails, traces: 16
class Broken(Exception): pass
def some(n, make=lambda k: k):
    for k in range(n):
        if k == 2: raise Broken(k)
        yield make(k)
numbers, ring, members, table, told = [3], collections.deque([3], 9), {3}, {3: 3}, []
def step(x):
    local = [3]
    for change in (lambda: numbers.extend(some(3)), lambda: ring.extend(some(4)), lambda: ring.extendleft(some(3)),
                   lambda: members.update(some(2, str), some(3)), lambda: table.update(some(3, lambda k: (k, k))),
                   lambda: local.extend(some(3)), lambda: operator.iadd(numbers, some(3)), lambda: numbers.extend(some(2))):
        try: change()
        except Broken as problem: told.append(str(problem))
    try: numbers[:1] = some(3)
    except Broken: pass
    try: ring.__iadd__(some(3))
    except Broken: pass
    try: local += some(3, lambda k: x * k)
    except Broken: pass
    del numbers[7:], told[3:]
    return x, local
#> numbers.append(5)
#> members.clear(); table.clear()
#> numbers[:] = []
## an_unfinished_generator, eager: a clock is read
ends = []
def source():
    try:
        yield 1
        yield 2
    finally: ends.append('end')
def step(x):
    numbers = source()
    x = x * next(numbers)
    time.time()
    return x, len(ends)
#> ends.clear()
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


# Functions that fail at the third of four items, and leave the fourth one where it is.
STOPPING: Final = (
    "sum(items)", "max(items)", "min(items, default=0)", "math.fsum(items)", "math.prod(items)", "sum(items, 1)",
    "''.join(items)", "functools.reduce(operator.add, items)", "[].extend(2 // (v != 'x') for v in items)",
    "values.extend(v + 1 for v in items)", "sorted(items)", "bytes(items)", "3 in items", "any(v > 5 for v in items)",
)  # fmt: skip
_STOPS: Final = """
values, told = [1, 2, 'x', 3], []
def noted(v):
    told.append(v)
    return v
def step(x):
    items = map(noted, list(values))
    try: return x, {expression}
    except Exception as problem: return x, str(problem), list(items)
    finally: del values[4:]
"""


@pytest.mark.parametrize("expression", STOPPING)
def test_what_fails_leaves_the_rest_of_an_iterator(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Story(_STOPS.format(expression=expression), ["values[0] = 5", "values[:] = [1, 2, 7, 3]"], "", 9).run(monkeypatch)


# What has a value in eager calls, and is an error in compiled ones: a function that catches it does not go on.
REFUSED: Final = (
    "x[x > 0]", "x[[x[0] > 0, True]]", "rn.nonzero(x)", "rn.unique(x)", "rn.masked_select(x, x > 0)",
    "rn.repeat(x, rn.asarray(x, dtype=rn.int64))", "buffer.detach_()",
    "buffer.unsqueeze_(0)", "float(x.sum())", "rn.arange(x.sum())",
)  # fmt: skip
_REFUSES: Final = """
buffer = rn.ones((2,))
told = []
def step(x):
    try: told.append({expression})
    except Exception as problem: told.append(type(problem).__name__)
    return x * 2
"""


@pytest.mark.parametrize("expression", REFUSED)
def test_errors_of_compiled_calls_alone_are_not_caught(expression: str) -> None:
    space: dict[str, object] = {"rn": rn, "np": np}
    exec(_REFUSES.format(expression=expression), space)
    x, told = rn.asarray(np.float32([1, 2])), space["told"]
    assert isinstance(told, list)
    space["step"](x)  # type: ignore[operator]
    assert not isinstance(told.pop(), str)
    with pytest.raises(rn.core.errors.CaptureError):
        rn.compile(space["step"])(x)
    assert not told


def test_no_error_of_a_generator_that_was_left(capfd: pytest.CaptureFixture[str]) -> None:
    """Generators that a refused run did not end are closed without a word."""
    ends = []

    def source() -> Iterator[int]:
        try:
            yield 1
        finally:
            ends.append("end")

    kept: list[Iterator[int]] = []

    def step(x: rn.Tensor) -> rn.Tensor:
        kept.append(source())
        next(kept[-1])
        return x * 2

    with pytest.warns(CaptureWarning, match="a generator made in the function"):
        rn.compile(step)(rn.ones(()))
    assert ends == [] and len(kept) == 1
    assert "ignored" not in capfd.readouterr().err


@pytest.mark.parametrize("story", FOUND)
def test_found(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
