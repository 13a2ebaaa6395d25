"""What cannot be seen, or not be done again: refused with its reason."""

from __future__ import annotations

import datetime
import os
import random
import sys
import threading
import time

import pytest

from tests.compile.observe.adversarial.stories import Box, Cases, around

CASES = Cases()
case, refused = CASES.add, CASES.refused


@refused("a clock is read")
def clock():
    return around(lambda: time.perf_counter() > 0)


@refused("a clock is read")
def wall_clock():
    return around(lambda: time.time() > 0)


@refused("a clock is read")
def now():
    return around(lambda: datetime.datetime.now().year)


@refused("random numbers are drawn")
def random_number():
    return around(lambda: random.random())


@refused("random numbers are drawn")
def random_choice():
    return around(lambda: random.choice([1, 2]))


@refused("random numbers are drawn")
def own_generator():
    r = random.Random(1)
    return around(lambda: r.random())


@refused("a file is read")
def file_read():
    return around(lambda: open("/dev/null").close())


@refused("the file system is asked")
def file_exists():
    return around(lambda: os.path.exists("/nowhere"))


@refused("an iterator made outside")
def outside_iterator():
    it = iter([1, 2, 3])
    return around(lambda: next(it))


@refused("an iterator made outside")
def outside_generator():
    g = (x for x in range(9))
    return around(lambda: [x for _, x in zip(range(2), g)])


@refused("globals()")
def all_globals():
    return around(lambda: globals()["Box"])


@refused("runs a text")
def evaluated():
    return around(lambda: eval("1 + 1"))


@refused("shows its address")
def default_text():
    box = Box()
    return around(lambda: str(box))


@refused("differs from run to run")
def address_of_own():
    return around(lambda: id([]) % 2)


@refused("depends on how they were made")
def equal_numbers():
    box = Box(a=10**9, b=10**9)
    return around(lambda: box.a is box.b)


@refused("a lock is taken")
def lock():
    reference = threading.Lock()

    def f():
        with reference:
            return 1

    return around(f)


@refused("asynchronous")
def coroutine():
    async def g():
        return 1

    return around(lambda: g().close())


@case
def closure_returned():
    return around(lambda: lambda: 1)


@refused("leaves it")
def generator_returned():
    def g():
        yield 1

    return around(lambda: g())


@refused("leaves it")
def class_returned():
    def f():
        class A:
            pass

        return A

    return around(f)


@refused("cannot be watched")
def thread_started():
    return around(lambda: threading.Thread(target=print).start())


@refused("__del__")
def finalizer():
    class A:
        def __del__(self):
            pass

    return around(lambda: A() is None)


@refused("cannot be watched")
def thread_local():
    local = threading.local()
    local.x = 1
    return around(lambda: local.x)


@refused("nobody knows")
def frame():

    return around(lambda: sys._getframe().f_lineno)


@refused("a clock is read")
def caught_refusal():
    def f():
        try:
            return time.time()
        except BaseException:
            return 0

    return around(f)


@pytest.mark.parametrize("name", CASES.names())
def test_as_python(name: str) -> None:
    CASES.check(name)
