"""An object of the library is replaced by another one of its class: whatever code in C holds is no constant."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story

# What is done with ``v``, what it is at first, and what later.
ROWS: Final = (
    ("x[v]", "slice(0, 2)", "slice(1, 2)"),
    ("x * len([5, 6, 7][v])", "slice(None, 2)", "slice(None, 1)"),
    ("x * sum(v)", "range(3)", "range(4)"),
    ("x * v.stop", "range(3)", "range(4)"),
    ("x * v({'a': 2.0, 'b': 3.0})", "operator.itemgetter('a')", "operator.itemgetter('b')"),
    ("x * v({'a': 2.0, 'b': 3.0})[0]", "operator.itemgetter('a', 'b')", "operator.itemgetter('b', 'a')"),
    ("x * v(o)", "operator.attrgetter('a')", "operator.attrgetter('b')"),
    ("x * v('abc')", "operator.methodcaller('index', 'b')", "operator.methodcaller('index', 'c')"),
    ("x * v('abc')", "operator.methodcaller('count', 'b')", "operator.methodcaller('index', 'c')"),
    ("x * list(map(v, [o]))[0]", "operator.attrgetter('a')", "operator.attrgetter('b')"),
    ("sorted([(1, 5), (2, 4)], key=v), x", "operator.itemgetter(0)", "operator.itemgetter(1)"),
    ("x * v(3)", "functools.partial(pow, 2)", "functools.partial(pow, 3)"),
    ("x * v(3)", "functools.partial(int.__mul__, 2)", "functools.partial(int.__add__, 2)"),
    ("x * v.maxlen", "collections.deque([1], maxlen=2)", "collections.deque([1], maxlen=3)"),
    ("(v.append(2.0), x * len(v))", "collections.deque([1.0], maxlen=2)", "collections.deque([1.0], maxlen=1)"),
    ("(v.append(2.0), x * sum(v))", "collections.deque([1.0], maxlen=None)", "collections.deque([1.0], maxlen=1)"),
    ("(v.extend([2.0]), x * v[0])", "collections.deque([1.0], 2)", "collections.deque([1.0], 1)"),
    ("x * len(v.copy() * 3)", "collections.deque([1.0], 2)", "collections.deque([1.0], 1)"),
    ("x * v['new']", "collections.defaultdict(float)", "collections.defaultdict(int, a=1)"),
    ("x * v['new']", "collections.defaultdict(lambda: 2.0)", "collections.defaultdict(lambda: 3.0)"),
    ("v.default_factory.__name__, x", "collections.defaultdict(float)", "collections.defaultdict(int)"),
    ("x * len(v.findall('aab'))", "re.compile('a')", "re.compile('b')"),
    ("v.pattern, v.flags, x", "re.compile('a')", "re.compile('a', re.I)"),
    ("x * v.group(0).count('a')", "re.match('a*', 'aa')", "re.match('a*', 'aaa')"),
    ("x * v.month", "datetime.date(2020, 1, 2)", "datetime.date(2020, 3, 2)"),
    ("x * v.total_seconds()", "datetime.timedelta(seconds=3)", "datetime.timedelta(seconds=4)"),
    ("str(v), x", "datetime.timezone.utc", "datetime.timezone(datetime.timedelta(hours=1))"),
    ("x * float(v)", "fractions.Fraction(1, 2)", "fractions.Fraction(1, 4)"),
    ("x * v.numerator", "fractions.Fraction(1, 2)", "fractions.Fraction(3, 4)"),
    ("x * float(v)", "decimal.Decimal('1.5')", "decimal.Decimal('2.5')"),
    ("x * v.real", "1.5 + 2j", "2.5 + 2j"),
    ("x * v[0]", "b'ab'", "b'bb'"),
    ("x * v[0]", "bytearray(b'ab')", "bytearray(b'bb')"),
    ("x * v[0]", "memoryview(b'ab')", "memoryview(b'bb')"),
    ("x * v[0]", "array.array('d', [1.5])", "array.array('d', [2.5])"),
    ("x * v.size", "struct.Struct('d')", "struct.Struct('dd')"),
    ("str(v.int)[:3], x", "uuid.UUID(int=1000)", "uuid.UUID(int=2000)"),
    ("v.name, v.parent, v / 'a', x", "pathlib.Path('/a/b')", "pathlib.Path('/a/c')"),
    ("x * v.packed[3]", "ipaddress.ip_address('1.2.3.4')", "ipaddress.ip_address('1.2.3.5')"),
    ("x * v.mean", "statistics.NormalDist(1.0, 2.0)", "statistics.NormalDist(3.0, 2.0)"),
    ("x * v.rate", "argparse.Namespace(rate=2.0)", "argparse.Namespace(rate=3.0)"),
    ("x * float(v['a']['k'])", "config('2')", "config('3')"),
    ("x * len(v.substitute(a=1))", "string.Template('$a')", "string.Template('$a$a')"),
    ("len(v.wrap('a b c d')), x", "textwrap.TextWrapper(width=3)", "textwrap.TextWrapper(width=30)"),
    ("x.astype(v)", "np.dtype('float32')", "np.dtype('float64')"),
    ("x.astype(v)", "rn.float32", "rn.float64"),
    ("x * v.itemsize", "np.dtype('float32')", "np.dtype('float64')"),
    ("x * v", "np.float32(2.0)", "np.float32(3.0)"),
    ("x * (2.0 if v > 2 else 1.0)", "np.int64(2)", "np.int64(3)"),
    ("x * v(2.0)", "np.poly1d([1.0, 2.0])", "np.poly1d([1.0, 5.0])"),
    ("x * v(np.ones(2)).sum()", "np.vectorize(lambda t: t * 2)", "np.vectorize(lambda t: t * 3)"),
    ("v(x)", "np.negative", "np.square"),
    ("x * v(o)", "type(o).area.fget", "type(o).other.fget"),
    ("x * v.fget(o)", "type(o).area", "type(o).other"),
    ("x * v.__func__(2)", "staticmethod(lambda t: t)", "staticmethod(lambda t: t * 2)"),
    ("x * v.__func__(2)", "classmethod(lambda t: t)", "classmethod(lambda t: t * 2)"),
    ("str(v), v.__args__, x", "list[int]", "list[float]"),
    ("isinstance(1.0, v), x", "int | str", "int | float"),
    ("x * v().a", "weakref.ref(o)", "weakref.ref(p)"),
    ("x * v['a']", "types.MappingProxyType({'a': 2.0})", "types.MappingProxyType({'a': 3.0})"),
    ("x * v['a']", "collections.ChainMap({'a': 2.0})", "collections.ChainMap({}, {'a': 3.0})"),
    ("x * v['a'] + len(v)", "collections.Counter('a')", "collections.Counter('aab')"),
    ("x * list(v.values())[0]", "collections.OrderedDict(a=1, b=2)", "collections.OrderedDict(b=2, a=1)"),
    ("v == {'a': 1, 'b': 2}, list(v), x", "{'a': 1, 'b': 2}", "{'b': 2, 'a': 1}"),
    ("sorted([2, 1, 3], key=v), x", "functools.cmp_to_key(lambda a, b: a - b)", "functools.cmp_to_key(lambda a, b: b - a)"),
    ("x * v(3)", "functools.lru_cache(lambda n: n)", "functools.lru_cache(lambda n: n * 2)"),
    ("x * v(3)", "functools.singledispatch(lambda n: n)", "functools.singledispatch(lambda n: n * 2)"),
    ("x * v.a", "types.SimpleNamespace(a=1.0)", "types.SimpleNamespace(a=2.0)"),
    ("v.name, v.level, x", "logging.Logger('a', 10)", "logging.Logger('b', 20)"),
    ("str(v), x", "inspect.signature(lambda a: a)", "inspect.signature(lambda b: b)"),
    ("x * v.get('k')", "contextvars.ContextVar('k', default=2.0)", "contextvars.ContextVar('k', default=3.0)"),
    ("x * v.get()", "contextvars.ContextVar('k', default=2.0)", "contextvars.ContextVar('k', default=3.0)"),
    ("x * v.a", "local(a=2.0)", "local(a=3.0)"),
    ("x * (2 if v.is_set() else 3)", "threading.Event()", "event_set()"),
    ("x * v()", "(2.5).__float__", "(3.5).__float__"),
    ("x * v('b')", "'abc'.index", "'cab'.index"),
    ("x * v()", "[1, 2].__len__", "[1, 2, 3].__len__"),
    ("x * v.value", "ctypes.c_double(1.5)", "ctypes.c_double(2.5)"),
    ("x * v.co_argcount", "(lambda a: a).__code__", "(lambda a, b: a).__code__"),
    ("x * v.cell_contents", "cell(2.0)", "cell(3.0)"),
    ("x * len(v)", "{1: 1}.keys()", "{1: 1, 2: 2}.keys()"),
    ("str(v), len(v.args), x", "ValueError('a')", "ValueError('b', 'c')"),
    ("x * len(v.__doc__)", "types.ModuleType('m', 'doc')", "types.ModuleType('m', 'docs')"),
    ("x * v[0].a", "[o]", "[p]"),
    ("v in (1, 1.0, True), type(v), x", "1", "True"),
    ("x * v, repr(v)", "0.0", "-0.0"),
    ("v != v, x", "1.0", "float('nan')"),
    ("x * v", "2 ** 40", "2.0 ** 40"),
    ("x * len(v)", "frozenset({1})", "frozenset({1, 2})"),
    ("x * v.step", "types.SimpleNamespace(step=slice(0, 1, 2).step)", "types.SimpleNamespace(step=3)"),
)  # fmt: skip
_WORLD: Final = """
import argparse, array, configparser, contextvars, ctypes, datetime, decimal, fractions, inspect, ipaddress, pathlib
import statistics, struct, textwrap, threading, uuid
class O:
    def __init__(self, a, b): self.a, self.b = a, b
    area = property(lambda self: self.a * 10)
    other = property(lambda self: self.a * 20)
o, p = O(2.0, 3.0), O(4.0, 5.0)
def config(k):
    c = configparser.ConfigParser()
    c.read_dict({{'a': {{'k': k}}}})
    return c
def local(a):
    l = threading.local()
    l.a = a
    return l
def event_set():
    e = threading.Event()
    e.set()
    return e
def cell(k): return (lambda: k).__closure__[0]
v, seen = {0}, []
def step(x): return {1}
def state(): return ()
"""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1]}")
def test_another_object_of_its_class(row: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    done, first, later = row
    story = Story(_WORLD.format(first, done), [f"v = {later}", f"v = {first}"], "", 9)
    story.run(monkeypatch)
