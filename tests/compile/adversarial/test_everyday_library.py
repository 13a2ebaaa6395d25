"""Everyday Python, by what it uses: containers of the library, arrays, modules that are patched, special methods."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

LIBRARY: Final = stories("""
## array_array, eager: 'global a' is a array, whose content cannot be watched
import array
a = array.array('d', [1.0, 2.0])
def step(x):
    a[0] += 1
    a.append(0.5)
    return x * a[0] + sum(a) + len(a)
#> a[1] = 50.0
#> del a[1:]
## memoryview_of_bytearray, eager: 'global m' is a memoryview, a view of something outside
b = bytearray(b'abc')
m = memoryview(b)
def step(x):
    m[0] = (m[0] + 1) % 256
    return x * m[0] + len(m) + b[1]
#> b[0] = 5
#> m[1] = 9
## bytearray_ops, traces: 9
b = bytearray(b'abc')
def step(x):
    b.append(100)
    b[0] = (b[0] + 1) % 200
    b.extend(b'xy')
    del b[1]
    return x * b[0] + len(b) + b.count(100), bytes(b[:2])
#> b.clear(); b.extend(b'hello')
#> b[0] = 0
## weakref_callback_state
class N: v = 1.0
n = N()
dead = []
r = weakref.ref(n, lambda _: dead.append(1))
def step(x):
    o = r()
    return x * (o.v if o is not None else 0.0) + len(dead)
#> n.v = 3.0
#> del n
## contextvar_tokens
import contextvars
cv = contextvars.ContextVar('cv', default=1.0)
def inner(x): return x * cv.get()
def step(x):
    t = cv.set(cv.get() + 1)
    try: return inner(x)
    finally: cv.reset(t)
#> cv.set(10.0)
#> cv = contextvars.ContextVar('cv2', default=0.5)
## copy_context_run, eager: _contextvars.copy_context() is written in C
import contextvars
cv = contextvars.ContextVar('cv', default=1.0)
def inc(k):
    cv.set(cv.get() + k)
    return cv.get()
def step(x):
    c = contextvars.copy_context()
    return x * c.run(inc, 2.0) + cv.get()
#> cv.set(5.0)
## re_module_functions
pat, text = r'(\\w)(\\d)', 'a1 b2 c3'
def step(x):
    return x * len(re.findall(pat, text)), re.sub(pat, r'\\2\\1', text), re.split(r'\\s', text), re.fullmatch(pat, text) is None, [m.start() for m in re.finditer(pat, text)]
#> text = 'zz'
#> pat = 'z'
#> re.purge()
## struct_pack, eager: _struct.pack() is written in C
import struct
fmt, v = '<if', (3, 2.5)
def step(x):
    raw = struct.pack(fmt, *v)
    a, b = struct.unpack(fmt, raw)
    return x * a + b, struct.calcsize(fmt)
#> v = (4, 1.5)
#> fmt = '>if'
## datetime_arith
import datetime
d = datetime.datetime(2024, 1, 31, 12)
delta = datetime.timedelta(hours=5)
def step(x):
    e = d + delta
    return x * e.hour, e.isoformat(), (e - d).total_seconds(), e > d, e.replace(year=2000), d.strftime('%j')
#> delta = datetime.timedelta(days=400)
#> d = datetime.datetime(1999, 1, 1)
## decimal_context, eager: 'global a' is a Decimal, whose content cannot be watched
import decimal
a = decimal.Decimal('1.1')
def step(x): return x * float(a / 3), str(a * 3), a.quantize(decimal.Decimal('0.1'))
#> decimal.getcontext().prec = 3
#> a = decimal.Decimal('7')
#> decimal.getcontext().prec = 28
## fractions_arith, traces: 6
import fractions
a = fractions.Fraction(1, 3)
def step(x):
    global a
    a = a + fractions.Fraction(1, 6)
    return x * float(a), a.numerator, a.limit_denominator(3)
#> a = fractions.Fraction(5)
## statistics_module
import statistics
vals = [1.0, 2.0, 4.0]
def step(x): return x * statistics.mean(vals) + statistics.median(vals), statistics.pstdev(vals)
#> vals.append(9.0)
## copy_and_deepcopy, eager: a D is copied in a way of its own
class C:
    def __init__(self): self.l, self.t = [1.0], (2, [3])
    def __copy__(self):
        c = C(); c.l = self.l; copies.append('c')
        return c
class D(C):
    def __deepcopy__(self, memo):
        d = D(); d.l = copy.deepcopy(self.l, memo); copies.append('d')
        return d
copies, c, d = [], C(), D()
def step(x):
    s = copy.copy(c); s.l.append(1.0)
    e = copy.deepcopy(d); e.l.append(2.0)
    return x * len(c.l) + len(d.l) + len(e.l) + len(copies)
#> d.l.append(5.0)
#> c.l = []
#> C.__copy__ = lambda self: self
## copy_replace_state, eager: a P is copied in a way of its own
class P:
    def __init__(self, v): self.v = v
    def __getstate__(self): return {'v': self.v * 2}
    def __setstate__(self, s): self.v = s['v'] + 1
p = P(1.0)
def step(x):
    global p
    q = copy.copy(p)
    r = copy.deepcopy(p)
    return x * q.v + r.v
#> p.v = 3.0
#> P.__setstate__ = lambda self, s: setattr(self, 'v', 0.0)
## operator_length_hint
vals = [1.0, 2.0, 3.0]
def step(x): return x * operator.length_hint(vals) + operator.countOf(vals, 2.0) + operator.indexOf(vals, 3.0), operator.itemgetter(0, -1)(vals), operator.itemgetter(slice(1))(vals)
#> vals.append(2.0)
#> vals.insert(0, 3.0)
## bisect_key, traces: 9
rows = [{'t': 1, 'v': 2.0}, {'t': 5, 'v': 3.0}]
t = 3
def step(x):
    i = bisect.bisect(rows, t, key=lambda r: r['t'])
    bisect.insort(rows, {'t': t, 'v': 0.5}, key=lambda r: r['t'])
    return x * i + len(rows)
#> t = 10
#> rows.clear()
## heap_of_tuples, traces: 9
h = [(1.0, 'a'), (2.0, 'b')]
n = 0
def step(x, v):
    global n
    n += 1
    heapq.heappush(h, (v, f'n{n}'))
    k, name = heapq.heappushpop(h, (v + 0.5, 'q'))
    return x * k + len(h), name, h[0]
def arguments(i): return tensor(1.0, 2.0), (i * 7 % 5) * 0.5
#> h.clear()
#> h[:] = [(9.0, 'z')]
## heapq_merge
a, b = [1.0, 4.0], [2.0, 3.0]
def step(x): return x * sum(i * v for i, v in enumerate(heapq.merge(a, b, key=lambda v: v * s))), list(heapq.merge(a, b, reverse=False))
s = 1
#> b.append(9.0)
#> s = -1
## array_on_self_inplace, eager: an item of an array from outside is set (global s.a), and programs only read arrays
class S:
    def __init__(self): self.a, self.n = np.zeros(3, np.float32), 0
    def up(self, v):
        self.a[self.n % 3] += v
        self.n += 1
        return self.a
s = S()
def step(x): return x * rn.asarray(s.up(1.0)) + float(s.a.sum())
#> s.a[0] = 50.0
#> s.a = np.ones(3, np.float32)
## array_view_alias, eager: 'global v.base' is read, which tells where the memory of an array lies
base = np.arange(6, dtype=np.float32)
v = base[::2]
def step(x): return x * rn.asarray(v) + base[4] + v.base.shape[0], np.shares_memory(v, base)
#> base[2] = 50.0
#> v = base[1::2]
#> v = v.copy()
## array_dtype_changed
a = np.array([1, 2, 3])
def step(x): return x * rn.asarray(a), a.dtype.name, a.itemsize, a.flags.writeable
#> a = a.astype(np.float32)
#> a.flags.writeable = False
#> a = a[::-1]
## array_subclass_attr
class A(np.ndarray):
    gain = 1.0
a = np.arange(3, dtype=np.float32).view(A)
def step(x): return x * rn.asarray(np.asarray(a)) * a.gain
#> a.gain = 3.0
#> a[0] = 9.0
#> A.gain = 5.0; del a.gain
## frame_like_loc, traces: 12
class Loc:
    def __init__(self, f): self.f = f
    def __getitem__(self, k): return self.f.rows[k[0]][k[1]]
    def __setitem__(self, k, v): self.f.rows[k[0]][k[1]] = v
class Frame:
    def __init__(self): self.rows = [{'a': 1.0, 'b': 2.0}, {'a': 3.0, 'b': 4.0}]
    @property
    def loc(self): return Loc(self)
    def __iter__(self): return iter(self.rows[0])
    def apply(self, f): return [f(r) for r in self.rows]
    def __getattr__(self, n):
        if n in self.__dict__['rows'][0]: return [r[n] for r in self.rows]
        raise AttributeError(n)
    def __array__(self, dtype=None, copy=None): return np.array([list(r.values()) for r in self.rows], dtype)
df = Frame()
def step(x):
    df.loc[0, 'a'] = df.loc[0, 'a'] + 1
    return x * sum(df.a) + sum(df.apply(lambda r: r['b'])) + len(list(df)) + float(np.asarray(df).sum())
#> df.loc[1, 'b'] = 50.0
#> df.rows.append({'a': 0.0, 'b': 1.0})
#> df.rows = df.rows[1:]
## module_attribute_patched
m = types.ModuleType('helpers'); m.scale = 2.0
exec('def f(x): return x * scale', m.__dict__)
def step(x): return m.f(x)
#> m.scale = 3.0
#> m.f = lambda x: x - 1
#> m.__getattr__ = lambda n: 5.0
#> del m.f; m.f2 = 1
## module_getattr_pep562
m = types.ModuleType('helpers')
state = {'k': 2.0}
def ga(n):
    if n in state: return state[n]
    raise AttributeError(n)
m.__getattr__ = ga
def step(x): return x * m.k + getattr(m, 'zz', 1.0)
#> state['k'] = 5.0
#> state['zz'] = 9.0
#> m.k = 0.5
#> del m.__getattr__
## stdlib_patched
import math as mm
def step(x): return x * mm.floor(v) + math.hypot(3, 4)
v = 2.5
_floor = math.floor
#> math.floor = lambda v: 100
#> math.floor = _floor
## class_dict_order_and_mro_patch
class A:
    def f(self): return 1.0
class B(A): pass
class C(B):
    def g(self): return super().f() + self.f()
c = C()
def step(x): return x * c.g()
#> B.f = lambda self: 10.0
#> A.f = lambda self: 3.0
#> C.f = lambda self: super(C, self).f() * 2
#> del B.f
#> del C.f
## dunder_bool_side
class B:
    n = 0
    def __bool__(self):
        self.n += 1
        return self.n % 3 != 0
b = B()
def step(x):
    y = x
    if b: y = y + 1
    if not b: y = y * 2
    return y * (2.0 if b and b else 3.0) if any([b, b]) else y - 7
#> b.n = 100
#> B.__bool__ = lambda self: False
#> del B.__bool__
#> B.__len__ = lambda self: 0
## dunder_len_as_truth
class L:
    items = [1]
    def __len__(self): return len(self.items)
l = L()
def step(x): return x * (2.0 if l else 3.0) + len(l)
#> l.items = []
#> L.items.append(2); del l.items
#> L.__bool__ = lambda self: False
## dunder_contains_iter_fallback
class C:
    def __init__(self): self.n = 0
    def __iter__(self):
        self.n += 1
        yield from range(self.n)
c = C()
def step(x): return x * ((3 in c) + 1) + c.n
#> c.n = 0
#> C.__contains__ = lambda self, v: False
#> C.__contains__ = None
## iter_reentrancy
class R:
    def __init__(self): self.l, self.open = [1.0, 2.0, 3.0], 0
    def __iter__(self):
        self.open += 1
        for v in self.l: yield v * self.open
        self.open -= 1
r = R()
def step(x):
    s = 0.0
    for a in r:
        for b in r: s += a * b
    it = iter(r); next(it)
    return x * s + r.open
#> r.open = 0
#> r.l.append(0.5)
## list_mutated_while_iterated, traces: 9
l = [1.0, 2.0, 3.0]
def step(x):
    s = 0.0
    for v in l:
        s += v
        if v > 2.5: l.append(0.5) if len(l) < 6 else l.remove(v)
    return x * s + len(l)
#> l[:] = [3.0]
#> l.extend([3.0, 4.0])
## dict_changed_while_iterated
d = {'a': 1.0, 'b': 2.0}
def step(x):
    try:
        for k in d:
            if d[k] > 1.5: d['c' + k] = 0.1
    except RuntimeError as e:
        return x * len(d), str(e)
    return x * sum(d.values())
#> d.clear()
#> d['q'] = 9.0
## dunder_call_class_attr
class F:
    def __call__(self, v): return v * 2
f = F()
f.__call__ = lambda v: v * 100
def step(x): return f(x)
#> F.__call__ = lambda self, v: v - 1
#> F.__call__ = F()
## list_subclass, traces: 15
class L(list):
    total = 0.0
    def append(self, v):
        self.total += v
        super().append(v)
    def __getitem__(self, i): return super().__getitem__(i) * 2 if not isinstance(i, slice) else L(list.__getitem__(self, i))
l = L([1.0])
def step(x):
    l.append(len(l) + 0.5)
    return x * l[-1] + l.total + sum(l) + len(l[1:])
#> l.total = 0.0
#> list.append(l, 9.0)
#> l.clear()
#> del L.__getitem__
## dict_subclass_attrdict
class AD(dict):
    def __getattr__(self, n):
        try: return self[n]
        except KeyError: raise AttributeError(n)
    def __setattr__(self, n, v): self[n] = v
    def __delattr__(self, n): del self[n]
c = AD(lr=0.1, net=AD(w=2.0))
def step(x):
    c.n = c.get('n', 0) + 1
    if hasattr(c, 'tmp'): del c.tmp
    return x * c.net.w * c.lr + c.n
#> c.net.w = 5.0
#> c['tmp'] = 1
#> c.net = AD(w=0.5)
#> c.update(lr=2.0)
## int_str_subclasses
class I(int):
    def __add__(self, o): return I(int(self) + o + bias)
class S(str):
    def upper(self): return S('U' + self)
    def __len__(self): return 50
i, s, bias = I(2), S('ab'), 1
def step(x): return x * (i + 1) + len(s), s.upper(), f'{s}{i}', i * 2, i == 2
#> bias = 10
#> i = I(5)
#> s = S('xyz')
#> S.__len__ = lambda self: 3
## namedtuple_subclass, eager: the class P is reached through a class that outlives it
class P(collections.namedtuple('P', 'a b')):
    __slots__ = ()
    @property
    def total(self): return self.a + self.b * w
w, p = 1.0, P(1.0, 2.0)
def step(x):
    a, b = p
    q = p._replace(a=p.b)
    return x * p.total + a - b + q.total, q, p._asdict(), p._fields
#> w = 5.0
#> p = P(7.0, 0.5)
#> P.total = property(lambda self: -1.0)
""")


@pytest.mark.parametrize("story", LIBRARY)
def test_everyday_library(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
