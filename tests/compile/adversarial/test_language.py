"""Closures, generators, names and texts in odd places."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

CLOSURES: Final = stories("""
## closure_in_a_default
def make(k):
    def inner(x, f=lambda v: v * k): return f(x)
    return inner
inner = make(2.0)
def step(x): return inner(x)
#> inner.__defaults__ = (lambda v: v * 5.0,)
#> inner = make(3.0)
## cell_emptied_and_filled
def make():
    k = 2.0
    def read(): return k
    def drop():
        nonlocal k
        del k
    def fill(v):
        nonlocal k
        k = v
    return read, drop, fill
read, drop, fill = make()
def step(x): return x * read()
#> drop()
#> fill(7.0)
## cell_contents_set
def make(k):
    def inner(x): return x * k
    return inner
inner = make(2.0)
def step(x): return inner(x)
#> inner.__closure__[0].cell_contents = 5.0
#> inner.__closure__[0].cell_contents = 6
## late_binding_in_a_loop
functions = [lambda x: x * i for i in range(3)]
def step(x): return sum(f(x) for f in functions)
#> functions.pop()
#> functions.append(lambda x: x - 1)
## counter_in_two_closures
def make():
    n = 0
    def up():
        nonlocal n
        n += 1
        return n
    def get(): return n
    return up, get
up, get = make()
seen = []
def step(x):
    up()
    seen.append(get())
    return x * get()
#> up(), up()
#> up()
## nonlocal_through_three_levels
def outer():
    n = 1.0
    def middle():
        def inner():
            nonlocal n
            n = n * 2
            return n
        return inner
    return middle(), lambda: n
inner, look = outer()
def step(x): return x * inner() + look()
#> inner()
## generator_function_with_state
log = []
def pieces(n):
    try:
        for i in range(n):
            got = yield i * 2.0
            log.append(got)
    finally:
        log.append('closed')
n = 3
def step(x):
    g = pieces(n)
    y = x * next(g)
    for _ in range(n - 1):
        y = y + g.send('a')
    g.close()
    return y
#> n = 2
#> log.clear()
## generator_throw_and_return
def pieces(k):
    try:
        yield k
    except ValueError as e:
        yield len(str(e))
    return k * 2
def all_of(k):
    result = yield from pieces(k)
    yield result
k = 2.0
def step(x):
    g = all_of(k)
    a = next(g)
    b = g.throw(ValueError('abc'))
    return x * a + b + list(g)[0]
#> k = 5.0
## generator_outside_is_read, eager: an iterator made outside
g = (i * 1.0 for i in range(100))
def step(x): return x * next(g)
#> next(g)
## generator_expression_over_globals
scale, values = 2.0, [1.0, 2.0]
def step(x): return x * sum(scale * v for v in values if v > 0)
#> values.append(-1.0); scale = 3.0
#> values[0] = -5.0
## comprehension_with_closures
base = {'a': 1.0, 'b': 2.0}
def step(x):
    functions = {k: (lambda y, v=v: y * v) for k, v in base.items()}
    return [f(x) for f in functions.values()], {k for k in functions}, sorted(functions)
#> base['c'] = 3.0
#> del base['a']
## nested_comprehension_conditions
rows, limit = [[1.0, 2.0], [3.0]], 2
def step(x): return x * sum(v for row in rows if len(row) < limit for v in row if v)
#> limit = 3
#> rows[1].append(0.0)
## walrus_in_conditions
queue_, last = [3.0, 2.0, 0.0, 5.0], None
def step(x):
    y = x
    if (n := len(queue_)) > 2 and (last_ := queue_[-1]):
        y = y * n + last_
    while (v := queue_[0]) > 2.5:
        y = y - v
        break
    return y, [w := v, w * 2], any((hit := q) == 2.0 for q in queue_), hit
#> queue_.pop()
#> queue_[:] = [2.0, 1.0]
## star_arguments_everywhere
args, named = [1.0, 2.0], {'c': 3.0}
def f(a, b=0.5, *rest, c=0.0, **more): return a + b + sum(rest) + c + sum(more.values()) + len(more)
def step(x):
    first, *middle, end = [*args, *named.values(), 9.0]
    return x * f(*args, **named) + f(*middle, first, **{**named, 'z': end})
#> args.append(4.0)
#> named['d'] = 5.0; args.pop(0)
## wrong_number_of_arguments
args = [1.0]
def f(a, b): return a + b
def step(x): return x * f(*args)
#> args.append(2.0)
#> args.append(3.0)
#> args.clear()
## duplicate_keyword
named, more = {'a': 1.0}, {'b': 2.0}
def f(a=0.0, b=0.0): return a + b * 2
def step(x): return x * f(**named, **more)
#> more['a'] = 3.0
#> del named['a']
## mutable_default_grows
def remember(v, seen=[]):
    seen.append(v)
    return len(seen)
def step(x): return x * remember(1.0)
#> remember.__defaults__[0].clear()
#> remember(3.0)
## mutable_default_dict_cache
def cached(k, table={}):
    if k not in table:
        table[k] = k * 2.0
    return table[k]
k = 1
def step(x): return x * cached(k)
#> k = 2
#> cached.__defaults__[0][2] = 50.0
#> cached.__defaults__[0].clear()
## keyword_defaults_replaced
def f(x, *, k=2.0): return x * k
def step(x): return f(x)
#> f.__kwdefaults__['k'] = 3.0
#> f.__kwdefaults__ = {'k': 4.0}
#> f.__kwdefaults__ = None
## code_replaced
def f(x): return x * 2.0
def g(x): return x * 3.0
def step(x): return f(x)
#> f.__code__ = g.__code__
## recursion_over_a_tree
tree = {'v': 1.0, 'kids': [{'v': 2.0, 'kids': []}, {'v': 3.0, 'kids': []}]}
def total(node): return node['v'] + sum(total(k) for k in node['kids'])
def step(x): return x * total(tree)
#> tree['kids'][0]['kids'].append({'v': 10.0, 'kids': []})
#> tree['kids'].pop()
## mutual_recursion
depth = 5
def even(n): return 1.0 if n == 0 else odd(n - 1)
def odd(n): return 2.0 if n == 0 else even(n - 1)
def step(x): return x * even(depth)
#> depth = 4
#> odd = lambda n: 9.0
## recursion_that_is_rebound
def f(n): return 1.0 if n <= 1 else n * f(n - 1)
n = 4
def step(x): return x * f(n)
#> old = f; f = lambda n: 0.5
#> f = old; n = 3
## recursion_too_deep
limit = 10 ** 6
def f(n): return f(n + 1) if n < limit else n
def step(x):
    try:
        return x * f(0)
    except RecursionError:
        return x
#> limit = 3
## decorator_with_state
def counted(f):
    @functools.wraps(f)
    def inner(*a):
        inner.calls += 1
        return f(*a) * inner.gain
    inner.calls, inner.gain = 0, 1.0
    return inner
@counted
def f(x): return x + f.calls
def step(x): return f(x)
#> f.gain = 4.0
#> f.__wrapped__ = None
#> f.calls = 100
""")

TEXTS: Final = stories("""
## format_spec_from_outside
spec, value = '.2f', 3.14159
def step(x): return x * len(f'{value:{spec}}'), f'{value:>{len(spec)}}', format(value, spec)
#> spec = '.4f'
#> value = 100.0
## own_format
class T:
    unit = 'cm'
    def __format__(self, spec): return f'{spec or "-"}{self.unit}'
    def __str__(self): return 'T' + self.unit
    def __repr__(self): return '<T>'
t = T()
def step(x): return x * len(f'{t:abc}'), f'{t}', f'{t!s}', f'{t!r}', '%s %r' % (t, t), '{:x}{}'.format(t, t), str([t])
#> t.unit = 'metre'
#> T.__repr__ = lambda self: 'R' + self.unit
#> del T.__format__
## format_map_and_fields
class D(dict):
    def __missing__(self, k): return f'<{k}>'
d = D(a='x'); o = types.SimpleNamespace(n=1, l=[5, 6])
def step(x): return '{a}{b}'.format_map(d), '{0.n}-{0.l[1]}-{k}'.format(o, k=len(d)), x
#> d['b'] = 'y'
#> o.l[1] = 9; o.n = 3
## string_methods_with_outer_tables
table = {'a': 'b', 'c': None}
def step(x):
    t = str.maketrans(table)
    return 'abcabc'.translate(t), 'a,b;c'.replace(*pair), sep.join(['p', 'q']), x
pair, sep = (',', '-'), '/'
#> table['b'] = 'zz'
#> pair, sep = (';', '+'), ''
## bytes_and_bytearray, traces: 9
buffer = bytearray(b'abc')
def step(x):
    buffer.append(65)
    return x * len(buffer), bytes(buffer), buffer[0], buffer[1:3], buffer.decode()
#> buffer.clear()
#> buffer += b'zz'
## memoryview_of_outside, eager: a view of something outside
data = bytearray(b'abc'); view = memoryview(data)
def step(x):
    try: return x * view[0]
    except Exception as e: return type(e).__name__
#> data[0] = 1
## sorting_with_keys
items, order, reverse = ['bb', 'a', 'ccc'], {'bb': 2, 'a': 3, 'ccc': 1}, False
def step(x): return sorted(items, key=order.get, reverse=reverse), sorted(items, key=len)[0], max(items, key=lambda i: order[i]), x
#> order['a'] = 0
#> reverse = True
#> items.append('dd'); order['dd'] = 5
## sorting_own_objects
class V:
    sign = 1
    def __init__(self, v): self.v = v
    def __lt__(self, other): return self.sign * self.v < self.sign * other.v
    def __repr__(self): return f'V{self.v}'
values = [V(2), V(1), V(3)]
def step(x):
    return x * sorted(values)[0].v, [v.v for v in sorted(values, reverse=True)], min(values).v
#> values[0].v = 9
#> V.sign = -1
## sort_in_place_with_state
values, calls = [3, 1, 2], []
def key(v):
    calls.append(v)
    return -v
def step(x):
    values.sort(key=key)
    return x * values[0]
#> values.append(10)
#> calls.clear(); values.insert(0, 0)
## cmp_to_key
sign = 1
def compare(a, b): return sign * ((a > b) - (a < b))
values = [3.0, 1.0, 2.0]
def step(x): return x * sorted(values, key=functools.cmp_to_key(compare))[0]
#> sign = -1
#> values[1] = 8.0
## regular_expressions
pattern, text = re.compile(r'(\\d+)-(?P<w>\\w+)'), '12-abc 7-z'
def step(x):
    m = pattern.search(text)
    return (x * int(m[1]), m['w'], m.span(), pattern.sub(lambda m: m[2], text), [*pattern.finditer(text)][-1].group()) if m else -x
#> text = 'none'
#> text = '3-q'
#> pattern = re.compile(r'()(?P<w>q)')
## string_template_subclass
class T(string.Template): delimiter = '%'
t, values = T('%a-%b'), {'a': 1, 'b': 2}
def step(x): return t.substitute(values), x
#> values['a'] = 5
#> values['b'] = 'x'
## text_io
def step(x):
    out = io.StringIO()
    out.write('abc' * n)
    print('d', file=out)
    return x * len(out.getvalue())
n = 2
#> n = 3
## print_to_an_outside_file
out = io.StringIO()
def step(x):
    print('shape', x.shape, file=out, end=end)
    return x * 2
end = '!'
#> end = '?'
## json_of_state
state = {'a': [1, 2.0, None], 'b': {'c': True}}
def step(x): return x * len(json.dumps(state, sort_keys=True)), json.loads('[1, 2]')
#> state['b']['c'] = [1, 2, 3]
#> state['z'] = 'q'
""")


@pytest.mark.parametrize("story", CLOSURES + TEXTS)
def test_as_python(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
