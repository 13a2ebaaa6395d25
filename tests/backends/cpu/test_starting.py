"""Starts: built-in functions that write addresses into the table of base pointers and run a program at once."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runnel.backends.cpu import driver, launch
from runnel.backends.cpu.launch import Launch
from runnel.backends.host import calls as host
from runnel.backends.host.layout import LATER

# *bases[2] = *bases[1] + i0
INCREASED = """
define void @increased(ptr %thread, ptr %args, i64 %i0, i64 %i1, i64 %j0, i64 %j1) {
  %bases = load ptr, ptr %thread
  %in.at = getelementptr ptr, ptr %bases, i64 1
  %in = load ptr, ptr %in.at
  %out.at = getelementptr ptr, ptr %bases, i64 2
  %out = load ptr, ptr %out.at
  %x = load i64, ptr %in
  %y = add i64 %x, %i0
  store i64 %y, ptr %out
  ret void
}"""


class Increase:
    """A program that writes its input, increased by 5, to its output."""

    def __init__(self, short: bool = True, threads: int = 1) -> None:
        (kernel,) = driver.host_compiler().addresses([("increased", INCREASED)], {})
        self.records = np.zeros((2, 8), np.int64)
        self.records[0, :3] = kernel, 0, 5
        self.bases = np.zeros(3, np.int64)
        rows = [self.records, *(np.zeros((1, 8), np.int64) for _ in range(threads - 1))]
        self.launch = Launch(rows, self.address(self.bases), short=short, keep=kernel)
        self.start: Callable[..., int] = self.launch.starter([1, 2])
        self.input, self.output = np.array([37]), np.zeros(1, np.int64)
        self.addresses = self.address(self.input), self.address(self.output)

    @staticmethod
    def address(array: np.ndarray[Any, Any]) -> int:
        result: int = array.__array_interface__["data"][0]
        return result


def test_a_start_runs_at_once_on_the_thread_that_ran_last() -> None:
    program = Increase()
    assert program.start(*program.addresses) == LATER and program.output[0] == 0
    assert program.launch.run() == 0 and program.output[0] == 42
    other = np.zeros(1, np.int64)
    assert program.start(program.addresses[0], program.address(other)) == 0 and other[0] == 42
    program.records[0, 2] = 6
    assert program.start(*program.addresses) == 0 and program.output[0] == 43


@pytest.mark.parametrize(("short", "threads"), [(False, 1), (True, 2)])
def test_longer_programs_are_run_later(short: bool, threads: int) -> None:
    program = Increase(short, threads)
    for _ in range(2):
        program.output[0] = 0
        assert program.start(*program.addresses) == LATER and program.output[0] == 0
        assert program.launch.run() == 0 and program.output[0] == 42


def test_another_thread_runs_later_and_then_at_once() -> None:
    program = Increase()
    program.launch.run() if program.start(*program.addresses) else None
    statuses: list[int] = []

    def elsewhere() -> None:
        statuses.append(program.start(*program.addresses))
        statuses.append(program.launch.run())
        statuses.append(program.start(*program.addresses))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert statuses == [LATER, 0, 0]
    assert program.start(*program.addresses) == LATER


def test_a_start_inside_a_function_of_the_host_is_run_later() -> None:
    """There, ``run`` looks for locks that the calling program holds."""
    program = Increase()
    program.launch.run() if program.start(*program.addresses) else None
    host.INSIDE.append(0)
    try:
        assert program.start(*program.addresses) == LATER
    finally:
        host.INSIDE.remove(0)
    assert program.start(*program.addresses) == 0


def test_a_status_is_that_of_the_run() -> None:
    program = Increase()
    program.launch.run() if program.start(*program.addresses) else None
    program.launch.cancel()
    assert program.start(*program.addresses) == -1
    assert program.start(*program.addresses) == 0


def test_wrong_arguments_are_errors_and_run_nothing() -> None:
    program = Increase()
    program.launch.run() if program.start(*program.addresses) else None
    program.output[0] = 0
    for arguments in ((), program.addresses[:1], (*program.addresses, 1), ("a", "b"), (program.addresses[0], 1.5)):
        with pytest.raises(TypeError):
            program.start(*arguments)
    assert program.output[0] == 0
    assert program.start(*program.addresses) == 0 and program.output[0] == 42


def test_threads_that_come_first_at_once_keep_what_their_starts_refer_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first starts of a process, made by several threads: each may make a method."""
    launch._method.cache_clear()
    waiting = threading.Barrier(4)
    compiler = driver.host_compiler()

    class Slow:
        def addresses(self, *args: Any) -> Any:
            waiting.wait(10)
            return compiler.addresses(*args)

    programs = [Increase() for _ in range(4)]
    monkeypatch.setattr(launch.driver, "host_compiler", Slow)
    launch._method.cache_clear()
    methods: list[int] = []
    threads = [threading.Thread(target=lambda: methods.append(id(launch._method()))) for _ in programs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = {id(method) for method in launch._NEVER_FREED}
    assert len(methods) == 4 and kept.issuperset(methods)
