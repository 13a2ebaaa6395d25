"""Generators, closures over variables that change, context managers of the user's."""

TEXT = r"""
## pipelines
code:
    def source(n, told=None):
        try:
            for i in range(n):
                got = yield i + $leaf
                if got is not None: drained.append(got)
        finally:
            drained.append('end')
    def doubled(values):
        for v in values: yield v * 2
    def pairs(values):
        it = iter(values)
        for v in it: yield v, next(it, None)
    def batches(values, size):
        batch = []
        for v in values:
            batch.append(v)
            if len(batch) == size:
                yield batch
                batch = []
        if batch: yield batch
    def averaged():
        sum_, n, mean = 0, 0, None
        while True:
            v = yield mean
            sum_, n = sum_ + v, n + 1
            mean = sum_ / n
    class Loader:
        def __init__(self, rows, size): self.rows, self.size, self.epoch = rows, size, 0
        def __len__(self): return (len(self.rows) + self.size - 1) // self.size
        def __iter__(self):
            self.epoch += 1
            for i in range(0, len(self.rows), self.size): yield self.rows[i:i + self.size]
    class Stream:
        def __init__(self, rows): self.rows, self.at = rows, 0
        def __iter__(self): return self
        def __next__(self):
            if not self.rows: raise StopIteration
            self.at += 1
            return self.rows[self.at % len(self.rows)]
    drained, loader = [], Loader([1, 2, 3, 4, 5], $(2||3))
    tensor_loader = Loader([rn.ones(()) * i for i in range(4)], 2)
    stream, held_source = Stream([4, 5, 6]), source(100)
    held_mean = averaged()
    next(held_mean)
leaf:
    len(drained)
    loader.epoch
    stream.at
    len(loader)
num:
    sum(doubled(source($small)))
    next(stream)
    next(iter(loader))[0]
    sum(map(len, loader))
    [*batches(doubled(numbers), 2)][-1][-1]
    next(pairs(numbers))[0]
    sum(v or 0 for p in pairs(loader.rows) for v in p)
    sum(v for v, w in zip(loader.rows, stream))
    sum(v for group in loader for v in group if v % 2)
    next((i for i, v in enumerate(stream) if v != $leaf), 0)
tensor:
    (y + sum(t for group in tensor_loader for t in group))
    (y * next(iter(tensor_loader))[-1])
    functools.reduce(rn.maximum, (t for g in tensor_loader for t in g), y)
cond:
    any(v > 3 for g in loader for v in g)
    next(stream) > 4
    $num in stream.rows
    drained
seq:
    drained[-3:]
    [*batches(loader.rows, $(1||2||4))]
    dict(enumerate(loader))
stat:
    drained.clear()
    loader.rows.append($num % 20)
    del loader.rows[5:]
    loader.size = $(1||2||3)
    stream.rows[0] = $num % 20
    stream.at = 0
    tensor_loader.rows[0] = y.sum()
    drained.extend(doubled(numbers[:2]))
    p$id = source(4); next(p$id); p$id.send($num); p$id.close()
    m$id = averaged(); next(m$id); m$id.send($num); total += m$id.send($leaf)
    f$id, *r$id = source(4); total += f$id + len(r$id)
block:
    for epoch$id in range(2):
        for i$id, group$id in enumerate(loader):
            total += sum(group$id) + i$id
            if total > 60: break

    for group$id in tensor_loader:
        y = y + sum(group$id)
        $body

    it$id = iter(loader)
    while (group$id := next(it$id, None)) is not None:
        total += group$id[0]
        $body

    g$id = source(5)
    for v$id in g$id:
        if v$id > $num: break
    else:
        $body
    total += next(g$id, 0)

    def walk$id(n):
        if n > 0:
            yield n
            yield from walk$id(n - 1)
        return n
    total += sum(walk$id($small))
change:
    loader = Loader([7, 8], 1)
    loader.rows = [3]
    loader.rows = stream.rows
    Loader.__iter__ = lambda self: iter([[1, 2]])
    stream = Stream([1])
    stream.at = 7
    tensor_loader.rows = [rn.ones(()) * 3]
    tensor_loader.size = 1
    def doubled(values): return [v * 3 for v in values]
    def batches(values, size): yield [*values]
    drained.append(5)
    Stream.__next__ = lambda self: 3
    next(held_source)

## scopes
code:
    late = [lambda k: k + i for i in range(3)]
    early = [lambda k, i=i: k + i for i in range(3)]
    def account(balance):
        history = []
        def deposit(by):
            nonlocal balance
            balance = (balance + by) % 90
            history.append(balance)
            def undo():
                nonlocal balance
                balance = history.pop() - by if history else balance
                return balance
            return undo
        def report(): return balance, len(history)
        return deposit, report
    deposit, report = account($int)
    def chained(start):
        level = start
        def outer():
            nonlocal level
            level += 1
            def inner():
                nonlocal level
                level *= 2
                level %= 37
                return level
            return inner() + level
        return outer
    climb = chained(1)
    undone, made_functions = [], {}
    def reset_count():
        global count
        def inside():
            global count
            count = 3
        inside()
        return count
    def shadow(len=len, sum=lambda v: 4): return len(numbers) + sum(numbers)
    scale_by = lambda n: lambda k: k * n
    triple, i = scale_by(3), 7
    def unbound(flagged):
        if flagged: local = $int
        return local
leaf:
    i
    report()[0]
num:
    late[$(0||-1)]($num)
    early[$(0||-1||1)]($num)
    sum(f(1) for f in early)
    report()[$(0||1)]
    climb()
    triple($num)
    scale_by($num)(2)
    reset_count()
    shadow()
    (lambda: total)()
    (lambda n=$num: [n + k for k in range(2)])()[-1]
    (lambda: [last_seen := v for v in numbers][-1] + last_seen)()
    unbound($cond)
    (undone[-1]() if undone else 1)
    made_functions.get($key, triple)($num)
    max([(lambda q: q * v)(2) for v in numbers])
    eval_later() if (eval_later := lambda: $leaf) else 0
cond:
    undone
    triple is made_functions.get('a')
    triple(1) == $num
    late[0] is late[1]
seq:
    [f(2) for f in late]
    report()
    [f.__defaults__ for f in early]
    [(p, q) for p in range(2) for q in range(p + 1)]
stat:
    deposit($num)
    undone[:] = undone[-1:]
    made_functions[$key] = $(triple||scale_by(total)||early[1]||lambda k: k + s)
    i = $num % 9
    late.reverse()
    late[0] = early[-1]
    reset_count()
    del early[4:]
    made_functions.clear()
    triple.note = $num
    h$id = [lambda: v$id for v$id in range(3)]; total += h$id[0]()
    e$id = 4; del e$id
block:
    functions$id = []
    for j$id in range(3):
        functions$id.append(lambda k=$num: k + j$id + total)
    $body
    total += sum(f() for f in functions$id)

    def add$id(by):
        nonlocal total, y
        total += by
        y = y * 1.5
        return total
    total += add$id($num) + add$id(1)

    def even$id(n): return True if n == 0 else odd$id(n - 1)
    def odd$id(n): return False if n == 0 else even$id(n - 1)
    if even$id($small):
        $body

    try:
        total += missing$id
        missing$id = 1
    except UnboundLocalError as problem:
        $body
change:
    i = $(2||'text'||9)
    deposit(5)
    deposit, report = account(3)
    climb()
    climb = lambda: 2
    late[0] = lambda k: 1
    triple = scale_by(4)
    triple = early[0]
    made_functions['a'] = triple
    early[1].__defaults__ = (10,)
    undone.clear()
    len = lambda v: 3
    del len
    def scale_by(n): return lambda k: k

## managers
code:
    class Depth:
        depth, told = 0, []
        def __init__(self, by): self.by, self.entered = by, 0
        def __enter__(self):
            Depth.depth += self.by
            self.entered += 1
            return self
        def __exit__(self, kind, value, trace):
            Depth.depth -= self.by
            Depth.told.append(None if kind is None else kind.__name__)
            return kind is LookupError
    class Swapped:
        def __init__(self, space, **new): self.space, self.new = space, new
        def __enter__(self):
            self.old = {k: self.space[k] for k in self.new if k in self.space}
            self.space.update(self.new)
            return self.old
        def __exit__(self, *problem):
            for k in self.new:
                if k in self.old: self.space[k] = self.old[k]
                else: self.space.pop(k, None)
    class Meter(contextlib.ContextDecorator):
        calls = 0
        def __enter__(self):
            Meter.calls += 1
            return self
        def __exit__(self, *problem): Meter.calls += 10
    class Training:
        def __init__(self, mode): self.mode = mode
        def __enter__(self): self.before, switched.training = switched.training, self.mode
        def __exit__(self, *problem): switched.training = self.before
    @contextlib.contextmanager
    def tracking(name):
        opened.append(name)
        try: yield len(opened)
        except ValueError as problem: opened.append(str(problem))
        finally: opened.remove(name)
    @Meter()
    def metered(n): return n + Meter.calls
    opened, options, switched = [], {'width': 2}, nn.Linear(3, 3)
    shared_mode = Depth(1)
    width_var = Swapped(options, width=7)
leaf:
    Depth.depth
    options['width']
    Meter.calls
    shared_mode.entered
    len(opened)
num:
    metered($num)
    len(Depth.told)
    switched.training
cond:
    Depth.depth > $num
    opened
    rn.is_grad_enabled()
    switched.training
seq:
    Depth.told[-2:]
    list(options.items())
    opened
stat:
    Depth.told[:] = Depth.told[-3:]
    shared_mode.by = $num % 5
    shared_mode = Depth($num % 5)
    options['width'] = $num % 9
    Meter.calls %= 40
    with tracking('t') as n$id: total += n$id
    with shared_mode: total += Depth.depth
    width_var.new = {'width': $num % 9}
block:
    with shared_mode as m$id:
        total += m$id.entered + Depth.depth
        $body

    with Depth(2), Depth($small) as m$id:
        $body
        raise LookupError('inside')

    with Swapped(options, width=$num, extra_width=1) as old$id:
        total += options['width'] + len(old$id)
        $body

    with width_var:
        total += options['width']
        $body

    with tracking('outer'), tracking('inner') as n$id:
        $body
        if $cond: raise ValueError('tracked')

    with Training($cond):
        y = y + switched(rn.ones((3,))).sum()
        $body

    with contextlib.nullcontext($num) as n$id, contextlib.suppress(ZeroDivisionError):
        total += n$id
        total //= $small
        $body

    with contextlib.ExitStack() as stack$id:
        for k$id in range($small): stack$id.enter_context(Depth(k$id))
        total += Depth.depth
        stack$id.push(lambda *problem: opened.append('pushed'))
        $body

    with rn.no_grad():
        with rn.enable_grad():
            y = y * 2
        $body

    try:
        with tracking('w'), Meter():
            raise KeyError($num)
    except KeyError as problem:
        total += len(opened)
change:
    Depth.depth = 5
    shared_mode = Depth(4)
    shared_mode.entered = 0
    Depth.__exit__ = lambda self, *problem: None
    options['width'] = 5
    options.pop('extra_width', None)
    switched.eval()
    switched.train()
    width_var = Swapped(options, width=1)
    Meter.__enter__ = lambda self: self
    opened.append('left')
    opened.clear()
    del opened[2:]
    def metered(n): return n
"""
