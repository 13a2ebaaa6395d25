"""Everyday Python, by the objects it is made of: data classes, decorators, generators, errors, enumerations, patterns."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

OBJECTS: Final = stories("""
## slots_post_init
@dataclasses.dataclass(slots=True)
class P:
    a: float
    b: list = dataclasses.field(default_factory=list)
    c: dataclasses.InitVar[float] = 2.0
    def __post_init__(self, c): self.b.append(self.a * c)
p = P(1.0)
def step(x):
    q = P(p.a, c=len(p.b))
    p.b.append(q.b[0])
    return x * p.b[-1] + len(p.b), q
#> p.a = 3.0
#> p.b = [5.0]
#> p = P(7.0)
## dataclass_kw_only_match
@dataclasses.dataclass
class Circle:
    r: float
@dataclasses.dataclass
class Rect:
    w: float
    h: float
shapes = [Circle(1.0), Rect(2.0, 3.0)]
def area(s):
    match s:
        case Circle(r=r) if r > 1: return r * r * 10
        case Circle(r): return r * r
        case Rect(w, h): return w * h
        case {"w": w, **rest}: return w + len(rest)
        case [first, *more]: return first + len(more)
        case None: return 0.5
        case str() as t: return float(len(t))
        case int(n) | float(n): return n
        case _: return -1.0
def step(x):
    return x * sum(area(s) for s in shapes)
#> shapes[0].r = 5.0
#> shapes.append({"w": 2.0, "k": 1, "z": 2})
#> shapes.append([4.0, 5, 6]); shapes.append((1.0,))
#> shapes.append(None); shapes.append("hello"); shapes.append(7)
#> Rect.__match_args__ = ("h", "w"); shapes.append(object)
#> shapes[2]["extra"] = 1
## property_with_setter_side
class T:
    log = []
    def __init__(self): self._v = 1.0
    @property
    def v(self):
        T.log.append('r')
        return self._v
    @v.setter
    def v(self, n):
        T.log.append('w')
        self._v = n
    @v.deleter
    def v(self):
        T.log.append('d')
        self._v = 0.0
t = T()
def step(x):
    t.v = t.v + 1.0
    y = x * t.v
    if t.v > 6: del t.v
    return y
#> t._v = 5.5
#> T.log.clear()
## nonlocal_chain
def make():
    a = 1.0
    b = [0]
    def bump():
        nonlocal a
        a = a * 2 if a < 50 else 1.0
        b[0] += 1
        return a
    def get(): return a, b
    def put(v):
        nonlocal a
        a = v
    return bump, get, put
bump, get, put = make()
def step(x):
    y = x * bump()
    a, b = get()
    return y + a + b[0] + bump()
#> put(7.0)
#> get()[1][0] = 100
## generator_send_throw
def gen(k):
    total = k
    while True:
        try:
            v = yield total
            total += v if v is not None else 0
        except ValueError:
            total = -1
        except GeneratorExit:
            log.append('closed')
            raise
log = []
k = 2.0
def step(x):
    g = gen(k)
    next(g)
    a = g.send(3.0)
    b = g.throw(ValueError())
    c = g.send(1.5)
    g.close()
    return x * a + b * c
#> k = 5.0
#> log.clear()
## yield_from_return
def inner(n):
    for i in range(n):
        yield i * scale
    return n * 10
def outer(n):
    r = yield from inner(n)
    yield r
n, scale = 3, 1.0
def step(x): return x * sum(outer(n)), list(outer(2))
#> n = 5
#> scale = 0.5
## context_manager_class_swallow
class Guard:
    depth, swallow = 0, True
    events = []
    def __enter__(self):
        Guard.depth += 1
        return self
    def __exit__(self, kind, value, tb):
        Guard.depth -= 1
        Guard.events.append(None if kind is None else kind.__name__)
        return Guard.swallow
g = Guard()
fail = False
def step(x):
    y = x
    with g as h, Guard():
        y = y * (h.depth + 1)
        if fail: raise KeyError('a')
        y = y + 1
    return y
#> fail = True
#> Guard.swallow = False
#> fail = False
## exitstack_callbacks
order = []
def step(x):
    with contextlib.ExitStack() as s:
        s.callback(order.append, 'a')
        s.enter_context(contextlib.nullcontext(3))
        s.push(lambda *a: order.append(len(a)))
        y = x * len(order)
    return y + len(order)
#> order.clear()
## suppress_and_closing
class R:
    closed = 0
    def close(self): R.closed += 1
table = {}
def step(x):
    k = 1.0
    with contextlib.suppress(KeyError):
        k = table['k']
    with contextlib.closing(R()) as r:
        k += r.closed
    return x * k
#> table['k'] = 5.0
#> R.closed = 100
## decorator_with_state
def counted(f):
    @functools.wraps(f)
    def w(*a, **k):
        w.calls += 1
        return f(*a, **k) * w.calls
    w.calls = 0
    return w
@counted
def g(x, k=1.0): return x + k
def step(x): return g(x) + g(x, k=2.0) + g.calls
#> g.calls = 10
#> g = counted(lambda x, k=3.0: x - k)
## decorator_class
class memo:
    def __init__(self, f): self.f, self.seen = f, {}
    def __call__(self, *a):
        if a not in self.seen: self.seen[a] = self.f(*a)
        return self.seen[a]
    def __get__(self, o, k): return functools.partial(self, o)
class A:
    k = 1.0
    @memo
    def f(self, n): return n * self.k
a = A()
n = 2
def step(x): return x * a.f(n)
#> A.k = 3.0
#> n = 3
#> vars(A)['f'].seen.clear()
## retry_decorator
def retry(times):
    def deco(f):
        def w(*a):
            for i in range(times):
                try: return f(*a, i)
                except ValueError as e: errors.append(str(e))
            raise RuntimeError('gave up')
        return w
    return deco
errors = []
limit = 1
@retry(3)
def g(x, i):
    if i < limit: raise ValueError(f'try {i} of {limit}')
    return x * (i + 1)
def step(x): return g(x)
#> limit = 2
#> limit = 5
#> limit = 0
## singledispatch
@functools.singledispatch
def f(v): return 1.0
@f.register
def _(v: int): return v * 2.0
@f.register(list)
def _(v): return len(v) * 3.0
v = 3
def step(x): return x * f(v)
#> v = [1, 2]
#> f.register(str, lambda v: 9.0); v = 'a'
#> v = 2.5
#> f.register(float, lambda v: v * 100)
## partialmethod
class A:
    base = 1.0
    def f(self, a, b): return a * self.base + b
    g = functools.partialmethod(f, 2.0)
    h = functools.partialmethod(f, b=5.0)
a = A()
def step(x): return x * a.g(3.0) + a.h(1.0)
#> A.base = 4.0
#> A.g = functools.partialmethod(A.f, 7.0)
#> A.f = lambda self, a, b: -a
## cached_property_lock
class A:
    made = 0
    def __init__(self, n): self.n = n
    @functools.cached_property
    def table(self):
        A.made += 1
        return {i: i * self.n for i in range(3)}
a = A(2.0)
def step(x):
    a.table[0] += 1
    return x * a.table[2] + a.table[0] + A.made
#> del a.table
#> a = A(5.0)
## reduce_initial_effects
seen = []
def f(a, b):
    seen.append(b)
    return a + b
vals = [1.0, 2.0]
def step(x): return x * functools.reduce(f, vals, 0.5) + len(seen)
#> vals.append(3.0)
#> seen.clear()
## total_ordering_mutates, eager: something is changed while C code may call the __eq__ of a V
@functools.total_ordering
class V:
    compared = 0
    def __init__(self, v): self.v = v
    def __eq__(self, o): return self.v == o.v
    def __lt__(self, o):
        V.compared += 1
        return self.v < o.v
vs = [V(3.0), V(1.0), V(2.0)]
def step(x): return x * min(vs).v + max(vs).v * (vs[0] >= vs[1]) + V.compared
#> vs[1].v = 10.0
#> V.compared = 0
## itertools_pairwise_batched
vals = [1.0, 2.0, 4.0, 8.0]
def step(x):
    a = [q - p for p, q in itertools.pairwise(vals)]
    b = list(itertools.accumulate(vals, lambda s, v: s * 2 + v, initial=1.0))
    c = list(itertools.dropwhile(lambda v: v < 3, vals))
    d = [*itertools.filterfalse(lambda v: v > 3, vals)]
    e = [*itertools.permutations(vals[:2])]
    return x * sum(a) + b[-1], c, d, e
#> vals.append(0.5)
#> vals[0] = 100.0
## groupby_state
rows = [('a', 1.0), ('a', 2.0), ('b', 3.0)]
def step(x):
    out = {}
    for k, g in itertools.groupby(rows, key=operator.itemgetter(0)):
        out[k] = sum(v for _, v in g)
    return x * out['a'] + out.get('b', 0), out
#> rows.append(('b', 1.0))
#> rows.insert(1, ('b', 9.0))
#> rows.sort()
## chainmap_child, traces: 12
base = collections.ChainMap({'a': 1.0})
def step(x):
    c = base.new_child({'b': 2.0})
    c['a'] = c['a'] + 1
    base['n'] = base.get('n', 0) + 1
    return x * c['a'] + c['b'] + base['a'] + base['n'] + len(c.parents)
#> base['a'] = 5.0
#> base.maps.insert(0, {'a': 9.0})
#> base = collections.ChainMap({'a': 2.0}, {'n': 10})
## ordered_lru
cache = collections.OrderedDict()
key = 'a'
def step(x):
    if key in cache:
        cache.move_to_end(key)
    else:
        cache[key] = float(len(cache) + 1)
        if len(cache) > 2: cache.popitem(last=False)
    return x * cache[key] + len(cache), list(cache)
#> key = 'b'
#> key = 'c'
#> key = 'a'
#> cache.move_to_end('c', last=False)
## counter_most_common, traces: 12
c = collections.Counter('abracadabra')
def step(x):
    c.update('ab')
    c.subtract({'r': 1})
    return x * c.most_common(1)[0][1] + c.total() + (c['zz']), (c & collections.Counter(a=3)), sorted(c.elements())[:2]
#> c['z'] = 100
#> c.clear()
## userdict_missing
class U(collections.UserDict):
    def __missing__(self, k): return 7.0
    def __setitem__(self, k, v): super().__setitem__(k, v * 2)
u = U(a=1.0)
def step(x):
    u['b'] = u['a'] + 1
    return x * u['b'] + u['zz'] + len(u) + ('b' in u)
#> u['a'] = 5.0
#> u.data['zz'] = 1.0
#> del u['b']
## userlist_userstring, traces: 12
l = collections.UserList([1.0, 2.0])
s = collections.UserString('abc')
def step(x):
    l.append(len(s) * 1.0)
    return x * l[-1] + sum(l), s.upper()
#> l.data.clear()
#> s = collections.UserString('abcdef')
#> s.data = 'z'
## deque_rotate_extendleft, traces: 10
d = collections.deque([1.0, 2.0, 3.0], maxlen=4)
def step(x):
    d.rotate(1)
    d.extendleft([d[0] + 1, 0.5])
    d.reverse()
    return x * d[0] + d[-1] + len(d), list(d)
#> d.clear(); d.extend([1.0, 5.0])
#> d.remove(d[0])
#> d = collections.deque([1.0], maxlen=2)
## enum_flag_iter
class F(enum.IntFlag):
    A = 1
    B = 2
    C = 4
class M(enum.Enum):
    ONE = 1
    TWO = 2
    def gain(self): return self.value * scale
    @classmethod
    def _missing_(cls, v): return cls.ONE
scale, mode, flags = 1.0, M.ONE, F.A
def step(x):
    return x * mode.gain() * M(2).value * M['ONE'].value * M(99).value + (flags & F.A) + len(list(F)) + bool(flags & F.B), mode.name, [m.name for m in M]
#> scale = 2.0
#> mode = M.TWO
#> flags = F.A | F.B
#> flags ^= F.A
#> M.ONE.extra = 3; M.gain = lambda self: 0.25
## enum_members_with_state
class L(enum.Enum):
    A = 'a'
    def __init__(self, v): self.count = 0
def step(x):
    L.A.count += 1
    return x * L.A.count
#> L.A.count = 50
## strenum_keys
class K(enum.StrEnum):
    LR = enum.auto()
    WD = enum.auto()
conf = {K.LR: 0.1, 'wd': 2.0}
def step(x): return x * conf['lr'] + conf[K.WD]
#> conf['lr'] = 5.0
#> conf[K.WD] = 7.0
## format_strings
name, val, w = 'loss', 3.14159, 10
class O:
    def __format__(self, spec): return f'<{spec}:{val:.2f}>'
    def __repr__(self): return f'O({w})'
    def __str__(self): return 's' * w
o = O()
def step(x):
    return x * len(f'{name!r:>{w}}|{val:{w}.3f}|{o:abc}|{o!r}|{o}'), '%s %5.1f %r' % (name, val, o), '{0.denominator} {1[0]} {n}'.format(3, [w], n=name)
#> w = 12
#> val = 2.71828
#> name = 'x'
#> O.__format__ = lambda self, s: 'q'
## global_del
temp = 5.0
def step(x):
    global temp, made
    try:
        y = x * temp
        del temp
    except NameError:
        y = x
        temp = 2.0
    made = 1
    return y
#> temp = 9.0
#> del made
## del_everything
d = {'a': 1.0, 'b': 2.0, 'c': 3.0}
o = types.SimpleNamespace(v=1.0)
l = [1.0, 2.0, 3.0]
def step(x):
    if 'a' in d:
        v = d['a']
        del d['a'], l[0]
        if hasattr(o, 'v'): del o.v
    else:
        v = 9.0
        d['a'] = len(l) + 1.0
        l.insert(0, v)
        o.v = v
    return x * v + len(l) + len(d)
#> d.clear()
#> o.v = 3
#> l[:] = [1.0, 2.0]; d['a'] = 4.0
## exceptions_as_flow
class Stop(Exception):
    def __init__(self, v): self.v = v
def find(vals, k):
    for v in vals:
        if v > k: raise Stop(v)
    raise LookupError(k)
vals, k = [1.0, 5.0, 3.0], 2.0
def step(x):
    try:
        find(vals, k)
    except Stop as s:
        return x * s.v
    except LookupError as e:
        return x + e.args[0]
    else:
        return -x
    finally:
        trail.append(k)
trail = []
#> k = 4.0
#> k = 50.0
#> vals.append(99.0)
## finally_overrides
log = []
def f(n):
    for i in range(3):
        try:
            if i == n: return i * 1.0
            if i > n: raise ValueError(i)
        except ValueError:
            continue
        finally:
            log.append(i)
            if flag and i == 2: return 50.0
    return -1.0
n, flag = 0, False
def step(x): return x * f(n) + len(log)
#> n = 7
#> flag = True
#> n = -3
## exception_chain_notes
def step(x):
    try:
        try: table['k']
        except KeyError as e:
            e.add_note('hint')
            raise ValueError('bad') from e
    except ValueError as e:
        return x * len(e.__cause__.__notes__), type(e.__cause__).__name__, repr(e), str(e.__context__)
    return x * 9
table = {}
#> table['k'] = 1
#> del table['k']
## exception_group
def step(x):
    out = []
    try:
        raise ExceptionGroup('g', [ValueError(1), KeyError('k'), TypeError('t')][:n])
    except* ValueError as g:
        out.append(len(g.exceptions))
    except* (KeyError, TypeError) as g:
        out.append(len(g.exceptions) * 10)
    return x * sum(out)
n = 3
#> n = 1
#> n = 2
""")


@pytest.mark.parametrize("story", OBJECTS)
def test_everyday_objects(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
