"""Two equal worlds, in one of which a function is compiled: each call and each change between must look the same.

A case makes a function, the steps of its story (calls, and functions that change the world), and what else of the world
is compared. Audits are off: what a guard misses is to be seen.
"""

from __future__ import annotations

import contextlib
import io
import logging
import random
import warnings
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import pytest

import runnel as rn
from runnel.compile.executable import Executable
from runnel.compile.wrappers import Wrapper
from runnel.core import switches
from runnel.core.errors import CaptureWarning
from runnel.tensor.variable import Variable


class Call(NamedTuple):
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def call(*args: Any, **kwargs: Any) -> Call:
    return Call(args, kwargs)


def tensor(*values: float) -> rn.Tensor:
    return rn.asarray(np.array(values, np.float32))


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


class Outcome(NamedTuple):
    seen: Any
    told: list[str]


def story(make: Callable[[], Any], run: Callable[[Any], Any]) -> tuple[list[Outcome], Any]:
    """The outcomes of all calls, and what was called."""
    rn.manual_seed(7)
    random.seed(7)
    np.random.seed(7)
    is_plain = run is not rn.compile
    with switches.override(eager=is_plain), without_audits():
        function, steps, *rest = make()
        state = rest[0] if rest else lambda: None
        target = run(function)
        outcomes = []
        for step in steps:
            if isinstance(step, Call):
                outcomes.append(outcome(target, step, state))
            else:
                step()
    return outcomes, target


@contextlib.contextmanager
def without_audits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Executable, "audit", lambda *_: None)
        yield


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.getMessage()}")


def outcome(target: Any, step: Call, state: Callable[[], Any]) -> Outcome:
    """What a call gives or raises, says, and leaves."""
    handler, out = Lines(), io.StringIO()
    logging.getLogger().addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out):
            warnings.simplefilter("always")
            try:
                result: Any = ("gives", target(*step.args, **step.kwargs))
            except Exception as problem:
                result = ("raises", type(problem).__name__)
    finally:
        logging.getLogger().removeHandler(handler)
    complaint = [str(w.message) for w in caught if issubclass(w.category, CaptureWarning)]
    message = [str(w.message) for w in caught if not issubclass(w.category, CaptureWarning)]
    look = Look()
    observed = [look(x) for x in (result, step.args, step.kwargs, state(), out.getvalue(), handler.lines, message)]
    return Outcome((*observed, look(rn.get_rng_state())), complaint)


class Look:
    """Values to the bit, with types, and with which object is which among them."""

    def __init__(self) -> None:
        self.met: dict[int, int] = {}
        self.kept: list[Any] = []

    def __call__(self, value: Any) -> Any:
        kind = type(value)
        if kind in (int, float, str, bool, bytes, type(None), complex, slice, range) or isinstance(value, Enum):
            return (kind.__name__, repr(value))
        if kind is tuple:  # those of shapes are shared or not
            return ("tuple", [self(x) for x in value])
        if id(value) in self.met:
            return ("again", self.met[id(value)])
        self.met[id(value)] = len(self.met)
        self.kept.append(value)
        if kind is rn.Tensor:
            return (
                "Tensor",
                *self.bits(value.numpy()),
                value.dtype.name,
                value.requires_grad,
                self(value._grad),
                self.attributes(value),
            )
        if isinstance(value, Variable):
            return (kind.__name__, value.name, *self.bits(value.numpy()), value.requires_grad, self.attributes(value))
        if isinstance(value, np.generic) or kind is np.ndarray:
            if np.asarray(value).dtype == object:
                return ("objects", [self(v) for v in np.asarray(value).ravel().tolist()])
            return (kind.__name__, *self.bits(np.asarray(value)))
        if isinstance(value, rn.optim.Optimizer):
            return (kind.__name__, self(value.state_dict()), self.attributes(value, rn.optim.Optimizer.__name__))
        if isinstance(value, Wrapper):
            return "compiled"
        if isinstance(value, (type, type(len), type(call))):
            return value.__name__
        if isinstance(value, BaseException):
            return (kind.__name__, str(value))
        return (kind.__name__, self.content(value), self.attributes(value))

    def bits(self, array: np.ndarray) -> Any:
        return array.dtype.str, array.shape, array.tobytes()

    def content(self, value: Any) -> Any:
        if isinstance(value, (set, frozenset)):
            return sorted(map(repr, value))
        if isinstance(value, dict) or (hasattr(value, "items") and hasattr(value, "__getitem__")):
            return [(self(k), self(v)) for k, v in value.items()]
        if isinstance(value, (list, tuple)) or kind_of(value) in ("deque",):
            return [self(x) for x in value]
        return ()

    def attributes(self, value: Any, skip: str = "") -> Any:
        space = getattr(value, "__dict__", {})
        own = ("defaults", "state", "param_groups") if skip else ()
        return [
            (k, self(v))
            for k, v in sorted(space.items())
            if not (k.startswith("_") or k in own or k == "requires_grad")
        ]


def kind_of(value: Any) -> str:
    return type(value).__name__
