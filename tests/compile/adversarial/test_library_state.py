"""Numbers, texts and containers that a step changes itself, and that others change between calls."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

CASES: Final = """
## lock, eager: a lock is taken
import threading
class B:
    pass
b = B()
b.l = threading.Lock()
b.n = 0
def step(x):
    with b.l:
        b.n += 1
    return x * b.n
#> b.n = 0
## rlock_cond, eager: a lock is taken
import threading
class B:
    pass
b = B()
b.l = threading.RLock()
b.n = 0
def step(x):
    with b.l:
        with b.l:
            b.n += 1
    return x * b.n
## weakmethod
class B:
    pass
b = B()
B.go = lambda s, x: x * 2
b.w = weakref.WeakMethod(b.go)
def step(x):
    return b.w()(x)
#> B.go = lambda s, x: x * 9
## numbers_abc
import numbers
import collections.abc as cabc
class B:
    pass
b = B()
class K:
    pass
b.v = 3
def step(x):
    return (
        x * (2 if isinstance(b.v, numbers.Integral) else 3)
        + isinstance(b.v, cabc.Hashable)
        + isinstance(b.v, cabc.Sized)
    )
#> b.v = 2.5
#> b.v = []
#> numbers.Integral.register(K); b.v = K()
## pprint_textwrap, eager: <string>:9:
import pprint, textwrap
class B:
    pass
b = B()
b.d = {"a": 1}
b.t = "abc def ghi"
b.n = 7
def step(x):
    return x * len(pprint.pformat(b.d)) + len(textwrap.wrap(b.t, b.n))
#> b.d['z'] = 1
#> b.n = 3
#> b.t *= 2
## csv_, eager: <string>:7: _csv.reader
import csv
class B:
    pass
b = B()
b.l = ["a,b"]
def step(x):
    return x * len(list(csv.reader(b.l)))
#> b.l.append('1,2')
## copy_shallow
class B:
    pass
b = B()
b.d = {"l": []}
def step(x):
    c = copy.copy(b.d)
    c["l"].append(1)
    d = copy.deepcopy(b.d)
    d["l"].append(5)
    return x * len(c["l"]) + len(d["l"])
#> b.d['l'].clear()
#> b.d = {'l': [1]}
## copy_list_tensors
class B:
    pass
def X(n=3):
    return tensor(*range(1, n + 1))
b = B()
b.l = [X(), X()]
def step(x):
    c = list(b.l)
    c[0] = c[0] + x
    b.l = c
    return c[0] * 1, b.l[1] is c[1]
#> b.l.append(X())
#> b.l = [X(), X()]
## difflib_unicode, eager: unicodedata.normalize
import difflib, unicodedata
class B:
    pass
b = B()
b.s = "ab"
def step(x):
    return x * difflib.SequenceMatcher(None, b.s, "abcd").ratio() + len(unicodedata.normalize("NFD", b.s))
#> b.s = 'abd'
## ast_literal, eager: <string>:7: compile
import ast
class B:
    pass
b = B()
b.s = "(2, 3)"
def step(x):
    return x * ast.literal_eval(b.s)[0]
#> b.s = '[5]'
## shlex_
import shlex
class B:
    pass
b = B()
b.s = "a b"
def step(x):
    return x * len(shlex.split(b.s))
#> b.s = 'a b "c d"'
## traceback_, eager: <string>:11: id
import traceback
class B:
    pass
b = B()
b.k = 2
def step(x):
    try:
        1 / b.k
    except ZeroDivisionError as e:
        b.m = str(e)
        return x * len(traceback.format_exception_only(e))
    return x * b.k
#> b.k = 0
#> b.k = 4
## bool_containers
class B:
    pass
b = B()
b.l = []
b.d = {}
b.s = ""
def step(x):
    return x * (2 if b.l else 3) + (5 if b.d else 7) + (not b.s) + (b.l or [9])[0]
#> b.l.append(1)
#> b.d['k'] = 1
#> b.s = 'q'
#> b.l.clear()
## nested_path
class B:
    pass
b = B()
o = B()
o.k = {(1, "q"): 2}
b.a = {"l": [0, o]}
def step(x):
    return x * b.a["l"][1].k[(1, "q")]
#> b.a['l'][1].k[(1, 'q')] = 9
#> b.a['l'].insert(1, b.a['l'][1])
#> b.a['l'][1] = copy.deepcopy(b.a['l'][2]); b.a['l'][2].k.clear()
#> b.a['l'][1].k[(1, 'q')] = 3
## aliasing_dicts
class B:
    pass
b = B()
b.p = {"k": 1}
b.q = b.p
def step(x):
    b.p["k"] += 1
    return x * b.q["k"] + (b.p is b.q)
#> b.q = dict(b.p)
#> b.p = b.q
#> b.q['k'] = 50
## aliasing_lists
class B:
    pass
b = B()
b.p = [1]
b.q = b.p
b.r = {"l": b.p}
def step(x):
    b.p.append(1)
    b.q[0] = len(b.p)
    return x * b.p[0] + len(b.q) + b.r["l"][0]
#> b.q = list(b.p)
#> b.p = b.r['l'] = [4]
#> b.q = b.p
## self_ref
class B:
    pass
b = B()
b.n = 0
def step(x):
    b.me = b
    b.me.me.n += 1
    return x * b.me.me.me.n
#> b.n = 9
## linked_list, traces: 9
class B:
    pass
b = B()
b.head = (1, None)
def step(x):
    n = b.head
    s = 0
    while n is not None:
        s += n[0]
        n = n[1]
    b.head = (s % 7, b.head)
    return x * s
#> b.head = None
#> b.head = (3, (4, None))
## stack_machine
class B:
    pass
b = B()
b.st = []
b.n = 0
def step(x):
    b.st.append(b.n)
    b.n += 1
    if b.n % 3 == 0:
        a = b.st.pop()
        c = b.st.pop()
        b.st.append(a * c + 1)
    return x * b.st[-1] + len(b.st)
#> b.st.clear(); b.n = 0
## matrix_of_lists
class B:
    pass
b = B()
b.g = [[0] * 3 for _ in range(2)]
b.n = 0
def step(x):
    b.g[b.n % 2][b.n % 3] += b.n
    b.n += 1
    return x * sum(map(sum, b.g)) + b.g[0][0]
#> b.g[1] = b.g[0]
#> b.g = [[0] * 3] * 2
#> b.n = 0
## ema_float
class B:
    pass
b = B()
b.m = 0.9
b.e = 0.0
b.n = 0
def step(x):
    b.e = b.m * b.e + (1 - b.m) * b.n
    b.n += 1
    return x * b.e, b.e
#> b.m = .5
#> b.e = 0.
#> b.n = 0
#> b.n = 1.5
## counter_types
class B:
    pass
b = B()
b.n = 0
b.s = 1
def step(x):
    b.n += b.s
    return x * b.n, type(b.n).__name__, b.n
#> b.s = 1.0
#> b.n = 0
#> b.s = True
#> b.n = 2**62
#> b.n = 2.**53
## counter_wraps
class B:
    pass
b = B()
b.n = 0
b.m = 3
def step(x):
    b.n = (b.n + 1) % b.m
    return x * b.n if b.n else x - 100
#> b.m = 2
#> b.m = 5
## string_state, traces: 9
class B:
    pass
b = B()
b.s = ""
b.n = 0
def step(x):
    b.s += "ab"[b.n % 2]
    b.n += 1
    return x * len(b.s) + b.s.count("a") + (b.s[-1] == "a")
#> b.s = ''
#> b.n = 0
## tuple_state
class B:
    pass
b = B()
b.t = ()
b.n = 0
def step(x):
    b.t = (*b.t[-2:], b.n)
    b.n += 1
    return x * sum(b.t) + len(b.t)
#> b.t = ()
#> b.n = 0
## bool_toggle
class B:
    pass
b = B()
b.f = False
def step(x):
    b.f = not b.f
    return x * 2 if b.f else x * 3
#> b.f = True
#> b.f = None
#> b.f = 1
#> b.f = []
## format_num_state, traces: 9
class B:
    pass
b = B()
b.n = 0
b.l = []
def step(x):
    b.n += 1
    b.l.append(f"{b.n:03d}|{b.n / 3:.2f}")
    return x * len(b.l[-1]) + len(b.l), b.l[-1]
#> b.n = 998
#> b.l.clear()
## str_join_split
class B:
    pass
b = B()
b.n = 0
def step(x):
    b.n += 1
    t = ",".join(str(i * b.n) for i in range(3))
    return x * sum(map(int, t.split(","))), t
#> b.n = 100
## int_as_index
class B:
    pass
b = B()
b.n = 0
b.w = [1, 2, 3, 4]
def step(x):
    b.n += 1
    return x[b.n % 3], x * b.w[b.n % 4]
#> b.w[2] = 50
#> b.w = (9, 8, 7, 6)
#> b.n = 0
## global_del_readd
class B:
    pass
b = B()
GG = 2
def step(x):
    return x * GG
#> GG = 3
#> del GG
#> GG = 'a'
#> GG = 2.5
#> GG = rn.ones(3)
#> GG = np.ones(3)
#> GG = None
## func_swapped
class B:
    pass
b = B()
def fn(x):
    return x * 2
def step(x):
    return fn(x)
#> fn = lambda x: x * 3
#> def fn(x): return x * 3
#> fn = functools.partial(operator.mul, 2)
#> fn = rn.exp
#> fn = rn.sin
#> fn = type('Q', (), {'__call__': lambda s, x: x * 7})()
## vararg_num, traces: 6
class B:
    pass
b = B()
b.n = 0
def step(x):
    b.n += 1
    return (lambda *a, **k: x * len(a) + sum(a) + sum(k.values()))(
        *range(b.n % 4), **{f"k{i}": i for i in range(b.n % 3)}
    )
#> b.n = 10
"""


@pytest.mark.parametrize("story", stories(CASES))
def test_a_story(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
