"""Make views again that were made before: of a tensor with the same shape and strides, by the same call.

The first call runs the function and keeps what its result shows of the tensor. Later calls make that without running
the function, with the same records on the tape. A function's arguments are part of a key if they are ints, slices,
``...``, None, or sequences of these; with others the function runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from runnel.compiler.lowering.protocol import lowering_for
from runnel.core import switches
from runnel.core.avals import Shape, ShapedArray
from runnel.core.caching import Recent
from runnel.core.dispatch import ViewStep
from runnel.core.tables import Op, abstract_eval
from runnel.ops.conversion import stop_gradient_p
from runnel.ops.shapes.views import reshape_p
from runnel.tensor import views
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.handle import SERIALS, Handle, Record
from runnel.tensor.trace import ACTIVE

_KEPT: Final = 4096  # calls, in each of two generations
_PIECES: Final = 64  # most results of a call that is kept
_INTS_OR_NONE: Final = frozenset({int, type(None)})
_SERIAL: Final = SERIALS.__next__


class _Again:
    """One view of a tensor: its aval and layout, and the steps to it, each with the aval and layout that it makes."""

    __slots__ = ("aval", "chain", "offset", "steps", "strides")

    def __init__(self, steps: views.Steps, chain: list[tuple[Op, dict[str, Any], ShapedArray, int, Shape]]) -> None:
        self.steps = steps
        self.chain = chain
        self.aval, self.offset, self.strides = chain[-1][2:]

    def of(self, x: Handle[Any]) -> Handle[Any]:
        """Return the view of ``x``."""
        storage, offset = x._storage, x._layout[0]
        if x.requires_grad and RECORDING.get():
            view = x
            for op, attrs, aval, further, strides in self.chain:
                source, view = view, x._over(aval, storage, offset + further, strides)
                view.requires_grad, view._record = True, Record(op, (source,), attrs)
        else:
            view = x.__class__.__new__(x.__class__)
            view._aval = self.aval
            view._storage = storage
            view._layout = offset + self.offset, self.strides
            view._serial = _SERIAL()
        return views.watched(view, x, self.steps)


_KNOWN: Final[Recent[Any, Any]] = Recent(_KEPT)  # an _Again, a tuple of them, or True: the tensor itself


def clear() -> None:
    """Forget all calls."""
    _KNOWN.clear()


def make(x: Handle[Any], function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return ``function(x, *args, **kwargs)``: the method ``view_again`` of tensors."""
    if ACTIVE.trace is not None or x._storage is None:
        return function(x, *args, **kwargs)
    flat: list[Any] = [function, x._aval, x._layout[1]]
    for arg in (*args, *kwargs, *kwargs.values()) if kwargs else args:
        kind = arg.__class__
        if kind is int:
            flat.append(arg)
        elif not _add(arg, kind, flat):
            return function(x, *args, **kwargs)
    key = tuple(flat)
    known = _KNOWN.young.get(key) or _KNOWN.get(key)
    if known.__class__ is _Again:
        return known.of(x)
    if known is None:
        result = function(x, *args, **kwargs)
        if x._level is None and not switches.check_nans.value:
            again = _learned(x, result)
            if again is not None:
                _KNOWN[key] = again
        return result
    return x if known is True else tuple([each.of(x) for each in known])


def _add(arg: Any, kind: type, flat: list[Any]) -> bool:
    """Add a setting to a key; return False if it cannot be a part of one."""
    if arg is None or arg is ...:
        flat.append(arg)
    elif kind is slice:
        start, stop, step = arg.start, arg.stop, arg.step
        flat += (slice, start, stop, step)
        return _INTS_OR_NONE.issuperset((start.__class__, stop.__class__, step.__class__))
    elif kind is str:  # the name of a keyword, or an argument that no view takes
        flat.append(arg)
    elif kind is tuple or kind is list:
        flat += (kind, len(arg))
        for each in arg:
            inner = each.__class__
            if inner is int:
                flat.append(each)
            elif not _add(each, inner, flat):
                return False
    else:
        return False
    return True


def _learned(x: Handle[Any], result: Any) -> Any:
    """Return what makes ``result`` of a tensor like ``x`` again; None if that depends on more."""
    if result is x:
        return True
    if isinstance(result, tuple):
        pieces = tuple([_again(x, each) for each in result]) if 0 < len(result) <= _PIECES else ()
        return pieces if pieces and all(pieces) else None
    return _again(x, result)


def _again(x: Handle[Any], result: Any) -> _Again | None:
    view, before = result._view, x._view
    if view is None or result.__class__ is not x.__class__ or result._storage is not x._storage:
        return None
    if before is not None and view.base is before.base:
        steps = view.steps[len(before.steps) :]
    else:
        steps = view.steps if view.base is (x if x._leaf is None else x._leaf()) else ()
    if not steps:
        return None
    chain: list[tuple[Op, dict[str, Any], ShapedArray, int, Shape]] = []
    value, (offset, strides) = x._aval.unplaced, (0, x._layout[1])
    for step in steps:
        if isinstance(step, ViewStep) or step[0] is stop_gradient_p:
            return None
        op, attrs = step
        made = abstract_eval[op](value, **attrs)
        found = lowering_for(op).layout(value, strides, made, attrs)
        if found is None or (op is reshape_p and len(steps) > 1 and not _same_but_ones(value.shape, made.shape)):
            return None  # whether another reshape copies depends on the base
        value, offset, strides = made, offset + found[0], found[1]
        chain.append((op, attrs, value.on(x._aval.device), offset, strides))
    if (offset + x._layout[0], strides) != result._layout or chain[-1][2] is not result._aval:
        return None
    return _Again(steps, chain)


def _same_but_ones(before: Shape, after: Shape) -> bool:
    return [n for n in before if n != 1] == [n for n in after if n != 1]
