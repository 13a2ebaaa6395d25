"""What CPython 3.14 brought: the language, its lazy annotations, and what is new in its library."""

from __future__ import annotations

import sys
from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

SINCE_314: Final = stories("""
## template_string
from string.templatelib import Interpolation
def told(template):
    return [p if isinstance(p, str) else (p.value, p.expression, p.conversion, p.format_spec) for p in template]
def step(x):
    t = t'a{n}b{k!r:>{width}}'
    return x * n, told(t), t.strings
n, k, width = 2, 'q', 5
#> n = 3
#> k = 'w'
#> width = 7
## template_string_with_a_tensor
def told(template):
    return [p if isinstance(p, str) else p.expression for p in template], template.values[0] * 2
def step(x): return told(t'{x + n}')
n = 2
#> n = 3
## template_string_outside, eager: is a Template, whose content cannot be watched
template = t'{2}'
def step(x): return x * template.values[0], template.interpolations[0].expression
#> template = t'{3}'
## placeholders_of_partial
def f(a, b, c): return a + b * 2 + c * 3
p = functools.partial(f, functools.Placeholder, 2.0)
def step(x):
    try:
        return p(*([x] * n), c=5.0)
    except TypeError as problem:
        return str(problem)
n = 1
#> p = functools.partial(f, functools.Placeholder, 7.0)
#> n = 0
## placeholders_made_within
def f(a, b): return a - b * 2
def step(x): return functools.partial(f, functools.Placeholder, k)(x)
k = 3.0
#> k = 4.0
## partial_binds_like_a_method
def f(scale, self, x): return x * scale * self.k
class A:
    k = 2.0
    go = functools.partial(f, 3.0)
a = A()
def step(x):
    try:
        return a.go(x)
    except TypeError as problem:
        return type(problem).__name__
#> a.k = 5.0
#> A.go = functools.partial(f, 4.0)
#> A.go = staticmethod(functools.partial(f, 4.0, a))
## strict_map
first, second = [1, 2, 3], [4, 5, 6]
def step(x):
    try:
        return x * sum(map(lambda a, b: a * b, first, second, strict=strict))
    except ValueError as problem:
        return str(problem)
strict = True
#> first.append(9)
#> strict = False
#> first.pop()
## greatest_first
import heapq
heap = [1, 5, 3]
heapq.heapify_max(heap)
def step(x):
    heapq.heappush_max(heap, n)
    return x * heapq.heappop_max(heap)
n = 4
#> n = 9
#> heap.clear()
## none_by_operator
import operator
def step(x): return x * (1 if operator.is_none(state) else 2), operator.is_not_none(state)
state = None
#> state = 3
#> state = None
## annotations_are_read_late
class A:
    a: 'int' = 1
    b: later = 2
later = int
def step(x): return x * len(A.__annotations__), sorted(A.__annotations__)
#> A.__annotations__['c'] = str
#> del A.__annotations__['a']
## annotations_of_functions
def f(a: kind, b: kind) -> kind: return a
kind = int
def step(x): return x * len(f.__annotations__), f.__annotations__['a'] is int
#> f.__annotations__ = {'a': float}
#> f.__annotations__ = {'a': int, 'b': int}
## function_made_within_has_annotations
def step(x):
    def f(a: kind = n) -> kind: return a * 2
    return x * f(), list(f.__annotations__), f.__annotations__['a'].__name__
kind, n = int, 2
#> n = 3
#> kind = float
## class_made_within_has_annotations
def step(x):
    class A:
        a: kind = n
    return x * A.a, A.__annotations__['a'].__name__
kind, n = int, 2
#> n = 3
#> kind = float
## annotations_of_names_that_are_not_there
import annotationlib
def step(x):
    def f(a: missing, b: kind[k]) -> there: return a * 2
    texts = annotationlib.get_annotations(f, format=annotationlib.Format.STRING)
    refs = annotationlib.get_annotations(f, format=annotationlib.Format.FORWARDREF)
    return f(x, 0), texts, refs['return'], type(refs['a']).__name__
kind, k, there = list, int, float
#> there = str
#> kind = tuple
## dataclass_with_late_names
@dataclasses.dataclass
class A:
    a: Later = 2.0
    def scaled(self, x) -> Later: return x * self.a
class Later: pass
a = A()
def step(x): return a.scaled(x), [f.name for f in dataclasses.fields(a)]
#> a.a = 3.0
#> a = A(5.0)
## exceptions_without_brackets
def step(x):
    try:
        return x / table[key]
    except KeyError, ZeroDivisionError:
        return x
table, key = {'a': 2.0}, 'a'
#> key = 'b'
#> table['b'] = 4.0
## any_and_all_of_generators
rows = [1, 2, 3]
def step(x):
    return x * any(r > limit for r in rows), all(r > limit for r in rows), tuple(r * 2 for r in rows)
limit = 2
#> limit = 3
#> rows.append(4)
#> rows.clear()
## any_is_replaced
rows = [0, 0]
def step(x): return x * any(r for r in rows), tuple(r for r in rows)
#> any = lambda rows: sum(rows) + 5
#> del any
#> tuple = lambda rows: list(rows)[::-1] + [1]
#> rows[0] = 3
## truth_of_tensors_in_any
def step(x): return x * 2 if any(v > limit for v in values) else x
limit, values = 1.0, [0.5, 2.0]
#> values[1] = 0.1
## unpacked_calls
rows, named = [1.0, 2.0], {'c': 3.0}
def f(*a, **k): return sum(a) + 10 * sum(k.values()), sorted(k)
class Holder: rows = [4.0]
h = Holder()
def step(x): return x * f(*rows)[0], f(*rows, **named), f(*h.rows), f(**named), f(*h.rows, c=1, **{}), h.f(*rows)
h.f = f
#> rows.append(5.0)
#> named['d'] = 1.0
#> h.rows = (7.0, 8.0)
## managers
class M:
    def __init__(self, n): self.n, self.log = n, []
    def __enter__(self): self.log.append('in'); return self.n
    def __exit__(self, *details): self.log.append(details[0] and details[0].__name__); return self.n > 2
m, n = M(2), M(3)
def step(x):
    with m as a, n as b:
        if x.shape[0] == size: raise ValueError('inside')
        return x * a * b
    return x
size = 7
#> size = 2
#> m.n = 5
#> n.n = 1
## no_manager
class A:
    def __enter__(self): return 1
class B:
    def __exit__(self, *a): pass
class C:
    async def __aenter__(self): pass
    async def __aexit__(self, *a): pass
def step(x):
    with value: return x
value = A()
#> value = B()
#> value = C()
#> value = 3
""")


@pytest.mark.skipif(sys.version_info < (3, 14), reason="the language of CPython 3.14")
@pytest.mark.parametrize("story", SINCE_314)
def test_as_python(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
