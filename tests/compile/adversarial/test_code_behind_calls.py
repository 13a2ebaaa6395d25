"""Code that runs behind a call: comparisons by C code, what is printed to, objects that die, lists that change meanwhile."""

from __future__ import annotations

import sys
from typing import Any, Final

import pytest

import runnel as rn
from tests.compile.adversarial.stories import Story, stories

COMPARISONS: Final = stories("""
## keys_count_comparisons, eager: C code may call the __eq__
class K:
    def __init__(self, k): self.k, self.eqs = k, 0
    def __hash__(self): return 1
    def __eq__(self, o):
        self.eqs += 1
        return self.k == o.k
a, b = K(1), K(2)
d = {a: 1.0, b: 2.0}
def step(x): return x * d[K(2)] + a.eqs + b.eqs
#> a.k = 2
#> a.eqs = 0
## items_count_comparisons, eager: C code may call the __eq__
class K:
    eqs = 0
    def __init__(self, k): self.k = k
    def __eq__(self, o):
        K.eqs += 1
        return self.k == o.k
ks = [K(1), K(2), K(3)]
def step(x):
    i = ks.index(K(2)); c = ks.count(K(3)); m = K(9) in ks
    if ks == [K(1), K(2), K(3)]: x = x + 1
    ks.remove(K(1)); ks.insert(0, K(1))
    return x * K.eqs + i + c + m
#> K.eqs = 0
#> ks.reverse()
## keys_count_hashes, eager: C code may call the __eq__
class K:
    hashes = 0
    def __init__(self, k): self.k = k
    def __hash__(self):
        K.hashes += 1
        return self.k
    def __eq__(self, o): return self.k == o.k
    def __repr__(self): return f'K{self.k}'
d, s = {K(1): 1.0}, {K(1)}
def step(x):
    d[K(2)] = d.get(K(1), 0.0) + 1
    s.add(K(3))
    a = K(3) in s, K(4) in d, d.setdefault(K(5), 2.0), d.pop(K(2))
    return x * K.hashes + len(d), a
#> K.hashes = 0
#> d.clear()
## keys_are_read_when_compared
class K:
    fold = False
    def __init__(self, k): self.k = k
    def __hash__(self): return hash(self.k.lower())
    def __eq__(self, o): return self.k == o.k or (K.fold and self.k.lower() == o.k.lower())
    def __repr__(self): return self.k
keys = [K('a'), K('B')]
d = dict.fromkeys(keys, 1.0)
def step(x): return x * d.get(K('b'), 5.0) + (K('A') in d)
#> K.fold = True
#> keys[0].k = 'q'; d[keys[1]] = 7.0
#> K.fold = False; keys[1].k = 'b'
""")

SHARED: Final = stories("""
## shared_dict_of_attributes, traces: 14
class B:
    shared = {'n': 0}
    def __init__(self): self.__dict__ = self.shared
    def drop(self):
        if hasattr(self, 'tmp'): del self.tmp
        else: self.tmp = 1
def step(x):
    b = B(); b.n += 1
    B().drop()
    return x * B().n + len(B.shared), hasattr(b, 'tmp'), vars(b)['n']
#> B.shared['n'] = 10
#> B.shared = {'n': 100}
#> B.n = 5; del B.shared['n']
## shared_dict_leaves, eager: whose __dict__ was made outside
class B:
    shared = {'n': 0}
    def __init__(self): self.__dict__ = self.shared
def step(x):
    b = B(); b.n += 1
    return x * b.n, b
## lazy_map, traces: 6
l = [1.0, 2.0, 3.0]
def step(x):
    out = []
    for v in map(lambda v: v * 2, l):
        if v > 5 and len(l) > 3: l.pop()
        elif len(l) < 6: l.append(v)
        out.append(v)
    return x * sum(out) + len(l), out
#> l[:] = [1.0, 7.0]
## lazy_enumerate, traces: 6
l = [1.0, 2.0, 3.0]
def step(x):
    out = []
    for i, v in enumerate(l):
        out.append(v)
        if i == 1 and len(l) < 6: l.append(v * 2)
    return x * sum(out) + len(l), out
#> l[:] = [1.0, 7.0]
## lazy_zip, traces: 6
l = [1.0, 2.0, 3.0]
def step(x):
    out = []
    for a, b in zip(l, itertools.count()):
        out.append(a)
        if len(l) < 6 and b < 2: l.append(a - b)
    return x * sum(out) + len(l), out
#> l[:] = [1.0, 7.0]
## lazy_reversed, traces: 6
l = [1.0, 2.0, 3.0]
def step(x):
    out = []
    for v in reversed(l):
        if v < 2: l.append(0.5)
        out.append(v)
    return x * sum(out) + len(l), out
#> l[:] = [1.0, 7.0]
## lazy_filter_starmap
l = [1.0, 2.0, 3.0]
def step(x):
    out = []
    for v in filter(lambda v: v < 5, l):
        if len(l) < 5: l.append(v + 1)
        out.append(v)
    for v in itertools.islice(l, 3):
        l[0] = v
        out.append(v)
    for v in itertools.chain(l, l):
        if len(l) < 8: l.append(v)
        out.append(v)
    for v in itertools.accumulate(l):
        if len(l) < 9: l.append(1.0)
        out.append(v)
    return x * sum(out) + len(l), out
#> l[:] = [1.0, 7.0]
## lazy_genexpr, traces: 6
l = [1.0, 2.0, 3.0]
def step(x):
    out = []
    g = (v * 2 for v in l if v)
    out.append(next(g))
    l.append(out[0])
    l[1] += 1
    out += g
    l.pop()
    return x * sum(out), out
#> l[:] = [1.0, 7.0]
## function_over_a_list_that_changes, traces: 6
l = [1.0, 2.0, 3.0]
def step(x):
    out = []
    for v, w in map(lambda v, w: (v * 2, w), l, l):
        if v > 5 and len(l) > 3: l.pop()
        elif len(l) < 6: l.append(w)
        out.append(v)
    return x * sum(out) + len(l), out
#> l[:] = [1.0, 7.0]
""")

LIFETIMES: Final = stories("""
## reference_asked_before_and_after, traces: 12
class N: v = 1.0
d = {'k': N()}
r = weakref.ref(d['k'])
def step(x):
    n = r()
    d['n'] = d.get('n', 0) + 1
    return x * (n.v if n is not None else 5.0) + (r() is None)
#> d["k"].v = 9.0
#> d['k'] = N(); d['k'].v = 3.0; r = weakref.ref(d['k'])
#> d.clear()
## slot_holds_the_last, eager: still lives
class N: pass
class S: __slots__ = ('n',)
s = S(); s.n = N()
r = weakref.ref(s.n)
def step(x):
    s.n = None
    return x * (1.0 if r() is None else 2.0)
#> s.n = N(); r = weakref.ref(s.n)
## variable_holds_the_last, eager: still lives
class N: pass
def make():
    n = N()
    r = weakref.ref(n)
    def drop():
        nonlocal n
        n = None
        return r() is None
    return drop
drop = make()
def step(x): return x * (1.0 if drop() else 2.0)
#> drop = make()
## global_deleted, eager: still lives
class N: pass
n = N(); r = weakref.ref(n)
def step(x):
    global n
    n = 5
    return x * (1.0 if r() is None else 2.0)
#> n = N(); r = weakref.ref(n)
## weak_set_members, eager: still lives
class N: pass
keep = [N(), N()]
w = weakref.WeakSet(keep)
def step(x):
    if keep: keep.pop()
    return x * len(w)
#> keep.append(N()); w.add(keep[0])
## weakref_dies_inside, eager: still lives
class N: pass
d = {'k': N()}
r = weakref.ref(d['k'])
def step(x):
    d.pop('k', None)
    return x * (1.0 if r() is None else 2.0)
#> d['k'] = N(); r = weakref.ref(d['k'])
## weakvalue_drops_inside, eager: still lives
class N: pass
keep = [N()]
w = weakref.WeakValueDictionary(a=keep[0])
def step(x):
    keep.clear()
    return x * (len(w) + 1)
#> keep.append(N()); w['b'] = keep[0]
## weakref_of_made
class N: pass
def step(x):
    n = N()
    r = weakref.ref(n)
    a = r() is n
    del n
    return x * (1.0 if r() is None else 2.0), a
## weak_callback_inside, eager: the callback of a weak reference
class N: pass
d, dead = {'k': N()}, []
r = weakref.ref(d['k'], lambda _: dead.append(1))
def step(x):
    d.pop('k', None)
    return x * (1 + len(dead))
#> d['k'] = N(); r = weakref.ref(d['k'], lambda _: dead.append(2))
## finalizer_inside, eager: the callback of a weak reference
class N: pass
d, dead = {'k': N()}, []
f = weakref.finalize(d['k'], dead.append, 1)
def step(x):
    d.pop('k', None)
    return x * (1 + len(dead))
## weakvaluedict
class N:
    def __init__(self, v): self.v = v
keep = {'a': N(1.0)}
w = weakref.WeakValueDictionary(keep)
def step(x): return x * (w['a'].v if 'a' in w else 9.0) + len(w)
#> keep['a'].v = 4.0
#> keep.clear()
#> keep['a'] = w['a'] = N(5.0)
""")

PRINTED: Final = stories("""
## stdout_redirected
n = 3
def step(x):
    buf = io.StringIO()
    with contextlib.redirect_stdout(buf):
        print('hello', n)
        print('x', x.shape, end='')
    print('outside', n)
    return x * len(buf.getvalue())
#> n = 12345
## stdout_swapped_by_hand
n = 3
def step(x):
    old, sys.stdout = sys.stdout, io.StringIO()
    try: print('inside', n)
    finally: out, sys.stdout = sys.stdout, old
    print('after')
    return x * len(out.getvalue())
#> n = 4444
## stdout_into_outside_buffer, eager: getvalue() of a StringIO
buf = io.StringIO()
def step(x):
    with contextlib.redirect_stdout(buf): print('a')
    return x * len(buf.getvalue())
## file_of_a_class
class Sink:
    def __init__(self): self.parts = []
    def write(self, s): self.parts.append(s)
    def flush(self): self.parts.append('F')
sink = Sink()
def step(x):
    print('a', len(sink.parts), x.shape, file=sink, sep='-')
    print('b', end='', file=sink, flush=True)
    print(file=sink)
    return x * len(sink.parts)
#> sink.parts.clear()
#> Sink.write = lambda self, s: None
#> sink = None
## file_inherits_from_a_buffer, eager: is written in C
class Sink(io.StringIO):
    n = 0
    def write(self, s):
        Sink.n += 1
        return super().write(s.upper())
sink = Sink()
def step(x):
    print('a', 'b', file=sink)
    return x * Sink.n
#> Sink.n = 0
## separators_that_fail
class Sink:
    out = []
    def write(self, s): self.out.append(s)
sink, sep = Sink(), 5
def step(x):
    try: print('a', 'b', sep=sep, file=sink)
    except TypeError as e: return x, str(e)
    return x * len(sink.out)
#> sep = None
#> sep = ''
""")

LOGS: Final = stories("""
## handler_counts, eager: names is read by the function
class H(logging.Handler):
    n = 0
    def emit(self, r): self.n += 1
h = H(); log = logging.Logger('own2'); log.addHandler(h)
def step(x):
    log.warning('a')
    return x * h.n
#> h.n = 10
#> log.setLevel(logging.ERROR)
## handler_fills_a_list, eager: names is read by the function
lines = []
class H(logging.Handler):
    def emit(self, r): lines.append(r.getMessage())
log = logging.Logger('own2'); log.addHandler(H())
def step(x):
    log.warning('n %d', len(lines))
    return x * len(lines)
#> lines.clear()
## filter_counts_in_its_class, eager: names is read by the function
class F(logging.Filter):
    n = 0
    def filter(self, r):
        F.n += 1
        return True
log = logging.Logger('own2'); log.addFilter(F())
def step(x):
    log.warning('a')
    return x * F.n
## handler_added_later, eager: names is read by the function
lines = []
class H(logging.Handler):
    def emit(self, r): lines.append(r.getMessage())
log = logging.Logger('own2'); log.addHandler(logging.NullHandler())
def step(x):
    log.warning('n')
    return x * len(lines)
#> log.addHandler(H())
#> lines.clear()
## handler_of_its_own_affairs
class H(logging.Handler):
    seen = 0
    def emit(self, r): self.seen += len(r.getMessage())
h = H(); log = logging.Logger('own2'); log.addHandler(h)
n = 0
def step(x):
    global n
    n += 1
    log.warning('n %d', n)
    return x * n
#> h.seen = 0
#> log.removeHandler(h)
""")

SETTINGS: Final = stories("""
## texts_of_arrays
a, k = np.array([1.123456789, 2.0]), 2.0
def step(x): return x * k, str(a), repr(a), f'{a}', f'{a!r:>30}', '%s' % (a,), '{}'.format(a), '{0[0]}'.format([a]), str({'a': [a]}), np.array2string(a), a.__repr__()
#> np.set_printoptions(precision=3)
#> a[0] = 7.7777777
#> np.set_printoptions(precision=8)
## settings_for_errors, eager: NumPy's settings are set or read (numpy.errstate)
a = np.array([1.0, 0.0])
def step(x):
    with np.errstate(divide='ignore'): b = 1 / a
    return x * float(b[0]), str(b)
#> a[0] = 4.0
## settings_set_inside, eager: NumPy's settings are set or read (numpy.printoptions)
a = np.array([1.123456789, 2.0])
def step(x):
    with np.printoptions(precision=2): t = str(a)
    np.set_printoptions(precision=4)
    u = str(a)
    np.set_printoptions(precision=8)
    return x * len(t), t, u
#> a[0] = 4.0
## settings_read, eager: NumPy's settings are set or read (numpy.geterr)
def step(x): return x * len(np.geterr()['divide']), np.geterr()['over']
#> np.seterr(divide='raise')
#> np.seterr(divide='warn')
""")


@pytest.mark.parametrize("story", COMPARISONS + SHARED + LIFETIMES + PRINTED + LOGS + SETTINGS)
def test_code_behind_calls(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)


def test_an_object_in_the_place_of_the_standard_output_is_part_of_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lines:
        def __init__(self) -> None:
            self.count = 0

        def write(self, text: str) -> None:
            self.count += text.count("\n")

    lines = Lines()

    def step(x: Any) -> Any:
        print("a", x.shape)
        return x * lines.count

    compiled, x = rn.compile(step), rn.ones(())
    assert [float(compiled(x)) for _ in range(3)] == [0.0] * 3
    monkeypatch.setattr(sys, "stdout", lines)
    assert [float(compiled(x)) for _ in range(4)] == [1.0, 2.0, 3.0, 4.0]
