"""Learning-rate schedules in compiled functions: ``scheduler.step()`` is one effect, replayed after each run.

So rates, counters and functions of the user's are what they are in eager mode. What the function itself reads of the
schedule and of its rates, it reads before: a read after the step, in the same call, is refused.
"""

from __future__ import annotations

from collections.abc import Collection
from types import FunctionType, MethodType
from typing import Any, cast

from runnel.compile import boundary
from runnel.compile.observe import attributes
from runnel.compile.observe.changes import CallingMethod
from runnel.compile.observe.classes import is_python_class, namespace
from runnel.compile.observe.containers import get_item, length
from runnel.compile.observe.not_capturable import NotCapturable
from runnel.compile.observe.observation import Session, observe
from runnel.compile.observe.policy import Policy
from runnel.compile.observe.recorder import Recorder
from runnel.compile.owned import users_bases
from runnel.tensor import tracing
from runnel.tensor.scalars import Schedule

_OUTSIDE = "call it outside of the compiled function"
_LATER = "read it before the step, or outside of the compiled function"


class _Aside(Session):
    """A function is looked at aside from the trace: what it computes is dropped."""

    trace = None

    def number(self, rec: Recorder, value: Any) -> Any:
        return rec.concrete_number(value)

    concrete = number

    def require_unchanged(self, rec: Recorder, plain: dict[str, Any]) -> None:
        """It reads whatever is there when it is called."""

    def numbers_change(self, plain: Collection[int], where: str) -> None:
        """A schedule is stepped, which is an effect."""


def called(rec: Recorder, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of ours of a schedule."""
    schedule, name = args[0], function.__name__
    if name == "step":
        return _stepped(rec, function, schedule, args[1:], kwargs)
    unstepped(rec, schedule, f"{name}()")
    if name == "get_last_lr":
        return _rates(rec, schedule)
    if rec.source_of(schedule) is None:
        return boundary.run(rec, function, args, kwargs)
    rec.refuse(f"{name}() of a schedule is called", _OUTSIDE)


def unstepped(rec: Recorder, schedule: Schedule, what: str) -> None:
    """Nobody has stepped the schedule in this run."""
    if ("stepped", id(schedule)) in rec.memo:
        rec.refuse(f"{what} of a schedule is read after its step", _LATER)


def _stepped(
    rec: Recorder, function: FunctionType, schedule: Schedule, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    if rec.source_of(schedule) is None:
        rec.refuse("a schedule that the function made is stepped", "make it outside")
    if tracing.ACTIVE.trace is not rec.session.trace:
        rec.refuse("a schedule is stepped inside of a loop or another function of Runnel's", "step it behind that")
    rec.pinned(schedule)
    attributes.read(rec, schedule, "optimizer")
    _look_at_functions(rec, schedule)
    rec.memo["stepped", id(schedule)] = True
    rec.session.numbers_change({id(one.plain) for one in schedule.numbers()}, rec.line())
    arguments = list(args), dict(kwargs)
    rec.effects.record(CallingMethod(function), schedule, None, arguments, f"{rec.source_of(schedule)}.step()")


def _look_at_functions(rec: Recorder, schedule: Schedule) -> None:
    """What the step calls of the user's may depend on anything that a call may: it is called in its time. It changes
    nothing, for the function would not see that."""
    kind = type(schedule)
    for base in users_bases(kind):
        for name in schedule.changed_by_step:
            if name in namespace(base):
                rec.refuse(f"{kind.__name__} has a {name}() of its own", "step it outside")
    for called_by_step, args in schedule.functions():
        function: Any = called_by_step
        if type(function) is MethodType:
            function, args = function.__func__, (function.__self__, *args)
        if type(function) is not FunctionType:
            if is_python_class(type(function)):
                rec.refuse(f"a schedule calls an object ({type(function).__name__})", "give it a plain function")
            continue
        if not boundary.is_ours(function):
            _look_at(rec, function, args)


def _look_at(rec: Recorder, function: FunctionType, args: tuple[Any, ...]) -> None:
    try:
        with tracing.activate(None):
            observation = observe(function, args, {}, cast(Policy, rec.policy), _Aside())
    except NotCapturable as refused:
        rec.refuse(f"a schedule calls {function.__qualname__}, where {refused.reason} ({refused.where})", _OUTSIDE)
    except Exception:  # and so it will at each call
        return
    if observation.effects:
        rec.refuse(f"a schedule calls {function.__qualname__}, which does {observation.effects[0].label}", _OUTSIDE)


def _rates(rec: Recorder, schedule: Schedule) -> list[float]:
    groups = attributes.read(rec, attributes.read(rec, schedule, "optimizer"), "param_groups")
    rates = [rec.hooks.get_item(get_item(rec, groups, i), "lr") for i in range(length(rec, groups))]
    return [rate if type(rate) is float else float(rate) for rate in rates]
