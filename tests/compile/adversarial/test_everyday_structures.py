"""Everyday structures: aliases and views, trees, lists, stacks, machines, matrices, pipelines."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

STRUCTURES: Final = stories("""
## proxy_made_inside, traces: 9
d = {'a': 1.0}
def step(x):
    m = types.MappingProxyType(d)
    before = m['a']
    d['a'] = d['a'] + 1
    d['n'] = len(m)
    return x * m['a'] + before + len(m), list(m), 'n' in m
#> d['a'] = 10.0
#> d['z'] = 1
## view_made_inside_then_changed
d = {'a': 1.0, 'b': 2.0}
def step(x):
    k, v, i = d.keys(), d.values(), d.items()
    d['c'] = d['a'] + 1
    d.pop('b', None)
    return x * sum(v) + len(k), list(i), ('c', 2.0) in i, k & {'a', 'c'}
#> d['b'] = 5.0
#> d['a'] = 3.0
## iter_held_while_changed, traces: 6
l = [1.0, 2.0, 3.0]
def step(x):
    it = iter(l)
    a = next(it)
    l.insert(0, a + 1)
    b = next(it)
    l.pop()
    return x * a + b + sum(it)
#> l[0] = 10.0
## dict_iter_held, traces: 6
d = {'a': 1.0, 'b': 2.0}
def step(x):
    it = iter(d.items())
    a = next(it)
    d['a'] = d['a'] + 1
    b = next(it)
    return x * a[1] + b[1] + d['a']
#> d['b'] = 9.0
## cycle_made_inside, traces: 6
l = [1.0, 2.0]
def step(x):
    c = itertools.cycle(l)
    l.append(3.0) if len(l) < 5 else None
    return x * sum(next(c) for _ in range(5))
#> l.clear(); l.append(2.0)
## partial_over_changed, traces: 9
o = types.SimpleNamespace(v=1.0)
kw = {'k': 2.0}
def f(o, k): return o.v * k
def step(x):
    p = functools.partial(f, o, **kw)
    o.v += 1; kw['k'] = kw['k'] + 1
    return x * p()
#> o.v = 10.0
#> kw['k'] = 0.5
## bound_method_taken_before
class A:
    def __init__(self): self.l = []
    def f(self): return len(self.l) + 1.0
a = A()
def step(x):
    f, app = a.f, a.l.append
    app(1.0)
    a.l = a.l + [2.0]
    app(3.0)
    return x * f()
#> a.l = []
#> a.f = lambda: 9.0
## aliasing_of_attributes
class A: pass
a, b = A(), A()
a.l = b.l = [1.0]
def step(x):
    a.l.append(2.0)
    b.l[0] += 1
    return x * a.l[0] + len(b.l), a.l is b.l
#> b.l = [5.0]
#> a.l = b.l
## nested_outside_in_made
d = {'inner': {'n': 0}}
def step(x):
    m = {'in': d['inner'], 'l': [d['inner']]}
    m['l'][0]['n'] += 1
    m['in']['k'] = m['in']['n']
    s = types.SimpleNamespace(**d)
    s.inner['n'] += 1
    return x * d['inner']['n'] + len(d['inner'])
#> d['inner'] = {'n': 50}
#> d['inner']['n'] = 0
## made_put_outside_then_read, eager: a SimpleNamespace made in the function leaves it
store = {}
def step(x):
    l = [1.0, x]
    store['l'] = l
    l.append(2.0)
    store['l'].append(store['l'][0])
    o = types.SimpleNamespace(l=l)
    store['o'] = o
    o.v = len(l)
    return x * len(l) + store['o'].v
#> store.clear()
## swap_outside
a, b = [1.0], [2.0]
def step(x):
    global a, b
    a, b = b, a
    a.append(len(b) * 1.0)
    return x * sum(a) - sum(b)
#> a = b
#> b = [7.0]
## rebinding_own_name, traces: 6
def step(x):
    global step2
    step2 = (lambda f: lambda v: f(v) + 1)(step2)
    return step2(x)
def step2(v): return v
#> step2 = lambda v: v * 2
## class_swapped_for_subclass
class A: k = 1.0
class B(A):
    k = 2.0
    def __getattr__(self, n): return 9.0
kind = A
def step(x):
    o = kind()
    return x * o.k + getattr(o, 'zz', 0.0) + isinstance(o, B)
#> kind = B
#> B.k = 3.0
#> kind = type('C', (B,), {'k': 4.0})
## dispatch_on_type_table
class A: pass
class B(A): pass
table = {A: lambda o: 1.0, int: lambda o: 2.0}
def find(o):
    for t in type(o).__mro__:
        if t in table: return table[t](o)
    return -1.0
o = A()
def step(x): return x * find(o)
#> o = B()
#> table[B] = lambda o: 5.0
#> o = True
#> o = 'a'
## visitor_by_name
class V:
    def visit(self, n): return getattr(self, 'visit_' + type(n).__name__, self.generic)(n)
    def generic(self, n): return 0.5
    def visit_list(self, n): return sum(self.visit(i) for i in n)
    def visit_int(self, n): return n * 1.0
v, tree = V(), [1, [2, 'a'], 3]
def step(x): return x * v.visit(tree)
#> tree[1].append(4)
#> V.visit_str = lambda self, n: len(n) * 10.0
#> v.visit_int = lambda n: 100.0
## state_machine
class S:
    def __init__(self): self.state, self.trace = self.idle, []
    def idle(self, x):
        self.state = self.run
        return x
    def run(self, x):
        self.trace.append(len(self.trace))
        if len(self.trace) % 3 == 0: self.state = self.idle
        return x * len(self.trace)
s = S()
def step(x): return s.state(x)
#> s.state = s.idle
#> s.trace.clear()
## coroutine_style_pipeline
def producer(l):
    for v in l: yield v
def mul(src, k):
    for v in src: yield v * k
def window(src, n):
    d = collections.deque(maxlen=n)
    for v in src:
        d.append(v)
        yield sum(d) / len(d)
l, n = [1.0, 2.0, 3.0, 4.0], 2
def step(x): return x * sum(window(mul(producer(l), 2.0), n))
#> n = 3
#> l.append(10.0)
## undo_stack, traces: 8
class Doc:
    def __init__(self): self.v, self.undo, self.redo = 0, [], []
    def do(self, v):
        old = self.v
        self.undo.append(lambda: setattr(self, 'v', old))
        self.v = v
    def back(self):
        if self.undo: self.undo.pop()()
d = Doc()
def step(x):
    d.do(d.v + 1); d.do(d.v * 2)
    d.back()
    return x * d.v + len(d.undo)
#> d.v = 5
#> d.back()
## observer_property
class Obs:
    def __init__(self): self.__dict__['subs'] = []; self.__dict__['vals'] = {}
    def __setattr__(self, n, v):
        old = self.vals.get(n)
        self.vals[n] = v
        for s in self.subs: s(n, old, v)
    def __getattr__(self, n):
        try: return self.__dict__['vals'][n]
        except KeyError: raise AttributeError(n) from None
log = []
o = Obs(); o.subs.append(lambda n, a, b: log.append((n, a, b)))
def step(x):
    o.n = getattr(o, 'n', 0) + 1
    return x * o.n + len(log)
#> o.subs.append(lambda n, a, b: log.append(n))
#> o.vals.clear()
#> o.subs.clear()
## memo_with_expiry, traces: 8
cache, clock = {}, [0]
def get(k, ttl=2):
    clock[0] += 1
    if k in cache and clock[0] - cache[k][0] < ttl: return cache[k][1]
    cache[k] = (clock[0], float(clock[0]))
    return cache[k][1]
def step(x): return x * get('a') + get('b', ttl=3)
#> cache.clear()
#> clock[0] = 100
## linked_list, traces: 8
class Node:
    __slots__ = ('v', 'next')
    def __init__(self, v, next=None): self.v, self.next = v, next
head = Node(1.0, Node(2.0))
def total(n):
    s = 0.0
    while n is not None: s, n = s + n.v, n.next
    return s
def step(x):
    global head
    head = Node(head.v + 1, head)
    if total(head) > 15: head = head.next.next
    return x * total(head)
#> head = Node(0.5)
#> head.next = Node(50.0)
## tree_insert, traces: 12
class T:
    def __init__(self, v): self.v, self.l, self.r = v, None, None
    def insert(self, v):
        side = 'l' if v < self.v else 'r'
        c = getattr(self, side)
        if c is None: setattr(self, side, T(v))
        else: c.insert(v)
    def __iter__(self):
        if self.l: yield from self.l
        yield self.v
        if self.r: yield from self.r
    def __len__(self): return 1 + sum(len(c) for c in (self.l, self.r) if c)
t = T(5)
n = 0
def step(x):
    global n
    n += 1
    t.insert((n * 7) % 11)
    return x * len(t) + next(iter(t)), list(t)[-1]
#> n = 0
#> t.l = None
#> t.v = 100
## matrix_class, traces: 9
class M:
    def __init__(self, r): self.r = r
    def __matmul__(self, o): return M([[sum(a * b for a, b in zip(r, c)) for c in zip(*o.r)] for r in self.r])
    def __iadd__(self, o):
        for r, q in zip(self.r, o.r):
            for i, v in enumerate(q): r[i] += v
        return self
    def __eq__(self, o): return self.r == o.r
    def __getitem__(self, k): return self.r[k[0]][k[1]]
    def __setitem__(self, k, v): self.r[k[0]][k[1]] = v
m = M([[1.0, 2.0], [0.0, 1.0]])
def step(x):
    global m
    p = m @ m
    m += M([[0.5, 0.0], [0.0, 0.0]])
    m[1, 0] = m[0, 1] - 1
    return x * p[0, 1] + m[0, 0], p == m
#> m[0, 1] = 7.0
#> m = M([[1.0, 0.0], [0.0, 1.0]])
## money_class_ops
class Q:
    rate = 2.0
    def __init__(self, v): self.v = v
    def __add__(self, o): return Q(self.v + (o.v if isinstance(o, Q) else o))
    __radd__ = __add__
    def __mul__(self, k): return Q(self.v * k * self.rate)
    def __lt__(self, o): return self.v < o.v
    def __float__(self): return float(self.v)
    def __round__(self, n=0): return Q(round(self.v, n))
    def __pow__(self, n, m=None): return Q(self.v ** n)
    def __hash__(self): return hash(self.v)
    def __eq__(self, o): return self.v == o.v
q = Q(1.5)
def step(x):
    s = sum([q, q * 2, Q(1.0)])
    return x * float(s) + float(max(q, Q(2.0))) + float(q ** 2), round(q).v, len({q, Q(1.5), Q(2.0)})
#> Q.rate = 3.0
#> q = Q(5.25)
#> q.v = 0.5
## context_stack_global
stack = [1.0]
@contextlib.contextmanager
def scale(k):
    stack.append(stack[-1] * k)
    try: yield stack[-1]
    except ZeroDivisionError: stack.append(-1.0)
    finally: stack.pop()
k = 2.0
def step(x):
    with scale(k) as a:
        with scale(3.0) as b: y = x * b
        if k > 4: 1 / 0
        y = y + a
    return y + len(stack) + stack[-1]
#> k = 3.0
#> stack[0] = 10.0
#> k = 5.0
## class_decorator_registry
REG = {}
def register(name):
    def deco(c):
        REG[name] = c
        c.uses = 0
        return c
    return deco
@register('a')
class A:
    def __call__(self, x):
        type(self).uses += 1
        return x * self.uses
name = 'a'
def step(x): return REG[name]()(x) + len(REG)
#> REG['b'] = register('c')(type('B', (A,), {}))
#> name = 'b'
#> A.uses = 10
## abstract_template
class Base(abc.ABC):
    hooks = []
    def run(self, x):
        for h in self.hooks: x = h(self, x)
        return self.go(x)
    @abc.abstractmethod
    def go(self, x): ...
class Impl(Base):
    k = 2.0
    def go(self, x): return x * self.k
i = Impl()
def step(x): return i.run(x)
#> Base.hooks.append(lambda s, x: x + s.k)
#> Impl.hooks = []
#> Impl.go = lambda self, x: -x
#> i.k = 9.0
## generic_typevar_class
T = typing.TypeVar('T')
class Box(typing.Generic[T]):
    def __init__(self, v): self.v = v
    def get(self): return self.v
b = Box[float](2.0)
def step(x): return x * b.get() + Box[int](3).get()
#> b.v = 5.0
#> Box.get = lambda self: 1.0
## typed_cast_and_literals
Mode = typing.Literal['a', 'b']
mode: Mode = 'a'
def step(x):
    m = typing.cast(str, mode)
    assert m in typing.get_args(Mode)
    return x * len(m) * (2 if m == 'a' else 3)
#> mode = 'b'
#> Mode = typing.Literal['b']
## match_with_guards_and_or
class P:
    __match_args__ = ('x', 'y')
    def __init__(self, x, y): self.x, self.y = x, y
v = P(1, 2)
lim = 3
def step(x):
    match v:
        case P(0, _) | P(_, 0): k = 0.0
        case P(a, b) if a + b < lim: k = 1.0
        case P(a, b): k = float(a * b)
        case {'k': k, 'opts': [first, *_]}: k = k + first
        case [P(x=a), *rest] if rest: k = a + len(rest)
        case (1 | 2 | 3) as k: k = k * 1.0
        case str(s) if s.startswith('a'): k = len(s)
        case True | None: k = 7.0
        case _: k = -1.0
    return x * k
#> v.x = 3
#> lim = 100
#> v = {'k': 2.0, 'opts': [1.0, 2.0], 'z': 1}
#> v['opts'].clear()
#> v = [P(4, 1), 1]
#> v = 2
#> v = 'abc'
#> v = None
#> P.__match_args__ = ('y', 'x'); v = P(0, 5)
""")


@pytest.mark.parametrize("story", STRUCTURES)
def test_everyday_structures(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
