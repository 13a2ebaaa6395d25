"""Functions that ask who is who, and in which order arguments come."""

from __future__ import annotations

import weakref

import pytest

from tests.compile.observe.adversarial.stories import Box, Cases, around

CASES = Cases()
case, refused = CASES.add, CASES.refused


@case
def same_arguments():
    a, b = [1], [1]

    def f(x, y):
        return x is y, x == y

    return f, [((a, b), {}), ((a, a), {}), ((a, b), {}), ((b, b), {}), ((a, b), {})]


@case
def changed_alias():
    a, b = [1], [1]

    def f(x, y):
        x.append(2)
        return len(y)

    return f, [((a, b), {}), ((a, a), {}), ((a, b), {}), ((b, b), {})], lambda: (a, b)


@case
def alias_in_attributes():
    shared = Box(x=1)
    box = Box(a=shared, b=Box(x=1))

    def f():
        box.a.x += 1
        return box.b.x

    return around(f, lambda: setattr(box, "b", box.a), lambda: setattr(box, "b", Box(x=7)), state=lambda: box)


@case
def alias_through_dicts():
    one, two = {"n": 1}, {"n": 1}
    table = {"a": one, "b": two}

    def f():
        table["a"]["n"] = 5
        return table["b"]["n"]

    return around(f, lambda: table.update(b=one), lambda: table.update(b={"n": 2}), state=lambda: table)


@case
def sentinel():
    missing = object()
    box = Box(x=missing)

    def f(default=missing):
        return box.x is missing, default is box.x

    return around(f, lambda: setattr(box, "x", object()), lambda: setattr(box, "x", missing))


@case
def is_class():
    class A:
        pass

    class B(A):
        pass

    box = Box(x=A())
    return around(
        lambda: (type(box.x) is A, isinstance(box.x, A)), lambda: setattr(box, "x", B()), lambda: setattr(box, "x", 3)
    )


@case
def function_identity():
    def g():
        return 1

    box = Box(f=g, g=g)
    return around(lambda: box.f is box.g, lambda: setattr(box, "g", lambda: 1))


@case
def address():
    a = Box()
    box = Box(a=a)
    known = id(a)
    return around(lambda: id(box.a) == known, lambda: setattr(box, "a", Box()))


@case
def identity_keys():
    a, b = Box(), Box()
    table, box = {a: 1, b: 2}, Box(k=a)
    return around(lambda: table[box.k], lambda: setattr(box, "k", b), lambda: table.update({b: 5}))


@case
def identity_members():
    a, b = Box(), Box()
    members, box = {a}, Box(k=a)
    return around(lambda: (box.k in members, len(members)), lambda: setattr(box, "k", b), lambda: members.add(b))


@case
def object_in_list():
    a, b = Box(), Box()
    items, box = [a], Box(k=a)
    return around(lambda: (box.k in items, items.count(box.k)), lambda: setattr(box, "k", b), lambda: items.append(b))


@case
def keyword_order():
    def f(**kw):
        return list(kw), [k + str(v) for k, v in kw.items()]

    return f, [((), {"a": 1, "b": 2}), ((), {"b": 2, "a": 1}), ((), {"a": 1, "b": 2}), ((), {"a": 1})]


@case
def positional_or_keyword():
    def f(a, b=2, *rest, c=3, **kw):
        return a, b, rest, c, kw

    return f, [
        ((1,), {}),
        ((), {"a": 1}),
        ((1, 2), {}),
        ((1, 2, 3), {}),
        ((1,), {"c": 4}),
        ((1,), {"d": 5}),
        ((True,), {}),
    ]


@case
def argument_kinds():
    def f(x):
        return type(x).__name__, x

    values = (
        1,
        True,
        1.0,
        1 + 0j,
        "1",
        b"1",
        None,
        (1,),
        [1],
        {"a": 1},
        {1},
        frozenset({1}),
        range(1),
        0.0,
        -0.0,
        float("nan"),
    )
    return f, [((v,), {}) for v in values for _ in range(2)]


@case
def same_object_changed():
    items = [1, [2]]

    def f(x):
        return x[1][0], len(x)

    return around(f, lambda: items[1].__setitem__(0, 5), lambda: items.append(1), args=(items,))


@case
def weak_dead():
    box = Box(target=Box(x=1))
    reference = weakref.ref(box.target)
    return around(lambda: reference() is None, lambda: setattr(box, "target", None))


@case
def none_becomes_object():
    box = Box(norm=None)
    return around(
        lambda: 1 if box.norm is None else 2, lambda: setattr(box, "norm", [1]), lambda: setattr(box, "norm", False)
    )


@case
def type_changed():
    class A:
        x = 1

    class B:
        x = 2

    a = A()
    return around(lambda: a.x, lambda: setattr(a, "__class__", B))


@case
def bases_changed():
    class A:
        x = 1

    class B:
        x = 2

    class C(A):
        pass

    c = C()
    return around(lambda: c.x, lambda: setattr(C, "__bases__", (B,)))


@pytest.mark.parametrize("name", CASES.names())
def test_as_python(name: str) -> None:
    CASES.check(name)
