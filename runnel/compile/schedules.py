"""Learning-rate schedulers in compiled functions: ``scheduler.step()`` is one effect, replayed after each run.

The program reads the rates before that. So the function may read rates and schedulers before the step, not after it.
"""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import Any, cast

from runnel.compile import boundary
from runnel.compile.observe import attributes
from runnel.compile.observe.containers import get_item, length
from runnel.compile.observe.effects import CallingMethod
from runnel.compile.observe.observation import Session, observe
from runnel.compile.observe.recorder import NotCapturable, Recorder
from runnel.compile.observe.table import Policy
from runnel.compile.observe.values import is_python_class, namespace
from runnel.compile.owned import is_own, is_scheduler, users_bases
from runnel.tensor import tracing

_OUTSIDE = "call it outside the compiled function"


class _Aside(Session):
    """A session that observes a function and drops what it computes."""

    trace = None

    def number(self, rec: Recorder, value: Any) -> Any:
        return rec.concrete_number(value)

    concrete = number


def called(rec: Recorder, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a method that a scheduler has of Runnel."""
    scheduler, name = args[0], function.__name__
    if name == "step":
        return _stepped(rec, function, scheduler, args[1:], kwargs)
    require_not_stepped(rec, scheduler, f"{name}()")
    if name == "get_last_lr":
        groups = attributes.read(rec, attributes.read(rec, scheduler, "optimizer"), "param_groups")
        rates = [rec.hooks.get_item(get_item(rec, groups, i), "lr") for i in range(length(rec, groups))]
        return [rate if type(rate) is float else float(rate) for rate in rates]
    if rec.source_of(scheduler) is None:
        return boundary.run(rec, function, args, kwargs)
    rec.refuse(f"{name}() of a scheduler is called", _OUTSIDE)


def require_not_stepped(rec: Recorder, scheduler: Any, what: str) -> None:
    """Refuse to read a scheduler that this run has stepped."""
    if ("stepped", id(scheduler)) in rec.memo:
        rec.refuse(f"{what} of a scheduler is read after its step", "read it before the step, or outside")


def _stepped(
    rec: Recorder, function: FunctionType, scheduler: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    if rec.source_of(scheduler) is None:
        rec.refuse("a scheduler that the function made is stepped", "make it outside")
    if tracing.ACTIVE.trace is not rec.session.trace:
        rec.refuse("a scheduler is stepped in a loop or another function of Runnel's", "step it after that")
    rec.pinned(scheduler)
    attributes.read(rec, scheduler, "optimizer")
    _look_at_functions(rec, scheduler, scheduler)
    rec.session.numbers_change({id(group.plain) for group in scheduler.optimizer.param_groups}, rec.line())
    arguments = list(args), dict(kwargs)
    rec.effects.record(CallingMethod(function), scheduler, None, arguments, f"{rec.source_of(scheduler)}.step()")


def _look_at_functions(rec: Recorder, scheduler: Any, value: Any) -> None:
    """Look at what a step calls of the user's, in the attributes of a scheduler and of those it holds. It may read
    anything, since it is called in its time; it must change nothing, since the function would not see that."""
    kind = type(value)
    if is_scheduler(kind):
        rec.memo["stepped", id(value)] = True
        for base in users_bases(kind):
            for name, method in namespace(base).items():
                if name in ("get_lr", "multiplier"):
                    _look_at(rec, method, (value, value.last_epoch + 1)[: method.__code__.co_argcount])
                elif name != "__init__" and any(hasattr(c, name) for c in kind.__mro__ if is_own(c)):
                    rec.refuse(f"{kind.__name__} has its own {name}", "step it outside")
        value = [part for name, part in value.__dict__.items() if name != "optimizer"]
    if type(value) in (list, tuple, dict):
        for part in value.values() if type(value) is dict else value:
            _look_at_functions(rec, scheduler, part)
    elif type(value) in (FunctionType, MethodType):
        function, owner = getattr(value, "__func__", value), getattr(value, "__self__", None)
        if not boundary.is_ours(function):
            _look_at(rec, function, (*(() if owner is None else (owner,)), scheduler.last_epoch + 1))
    elif callable(value) and is_python_class(kind):
        rec.refuse(f"a scheduler calls an object ({kind.__name__})", "give it a plain function")


def _look_at(rec: Recorder, function: FunctionType, args: tuple[Any, ...]) -> None:
    try:
        with tracing.activate(None):
            observation = observe(function, args, {}, cast(Policy, rec.policy), _Aside())
    except NotCapturable as refused:
        rec.refuse(f"a scheduler calls {function.__qualname__}, where {refused.reason} ({refused.where})", _OUTSIDE)
    except Exception:  # as it will at each call
        return
    if observation.effects:
        rec.refuse(f"a scheduler calls {function.__qualname__}, which does {observation.effects[0].label}", _OUTSIDE)
