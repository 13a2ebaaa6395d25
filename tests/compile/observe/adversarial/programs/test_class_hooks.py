"""Metaclasses, descriptors, modules that are loaded again, keys of sorting."""

from __future__ import annotations

import builtins
import functools
import sys
import types

import pytest

from tests.compile.observe.adversarial.stories import Cases, story

CASES = Cases()
case, refused = CASES.add, CASES.refused


@case
def meta_call():
    class M(type):
        def __call__(cls, *a):
            cls.n = getattr(cls, "n", 0) + 1
            return super().__call__(*a)

    class K(metaclass=M):
        def __init__(s, v):
            s.v = v

    def f():
        return K(1).v, K.n

    return story(f, lambda: setattr(K, "n", 10), state=lambda: getattr(K, "n", 0))


@case
def meta_getitem_iter_len():
    class M(type):
        items = [1, 2]

        def __getitem__(c, i):
            return c.items[i]

        def __iter__(c):
            return iter(c.items)

        def __len__(c):
            return len(c.items)

        def __contains__(c, v):
            return v in c.items

        def __bool__(c):
            return len(c.items) > 1

    class K(metaclass=M):
        pass

    def f():
        return K[0], list(K), len(K), 5 in K, bool(K), 1 if K else 0

    return story(f, lambda: M.items.append(5), lambda: M.items.__delitem__(slice(1, None)))


@case
def descr_nondata_shadow():
    class D:
        def __get__(s, i, o):
            return k[0]

    k = [1]

    class K:
        d = D()

    o = K()

    def f():
        return o.d

    return story(f, lambda: k.__setitem__(0, 2), lambda: o.__dict__.__setitem__("d", 77), lambda: setattr(K, "d", 5))


@case
def descr_set_delete():
    log = []

    class D:
        def __get__(s, i, o):
            return i.__dict__.get("_d", 0)

        def __set__(s, i, v):
            i.__dict__["_d"] = v
            log.append(v)

        def __delete__(s, i):
            i.__dict__.pop("_d", None)
            log.append("del")

    class K:
        d = D()

    o = K()

    def f():
        o.d += 1
        r = o.d
        if r > 2:
            del o.d
        return r

    return story(f, lambda: setattr(o, "d", 10), state=lambda: (list(log), dict(vars(o))))


@case
def module_reload():
    m = types.ModuleType("made_module")
    exec("def g(): return 1\nK=5", m.__dict__)
    sys.modules["made_module"] = m

    def f():
        import made_module

        return made_module.g(), made_module.K

    def reload():
        exec("def g(): return 2\nK=6", m.__dict__)

    def repl():
        n = types.ModuleType("made_module")
        exec("def g(): return 3\nK=7", n.__dict__)
        sys.modules["made_module"] = n

    return story(f, reload, repl)


@case
def from_import_inside():
    m = types.ModuleType("second_module")
    m.K = 1
    sys.modules["second_module"] = m

    def f():
        from second_module import K

        return K

    return story(f, lambda: setattr(m, "K", 3), lambda: sys.modules.pop("second_module", None))


@case
def import_fail_caught():
    def f():
        try:
            import absent_module

            return absent_module.K
        except ImportError:
            return None

    def add():
        m = types.ModuleType("absent_module")
        m.K = 1
        sys.modules["absent_module"] = m

    return (lambda r: (sys.modules.pop("absent_module", None), r)[1])(story(f, add))


@case
def monkey_global_fn():
    g = {"__builtins__": builtins}
    exec("def h(x): return x+1\ndef f(): return h(1)", g)
    return story(
        g["f"], lambda: g.__setitem__("h", lambda x: x * 10), lambda: g.__setitem__("h", max.__call__ if 0 else abs)
    )


@case
def monkey_method_instance():
    class K:
        def m(s):
            return 1

    k = K()

    def f():
        return k.m()

    return story(
        f,
        lambda: setattr(k, "m", lambda: 2),
        lambda: delattr(k, "m"),
        lambda: setattr(K, "m", staticmethod(lambda: 3)),
        lambda: setattr(K, "m", classmethod(lambda c: c.__name__)),
    )


@case
def sort_key():
    L = [3, 1, 2]
    sign = [1]

    def f():
        return (
            sorted(L, key=lambda x: x * sign[0]),
            min(L, key=lambda x: -x * sign[0]),
            max(L, key=lambda x: x % 3, default=0),
        )

    return story(f, lambda: sign.__setitem__(0, -1), lambda: L.append(9))


@case
def sort_key_method_obj():
    class K:
        def __init__(s, n):
            s.n = n

        def key(s):
            return s.n * w[0]

        def __lt__(s, o):
            return s.n < o.n

        def __repr__(s):
            return f"K{s.n}"

    w = [1]
    L = [K(2), K(1)]

    def f():
        return [k.n for k in sorted(L, key=K.key)], min(L).n, [k.n for k in sorted(L, reverse=True)]

    return story(
        f,
        lambda: w.__setitem__(0, -1),
        lambda: setattr(L[0], "n", 0),
        lambda: setattr(K, "__lt__", lambda s, o: s.n > o.n),
    )


@case
def cmp_to_key():
    L = [1, 3, 2]
    d = [1]

    def f():
        return sorted(L, key=functools.cmp_to_key(lambda a, b: d[0] * (a - b)))

    return story(f, lambda: d.__setitem__(0, -1))


@pytest.mark.parametrize("name", CASES.names())
def test_as_python(name: str) -> None:
    CASES.check(name)
