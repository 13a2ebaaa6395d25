"""Habits of library authors: orders of effects, abstract classes, iterators kept outside, exceptions."""

TEXT = r"""
## effects
code:
    calls = []
    class Counted:
        reads = 0
        def __init__(self, v): self.v, self.lengths = v, 0
        @property
        def value(self):
            self.__class__.reads += 1
            return self.v
        def __len__(self):
            self.lengths += 1
            return 2
        def __getattr__(self, name):
            if name.startswith('__'): raise AttributeError(name)
            calls.append(name)
            return len(calls)
        def __iter__(self):
            for i in range(3):
                calls.append(i)
                yield i + self.v
        def __contains__(self, k):
            calls.append('in')
            return k == self.v
        def __call__(self, k):
            self.v = (self.v + 1) % 9
            return k + self.v
    def noted(n, result=None):
        calls.append(n)
        return n if result is None else result
    def chatty(k):
        print('chatty', k)
        return -k
    counted = Counted(2)
    tick = iter(range(1000))
    ids = itertools.count(5)
    lengths = [len(calls)]
leaf:
    len(calls)
    Counted.reads
    counted.v
num:
    noted($num)
    counted.value
    counted.$(some||other)
    len(counted)
    counted($num)
    noted($num, 0) or noted($num)
    (noted($num) and noted($num, 3))
    noted(1) + noted(2) * noted(3)
    (noted(1) < noted($num) < noted(3))
    sum(map(noted, numbers))
    next(map(noted, numbers))
    next(filter(noted, numbers), 0)
    any(noted(v) > 1 for v in numbers)
    all(map(counted, numbers))
    sorted(numbers, key=chatty)[0]
    max(numbers, key=noted)
    min(counted)
    next(v for v in counted)
    dict(a=noted(1), b=noted(2))['b']
    [noted(i) for i in range(2) if noted(i)][-1]
    len({noted(1): noted(2), noted(3): noted(4)})
    functools.reduce(lambda p, q: noted(p + q), numbers)
    next(zip(map(noted, numbers), counted))[1]
cond:
    $num in counted
    counted
    noted($num, flag)
    any(map(noted, numbers))
seq:
    calls[-3:]
    {noted(k): v for k, v in config.items()}
stat:
    noted(numbers)[noted(0)] = noted($num)
    config[noted('gain')] = noted($num)
    noted(config)[noted('gain')] += noted($num)
    counted.v = $num % 9
    calls[:] = calls[-4:]
    calls.clear()
    a$id = b$id = noted($num); total += a$id + b$id
    p$id, *q$id = noted(1), noted(2), noted($num); total += len(q$id)
    total += 1 if noted($num) else noted(4)
    print(*numbers[:2], sep=noted('-'))
    assert noted($num), noted('text')
    del config[noted('gain')]
    print(counted.value, end=';')
    print(f'{counted.value} {noted(2)}')
block:
    for i$id in counted:
        if i$id > $num: break
        $body

    while noted($cond) and len(calls) < 30:
        $body
        break

    match noted($num):
        case 0 | 1 if noted(True):
            $body
        case v$id if noted(v$id) > 2:
            total += v$id
        case _:
            $body

    with contextlib.ExitStack() as stack$id:
        stack$id.callback(noted, $num)
        $body
        stack$id.callback(noted, 'second')
change:
    counted = $(Counted(4)||Counted(2))
    calls.clear()
    calls.append(3)
    calls = numbers
    Counted.value = 5
    Counted.reads = 0
    Counted.__len__ = lambda self: 0
    def noted(n, result=None): return n
    counted.some = 4
    Counted.__contains__ = lambda self, k: False
    Counted.__iter__ = lambda self: iter((1, 2))

## abstract
code:
    class Shape(abc.ABC):
        registry, sides = {}, 0
        def __init_subclass__(cls, *, name=None, **names):
            super().__init_subclass__(**names)
            if name: Shape.registry[name] = cls
        @abc.abstractmethod
        def area(self): ...
        @property
        @abc.abstractmethod
        def title(self): ...
        def describe(self): return f'{self.title}:{self.area()}'
        def __class_getitem__(cls, item): return cls
    class Square(Shape, name='square'):
        sides = 4
        def __init__(self, n): self.n = n
        def area(self): return self.n * self.n
        title = 'square'
    class Line(Shape, name='line'):
        def __init__(self, n, *, width=$int): self.n, self.width = n, width
        def area(self): return self.n * self.width
        @property
        def title(self): return 'line%d' % self.width
    class A:
        def run(self, k): return [('A', k)]
    class B(A):
        def run(self, k): return [('B', k), *super().run(k + 1)]
    class C(A):
        def run(self, k): return [('C', k), *super(C, self).run(k * 2)]
    class D(B, C):
        scale = $int
        def run(self, k):
            found = super().run(k)
            return found[:self.scale] if self.scale > 0 else found
    shape, diamond = Square(2), D()
leaf:
    shape.n
num:
    shape.area()
    shape.sides
    Shape.registry[$('square'||'line')](2).area()
    len(Shape.registry)
    len(diamond.run($num))
    diamond.run(1)[-1][1]
    type(shape)(3).area()
    Square.area(shape)
    super(D, diamond).run($num)[0][1]
    D.mro().index(C)
    Line($num, width=$num).area()
cond:
    isinstance(shape, Shape)
    isinstance(shape, Line)
    hasattr(shape, 'width')
    isinstance(numbers, collections.abc.Sequence)
text:
    shape.describe()
    shape.title
    type(diamond).__qualname__
    ','.join(Shape.registry)
seq:
    diamond.run($num)
    [c.__name__ for c in type(diamond).__mro__]
stat:
    shape = $(Square($num)||Line($num))
    shape.n = $num % 9
    Shape.sides = $num % 9
    Square.sides = $num % 9
    diamond.scale = $num % 4
    D.scale = $num % 4
    shape.title = 'other'
block:
    if isinstance(shape, Line):
        $body
    elif isinstance(shape, collections.abc.Sized):
        total += 1
change:
    shape = $(Line(2)||Square(3)||Line(2, width=5))
    B.run = lambda self, k: [('new', k)]
    C.run = A.run
    del B.run
    D.__bases__ = (C, B)
    Shape.registry['line'] = Square
    Line.title = 'flat'
    shape = made
    D.scale = 2
    diamond.__class__ = B
    Square.area = lambda self: 1
    Shape.describe = lambda self: 'none'

## failures
code:
    class AppError(Exception):
        count = 0
        def __init__(self, message, code=1):
            super().__init__(message)
            self.code = code
            AppError.count += 1
        def __str__(self): return f'{self.args[0]}/{self.code}'
    class Special(AppError, KeyError): pass
    errors = []
    def risky(n, kind=AppError):
        if n > $int: raise kind('high')
        if n < 0: raise Special('low', code=n)
        return n
    def cleaned(n):
        try: return risky(n)
        except AppError as problem:
            errors.append(problem.code)
            return problem.code
        else: errors.append('else')
        finally: errors.append('finally')
    def wrapped(n):
        try: return risky(n)
        except AppError as problem:
            raise RuntimeError('wrapped') from problem
    def nested_finally(n):
        for i in range(3):
            try:
                if i == n: continue
                if i > n: break
                errors.append(i)
            finally:
                errors.append('f')
        return len(errors)
    class Guarded:
        def __init__(self, kinds): self.kinds, self.caught = kinds, None
        def __enter__(self): return self
        def __exit__(self, kind, problem, trace):
            self.caught = None if problem is None else str(problem)
            return kind is not None and issubclass(kind, self.kinds)
    def closing(n):
        try:
            yield n
            yield n + 1
        except GeneratorExit:
            errors.append('closed')
            raise
        except ValueError as problem:
            yield problem.args[0]
    guarded = Guarded((AppError,))
leaf:
    len(errors)
    AppError.count
num:
    risky($num)
    cleaned($num)
    wrapped($num)
    nested_finally($small)
    next(closing($num))
    len(guarded.caught or '')
cond:
    guarded.caught
    'finally' in errors
    issubclass(Special, KeyError)
text:
    str(guarded.caught)
    repr(AppError('x'))
    str(Special('y', code=$leaf))
seq:
    errors[-3:]
    AppError('a', 2).args
stat:
    errors[:] = errors[-4:]
    errors.append($num)
    risky($num, kind=ValueError)
    raise AppError($text, code=$num)
    AppError.count = 0
    config['error'] = $text
    g$id = closing($num); next(g$id); total += g$id.throw(ValueError($num))
    g$id = closing($num); next(g$id); g$id.close()
    log.append(wrapped($leaf))
block:
    with guarded:
        $body
        risky($num)

    with guarded as g$id, Guarded((KeyError, ValueError)):
        risky($num, ValueError)
        $body

    try:
        risky($num)
    except Special as problem:
        total += problem.code
        $body
    except AppError as problem:
        log.append(str(problem))
    else:
        $body
    finally:
        errors.append('end')

    try:
        wrapped($num)
    except RuntimeError as problem:
        log.append(str(problem.__cause__))
        if $cond: raise

    try:
        raise ExceptionGroup('many', [ValueError($num), KeyError('k')])
    except* ValueError as group:
        total += len(group.exceptions)
    except* KeyError:
        $body

    for i$id in range(3):
        try:
            if i$id == $leaf: continue
            total += risky(i$id)
        except AppError:
            break
        finally:
            errors.append(i$id)

    if $cond: raise AppError('stop', $num)
change:
    errors.clear()
    guarded.kinds = (ValueError,)
    guarded = Guarded($((AppError, KeyError)||()))
    AppError.__str__ = lambda self: 'new'
    def risky(n, kind=None): return n
    def cleaned(n): raise ValueError('cleaned')
    AppError.count = 4
    errors = log
"""
