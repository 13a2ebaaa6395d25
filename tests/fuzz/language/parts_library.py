"""Containers, functions and texts of the standard library; closures, generators, decorators."""

TEXT = r"""
## containers
code:
    ring = collections.deque([1, 2, 3], maxlen=$(4||3||None))
    order = collections.OrderedDict(p=1, q=2)
    tally = collections.Counter('abca')
    groups = collections.defaultdict($(list||lambda: [1]))
    some, frozen = {1, 2}, frozenset([1, 5])
    heap = [1, 3, 2, 7]
    nested = {'a': {'b': [1, [2, 3]]}, 't': (1, [4])}
    chain = collections.ChainMap({'k': 1}, config)
    heapq.heapify(heap)
leaf:
    ring[0]
    len(some)
    heap[0]
    tally['a']
num:
    ring[$(0||-1)]
    sum(ring)
    len(ring)
    sum(some)
    ($num in some)
    next(iter(order.values()))
    len(list(order)[-1])
    order.get('r', $num)
    tally[$key]
    sum(tally.values())
    len(groups[$key])
    len(groups)
    heap[0]
    len(some | {$num})
    len(some & frozen)
    nested['a']['b'][1][0]
    nested['t'][1][-1]
    len(nested['a'])
    chain.get('k', 0)
    chain.get('gain', 0)
    ring.index(ring[-1])
    ring.count(2)
    heap.index(min(heap))
    order.pop('q', $num)
    ring.popleft()
    (heap.pop() if heap else 0)
    dict(zip('abc', ring)).get('a', 0)
    functools.reduce(operator.add, ring, 0)
    len({**order, 'k': 1})
    sum(k * v for k, v in enumerate(ring))
    any(v > $num for v in ring)
    next((v for v in ring if v > 1), $num)
cond:
    'r' in order
    $num in ring
    some <= {1, 2, 3}
    ring
    $key in tally
    $key in groups
    heap == sorted(heap)
    $num in heap
text:
    '-'.join(map(str, ring))
    list(order)[0]
    str(sorted(some))
    repr(nested)
    repr(order)
    repr(ring)
seq:
    list(ring)
    sorted(some)
    list(order.items())
    sorted(heap)
    nested['a']
    dict(order)
    [*reversed(ring)]
    list(zip(ring, heap))
    ring
stat:
    ring.append($num % 50)
    ring.appendleft($num % 50)
    ring.rotate($(1||-1||2))
    ring.extend([$num % 9, 2])
    ring[0] = $num
    ring.pop()
    ring.clear()
    order.move_to_end($('p'||'q', last=False||'q'))
    order['q'] = $num % 50
    order['n%d' % $leaf] = $num
    order.popitem(last=$(False||True))
    order.update(r=$num % 50)
    tally[$key] += 1
    tally.update(['a', 'c'])
    tally.subtract(b=$num)
    del tally['a']
    groups[$key].append($num % 50)
    groups.pop('a', None)
    some.add($num % 9)
    some.discard($num % 9)
    some |= {$num % 5}
    some.update(ring)
    some = {v for v in some if v != $leaf}
    heap.sort(reverse=$cond)
    heap = sorted(heap)[-4:]
    nested['a']['b'].append($num % 50)
    nested['a']['b'][1][0] = $num % 50
    nested['t'][1].append($num)
    nested['t'][0] = 2
    nested['a'] = {'b': nested['a']['b']}
    nested['a']['c'] = nested['t'][1]
    chain['k'] = $num
    chain.maps[0].clear()
    ring.append(y.sum())
    heap[:] = heap[-3:]
    heap = heap[:4] * 2
    numbers += [*ring][:3]
    order |= {'z': $num}
    log.append(ring)
    nested['self'] = heap
    numbers = heap
block:
    while len(ring) > 2:
        total += ring.popleft()
        if total > 20: break

    for k$id, v$id in order.items():
        total += v$id
        if k$id == 'q':
            order['q'] = 5

    for v$id in sorted(some):
        total += v$id
        $body

    first$id, *middle$id, last$id = ring
    total += first$id + len(middle$id)
    ring.append(last$id)

    for k$id in groups:
        groups[k$id] = groups[k$id][-2:]
        total += len(k$id)

    for v$id in ring:
        if len(ring) > 9: break
        ring.append(v$id)
change:
    ring.append(7)
    ring.clear()
    ring = collections.deque([4, 5])
    order = collections.OrderedDict(q=1, p=2)
    order.move_to_end('p')
    some.add(8)
    some = {3}
    heap = [5, 6]
    heap = numbers
    heap.append(0)
    nested['a']['b'] = nested['t'][1]
    nested['t'] = (2, [1])
    groups.clear()
    groups['a'] = numbers
    tally.clear()
    tally['b'] = 9
    config.pop('gain', None)
    numbers = nested['t'][1]
    ring = heap

## closures
code:
    def counter(start):
        at, kept = start, []
        def up(by=1):
            nonlocal at
            at = (at + by) % 40
            kept.append(at)
            return at
        def get(): return at + len(kept)
        return up, get
    up, get = counter($leaf)
    def remember(value, kept=[], *, most=3):
        kept.append(value)
        del kept[:-most]
        return len(kept) + most
    def named(first, /, second=$int, *rest, third=3, **names): return first + second + third + len(rest) + len(names)
    def squares(end):
        for i in range(end):
            got = yield i * i + $leaf
            if got: log.append(got)
    def outer_generator(end):
        result = yield from squares(end)
        yield end
    def finals(value):
        try:
            if value % 2: return value
            log.append('even')
        finally:
            log.append(value)
        return -value
    table_of = {'up': up, 'get': get, 'named': named}
    partial = functools.partial(named, 1, third=$int)
    key = operator.itemgetter('gain')
    @contextlib.contextmanager
    def held(name, value):
        before = config.get(name)
        config[name] = value
        try: yield before
        except LookupError: log.append('lookup')
        finally:
            if before is None: config.pop(name, None)
            else: config[name] = before
    make = lambda n: (lambda k: k * n + count)
    add_two = make(2)
leaf:
    get()
    add_two(1)
num:
    up($num)
    get()
    remember($num)
    remember($num, most=$(1||2))
    remember($num, [])
    named($num)
    named($num, *numbers[:2], third=$num)
    named(1, **{'third': $num, 'fifth': 2})
    table_of[$('up'||'named')]($num)
    partial($num)
    partial()
    sum(squares($small))
    next(squares(2), 0)
    list(outer_generator($small))[-1]
    add_two($num)
    make($num)(2)
    key(config)
    (lambda k=$num, *a: k + len(a))(*numbers[:1])
    finals($num)
    len(remember.__defaults__[0])
    named.__kwdefaults__['third']
    partial.keywords['third']
    sum(f($num) for f in (up, add_two))
    sorted(numbers, key=lambda v: -v)[0]
    list(map(add_two, numbers))[-1]
    list(filter(None, numbers))[0]
    sum(v for v in squares(3) for _ in range(2) if v)
    getattr(up, 'calls', 0)
cond:
    all(v > 0 for v in numbers)
    up is table_of['up']
    callable(partial)
seq:
    [*squares($small)]
    list(zip(*[numbers, numbers]))
    [(i, j) for i in range(2) for j in squares(i)]
    {k: v for k, v in zip('ab', squares(2))}
    list(enumerate(numbers, $small))
stat:
    up($num % 7)
    up.calls = getattr(up, 'calls', 0) + 1
    partial = functools.partial(named, $num)
    table_of['f'] = $(up||lambda k: k + total||add_two)
    table_of['up'] = $(up||add_two)
    config['gain'] = table_of.get('f', up)(1)
    g$id = squares(3); next(g$id); total += g$id.send($num)
    config['function'] = up
block:
    with held('gain', $num % 9) as before$id:
        $body

    with held('extra', 1), contextlib.suppress(KeyError):
        config['none']

    with contextlib.ExitStack() as stack$id:
        stack$id.enter_context(held('gain', 3))
        stack$id.callback(log.append, $num)
        $body

    for v$id in outer_generator($small):
        if v$id > 9: break
        total += v$id

    try:
        with held('extra', $num):
            raise $(KeyError||IndexError||ValueError)($num)
    except ValueError as problem:
        total += problem.args[0]

    try:
        try:
            config['none']
        except KeyError as problem:
            raise RuntimeError(f'no {$plain}') from problem
    except RuntimeError as problem:
        log.append((str(problem), type(problem.__cause__).__name__))

    def recurse$id(n):
        return n if n <= 0 else n + recurse$id(n - 1)
    total += recurse$id($small)
change:
    up, get = counter(9)
    remember.__defaults__ = ([1],)
    remember.__defaults__[0].clear()
    named.__kwdefaults__ = {'third': 8}
    named.__defaults__ = (6,)
    def named(first, second=1, *rest, third=1, **names): return second
    named.__code__ = (lambda first, /, second=1, *rest, third=1, **names: 40).__code__
    table_of['up'] = get if False else named
    partial = functools.partial(named, 4)
    add_two = make(5)
    add_two = lambda k: k
    make = lambda n: (lambda k: k)
    def squares(end): yield from (1, 2)
    def finals(value): return 1
    up.calls = 5

## decorators
code:
    def counted(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            call.calls += 1
            return function(*args, **kwargs)
        call.calls = 0
        return call
    def scaled(by):
        def decorate(function):
            def call(*args): return function(*args) * by
            return call
        return decorate
    @counted
    def area(n, m=$int): return n * m + count
    @scaled($int)
    @counted
    def double(n): return n * 2
    @functools.lru_cache(maxsize=$(None||2||4))
    def slow(n, mode='a'): return n * 3 + $int
    @functools.singledispatch
    def show(value): return 1
    @show.register
    def _(value: int): return value + 2
    @show.register(list)
    @show.register(tuple)
    def _(value): return len(value)
    class Cached:
        made = 0
        def __init__(self, n): self.n = n
        @functools.cached_property
        def big(self):
            Cached.made += 1
            return self.n * 10 + $leaf
        @functools.lru_cache
        def method(self, k): return k + 1
        double = functools.partialmethod(lambda self, k, by: k * by + self.n, by=2)
        @counted
        def counted(self): return self.n
        @functools.singledispatchmethod
        def kind(self, value): return 'other'
        @kind.register
        def _(self, value: float): return 'float'
        def __init_subclass__(cls, **names): Cached.made += 1
    @functools.total_ordering
    class Version:
        def __init__(self, n): self.n = n
        def __eq__(self, other): return self.n == other.n
        def __lt__(self, other): return self.n < other.n
    cached, first, second = Cached(2), Version(1), Version(2)
leaf:
    area.calls
    cached.n
    Cached.made
num:
    area($num)
    area($num, m=$num)
    double($num)
    cached.big
    cached.double($num)
    cached.counted()
    (first <= second)
    (first >= second)
    max(first, second).n
    area.__wrapped__($num)
    len(vars(cached))
    Cached.counted.calls
cond:
    'big' in vars(cached)
    first > second
    first == second
stat:
    area.calls = 0
    cached.n = $num % 20
    vars(cached).pop('big', None)
    cached.big = $num
    cached = Cached($num % 9)
    first.n = $num % 5
    first, second = second, first
    first = second
block:
    @counted
    def local$id(n): return n + total
    total += local$id(2) + local$id.calls
change:
    area.calls = 5
    cached = Cached(2)
    vars(cached).pop('big', None)
    show.register(float, lambda value: 7)
    def area(n, m=1): return n
    area = counted(lambda n, m=2: n + m)
    Cached.big = property(lambda self: 3)
    Cached.double = lambda self, k: k
    Cached.made = 3
    first = second
    Version.__le__ = lambda self, other: False

## texts
code:
    name, words = 'layer', ['b', 'a', 'c']
    template, pattern = '{0}-{n:>{width}}', re.compile(r'(\w)=(\d+)')
    class Label(str):
        def shout(self): return self.upper() + str(count)
    label = Label('lab')
    raw = b'abc'
leaf:
    len(name)
    len(words)
num:
    len(name)
    name.count('l')
    words.index(words[-1])
    int('1$small')
    float('$(0||1||2).5')
    ord(name[0])
    len(name.split('a'))
    sum(map(len, words))
    raw[$(0||-1)]
    int(dict(pattern.findall('a=1 b=22')).get('b', 0))
    name.find($text)
    len(json.dumps(words))
    json.loads('[1, 2]')[$(0||1)]
cond:
    name.startswith('l')
    name == $text
    words[0] < words[-1]
    'a' in words
    name
    name is label
text:
    name
    label
    name + $text
    '%s has %d' % (name, $leaf)
    f'{name:*^12}|{$plain:+.3e}'
    ', '.join(words)
    name.upper()
    name[:20].replace('a', $text[:9])
    ''.join(sorted(name))
    f'{x.shape} {x.dtype}'
    f'{$plain:{len(name)}d}'
    name[::-1]
    str(words)
    name[:20] * $small
    f'{$plain}'
    '{:,}'.format($num)
    f'{name=}'
    raw.decode()
seq:
    name.split('y')
    sorted(words)
    name.partition('y')
    list(name)
    pattern.findall('a=1')
stat:
    name = name[-4:] + str($leaf)[:2]
    name = $text[:8]
    words.append($text[:5])
    words = sorted(set(words))
    words.sort(key=len)
    words[0] = name
    template = '{0}{n}{width}'
    label.extra = $num
    config[name] = $num
    name = name[:9] + 'z'
    del words[2:]
    log.append($text)
    words, name = [name], words[0]
    print($text, end='')
    print(f'{$plain:>6}', $text, sep='|')
block:
    for w$id in list(words):
        if w$id in name:
            $body
change:
    name = $('layer'||'other'||''||label)
    words = ['z', 'y']
    words.append('d')
    label = $(Label('x')||'lab'||name)
    template = '{n} {width} {0}'
    Label.shout = lambda self: 'no'
    Label.__eq__ = lambda self, other: True
    words[0] = 'layer'
    raw = b'zb'
"""
