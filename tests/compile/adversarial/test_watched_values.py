"""What stands between a guard and a value: members asked for by numbers that vary, objects that hold tensors, versions
of Modules that one compiled function advances and another reads, and what is refused."""

from __future__ import annotations

from typing import Any, Final

import pytest

import runnel as rn
from runnel import nn
from tests.compile.adversarial.stories import Story, stories

VARYING: Final = stories("""
## members_that_change, traces: 16
allowed, listed, table = {1, 2, 3}, [1, 2, 3], {1: "a", 2: "b"}
s = types.SimpleNamespace(i=1)
def step(x):
    return x * (2 if s.i in allowed else 1) + (10 if s.i in listed else 0) + (100 if s.i in table else 0)
#> s.i = 2
#> s.i = 3
#> s.i = 5
#> allowed.add(5)
#> listed.append(5)
#> table[5] = "c"
#> allowed.discard(5)
#> s.i = 1
#> listed.remove(1)
#> del table[1]
## item_set_at_an_index_that_varies, traces: 16
values, log = [0.0] * 4, []
s = types.SimpleNamespace(i=0)
def step(x):
    try:
        values[s.i] = 1.0
    except IndexError:
        log.append("no")
    return x * len(log)
#> s.i = 1
#> s.i = 2
#> s.i = -1
#> s.i = 7
#> values.extend([0.0] * 4)
#> s.i = 3
#> del values[2:]
## counters_of_any_size, traces: 12
s = types.SimpleNamespace(n=1)
def step(x): return x * s.n
#> s.n = 2
#> s.n = 3
#> s.n = 2**53
#> s.n = 2**53 + 1
#> s.n = -(2**60) - 1
#> s.n = 10**400
#> s.n = 4
## texts_filled_in, traces: 8
s, seen = types.SimpleNamespace(n=1), []
def step(x):
    text = "step %d"
    text %= s.n
    seen.append(text)
    return x
#> s.n = 2
#> s.n = 3
#> s.n = 40
## parts_of_numbers, traces: 8
s, seen = types.SimpleNamespace(n=5), []
def step(x):
    seen.append((s.n & 3, s.n | 8, s.n ^ 1, s.n << 2, s.n >> 1, -s.n, s.n % 4, s.n // 2, ~s.n))
    return x
#> s.n = 6
#> s.n = 7
#> s.n = 0
#> s.n = -9
## parts_of_texts, traces: 16
s, seen = types.SimpleNamespace(i=0, t="a"), []
def step(x):
    seen.append(("abcd"[s.i], b"abcd"[s.i], (1, 2, 3, 4)[s.i], s.t in "abc", "a" in s.t, s.i in range(2), s.t[0]))
    return x
#> s.i = 1
#> s.i = 2
#> s.t = "c"
#> s.t = "d"
#> s.t = "da"
#> s.i = 3
## keys_of_many_kinds, traces: 16
class Key: pass
key, s = Key(), types.SimpleNamespace(n=1)
table, plain = {key: 1}, {}
def step(x):
    table[s.n] = plain[s.n] = s.n * 2
    plain[s.n, "a"] = s.n
    return x * len(table) + len(plain) + table[key]
#> s.n = 2
#> s.n = 3
#> table[key] = 4
#> s.n = 4
## name_deleted_and_read, traces: 12
name, s = 1.0, types.SimpleNamespace(n=1)
def step(x):
    global name
    if s.n > 2:
        del name
    try:
        result = x * name
    except NameError:
        result = x * 7
    name = 2.0 * s.n
    return result
#> s.n = 2
#> s.n = 3
#> name = 9.0
#> s.n = 1
## followed_until_there_is_an_object, eager: perhaps, traces: 16
class Odd:
    asked = 0
    def __eq__(self, other):
        Odd.asked += 1
        return False
s, values = types.SimpleNamespace(n=5), [1, 2, 3]
def step(x):
    values.append(s.n)
    values.remove(s.n)
    return x * len(values)
#> values[-1] = 9
#> values[-1] = 10
#> s.n = 6
#> s.n = 7
#> values[0] = Odd()
#> s.n = 8
## functions_of_numbers, traces: 4
s, seen = types.SimpleNamespace(v=0.5, n=12, t="a"), []
def step(x):
    v, n = s.v, s.n
    seen.append((ord(s.t), operator.getitem((1, 2, 3, 4, 5, 6, 7), n % 7)))
    seen.append((
        abs(v), min(v, 3.0), max(v, 0.1), round(v, 1), float(n), int(v), pow(v, 2), divmod(n, 5), sum([v, 1.0]),
        sorted([v, 0.2]), str(n), repr(n), ascii(n), format(n, "d"), hex(n), oct(n), bin(n), chr(n + 60), operator.mod(n, 5),
    ))
    seen.append((
        math.sqrt(v), math.exp(v), math.log(v), math.log2(v), math.log10(v), math.log1p(v), math.fsum([v, 1.0]),
        math.prod([v, 2.0]), math.expm1(v), math.sin(v), math.cos(v), math.tan(v), math.tanh(v), math.sinh(v), math.cosh(v),
        math.atan(v), math.atan2(v, 2.0), math.asin(v), math.acos(v), math.pow(v, 2.0), math.floor(v), math.ceil(v),
        math.trunc(v), math.fabs(v), math.copysign(v, -1.0), math.hypot(v, 2.0), math.fmod(v, 0.3), math.isfinite(v),
    ))
    seen.append((
        math.isnan(v), math.isinf(v), math.degrees(v), math.radians(v), math.erf(v), math.erfc(v), math.gamma(v),
        math.lgamma(v), math.gcd(n, 8), math.lcm(n, 8), math.comb(n, 2), math.isclose(v, 0.5), math.remainder(v, 0.3),
        math.ldexp(v, 2), math.isqrt(n),
    ))
    return x
#> s.v, s.n, s.t = 0.625, 13, "b"
#> s.v, s.n, s.t = 0.75, 14, "c"
#> s.v, s.n, s.t = 0.6875, 15, "d"
#> s.v, s.n, s.t = 0.65625, 18, "e"
#> s.v, s.n, s.t = 0.71875, 20, "f"
## grown_and_followed, traces: 12
s, values = types.SimpleNamespace(n=5), [1, 2, 3]
def step(x):
    values.append(s.n)
    values.insert(1, s.n + 1)
    last = values.pop()
    return x * last + len(values) + values[-1] + values[1]
#> s.n = 6
#> values[-1] = 9
#> values[-1] = 10
#> values.append(11)
#> values.append(12)
## followed_and_looked_at, traces: 16
s, values = types.SimpleNamespace(n=5), [1, 2, 3]
def step(x):
    values.append(s.n)
    text = json.dumps(values)
    values.pop()
    return x * len(text) + sum(map(ord, text))
#> s.n = 6
#> values[-1] = 9
#> s.n = 70
#> values[-1] = 10
#> s.n = 8
""")

OBJECTS: Final = stories("""
## distribution_whose_part_changes, traces: 8
d = rn.distributions.Normal(rn.zeros(()), rn.ones(()))
def step(x): return d.log_prob(x)
#> d.loc = rn.ones(())
#> d.scale = rn.full((), 2.0)
#> d.note = 1
#> d.__dict__.pop("note")
## method_of_a_partial, traces: 8
s = types.SimpleNamespace(k=2.0)
def scaled(k, s, x): return x * k * s.k
method = types.MethodType(functools.partial(scaled, 3.0), s)
def step(x): return rn.vmap(method)(x.reshape(1, -1))
#> s.k = 4.0
#> method = types.MethodType(functools.partial(scaled, 5.0), s)
## dates_that_are_equal, traces: 2
import datetime
s, seen = types.SimpleNamespace(day=datetime.date(2020, 1, 2)), {}
def step(x): return x * len(str({s.day: 1}))
#> s.day = datetime.date(2020, 1, 2)
#> s.day = datetime.date(2020, 1, 2)
#> s.day = datetime.date(2021, 1, 2)
""")

REFUSED: Final = stories("""
## variable_outside_deleted, eager: the variable y outside is deleted
def make():
    y = 1.0
    def step(x):
        nonlocal y
        y = 2.0
        del y
        return x
    return step
step = make()
## large_array, eager: all of which would be compared at each call
a = np.zeros(1 << 18)
def step(x): return x * math.fsum(a)
## node_of_a_tensor, eager: is read
t = rn.ones(())
def step(x): return x if t._storage is None else x + 1
""")


@pytest.mark.parametrize("story", [*VARYING, *OBJECTS, *REFUSED])
def test_as_python(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor = 1.0
        self.flag: Any = None


def _told(run: Any) -> list[Any]:
    """Two functions of one Module: the first sets and deletes what the second reads."""
    gate, x = Gate(), rn.ones(())
    read = run(lambda x: x * (gate.factor if not hasattr(gate, "extra") else 100.0))

    def begins(x: rn.Tensor) -> rn.Tensor:
        gate.extra = 1
        gate.factor = gate.factor + 1.0
        return x

    def ends(x: rn.Tensor) -> rn.Tensor:
        del gate.extra
        return x

    begin, end = run(begins), run(ends)
    seen = []
    for _ in range(4):
        seen.append(float(read(x)))
        begin(x)
        seen.append(float(read(x)))
        end(x)
        seen.append(float(read(x)))
    return seen


def test_one_sets_what_another_reads() -> None:
    assert _told(rn.compile) == _told(lambda function: function)
