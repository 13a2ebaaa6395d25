"""Numbers, tensors, branches and loops, and the forms that a step has."""

TEXT = r"""
## core
code:
    log, count, flag, rate = [], 1, True, 0.5
    config = {'gain': 2, 'mode': 'sum', 'shift': 0.5}
    numbers = [1, 2.5, 3]
    acc = rn.zeros(())
    last = (rn.ones(()), 1)
    def use(value, y):
        match value:
            case None | (): return y
            case {'a': a, **rest}: return y * a + len(rest)
            case [first, *_]: return y + first
            case str(): return y * len(value)
            case rn.Tensor(): return y + value.sum()
            case np.ndarray(): return y * float(value.sum())
            case dict(): return y + len(value)
            case _: return y - 1
leaf:
    $int
    count
    config['gain']
    len(log)
    rate
    numbers[-1]
num:
    $leaf
    $leaf
    total
    s
    x.shape[0]
    config.get('bias', $int)
    ($num $(+||-||*) $num)
    ($num $(+||-||*) $float)
    ($num $(//||%||/) $(2||3||7))
    ($num if $cond else $num)
    $(min||max)($num, $num)
    $(int||float||bool||abs)($num)
    sum(numbers)
    round($num, 1)
    (total := total + $leaf)
    divmod($num, 3)[$(0||1)]
    -$num
    ($num ** 2) % 11
    len($text)
    int($cond)
    sum(v for v in numbers if v != $leaf)
    [v * 2 for v in numbers][$(0||-1||1)]
cond:
    flag
    $num $(>||<||==||!=||>=) $num
    $key $(in||not in) config
    not $cond
    $num % 2
    $cond $(and||or) $cond
    $num < $num <= $num
    numbers
    config['mode'] == 'sum'
    isinstance($num, $(int||float||bool||(int, float)))
    y.ndim == $(0||1)
    $num is None
text:
    config['mode']
    f'{$plain:>5}'
    str($num)
    $key
    f'{$plain!r} and {$plain}'
    f'{$plain:.2f}'
seq:
    numbers
    [$num, $num]
    ($num, $leaf)
    list(config)
    log[-2:]
    [*numbers, $num]
tensor:
    y
    use(extra, y)
    x
    acc
    (y * $num)
    (y + $num)
    ($num - y)
    (x / 3)
    rn.tanh(y)
    y.sum()
    rn.where(y > 0, y, $float)
    (y + $tensor)
    rn.maximum(y, $leaf)
stat:
    total += $num
    if isinstance(extra, list): extra.append($num)
    if type(extra) is dict: extra[$key] = $num
    last = (y, $num)
    extra = $(numbers||config||[total])
    y = y * $num
    y = $tensor
    count = $num % 50
    count += 1
    log.append($num)
    log.append($text)
    config['gain'] = $num % 50
    config[$key] = $num
    config.pop($key, None)
    numbers[$(0||-1||1)] = $num
    numbers.append($num % 50)
    numbers = numbers[-4:]
    numbers = [v + $leaf for v in numbers]
    numbers.sort()
    flag = $cond
    flag = not flag
    rate *= 0.5
    rate = $num
    acc = acc + y.sum()
    acc = $tensor.sum()
    config['mode'] = $('sum'||'mean')
    config = dict(config, $(bias||gain)=$num)
    config.update(gain=$num % 50)
    del numbers[3:]
    log.append(y.sum())
    log[-3:] = []
    y, total = y + total, $num
    config['last'] = $tensor
    print($num, $text)
    assert $cond, $text
block:
    if $cond:
        $body
    else:
        $body

    if $cond:
        $body

    for i$id in range($small):
        total += i$id
        $body

    for v$id in list(numbers):
        if v$id == $leaf: continue
        total += v$id
        if total > 40: break
    else:
        $body

    try:
        $body
        if $cond: raise ValueError(f'bad {$plain}')
    except ValueError as problem:
        log.append(str(problem))
    finally:
        count += 1

    try:
        config[$key]
        total // $small
    except KeyError as problem:
        $body
    except ZeroDivisionError:
        total = 1

    for k$id, v$id in list(config.items()):
        total += len(k$id)
        if k$id == 'gain':
            $body

    while count % 5 >= 1:
        count += 1
        if count > 60: count = 0
        $body

    def inner$id(k=$num, *rest, scale=1, **names):
        nonlocal total
        total += k % 7 + len(rest)
        return total * scale + len(names)
    total += inner$id($num) + inner$id(2, 3, scale=$num, extra=$leaf)

    with rn.no_grad():
        $body

    y, total = $call(y, $num)

    y, total = $call(y, total=$num, s=$num)
change:
    config['gain'] = $(2||3||4.5||True||2.0)
    config['mode'] = $('sum'||'mean')
    config = {'gain': 5, 'mode': 'mean', 'shift': 1}
    config.pop('bias', None)
    config['bias'] = $num
    numbers.append($(1||2.5||True))
    numbers = $([1]||[2.0, 1]||[True, 3, 1, 2]||log)
    log = []
    count = $(0||1||1.0||True||10)
    flag = $(True||False||1||0)
    rate = $(1||0.25||0.5)
    acc = rn.ones(())
    acc = acc * 1
    last = (acc, 2)
    acc = last[0].sum().detach()
    last[0].add_(1.0)
    log.append(last)
    x = last[0].detach()
    numbers = last[-1]
    config['extra'] = last
    last[-1].append(4)
    log.append(7)
    numbers = numbers * 1
    log = numbers
    config['last'] = acc
number:
    1
    2
    2.0
    0.5
    True
    3
    $int
    $leaf
    np.float32(0.5)
    np.int64(2)
    -0.0
    float('nan')
    float('inf')
extra:
    numbers
    config
    [1, 2.5]
    {'a': 1}
    (1, 2)
    None
    'text'
    log
    y
    acc
    last
    np.ones(2)
    x
argument:
    last[0]
    x
    tensor(1.0, -2.0, 3.0)
    tensor(1.0, -2.0, 3.0)
    tensor(1.0, -2.0, 3.0)
    tensor(0.5, 4.0)
    tensor(2.0)
    acc
step:
    def step(x, s=1, extra=None):
        STEP

    class Trainer:
        steps = 0
        def __init__(self): self.best, self.history = 0, []
        def step(self, x, s=1, extra=None):
            self.steps += 1
            if len(self.history) > 2: self.history.clear()
            self.history.append(s)
            STEP
    trainer = Trainer()
    def step(x, s=1, extra=None): return trainer.step(x, s=s, extra=extra)

    def outer(start):
        turns, kept = start, []
        def step(x, s=1, extra=None):
            nonlocal turns
            turns += 1
            kept[:] = [*kept[-2:], turns + s]
            STEP
        return step
    step = outer($leaf)

    class Model(nn.Module):
        def __init__(self):
            self.scale, self.seen, self.last = rn.Parameter(rn.ones(())), 0, None
        def forward(self, x, s=1, extra=None):
            self.seen += 1
            x = x * self.scale
            if self.last is None: self.last = x.sum().detach()
            STEP
    model = Model()
    def step(x, s=1, extra=None): return model(x, s, extra)

    class Base:
        level = 1
        def __call__(self, x, s=1, extra=None):
            y, total, *rest = self.run(x, s, extra)
            return y + self.level, total, *rest
    class Runner(Base):
        def run(self, x, s, extra):
            STEP
    runner = Runner()
    def step(x, s=1, extra=None): return runner(x, s, extra)

    def logged(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            call.calls += 1
            log.append(len(args) + len(kwargs))
            return function(*args, **kwargs)
        call.calls = 0
        return call
    @logged
    def step(x, s=1, extra=None):
        STEP

    class Config:
        def __init__(self, **names): vars(self).update(names)
    class Loop:
        def __init__(self, config): self.config, self.results = config, {}
        def step(self, x, s=1, extra=None):
            self.config.steps += 1
            self.results[self.config.steps % 3] = s
            self.last = x
            STEP
    loops = [Loop(Config(steps=0)), Loop(Config(steps=5))]
    loops.append(loops[0])
    def step(x, s=1, extra=None): return loops[count % 3 if type(count) is int else 0].step(x, s, extra=extra)

    def step(x, *args, **names):
        s, extra = args[0] if args else names.get('s', 1), names.get('extra')
        STEP

    class Partial:
        def __init__(self, by): self.by = by
        def __get__(self, owner, kind=None): return functools.partial(self, owner)
        def __call__(self, owner, x, s=1, extra=None):
            owner.count = self.by = self.by + 1
            STEP
    class Owner: run = Partial(2)
    owner = Owner()
    def step(x, s=1, extra=None): return owner.run(x, s, extra)

    def generated(x, s=1, extra=None):
        got = yield
        STEP
    def step(x, s=1, extra=None):
        steps = generated(x, s, extra)
        next(steps)
        try: steps.send(count)
        except StopIteration as end: return end.value
"""
