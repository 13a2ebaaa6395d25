"""Cases: a function in a story, whose calls must look the same compiled and eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import runnel as rn
from tests.compile.worlds import Call, Look, Outcome, call, outcome, story, tensor, without_audits

__all__ = ["Call", "Case", "Cases", "Look", "Outcome", "call", "outcome", "story", "tensor", "without_audits"]


class Case(NamedTuple):
    make: Callable[[], Any]
    eager: str | None  # what the warning says, where calls run eagerly
    traces: int | None  # at most
    error: str | None  # what compiled calls raise

    def run(self) -> None:
        messages, is_recorded = self._compare()
        if is_recorded:  # else the programs are the same where nothing is
            with rn.no_grad():
                messages += self._compare()[0]
        if self.eager is None:
            assert not messages, messages
        else:
            assert any(self.eager in text for text in messages), messages or "nothing was said"

    def _compare(self) -> tuple[list[str], bool]:
        """What the compiled world says, and whether results of it can be differentiated."""
        plain, _ = story(self.make, lambda function: function)
        compiled, target = story(self.make, rn.compile)
        if self.error is not None:
            assert {one.seen[0][1][1] for one in compiled} == {("str", repr(self.error))}
            return [], False
        for number, (a, b) in enumerate(zip(plain, compiled, strict=True)):
            assert b.seen == a.seen, f"call {number}"
        executables = target.executables()
        if self.eager is None:
            reasons = [e.reason for e in executables if e.native is None]
            assert all("differentiated" in reason for reason in reasons), reasons
            most = len(plain) if self.traces is None else self.traces
            assert target.statistics["traces"] <= most, target.retraces
        told = [text for one in compiled for text in one.told]
        return told, any(e.captured is not None and e.captured.derivative is not None for e in executables)


class Cases(list[Any]):
    """The cases of one file."""

    def case(
        self,
        make: Any = None,
        *,
        eager: str | None = None,
        traces: int | None = None,
        error: str | None = None,
        missing: str = "",
    ) -> Any:
        """``missing``: what is not watched yet, so that the worlds differ."""

        def add(function: Any) -> Any:
            marks = [pytest.mark.xfail(strict=True, reason=missing)] if missing else []
            self.append(pytest.param(Case(function, eager, traces, error), id=function.__name__, marks=marks))
            return function

        return add if make is None else add(make)
