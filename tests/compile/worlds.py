"""Run one program in two equal worlds, eager and compiled, and show all that a call returns, prints and changes.

``make`` returns a function, the steps of its story (calls, and functions that change the world), and optionally a
function that returns the rest of the world's state. Audits are off, so that a read that a guard misses is seen.
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


class Call(NamedTuple):
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def call(*args: Any, **kwargs: Any) -> Call:
    return Call(args, kwargs)


def tensor(*values: float) -> rn.Tensor:
    return rn.asarray(np.array(values, np.float32))


class Outcome(NamedTuple):
    seen: Any
    told: list[str]


def story(make: Callable[[], Any], run: Callable[[Any], Any]) -> tuple[list[Outcome], Any]:
    """Return the outcomes of all calls, and the target that was called."""
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
    """Return everything that a call returns or raises, prints and leaves behind."""
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
    """Turn values into comparable ones: bits, types, and which object is which."""

    def __init__(self) -> None:
        self.met: dict[int, int] = {}
        self.kept: list[Any] = []

    def __call__(self, value: Any) -> Any:
        kind = type(value)
        if kind in (int, float, str, bool, bytes, type(None), complex, slice, range) or isinstance(value, Enum):
            return (kind.__name__, repr(value))
        if kind is tuple:  # shapes are shared or not
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
        if isinstance(value, rn.Variable):
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
