"""Objects, special methods, arrays and functions made inside, changed between calls."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

CASES: Final = """
## list_eq_objs
class B:
    pass
b = B()
b.o = B()
b.l = [B(), b.o]
b.q = [B(), b.o]
def step(x):
    return x * (b.l == b.q) + (b.o in b.l) + (b.l.index(b.o) if b.o in b.l else 5) + b.l.count(b.o)
#> b.q = list(b.l)
#> b.o = B()
#> b.l.append(b.o)
#> b.l.reverse()
#> b.q[0] = B()
## dict_eq_objs
class B:
    pass
b = B()
b.l = {"k": B()}
b.q = {"k": B()}
def step(x):
    return x * (b.l == b.q) + (b.l.items() == b.q.items()) + (b.l.keys() <= b.q.keys())
#> b.q = dict(b.l)
#> b.q['k'] = B()
#> b.q['z'] = 1
#> b.l = b.q
## tuple_eq_cmp, eager: a container is asked for a NaN, which it finds by which object it is
class B:
    pass
b = B()
b.l = (1, 2)
b.q = (1, 2)
def step(x):
    return x * (b.l == b.q) + (b.l < b.q) + (b.l >= b.q)
#> b.q = (1, 3)
#> b.l = (1, 2, 3)
#> b.l = (1, float('nan'))
#> b.q = b.l
## nan_identity, eager: a container is asked for a NaN, which it finds by which object it is
class B:
    pass
b = B()
b.v = float("nan")
b.l = [b.v]
b.q = [float("nan")]
def step(x):
    return x * (b.v in b.l) + b.l.count(b.v) + (b.l == b.q)
#> b.v = float('nan')
#> b.l[0] = b.v
#> b.q = [b.v]
## list_remove_obj
class B:
    pass
b = B()
b.o = B()
b.l = []
def step(x):
    if b.o in b.l:
        b.l.remove(b.o)
    else:
        b.l.append(b.o)
    return x * len(b.l)
#> b.o = B()
#> b.l.append(b.o)
#> b.l.clear()
## slice_state
class B:
    pass
b = B()
b.s = slice(0, 2)
b.r = range(5)
def step(x):
    return x[b.s] * b.r[1] + len(b.r) + b.s.start
#> b.s = slice(1, 3)
#> b.r = range(2, 9, 3)
#> b.s = slice(0, 3, 2)
## slice_indices
class B:
    pass
b = B()
b.s = slice(0, 2)
b.n = 9
def step(x):
    return x * sum(range(*b.s.indices(b.n))) + (b.s == slice(0, 2))
#> b.s = slice(1, 3)
#> b.n = 2
## tensor_is_cache
class B:
    pass
b = B()
b.lx = b.ly = None
def step(x):
    if b.lx is x:
        return b.ly
    b.lx = x
    b.ly = x * 2
    return b.ly
#> b.lx = None
## const_tensor_iter
class B:
    pass
def X(n=3):
    return tensor(*range(1, n + 1))
b = B()
b.t = X()
def step(x):
    for v in b.t:
        x = x * v
    return x + len(b.t)
#> b.t = X(2)
#> b.t.fill_(4.)
#> b.t = rn.ones((2, 3))
## const_tensor_eq
class B:
    pass
def X(n=3):
    return tensor(*range(1, n + 1))
b = B()
b.t = X()
b.u = X()
def step(x):
    return x * (b.t == b.u).all() + (b.t is b.u)
#> b.u = b.t
#> b.u = X(1)
## const_tensor_eq_list
class B:
    pass
def X(n=3):
    return tensor(*range(1, n + 1))
b = B()
b.t = X()
def step(x):
    return x * ([b.t] == [b.t]) + (b.t in [b.t])
#> b.t = X()
## np_branch
class B:
    pass
b = B()
b.a = np.zeros(2)
def step(x):
    return x * 2 if b.a[0] > 1 else x * b.a.sum()
#> b.a[0] = 5
#> b.a = np.ones(3)
#> b.a *= 0
## np_many
class B:
    pass
b = B()
b.a = np.zeros(2)
def step(x):
    return (
        x * b.a.mean()
        + b.a.tolist()[0]
        + b.a.shape[0]
        + b.a.max()
        + np.argmax(b.a)
        + (b.a > 0).sum()
        + len(b.a)
        + b.a.ndim
    )
#> b.a[0] = 5
#> b.a = b.a[::-1]
#> b.a = np.float32([1, 2, 3])
#> b.a = np.arange(3)
## np_meta, eager: <string>:11:
class B:
    pass
b = B()
b.a = np.zeros((2, 3))
b.z = np.zeros(1)
def step(x):
    return (
        x * b.a.flags.c_contiguous
        + b.a.strides[0]
        + b.a.itemsize
        + (b.a.base is None)
        + b.a.flags.writeable
        + np.shares_memory(b.a, b.z)
        + len(b.a.dtype.name)
    )
#> b.a = b.a.T
#> b.a = b.a.copy()
#> b.a.flags.writeable = False
#> b.z = b.a
#> b.a = b.a.astype('f4')
#> b.a = np.asfortranarray(b.a)
## np_iter
class B:
    pass
b = B()
b.a = np.array([1, 2, 3])
def step(x):
    for v in b.a:
        x = x * v
    return x + sum(b.a) + (2 in b.a) + list(b.a)[0] + max(b.a) + sorted(b.a)[0]
#> b.a[0] = 7
#> b.a = np.array([2., 3.])
## np_object_struct
class B:
    pass
b = B()
b.o = np.array([2, []], dtype=object)
b.r = np.zeros(2, dtype=[("k", "f4")])
def step(x):
    return x * b.o[0] + b.r["k"][0] + len(b.o[1])
#> b.o[0] = 9
#> b.r['k'] = 5
#> b.o[1].append(1)
## np_masked_memmap, traces: 9
class B:
    pass
b = B()
b.m = np.ma.array([1.0, 2.0], mask=[True, False])
def step(x):
    return x * float(b.m.sum())
#> b.m[0] = 7
#> b.m.mask[1] = True
## np_func_state
class B:
    pass
b = B()
b.a = np.zeros(2)
def step(x):
    return (
        x * np.dot(b.a, b.a)
        + np.linalg.norm(b.a)
        + np.percentile(b.a, 50)
        + np.interp(0.5, [0, 1], b.a[:2])
        + np.histogram(b.a, 2)[0][0]
    )
#> b.a[0] = 5
#> b.a = np.ones(3)
## np_arg_schedule
class B:
    pass
b = B()
b.k = 2.0
b.n = 0
def step(x):
    return x * np.linspace(1, b.k, 4)[b.n % 4] + np.clip(b.k, 0, 2) + np.where(b.k > 1, 1, 2) + np.sign(b.k)
#> b.k = 9.
#> b.n = 3
#> b.k = -1.
## np_errstate
class B:
    pass
b = B()
b.k = 2
def step(x):
    return x * np.float64(1.0) / (b.k if b.k else 1) + np.log(np.float64(b.k + 1))
#> b.k = 0
#> b.k = 3
## type_is, eager: the class K is asked for __subclasses__.
class B:
    pass
b = B()
class K:
    pass
b.o = K()
b.ts = (K,)
def step(x):
    return (
        x * (type(b.o) is K)
        + isinstance(b.o, b.ts)
        + issubclass(type(b.o), K)
        + len(K.__subclasses__())
        + len(type(b.o).__mro__)
        + ("z" in K.__dict__)
    )
#> b.ts = (int,)
#> b.o = 3
#> b.k2 = type('K2', (K,), {})
#> K.z = 1
#> b.o = b.k2()
## format_map
class B:
    pass
b = B()
b.k = "a"
b.l = [1]
b.o = B()
b.o.z = 1
b.d = {}
b.f = 2.5
b.w = 8
b.p = 2
def step(x):
    return (
        x * len("{k}-{l[0]}-{o.z}".format_map(b.__dict__))
        + len("%(k)s" % vars(b))
        + len("abc".translate({97: b.k}))
        + len(f"{b.l}")
        + len(repr(b.d))
        + len(f"{b.f:{b.w}.{b.p}f}")
    )
#> b.k = 'long'
#> b.l.append(55)
#> b.o.z = 'zzzz'
#> b.d['q'] = [1, {2: 3}]
#> b.w = 20
#> b.d['q'][1][5] = 6
#> b.f = 1e10
## repr_objs
class B:
    pass
b = B()
class C:
    k = "q"
    def __repr__(s):
        return s.k
b.o = C()
def step(x):
    return x * len(repr([b.o])) + len(str({"k": b.o})) + len(f"{(b.o,)}")
#> C.__repr__ = lambda s: 'longer text'
#> b.o.k = 'zzz'
## max_key_method
class B:
    pass
b = B()
b.d = {1: 5, 2: 3}
b.l = [1, 0, 4]
b.f = abs
def zip_(l):
    return [p * q for p, q in zip(l, l[1:], strict=False)]
def step(x):
    return (
        x * max(b.d, key=b.d.get)
        + min(b.d.values(), default=3)
        + sum(filter(None, b.l))
        + sum(map(b.f, b.l))
        + sum(zip_(b.l))
        + max(b.l, key=lambda v: -v)
    )
#> b.d[5] = 50
#> b.l.append(7)
#> b.f = str.__len__ if False else (lambda v: v * 3)
#> b.d.clear(); b.d[9] = 1
## zip_strict
class B:
    pass
b = B()
b.l = [1, 2]
b.m = [3, 4]
def step(x):
    for p, q in zip(b.l, b.m, strict=True):
        x = x * p + q
    return x
#> b.l.append(3)
#> b.m.append(3)
## iter_sentinel
class B:
    pass
b = B()
b.stop = 3
def step(x):
    b.n = 0
    def g():
        b.n += 1
        return b.n
    for v in iter(g, b.stop):
        x = x + v
    return x
#> b.stop = 5
#> b.stop = 2
## dunder_math
class B:
    pass
b = B()
import math as math_
class C:
    k = 2
    def __round__(s, n=None):
        return s.k
    def __abs__(s):
        return s.k
    def __floor__(s):
        return s.k
    def __divmod__(s, o):
        return (s.k, o)
    def __pow__(s, o, m=None):
        return s.k
    def __neg__(s):
        return s.k
    def __invert__(s):
        return s.k
b.o = C()
def step(x):
    return x * round(b.o) + abs(b.o) + math_.floor(b.o) + divmod(b.o, 2)[0] + pow(b.o, 2, 7) + (-b.o) + (~b.o)
#> b.o.k = 5
#> C.__abs__ = lambda s: 50
#> C.__pow__ = lambda s, o, m=None: 1
## bytes_hash_dunder
class B:
    pass
b = B()
class C:
    k = 2
    def __bytes__(s):
        return b"a" * s.k
    def __hash__(s):
        return s.k
    def __int__(s):
        return s.k
    def __len__(s):
        return s.k
    def __length_hint__(s):
        return s.k
    def __eq__(s, o):
        return s.k == o.k
b.o = C()
def step(x):
    return x * len(bytes(b.o)) + hash(b.o) % 7 + int(b.o) + len(b.o) + b.o.__length_hint__()
#> b.o.k = 5
#> C.__hash__ = lambda s: 3
## setdefault_nested
class B:
    pass
b = B()
b.d = {}
b.k = "a"
b.n = 0
b.dd = collections.defaultdict(lambda: collections.defaultdict(int))
def step(x):
    b.d.setdefault(b.k, []).append(b.n)
    b.dd[b.k][b.n % 2] += 1
    b.n += 1
    return x * len(b.d[b.k]) + b.dd[b.k][0]
#> b.k = 'z'
#> b.n = 0
#> b.d['z'] = [1] * 5
#> b.k = 'a'
## fromkeys_union_sets
class B:
    pass
b = B()
b.l = [1, 2]
b.s = {1}
b.t = {2}
b.d = {}
def step(x):
    return (
        x * len(dict.fromkeys(b.l, 1))
        + len(b.s ^ b.t)
        + len(b.s | set(b.l))
        + (b.s <= b.t)
        + b.s.isdisjoint(b.l)
        + len(b.d | {"k": 1})
    )
#> b.l.append(1)
#> b.t.add(9)
#> b.s.clear()
#> b.d['k'] = 2
## mutate_iterating
class B:
    pass
b = B()
b.d = {"a": 1}
b.add = False
def step(x):
    for k in b.d:
        if b.add:
            b.d[k + "z"] = 1
    return x * len(b.d)
#> b.add = True
#> b.add = False
## list_grow_iterating
class B:
    pass
b = B()
b.l = [1]
b.n = 3
def step(x):
    for v in b.l:
        if len(b.l) < b.n:
            b.l.append(v + 1)
    return x * sum(b.l)
#> b.n = 9
#> b.l[:] = [5]
"""


@pytest.mark.parametrize("story", stories(CASES))
def test_a_story(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
