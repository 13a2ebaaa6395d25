"""Everyday Python, by the state it keeps: counters in classes, caches, registries, texts, sets; and what the interpreter keeps."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

STATE: Final = stories("""
## lt_counts_in_sort, traces: 9
class K:
    n = 0
    def __init__(self, k): self.k = k
    def __lt__(self, o):
        K.n += 1
        return self.k < o.k
ks = [K(3), K(1), K(2)]
def step(x):
    a = sorted(ks)[0].k
    ks.sort()
    b = max(ks, key=lambda k: k.k).k
    h = []
    for k in ks: heapq.heappush(h, k)
    i = bisect.bisect([K(1), K(2)], K(2))
    return x * K.n + a + b + h[0].k + i
#> K.n = 0
#> ks.reverse()
## iter_of_int_keys, traces: 9
d = {}
i = 0
def step(x):
    global i
    i += 1
    d[i] = i * 0.5
    if len(d) > 3: del d[min(d)]
    return x * sum(d.values()) + max(d, key=d.get)
#> d.clear()
#> i = 0
## property_on_metaclass_and_class_getitem, eager: an attribute of the class A is set through its metaclass
class M(type):
    @property
    def k(cls): return cls._k
    @k.setter
    def k(cls, v): cls._k = v * 2
    def __setattr__(cls, n, v):
        M.sets += 1
        super().__setattr__(n, v)
    sets = 0
class A(metaclass=M):
    _k = 1.0
    def __class_getitem__(cls, i): return i * cls._k
def step(x):
    A.k = A.k + 1
    return x * A.k + A[2] + M.sets
#> A._k = 0.5
#> M.sets = 0
## setattr_counts_in_init, eager: an attribute of a A is deleted
class A:
    sets = 0
    def __init__(self, v): self.v = v
    def __setattr__(self, n, v):
        A.sets += 1
        object.__setattr__(self, n, v)
    def __delattr__(self, n):
        A.sets -= 10
        object.__delattr__(self, n)
a = A(1.0)
def step(x):
    b = A(2.0); b.v += 1; a.v += 1
    a.t = 1; del a.t
    return x * A.sets + b.v + a.v
#> A.sets = 0
#> del A.__delattr__
## new_returns_pooled
class P:
    pool = []
    def __new__(cls, v):
        if cls.pool: return cls.pool.pop()
        return object.__new__(cls)
    def __init__(self, v): self.v = v
    def free(self): P.pool.append(self)
def step(x):
    a, b = P(1.0), P(2.0)
    r = x * a.v + b.v + len(P.pool)
    a.free()
    return r
#> P.pool.clear()
#> b = P(5.0)
## flyweight_registry
class F:
    made = {}
    def __new__(cls, k):
        if k not in cls.made:
            self = super().__new__(cls)
            self.k, self.uses = k, 0
            cls.made[k] = self
        return cls.made[k]
key = 'a'
def step(x):
    f = F(key); f.uses += 1
    return x * f.uses + len(F.made)
#> key = 'b'
#> F.made['a'].uses = 40; key = 'a'
#> F.made.clear()
## dict_replaced_on_instance, traces: 9
class O: pass
o = O(); o.v = 1.0
def step(x):
    o.v = o.v + 1
    return x * o.v + len(o.__dict__)
#> o.__dict__ = {'v': 10.0, 'w': 1}
#> o.__dict__['z'] = 1
## star_args_identity
def f(*a, **k): return a, k
args, kw = [1.0, 2.0], {'z': 3.0}
def step(x):
    a, k = f(*args, **kw, y=1.0)
    k['q'] = 1
    return x * sum(a) + sum(k.values()) + len(kw), a is not args
#> args.append(4.0)
#> kw['y2'] = 1.0
#> kw['y'] = 5.0
## kw_order_and_duplicates
def f(**k): return list(k), list(k.values())
kw = {'b': 1.0, 'a': 2.0}
def step(x):
    n, v = f(**kw)
    return x * v[0], n
#> kw = {'a': 2.0, 'b': 1.0}
#> kw[3] = 1.0
## mutable_default_args
def acc(v, into=[]):
    into.append(v)
    return len(into)
def memo(k, cache={}):
    if k not in cache: cache[k] = len(cache) + 1.0
    return cache[k]
k = 'a'
def step(x): return x * acc(1.0) + memo(k)
#> k = 'b'
#> acc.__defaults__[0].clear()
#> memo.__defaults__ = ({'b': 50.0},)
## lambda_late_binding
fs = [lambda x: x * i for i in range(3)]
gs = [lambda x, i=i: x * i for i in range(3)]
def step(x): return sum(f(x) for f in fs) + sum(g(x) for g in gs) + [h(x) for h in [lambda v: v * k]][0]
k = 2.0
#> k = 3.0
#> gs[0].__defaults__ = (9,)
#> fs.pop()
## nested_comprehension_scopes
m = [[1.0, 2.0], [3.0, 4.0]]
def step(x):
    t = [[r[i] for r in m] for i in range(len(m[0]))]
    s = {i: {j for j in r if j > 1} for i, r in enumerate(m)}
    g = sum(v * w for r in m for v in r if v > 1 for w in (1, 2))
    return x * g + t[0][1], len(s[0])
#> m[0][0] = 5.0
#> m.append([0.5, 7.0])
## loop_else_break_continue
vals, k = [1.0, 2.0, 3.0], 2.0
def step(x):
    for v in vals:
        if v > k: break
    else: v = -1.0
    n = 0
    while n < 5:
        n += 1
        if n == int(k): continue
        if n > len(vals): break
    else: n = 100
    return x * v + n
#> k = 50.0
#> vals.extend([60.0] * 5)
#> vals.clear(); vals.append(0.0)
## try_return_finally_state
s = {'open': 0, 'log': []}
def use(v):
    s['open'] += 1
    try:
        if v is None: raise TypeError('none')
        return v * s['open']
    except TypeError:
        s['log'].append('t')
        return 7.0
    finally:
        s['open'] -= 1
        s['log'].append(s['open'])
v = 1.0
def step(x): return x * use(v) + len(s['log'])
#> v = None
#> s['open'] = 3
#> s['log'].clear()
## raising_steps_keep_effects
n, limit = 0, 3
def step(x):
    global n
    n += 1
    log.append(n)
    if n > limit: raise OverflowError(f'n {n} > {limit}')
    return x * n
log = []
#> limit = 5
#> n = 0
#> limit = 100
## assert_messages
v = 1
def step(x):
    assert v < 3, f'v is {v}'
    assert isinstance(v, int)
    return x * v
#> v = 5
#> v = 'a'
#> v = 2
## exception_attrs_and_reraise
class E(Exception):
    count = 0
    def __init__(self, *a, code=1):
        super().__init__(*a); self.code = code; E.count += 1
def f(k):
    try: raise E('a', code=k)
    except E as e:
        if e.code > 2: raise
        return e.code
k = 1
def step(x):
    try: return x * f(k) + E.count
    except E as e:
        e.code += 1
        return x * e.code, e.args, str(e)
#> k = 5
#> E.count = 0
## stored_exception, eager: a KeyError made in the function leaves it
last = None
def step(x):
    global last
    try: d['k']
    except KeyError as e: last = e
    return x * (1 if last is None else len(last.args))
d = {}
#> d['k'] = 1
#> last = None
## bool_of_containers_chain
a, b, c = [], {}, ''
def step(x):
    v = a or b or c or 5.0
    w = a and 1.0 or 2.0
    return x * (v if isinstance(v, float) else 9.0) + w + (not a) + bool(b)
#> a.append(1)
#> a.clear(); b['k'] = 1
#> b.clear(); c = 'z'
## slices_everywhere, traces: 12
l, s = [1.0, 2.0, 3.0, 4.0, 5.0], slice(1, 3)
def step(x):
    l[s] = [v + 1 for v in l[s]]
    l[::2] = l[::-2]
    del l[5:]
    return x * sum(l[-2:]) + l[::-1][0] + s.start, l[s]
#> s = slice(0, 2)
#> l.append(50.0)
#> l[:] = [1.0, 2.0, 3.0]
## tuple_growing
t = ()
def step(x):
    global t
    t = t + (len(t) * 0.5,)
    if len(t) > 5: t = t[1:]
    return x * sum(t) + t[-1]
#> t = (10.0,)
## string_building, traces: 6
s = ''
def step(x):
    global s
    s += str(len(s))
    return x * len(s) + s.count('1'), s[-3:], s.upper(), s.encode()[:2]
#> s = 'abc'
## int_bits
flags = 0
def step(x):
    global flags
    flags ^= 1 << (flags.bit_length() % 5)
    flags |= 2
    return x * (flags & 7) + flags.bit_count() + (~flags), flags.to_bytes(4, 'little'), bin(flags)
#> flags = 255
## float_methods, traces: 6
v = 0.5
def step(x):
    global v
    v = v * 1.5 % 7.0
    return x * v + math.floor(v) + v.is_integer(), v.hex(), round(v, 2), v.as_integer_ratio()[0] % 7, divmod(v, 2)
#> v = 3.0
## complex_numbers, traces: 6
z = 1 + 2j
def step(x):
    global z
    z = z * 1j
    return x * z.real + z.imag + abs(z), z.conjugate()
#> z = 3 + 0j
## frozenset_and_set_algebra, traces: 9
s, f = {1, 2}, frozenset({2, 3})
def step(x):
    s.symmetric_difference_update(f)
    s.add(len(s))
    return x * len(s | f) + (s <= f) + s.isdisjoint({9}) + sum(s), sorted(s - f), f & s == {3}
#> s.clear()
#> f = frozenset({9})
## date_counter_strings, traces: 9
epoch = 0
names = {}
def step(x):
    global epoch
    epoch += 1
    name = f'ckpt_{epoch:04d}.pt'
    names[name] = epoch
    if len(names) > 3: names.pop(next(iter(names)))
    return x * epoch, name, list(names)
#> epoch = 100
#> names.clear()
## multiprocess_like_rank
import os
os.environ.setdefault('RANK', '0')
class Ctx:
    @staticmethod
    def rank(): return int(os.environ.get('RANK', 0))
    @property
    def main(self): return self.rank() == 0
ctx = Ctx()
def step(x):
    if ctx.main: print('main')
    return x * (ctx.rank() + 1)
#> os.environ['RANK'] = '2'
#> del os.environ['RANK']
## patch_method_inside, eager: a method of a class made in the function leaves it
class A:
    def f(self, x): return x * 2
a = A()
def step(x):
    a.f = types.MethodType(lambda self, x: x * 3, a)
    y = a.f(x)
    del a.f
    return y + a.f(x)
#> A.f = lambda self, x: x
## class_attr_written_in_method
class A:
    n = 0
    kinds = []
    def f(self):
        type(self).n += 1
        self.__class__.kinds.append(self.n)
        return A.n
class B(A): pass
a, b = A(), B()
def step(x): return x * a.f() + b.f() + B.n + len(A.kinds)
#> A.n = 10
#> del B.n
#> b.__class__ = A
""")

INTERPRETER: Final = stories("""
## print_then_getvalue, eager: getvalue() of a StringIO (global out) is written in C
out = io.StringIO()
def step(x):
    print('abc', file=out)
    a = len(out.getvalue())
    out.write('de')
    return x * (a + out.tell())
#> out.truncate(0); out.seek(0)
## function_internals
def g(x, k=2.0, *, m=1.0): return x * k + m
def h(x, k=100.0, *, m=0.0): return x - k + m
def step(x): return g(x)
#> g.__defaults__ = (3.0,)
#> g.__kwdefaults__ = {'m': 7.0}
#> g.__kwdefaults__['m'] = 8.0
#> g.__code__ = h.__code__
#> g = h
## own_defaults_and_code
def step(x, k=2.0, *, m=[1.0]): return x * k + m[0]
def other(x, k=2.0, *, m=None): return x - k
_step = step
#> _step.__defaults__ = (5.0,)
#> _step.__kwdefaults__['m'] = [9.0]
#> _step.__code__ = other.__code__
## closure_cell_set
def make():
    k = 2.0
    def g(x): return x * k
    return g
g = make()
def step(x): return g(x)
#> g.__closure__[0].cell_contents = 5.0
#> del g.__closure__[0].cell_contents
#> g.__closure__[0].cell_contents = 1.5
## signed_zero_and_types
v, l, d, t = 0.0, [1], {'a': 1}, (0.0, 1)
def step(x): return x + math.copysign(1.0, v), math.copysign(1.0, t[0]), type(l[0]).__name__, repr(d['a']), repr(t), repr(l)
#> v = -0.0
#> l[0] = True
#> l[0] = 1.0; d['a'] = True
#> t = (-0.0, True)
#> t = (0.0, 1.0)
## nan_values, eager: a container is asked for a NaN, which it finds by which object it is
v, seen, d = float('nan'), [], {}
def step(x):
    d[v] = 1
    return x * (1.0 if v == v else 2.0) + len(d), v in seen, seen.count(v)
#> seen.append(v)
#> v = float('nan')
#> v = 1.0; d.clear()
## keys_equal_but_other
d = {1: 'a'}
def step(x): return x * len(d), [repr(k) for k in d], d.get(True), repr(next(iter(d)))
#> d.clear(); d[True] = 'a'
#> d.clear(); d[1.0] = 'a'
## order_of_dict
d = {'a': 1.0, 'b': 2.0}
def step(x): return x * list(d.values())[0] - [*d.items()][1][1]
#> d['a'] = d.pop('a')
#> d.update(b=d.pop('b'))
## int_enum_vs_int
class E(enum.IntEnum):
    ONE = 1
v = 1
def step(x): return x * v, type(v).__name__, f'{v!r}', isinstance(v, enum.Enum)
#> v = E.ONE
#> v = True
#> v = np.int64(1)
#> v = 1
## numpy_scalar_kinds
v = 1.5
def step(x): return x * v, (x * v).dtype.name, isinstance(v, float), type(v).__name__
#> v = np.float64(1.5)
#> v = np.float32(1.5)
#> v = np.array(1.5)
## grad_mode_outside
w = nn.Parameter(rn.ones(3))
def step(x):
    y = w * x
    return y, rn.is_grad_enabled(), y.requires_grad
_ng = rn.no_grad()
#> _ng.__enter__()
#> _ng.__exit__(None, None, None)
## requires_grad_arg
def step(x): return x * 2 if x.requires_grad else x * 3
def arguments(i): return (tensor(1.0, 2.0).requires_grad_(i % 2 == 0),)
## generator_dropped_finally
log = []
def gen():
    try:
        for v in vals: yield v
    finally: log.append(len(log))
vals = [1.0, 2.0, 3.0]
def step(x):
    for v in gen():
        if v > 1.5: break
    log.append('after')
    a = next(gen())
    log.append('end')
    return x * a + len(log), list(log[-4:])
#> vals.insert(0, 5.0)
#> log.clear()
## evaluation_order
log = []
def t(n, v):
    log.append(n)
    return v
d = {'a': [1.0, 2.0]}
def step(x):
    t('o', d)[t('k', 'a')][t('i', 0)] += t('v', 1.0)
    a = t(1, 2) < t(2, 3) < t(3, 1) < t(4, 0)
    b = t(5, 0) or t(6, []) or t(7, 3) and t(8, 4)
    c = (lambda *a, **k: len(a) + len(k))(t(9, 1), *t(10, [1, 2]), k=t(11, 1), **t(12, {'z': 1}))
    return x * d['a'][0] + b + c + len(log), a
#> log.clear()
#> d['a'][0] = 100.0
## walrus_and_unpack
vals = [1.0, 2.0, 3.0, 4.0]
def src():
    for v in vals:
        seen.append(v)
        yield v
seen = []
def step(x):
    a, *b, c = src()
    if (n := len(b)) > 1 and (m := max(b)) > 2: a = a + m
    (p, q), r = (vals[0], vals[1]), vals[2:]
    return x * a + n + c + p - q, r, len(seen)
#> vals.pop()
#> vals.append(10.0)
#> seen.clear()
## recursion_error
def f(n): return f(n + 1) if deep else n
deep = False
def step(x):
    try: return x * (f(1) + 1)
    except RecursionError: return -x
#> deep = True
#> deep = False
## threading_local, eager: 'global tl' is a _local, whose content cannot be watched
import threading
tl = threading.local(); tl.k = 2.0
def step(x): return x * tl.k
#> tl.k = 5.0
## thread_name
import threading
def step(x): return x * len(threading.current_thread().name)
#> threading.current_thread().name = 'abc'
#> threading.current_thread().name = 'MainThread'
## sys_things
def step(x): return x * sys.getrecursionlimit() + sys.maxsize % 7, sys.version_info[0], len(sys.argv), sys.byteorder, sys.flags.debug
_l = sys.getrecursionlimit()
#> sys.setrecursionlimit(_l + 10)
#> sys.setrecursionlimit(_l); sys.argv.append('--x')
#> sys.argv.pop()
## cwd
import os
_d = os.getcwd()
def step(x): return x * len(os.getcwd()), os.path.join(os.getcwd(), 'a'), os.path.basename(os.getcwd())
#> os.chdir('/')
#> os.chdir(_d)
## literal_eval, eager: compile() looks at the frame or runs a text
import ast
text = '[1, 2.0]'
def step(x): return x * sum(ast.literal_eval(text))
#> text = '[5]'
## lib_textwrap_shlex_html
import textwrap, html, urllib.parse, fnmatch, base64, binascii, zlib, hashlib, colorsys, calendar, cmath
t = 'a b & c'
def step(x): return x * len(textwrap.fill(t, 3)), html.escape(t), urllib.parse.quote(t), calendar.isleap(len(t)), colorsys.rgb_to_hsv(0.1, 0.2, 0.3)
#> t = 'zz'
## lib_fnmatch
import fnmatch
names, pat = ['a.py', 'b.txt'], '*.py'
def step(x): return x * len(fnmatch.filter(names, pat)), fnmatch.fnmatch('q.py', pat)
#> pat = '*'
#> names.append('c.py')
## lib_base64_zlib, eager: zlib.crc32() is written in C
import base64, zlib
b = b'hello'
def step(x): return x * zlib.crc32(b), base64.b64encode(b)
#> b = b'other'
## lib_hashlib, eager: _hashlib.openssl_md5() is written in C
import hashlib
b = b'hello'
def step(x): return x * (hashlib.md5(b).digest()[0])
#> b = b'other'
## lib_pickle, eager: _pickle.dumps() is written in C
import pickle
o = {'a': [1.0]}
def step(x): return x * pickle.loads(pickle.dumps(o))['a'][0]
#> o['a'][0] = 4.0
## lib_graphlib_ipaddress
import graphlib, ipaddress, numbers
g = {'a': {'b'}, 'b': {'c'}}
def step(x): return x * len(list(graphlib.TopologicalSorter(g).static_order())), isinstance(2, numbers.Real), int(ipaddress.ip_address('0.0.0.9'))
#> g['d'] = {'a'}
""")


@pytest.mark.parametrize("story", STATE + INTERPRETER)
def test_everyday_state(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
