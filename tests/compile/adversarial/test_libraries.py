"""What Python's library keeps, computes and hands on: functools, itertools, operator, weak references, queues, caches."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

FUNCTIONS: Final = stories("""
## partials_of_partials
def f(a, b, c=0.0, d=0.0): return a * b + c + d
p = functools.partial(functools.partial(f, 2.0), c=1.0)
options = {'d': 1.0}
q = functools.partial(f, **options)
def step(x): return x * p(3.0) + q(1.0, 2.0)
#> p.keywords['c'] = 5.0
#> options['d'] = 100.0
#> q.keywords['d'] = 7.0
#> p.__setstate__((f, (4.0,), {}, {}))
## partial_with_attributes
p = functools.partial(lambda x, k: x * k, k=2.0)
p.gain = 3.0
def step(x): return p(x) * p.gain
#> p.gain = 4.0
#> p.k = 9.0
## partial_of_a_class_and_method
class A:
    def __init__(self, v, k=1.0): self.v, self.k = v, k
    def f(self, w): return self.v * self.k * w
make = functools.partial(A, k=3.0)
a = A(2.0); f = functools.partial(a.f, 5.0)
def step(x): return x * make(2.0).k + f()
#> a.k = 9.0
#> A.f = lambda self, w: w
#> make.keywords['k'] = 4.0
## reduce_with_outer_state
ops = [lambda x: x * 2, lambda x: x + 1]
def step(x): return functools.reduce(lambda v, f: f(v), ops, x), functools.reduce(operator.mul, values, 1.0)
values = [2.0, 3.0]
#> ops.append(lambda x: -x)
#> values.clear()
## memo_of_a_recursion
@functools.lru_cache(maxsize=None)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
n = 10
def step(x): return x * fib(n)
#> n = 12
#> fib.cache_clear()
## memo_over_a_global
k = 2.0
@functools.cache
def f(n): return n * k
def step(x): return x * f(3)
#> k = 5.0
#> f.cache_clear()
#> f = lambda n: 0.5
## memo_of_a_method, eager: keeps results for objects
class A:
    k = 2.0
    @functools.lru_cache(maxsize=4)
    def f(self, n): return self.k * n
a = A()
def step(x): return x * a.f(3)
#> a.k = 7.0
#> A.f.cache_clear()
## single_dispatch_method, eager: perhaps
class A:
    @functools.singledispatchmethod
    def f(self, v): return 1.0
    @f.register
    def _(self, v: int): return 2.0 * v
    @f.register(list)
    def _(self, v): return 3.0 * len(v)
a, v = A(), 3
def step(x): return x * a.f(v)
#> v = [1, 2]
#> v = 'text'
#> A.__dict__['f'].register(str, lambda self, v: 9.0)
## total_ordering
@functools.total_ordering
class V:
    def __init__(self, v): self.v = v
    def __lt__(self, o): return self.v < o.v
    def __eq__(self, o): return self.v == o.v
a, b = V(1), V(2)
def step(x): return x * (2.0 if a >= b else 3.0), a <= b, max(a, b).v
#> a.v = 5
#> V.__lt__ = lambda self, o: False
## wraps_and_unwrapping
def twice(f):
    @functools.wraps(f)
    def inner(*a): return f(*a) * 2
    return inner
@twice
def f(x): return x + 1
def step(x): return f.__wrapped__(x) + f(x), f.__name__
#> f.__wrapped__ = lambda x: x * 0
#> f.__name__ = 'other'
## operator_tools
o = types.SimpleNamespace(a=types.SimpleNamespace(b=2.0), f=lambda v, k=1.0: v * k)
table = {'k': [1.0, 2.0]}
get, item, call_ = operator.attrgetter('a.b', 'a'), operator.itemgetter('k'), operator.methodcaller('f', 3.0, k=2.0)
def step(x): return x * get(o)[0] + item(table)[1] + call_(o), operator.contains(table, 'k'), operator.concat([1], [2])
#> o.a.b = 5.0
#> table['k'][1] = 9.0
#> o.f = lambda v, k: -v
#> get = operator.attrgetter('f', 'f')
## operator_in_place
l, d = [1.0], {'a': 1.0}
def step(x):
    operator.iadd(l, [2.0])
    operator.setitem(d, 'b', len(l))
    operator.delitem(l, 0)
    return x * l[0] + d['b'] + len(l)
#> l.insert(0, 9.0)
#> d.clear()
## itertools_over_outside
a, b, n = [1.0, 2.0, 3.0], [4.0, 5.0], 2
def step(x):
    return (x * sum(itertools.accumulate(a)) + sum(p * q for p, q in itertools.product(a, b)), list(itertools.islice(a, n)),
            list(itertools.chain.from_iterable([a, b])), [list(g) for _, g in itertools.groupby(a, key=lambda v: v > n)],
            list(itertools.zip_longest(a, b, fillvalue=0.5)), list(itertools.combinations(b, 2)), list(itertools.starmap(pow, [(2.0, n)])),
            list(itertools.takewhile(lambda v: v < n, a)), list(itertools.compress(a, [1, 0, n])), list(itertools.repeat(n, 2)))
#> a.append(4.0)
#> b.clear()
#> n = 3
## tee_and_iterators_made_inside
values = [1.0, 2.0, 3.0]
def step(x):
    p, q = itertools.tee(values)
    next(q)
    it = iter(values)
    pairs = list(zip(it, it))
    return x * sum(i * j for i, j in zip(p, q)), pairs, next(it, None)
#> values.append(4.0)
#> values.pop()
## iter_with_a_sentinel
values = [1.0, 2.0, 0.0, 5.0]
def step(x):
    work = list(values)
    return x * sum(iter(lambda: work.pop(0), 0.0)), work
#> values[2] = 7.0; values.append(0.0)
#> values.insert(0, 0.0)
## map_filter_zip_enumerate
k, values = 2.0, [3.0, 1.0, 2.0]
def step(x):
    return (x * sum(map(lambda v, i: v * i * k, values, range(9))), list(filter(lambda v: v < k, values)),
            dict(enumerate(values)), [*zip(values, reversed(values))], list(map(round, values)))
#> k = 3.0
#> values.append(0.5)
## any_all_min_max
values, default = [1.0, 0.0], 5.0
def step(x): return x * max(values, default=default), any(values), all(v < 2 for v in values), min(values, key=lambda v: -v, default=None)
#> values.clear()
#> default = 7.0
#> values.append(3.0)
## bisect_and_heap
edges, heap, v = [1.0, 5.0, 9.0], [2, 4, 3], 6.0
def step(x):
    heapq.heappush(heap, len(heap))
    return x * bisect.bisect(edges, v) + heapq.heappop(heap), heapq.nsmallest(2, heap), heapq.nlargest(1, heap, key=lambda h: -h), len(heap)
#> v = 0.5
#> bisect.insort(edges, 0.1)
#> heap.append(1)
## method_tables
class A:
    k = 2.0
    def double(self, x): return x * self.k
    def shift(self, x): return x + self.k
    table = {'d': double, 's': shift}
    def run(self, name, x): return self.table[name](self, x)
a, name = A(), 'd'
def step(x): return a.run(name, x)
#> name = 's'
#> A.table['s'] = A.double
#> a.k = 9.0
#> A.double = None; name = 'd'
## events_and_listeners
class Bus:
    def __init__(self): self.listeners, self.log = collections.defaultdict(list), []
    def on(self, name): return lambda f: self.listeners[name].append(f) or f
    def emit(self, name, *a):
        for f in self.listeners[name]: f(*a)
bus = Bus()
@bus.on('step')
def note(shape): bus.log.append(shape)
def step(x):
    bus.emit('step', x.shape)
    return x * len(bus.log)
#> bus.on('step')(lambda s: bus.log.append('second'))
#> bus.listeners.clear()
""")

STATE: Final = stories("""
## weak_reference_dies
class A: k = 2.0
a = A(); r = weakref.ref(a)
def step(x): return x * r().k if r() is not None else -x
#> a.k = 3.0
#> del a
#> a = A(); r = weakref.ref(a)
## weak_method
class A:
    k = 2.0
    def f(self): return self.k
a = A(); m = weakref.WeakMethod(a.f)
def step(x): return x * m()()
#> a.k = 5.0
#> A.f = lambda self: 9.0
## weak_proxy, eager: hold a weakref.ref and call it
class A: k = 2.0
a = A(); p = weakref.proxy(a)
def step(x): return x * p.k
#> a.k = 5.0
## weak_sets_and_dicts, eager: is a weak reference
class A:
    def __init__(self, k): self.k = k
a, b = A(1.0), A(2.0)
w, d = weakref.WeakSet([a, b]), weakref.WeakKeyDictionary({a: 3.0})
def step(x): return x * sum(i.k for i in w) + d[a] + len(d)
#> d[b] = 5.0
#> w.discard(a)
## finalizer_state, eager: no finalize can be watched
class A: pass
a = A(); f = weakref.finalize(a, lambda: None)
def step(x): return x * (2.0 if f.alive else 3.0)
#> del a
## ring_buffer
class Ring:
    def __init__(self, n): self.data, self.at, self.n = [0.0] * n, 0, n
    def push(self, v):
        self.data[self.at] = v
        self.at = (self.at + 1) % self.n
    def mean(self): return sum(self.data) / self.n
ring = Ring(3)
def step(x, v):
    ring.push(v)
    return x * ring.mean()
def arguments(i): return tensor(1.0, 2.0), i * 0.5
#> ring.push(9.0)
#> ring = Ring(2)
## deque_with_a_limit
window = collections.deque(maxlen=3)
def step(x, v):
    window.append(v)
    return x * (sum(window) / len(window)) + window.maxlen
def arguments(i): return tensor(1.0, 2.0), i * 0.5
#> window.clear()
#> window = collections.deque([1.0], maxlen=2)
## simple_queue, eager: put() of a SimpleQueue (global q)
q = queue.SimpleQueue()
def step(x):
    q.put(1.0)
    return x * q.qsize()
#> q.get()
## library_queue, eager: a lock is taken
q = queue.Queue()
def step(x):
    q.put(1.0)
    return x * q.qsize()
## cache_statistics, eager: cache_info() of f
@functools.lru_cache
def f(n): return n * 2.0
f(3)
def step(x): return x * f.cache_info().hits, f(3)
## counter_object
ids = itertools.count(5)
def step(x): return x * next(ids)
#> next(ids)
## cycle_object, eager: 'global turns' is a cycle
turns = itertools.cycle([1.0, 2.0, 3.0])
def step(x): return x * next(turns)
#> next(turns)
## own_ids
class Ids:
    def __init__(self): self.n = 0
    def __iter__(self): return self
    def __next__(self):
        self.n += 1
        return self.n
ids = Ids()
def step(x): return x * next(ids)
#> ids.n = 50
## dict_views_held
table = {'a': 1.0}
keys, values, items_ = table.keys(), table.values(), table.items()
def step(x): return x * len(keys)
#> table['b'] = 2.0
#> del table['a']
## nested_defaults
tree = lambda: collections.defaultdict(tree)
t = tree(); t['a']['b'] = 2.0
def step(x): return x * t['a']['b'] + len(t['a']['c']) + len(t)
#> t['a']['c']['d'] = 1.0
#> t['a']['b'] = 5.0
## environment_and_argv
import os, sys
os.environ['RUNNEL_TEST_STORY'] = '2'
argv = ['prog', '--fast']
def step(x): return x * int(os.environ.get('RUNNEL_TEST_STORY', '0')) + ('--fast' in argv)
#> os.environ['RUNNEL_TEST_STORY'] = '3'
#> argv.pop()
#> del os.environ['RUNNEL_TEST_STORY']
## logging_levels
_log = logging.Logger('own', logging.INFO); _log.parent = logging.getLogger()
def step(x):
    _log.debug('shape %s', x.shape)
    if _log.isEnabledFor(logging.DEBUG): x = x * 2
    _log.info('n %d', _log.level)
    return x
#> _log.setLevel(logging.DEBUG)
#> _log.setLevel(logging.ERROR)
#> _log.disabled = True
## warnings_once
def step(x):
    warnings.warn('careful', UserWarning)
    return x * 2
## random_branches, eager: Python's random numbers
def step(x): return x * 2 if random.random() < 0.5 else x
## numpy_draws, eager: NumPy's random numbers
g = np.random.default_rng(1)
def step(x): return x * float(g.random())
## time_around, eager: clock
times = []
def step(x):
    t = time.perf_counter()
    y = x * 2
    times.append(time.perf_counter() - t > 0)
    return y
## uuid_and_hash, eager: _hashlib.openssl_sha256()
import hashlib
data = b'abc'
def step(x): return x * len(hashlib.sha256(data).hexdigest())
#> data = b''
## paths
import pathlib
root = pathlib.PurePosixPath('/data')
def step(x): return x * len((root / 'a' / 'b.txt').parts), (root / 'x.y').stem, str(root)
#> root = root / 'more'
## dates
import datetime
day = datetime.date(2024, 2, 28)
def step(x): return x * (day + datetime.timedelta(days=2)).month, f'{day:%d.%m}', day.isoformat()
#> day = datetime.date(2023, 2, 28)
## user_frame
class Column(list):
    def mean(self): return sum(self) / len(self)
class Frame:
    def __init__(self, **columns): self._columns = {k: Column(v) for k, v in columns.items()}
    def __getitem__(self, k): return self._columns[k] if isinstance(k, str) else Frame(**{n: self._columns[n] for n in k})
    def __setitem__(self, k, v): self._columns[k] = Column(v)
    def __getattr__(self, n):
        try: return self.__dict__['_columns'][n]
        except KeyError: raise AttributeError(n) from None
    def __len__(self): return len(next(iter(self._columns.values())))
    def itertuples(self): return (types.SimpleNamespace(**dict(zip(self._columns, row))) for row in zip(*self._columns.values()))
    @property
    def columns(self): return list(self._columns)
df = Frame(a=[1.0, 2.0], b=[3.0, 4.0])
def step(x): return x * df['a'].mean() + df.b[0] + len(df), [r.a + r.b for r in df.itertuples()], df[['b']].columns
#> df['a'] = [5.0, 6.0]
#> df.b.append(9.0)
#> df['c'] = [0.0, 0.0]
#> df._columns.pop('c')
## shared_and_aliased
a = [1.0]; b = a; pair = (a, b)
def step(x):
    a.append(2.0)
    return x * len(b) + len(pair[0]), a is b, pair[0] is pair[1]
#> b = [1.0]
#> pair = (b, a)
## lists_of_tuples
log = []
def step(x, v):
    log.append((len(log), v, 'tag'))
    return x * log[-1][1]
def arguments(i): return tensor(1.0, 2.0), i * 0.5
#> log.clear()
## dict_by_counter
n, table = 0, {}
def step(x):
    global n
    n += 1
    table[n] = x.sum()
    return x * n
#> n = 50
## get_by_counter
n, table = 0, {i: i * 0.5 for i in range(100)}
def step(x):
    global n
    n += 1
    return x * table.get(n, 1.0) + table.get(-n, 2.0)
#> n = 97
#> table[3] = 50.0; n = 0
## set_of_counters
n, seen = 0, set()
def step(x):
    global n
    n += 1
    seen.add(n)
    return x * n
#> n = 0
## several_counters_as_keys
class S: epoch = step = 0
s, losses = S(), {}
def step(x, v):
    s.step += 1
    if s.step % 4 == 0: s.epoch += 1
    losses[s.epoch, s.step] = v
    return x * v
def arguments(i): return tensor(1.0, 2.0), i * 0.5
#> s.epoch = 7
""")


@pytest.mark.parametrize("story", FUNCTIONS + STATE)
def test_libraries(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
