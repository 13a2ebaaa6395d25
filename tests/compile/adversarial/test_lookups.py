"""Descriptors, slots and other ways to an attribute, which change meanwhile."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

LOOKUP: Final = stories("""
## descriptor_with_storage_by_name
class Field:
    default = 1.0
    def __set_name__(self, owner, name): self.name = '_' + name
    def __get__(self, obj, kind=None): return self if obj is None else obj.__dict__.get(self.name, self.default)
    def __set__(self, obj, v): obj.__dict__[self.name] = v * 2
class A: gain, shift = Field(), Field()
a = A()
def step(x):
    a.shift = a.gain
    return x * a.gain + a.shift
#> a.gain = 3.0
#> Field.default = 9.0; del a.__dict__['_gain']
#> Field.__get__ = lambda self, obj, kind=None: 0.5
#> A.gain = 7.0
## descriptor_that_becomes_data
class D:
    def __get__(self, obj, kind=None): return 2.0
class A: v = D()
a = A(); a.__dict__['v'] = 5.0
def step(x): return x * a.v
#> D.__set__ = lambda self, obj, v: None
#> del D.__set__
#> del D.__get__
## descriptor_counts_its_reads
class D:
    reads = 0
    def __get__(self, obj, kind=None):
        self.reads += 1
        return self.reads * 1.0
class A: v = D()
def step(x): return x * A().v + A.v
#> A.__dict__['v'].reads = 10
## instance_shadows_non_data_descriptor
class D:
    def __get__(self, obj, kind=None): return 2.0
class A: v = D()
a = A()
def step(x): return x * a.v
#> a.v = 5.0
#> del a.v
## weak_key_descriptor
class D:
    def __init__(self): self.values = {}
    def __get__(self, obj, kind=None): return self.values.get(id(obj), 1.0)
    def __set__(self, obj, v): self.values[id(obj)] = v
class A: v = D()
a, b = A(), A()
def step(x): return x * a.v + b.v
#> b.v = 4.0
#> a.v = 3.0
## property_with_cache
class A:
    def __init__(self): self._n, self._cache = 2.0, None
    @property
    def total(self):
        if self._cache is None: self._cache = self._n * 10
        return self._cache
    @total.setter
    def total(self, v): self._n, self._cache = v, None
    @total.deleter
    def total(self): self._cache = None
a = A()
def step(x): return x * a.total
#> a.total = 3.0
#> a._n = 5.0
#> del a.total
## property_replaced_by_another
class A:
    k = 1.0
    v = property(lambda self: self.k * 2)
a = A()
def step(x): return x * a.v
#> A.v = property(lambda self: self.k * 3)
#> A.v = A.v.getter(lambda self: self.k * 5)
#> A.k = 2.0
#> A.v = 1.0
## cached_property_invalidated
class A:
    n = 2.0
    @functools.cached_property
    def total(self): return self.n * 10
a = A()
def step(x): return x * a.total
#> a.n = 3.0
#> del a.total
#> a.total = 1.0
#> vars(a).clear()
## cached_property_on_many
class A:
    def __init__(self, n): self.n = n
    @functools.cached_property
    def total(self): return [self.n]
things = [A(1.0), A(2.0)]
def step(x):
    for t in things: t.total[0] += 1
    return x * sum(t.total[0] for t in things)
#> things.append(A(3.0))
#> things[0].total = [50.0]
## slots_and_dict
class S: __slots__ = ('a', 'b')
class T(S): pass
t = T(); t.a = 1.0
def step(x):
    t.c = t.a + getattr(t, 'b', 0.0)
    return x * t.c
#> t.b = 2.0
#> del t.b; t.a = 5.0
#> T.b = 7.0
## slot_emptied
class S:
    __slots__ = ('v',)
    def __getattr__(self, name):
        if name == 'v': return 100.0
        raise AttributeError(name)
s = S(); s.v = 2.0
def step(x): return x * s.v
#> del s.v
#> s.v = 4.0
## getattribute_counts
class A:
    k, reads = 2.0, 0
    def __getattribute__(self, name):
        if name == 'k': A.reads += 1
        return object.__getattribute__(self, name)
a = A()
def step(x): return x * a.k + A.reads
#> a.k = 3.0
#> A.reads = 50
#> del A.__getattribute__
## getattr_comes_and_goes
class A: pass
a = A()
def step(x):
    try: return x * a.v
    except AttributeError: return -x
#> A.__getattr__ = lambda self, name: {'v': 3.0}.get(name) or object.__getattribute__(self, name)
#> A.v = 5.0
#> a.v = 6.0
#> del a.v, A.v
#> del A.__getattr__
## delegating_proxy
class Proxy:
    def __init__(self, inner): object.__setattr__(self, '_inner', inner)
    def __getattr__(self, n): return getattr(self._inner, n)
    def __setattr__(self, n, v): setattr(self._inner, n, v)
inner = types.SimpleNamespace(gain=2.0); p = Proxy(inner)
def step(x):
    p.n = getattr(p, 'n', 0) + 1
    return x * p.gain + p.n
#> inner.gain = 4.0
#> object.__setattr__(p, '_inner', types.SimpleNamespace(gain=9.0))
#> inner = p._inner
## setattr_override_validates
class A:
    limit = 3
    def __setattr__(self, name, v):
        if v > self.limit: raise ValueError(f'{name} too large')
        object.__setattr__(self, name, v)
a = A(); a.n = 0
def step(x):
    a.n = a.n + 1
    return x * a.n
#> A.limit = 5
#> a.n = 0
## class_attribute_along_the_mro
class A: k = 1.0
class B(A): pass
class C(A): k = 3.0
class D(B, C): pass
d = D()
def step(x): return x * d.k
#> B.k = 2.0
#> D.k = 9.0
#> del D.k, B.k
#> del C.k
## bases_changed
class A:
    k = 1.0
    def f(self): return self.k
class B:
    k = 5.0
    def f(self): return self.k * 2
class D(A): pass
d = D()
def step(x): return x * d.f()
#> D.__bases__ = (B,)
#> D.__bases__ = (A, B)
#> A.k = 7.0
## class_of_an_object_swapped
class A:
    def f(self): return 1.0
class B:
    def f(self): return 2.0
a = A()
def step(x): return x * a.f() * (3 if isinstance(a, B) else 1), type(a).__name__
#> a.__class__ = B
#> B.f = lambda self: 9.0
#> a.__class__ = A
## class_swapped_inside, eager: 'global o.__class__' is set
class Slow:
    def f(self, x):
        self.__class__ = Fast
        return x
class Fast:
    gain = 2.0
    def f(self, x): return x * self.gain
o = Slow()
def step(x): return o.f(x)
#> Fast.gain = 3.0
#> o.__class__ = Slow
## super_chains
class A:
    def f(self, x): return x
class B(A):
    def f(self, x): return super().f(x) * 2
class C(A):
    def f(self, x): return super().f(x) + 3
class D(B, C):
    def f(self, x): return super().f(x) - 1
d = D()
def step(x): return d.f(x)
#> A.f = lambda self, x: x * 10
#> C.f = lambda self, x: x
#> B.__bases__ = (C,)
## classmethods_and_statics
class A:
    k = 2.0
    @classmethod
    def make(cls, v): return cls.k * v
    @staticmethod
    def s(v): return v + 1
class B(A): k = 3.0
kind = A
def step(x): return x * kind.make(2.0) + kind().s(1.0)
#> kind = B
#> B.s = staticmethod(lambda v: v * 100)
#> A.make = classmethod(lambda cls, v: v)
#> B.make = lambda v: v - 1
## instance_method_patched
class A:
    def f(self): return 1.0
a = A()
def step(x): return x * a.f()
#> a.f = lambda: 2.0
#> a.f = types.MethodType(lambda self: 3.0, a)
#> del a.f
#> A.f = functools.partialmethod(lambda self, k: k, 4.0)
## bound_method_held
class A:
    k = 1.0
    def f(self): return self.k
a = A(); f = a.f
def step(x): return x * f()
#> a.k = 2.0
#> A.f = lambda self: 100.0
#> f = A().f
""")


@pytest.mark.parametrize("story", LOOKUP)
def test_as_python(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
