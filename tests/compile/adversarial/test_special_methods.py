"""Special methods of users' classes that are C functions, or come later; methods of containers that fail.

Each object is looked at warm, changed, and looked at again, beside the plain function in an equal world.
"""

from __future__ import annotations

import bisect
import collections
import functools
import heapq
import operator
from collections.abc import Callable
from typing import Any

import pytest

from tests.compile.observe.observed import check

CALL: Any = ((), {})
Make = Callable[[], Any]
Use = Callable[[Any], Any]


def story(make: Make, use: Use, *changes: Use) -> Any:
    def world() -> Any:
        reference = make()
        steps = [CALL, CALL]
        for change in changes:
            steps += [functools.partial(change, reference), CALL, CALL]
        return (lambda: use(reference)), steps

    return world


def entered(x: Any) -> Any:
    with x as inside:
        return inside, len(x)


CONTAINERS: dict[str, tuple[type, Any, Use]] = {
    "list": (list, [1, 2], lambda x: list.append(x, 3)),
    "dict": (dict, {1: 1, 2: 2}, lambda x: dict.__setitem__(x, 3, 3)),
    "set": (set, {1, 2}, lambda x: set.add(x, 3)),
    "deque": (collections.deque, [1, 2], lambda x: collections.deque.append(x, 3)),
    "OrderedDict": (collections.OrderedDict, {1: 1, 2: 2}, lambda x: collections.OrderedDict.__setitem__(x, 3, 3)),
    "Counter": (collections.Counter, [1, 1], lambda x: x.update([3])),
    "defaultdict": (functools.partial(collections.defaultdict, int), {1: 1}, lambda x: dict.__setitem__(x, 3, 3)),  # type: ignore[dict-item]
}

# What a class statement writes, from the functions of the container, and how the object is used.
WRITTEN: dict[str, tuple[Callable[[type], dict[str, Any]], Use]] = {
    "its_contains": (lambda base: {"__contains__": base.__contains__}, lambda x: (3 in x, 1 in x)),
    "contains_in_python": (lambda base: {"__contains__": lambda self, v: len(self) == v}, lambda x: (3 in x, 2 in x)),
    "its_len": (lambda base: {"__len__": base.__len__}, lambda x: (len(x), bool(x), 1 if x else 0)),
    "bool_from_len": (lambda base: {"__bool__": lambda self: base.__len__(self) > 2}, lambda x: 1 if x else 2),
    "bool_that_is_none": (lambda base: {"__bool__": base.__len__}, lambda x: 1 if x else 2),
    "its_iter": (lambda base: {"__iter__": base.__iter__}, lambda x: ([y for y in x], (*x,), sum(x))),
    "its_eq": (lambda base: {"__eq__": base.__eq__, "__hash__": None}, lambda x: (x == [1, 2], x != x)),
    "eq_from_contains": (lambda base: {"__eq__": base.__contains__, "__hash__": None}, lambda x: x == 3),
    "call": (lambda base: {"__call__": base.__len__}, lambda x: x()),
    "getattr": (lambda base: {"__getattr__": base.__contains__}, lambda x: x.something),
    "neg": (lambda base: {"__neg__": base.__len__}, lambda x: -x),
    "index": (lambda base: {"__index__": base.__len__}, lambda x: ([10, 20, 30, 40][x], range(9)[x])),
    "int": (lambda base: {"__int__": base.__len__}, int),
    "hash": (lambda base: {"__hash__": base.__len__}, hash),
    "str": (lambda base: {"__str__": base.__repr__}, lambda x: str(x) + f"{x}"),
    "enter": (lambda base: {"__enter__": base.__len__, "__exit__": lambda self, *_: None}, entered),
    "getitem": (lambda base: {"__getitem__": base.__contains__}, lambda x: x[3]),
    "matmul": (lambda base: {"__matmul__": base.__contains__}, lambda x: x @ 3),
    "property": (lambda base: {"size": property(base.__len__)}, lambda x: x.size),
    "of_another_class": (lambda base: {"__matmul__": lambda self, v: frozenset.__len__(self)}, lambda x: x @ 3),
}


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("container", [name for name in CONTAINERS if name != "defaultdict"])
def test_c_functions_of_containers(container: str, written: str) -> None:
    base, content, change = CONTAINERS[container]
    space, use = WRITTEN[written]
    check(story(lambda: type("Own", (base,), space(base))(content), use, change))


LATER: dict[str, tuple[Use, Use]] = {
    "iter": (
        lambda x: (list(x), sorted(x), max(x), [y for y in x]),
        lambda x: setattr(type(x), "__iter__", lambda self: iter([7])),
    ),
    "bool": (lambda x: (1 if x else 0, bool(x), not x), lambda x: setattr(type(x), "__bool__", lambda self: False)),
    "eq": (lambda x: x == [1, 2], lambda x: setattr(type(x), "__eq__", lambda self, other: True)),
    "call": (callable, lambda x: setattr(type(x), "__call__", lambda self: 3)),
    "len": (lambda x: (len(x), bool(x)), lambda x: setattr(type(x), "__len__", lambda self: 9)),
    "contains": (lambda x: 3 in x, lambda x: setattr(type(x), "__contains__", lambda self, v: True)),
}


@pytest.mark.parametrize("later", LATER)
@pytest.mark.parametrize("container", ["list", "dict", "set", "deque"])
def test_methods_that_come_later(container: str, later: str) -> None:
    base, content, change = CONTAINERS[container]
    use, give = LATER[later]
    check(story(lambda: type("Own", (base,), {})(content), use, change, give))


def of_a_table(**names: Callable[[Any], Any]) -> Make:
    """An object of a class whose special methods are bound to a dict."""

    def make() -> Any:
        table = {1: 1}
        one = type("Over", (), {name: of(table) for name, of in names.items()})()
        one.table = table
        return one

    return make


BOUND: dict[str, tuple[Make, Use, str | None]] = {
    "contains": (of_a_table(__contains__=lambda d: d.__contains__), lambda x: (1 in x, 4 in x), None),
    "len": (of_a_table(__len__=lambda d: d.__len__), lambda x: (len(x), bool(x), 1 if x else 0), None),
    "iter": (of_a_table(__iter__=lambda d: d.__iter__), lambda x: ([y for y in x], list(x), sum(x), (*x,)), None),
    "getitem": (of_a_table(__getitem__=lambda d: d.__getitem__), lambda x: x[1], None),
    "call": (of_a_table(__call__=lambda d: d.get), lambda x: (x(1), x(4), callable(x)), None),
    "setitem": (of_a_table(__setitem__=lambda d: d.__setitem__), lambda x: (x.__setitem__(5, 1), dict(x.table)), None),
    "hash": (of_a_table(__hash__=lambda d: d.__len__), hash, None),
    "int": (of_a_table(__int__=lambda d: d.__len__), int, None),
    "enter": (
        of_a_table(__enter__=lambda d: d.__len__, __exit__=lambda d: lambda *_: d.setdefault(9), __len__=lambda d: d.__len__),
        entered,
        None,
    ),
    "index_in_c": (of_a_table(__index__=lambda d: d.__len__), lambda x: range(9)[x], "is called by C code"),
    "hash_in_c": (of_a_table(__hash__=lambda d: d.__len__), lambda x: {x: 1}[x], "is called by C code"),
    "eq_in_c": (of_a_table(__eq__=lambda d: d.__contains__), lambda x: [x] == [4], "is called by C code"),
}  # fmt: skip


@pytest.mark.parametrize("name", BOUND)
def test_functions_that_are_bound_elsewhere(name: str) -> None:
    make, use, refused = BOUND[name]
    check(story(make, use, lambda x: x.table.__setitem__(4, 3)), refused)


class Copies(list[int]):
    __enter__ = list.copy

    def __exit__(self, *_: Any) -> None:
        self.append(len(self))


class Drains(collections.deque[int]):
    __enter__ = collections.deque.popleft
    __exit__ = collections.deque.extend


class Wrong(list[int]):
    __bool__ = list.__len__  # type: ignore[assignment]


class Negative(list[int]):
    def __len__(self) -> int:
        return -1  # noqa: PLE0303


OWN: dict[str, tuple[Make, Use, Use]] = {
    "enter_copies": (lambda: Copies([1]), entered, lambda x: list.append(x, 3)),
    "enter_drains": (lambda: Drains([1, 2]), lambda x: (entered(x)[0], list(x)), lambda x: x.append(3)),
    "bool_that_gives_a_number": (lambda: Wrong([1]), lambda x: 1 if x else 2, lambda x: x.append(3)),
    "negative_length": (lambda: Negative([1]), lambda x: 1 if x else 2, lambda x: x.append(3)),
    "missing_of_an_inherited_defaultdict": (
        lambda: type("Own", (collections.defaultdict,), {"__missing__": lambda self, key: key * 2})(int),
        lambda x: (x[3], len(x)),
        lambda x: dict.__setitem__(x, 3, 9),
    ),
    "counter": (
        lambda: collections.Counter("ab"),
        lambda x: (x.update("abc"), x.subtract("a"), x["z"], x.most_common(2), x.total(), sorted((+x).items())),
        lambda x: x.update("zz"),
    ),
    "chain_map": (
        lambda: type("Own", (collections.ChainMap,), {})({1: 1}, {2: 2}),
        lambda x: (len(x), 3 in x, list(x), bool(x), x == {1: 1}, x.setdefault(9, len(x))),
        lambda x: x.__setitem__(3, 3),
    ),
    "user_dict": (
        lambda: type("Own", (collections.UserDict,), {})({1: 1}),
        lambda x: (len(x), 3 in x, list(x), bool(x), x == {1: 1}, x.setdefault(9, len(x))),
        lambda x: x.__setitem__(3, 3),
    ),
    "user_list": (
        lambda: type("Own", (collections.UserList,), {})([1]),
        lambda x: (len(x), 3 in x, list(x), bool(x), x == [1], x.append(len(x))),
        lambda x: x.append(3),
    ),
}


@pytest.mark.parametrize("name", OWN)
def test_own_containers(name: str) -> None:
    make, use, change = OWN[name]
    check(story(make, use, change))


def caught(use: Use) -> Use:
    def caught_one(x: Any) -> Any:
        try:
            result = use(x)
        except Exception as problem:
            result = type(problem).__name__, str(problem)
        return result, dict(x) if isinstance(x, dict) else list(x)

    return caught_one


FAILING: dict[type, dict[str, tuple[Any, Use, Use]]] = {
    list: {
        "remove": ([1], lambda x: x.remove(9), lambda x: x.append(9)),
        "append_of_two": ([1], lambda x: x.append(1, 2), lambda x: x.append(9)),
        "pop_of_nothing": ([], lambda x: x.pop(), lambda x: x.append(9)),
        "pop_beyond": ([1], lambda x: x.pop(5), lambda x: x.extend([9] * 5)),
        "set_beyond": ([1], lambda x: operator.setitem(x, 5, 1), lambda x: x.extend([9] * 5)),
        "delete_beyond": ([1], lambda x: operator.delitem(x, 5), lambda x: x.extend([9] * 5)),
        "extend_by_a_number": ([1], lambda x: x.extend(3), lambda x: x.append(9)),
        "a_slice_of_another_length": ([1, 2], lambda x: operator.setitem(x, slice(None, None, 2), [1, 2, 3]), lambda x: x.append(9)),
        "heappop": ([], lambda x: heapq.heappop(x), lambda x: x.append(9)),
        "heappush": (["a"], lambda x: heapq.heappush(x, 1), lambda x: (x.clear(), x.append(9))),
        "insort": (["a"], lambda x: bisect.insort(x, 1), lambda x: (x.clear(), x.append(9))),
        "len_of_two": ([1], lambda x: x.__len__(1), lambda x: x.append(9)),
        "get_of_a_dict": ([1], lambda x: dict.get(x, 1), lambda x: x.append(9)),
        "next": ([1], lambda x: next(x), lambda x: x.append(9)),
        "unpacking": ([1], lambda x: (lambda a, b: a)(*x), lambda x: x.append(9)),
    },
    dict: {
        "pop": ({1: 1}, lambda x: x.pop(9), lambda x: x.update({9: 9})),
        "delete": ({1: 1}, lambda x: operator.delitem(x, 9), lambda x: x.update({9: 9})),
        "set_by_a_list": ({1: 1}, lambda x: operator.setitem(x, [], 9), lambda x: x.update({9: 9})),
        "get_by_name": ({1: 1}, lambda x: x.get(1, default=2), lambda x: x.update({9: 9})),
        "get_of_three": ({1: 1}, lambda x: x.get(1, 2, 3), lambda x: x.update({9: 9})),
        "setdefault_of_three": ({1: 1}, lambda x: x.setdefault(7, 2, 3), lambda x: x.update({9: 9})),
        "popitem": ({}, lambda x: x.popitem(), lambda x: x.update({9: 9})),
        "update_by_half": ({1: 1}, lambda x: x.update([(4, 4), ([], 1)]), lambda x: x.update({9: 9})),
        "names_that_are_none": ({1: 1}, lambda x: (lambda **k: k)(**x), lambda x: x.update({"a": 9})),
    },
    set: {
        "remove": ({1}, lambda x: x.remove(9), lambda x: x.add(9)),
        "pop": (set(), lambda x: x.pop(), lambda x: x.add(9)),
        "update_by_half": ({1}, lambda x: x.update([3, []]), lambda x: x.add(9)),
        "or_a_list": ({1}, lambda x: operator.ior(x, [3]), lambda x: x.add(9)),
    },
    collections.deque: {
        "popleft": ([], lambda x: x.popleft(), lambda x: x.append(9)),
        "remove": ([1], lambda x: x.remove(9), lambda x: x.append(9)),
    },
}  # fmt: skip
PARTIAL = {"heappush", "insort", "update_by_half"}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, cases in FAILING.items() for name in cases])
def test_methods_that_fail(kind: type, name: str) -> None:
    """What failed is not repeated, and what it leaves half done is refused."""
    content, use, change = FAILING[kind][name]
    check(story(lambda: kind(content), caught(use), change), "fails, perhaps after" if name in PARTIAL else None)
