"""Values that are passed: data classes, named tuples, enums, the same object twice."""

TEXT = r"""
## passed
code:
    @dataclasses.dataclass
    class Batch:
        inputs: rn.Tensor
        weight: float = 1.0
        names: list = dataclasses.field(default_factory=list)
        more: dict = dataclasses.field(default_factory=dict)
    class Output(typing.NamedTuple):
        value: rn.Tensor
        step: int = 0
        aux: typing.Any = None
    class Kind(enum.Enum):
        MEAN, SUM = 'mean', 'sum'
    class Size(enum.IntEnum):
        SMALL, LARGE = 1, 5
    class Space:
        def __init__(self, **names): vars(self).update(names)
    Coordinates = collections.namedtuple('Coordinates', 'row column', defaults=(0,))
    def take(value, y, *, scale=1, **others):
        if isinstance(value, Batch):
            value.names.append(len(value.names))
            return (y + value.inputs.sum() * value.weight) * scale
        if isinstance(value, Output): return y + value.value * value.step
        if isinstance(value, Kind): return y.mean() if value is Kind.MEAN else y.sum()
        if isinstance(value, Size): return y * value
        if isinstance(value, Coordinates): return y + value.row - value.column
        if isinstance(value, Space): return y * value.k
        if isinstance(value, (list, tuple)): return sum((take(v, y) for v in value), y)
        if isinstance(value, dict): return functools.reduce(lambda p, k: p + take(value[k], y), value, y)
        if isinstance(value, (int, float)): return y * value + len(others)
        if isinstance(value, rn.Tensor): return y + value.mean()
        if isinstance(value, np.ndarray): return y + rn.asarray(value).sum()
        if isinstance(value, (range, slice)): return y * (value.stop or 1)
        if callable(value): return y * value(2)
        return y - 1 if value else y
    def defaults(n, seen=[], table={}, *, step=$int):
        seen.append(n)
        table[n] = table.get(n, 0) + step
        if len(seen) > 5: seen.clear()
        return len(seen) + len(table)
    def same_twice(p, q):
        p.append(len(q))
        if len(p) > 6: del p[2:]
        return len(q)
    kept_batch, kept_space = Batch(rn.ones((2,))), Space(k=2)
leaf:
    len(kept_batch.names)
    kept_batch.weight
    kept_space.k
given:
    kept_batch
    Batch(y, $num)
    Output(y, $leaf)
    Output(value=y.sum(), step=2)._replace(step=$leaf)
    Kind.$(MEAN||SUM)
    Size.$(SMALL||LARGE)
    Coordinates($num)
    kept_space
    [$given, $leaf]
    {'p': $given, 'q': y}
    $num
    extra
    range($small)
    None
    np.ones(2, np.float32)
num:
    defaults($num)
    defaults($leaf, [])
    same_twice(numbers, numbers)
    same_twice(log, [1, 2])
    len(defaults.__defaults__[1])
    Kind($('mean'||'sum')).value == 'sum'
    Size(5) + $num
    type(extra).__name__ == 'list'
    (extra is x)
    len(dataclasses.replace(kept_batch, weight=$num).names)
    Coordinates(*numbers[:2]).row
    Coordinates(column=$num, row=1)[1]
    (lambda *args, **names: len(args) * 10 + len(names))(*numbers, **config)
    bool(extra is None)
cond:
    isinstance(extra, (Batch, Space))
    isinstance(extra, (list, dict))
    type(s) is $(int||float||bool)
    s is True
    extra is kept_batch
tensor:
    take($given, y)
    take(extra, y)
    take(extra, y, scale=$num, more=1)
    take(value=$given, y=y)
    take(*(s, y))
    take(**{'value': s, 'y': y, 'other': $leaf})
seq:
    kept_batch.names
    [type(extra).__name__, type(s).__name__]
    Coordinates($leaf)
stat:
    kept_batch.weight = $num % 9
    kept_batch.more[$key] = $num
    kept_batch.inputs = y
    kept_batch.names = [$leaf]
    kept_space.k = $num % 9
    kept_space.extra = extra
    del kept_batch.names[3:]
    if isinstance(extra, Batch): extra.weight = $num
    if isinstance(extra, Space): extra.k, extra.seen = $num, y
    if isinstance(extra, list): extra[:1] = [$leaf]
    if isinstance(extra, list) and extra: extra.append(extra[0])
    defaults.__defaults__[0].clear()
    kept_batch = Batch(y.sum(), names=kept_batch.names)
block:
    for k$id, v$id in (dict(extra) if isinstance(extra, dict) else {'s': s}).items():
        y = take(v$id, y)
        total += len(k$id)
change:
    kept_batch.weight = $(2||3.5||True)
    kept_batch.inputs = rn.ones((3,))
    kept_batch = Batch(rn.ones(()), 2.0)
    kept_batch.names = log
    kept_space = Space(k=$(3||1.5))
    kept_space.k = rn.ones(())
    Batch.weight = 4
    defaults.__kwdefaults__['step'] = 4
    defaults.__defaults__ = ([], {})
    extra = kept_batch
    def take(value, y, **others): return y * 2
number:
    Size.LARGE
    10 ** 20
    -1
    np.float64(1.5)
    np.bool_(True)
    1e-3
    2 ** 31
extra:
    kept_batch
    Batch(tensor(1.0, 2.0), 0.5)
    Batch(x)
    Output(tensor(1.0), 3)
    Output(x, 1, [x])
    Kind.$(MEAN||SUM)
    Size.$(SMALL||LARGE)
    kept_space
    Space(k=$(1||2.5))
    Coordinates($(1||2.0), 3)
    [x, x]
    [x, [x, {'a': x}]]
    {'p': 1, 'q': x}
    {'q': tensor(2.0), 'p': (1, None)}
    (tensor(1.0), 2, 'text')
    range(3)
    slice(0, 2)
    np.float32(2)
    np.array([1, 2])
    len
    tensor
    $(1||1.0||True||None||'a'||b'a'||1j)
    [kept_batch, kept_batch]
"""
