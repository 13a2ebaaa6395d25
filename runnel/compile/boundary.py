"""Calls of code that is not observed, by contract: the functions of Runnel and NumPy.

Such a function gets its arguments and reads nothing else that could change. Functions of the user's among them are
observed where they are called. Numbers that may change go in as inputs of the program, and arrays as tensors; where the
function looks at their values, it is called again with these, and they are checked.
"""

from __future__ import annotations

import functools
import types
from types import FunctionType, MethodType
from typing import Any, Final

import numpy as np

from runnel.compile import arrays
from runnel.compile.observe.attributes import reach_parts, read
from runnel.compile.observe.containers import content, reach_items
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import PLAIN, SETS, SYMBOLIC, container_of, is_class, is_python_class, own_method
from runnel.compile.owned import PACKAGE, advances_version, is_own, is_plain_object, require_own_methods, structure
from runnel.core import pytree
from runnel.core.errors import TracedValueError
from runnel.core.lifetime import ByIdentity
from runnel.core.pytree import flatten
from runnel.tensor import tracing
from runnel.tensor.floats import is_traceable
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.stateful import Stateful, StatefulTree
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import STATE_VERSION, TracedVariables

_OBSERVED: Final[dict[str, bool]] = {PACKAGE: False}  # modules, and whether their functions are observed


def set_observed(module: str, is_observed: bool) -> None:
    """Set whether the functions of a module, and of those below it, run observed as a user's do.

    A module of Runnel's that uses the library as a user does says so of itself. A foreign library whose functions only
    compute with Runnel's can run unobserved.
    """
    _OBSERVED[module] = is_observed


def runs_unobserved(module: str) -> bool:
    """Return whether the functions of a module run unobserved, which the nearest entry above it tells."""
    while module and module not in _OBSERVED:
        module = module.rpartition(".")[0]
    return not _OBSERVED.get(module, True)


def is_ours(function: Any) -> bool:
    """Return whether a function runs unobserved. Its globals tell, because wrappers copy ``__module__``."""
    return runs_unobserved(
        str(function.__globals__.get("__name__") if type(function) is FunctionType else function.__module__)
    )


def run(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function of ours."""
    return rec.session.seen(rec, _run(rec, function, args, kwargs))


def _run(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    call = _Arguments(rec)
    values = [call.argument(x) for x in args]
    named = {name: call.argument(x) for name, x in kwargs.items()}
    target = call.function(function) if type(function) is FunctionType else function
    trace: Any = tracing.ACTIVE.trace
    if trace is None:  # what is looked at aside from a trace computes
        return target(*values, **named)
    if not call.is_symbolic:
        try:
            return target(*values, **named)
        except TracedValueError as problem:
            _require_asked(rec, function, (*values, *named.values()), problem)
            raise
    state, error, done = trace.facet(TracedVariables), trace.deferred_error, _done(rec, trace)
    nodes, held, written = dict(state.nodes), dict(state.values), set(state.written)
    try:
        return target(*values, **named)
    except TracedValueError:
        if _done(rec, trace) != done:
            rec.refuse(
                f"{function.__qualname__} looks at a number after it has changed something", "pass a plain number"
            )
        drawn = {state.nodes[variable] for variable in state.nodes.keys() - nodes}
        trace.inputs = [node for node in trace.inputs if node not in drawn]
        state.nodes, state.values, state.written = nodes, held, written  # as before it drew random numbers
        trace.deferred_error = error
        return target(*[call.concrete(x) for x in args], **{n: call.concrete(x) for n, x in kwargs.items()})


def _require_asked(rec: Recorder, function: Any, args: tuple[Any, ...], problem: TracedValueError) -> None:
    """Refuse a function that asks for values of what it draws or computes itself, as some that initialize Variables do.
    No argument could be passed in another way."""
    is_layer = str(function.__module__).startswith(f"{PACKAGE}.nn.")
    if is_layer and not any(type(x) is Tensor for x in flatten(args)[0]):
        rec.refuse(f"{function.__name__}() computes with the values of what it draws", "call it outside")


def _done(rec: Recorder, trace: Any) -> tuple[Any, ...]:
    """Return what the run has done so far that cannot be taken back."""
    last = None if trace.last_effect is None else trace.last_effect()
    return len(rec.effects.done), len(trace.checks), last, dict(trace.facet(TracedVariables).gradients)


class _Arguments:
    """The arguments of one call, as code that is not observed takes them."""

    def __init__(self, rec: Recorder) -> None:
        self.rec = rec
        self.is_symbolic = False  # whether an argument replaces a value that was not looked at

    def argument(self, value: Any) -> Any:
        rec, kind = self.rec, type(value)
        if kind in PLAIN:
            if rec.symbols and id(value) in rec.symbols:
                self.is_symbolic = True
                return rec.session.number(rec, value)
            return value
        if isinstance(value, np.ndarray) and rec.source_of(value) is not None:
            self.is_symbolic = True
            return arrays.as_input(rec, value)
        return self.concrete(value)

    def concrete(self, value: Any) -> Any:
        """Return an argument whose value may be looked at."""
        rec, kind = self.rec, type(value)
        if kind in PLAIN or kind in SYMBOLIC:
            length = rec.session.length_of(value)
            return rec.concrete_number(value) if length is None else length
        if issubclass(kind, ArrayMethods) and pytree.is_registered(kind):
            return self._joint(value)
        if is_traceable(kind) or isinstance(value, ArrayMethods):
            return rec.session.stand_in(rec, value)
        if kind is FunctionType:
            return self.function(value)
        if kind is MethodType:
            return self._method(value)
        if kind is functools.partial:
            reach_parts(rec, value, ("func", "args", "keywords"))
            return functools.partial(
                self.concrete(value.func),
                *[self.argument(x) for x in value.args],
                **{name: self.argument(x) for name, x in value.keywords.items()},
            )
        if isinstance(value, np.ndarray):
            return arrays.check_content(rec, value)
        if is_class(value):
            return content(rec, value)
        if kind is slice:
            return slice(*map(self.concrete, (value.start, value.stop, value.step)))
        if container_of(kind) is not None:
            return self._container(value)
        if is_own(kind):
            return self._own(value)
        if runs_unobserved(str(kind.__module__)):  # of a foreign library whose objects never change
            rec.pinned(value)
            return value
        if is_python_class(kind):
            return self._object(value)
        return content(rec, value)

    def function(self, value: FunctionType) -> Any:
        """Return a function that is observed if it, or what it closes over, is the user's."""
        rec = self.rec
        if rec.is_own(value):
            return value
        if not is_ours(value):
            return rec.twin(value) if rec.policy.native(value) is None else value
        if holds_nothing(value):
            return value
        known = rec.memo.get(("ours", id(value)))
        if known is None:
            source = rec.source_of(value)
            cells: list[Any] = []
            for i, cell in enumerate(value.__closure__ or ()):
                inside = cell.cell_contents
                if source is not None:
                    at = rec.log.source(source, f"{{p}}.__closure__[{i}].cell_contents", f"{source}", inside)
                    inside = rec.reach(inside, at)
                inner = self.concrete(inside)
                cells.append(cell if inner is inside else types.CellType(inner))
            known = FunctionType(value.__code__, value.__globals__, value.__name__, value.__defaults__, tuple(cells))
            known.__kwdefaults__ = value.__kwdefaults__
            known.__dict__.update(value.__dict__)
            rec.keep(value)
            rec.memo["ours", id(value)] = known
        return known

    def _method(self, value: Any) -> Any:
        rec = self.rec
        at = rec.source_of(value)
        if at is not None:
            rec.reach(value.__self__, rec.log.source(at, "{p}.__self__", f"{at}.__self__", value.__self__))
            rec.reach(value.__func__, rec.log.source(at, "{p}.__func__", f"{at}.__func__", value.__func__))
        if is_ours(value.__func__) and is_own(type(value.__self__)) and not holds_users(rec, value.__self__):
            self.concrete(value.__self__)
            return value
        if type(value.__func__) is FunctionType and not is_ours(value.__func__):
            return MethodType(rec.twin(value.__func__), value.__self__)
        return rec.callback(value)

    def _joint(self, value: Any) -> Any:
        """Return a value of several tensors, such as a ragged one, with what takes their place."""
        copy = object.__new__(type(value))
        copy.__dict__.update({name: self.concrete(read(self.rec, value, name)) for name in list(value.__dict__)})
        return copy

    def _container(self, value: Any) -> Any:
        """Read a container. Return a copy with observed functions in place of the user's, if it holds any."""
        rec, kind = self.rec, type(value)
        if issubclass(kind, SETS):
            return content(rec, value)
        is_users = is_python_class(kind) and not rec.policy.is_transparent(kind)
        if is_users and any(own_method(kind, name) is not None for name in _READ_BY):
            rec.refuse_value(value, "a function of Runnel")
        reach_items(rec, value)
        if issubclass(kind, (list, tuple)):
            parts = [self.concrete(x) for x in container_of(kind).__iter__(value)]
            if all(a is b for a, b in zip(parts, container_of(kind).__iter__(value), strict=True)):
                return value
            if kind is list:
                return parts
            if issubclass(kind, tuple):
                return tuple.__new__(kind, parts)
            rec.refuse(f"a function of Runnel is given a {kind.__name__} that holds functions of yours")
        known = list(dict.values(value) if issubclass(kind, dict) else value)
        items = list(map(self.concrete, known))
        if all(a is b for a, b in zip(items, known, strict=True)):
            return value
        if kind is dict:
            return dict(zip(value, items, strict=True))
        rec.refuse(f"a function of Runnel is given a {kind.__name__} that holds functions of yours")

    def _own(self, value: Any) -> Any:
        """Check what an object of Runnel's is made of as a whole, and return it."""
        rec = self.rec
        source = rec.source_of(value)
        if source is None:
            if isinstance(value, StatefulTree):  # made by the run: what it holds need not be
                for part in list(value.__dict__.values()):
                    if isinstance(part, StatefulTree):
                        self.concrete(part)
            return value
        known, looked_into = watched(rec, value)
        if known is None:
            return rec.policy.with_foreign_parts(rec, value)
        if ("checked", id(value)) not in rec.memo:
            rec.memo["checked", id(value)] = True
            rec.memo.setdefault("covered", set()).update(looked_into)
            require_own_methods(rec, known)
            into = looked_into if advances_version(type(value)) else None
            rec.log.check(source, "structure({v}) != {0}", f"structure of {source}", (known,), looks_into=into)
        return value

    def _object(self, value: Any) -> Any:
        """Return an object of a user's class by the rules of the policy."""
        return self.rec.policy.user_object(self.rec, value)


def watched(rec: Recorder, value: Any) -> tuple[tuple[Any, ...] | None, set[int]]:
    """Return the structure of an object of Runnel's, or None if it holds the user's, and what it looked into.

    It is found once for as long as the run changes nothing."""
    now = len(rec.effects.done), STATE_VERSION.now
    entry = rec.memo.get(("structure", id(value)))
    if entry is None or entry[0] != now:
        looked_into: set[int] = set()
        parts = structure(value, looked_into)
        rec.keep(value)
        entry = rec.memo["structure", id(value)] = now, parts, looked_into
    return entry[1], entry[2]


def holds_users(rec: Recorder, value: Any) -> bool:
    """Return whether a plain object of ours holds things of the user's, or tensors: its methods are observed. An object
    that the run made was given observed functions; of what it holds, a Module from outside may have others."""
    if not is_plain_object(type(value)) or not hasattr(value, "__dict__"):
        return False
    if rec.source_of(value) is not None:
        return watched(rec, value)[0] is None
    parts = list(value.__dict__.values())
    return any(isinstance(x, Stateful) and rec.source_of(x) and watched(rec, x)[0] is None for x in parts)


_READ_BY: Final = ("__iter__", "__len__", "__getitem__", "__contains__", "keys", "values", "items", "get")


_HOLDS_NOTHING: Final[ByIdentity[FunctionType, bool]] = ByIdentity()


def holds_nothing(function: FunctionType) -> bool:
    """Return whether a function of ours closes over nothing of the user's."""
    if function.__closure__ is None:
        return True
    return _HOLDS_NOTHING.setdefault(function, lambda: structure(function) is not None)
