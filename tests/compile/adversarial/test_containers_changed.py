"""Containers from outside that a function changes and reads: each way to change one beside each way to read it."""

from __future__ import annotations

import itertools
import random
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any, Final, NamedTuple

import pytest

from runnel import nn
from tests.compile.adversarial.worlds import Case, call, tensor


class Table(nn.Module):
    """A Module whose ``__dict__`` is the container."""

    def __init__(self) -> None:
        self.a, self.b, self.c = 1, 2.5, 3


class Plain:
    def __init__(self) -> None:
        self.a, self.b, self.c = 1, 2.5, 3


OF_DICTS: Final = (
    "d['a'] += 1",
    "d['a'] = d['b']",
    "d |= {'a': d['a'] + 1}",
    "d.update(a=d['a'] + 1, z=1)",
    "d.update({k: v + 1 for k, v in d.items()})",
    "d.popitem(); d['q'] = d.get('q', 0) + 1",
    "d.pop('a', None); d['a'] = len(d)",
    "d.setdefault('w', 0); d['w'] += 1",
    "del d['b']; d['b'] = d['a'] * 2; d['a'] += 1",
    "d.clear(); d.update(a=2, b=3, c=4)",
    "d['n%d' % (len(d) % 5)] = 1; d['a'] += 1",
)
READ_OF_DICTS: Final = (
    "d['a']",
    "d.get('a', 0)",
    "sum(d.values())",
    "len(d)",
    "list(d.values())[0]",
    "next(iter(d.values()))",
    "('w' in d) + d['a']",
    "max(d.items())[1]",
    "sum(v for k, v in d.items() if k < 'c')",
    "(lambda **k: k.get('a', 0))(**d)",
    "{**d}['a']",
    "dict(d)['a']",
    "d[next(reversed(d))]",
    "(d['a'] if d else 0)",
    "len(d | {'x': 1})",
    "(d == {'a': 2, 'b': 2.5, 'c': 3})",
)
OF_LISTS: Final = (
    "d.append(len(d))",
    "d[0] += 1",
    "d.insert(0, 2); d.pop()",
    "d.reverse()",
    "d.remove(d[0]); d.append(4)",
    "d += [1]",
    "d.extend([d[0]])",
    "d.clear(); d.extend([1, 2, 3])",
    "d[-1] = d[0]",
)
OF_LISTS_ALONE: Final = (
    "d[:] = [v + 1 for v in d]",
    "d.sort()",
    "d.pop(0); d.append(d[-1] + 1)",
    "d *= 2; d[3:] = []",
    "del d[1]; d.append(2)",
)
OF_DEQUES_ALONE: Final = ("d.appendleft(2); d.pop()", "d.rotate(1)", "d.popleft(); d.append(d[-1] + 1)")
OF_BYTES: Final = (
    *(change.replace("+= [1]", "+= b'a'") for change in OF_LISTS),
    "d[:] = bytes(v + 1 for v in d)",
    "d.pop(0); d.append(d[-1] + 1)",
    "d[:1] = b'xy'; del d[1]",
    "del d[1]; d.append(2)",
)
READ_OF_LISTS: Final = (
    "d[0]",
    "d[-1]",
    "sum(d)",
    "len(d)",
    "max(d)",
    "list(d)[1]",
    "d[len(d) - 1]",
    "d.index(d[0])",
    "d.count(2)",
    "next(iter(d))",
    "sorted(d)[0]",
    "sum(i * v for i, v in enumerate(d))",
    "(2 in d) + 1",
    "[*d][0]",
    "(lambda *a: a[0])(*d)",
)
OF_SETS: Final = (
    "d.add(len(d))",
    "d.discard(1); d.add(max(d) + 1)",
    "d |= {7}",
    "d ^= {1, 9}",
    "d.clear(); d.update([1, 2])",
    "d -= {2}; d.add(2)",
)
READ_OF_SETS: Final = ("sum(d)", "len(d)", "max(d)", "(1 in d) + 1", "len(d | {100})", "sorted(d)[0]")


class Kind(NamedTuple):
    make: Any
    changes: tuple[str, ...]
    reads: tuple[str, ...]
    outside: str  # a change between calls


ITEMS: Final = {"a": 1, "b": 2.5, "c": 3}
GROWN: Final = "d['a'] = d.get('a', 0) + 10"
KINDS: Final = {
    "dict": Kind(lambda: (dict(ITEMS), None), OF_DICTS, READ_OF_DICTS, GROWN),
    "OrderedDict": Kind(lambda: (OrderedDict(ITEMS), None), OF_DICTS, READ_OF_DICTS, GROWN),
    "defaultdict": Kind(lambda: (defaultdict(int, ITEMS), None), OF_DICTS, READ_OF_DICTS, GROWN),
    "Counter": Kind(lambda: (Counter(a=1, b=2, c=3), None), OF_DICTS, READ_OF_DICTS, GROWN),
    "__dict__ of a Module": Kind(lambda: ((m := Table()).__dict__, m), OF_DICTS, READ_OF_DICTS, GROWN),
    "__dict__ of an object": Kind(lambda: ((m := Plain()).__dict__, m), OF_DICTS, READ_OF_DICTS, GROWN),
    "list": Kind(lambda: ([3, 1.5, 2], None), OF_LISTS + OF_LISTS_ALONE, READ_OF_LISTS, "d[0] += 10"),
    "deque": Kind(lambda: (deque([3, 1.5, 2]), None), OF_LISTS + OF_DEQUES_ALONE, READ_OF_LISTS, "d[0] += 10"),
    "bytearray": Kind(
        lambda: (bytearray(b"abc"), None),
        OF_BYTES,
        (*READ_OF_LISTS, "bytes(d)[0]", "int(d[:2].hex(), 16)"),
        "d[0] += 10",
    ),
    "set": Kind(lambda: ({1, 2, 5}, None), OF_SETS, READ_OF_SETS, "d.add(50)"),
}
FORMS: Final = (
    "out = x * ({read}); {change}; return out",
    "{change}; return x * ({read})",
    "out = x * ({read}); {change}; return out + ({read})",
)
SHARE: Final = 16  # programs of each kind


def seen(container: Any) -> str:
    return repr(sorted(container) if type(container) is set else container)


def drawn(name: str) -> list[tuple[str, str, str]]:
    kind = KINDS[name]
    return random.Random(name).sample(list(itertools.product(FORMS, kind.changes, kind.reads)), SHARE)


@pytest.mark.parametrize(
    ("name", "form", "change", "read"), [(name, *program) for name in KINDS for program in drawn(name)]
)
def test_a_changed_container_is_read_as_in_eager(name: str, form: str, change: str, read: str) -> None:
    body = form.format(change=change, read=read).replace("; ", "\n  ")
    source = f"def outer(d):\n def inner(x):\n  nonlocal d\n  {body}\n return inner\n"

    def make() -> Any:
        container, owner = KINDS[name].make()
        space: dict[str, Any] = {}
        exec(compile(source, "<program>", "exec"), space)
        x = tensor(1.0, 2.0, 3.0)

        def between() -> None:
            exec(KINDS[name].outside, {"d": container})

        return space["outer"](container), [call(x)] * 3 + [between] + [call(x)] * 2, lambda: (seen(container), owner)

    Case(make, None, None, None).run()
