"""Ways to take items out of a container from outside: later calls must see other items, and changes of the items."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.stories import Story, stories

SEQUENCES: Final = {  # over rows, a list, tuple or deque of items; v(item) is a number
    "for": "sum([v(r) for r in rows])",
    "index": "v(rows[0]) + v(rows[-1])",
    "generator": "sum(v(r) for r in rows)",
    "map": "sum(map(v, rows))",
    "filter": "v(list(filter(lambda r: v(r) > 0, rows))[0])",
    "zip": "sum(v(r) * i for r, i in zip(rows, (1, 2, 3)))",
    "zip_of_unpacked": "sum(v(r) for pair in zip(*[rows, rows]) for r in pair)",
    "enumerate": "sum(v(r) * i for i, r in enumerate(rows, 1))",
    "sorted": "v(sorted(rows, key=v)[0])",
    "min": "v(min(rows, key=v)) + v(max(rows, key=v))",
    "reversed": "v(list(reversed(rows))[0])",
    "list": "v(list(rows)[0]) + v(tuple(rows)[1])",
    "deque": "v(collections.deque(rows)[0])",
    "unpacked": "v([*rows][0]) + v((*rows,)[1])",
    "arguments": "(lambda *a: v(a[0]))(*rows)",
    "iterator": "v(next(iter(rows)))",
    "reduce": "functools.reduce(lambda a, b: a + v(b), rows, 0.0)",
    "any": "any(v(r) > 8 for r in rows) + all(v(r) < 8 for r in rows)",
    "chain": "sum(v(r) for r in itertools.chain(rows, rows))",
    "islice": "sum(v(r) for r in itertools.islice(rows, 1))",
    "product": "sum(v(a) * v(b) for a, b in itertools.product(rows, rows))",
    "pairwise": "sum(v(a) * v(b) for a, b in itertools.pairwise(rows))",
    "takewhile": "sum(v(r) for r in itertools.takewhile(lambda r: v(r) < 8, rows))",
    "partial": "functools.partial(lambda *a: v(a[0]), *rows)()",
    "itemgetter": "v(operator.itemgetter(0)(rows))",
    "getitem": "v(operator.getitem(rows, 0)) + v(rows.__getitem__(0))",
    "dict": "v(dict(enumerate(rows))[0])",
    "nested": "v([rows][0][0])",
    "format": "len('%s' % (v(rows[0]),)) + len('{}'.format(v(rows[0]))) + len(f'{v(rows[0])}')",
    "join": "len(','.join(str(v(r)) for r in rows))",
}
LISTS: Final = {
    "slice": "sum(v(r) for r in rows[:2]) + v(rows[::-1][0])",
    "copy": "v(rows.copy()[0])",
    "added": "v((rows + rows)[-1]) + v(([] + rows)[0])",
    "repeated": "v((rows * 2)[0])",
    "extended": "(lambda out: (out.extend(rows), v(out[0]))[1])([])",
    "added_in_place": "(lambda out: (out.__iadd__(rows), v(out[0]))[1])([])",
    "popped": "(lambda r: (rows.append(r), v(r))[1])(rows.pop())",
    "inserted": "(lambda out: (out.insert(0, rows[0]), v(out[0]))[1])([])",
    "set_slice": "(lambda out: (out.__setitem__(slice(0, 0), rows), v(out[0]))[1])([])",
}
DICTS: Final = {
    "for": "sum(v(d[k]) for k in d)",
    "values": "sum(v(r) for r in d.values())",
    "items": "sum(v(r) for _, r in d.items())",
    "get": "v(d.get('a'))",
    "setdefault": "v(d.setdefault('a', None))",
    "copy": "v(d.copy()['a'])",
    "dict": "v(dict(d)['a']) + v(dict(d.items())['a']) + v(dict(**d)['a'])",
    "merged": "v({**d}['a']) + v((d | {})['a'])",
    "updated": "(lambda out: (out.update(d), v(out['a']))[1])({})",
    "keywords": "(lambda **k: v(k['a']))(**d)",
    "list_of_values": "v(list(d.values())[0]) + v([*d.values()][0])",
    "sorted_items": "v(sorted(d.items(), key=lambda p: p[0])[0][1])",
    "popped": "(lambda r: (d.__setitem__('a', r), v(r))[1])(d.pop('a'))",
    "ordered": "v(collections.OrderedDict(d)['a'])",
    "defaulted": "v(collections.defaultdict(list, d)['a'])",
    "reversed": "v(d[list(reversed(d))[0]]) + sum(v(r) for r in reversed(d.values()))",
    "fromkeys": "v(dict.fromkeys(['k'], d['a'])['k'])",
    "namespace": "v(types.SimpleNamespace(**d).a)",
}
MADE: Final = {
    "list": ("rows = [{}, {}]", "rows[0]", SEQUENCES | LISTS),
    "tuple": ("rows = ({}, {})", "rows[0]", SEQUENCES),
    "deque": ("rows = collections.deque([{}, {}])", "rows[0]", SEQUENCES),
    "dict": ("d = dict(a={}, b={})", "d['a']", DICTS),
}
OBJECTS: Final = """
class Item:
    def __init__(self, v): self.v = v
def v(item): return item.v
"""


def rows(container: str, of_objects: bool) -> str:
    """Return a row for each way to take items out of a container, whose first item changes between calls."""
    made, place, ways = MADE[container]
    items = ("Item(1.0)", "Item(2.0)") if of_objects else ("1.0", "2.0")
    other = made.format("Item(5.0)" if of_objects else "5.0", items[1]) if container == "tuple" else f"{place} = 5.0"
    changes = [f"{place}.v = 9.0", other.replace("= 5.0", "= Item(5.0)")] if of_objects else [other]
    before = OBJECTS if of_objects else "def v(item): return item\n"
    return "".join(
        f"## {container}_{'of_objects' if of_objects else 'of_numbers'}_{name}, eager: perhaps\n"
        f"{before}{made.format(*items)}\ndef step(x): return x * ({way})\n" + "".join(f"#> {c}\n" for c in changes)
        for name, way in ways.items()
    )


ITEMS: Final = stories("".join(rows(container, of_objects) for container in MADE for of_objects in (True, False)))
TAKEN: Final = stories("""
## except_tuple_from_outside, eager: perhaps
errors = (ValueError, TypeError)
def step(x):
    try: raise ValueError('a')
    except errors: return x * 2
#> errors = (TypeError, KeyError)
#> errors = (ValueError, KeyError)
## percent_of_pair_from_outside, eager: perhaps
pair = (1, 2)
n = 0
def step(x):
    global n
    n += 1
    print((f'{n} ' + '%d %d') % pair)
    return x * 2
#> pair = (3, 4)
## percent_of_repr, eager: perhaps
n = 0
def step(x):
    global n
    n += 1
    print('%r %d' % ([1], n), '%s %d' % ([n], n))
    return x * 2
## inplace_made_inside, eager: perhaps
n = 0
def step(x):
    global n
    n += 1
    a = [n]; b = a
    a += (1,)
    a *= 2
    d = {1: n}; e = d
    d |= {2: n}
    s = {1}; t = s
    s |= {n % 3}
    q = collections.deque([n]); r = q
    q += [n]
    print(b, e, sorted(t), r)
    return x * 2
## max_of_generator, eager: perhaps
def items():
    for i in range(3):
        print('made', i)
        yield i
    yield 'a'
def key(v):
    print('key', v)
    return -v if type(v) is int else v
def step(x):
    it = items()
    try: m = max(it, key=key)
    except TypeError as e: m = 5
    print(list(it), max(3, 4), min([], default=2), max(items_2(), default=3))
    return x * m
def items_2():
    yield 1
## sums
log = [0.1, 0.2, 0.3]
def step(x):
        return x * sum(log) + sum([], 2.0) + sum([x, x]) + sum([1, 2.0, x]) + len(sum([[1], [2]], []))
## sum_of_text, eager: perhaps
def step(x):
    try: sum(['a'], '')
    except TypeError as e: print(e)
    try: sum(['a'])
    except TypeError as e: print(type(e))
    return x
## fsum, eager: perhaps
class P:
    def __init__(self, v): self.v = v
    def __float__(self): return self.v
ps = [P(1.0), P(2.0)]
def step(x): return x * math.fsum(p for p in ps) * math.prod([1.0, 2.0])
#> ps[0].v = 3.0
## count_of_objects, eager: perhaps
class P:
    def __init__(self, v): self.v = v
    def __eq__(self, o): return self.v == o
ps = [P(1.0), P(2.0)]
def step(x): return x * operator.countOf((p for p in ps), 1.0)
#> ps[1].v = 1.0
## iconcat, eager: perhaps
out = []
def step(x):
    operator.iconcat(out, [1])
    return x * len(out)
## format_fields, eager: perhaps
def step(x):
    try: print('{} {0}'.format(1))
    except ValueError as e: print(e)
    try: print('{} {}'.format(1))
    except IndexError as e: print(e)
    try: print('{a}'.format(b=1))
    except KeyError as e: print(e)
    return x
## reversed_views, eager: perhaps
d = {'a': 1, 'b': 2}
def step(x):
    for k, v in reversed(d.items()): print(k, v)
    return x * list(reversed(d))[0].count('b')
#> d['c'] = 3
## hint, eager: perhaps
class B:
    n = 0
    def __len__(self):
        B.n += 1
        return 2
    def __iter__(self): return iter([1, 2])
b = B()
def step(x): return x * len(list(b)) + len([*b]) + len((lambda *a: a)(*b)) + sum(1 for _ in b)
## truth_none, eager: perhaps
class B: pass
b = B()
def step(x):
    try: return x * (2 if b else 3)
    except TypeError: return x
#> B.__bool__ = None
#> B.__bool__ = lambda self: False
## subscript, eager: perhaps
class B: pass
def step(x):
    try: return B['x']
    except TypeError as e: print(e)
    return x
## hash_own
class K:
    name = 'ab'
    def __hash__(self): return hash(self.name)
class L:
    def __hash__(self): return -1
k, l = K(), L()
def step(x): return x * (hash(k) == hash('ab')) + (hash(l) == -2)
#> k.name = 'b'
## descriptor_later
class V: k = 2.0
class O: w = V()
class Other: k = 5.0
o = O()
def step(x): return x * o.w.k
#> V.__get__ = lambda self, a, b: Other
## deque_mutated, eager: perhaps
q = collections.deque([1.0, 2.0], maxlen=3)
def step(x):
    try:
        for v in q: q.append(v)
    except RuntimeError as e: print(e)
    return x * sum(q)
## partial_of_partial, eager: perhaps
def f(a, b): return a
p = functools.partial(f, 1)
vars(p)['x'] = 1
kept = []
def step(x):
    kept[:] = [functools.partial(p, 2)]
    return x * 2
## drawn_twice, traces: 4
l = nn.Linear(3, 3)
def step(x, std):
    nn.init.uniform_(l.weight, -std, std)
    return l.weight + rn.rand(3)
def arguments(i): return tensor(1.0), 0.1 * i + 0.1
## checkpoint_user
class B(nn.Module):
    k = 2.0
    def forward(self, x): return x * self.k
b = B()
def step(x): return rn.checkpoint(b, x)
#> b.k = 3.0
## chained, traces: 3
rows = [tensor(1.0), tensor(2.0)]
def step(x):
    for r in itertools.chain(rows, [x]): x = x + r
    for i, r in zip(itertools.count(), rows): x = x * i + r
    for a, b in itertools.product(rows, rows): x = x + a * b
    for r in itertools.repeat(2.0, 2): x = x * r
    for k, g in itertools.groupby([1, 1, 2]): x = x * k + len(list(g))
    return x * sorted({'a': 2, 'b': 1}.items(), key=operator.itemgetter(1))[0][1]
#> rows[0] = tensor(5.0)
## chained_outside, eager: perhaps
rows = itertools.chain([1.0], [2.0, 3.0])
def step(x): return x * next(rows, 5.0)
## attribute_of_a_tensor, eager: attributes of yours
def step(x):
    y = x * 2
    y.note = 'hi'
    return y, y.note
## truth_of_a_number, eager: perhaps
class Bits(enum.IntFlag): A = 1; B = 2
bits = Bits.A
def step(x): return x * (2 if bits & Bits.B else 3)
#> bits = Bits.A | Bits.B
## truth_of_an_inherited_number, eager: perhaps
class N(int): pass
z = N(0)
def step(x): return x * (1 if z else 5)
## truth_of_a_view, eager: perhaps
e = {}; d = types.MappingProxyType(e); keys = e.keys()
def step(x): return x * (1 if d else 5) * (2 if keys else 3)
#> e['a'] = 1
## partials_that_become_one, eager: perhaps
def affine(a, b=1, *, c=0): return a * 2 + b + c
plus = functools.partial(affine, 2, c=3)
def step(x): return x * functools.partial(plus, b=5)()
#> plus.keywords['c'] = 4
#> plus = functools.partial(affine, 1)
## parameters_moved_to_another_dtype_and_back, traces: 4
net = nn.Linear(3, 2)
def step(x): return net(x.to(net.weight.dtype))
#> net(tensor(1.0, 2.0, 3.0)); net.to(rn.bfloat16); net.float()
#> rn.no_grad().__enter__(); net.weight.mul_(0.5); rn.set_grad_enabled(True).__enter__()
#> net.double(); net.float()
#> net.load_state_dict({k: v * 2 for k, v in net.state_dict().items()})
## index_of_tuples
M = rn.asarray(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
ix = ((0, 1), (1, 2))
def step(x): return M[ix]
#> ix = ((0, 1), (2, 0))
## functions_of_a_registered_class, eager: perhaps
class P:
    def __init__(self, a, b): self.a, self.b = a, b
k = 1
rn.tree_util.register_pytree_node(P, lambda p: ((p.a,), (p.b, k)), lambda aux, c: P(c[0] * aux[1], aux[0]))
def step(x): return rn.tree_util.tree_map(lambda t: t * 2, P(x, 3)).a
#> k = 4
## functional_call
class G(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(rn.ones(3))
    def forward(self, x): return x * self.p
g = G()
def step(x): return rn.functional_call(g, {'p': x}, (x,))
## text_in_a_member, eager: perhaps
class S(str, enum.Enum): A = 'sum'; B = 'mean'
s = S.A
def step(x): return x, 'su' in s, 'z' in s, getattr(x, s)()
#> s = S.B
## str_enum, traces: 3
class S(str, enum.Enum): A = 'sum'; B = 'mean'
s = S.A
def step(x): return x.sum() if s == 'sum' else x.mean()
#> s = S.B
## int_enum
class L(enum.IntEnum):
    A = 1
    B = 2
s = L.A
def step(x): return x[s] * (2 if s > 1 else 3) + s
#> s = L.B
## counter_update, traces: 8
c = collections.Counter()
def step(x):
    c.update(['a', 'b', 'a'])
    return x * 2
## jacobian_of_a_module
class B(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 2.0
    def forward(self, x): return x * self.k
b = B()
def step(x): return rn.jacrev(b)(x)
## parametrization
class Sq(nn.Module):
    k = 2.0
    def forward(self, w): return w * self.k
l = nn.Linear(3, 2)
nn.utils.parametrize.register_parametrization(l, 'weight', Sq())
def step(x): return l(x)
#> Sq.k = 3.0
#> l.parametrizations.weight[0].k = 4.0
## defaultdict_copied, eager: perhaps
d = collections.defaultdict(list)
def step(x):
    e = d.copy()
    return x * len(e['a']) if type(e['b']) is list else x * 5
#> d.default_factory = dict
## suppress_type_error, eager: perhaps
def step(x):
    with contextlib.suppress(TypeError):
        len(5)
        return x
    return x * 2
## exception_in_no_grad
def step(x):
    try:
        with rn.no_grad():
            raise ValueError('a')
    except ValueError as e: print(e)
    return x * 2

## backward_hook_of_a_layer, eager: perhaps
def make():
    log = []
    layer = nn.Linear(3, 3)
    layer.register_full_backward_hook(lambda m, a, r: log.append(len(log)))
    return log, layer
log, layer = make()
def make2(layer): return lambda x: layer(x)
step = make2(layer)
def step_(x):
    step2(x[None].requires_grad_(True)).sum().backward()
    return x
step2 = rn.compile(step)
step = step_
""")


@pytest.mark.parametrize("story", ITEMS + TAKEN)
def test_like_eager(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
