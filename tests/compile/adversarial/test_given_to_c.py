"""Objects given to C code: what their methods hand to it, which of their methods it calls, and methods that come later.

Each row is one use, looked at warm in two equal worlds and again after each change.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story

MANY: Final = 100  # traces: changed methods are another function each time

ARRAY: Final = """
class Held:
    def __init__(self):
        self.a = np.ones(3, np.float32)
    def __array__(self, dtype=None, copy=None):
        return self.a
_q = Held()
"""
ARRAY_CHANGES: Final = ["_q.a[0] = 5", "_q.a = np.zeros(3, np.float32)", "_q.a[1] = 7"]
ARRAY_USES: Final = {
    "asarray": "x + rn.asarray(_q)",
    "sum": "x * np.sum(_q)",
    "add": "x * (np.ones(3) + _q).sum()",
    "concatenate": "x * np.concatenate([_q, _q]).sum()",
    "list": "rn.asarray([_q, _q])",
    "array": "x + rn.asarray(np.array(_q))",
}
ROWS: Final = """
class Held:
    def __init__(self):
        self.rows = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, i):
        return self.rows[i]
_q = Held()
"""
ROW_CHANGES: Final = ["_q.rows[0][0] = 5", "_q.rows.append([1.0, 1.0, 1.0])", "_q.rows[1] = [7.0, 8.0, 9.0]"]
ROW_USES: Final = {
    "asarray": "x + rn.asarray(_q)",
    "numpy": "x * np.sum(_q)",
    "array": "x + rn.asarray(np.array(_q))",
    "mean": "x * np.mean(_q)",
}

LIST: Final = """
class Q(list):
    pass
_q = Q([1.0, 2.0, 3.0])
"""
LIST_CHANGES: Final = [
    "Q.__len__ = lambda self: 2",
    "Q.__iter__ = lambda self: iter([9.0, 8.0])",
    "Q.__getitem__ = lambda self, i: 7.0",
    "Q.__add__ = lambda self, other: 'added'",
    "Q.__length_hint__ = lambda self: 50",
    "del Q.__len__",
    "Q.__iter__ = None",
    "del Q.__iter__",
]
LIST_USES: Final = {
    "tensor": "x * rn.asarray(_q).sum()",
    "numpy": "np.asarray(_q).shape",
    "mean": "np.mean(_q)",
    "add_in_place": "operator.iadd([], _q)",
    "slice": "(lambda a: (a.__setitem__(slice(0, 1), _q), a))([0])",
    "json": "json.dumps(_q)",
    "nested": "rn.asarray([_q, _q]).shape",
    "hint": "operator.length_hint(_q)",
    "concat": "operator.concat(_q, _q)",
    "extend": "(lambda a: (a.extend(_q), a))([])",
    "sorted": "sorted(_q)",
    "spread": "[*_q]",
    "length": "len(_q), bool(_q)",
}

DICT: Final = """
class Q(dict):
    pass
_q = Q(a=1.0, b=2.0)
"""
ITEMS_OF_ITS_OWN: Final = """
class Q(dict):
    def __getitem__(self, key):
        return 50.0
    def keys(self):
        return ['a']
    def items(self):
        return [('z', 3.0)]
_q = Q(a=1.0, b=2.0)
"""
ORDERED: Final = """
class Q(collections.OrderedDict):
    pass
_q = Q(a=1.0, b=2.0)
_q.move_to_end('a')
"""
DICT_CHANGES: Final = [
    "_q['c'] = 3.0",
    "Q.__len__ = lambda self: 9",
    "Q.__getitem__ = lambda self, key: 7.0",
    "Q.keys = lambda self: ['b']",
    "Q.__iter__ = lambda self: iter(['a'])",
    "Q.items = lambda self: [('i', 1)]",
    "Q.__or__ = Q.__ror__ = lambda self, other: {'or': 1}",
    "del Q.keys, Q.__iter__",
    "Q.__missing__ = lambda self, key: 'missing'; _q.pop('b', None)",
]
DICT_USES: Final = {
    "dict": "dict(_q)",
    "spread": "{**_q}",
    "update": "(lambda d: (d.update(_q), d))({})",
    "call": "(lambda **named: named)(**_q)",
    "or": "{'w': 1} | _q",
    "or_in_place": "operator.ior({'w': 1}, _q)",
    "copy": "dict(_q.copy())",
    "percent": "'%(a)s' % _q",
    "format": "'{a}'.format(**_q)",
    "defaultdict": "dict(collections.defaultdict(int, _q))",
    "ordered": "list(collections.OrderedDict(_q))",
    "json": "json.dumps(_q)",
    "namespace": "vars(types.SimpleNamespace(**_q))",
    "partial": "functools.partial(dict, **_q)()",
    "proxy": "dict(types.MappingProxyType(_q))",
    "setdefault": "_q.setdefault('a', 5)",
    "list": "list(_q), tuple(_q)",
    "extend": "(lambda a: (a.extend(_q), a))([])",
}

TUPLE: Final = """
class Q(tuple):
    def __getitem__(self, i):
        return tuple.__getitem__(self, i) * self.k
    k = 2.0
_q = Q([1.0, 2.0, 3.0])
"""
REVERSED: Final = {"reversed": "list(reversed(_q))"}
REVERSED_CHANGES: Final = ["Q.k = 3.0", "Q.__reversed__ = lambda self: iter('r')", "Q.__reversed__ = None"]

SET: Final = """
class Q(set):
    pass
_q = Q([1, 2])
"""
DEQUE: Final = """
class Q(collections.deque):
    pass
_q = Q([1, 2, 3])
"""
MEMBERS_CHANGES: Final = [
    "Q.__iter__ = lambda self: iter([9, 8])",
    "Q.__len__ = lambda self: 1",
    "Q.__contains__ = lambda self, value: True",
    "Q.__eq__ = lambda self, other: True; Q.__hash__ = lambda self: 1",
    "Q.__or__ = Q.__ror__ = lambda self, other: 'or'",
    "Q.__iter__ = None",
    "Q.__contains__ = None; Q.__eq__ = None",
]
SET_USES: Final = {
    "union": "sorted({5}.union(_q))",
    "frozenset": "sorted(frozenset(_q))",
    "set": "sorted(set(_q))",
    "update": "(lambda s: (s.update(_q), sorted(s)))(set())",
    "difference": "{1, 9}.difference(_q)",
    "sorted": "sorted(_q)",
    "or": "{7} | _q",
    "equal": "_q == {1, 2}",
    "member": "1 in _q",
}
DEQUE_USES: Final = {
    "index": "_q.index(2)",
    "count": "_q.count(2)",
    "list": "list(_q)",
    "sorted": "sorted(_q)",
    "member": "1 in _q",
    "array": "np.asarray(_q).tolist()",
}

NUMBER: Final = """
class Q(int):
    pass
_q = Q(3)
"""
NUMBER_CHANGES: Final = [
    "Q.__index__ = lambda self: 2",
    "Q.__int__ = lambda self: 1",
    "Q.__float__ = lambda self: 2.5",
    "Q.__bool__ = lambda self: False",
    "Q.__mul__ = Q.__rmul__ = lambda self, other: 7",
    "Q.__str__ = lambda self: 'S'",
    "Q.__add__ = None",
]
NUMBER_USES: Final = {
    "float": "float(_q)",
    "int": "int(_q)",
    "item": "[1, 2, 3, 4, 5][_q]",
    "truth": "1 if _q else 2",
    "times": "2 * _q, _q * 2",
    "tensor": "x * _q",
    "full": "rn.full((2,), _q)",
    "zeros": "rn.zeros(_q)",
    "text": "f'{_q}', '%s' % _q, '%d' % _q",
    "add": "_q + 1, sum([_q, 1])",
    "range": "list(range(_q))",
}

TEXT: Final = """
class Q(str):
    pass
_q = Q('abc')
"""
TEXT_CHANGES: Final = ["Q.__contains__ = lambda self, part: True", "Q.__len__ = lambda self: 1"]
TEXT_USES: Final = {"length": "len(_q)", "member": "'z' in _q", "part": "_q in 'zabc'", "start": "_q.startswith('a')"}

BARE: Final = """
class Q:
    def __repr__(self):
        return 'Q'
_q = Q()
"""
BARE_CHANGES: Final = [
    "Q.__len__ = lambda self: 2",
    "Q.__getitem__ = lambda self, i: [5, 6][i]",
    "Q.__index__ = lambda self: 1",
    "Q.__eq__ = lambda self, other: 'equal'",
    "Q.__hash__ = lambda self: 1",
    "Q.__lt__ = lambda self, other: 'less'",
    "Q.__add__ = Q.__radd__ = lambda self, other: self",
    "Q.__divmod__ = lambda self, other: 'd'",
    "Q.__str__ = lambda self: 'S'",
    "Q.__bytes__ = lambda self: b'b'; Q.__complex__ = lambda self: 1j",
    "Q.__array__ = lambda self, dtype=None, copy=None: np.ones(3, np.float32)",
    "Q.__bool__ = None",
    "Q.__eq__ = None; Q.__add__ = None",
    "Q.__iter__ = None; Q.__len__ = None",
]
BARE_USES: Final = {
    "list": "list(_q)",
    "spread": "[*_q]",
    "index": "[1, 2][_q]",
    "reversed": "list(reversed(_q))",
    "divmod": "divmod(_q, 2)",
    "sum": "type(sum([_q, _q]))",
    "max": "max([_q, _q]) is _q",
    "sorted": "len(sorted([_q, _q]))",
    "find": "[1, _q].index(_q)",
    "member": "_q in [1, 2]",
    "key": "{1: 2}.get(_q)",
    "text": "'%s' % _q",
    "bytes": "bytes(_q)",
    "complex": "complex(_q)",
    "range": "list(range(_q))",
    "tensor": "rn.asarray(_q)",
    "equal": "_q == 1",
    "differs": "_q != 1",
    "truth": "1 if _q else 2",
    "add": "type(1 + _q), type(_q + 1)",
}

TABLES: Final = {
    "array": (ARRAY, ARRAY_USES, ARRAY_CHANGES),
    "rows": (ROWS, ROW_USES, ROW_CHANGES),
    "list": (LIST, LIST_USES, LIST_CHANGES),
    "dict": (DICT, DICT_USES, DICT_CHANGES),
    "own_items": (ITEMS_OF_ITS_OWN, DICT_USES, DICT_CHANGES),
    "ordered": (ORDERED, DICT_USES, ["_q.move_to_end('b')", *DICT_CHANGES]),
    "tuple": (TUPLE, REVERSED, REVERSED_CHANGES),
    "set": (SET, SET_USES, MEMBERS_CHANGES),
    "deque": (DEQUE, DEQUE_USES, MEMBERS_CHANGES),
    "number": (NUMBER, NUMBER_USES, NUMBER_CHANGES),
    "text": (TEXT, TEXT_USES, TEXT_CHANGES),
    "bare": (BARE, BARE_USES, BARE_CHANGES),
}
STEP: Final = """
import json
def step(x):
    try:
        return x * 2, {use}
    except (TypeError, AttributeError, KeyError) as problem:
        return x, type(problem).__name__
"""


@pytest.mark.parametrize(("table", "use"), [(name, use) for name, row in TABLES.items() for use in row[1]])
def test_what_c_code_finds_of_an_object(table: str, use: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world, uses, changes = TABLES[table]
    Story(world + STEP.format(use=uses[use]), changes, "", MANY).run(monkeypatch)


@pytest.mark.parametrize("table", ["array", "rows", "list"])
def test_such_functions_run_as_programs(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world, uses, changes = TABLES[table]
    step = Story(world + STEP.format(use=next(iter(uses.values()))), changes[:1], None, 3).run(monkeypatch)
    assert step.statistics["traces"] == 2


CALLED: Final = {
    "default": "json.dumps([_q], default=lambda value: value.k)",
    "object_hook": "json.loads('[{}]', object_hook=lambda _: _q.k)",
    "encoder": "json.dumps([_q], cls=Encoder)",
    "repl": "re.sub(pattern='a', repl=lambda _: str(_q.k), string='aba')",
    "text": "re.sub('a', Text('b'), 'a')",
}
CALLED_WORLD: Final = """
import json
class Q:
    k = 1
_q = Q()
class Encoder(json.JSONEncoder):
    def default(self, value):
        return value.k + 1
class Text(str):
    def __getitem__(self, i):
        return 'z'
def step(x):
    return x * 2, {use}
"""


@pytest.mark.parametrize("use", CALLED)
def test_functions_of_the_library_call_what_they_are_given(use: str, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = ["_q.k = 2", "Q.k = 3; del _q.k", "Encoder.default = lambda self, value: 9"]
    Story(CALLED_WORLD.replace("{use}", CALLED[use]), changes, "", MANY).run(monkeypatch)
