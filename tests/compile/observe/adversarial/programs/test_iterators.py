"""Generators, itertools, and views of containers."""

from __future__ import annotations

import itertools
import operator
import types

import pytest

from tests.compile.observe.adversarial.stories import Cases, story

CASES = Cases()
case, refused = CASES.add, CASES.refused


@case
def gen_send():
    w = {"k": 1}

    def f():
        def g():
            total = 0
            while True:
                got = yield total
                if got is None:
                    return total
                total += got * w["k"]

        it = g()
        next(it)
        it.send(2)
        it.send(3)
        try:
            it.send(None)
        except StopIteration as e:
            return e.value

    return story(f, lambda: w.update(k=5))


@case
def gen_close_finally():
    log = []
    n = [3]

    def f():
        def g():
            try:
                for i in range(10):
                    yield i
            finally:
                log.append(n[0])

        out = []
        it = g()
        for x in it:
            if x >= n[0]:
                break
            out.append(x)
        it.close()
        return out

    return story(f, lambda: n.__setitem__(0, 5), state=lambda: list(log))


@case
def gen_throw():
    d = {"a": 1}

    def f():
        def g():
            try:
                yield 1
            except ValueError as e:
                yield d["a"] + len(str(e))

        it = g()
        next(it)
        return it.throw(ValueError("abc"))

    return story(f, lambda: d.update(a=7))


@case
def gen_delegate_return():
    L = [1, 2, 3]

    def f():
        def inner():
            r = 0
            for x in L:
                r += x
                yield x
            return r

        def outer():
            r = yield from inner()
            yield r * 10

        return list(outer())

    return story(f, lambda: L.append(4), lambda: L.__setitem__(0, 9))


@case
def gen_expr_closure_late():
    k = [1]

    def f():
        g = (x * k[0] for x in (1, 2, 3))
        k2 = k[0]
        return sum(g) + k2

    return story(f, lambda: k.__setitem__(0, 4))


@case
def it_chain_islice():
    a = [1, 2]
    b = (3, 4)
    w = types.SimpleNamespace(a=a, b=b, n=3)

    def f():
        return list(itertools.islice(itertools.chain(w.a, w.b), w.n))

    return story(f, lambda: a.append(9), lambda: setattr(w, "n", 4), lambda: setattr(w, "b", (7, 8)))


@case
def it_groupby():
    L = ["a", "ab", "b"]

    def f():
        return [(k, list(g)) for k, g in itertools.groupby(L, key=lambda x: x[0])]

    return story(f, lambda: L.append("c"), lambda: L.insert(0, "b"))


@case
def it_accumulate():
    L = [1, 2, 3]
    op = [operator.add]

    def f():
        return list(itertools.accumulate(L, op[0]))

    return story(f, lambda: L.append(5), lambda: op.__setitem__(0, operator.mul))


@case
def it_product_cycle():
    L = [1, 2]

    def f():
        c = itertools.cycle(L)
        return [next(c) for _ in range(5)], list(itertools.product(L, repeat=2)), list(itertools.combinations(L, 2))

    return story(f, lambda: L.append(3))


@case
def it_takewhile_dropwhile():
    L = [1, 2, 5, 1]
    t = [3]

    def f():
        return list(itertools.takewhile(lambda x: x < t[0], L)), list(itertools.dropwhile(lambda x: x < t[0], L))

    return story(f, lambda: t.__setitem__(0, 6), lambda: L.insert(0, 4))


@case
def it_zip_longest_fill():
    a = [1, 2, 3]
    b = [4]
    fv = [0]

    def f():
        return list(itertools.zip_longest(a, b, fillvalue=fv[0]))

    return story(f, lambda: b.append(2), lambda: fv.__setitem__(0, -1))


@case
def it_tee():
    L = [1, 2]

    def f():
        a, b = itertools.tee(L)
        next(a)
        return list(a), list(b)

    return story(f, lambda: L.append(3))


@case
def it_pairwise_batched():
    L = [1, 2, 3]

    def f():
        return (
            list(itertools.pairwise(L)),
            list(itertools.compress(L, [1, 0, 1])),
            list(itertools.filterfalse(lambda x: x % 2, L)),
            list(itertools.starmap(pow, [(x, 2) for x in L])),
        )

    return story(f, lambda: L.append(4))


@refused("'z' is an iterator made outside, which the function advances")
def zip_outside():
    a = [1, 2, 3]
    z = zip(a, a)

    def f():
        return next(z, None)

    return story(f)


@case
def reversed_inside():
    a = [1, 2, 3]
    d = {1: 2, 3: 4}

    def f():
        return list(reversed(a)), list(reversed(d)), [*reversed(range(len(a)))]

    return story(f, lambda: a.append(7), lambda: d.update({9: 9}))


@case
def dict_views_outside():
    d = {1: 2}
    k = d.keys()
    v = d.values()
    it = d.items()

    def f():
        return list(k), list(v), 3 in k

    return story(f, lambda: d.update({3: 4}))


@case
def walrus_comp():
    L = [1, 2, 3]
    lim = [2]

    def f():
        return [y for x in L if (y := x * 2) > lim[0]], y if False else 0

    return story(f, lambda: lim.__setitem__(0, 4))


@case
def walrus_while():
    L = [3, 2, 1]
    i = [0]

    def f():
        n = 0
        j = 0
        while (v := L[j]) > i[0]:
            n += v
            j += 1
        return n

    return story(lambda: f() if i[0] > 0 else 0, lambda: i.__setitem__(0, 1), lambda: i.__setitem__(0, 2))


@pytest.mark.parametrize("name", CASES.names())
def test_as_python(name: str) -> None:
    CASES.check(name)
