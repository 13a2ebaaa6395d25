"""Metaclasses, special methods, enumerations and data classes, which change meanwhile."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

CLASSES: Final = stories("""
## metaclass_attributes
class Meta(type):
    rate = 2.0
    @property
    def name_length(cls): return len(cls.__name__) * cls.rate
    def __len__(cls): return 3
    def __getitem__(cls, k): return k * cls.rate
    def __contains__(cls, k): return k == cls.rate
    def __iter__(cls): return iter([cls.rate, 1.0])
class A(metaclass=Meta): pass
def step(x): return x * A.name_length + len(A) + A[2] + sum(A) + (2.0 in A)
#> Meta.rate = 3.0
#> A.rate = 4.0
#> Meta.__len__ = lambda cls: 7
## metaclass_getattr
class Meta(type):
    table = {'gain': 2.0}
    def __getattr__(cls, n):
        try: return cls.table[n]
        except KeyError: raise AttributeError(n) from None
class A(metaclass=Meta): pass
def step(x): return x * A.gain + getattr(A, 'shift', 0.0)
#> Meta.table['shift'] = 5.0
#> A.gain = 3.0
#> A.table = {'gain': 0.0}
## metaclass_call_is_a_singleton
class Single(type):
    made = {}
    def __call__(cls, *a):
        if cls not in Single.made: Single.made[cls] = super().__call__(*a)
        return Single.made[cls]
class A(metaclass=Single):
    def __init__(self, v): self.v = v
def step(x):
    a = A(2.0)
    a.v += 1
    return x * a.v
#> Single.made.clear()
#> A(0).v = 50.0
## instancecheck_with_state
class Meta(type):
    accepted = (int,)
    def __instancecheck__(cls, o): return type(o) in cls.accepted
class Num(metaclass=Meta): pass
v = 2.0
def step(x): return x * (2.0 if isinstance(v, Num) else 3.0)
#> Meta.accepted = (float,)
#> v = 'a'
## abc_registration
class Base(abc.ABC): pass
class Own: pass
o = Own()
def step(x): return x * (2.0 if isinstance(o, Base) else 3.0)
#> Base.register(Own)
## subclass_hook
class Base(abc.ABC):
    names = ['go']
    @classmethod
    def __subclasshook__(cls, kind): return any(n in vars(kind) for n in Base.names) or NotImplemented
class A: go = 1
class B: pass
def step(x): return x * sum(issubclass(k, Base) for k in (A, B))
## protocol_check
@typing.runtime_checkable
class HasGain(typing.Protocol):
    gain: float
o = types.SimpleNamespace()
def step(x): return x * o.gain if isinstance(o, HasGain) else x
#> o.gain = 2.0
#> o.gain = 3.0
#> del o.gain
## init_subclass_registry
class Base:
    registry = {}
    def __init_subclass__(cls, key=None, **kw): Base.registry[key or cls.__name__] = cls
class A(Base, key='a'):
    k = 2.0
def step(x): return x * Base.registry['a'].k + len(Base.registry)
#> type('B', (Base,), {'k': 3.0})
#> type('C', (Base,), {'k': 4.0}, key='a')
## classes_made_inside, eager: made by dataclass
k = 2.0
def step(x):
    @dataclasses.dataclass
    class Row:
        v: float = k
        def total(self): return self.v + k
    return x * Row().total(), Row(1.0) == Row(1.0)
#> k = 3.0
## class_body_reads_globals
k = 2.0
def step(x):
    class A:
        base = k
        values = [base * i for i in range(2)]
    return x * A.base + A.values[1]
#> k = 5.0
## missing_in_a_dict
class D(dict):
    made = 0
    def __missing__(self, k):
        D.made += 1
        self[k] = v = len(k) * 1.0
        return v
d, key = D(), 'abc'
def step(x): return x * d[key] + D.made
#> key = 'z'
#> d.clear()
#> D.__missing__ = lambda self, k: 100.0; key = 'new'
## default_dict_of_lists, traces: 11
groups, key = collections.defaultdict(list), 'a'
def step(x):
    groups[key].append(1.0)
    return x * len(groups[key]) + len(groups)
#> key = 'b'
#> groups.default_factory = lambda: [0] * 5; key = 'c'
#> groups.clear()
## chain_map_layers
top, base = {}, {'a': 1.0, 'b': 2.0}
c = collections.ChainMap(top, base)
def step(x): return x * c['a'] + c.get('b', 0) + len(c)
#> top['a'] = 5.0
#> del base['b']
#> c.maps.append({'b': 9.0})
## index_objects
class I:
    i = 1
    def __index__(self): return self.i
i, values = I(), [1.0, 2.0, 3.0, 4.0]
def step(x): return x * values[i] + x[i] + len(values[i:]) + len(range(i)), hex(i), operator.index(i)
#> i.i = 2
#> I.i = 0; del i.i
## numbers_by_their_methods
class N:
    v = 2.5
    def __float__(self): return self.v
    def __int__(self): return 7
    def __round__(self, n=None): return self.v + (n or 0)
    def __neg__(self): return -self.v
    def __abs__(self): return self.v * 2
    def __divmod__(self, o): return o, self.v
    def __complex__(self): return complex(self.v, 1)
    def __trunc__(self): return 3
n = N()
def step(x): return x * float(n) + int(n), round(n), round(n, 2), -n, abs(n), divmod(n, 3), complex(n), math.trunc(n), math.sqrt(n)
#> N.v = 4.0
#> n.v = 9.0
## reflected_operators
class R:
    k = 2.0
    def __rmul__(self, o): return o * self.k
    def __radd__(self, o): return o + self.k * 10
    def __rsub__(self, o): return NotImplemented
    def __imatmul__(self, o): self.k += 1; return self
    def __eq__(self, o): return o == self.k
    __hash__ = None
r = R()
def step(x):
    global r
    r @= 1
    y = x * 1.0
    try: 3 - r
    except TypeError as e: y = y * len(str(e))
    return 5.0 * r + y, 1 + r, r == 3.0, 3.0 == r
#> r.k = 0.0
#> R.__radd__ = lambda self, o: -1.0
## rich_comparison_and_hash
class K:
    def __init__(self, k): self.k = k
    def __eq__(self, o): return isinstance(o, K) and self.k == o.k
    def __hash__(self): return hash(self.k)
a, b = K(1), K(2)
table = {a: 1.0, b: 2.0}
def step(x): return x * table[K(1)] + (2.0 if K(2) in table else 0.0), K(1) in [a], [b].index(K(2))
#> table[K(1)] = 9.0
#> del table[b]
## callable_with_memory
class F:
    def __init__(self): self.calls = []
    def __call__(self, v):
        self.calls.append(v)
        return len(self.calls) * v
f = F()
def step(x): return x * f(2.0)
#> f.calls.clear()
#> F.__call__ = lambda self, v: v
#> f = lambda v: -v
## sequence_protocol_only
class S:
    data = [1.0, 2.0]
    def __getitem__(self, i): return self.data[i]
s = S()
def step(x):
    a, b = s
    return x * sum(s) + a - b, list(reversed([*s])), 2.0 in s, [*s]
#> S.data = [3.0, 4.0]
#> S.data.append(5.0)
#> s.data = [6.0, 7.0]
## reversed_and_length_hint
class S:
    n = 3
    def __len__(self): return self.n
    def __getitem__(self, i): return i * 1.0
    def __reversed__(self): return iter([9.0] * self.n)
s = S()
def step(x): return x * len(s), list(reversed(s))
#> S.n = 2
#> del S.__reversed__
## iterator_class_with_state
class It:
    def __init__(self): self.i = 0
    def __iter__(self): return self
    def __next__(self):
        self.i += 1
        if self.i % 4 == 0: raise StopIteration
        return self.i * 1.0
it = It()
def step(x): return x * sum(it) + it.i
#> it.i = 0
#> next(it)
## del_and_contains_hooks
class B:
    def __init__(self): self.d, self.log = {'a': 1.0}, []
    def __contains__(self, k): self.log.append(k); return k in self.d
    def __delitem__(self, k): self.log.append('del'); self.d.pop(k)
    def __setitem__(self, k, v): self.d[k] = v * 2
    def __getitem__(self, k): return self.d[k]
b = B()
def step(x):
    if 'a' in b: del b['a']
    else: b['a'] = 1.5
    b['n'] = len(b.log)
    return x * b['n']
#> b.d['a'] = 3.0
#> b.log.clear()
## generic_alias_and_annotations, eager: runs a text
class Base: rate: float = 2.0
class A(Base): size: int = 3
def step(x): return x * sum(getattr(A, n) for n in typing.get_type_hints(A))
#> A.size = 5
#> A.__annotations__['extra'] = int; A.extra = 7
#> Base.rate = 0.5
""")

VALUES: Final = stories("""
## dataclass_default_factories
count = 0
def fresh():
    global count
    count += 1
    return [count]
@dataclasses.dataclass
class Row:
    values: list = dataclasses.field(default_factory=fresh)
    gain: float = 2.0
    total: float = dataclasses.field(init=False, default=0.0)
    def __post_init__(self): self.total = self.gain * len(self.values)
def step(x):
    r = Row()
    return x * r.total + r.values[0], r
#> count = 100
#> Row.gain = 5.0
#> Row.__post_init__ = lambda self: None
## dataclass_replace_and_fields
@dataclasses.dataclass(frozen=True, order=True)
class P:
    a: float
    b: float = 1.0
p = P(2.0)
def step(x):
    q = dataclasses.replace(p, b=3.0)
    return x * q.a * q.b, dataclasses.asdict(p), dataclasses.astuple(q), p < q, [f.name for f in dataclasses.fields(p)]
#> p = P(5.0, 4.0)
#> object.__setattr__(p, 'a', 9.0)
## dataclass_with_slots_and_inheritance
@dataclasses.dataclass(slots=True)
class A: n: int = 0
@dataclasses.dataclass(slots=True)
class B(A):
    log: list = dataclasses.field(default_factory=list)
    def tick(self):
        self.n += 1
        self.log.append(self.n)
b = B()
def step(x):
    b.tick()
    return x * b.n + len(b.log), b.n
#> b.n = 10
#> b.log.clear()
#> b = B(5, [1, 2])
## frozen_dataclass_as_a_key
@dataclasses.dataclass(frozen=True)
class K: a: int = 1
table = {K(1): 2.0}
k = K(1)
def step(x): return x * table.get(k, 5.0)
#> k = K(2)
#> table[K(2)] = 7.0
## enum_members_and_attributes
class Mode(enum.Enum):
    FAST, SLOW = 2.0, 3.0
    @property
    def gain(self): return self.value * Mode.scale
Mode.scale = 1.0
mode = Mode.FAST
def step(x): return x * mode.gain, mode.name, mode is Mode.FAST, [m.name for m in Mode], Mode['SLOW'], Mode(3.0)
#> mode = Mode.SLOW
#> Mode.scale = 10.0
#> mode = Mode(2.0)
## enum_flags
class F(enum.Flag):
    A, B, C = enum.auto(), enum.auto(), enum.auto()
flags = F.A | F.B
def step(x): return x * (2.0 if F.A in flags else 1.0) * (3.0 if flags & F.C else 1.0), bool(flags), (flags ^ F.A).name, len(list(flags))
#> flags = F.C
#> flags |= F.A
#> flags = F(0)
## int_enum_and_arithmetic
class L(enum.IntEnum): LOW, HIGH = 1, 5
class S(enum.StrEnum): A, B = 'a', 'b'
level, s = L.LOW, S.A
def step(x): return x * level + (level < 3), {S.A: 1.0, S.B: 2.0}[s], f'{s}-{level:d}', level + 1, x.shape[0] * level
#> level, s = L.HIGH, S.B
#> level = 3
## enum_member_changed
class M(enum.Enum):
    A = 1
M.A.extra = 2.0
def step(x): return x * M.A.extra
#> M.A.extra = 5.0
## named_tuples
P = collections.namedtuple('P', 'a b', defaults=[3.0])
class Q(typing.NamedTuple):
    a: float
    b: float = 2.0
    def total(self): return self.a + self.b
p, q = P(1.0), Q(1.0)
def step(x): return x * p.a * p.b + q.total(), q._replace(a=5.0), p._asdict(), P._make([1, 2]), {**q._asdict()}
#> q = q._replace(b=7.0)
#> Q.total = lambda self: -1.0
#> p = P(*reversed(p))
## tuple_subclass_with_attributes
class T(tuple):
    gain = 2.0
    def __getitem__(self, i): return super().__getitem__(i) * self.gain
t = T((1.0, 2.0))
def step(x): return x * t[0] + sum(t) + len(t), t[1]
#> t.gain = 5.0
#> T.__getitem__ = tuple.__getitem__
#> t = T((7.0,) * 3)
## str_and_int_subclasses
class Name(str):
    weight = 2.0
    def upper(self): return 'UP' * len(self)
class Count(int):
    def __add__(self, o): return int(self) * 10 + o
n, c = Name('ab'), Count(3)
def step(x): return x * n.weight + len(n.upper()) + (c + 1), n == 'ab', c == 3, f'{n}{c}', {'ab': 1.0}[n]
#> n.weight = 3.0
#> Count.__add__ = lambda self, o: 0
#> n, c = Name('zz'), 5
## counter_arithmetic, traces: 9
counts = collections.Counter('aab')
def step(x):
    counts['a'] += 1
    return x * counts.most_common(1)[0][1] + counts.total(), (counts - collections.Counter('a'))['b'], counts['zz']
#> counts.update('bbbbbbbbb')
#> counts.clear()
## ordered_dict_moves
d = collections.OrderedDict(a=1.0, b=2.0, c=3.0)
def step(x):
    d.move_to_end('a')
    k, v = next(iter(d.items()))
    return x * v, k, list(d)
#> d.move_to_end('c', last=False)
#> d.popitem()
## lru_by_ordered_dict, traces: 9
cache, key, size = collections.OrderedDict(), 'a', 2
def get(k):
    if k in cache:
        cache.move_to_end(k)
    else:
        cache[k] = float(len(cache) + 1)
        if len(cache) > size: cache.popitem(last=False)
    return cache[k]
def step(x): return x * get(key)
#> key = 'b'
#> key = 'c'
#> key = 'a'
## sets_and_frozensets
a, b = {1, 2, 3}, frozenset({2, 3, 4})
def step(x): return x * len(a & b) + len(a - b) + (1.0 if a >= {1} else 0.0), sorted(a ^ b), a.isdisjoint(b), max(a | b)
#> a.add(4)
#> b = frozenset()
#> a.clear(); b = frozenset({1})
## copies_of_objects, traces: 9
class A:
    def __init__(self): self.l, self.n = [1.0], 2.0
a = A()
def step(x):
    b, c = copy.copy(a), copy.deepcopy(a)
    b.l.append(3.0)
    c.l.append(4.0)
    b.n = 7.0
    return x * len(a.l) + len(c.l), a.n, b.l is a.l
#> a.l.clear()
#> a.n = 9.0
## copy_hooks
class A:
    n = 0
    def __init__(self, v): self.v = v
    def __copy__(self):
        A.n += 1
        return A(self.v * 2)
    def __deepcopy__(self, memo): return A(self.v * 3)
a = A(2.0)
def step(x): return x * copy.copy(a).v + A.n
#> a.v = 5.0
#> A.n = 10
#> del A.__copy__
""")


@pytest.mark.parametrize("story", CLASSES + VALUES)
def test_as_python(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
