"""Classes: inheritance, properties, attributes that are made up, slots, descriptors, data classes, special methods."""

TEXT = r"""
## things
code:
    class Mixin:
        shared = $leaf
        def extra(self, k=1): return self.n + k
    class Thing:
        kind, table = $int, {}
        def __init__(self, n, parent=None):
            self.n, self.items, self.parent = n, [n, n + 1], parent
        @property
        def twice(self): return self.n * 2
        @twice.setter
        def twice(self, value): self.n = value // 2
        def bump(self, by=1):
            self.n += by
            return self.n
        @classmethod
        def named(cls, n): return cls(n + cls.kind)
        @staticmethod
        def helper(n): return n + count
        def __repr__(self): return f'{type(self).__name__}({self.n})'
    class Other($(Thing||Thing, Mixin||Mixin, Thing)):
        $(grade = 3||kind = 2||pass||def __bool__(self): return self.n % 3 != 0||def __len__(self): return 2)
        def bump(self, by=2): return super().bump(by) + $(self.kind||len(self.items)||self.twice||self.n)
        $(def __eq__(self, other): return isinstance(other, Thing) and self.n == other.n||def __call__(self, k): return self.n + k||pass)
        def __getattr__(self, name):
            if name.startswith('made'): return len(name) + self.n
            raise AttributeError(name)
    a, b = Thing(1), Other(2)
    b.parent = a
    things = {'a': a, 'b': b}
    world = [a, b]
    def pick(i): return world[int(i) % len(world)]
leaf:
    a.n
    b.n
    Thing.kind
obj:
    a
    b
    world[0]
    world[-1]
    things['a']
    things.get('b', a)
    pick($num)
    b.parent
    next(iter(world))
num:
    $obj.n
    $obj.twice
    $obj.kind
    $obj.bump($num)
    $obj.helper($num)
    $obj.items[$(0||-1)]
    len($obj.items)
    sum($obj.items)
    getattr($obj, $('n'||'extra_one'||'made'||'kind'), $num)
    b.made_up
    ($obj is $obj)
    ($obj == $obj)
    sum(t.n for t in world)
    type($obj).kind
    vars($obj)['n']
    max(world, key=lambda t: t.n).n
    $obj.__dict__.get('n', 3)
    len(vars($obj))
    Thing.table.setdefault('k', $num)
    [t for t in world if t.n > $num or t is a][0].n
    ($obj.parent or a).n
    Other.__mro__.index(Thing)
cond:
    isinstance($obj, Other)
    hasattr($obj, $('extra_one'||'grade'||'made'))
    type($obj) is Thing
    $obj in world
    $obj
    $obj is $obj
    callable($obj)
    issubclass(type($obj), Thing)
text:
    repr($obj)
    type($obj).__name__
    f'{$plain}'
seq:
    sorted(things)
    [t.n for t in world]
    $obj.items
tensor:
    (y * $obj.n)
    (y + len($obj.items))
stat:
    $obj.n = $num % 50
    $obj.n += 1
    $obj.twice = $num % 50
    $obj.extra_one = $num % 50
    $obj.items.append($num % 50)
    $obj.items = [$num, $num]
    $obj.items[0] = $num
    $obj.items = $obj.items
    $obj.parent = $(None||a||b)
    $obj.last = $tensor
    $obj.last = $obj
    del $obj.items[2:]
    things[$('a'||'b'||'c')] = $obj
    world.reverse()
    world[0] = $obj
    things['a'], things['b'] = things['b'], things['a']
    Thing.kind = $num % 9
    Other.kind = $num % 9
    Thing.table['k'] = $num % 9
    setattr($obj, $('n'||'extra_one'), $num % 50)
    vars($obj)['n'] = $num % 50
    $obj.__dict__.update(n=$num % 50)
    world[:] = world[-3:]
    world.append($(Thing||Other||Other.named)($num % 50))
    world.sort(key=lambda t: t.n)
    log.append($obj)
    vars($obj).pop('extra_one', None)
    things = {k: t for k, t in things.items() if t.n != $num}
    $obj.n, $obj.items = $num, list($obj.items)
block:
    for t$id in list(world):
        if t$id.n > 40:
            t$id.n = 1
            continue
        t$id.bump($num)

    at$id = $obj
    while at$id is not None and total < 30:
        total += abs(at$id.n) + 1
        at$id, seen$id, total = at$id.parent, at$id, total + 1
        if at$id is seen$id: break

    try:
        $obj.missing
    except AttributeError as problem:
        $body

    del $obj.extra_one
    $body
change:
    a = $(Thing(4)||Other(4)||b||a)
    b = $(Other(2)||Other(5)||a)
    Thing.kind = 4
    Other.kind = 8
    Other.bump = lambda self, by=1: by
    Thing.helper = staticmethod(lambda n: n + 2)
    Thing.twice = property(lambda self: self.n * 3)
    Thing.extra_one = 6
    Other.grade = 9
    a.bump = lambda by=1: by + 10
    vars(a).pop('bump', None)
    a.parent = $(a||b||None)
    b.items = a.items
    a.items = list(a.items)
    a.items.append(1)
    things['b'] = $(a||b)
    things = dict(reversed(things.items()))
    world.append(Thing(9))
    world = [b, a]
    Other.__bool__ = lambda self: self.n > 2
    Other.__len__ = lambda self: self.n % 2
    Thing.__eq__ = lambda self, other: self.n == other.n
    a.extra_one = 3
    a.__class__ = Other
    Thing.__getattr__ = lambda self, name: 5
    def pick(i): return a
    del Thing.__repr__
    Mixin.twice = 5

## slots
code:
    class Slotted:
        __slots__ = ('n', 'late', '__weakref__', $('__dict__'||'other'||'more'))
        def __init__(self, n): self.n = n
        def __lt__(self, other): return self.n < other.n
        def __hash__(self): return hash(self.n)
        def __eq__(self, other): return self.n == getattr(other, 'n', None)
    class Wider(Slotted):
        __slots__ = ('wide',)
        @functools.cached_property
        def never(self): return 1
    class Field:
        def __init__(self, most): self.most = most
        def __set_name__(self, owner, name): self.name = '_' + name
        def __get__(self, owner, kind=None): return self if owner is None else vars(owner).get(self.name, $leaf)
        def __set__(self, owner, value): vars(owner)[self.name] = value % self.most
        $(def __delete__(self, owner): vars(owner).pop(self.name, None)||pass)
    class Lazy:
        def __init__(self, function): self.function = function
        def __set_name__(self, owner, name): self.name = name
        def __get__(self, owner, kind=None):
            if owner is None: return self
            value = vars(owner)[self.name] = self.function(owner)
            return value
    class Holder:
        level = Field(20)
        depth = Field(count + 7)
        @Lazy
        def lazy(self): return self.level + 1
        @functools.cached_property
        def cached(self): return self.level * 2
        def __setattr__(self, name, value):
            object.__setattr__(self, name, value)
            if name == 'level': vars(self).pop('cached', None)
        def __delattr__(self, name):
            log.append('del ' + name)
            object.__delattr__(self, name)
    slotted, wider, holder = Slotted(1), Wider(2), Holder()
leaf:
    slotted.n
    len(Slotted.__slots__)
num:
    slotted.n
    wider.n
    getattr($(slotted||wider), $('late'||'n'||'wide'), 4)
    holder.level
    holder.depth
    holder.lazy
    holder.cached
    Holder.level.most
    (slotted < wider)
    (slotted == wider)
    len(vars(holder))
cond:
    hasattr($(slotted||wider), $('late'||'wide'||'n'))
    slotted is wider
    slotted in (wider,)
stat:
    slotted.n = $num % 9
    wider.n = $num % 9
    wider.late = $num
    slotted.late = $(slotted||wider||y)
    wider.wide = $num % 9
    ~ del $(slotted.late||wider.wide||holder.lazy||holder.cached||holder.depth)
    holder.level = $num
    holder.depth += 3
    holder.tag = $num
    vars(holder)['lazy'] = $num
    Holder.level.most = 15
    slotted, wider = wider, slotted
block:
    if hasattr(wider, 'wide'):
        $body
    else:
        wider.wide = $num
change:
    slotted = $(Slotted(3)||wider||Wider(1))
    slotted.late = 1
    wider.n = slotted.n
    holder = Holder()
    Holder.level = Field(9)
    Holder.level.most = 5
    Holder.lazy = 7
    vars(holder).clear()
    holder.level = 3
    Slotted.late = 4
    Holder.cached = property(lambda self: 1)

## rows
code:
    @dataclasses.dataclass($(||slots=True||order=True||eq=False))
    class Row:
        n: int = 0
        parts: list = dataclasses.field(default_factory=list)
        def __post_init__(self): self.parts.append(self.n)
        def __iter__(self): yield from self.parts
    @dataclasses.dataclass(frozen=True)
    class Setup:
        gain: float = 2.0
        sizes: tuple = (1, 2)
        more: dict = dataclasses.field(default_factory=dict, compare=False)
    class Mode(enum.Enum):
        LOW, HIGH = 1, 2
        @property
        def weight(self): return self.value * $leaf
        def next(self): return Mode.HIGH if self is Mode.LOW else Mode.LOW
    class Bits(enum.IntFlag):
        A, B, C = 1, 2, 4
    class Pair(typing.NamedTuple):
        left: float
        right: typing.Any = 3
        def total(self): return self.left + $leaf
    rows, setup, mode, bits, pair = [Row(1), Row(2)], Setup(), Mode.LOW, Bits.A, Pair(1)
leaf:
    rows[0].n
    setup.gain
    mode.value
    pair.left
    int(bits)
num:
    sum(rows[$(0||-1)])
    $row.n
    len($row.parts)
    setup.sizes[$(0||-1)]
    setup.more.get('k', $num)
    mode.weight
    mode.next().value
    Mode['HIGH'].value
    Mode($(1||2)).value
    pair.total()
    pair[0]
    pair._replace(left=$num).left
    (rows[0] == rows[-1])
    dataclasses.replace(setup, gain=$num).gain
    len(dataclasses.asdict(rows[-1]))
    len(dataclasses.fields(rows[0]))
    {Mode.LOW: $num, Mode.HIGH: 2}[mode]
    hash(pair[0])
    (setup == Setup())
    [r.n for r in rows if r.n % 2 == 0 or r is rows[0]][0]
row:
    rows[0]
    rows[-1]
    max(rows, key=lambda r: r.n)
cond:
    mode is Mode.LOW
    Bits.A in bits
    $row is rows[0]
    mode == Mode.HIGH
    setup.more
text:
    mode.name
    str(mode)
    f'{bits!r}'
seq:
    [*rows[0]]
    dataclasses.astuple($row)
    pair
    $row
    [m.name for m in Mode]
    pair._asdict()
tensor:
    (y * setup.gain)
    (y + mode.weight)
stat:
    $row.n = $num % 50
    $row.n += 1
    $row.parts.append($num % 50)
    $row.parts = $(rows[0].parts||[$num]||rows[-1].parts)
    rows.append(Row($num % 50))
    rows[:] = rows[-2:]
    rows.insert(0, rows.pop())
    setup = dataclasses.replace(setup, gain=$num % 9)
    setup = Setup($num, (total, 3))
    setup.more['k'] = $num
    mode = mode.next()
    mode = Mode($(1||2))
    ~ bits = Bits($num % 8)
    pair = pair._replace(right=$(y||total||$num))
    pair = Pair($num, $row)
    setup.gain = 3
block:
    match mode, bits:
        case Mode.LOW, Bits.A:
            $body
        case Mode.HIGH, b$id:
            total += b$id

    for i$id, r$id in enumerate(rows):
        total += i$id + r$id.n
        if r$id.n > 30:
            r$id.n = 0
            break
    else:
        $body
change:
    rows = [Row(5)]
    rows[0].n = 9
    rows[0].parts = rows[-1].parts
    rows.append(rows[0])
    setup = Setup(4.0)
    setup = Setup(2.0, (3,), {'k': 1})
    mode = Mode.$(LOW||HIGH)
    bits = Bits($(0||3||7))
    pair = Pair($(1||2.5), $(3||4||'text'))
    Row.n = 4
    Row.__iter__ = lambda self: iter([1, 2])
    Setup.gain = 9.0
    Pair.total = lambda self: 7
    object.__setattr__(setup, 'gain', 5.0)

## special
code:
    class Number:
        def __init__(self, v): self.v = v
        def __add__(self, other): return Number(self.v + (other.v if isinstance(other, Number) else other))
        __radd__ = __add__
        def __iadd__(self, other):
            self.v = (self.v + other) % 60
            return self
        def __mul__(self, other): return NotImplemented if isinstance(other, str) else Number(self.v * other)
        def __neg__(self): return Number(-self.v)
        def __lt__(self, other): return self.v < (other.v if isinstance(other, Number) else other)
        def __eq__(self, other): return self.v == (other.v if isinstance(other, Number) else other)
        def __hash__(self): return hash(self.v)
        def __index__(self): return int(self.v) % 3
        def __float__(self): return float(self.v)
        def __bool__(self): return bool(self.v % 2)
        def __format__(self, spec): return f'<{self.v:{spec}}>'
        def __repr__(self): return f'Number({self.v})'
    class Bag:
        def __init__(self, *values): self.values, self.asked = list(values), 0
        def __len__(self): return len(self.values)
        def __getitem__(self, i):
            self.asked += 1
            return self.values[i]
        def __setitem__(self, i, value): self.values[i] = value
        def __delitem__(self, i): del self.values[i]
        def __contains__(self, value): return value in self.values
        $(def __iter__(self): return iter(self.values)||pass||def __reversed__(self): return iter([9, 8]))
        def __enter__(self):
            self.asked += 1
            return self.values
        def __exit__(self, kind, value, trace):
            self.asked -= 1
            return kind is KeyError
        def __call__(self, *args, **kwargs): return len(args) + len(kwargs) * 10 + self.asked
    class Upto:
        def __init__(self, end): self.at, self.end = 0, end
        def __iter__(self): return self
        def __next__(self):
            if self.at >= self.end: raise StopIteration
            self.at += 1
            return self.at
    num, bag = Number(3), Bag(1, 2, 5)
    long = Upto(30)
leaf:
    num.v
    len(bag)
    bag.asked
num:
    (num + $num).v
    ($num + num).v
    (-num).v
    float(num)
    (num < $num)
    (num == $num)
    bag[$(0||-1)]
    len(bag)
    sum(bag)
    bag($num, k=1)
    max(bag)
    ($num in bag)
    next(long)
    sum(Upto($small))
    next(Upto(3))
    long.at
cond:
    num
    bag
    $num in bag
    num is num
text:
    f'{num:>4}'
    repr(num)
seq:
    bag[:2]
    list(map(operator.neg, bag))
stat:
    num += $num
    num = num + $num
    num.v = $num % 50
    bag[$(0||-1)] = $num
    bag.values.append($num % 20)
    del bag[0]
    bag.values[:] = [1, 2, $num]
    bag = Bag(*bag.values, $num)
    long.at = 0
    long = Upto($num)
    first$id, *rest$id = bag; total += first$id
block:
    with bag as values$id:
        total += values$id[0]
        $body

    with bag, rn.no_grad():
        $body
        config['none']

    for v$id in long:
        if v$id % 4 >= 3: break
        total += v$id
change:
    num = $(Number(1)||Number(3)||4)
    bag = $(Bag(2)||Bag(1, 2, 5)||[1, 2, 3])
    bag.values = numbers
    Bag.__len__ = lambda self: 5
    Bag.__contains__ = lambda self, v: True
    Bag.__bool__ = lambda self: False
    Number.__add__ = lambda self, other: Number(1)
    Number.__bool__ = lambda self: True
    long = Upto(40)
    Bag.__call__ = lambda self, *a, **k: 3
    num = bag
    Bag.__exit__ = lambda self, *a: True
"""  # noqa: E501
