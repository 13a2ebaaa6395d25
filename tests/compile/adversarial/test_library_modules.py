"""Modules of the standard library whose state, or whose arguments' state, changes between calls."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

CASES: Final = r"""
## string_template
class B:
    pass
b = B()
b.t = "$k"
b.k = "a"
b.f = "{k}"
def step(x):
    return x * len(string.Template(b.t).substitute(k=b.k)) + len(b.f.format(**vars(b)))
#> b.k = 'long'
#> b.t = '$k$k'
#> b.f = '{k}{t}'
## stringio, eager: <string>:9: getvalue
class B:
    pass
b = B()
b.io = io.StringIO()
b.n = 0
def step(x):
    b.io.write(f"{b.n},")
    b.n += 1
    return x * len(b.io.getvalue())
#> b.io.truncate(0); b.io.seek(0)
#> b.io = io.StringIO()
## stringio_read, eager: <string>:6: getvalue
class B:
    pass
b = B()
b.io = io.StringIO("ab")
def step(x):
    return x * len(b.io.getvalue()) + b.io.tell()
#> b.io.write('abc')
#> b.io.seek(1)
## bytesio, eager: <string>:6: getvalue
class B:
    pass
b = B()
b.io = io.BytesIO(b"ab")
def step(x):
    return x * len(b.io.getvalue())
#> b.io.write(b'abcd')
## path_pure
import os, pathlib
class B:
    pass
b = B()
b.p = "/a"
def step(x):
    return x * len(pathlib.PurePosixPath(b.p).parts) + len(os.path.join(b.p, "z")) + len(os.path.basename(b.p))
#> b.p = '/a/b/c'
## graphlib
import graphlib
class B:
    pass
b = B()
b.g = {1: [2], 2: [], 3: []}
def step(x):
    for n in graphlib.TopologicalSorter(b.g).static_order():
        x = x * 2 + n
    return x
#> b.g[1] = [3]
#> b.g[4] = [1]
## queue_, eager: a lock is taken, as queues and events of the library do, too
class B:
    pass
b = B()
b.q = queue.Queue()
b.n = 0
def step(x):
    b.q.put(b.n)
    b.n += 1
    return x * b.q.get()
#> b.q.put(50)
## exitstack
class B:
    pass
b = B()
b.n = 1
b.l = []
b.d = 0
@contextlib.contextmanager
def cm(o):
    o.d += 1
    try:
        yield
    finally:
        o.d -= 1
        o.done = getattr(o, "done", 0) + 1
def step(x):
    with contextlib.ExitStack() as s:
        for i in range(b.n):
            s.callback(b.l.append, i)
        s.enter_context(cm(b))
        x = x * (len(b.l) + b.d)
    return x + b.d
#> b.n = 3
#> b.d = 10
## suppress
class B:
    pass
b = B()
b.d = {}
b.e = (KeyError,)
def step(x):
    with contextlib.suppress(*b.e):
        x = x * 2
        b.d["k"]
        x = x * 3
    return x
#> b.d['k'] = 1
#> del b.d['k']
#> b.e = (ValueError,)
## nullcontext_switch
class B:
    pass
b = B()
b.ng = False
W = rn.Parameter(np.ones(3, np.float32))
def step(x):
    with rn.no_grad() if b.ng else contextlib.nullcontext():
        y = x * W
    return y, y.requires_grad
#> b.ng = True
#> b.ng = False
## setattr_ctx
class B:
    pass
b = B()
b.k = 2
@contextlib.contextmanager
def patched(o, n, v):
    old = getattr(o, n)
    setattr(o, n, v)
    try:
        yield
    finally:
        setattr(o, n, old)
def step(x):
    with patched(b, "k", 9):
        y = x * b.k
    return y + b.k
#> b.k = 5
## simplenamespace
class B:
    pass
b = B()
b.c = types.SimpleNamespace(n=0, sub=types.SimpleNamespace(k=2))
def step(x):
    b.c.n += 1
    return x * b.c.n + b.c.sub.k
#> b.c.sub.k = 9
#> b.c.sub = types.SimpleNamespace(k=1)
#> b.c.__dict__.update(n=50)
## mappingproxy
class B:
    pass
b = B()
b.d = {"k": 2}
b.p = types.MappingProxyType(b.d)
def step(x):
    return x * b.p["k"] + len(b.p)
#> b.d['k'] = 5
#> b.d['z'] = 1
#> b.d.clear(); b.d['k'] = 7
## dictviews
class B:
    pass
b = B()
b.d = {"a": 1, "c": 2}
b.v = b.d.values()
b.k = b.d.keys()
b.i = b.d.items()
def step(x):
    for v in b.v:
        x = x * v
    return x + len(b.k) + ("z" in b.k) + sum(v for _, v in b.i)
#> b.d['z'] = 3
#> b.d['a'] = 7
#> b.d.pop('a')
## userdict, traces: 15
class B:
    pass
b = B()
b.u = collections.UserDict()
b.l = collections.UserList([1, 2])
def step(x):
    b.u["n"] = b.u.get("n", 0) + 1
    return x * b.u["n"] + len(b.u) + b.l[0]
#> b.u['n'] = 7
#> b.u.data = {'n': 1, 'q': 2}
#> b.l.data[0] = 9
#> b.l.insert(0, 4)
## userdict_override
class B:
    pass
b = B()
class C(collections.UserDict):
    pass
b.u = C(k=2)
def step(x):
    return x * b.u["k"]
#> C.__getitem__ = lambda s, k: 5
#> b.u.data['k'] = 9
#> del C.__getitem__
## mutablemapping
import collections.abc as cabc
class B:
    pass
b = B()
class M(cabc.MutableMapping):
    def __init__(s):
        s.s = {"a": 1}
    def __getitem__(s, k):
        return s.s[k]
    def __setitem__(s, k, v):
        s.s[k] = v
    def __delitem__(s, k):
        del s.s[k]
    def __iter__(s):
        return iter(s.s)
    def __len__(s):
        return len(s.s)
b.m = M()
def step(x):
    b.m["z"] = len(b.m)
    b.m.setdefault("q", 5)
    return x * b.m["z"] + sum(b.m.values()) + b.m.pop("q")
#> b.m.s['a'] = 9
#> M.__len__ = lambda s: 3
## sets, traces: 15
class B:
    pass
b = B()
b.s = set()
b.f = frozenset([1, 99])
b.n = 0
def step(x):
    b.s.add(b.n % 4)
    b.s.discard(b.n % 3)
    b.n += 1
    return x * len(b.s) + (2 in b.s) + sum(b.s) + len(b.s & b.f)
#> b.s.add(99)
#> b.f = frozenset([1])
#> b.s -= {1, 2}
#> b.s = {7}
## set_order
class B:
    pass
b = B()
b.s = {1, 2, 3}
def step(x):
    for k in b.s:
        x = x * 2 + k
    return x
#> b.s.add(16)
#> b.s = {8, 0}
#> b.s = {0, 8}
## list_ops, traces: 12
class B:
    pass
b = B()
b.l = []
b.n = 0
def step(x):
    b.l.append(b.n)
    b.l.insert(0, b.n * 2)
    b.n += 1
    if len(b.l) > 6:
        b.l.pop(1)
        del b.l[2:4]
    b.l.sort(key=lambda v: -v)
    b.l[:1] = [b.l[0], 1]
    b.l.reverse()
    return x * b.l[0] + len(b.l) + b.l.index(1) + b.l.count(1)
#> b.l.clear()
#> b.l.extend([5, 1])
#> b.n = 0
## dict_ops, traces: 12
class B:
    pass
b = B()
b.d = {}
b.n = 0
def step(x):
    k = f"k{b.n % 3}"
    b.d[k] = b.d.pop(k, 0) + b.n
    b.n += 1
    b.d.update(z=b.n)
    b.d |= {"y": 1}
    return x * list(b.d.values())[0] + len(b.d) + sum(b.d.values()) + (next(iter(b.d)) == "k0")
#> b.d.clear()
#> b.d = {'k1': 5}
#> b.n = 0
## dict_order
class B:
    pass
b = B()
b.d = {"a": 1, "b": 2}
def step(x):
    for k, v in b.d.items():
        x = x * 2 + v
    return x
#> b.d = {'b': 2, 'a': 1}
#> b.d['b'] = b.d.pop('b')
#> v = b.d.pop('a'); b.d['a'] = v
## dict_popitem
class B:
    pass
b = B()
b.d = {0: 5}
def step(x):
    k, v = b.d.popitem()
    b.d[k + 1] = v
    return x * v + k
#> b.d[50] = 9
#> b.d.clear()
#> b.d[0] = 1
## array_array, eager: <string>:7:
import array
class B:
    pass
b = B()
b.a = array.array("i", [1, 2])
def step(x):
    b.a[0] += 1
    b.a.append(b.a[0])
    return x * b.a[0] + len(b.a)
#> b.a[0] = 50
#> b.a = array.array('d', [1.5])
## struct_, eager: _struct.unpack
import struct
class B:
    pass
b = B()
b.b = struct.pack("i", 3)
b.f = "i"
def step(x):
    return x * struct.unpack("i", b.b)[0] + struct.calcsize(b.f)
#> b.b = struct.pack('i', 9)
#> b.f = 'dd'
## decimal_, eager: decimal.Decimal
import decimal
class B:
    pass
b = B()
b.v = "1"
def step(x):
    return x * float(decimal.Decimal(b.v) / 3)
#> decimal.getcontext().prec = 3
#> b.v = '7'
#> decimal.getcontext().prec = 28
## fraction_
import fractions
class B:
    pass
b = B()
b.f = fractions.Fraction(1, 2)
def step(x):
    return x * float(b.f + fractions.Fraction(1, 3))
#> b.f *= 2
#> b.f = fractions.Fraction(5)
## statistics_
import statistics
class B:
    pass
b = B()
b.l = [1, 2, 3]
def step(x):
    return x * statistics.mean(b.l) + statistics.pstdev(b.l)
#> b.l.append(9)
#> b.l[0] = 2.5
## datetime_
import datetime
class B:
    pass
b = B()
b.d = datetime.date(2020, 1, 31)
b.n = 1
def step(x):
    return x * b.d.day + (b.d + datetime.timedelta(days=b.n)).month + len(b.d.isoformat())
#> b.d = datetime.date(2020, 1, 9)
#> b.n = 60
## hashlib_, eager: _hashlib.openssl_md5
import hashlib, base64, zlib
class B:
    pass
b = B()
b.t = "a"
def step(x):
    return (
        x * int(hashlib.md5(b.t.encode()).hexdigest()[:2], 16)
        + len(base64.b64encode(b.t.encode()))
        + zlib.crc32(b.t.encode()) % 7
    )
#> b.t = 'zz'
## config
import configparser
class B:
    pass
b = B()
b.c = configparser.ConfigParser()
b.c.read_string("[s]\nk=2")
def step(x):
    return x * b.c.getint("s", "k")
#> b.c['s']['k'] = '5'
#> b.c.read_string('[s]\nk=8')
## argparse_ns
import argparse
class B:
    pass
b = B()
p = argparse.ArgumentParser()
p.add_argument("--lr", type=float, default=2.0)
p.add_argument("--flag", action="store_true")
b.a = p.parse_args([])
def step(x):
    return x * b.a.lr + (3 if b.a.flag else 0)
#> b.a.lr = 3.
#> b.a.flag = True
#> b.a = argparse.Namespace(lr=1., flag=False)
## inspect_
import inspect
class B:
    pass
b = B()
def g(x):
    pass
def step(x):
    return x * len(inspect.signature(g).parameters) + len(inspect.getfullargspec(g).args)
#> g.__code__ = (lambda x, y, z: 0).__code__
#> g.__signature__ = inspect.Signature()
## typing_, eager: <string>:8: compile
class B:
    pass
b = B()
class K:
    a: int
    c: str
def step(x):
    return x * len(typing.get_type_hints(K)) + len(K.__annotations__)
#> K.__annotations__['z'] = int
## operator_, eager: <string>:10:
class B:
    pass
b = B()
b.k = B()
b.k.z = 2
b.l = [1, 2]
b.g = operator.attrgetter("k.z")
def step(x):
    return (
        operator.attrgetter("k.z")(b) * x
        + operator.itemgetter(1)(b.l)
        + operator.methodcaller("index", 2)(b.l)
        + b.g(b)
    )
#> b.k.z = 5
#> b.l.insert(0, 9)
#> b.g = operator.attrgetter('l.__len__')
#> b.g = operator.attrgetter('k.z')
## module_attr
class B:
    pass
b = B()
MOD = types.ModuleType("zmod")
MOD.k = 2
def step(x):
    return x * MOD.k + getattr(MOD, "z", 0)
#> MOD.k = 5
#> MOD.z = 1
#> MOD.__getattr__ = lambda n: 8; del MOD.z
#> del MOD.k
## time_strftime, eager: a clock is read
class B:
    pass
b = B()
b.t = 0
def step(x):
    return x * len(time.strftime("%Y", time.gmtime(b.t)))
#> b.t = 10**9
## event
import threading
class B:
    pass
b = B()
b.e = threading.Event()
def step(x):
    return x * (2 if b.e.is_set() else 3)
#> b.e.set()
#> b.e.clear()
"""


@pytest.mark.parametrize("story", stories(CASES))
def test_a_story(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
