"""What NumPy computes of arrays from outside: written down, and computed again at each call by the guard.

So a trace does not depend on what such arrays hold: results are arrays from outside in turn, whose shape and dtype are
checked, and that ops take as inputs. Only where Python looks at a value is it compared.
"""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np

from runnel.compile import numpy_settings
from runnel.compile.arrays import LARGEST, check_scalar
from runnel.compile.observe.classes import MISSING
from runnel.compile.observe.containers import content
from runnel.compile.observe.expressions import Expression, NotWritten
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.sources import Source
from runnel.compile.observe.symbols import bare
from runnel.compile.observe.values import PLAIN, SYMBOLIC
from runnel.tensor import tracing

MOST: Final = 64  # arrays and scalars that a guard computes
_NOT_BY_ARGUMENTS: Final = frozenset({"empty", "empty_like", "array2string"})
BY_MEMORY: Final = frozenset(
    {"shares_memory", "may_share_memory", "byte_bounds"}
)  # where arrays lie, not what they hold


class _Expression(Expression):
    """The same with arrays, and scalars of NumPy's."""

    def of(self, value: Any) -> str:
        kind = type(value)
        if kind is np.ndarray or issubclass(kind, np.generic):
            at = self.rec.source_of(value)
            return self.constant(_copied(value)) if at is None else self.operand(at)
        if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, (np.generic, *PLAIN))):
            return self.constant(value)
        return super().of(value)

    def is_written_out(self, container: Any) -> bool:
        return True


def _copied(value: Any) -> Any:
    """An array that the run made, as it is now."""
    if isinstance(value, np.generic):
        return value
    if value.dtype.hasobject or value.nbytes > LARGEST:
        raise NotWritten
    return value.copy()


def called(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], method: str = "") -> Any:
    """What a function of NumPy's gives, in a tuple, or ``method`` of the first argument; None where it cannot be
    written down: then whoever asks looks into the arguments."""
    name = method or getattr(function, "__name__", "")
    if name in _NOT_BY_ARGUMENTS or not name.isidentifier() or rec.memo.get("arrays computed", 0) >= MOST:
        return None
    if tracing.ACTIVE.trace is None:
        return None
    expression = _Expression(rec)
    try:
        head = "" if method else expression.constant(function)
        written = [expression.of(x) for x in args] + [f"{key}={expression.of(x)}" for key, x in kwargs.items()]
    except NotWritten:
        return None
    arrays = [at for at in expression.operands if isinstance(at.value, (np.ndarray, np.generic))]
    if not arrays or (name in BY_MEMORY and len(arrays) < sum(isinstance(x, np.ndarray) for x in args)):
        return None
    views: dict[int, Any] = {}
    values = [_to_read(rec, x, views) for x in args]
    named = {key: _to_read(rec, x, views) for key, x in kwargs.items()}
    with numpy_settings.quietly():
        result = getattr(values[0], method)(*values[1:], **named) if method else function(*values, **named)
    if id(result) not in views and not _is_computed(result):
        return None
    if method:
        text = f"{written[0]}.{method}({', '.join(written[1:])})"
    else:
        text = f"{head}({', '.join(written)})"
    rec.memo["arrays computed"] = rec.memo.get("arrays computed", 0) + 1
    at = rec.log.computed(text, tuple(expression.operands), f"{name}() of {arrays[0]}", tuple(expression.constants))
    at.is_argument = any(operand.is_argument for operand in expression.operands)
    if id(result) in views:  # the argument itself, which may hang on how it lies in memory
        argument = rec.source_of(views[id(result)])
        if argument is not None:
            rec.log.check(None, "{s0} is not {s1}", f"whether {at} is {argument}", (), (at, argument))
        return (views[id(result)],)
    return (_reached(rec, result, at),)


def _to_read(rec: Recorder, value: Any, views: dict[int, Any]) -> Any:
    """An argument for NumPy, which must not write into arrays from outside; ``views`` says what stands for which."""
    if type(value) in SYMBOLIC:
        return bare(value)
    seen = read_only(rec, value)
    if seen is not value:
        views[id(seen)] = value
    return seen


def read_only(rec: Recorder, value: Any) -> Any:
    """An array from outside as one that cannot be written."""
    if not isinstance(value, np.ndarray) or rec.source_of(value) is None:
        return value
    view = value.view()
    view.flags.writeable = False
    rec.keep(view)
    return view


def _is_computed(result: Any) -> bool:
    kind = type(result)
    if kind in (tuple, list):
        return bool(result) and all(_is_computed(x) and type(x) not in (tuple, list) for x in result)
    return (
        (kind is np.ndarray and not result.dtype.hasobject)
        or issubclass(kind, np.generic)
        or kind in (float, int, bool)
    )


def _reached(rec: Recorder, result: Any, at: Source) -> Any:
    """A result of a guard's own, with its source."""
    kind = type(result)
    at.value = result
    if kind in (tuple, list):
        rec.log.check(at, f"type({{v}}) is not {kind.__name__} or len({{v}}) != {len(result)}", f"length of {at}")
        return kind(
            [_reached(rec, x, rec.log.source(at, f"{{p}}[{i}]", f"{at}[{i}]", x)) for i, x in enumerate(result)]
        )
    if kind in (float, int, bool):
        return rec.reach_symbolic(result, at)
    known = rec.source_of(result)
    if known is not None and known is not at:
        return result  # the argument itself
    if kind is np.ndarray:
        if result.base is not None:
            result.flags.writeable = False
        return rec.reach(result, at)
    if kind is np.bool_:
        check_scalar(rec, result, at)
        return result
    rec.log.check(at, "type({v}) is not {0}", f"type of {at}", (kind,))
    rec.sources[id(result)] = at
    rec.keep(result)
    return result


def made_own(rec: Recorder, array: np.ndarray) -> bool:
    """An array that NumPy computed is about to be changed: what it holds is compared, and then it is the run's own.
    Whether that can be: it has memory of its own, and no op has read it."""
    at, trace = rec.source_of(array), tracing.ACTIVE.trace
    if at is None or not at.operands or array.base is not None or trace is None or id(array) in trace.captures:
        return False
    content(rec, array)
    del rec.sources[id(array)]
    trace.known_arrays.pop(id(array), None)
    rec.memo.pop(("input", id(array)), None)
    return True


def number(rec: Recorder, convert: Any, value: Any) -> Any:
    """``float(value)`` or ``int(value)`` of a scalar or array from outside; MISSING for others."""
    if not isinstance(value, (np.ndarray, np.generic)) or rec.source_of(value) is None:
        return MISSING
    again = called(rec, convert, (value,), {})
    return MISSING if again is None else again[0]


def as_number(rec: Recorder, value: Any) -> Any:
    """An operand beside a tensor, where NumPy's scalars count as Python's numbers."""
    if not isinstance(value, (np.floating, np.integer)):
        return value
    as_pythons = number(rec, float if isinstance(value, np.floating) else int, value)
    return value if as_pythons is MISSING else as_pythons


def items(rec: Recorder, array: np.ndarray) -> Any:
    """The items of an array from outside, one by one; None where there are too many."""
    if rec.source_of(array) is None or array.ndim == 0 or len(array) > MOST // 2:
        return None
    parts = [called(rec, operator.getitem, (array, i), {}) for i in range(len(array))]
    return None if None in parts else iter([one for (one,) in parts])
