"""Containers of the library, functions that keep results and iterators, changed between calls."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

CASES: Final = """
## counter
class B:
    pass
b = B()
b.c = collections.Counter("aab")
def step(x):
    return x * b.c["a"] + sum(b.c.values()) + b.c.most_common(1)[0][1]
#> b.c['a'] += 3
#> b.c.update('zzz')
#> b.c.subtract('a')
#> b.c.clear()
#> b.c['q']=1
## counter_w
class B:
    pass
b = B()
b.c = collections.Counter()
def step(x):
    b.c["k"] += 1
    b.c.update(["z", "z"])
    b.c["k"] -= 0
    return x * b.c["k"] + b.c["z"] + len(b.c)
#> b.c['k'] = 50
#> del b.c['z']
#> b.c = collections.Counter()
## chainmap
class B:
    pass
b = B()
b.u = {}
b.d = {"k": 2}
b.m = collections.ChainMap(b.u, b.d)
def step(x):
    return x * b.m["k"] + len(b.m)
#> b.u['k'] = 9
#> b.d['z'] = 1
#> b.m = b.m.new_child({'k': 4})
#> b.m.maps.append({'w': 1})
#> b.m.maps.reverse()
## ordereddict, traces: 10
class B:
    pass
b = B()
b.o = collections.OrderedDict(a=1, b=2)
def step(x):
    b.o.move_to_end("a")
    b.o["n"] = b.o.get("n", 0) + 1
    for i, v in enumerate(b.o.values()):
        x = x * (i + 1) + v
    return x
#> b.o.move_to_end('b')
#> b.o.popitem(last=False)
#> b.o['a'] = 7
## lru_ordered, traces: 9
class B:
    pass
b = B()
b.o = collections.OrderedDict()
b.n = 0
def step(x):
    k = b.n % 5
    b.n += 1
    if k in b.o:
        b.o.move_to_end(k)
    else:
        b.o[k] = k * 2
        if len(b.o) > 3:
            b.o.popitem(last=False)
    return x * b.o[k] + len(b.o)
#> b.n = 0
#> b.o.clear()
## deque_rot
class B:
    pass
b = B()
b.d = collections.deque([1, 2, 3], maxlen=5)
def step(x):
    b.d.rotate(1)
    b.d[0] += 1
    b.d.appendleft(b.d.pop())
    return x * b.d[0] + b.d[-1] + sum(b.d)
#> b.d.append(10)
#> b.d.rotate(-1)
#> b.d = collections.deque([5, 6], maxlen=2)
#> b.d.extend([1, 2, 3])
## deque_tensors
class B:
    pass
def X(n=3):
    return tensor(*range(1, n + 1))
b = B()
b.d = collections.deque(maxlen=4)
b.n = 1
def step(x):
    b.d.append(x * b.n)
    b.n += 1
    return sum(b.d) / len(b.d), b.d[0], list(b.d)[-1]
#> b.d.clear()
#> b.d.append(X())
#> b.d = collections.deque(b.d, maxlen=2)
## heap, traces: 12
class B:
    pass
b = B()
b.h = []
b.n = 0
def step(x):
    heapq.heappush(b.h, (b.n * 7 % 5, b.n))
    b.n += 1
    if len(b.h) > 4:
        heapq.heappop(b.h)
    return x * b.h[0][0] + heapq.nsmallest(1, b.h)[0][1]
#> b.h.clear()
#> heapq.heappush(b.h, (-1, 0))
#> b.n = 3
## heap_tensors, traces: 6
class B:
    pass
b = B()
b.h = []
b.n = 0
def step(x):
    heapq.heappush(b.h, (-(b.n * 3 % 7), b.n, x * b.n))
    b.n += 1
    return b.h[0][2], len(b.h), heapq.heappop(b.h)[2] if len(b.h) > 3 else x
#> b.h.clear()
## bisect, traces: 9
class B:
    pass
b = B()
b.l = []
b.n = 0
def step(x):
    bisect.insort(b.l, (b.n * 5) % 7)
    b.n += 1
    return x * b.l[0] + bisect.bisect(b.l, 3)
#> b.l = [1, 2]
#> b.l.reverse()
## namedtuple
class B:
    pass
b = B()
P = collections.namedtuple("P", "a b", defaults=[3])
b.p = P(2)
def step(x):
    return x * b.p.a + len(b.p._fields) + b.p._replace(a=5).a
#> b.p = b.p._replace(a=9)
#> P._fields
#> b.p = P(a=9, b=100)
## namedtuple_made
class B:
    pass
b = B()
P = collections.namedtuple("P", "a b")
def step(x):
    p = P(x, 2)
    return p, p._asdict(), p.a * p.b
#> P.b = property(lambda s: 10)
#> P.__new__.__defaults__ = (5,)
## dataclass_frozen
class B:
    pass
b = B()
@dataclasses.dataclass(frozen=True)
class D:
    a: int = 2
    l: tuple = ()
b.p = D()
def step(x):
    return x * b.p.a + hash(b.p) % 7 + (b.p == D(1))
#> b.p = D(1)
#> b.p = dataclasses.replace(b.p, l=(3,))
#> object.__setattr__(b.p, 'a', 5)
## dataclass_order_post
class B:
    pass
b = B()
@dataclasses.dataclass(order=True)
class D:
    a: int = 2
    l: list = dataclasses.field(default_factory=list)
    scale: typing.ClassVar[int] = 2
    def __post_init__(self):
        self.q = self.a * self.scale
        self.l.append(self.a)
b.k = 1
def step(x):
    d = D(b.k)
    e = dataclasses.replace(d, a=d.a + 1)
    return x * d.q + (d < e) + len(dataclasses.fields(d)) + e.q, dataclasses.asdict(d), e
#> b.k = 7
#> D.scale = 3
#> D.__post_init__ = lambda s: setattr(s, 'q', 100)
## dataclass_state
class B:
    pass
b = B()
@dataclasses.dataclass
class D:
    n: int = 0
    best: int = 0
    hist: list = dataclasses.field(default_factory=list)
b.s = D()
def step(x):
    b.s.n += 1
    b.s.hist.append(b.s.n)
    b.s = dataclasses.replace(b.s, best=max(b.s.best, b.s.n % 4))
    return x * b.s.best + len(b.s.hist)
#> b.s.n = 0
#> b.s.hist = []
#> b.s = D()
## enum_state
class B:
    pass
b = B()
class E(enum.IntEnum):
    A = 1
    B = 2
    C = 2
b.e = E.A
def step(x):
    return (
        x * b.e.value
        + (b.e is E.A)
        + len(E)
        + [m.value for m in E][0]
        + E["A"].value
        + E(b.e.value).value
        + (3 if E.B > E.A else 0)
    )
#> b.e = E.B
#> b.e = E.C
## enum_attr
class B:
    pass
b = B()
class E(enum.Enum):
    A = 1
    B = 2
    def scale(self):
        return self.value * E.factor
E.factor = 2
E.A.extra = 1
E.B.extra = 2
b.e = E.A
def step(x):
    return x * b.e.scale() + b.e.extra
#> b.e.extra = 5
#> E.factor = 9
#> b.e = E.B
#> E.scale = lambda s: 1
## flags
class B:
    pass
b = B()
class F(enum.Flag):
    R = 1
    W = 2
    X = 4
b.f = F.R
def step(x):
    return x * (2 if b.f & F.R else 3) + len(list(b.f)) + b.f.value + (F.W in b.f)
#> b.f |= F.W
#> b.f ^= F.R
#> b.f = ~b.f
## enum_transition
class B:
    pass
b = B()
class E(enum.Enum):
    A = 1
    B = 2
    C = 3
b.e = E.A
def step(x):
    match b.e:
        case E.A:
            b.e = E.B
        case E.B:
            b.e = E.C
        case _:
            b.e = E.A
    return x * b.e.value
#> b.e = E.B
#> b.e = E.A
## partial
class B:
    pass
b = B()
def g(a, x, k=1):
    return x * a + k
b.p = functools.partial(g, 2, k=3)
def step(x):
    return b.p(x) + b.p.keywords["k"] + b.p.args[0]
#> b.p.keywords['k'] = 5
#> b.p = functools.partial(g, 3, k=1)
#> b.p.__setstate__((g, (7,), {'k': 2}, {}))
## partialmethod
class B:
    pass
b = B()
class C:
    def go(self, k, x):
        return x * k
    dbl = functools.partialmethod(go, 2)
b.o = C()
def step(x):
    return b.o.dbl(x)
#> C.go = lambda s, k, x: x - k
#> C.dbl = functools.partialmethod(C.go, 9)
#> b.o.dbl = lambda x: x * 0
## singledispatch
class B:
    pass
b = B()
@functools.singledispatch
def g(v):
    return 1
@g.register
def _(v: str):
    return 5
b.v = 3
def step(x):
    return x * g(b.v)
#> g.register(int)(lambda v: 10)
#> b.v = 'a'
#> b.v = True
#> g.register(bool, lambda v: 77)
## lru_cache
class B:
    pass
b = B()
K = {"k": 1}
@functools.lru_cache(maxsize=2)
def g(v):
    return v * K["k"]
b.v = 1
def step(x):
    return x * g(b.v)
#> b.v = 2
#> g.cache_clear(); K['k'] = 9
#> b.v = 1
#> b.v = 2
## wraps_decorator
class B:
    pass
b = B()
def deco(f):
    @functools.wraps(f)
    def w(*a):
        w.calls += 1
        return f(*a) + w.calls
    w.calls = 0
    return w
@deco
def g(x):
    return x * 2
def step(x):
    return g(x)
#> g.calls = 100
#> g.__wrapped__.__code__ = (lambda x: x * 9).__code__
## reduce_acc
class B:
    pass
b = B()
b.l = [1, 2]
b.z = 1
def step(x):
    return functools.reduce(lambda a, k: a * k + b.z, b.l, x)
#> b.l.append(3)
#> b.z = 2
#> b.l = (1,)
## itertools_many
class B:
    pass
b = B()
b.l = [1, 2, 3]
b.m = [4]
def step(x):
    for a, k in itertools.product(b.l, b.m):
        x = x + a * k
    for a in itertools.accumulate(b.l):
        x = x * a
    for k, g in itertools.groupby(b.l, key=lambda v: v % 2):
        x = x + k * len(list(g))
    return (
        x
        + sum(itertools.islice(itertools.cycle(b.l), 5))
        + sum(itertools.chain(b.l, b.m))
        + len(list(itertools.combinations(b.l, 2)))
        + sum(itertools.takewhile(lambda v: v < 3, b.l))
    )
#> b.l.append(5)
#> b.m[0] = 7
#> b.l.sort(reverse=True)
## count_cycle_outside, eager: <string>:7:
class B:
    pass
b = B()
b.c = itertools.count()
b.y = itertools.cycle([1, 2, 3])
def step(x):
    return x * next(b.c) + next(b.y)
#> b.c = itertools.count(5, 2)
#> next(b.c)
#> next(b.y)
#> b.y = itertools.cycle([8])
## iter_outside, eager: <string>:7:
class B:
    pass
b = B()
b.l = [1, 2, 3, 4, 5]
b.i = iter(b.l)
def step(x):
    return x * next(b.i, 50)
#> b.i = iter([9, 8])
#> b.l.append(6)
## contextvar
import contextvars
class B:
    pass
b = B()
V = contextvars.ContextVar("V", default=2)
V2 = contextvars.ContextVar("V2")
def step(x):
    return x * V.get() + V2.get(7)
#> V.set(5)
#> tok = V2.set(1)
#> V2.reset(tok)
#> contextvars.copy_context().run(V.set, 99)
## contextvar_set
import contextvars
class B:
    pass
b = B()
V = contextvars.ContextVar("V3", default=2)
b.r = True
def step(x):
    t = V.set(V.get() + 1)
    r = x * V.get()
    (V.reset(t) if b.r else None)
    return r
#> b.r = False
#> V.set(10)
#> b.r = True
## json_state
class B:
    pass
b = B()
b.t = '{"k": 2}'
b.d = {"a": 1}
def step(x):
    return x * json.loads(b.t)["k"] + len(json.dumps(b.d, sort_keys=True))
#> b.t = '{"k": 9}'
#> b.d['z'] = [1, 2, {'q': None}]
#> b.d['z'][2]['q'] = 'long text'
## re_state
class B:
    pass
b = B()
b.p = "a"
b.t = "aba"
b.c = re.compile("a")
b.s = ""
def step(x):
    return x * len(re.findall(b.p, b.t)) + bool(b.c.match(b.t)) + len(re.sub("a", b.s, b.t))
#> b.t = 'banana'
#> b.p = 'an'
#> b.c = re.compile('b')
#> b.s = 'QQ'
## re_callback
class B:
    pass
b = B()
b.t = "ab"
def step(x):
    b.n = 0
    def sub(m):
        b.n += 1
        return m.group() * 2
    r = re.sub("[a-c]", sub, b.t)
    return x * b.n + len(r)
#> b.t = 'abcabc'
#> b.t = 'z'
"""


@pytest.mark.parametrize("story", stories(CASES))
def test_a_story(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
