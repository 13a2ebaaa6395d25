"""Functions of the standard library, printing, warnings and logging."""

from __future__ import annotations

import contextvars
import copy
import datetime
import functools
import io
import json
import logging
import math
import operator
import os
import re
import string
import warnings

import pytest

from tests.compile.observe.adversarial.stories import CALL, Box, Cases, around

CASES = Cases()
case, refused = CASES.add, CASES.refused


@case
def lru_cache():
    box = Box(k=1)

    @functools.lru_cache
    def g(x):
        return x + box.k

    return around(lambda: g(1), lambda: setattr(box, "k", 5), g.cache_clear, lambda: g(2))


@case
def single_dispatch_like():
    box = Box(v=1)
    table = {int: lambda x: "int", str: lambda x: "str"}
    return around(
        lambda: table[type(box.v)](box.v), lambda: setattr(box, "v", "x"), lambda: table.update({str: lambda x: "text"})
    )


@case
def regular_expressions():
    box = Box(p=re.compile("a+"), s="caat")
    return around(
        lambda: (box.p.search(box.s).group(), re.sub("a", "b", box.s), re.findall(r"\w", box.s)),
        lambda: setattr(box, "s", "aaa"),
        lambda: setattr(box, "p", re.compile(".")),
    )


@case
def json_text():
    table = {"a": [1, None], "b": {"c": 2.5}}
    return around(
        lambda: (json.dumps(table), json.loads(json.dumps(table))["a"]),
        lambda: table["a"].append(5),
        lambda: table["b"].update(c=1),
    )


@case
def copies():
    box = Box(x=[1, {"k": 2}], y=Box(z=1))
    return around(
        lambda: (copy.copy(box).x is box.x, copy.deepcopy(box).y.z, copy.copy(box.x), copy.deepcopy(box.x)),
        lambda: setattr(box.y, "z", 5),
        lambda: box.x[1].update(k=3),
    )


@case
def templates():
    table = {"x": 1}
    return around(
        lambda: (
            string.Template("$x").substitute(table),
            "%(x)s" % table,
            "{x}".format(**table),
            "{x}".format_map(table),
        ),
        lambda: table.update(x=2),
    )


@case
def math_functions():
    box = Box(x=2.0, xs=[1.0, 2.0])
    return around(
        lambda: (math.sqrt(box.x), math.fsum(box.xs), math.floor(box.x), divmod(box.x, 1)),
        lambda: setattr(box, "x", 9.0),
        lambda: box.xs.append(5.0),
    )


@case
def dates():
    box = Box(d=datetime.date(2020, 1, 2))
    return around(
        lambda: (box.d.year, box.d + datetime.timedelta(days=1), box.d < datetime.date(2021, 1, 1), box.d.isoformat()),
        lambda: setattr(box, "d", datetime.date(2022, 5, 6)),
    )


@case
def environment():
    os.environ.pop("RUNNEL_TEST_ABSENT", None)
    return around(
        lambda: (
            os.environ.get("RUNNEL_TEST_ABSENT"),
            "RUNNEL_TEST_ABSENT" in os.environ,
            os.getenv("RUNNEL_TEST_ABSENT", "d"),
        ),
        lambda: os.environ.update(RUNNEL_TEST_ABSENT="1"),
        lambda: os.environ.pop("RUNNEL_TEST_ABSENT"),
    )


@case
def context_variables():
    variable = contextvars.ContextVar("v")

    def f():
        return variable.get(None), variable.get(7)

    return around(f, lambda: variable.set(3), lambda: variable.set(None))


@case
def string_methods():
    box = Box(s="a,b", parts=["x", "y"])
    return around(
        lambda: (box.s.split(","), "-".join(box.parts), box.s.replace("a", "z"), box.s[0], box.s * 2, "a" in box.s),
        lambda: setattr(box, "s", "q"),
        lambda: box.parts.append("w"),
    )


@case
def cwd():
    return around(lambda: os.getcwd() == "/", lambda: None)


@case
def partial_objects():
    box = Box(k=1)

    def g(a, b, c=3):
        return a, b, c, box.k

    p = functools.partial(g, 1, c=5)
    return around(
        lambda: (p(2), functools.partial(p, 7)(), p.func is g, p.args),
        lambda: setattr(box, "k", 9),
        lambda: p.keywords.update(c=0),
    )


@case
def views():
    table = {"a": 1, "b": 2}

    def f():
        return (
            list(table.keys()),
            sum(table.values()),
            sorted(table.items()),
            table.keys() & {"a"},
            len(table.items()),
            "a" in table.keys(),
        )

    return around(f, lambda: table.update(c=3), lambda: table.pop("a"))


@case
def sorting_objects():
    items = [Box(k=2, n="a"), Box(k=1, n="b")]
    return around(
        lambda: ([b.n for b in sorted(items, key=lambda b: b.k)], min(items, key=operator.attrgetter("k")).n),
        lambda: setattr(items[0], "k", 0),
        lambda: items.append(Box(k=-1, n="c")),
    )


@case
def type_hints_ignored():
    box = Box(x=1)

    def f():
        y: int = box.x
        z: "list[int]" = [y]
        return z

    return around(f, lambda: setattr(box, "x", 2))


@case
def printing():
    out = io.StringIO()
    box = Box(x=1)

    def f():
        print("x is", box.x, [box.x], sep="-", file=out)

    return around(f, lambda: setattr(box, "x", 2), state=out.getvalue)


@case
def warning_each_call():
    box = Box(x=1)

    def f():
        warnings.warn(f"x is {box.x}", UserWarning, stacklevel=1)
        return box.x

    caught = warnings.catch_warnings(record=True)
    observed = caught.__enter__()
    warnings.simplefilter("always")
    steps = [CALL, CALL, lambda: setattr(box, "x", 2), CALL, CALL, lambda: caught.__exit__(None, None, None)]
    return f, steps, lambda: [str(w.message) for w in observed or ()]


@case
def logging_each_call():
    records: list[str] = []
    logger = logging.Logger("observed")

    class Keep(logging.Handler):
        def emit(self, record):
            records.append(record.getMessage())

    logger.addHandler(Keep())
    box = Box(x=1)

    def f():
        logger.info("x is %s", box.x)
        logger.warning("and %d", 2)

    return around(f, lambda: setattr(box, "x", 2), lambda: logger.setLevel(logging.ERROR), state=lambda: records)


@pytest.mark.parametrize("name", CASES.names())
def test_as_python(name: str) -> None:
    CASES.check(name)
