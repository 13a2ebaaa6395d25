"""What is changed between two calls: each way to change an object from outside beside each way in which a function reads
it. A program is a draw from that table; its calls must give what eager calls give."""

from __future__ import annotations

import array
import collections
import functools
import itertools
import random
import threading
import types
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from tests.compile.adversarial.worlds import call, story, tensor

Space = dict[str, Any]

SHARE: Final = 14  # programs of each kind


class Kind(NamedTuple):
    make: Callable[[], Space]  # the world of one program: ``o``, and what else the lines name
    changes: tuple[str, ...]
    reads: tuple[str, ...]
    eager: bool = False  # whether much of it is refused


HELPERS: Final = """
def rows_of(o):
    match o:
        case [1, *rest]: return len(rest)
        case [a, b]: return 20
        case []: return 30
        case _: return 40
def entries_of(o):
    match o:
        case {"a": 1, **rest}: return len(rest)
        case {"a": v}: return 20
        case _: return 40
def parts_of(o):
    match o:
        case object(p=5.0): return 1
        case object(p=9.0): return 2
        case object(q=3): return 3
        case _: return 4
def stepped(o, w):
    o.zero_grad(); (w * w).sum().backward(); o.step(); return w * 1
xx = rn.asarray(np.arange(4, dtype=np.float32).reshape(2, 2) / 3)
"""


class Named:
    """What the classes below have."""

    def __init__(self) -> None:
        self.p, self.q, self.name = 2.0, 3, "ab"

    @property
    def prop(self) -> Any:
        return self.p + 1

    def method(self) -> Any:
        return self.q


class Replaced(Named):
    @property
    def prop(self) -> Any:
        return self.p + 100

    def method(self) -> Any:
        return self.q * 50


class Data(Named):
    def __init__(self) -> None:
        super().__init__()
        self.rows = [1, 2, 3]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: Any) -> Any:
        return self.rows[i]

    def __iter__(self) -> Any:
        return iter(self.rows)

    def __contains__(self, v: Any) -> bool:
        return v in self.rows


class InModule(nn.Module):
    def __init__(self) -> None:
        self.p, self.q, self.name = 2.0, 3, "ab"
        self.sub = nn.Linear(2, 2)

    prop, method = Named.prop, Named.method


class ReplacedModule(InModule):
    prop, method = Replaced.prop, Replaced.method


class Rows(list[Any]):
    extra = 1


class Entries(dict[Any, Any]):
    extra = 1

    def __missing__(self, key: Any) -> int:
        return 55


def of_class(kind: type, other: type) -> Callable[[], Space]:
    """Each world has classes of its own, which its changes may touch."""
    return lambda: {
        "o": types.new_class(kind.__name__, (kind,))(),
        "Other": types.new_class(other.__name__, (other,)),
    }


def twice(make: Callable[[], Any]) -> Callable[[], Space]:
    return lambda: {"o": make(), "o2": make()}


def sequential() -> Space:
    rn.manual_seed(0)
    return {"o": nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 2), nn.ReLU())}


def linear() -> Space:
    rn.manual_seed(0)
    return {"o": nn.Linear(2, 2)}


def optimizer(kind: Any) -> Callable[[], Space]:
    def make() -> Space:
        w = rn.Parameter(np.array([1.0, 2.0], np.float32))
        return {"o": kind([w], lr=0.1), "w": w}

    return make


def module() -> Space:
    o = types.ModuleType("m")
    o.__dict__.update(p=2.0, q=3, fn=lambda: 5)
    return {"o": o}


def function() -> Space:
    def o(a: int = 1, *, b: int = 2) -> int:
        return a * 10 + b

    o.attr = 5  # type: ignore[attr-defined]
    return {"o": o}


class Meta(type):
    tag = 1

    def __len__(cls) -> int:
        return 6

    def __contains__(cls, v: Any) -> bool:
        return bool(v == 1)


def a_class() -> Space:
    meta = types.new_class("M", (Meta,))
    base, base2 = type("B", (), {"b": 1, "f": lambda s: 5}), type("C", (), {"b": 10, "f": lambda s: 50})
    return {"o": meta("O", (base,), {"p": 2.0, "q": 3}), "Base": base, "Base2": base2, "M": meta}


def chain() -> Space:
    a, b = {"a": 1}, {"b": 2, "c": 3}
    return {"o": collections.ChainMap(a, b), "a": a, "b": b, "o2": collections.ChainMap({"a": 1}, {"b": 2, "c": 3})}


def proxy() -> Space:
    a = {"a": 1, "b": 2, "c": 3}
    return {"o": types.MappingProxyType(a), "a": a, "o2": dict(a)}


def view() -> Space:
    b = bytearray(b"\x01\x02\x03")
    return {"o": memoryview(b), "b": b, "o2": memoryview(bytearray(b))}


ATTRIBUTES_SET: Final = (
    "o.p = 5.0", "o.p += 1", "setattr(o, 'p', 9.0)", "o.__dict__['p'] = 9.0", "vars(o)['p'] = 9.0", "vars(o).clear()",
    "o.__dict__ |= {'p': 9.0}", "o.__dict__.update(p=9.0)", "o.__dict__ = dict(o.__dict__, p=9.0)", "del o.q",
    "vars(o).pop('q')", "del o.__dict__['q']", "o.__dict__.setdefault('new', 1)", "o.new = 1", "o.__dict__.popitem()",
    "o.q = 3.0", "o.q = True", "o.name = 'abc'", "o.method = lambda: 66",
)  # fmt: skip
CLASSES_SET: Final = (
    "type(o).p = 50.0", "type(o).extra = 1", "type(o).method = lambda s: 77", "type(o).prop = property(lambda s: 77)",
    "o.__class__ = Other", "type(o).__getattr__ = lambda s, n: 99", "type(o).__len__ = lambda s: 4",
    "type(o).__bool__ = lambda s: False", "type(o).__contains__ = lambda s, v: True",
    "type(o).__iter__ = lambda s: iter([1])", "type(o).__format__ = lambda s, f: 'hoy'",
    "type(o).__getattribute__ = lambda s, n: 98", "type(o).__call__ = lambda s, *a: 5",
)  # fmt: skip
ATTRIBUTES_READ: Final = (
    "getattr(o, 'p', None)", "getattr(o, 'q', None)", "hasattr(o, 'new')", "hasattr(o, 'extra')",
    "o.__dict__.get('p')", "len(vars(o))", "'new' in vars(o)", "sorted(map(str, vars(o)))", "'q' in o.__dict__",
    "tuple(k for k in vars(o) if k != 'sub')", "{**vars(o)}.get('p')", "(lambda **k: k.get('p'))(**vars(o))",
    "[k for k, v in vars(o).items() if v == 3]", "f'{getattr(o, \"p\", 0)}'", "parts_of(o)",
    "[getattr(o, n, None) for n in ('p', 'q')]", "max(getattr(o, 'p', 0), 1)", "any('q' == k for k in o.__dict__)",
    "next(iter(vars(o)), None)", "sum(v for v in vars(o).values() if isinstance(v, float))",
)  # fmt: skip
CLASSES_READ: Final = (
    "getattr(o, 'prop', 0)", "o.method()", "type(o).__name__", "isinstance(o, Other)", "bool(o)",
    "hasattr(o, '__len__')", "callable(o)", "getattr(type(o), 'extra', None)",
)  # fmt: skip
OF_DATA: Final = ("len(o)", "o[0]", "3 in o", "sum(o)", "tuple(o)", "max(o, default=0)", "(lambda *a: a)(*o)")

ROWS_SET: Final = (
    "o.append(9)", "o[0] = 9", "o.pop()", "o.reverse()", "del o[0]", "o.extend([3, 3])", "o.insert(0, 9)",
    "o[0] = True",
)  # fmt: skip
LISTS_SET: Final = (
    "o[:] = [9]", "o.clear()", "o.sort(reverse=True)", "o *= 2", "o += [9]", "list.append(o, 9)", "o.__init__([7])",
)  # fmt: skip
ROWS_READ: Final = (
    "len(o)", "o[0] if len(o) else 0", "o[-1] if len(o) else 0", "3 in o", "9 in o", "tuple(o)", "bool(o)", "sum(o)",
    "max(o, default=0)", "sorted(o)", "any(v > 5 for v in o)", "[v for v in o if v > 1]", "(lambda *a: a)(*o)",
    "repr(o)", "f'{o}'", "o == o2", "rows_of(o)", "list(zip(o, o))", "next(iter(o), 0)", "{v: 1 for v in o}",
    "not o", "[*o, 1]", "dict.fromkeys(o)", "list(itertools.chain.from_iterable([o, o]))",
)  # fmt: skip
ENTRIES_SET: Final = (
    "o['a'] = 9", "del o['a']", "o['new'] = 1", "o.update(a=9)", "o.pop('a')", "o.popitem()", "o.clear()",
    "o.setdefault('new', 5)", "o |= {'a': 9}", "o['a'] = True", "o['a'] = o.pop('a')", "dict.__setitem__(o, 'a', 9)",
    "o['b'] = o['c']",
)  # fmt: skip
ENTRIES_READ: Final = (
    "len(o)", "o.get('a')", "'a' in o", "'new' in o", "tuple(o)", "tuple(o.values())", "tuple(o.items())", "bool(o)",
    "sum(o.values())", "max(o, default=0)", "any(v > 5 for v in o.values())", "(lambda **k: k.get('a'))(**o)",
    "(lambda *a: a)(*o)", "repr(o)", "f'{o}'", "o == o2", "entries_of(o)", "{**o, 'z': 1}.get('a')",
    "list(reversed(o))", "next(iter(o), 0)", "o.keys() == {'a', 'b', 'c'}", "('a', 1) in o.items()",
    "dict(o).get('b')", "o.copy().get('a')", "'{0[b]}'.format(o) if 'b' in o else 0",
)  # fmt: skip
SETS_SET: Final = (
    "o.add(9)", "o.discard(1)", "o.clear()", "o |= {9}", "o &= {1}", "o ^= {1, 9}", "o.update([9, 8])", "o.remove(3)",
)  # fmt: skip
SETS_READ: Final = (
    "len(o)", "3 in o", "9 in o", "tuple(sorted(o))", "bool(o)", "sum(o)", "max(o, default=0)", "o == o2", "o <= o2",
    "len(o | {5})", "o.issubset({1, 2, 3})", "{v for v in o if v > 1}", "o.isdisjoint({9})",
)  # fmt: skip
LAYERS_SET: Final = (
    "o.append(nn.ReLU())", "o[0] = nn.ReLU()", "del o[0]", "o[0].p = 0.0", "o[1].bias = None", "o.eval()",
    "vars(o)['0'] = nn.ReLU()", "o.__dict__.popitem()", "o[2].forward = lambda x: x * 9", "o[0].__class__ = nn.ReLU",
)  # fmt: skip
LAYERS_READ: Final = (
    "o(xx)", "len(o)", "[type(m).__name__ for m in o]", "o[-1](xx)", "o[1:](xx)", "list(o.state_dict())",
    "len(list(o.parameters()))", "o[0].training", "sum(1 for _ in o)",
)  # fmt: skip
LAYER_SET: Final = (
    "o.forward = lambda x: x * 3", "vars(o)['forward'] = lambda x: x * 3", "o.bias = None", "vars(o).pop('bias')",
    "o.weight.requires_grad = False", "o.weight.assign(o.weight * 2)", "o.extra = 3", "o.__class__ = nn.ReLU",
    "vars(o)['weight'] = nn.Parameter(np.ones((2, 2), np.float32))", "o.__dict__ = dict(o.__dict__)",
)  # fmt: skip
LAYER_READ: Final = (
    "o(xx)", "o.forward(xx)", "[n for n, _ in o.named_parameters()]", "sorted(o.state_dict())", "repr(o)",
    "hasattr(o, 'extra')", "getattr(o, 'bias', None) is None", "type(o).__name__", "len(vars(o))",
    "[p.requires_grad for p in o.parameters()]",
)  # fmt: skip
GROUPS_SET: Final = (
    "o.param_groups[0]['lr'] = 0.5", "o.param_groups[0].update(lr=0.7)", "o.param_groups[0]['weight_decay'] = 0.5",
    "o.step = lambda: None", "o.__dict__['new'] = 4", "w.grad = rn.ones(2)", "w.requires_grad = False",
)  # fmt: skip
GROUPS_READ: Final = (
    "o.param_groups[0]['lr']", "[g['lr'] for g in o.param_groups]", "stepped(o, w)", "hasattr(o, 'new')", "repr(o)",
    "o.state_dict()['param_groups'][0]['lr']", "sorted(o.param_groups[0])", "w.grad is None", "w.requires_grad",
)  # fmt: skip
FUNCTION_SET: Final = (
    "o.attr = 6", "o.new = 1", "del o.attr", "o.__defaults__ = (7,)", "o.__kwdefaults__ = {'b': 9}",
    "o.__code__ = (lambda a=1, *, b=2: a * 1000).__code__", "vars(o)['attr'] = 9", "o.__wrapped__ = 3",
    "o.__name__ = 'z'",
)  # fmt: skip
FUNCTION_READ: Final = (
    "o()", "getattr(o, 'attr', 0)", "hasattr(o, 'new')", "o.__defaults__", "o.__kwdefaults__", "o.__name__",
    "len(vars(o))", "hasattr(o, '__wrapped__')",
)  # fmt: skip
MODULE_SET: Final = (
    "o.p = 5", "o.new = 1", "del o.q", "vars(o)['p'] = 9", "o.fn = lambda: 8", "o.__getattr__ = lambda n: 66",
    "o.__class__ = type('MM', (types.ModuleType,), {'extra': 5})",
)  # fmt: skip
MODULE_READ: Final = (
    "o.p", "getattr(o, 'q', 0)", "hasattr(o, 'new')", "o.fn()", "len(vars(o))", "getattr(o, 'extra', 3)",
    "type(o).__name__",
)  # fmt: skip
CLASS_SET: Final = (
    "o.p = 5", "o.new = 1", "del o.q", "Base.b = 7", "M.tag = 9", "M.__len__ = lambda c: 7",
    "M.__contains__ = lambda c, v: False", "M.__getattr__ = lambda c, n: 88", "o.__bases__ = (Base2,)",
    "type.__setattr__(o, 'p', 8)", "o.__name__ = 'ZZ'", "o.f = lambda s: 6", "M.__bool__ = lambda c: False",
)  # fmt: skip
CLASS_READ: Final = (
    "o.p", "getattr(o, 'q', 0)", "hasattr(o, 'new')", "o.b", "o.tag", "len(o)", "1 in o", "getattr(o, 'missing', 1)",
    "o.__name__", "o().f()", "'new' in vars(o)", "bool(o)", "[c.__name__ for c in o.__mro__][1]",
)  # fmt: skip
BYTES_READ: Final = (
    "len(o)", "o[0]", "tuple(o)", "bytes(o)", "int.from_bytes(o, 'little')", "dict.fromkeys(o)", "str(o, 'ascii')",
    "sum(o)", "3 in o", "list(itertools.chain.from_iterable([o, o]))",
)  # fmt: skip
ARRAY_SET: Final = ("o[0] = 9", "o += 1", "o[:] = 9", "o.shape = (3, 1)", "o.flags.writeable = False", "o.fill(9)")
ARRAY_READ: Final = (
    "len(o)", "int(o.ravel()[0])", "3 in o", "o.shape", "int(o.sum())", "repr(o)", "o.tolist()", "o.flags.writeable",
    "(o == o2).tolist()", "[int(v) for v in o.ravel()]", "o.strides", "o.tobytes()", "dict.fromkeys(o.ravel())",
    "int.from_bytes(o, 'little')",
)  # fmt: skip
RECORDS: Final = [("a", "i4"), ("b", "f4")]
NEW_METHODS: Final = (
    "type(o).__len__ = lambda s: 77", "type(o).__getitem__ = lambda s, i: 77", "o.extra = 5",
    "type(o).__contains__ = lambda s, i: False", "type(o).__iter__ = lambda s: iter([4])",
)  # fmt: skip
DICT: Final = {"a": 1, "b": 2, "c": 3}


KINDS: Final[dict[str, Kind]] = {
    "object": Kind(of_class(Named, Replaced), ATTRIBUTES_SET + CLASSES_SET, ATTRIBUTES_READ + CLASSES_READ),
    "data set": Kind(of_class(Data, Replaced), ATTRIBUTES_SET + CLASSES_SET, CLASSES_READ + OF_DATA),
    "Module": Kind(of_class(InModule, ReplacedModule), ATTRIBUTES_SET + CLASSES_SET, ATTRIBUTES_READ + CLASSES_READ),
    "SimpleNamespace": Kind(
        lambda: {"o": types.SimpleNamespace(p=2.0, q=3)}, ("o.p = 5.0", "o.new = 1", "del o.q"), ATTRIBUTES_READ
    ),
    "threading.local": Kind(
        lambda: {"o": threading.local()}, ("o.p = 4", "o.q = 1"), ("hasattr(o, 'p')", "getattr(o, 'q', 0)"), True
    ),
    "layer": Kind(linear, LAYER_SET, LAYER_READ),
    "Sequential": Kind(sequential, LAYERS_SET, LAYERS_READ),
    "SGD": Kind(optimizer(optim.SGD), GROUPS_SET, GROUPS_READ),
    "Adam": Kind(optimizer(optim.Adam), GROUPS_SET, GROUPS_READ),
    "function": Kind(function, FUNCTION_SET, FUNCTION_READ),
    "partial": Kind(
        lambda: {"o": functools.partial(max, 3, default=1)},
        ("o.keywords['key'] = lambda v: -v", "o.new = 4", "o.__setstate__((min, (3,), {}, {}))"),
        ("o(5)", "hasattr(o, 'new')", "o.args", "o.func is max"),
    ),
    "module": Kind(module, MODULE_SET, MODULE_READ),
    "class": Kind(a_class, CLASS_SET, CLASS_READ),
    "list": Kind(twice(lambda: [1, 2, 3]), ROWS_SET + LISTS_SET, ROWS_READ),
    "deque": Kind(twice(lambda: collections.deque([1, 2, 3])), (*ROWS_SET, "o.rotate(1)", "o.clear()"), ROWS_READ),
    "UserList": Kind(twice(lambda: collections.UserList([1, 2, 3])), (*ROWS_SET, "o.data = [9]"), ROWS_READ),
    "inherited list": Kind(
        lambda: {"o": types.new_class("L", (Rows,))([1, 2, 3]), "o2": Rows([1, 2, 3])},
        ROWS_SET + LISTS_SET + NEW_METHODS,
        (*ROWS_READ, "o.extra"),
    ),
    "dict": Kind(twice(lambda: dict(DICT)), ENTRIES_SET, ENTRIES_READ),
    "OrderedDict": Kind(
        twice(lambda: collections.OrderedDict(DICT)), (*ENTRIES_SET, "o.move_to_end('a')"), ENTRIES_READ
    ),
    "defaultdict": Kind(
        twice(lambda: collections.defaultdict(int, DICT)),
        (*ENTRIES_SET, "o['q']", "o.default_factory = list"),
        (*ENTRIES_READ, "o.default_factory is int"),
    ),
    "Counter": Kind(
        twice(lambda: collections.Counter(DICT)),
        (*ENTRIES_SET, "o.subtract(a=1)"),
        (*ENTRIES_READ, "o.most_common(1)", "o['zz']", "sorted(o.elements())"),
    ),
    "inherited dict": Kind(
        lambda: {"o": types.new_class("D", (Entries,))(DICT), "o2": Entries(DICT)},
        (*ENTRIES_SET, *NEW_METHODS, "type(o).__missing__ = lambda s, k: 66", "type(o).get = lambda s, k: 77"),
        (*ENTRIES_READ, "o.extra", "o['nope']"),
    ),
    "UserDict": Kind(
        twice(lambda: collections.UserDict(DICT)),
        (*(c for c in ENTRIES_SET if "dict." not in c), "o.data = {}"),
        ENTRIES_READ,
    ),
    "ChainMap": Kind(
        chain, ("o['a'] = 9", "a['b'] = 9", "b['b'] = 9", "o.maps.append({'d': 4})", "o.maps = [{}]"), ENTRIES_READ
    ),
    "MappingProxyType": Kind(
        proxy, ("a['a'] = 9", "a['new'] = 1", "del a['a']", "a.clear()", "a.update(b=5)"), ENTRIES_READ, True
    ),
    "set": Kind(twice(lambda: {1, 2, 3}), SETS_SET, SETS_READ),
    "array": Kind(twice(lambda: array.array("i", [1, 2, 3])), ROWS_SET, ROWS_READ + BYTES_READ, True),
    "bytearray": Kind(twice(lambda: bytearray(b"\x01\x02\x03")), (*ROWS_SET, "o.clear()"), ROWS_READ + BYTES_READ),
    "memoryview": Kind(view, ("o[0] = 9", "b[0] = 9", "o.release()"), ROWS_READ + BYTES_READ, True),
    "NumPy array": Kind(twice(lambda: np.array([1, 2, 3])), ARRAY_SET, ARRAY_READ),
    "structured array": Kind(
        lambda: {"o": np.array([(1, 2.0), (3, 4.0)], dtype=RECORDS)},
        ("o['a'] = 9", "o['b'][0] = 9", "o[0] = (7, 8)", "o[0]['a'] = 9"),
        ("int(o['a'][0])", "o['a'].tolist()", "o.tolist()", "o[0].tolist()", "repr(o)", "int(o[0]['a'])"),
    ),
}


def drawn(name: str) -> list[tuple[str, str]]:
    table = list(itertools.product(KINDS[name].changes, KINDS[name].reads))
    return random.Random(name).sample(table, min(SHARE, len(table)))


def program(kind: Kind, change: str, read: str) -> Callable[[], Any]:
    source = f"def read(x):\n return x * 1.0, ({read})\ndef change():\n global o\n {change}\n"

    def make() -> Any:
        space: Space = {"np": np, "rn": rn, "nn": nn, "itertools": itertools, "types": types, "__name__": "worlds"}
        exec(HELPERS, space)
        space |= kind.make()
        exec(source, space)
        x = tensor(1.0, 2.0)

        def changed() -> None:
            try:
                space["change"]()
            except (TypeError, ValueError, KeyError, AttributeError, IndexError):
                pass  # in both worlds

        return space["read"], [call(x)] * 2 + [changed] + [call(x)] * 2

    return make


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # of NumPy from 2.5 on
def test_a_change_is_noticed(name: str) -> None:
    kind, native = KINDS[name], 0
    for change, read in drawn(name):
        make = program(kind, change, read)
        eager, _ = story(make, lambda f: f)
        compiled, target = story(make, rn.compile)
        assert [one.seen for one in compiled] == [one.seen for one in eager], f"{change}  |  {read}"
        native += target.statistics["traces"] > 0
    assert kind.eager or 2 * native > SHARE * 0.5
