"""Run a function by replaying its observed runs, to compare it with the plain function."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import runnel as rn
from runnel.compile.capture import RULES
from runnel.compile.observe.observation import Observation, observe
from runnel.compile.observe.recorder import NotCapturable
from runnel.compile.rules import Rules
from runnel.core.errors import CaptureWarning


class Observed:
    """Calls whose guard holds are replayed; others run observed, and are replayed from then on."""

    def __init__(self, function: Any, policy: Rules = RULES) -> None:
        self.function = function
        self.policy = policy
        self.kept: list[Observation] = []
        self.runs = self.raised = 0
        self.reasons: list[str | None] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for one in self.kept:
            values = one.guard.holds(self.function, args, kwargs)
            if values is not None:
                assert one.guard.why(self.function, args, kwargs) is None
                return one.replay(values)
        self.runs += 1
        self.reasons += [one.guard.why(self.function, args, kwargs) for one in self.kept]
        assert None not in self.reasons
        try:
            one = observe(self.function, args, kwargs, self.policy)
        except Exception:
            self.raised += 1
            return self.function(*args, **kwargs)  # raises, and leaves what it did so far
        values = one.guard.holds(self.function, args, kwargs)
        if values is None:
            assert one.unsettled_by, f"a guard fails right after its run: {one.guard.why(self.function, args, kwargs)}"
            return self.function(*args, **kwargs)
        self.kept.insert(0, one)
        return one.replay(values)


def shown(value: Any, depth: int = 0) -> Any:
    """A value with its types, for comparing two worlds; no addresses."""
    kind = type(value)
    if depth > 6:
        return "..."
    if isinstance(value, (list, tuple)) or kind.__name__ == "deque":
        return (kind.__name__, [shown(x, depth + 1) for x in list(value)])
    if isinstance(value, dict):
        return (kind.__name__, [(shown(k, depth + 1), shown(v, depth + 1)) for k, v in value.items()])
    if isinstance(value, (set, frozenset)):
        return (kind.__name__, sorted(map(repr, value)))
    if isinstance(value, (type, type(len), type(shown))):
        return value.__name__
    if hasattr(value, "__dict__") and not isinstance(value, BaseException):
        return (kind.__name__, shown(vars(value), depth + 1))
    return (kind.__name__, re.sub("0x[0-9a-f]+", "an address", repr(value)))


Step = Callable[[], Any]


def outcome(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], state: Step) -> tuple[Any, ...]:
    """Return the result or error of a call, and the state it leaves."""
    try:
        result: Any = ("gives", shown(function(*args, **kwargs)))
    except Exception as problem:
        result = ("raises", type(problem).__name__, str(problem))
    return (*result, shown(state()))


def story(make: Callable[[], Any], run: Callable[[Any], Any] = lambda function: function) -> tuple[list[Any], Any]:
    """All calls of a world, and what was called: ``make`` gives the function, which ``run`` makes something of, and
    calls between which the world changes.

    A call is (args, kwargs) or, for a change of the world, a function.
    """
    function, steps, *rest = make()
    state = rest[0] if rest else lambda: None
    target = run(function)
    outcomes = []
    for step in steps:
        if callable(step):
            step()
        else:
            outcomes.append(outcome(target, *step, state))
    return outcomes, target


def check(make: Callable[[], Any], refused: str | None = None) -> Observed | None:
    """The two worlds agree; or, where ``refused`` says why, the observation ended with that sentence."""
    plain, _ = story(make)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaptureWarning)
        compiled, _ = story(make, rn.compile)
    if story(make)[0] == plain:  # else it draws numbers, or shows addresses
        assert compiled == plain
    try:
        actual, target = story(make, Observed)
    except NotCapturable as refusal:
        assert refused is not None, f"refused: {refusal}"
        assert refused in str(refusal), str(refusal)
        assert ".py:" in str(refusal) or "at the call" in str(refusal)
        return None
    assert actual == plain
    assert refused is None, "was not refused"
    return target
