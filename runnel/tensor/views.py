"""Write through views: a view knows its base and the view ops that lead to it.

A write to a view writes the base: table ``write_back`` has the rule of each view op. After a base has changed, its live
views are made again. Both are functional underneath, so they work eagerly, in traces and on levels alike, and what was
computed from an old value keeps it for its gradient.

A detached view has a separate tape, which its views belong to: it is their base, and the values alone go on to its
own base.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any, Final

from runnel.compiler.lowering.protocol import lowering_for
from runnel.core.avals import Shape, ShapedArray, aval, row_major
from runnel.core.caching import Recent
from runnel.core.dispatch import ViewStep, apply
from runnel.core.errors import GradientError
from runnel.core.recall import LESSON
from runnel.core.tables import Op, abstract_eval, write_back
from runnel.ops.conversion import stop_gradient_p
from runnel.ops.indexing import assignment  # noqa: F401 - registers the rules of write_back
from runnel.ops.shapes.views import contiguous, reshape, reshape_p
from runnel.tensor.grad_mode import RECORDING, recording, run_recording
from runnel.tensor.handle import Handle, moved_out
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.trace import ACTIVE

OpStep = tuple[Op, dict[str, Any]]
Steps = tuple[OpStep | ViewStep, ...]

DETACHED: Final[OpStep] = (stop_gradient_p, {})
_DETACHED: Final = (DETACHED,)
_RESHAPED: Final[Recent[Any, bool]] = Recent(512)
_FEW: Final = 8  # views that are remembered before the dead ones are dropped
VIEWED: Final[dict[int, weakref.ref[Any]]] = {}  # by id: Variables that views were made of. Programs write these, too


class View:
    """The base of a view, a tensor or Variable, and the steps from it to the view; only the last step may detach."""

    __slots__ = ("base", "is_recorded", "steps")

    def __init__(self, base: Any, steps: Steps) -> None:
        self.base = base
        self.steps = steps
        self.is_recorded = RECORDING.get()  # on the tape, if the base is

    @property
    def is_detached(self) -> bool:
        return self.steps[-1:] == _DETACHED

    def value(self, base: Any) -> Any:
        """Return what the view shows of ``base``."""
        for step in self.steps:
            base = _look(step, base)
        return base

    def written(self, base: Any, change: Callable[[Any], Any]) -> Any:
        """Return ``base`` with what ``change`` makes of the elements of the view."""
        values = [base]
        for step in self.steps:
            values.append(values[-1] if step is DETACHED else _look(step, values[-1]))
        new = change(values.pop())
        for step in reversed(self.steps):
            before = values.pop()
            if isinstance(step, ViewStep):
                new = step.put(before, new)
            elif step is not DETACHED:
                op, attrs = step
                new = write_back[op](before, new, **attrs)
        return new

    def then(self, steps: Steps) -> View:
        """Return this view after further steps."""
        detached = self.steps[-1:] if self.is_detached else ()
        return View(self.base, (*self.steps[: len(self.steps) - len(detached)], *steps, *detached))

    @property
    def root(self) -> View:
        """Return the same view, of a base that is not a view."""
        view, trace = self, ACTIVE.trace
        while isinstance(view.base, Handle) and (before := view.base._view) is not None:
            if trace is not None and view.base._is_outside(trace):
                break  # where a compiled function finds a view, not its base
            view = View(before.base, before.steps + view.steps)
        return view


def _look(step: OpStep | ViewStep, x: Any) -> Any:
    if isinstance(step, ViewStep):
        return step.look(x)
    op, attrs = step
    return x.untaped() if op is stop_gradient_p else apply(op, x, **attrs)


def watched(view: Any, source: Any, steps: Steps) -> Any:
    """Return ``view``, a new tensor that ``steps`` made of ``source``, as a view of the base of ``source``."""
    before, trace, base = source._view, ACTIVE.trace, source
    if LESSON.events is not None:
        LESSON.note("view", view, source, steps)
    if before is not None:
        # A compiled function finds a view from outside, not its base. There it is dense: in a call ``shown`` decides.
        if trace is None or not source._is_outside(trace):
            if steps and steps[0][0] is reshape_p and len(steps) == 1 and not _shows(before, source, view, steps):
                return view  # a copy, as in PyTorch
            if before.steps[-1:] != _DETACHED:
                base, steps = before.base, before.steps + steps
    elif source._leaf is not None:
        base = source._leaf()
        if base is None:
            return view
    view._view = View(base, steps)
    views = base._views
    if views is None:
        base._views = [weakref.ref(view)]
        if not isinstance(base, Handle):
            key = id(base)
            forget = VIEWED.pop  # at exit, modules lose their names before the last Variables go
            VIEWED[key] = weakref.ref(base, lambda _: forget(key, None))
    else:
        if len(views) >= _FEW and not len(views) & (len(views) - 1):  # a power of two: the dead are few at any time
            views[:] = [known for known in views if known() is not None]
        views.append(weakref.ref(view))
    return view


def detached(view: Any, source: Any) -> Any:
    """Return ``view``, which has the value of ``source`` and no tape, as a view of it."""
    return watched(view, source, _DETACHED)


def _shows(before: View, source: Any, view: Any, steps: Steps) -> bool:
    """Return whether ``steps``, a reshape, give ``view`` of ``source`` without a copy if the root is dense."""
    old, new = source._aval.shape, view._aval.shape
    if len(old) != len(new) and [n for n in old if n != 1] == [n for n in new if n != 1]:
        return True  # axes of size 1 come and go
    root = before.root
    steps = root.steps + steps
    key = (root.base.aval, *[step if isinstance(step, ViewStep) else (step[0], *step[1].values()) for step in steps])
    known = _RESHAPED.get(key)
    if known is None:
        known = _RESHAPED[key] = _layout(root.base, steps) is not None
    return known


def _layout(base: Any, steps: Steps) -> tuple[Shape, Shape] | None:
    """Return the shape and strides (in elements) of a view of a dense base; None if the last step copies."""
    x: ShapedArray = base.aval.unplaced
    strides = row_major(x.shape)
    for step in steps:
        if isinstance(step, ViewStep):
            shape, strides = step.layout(x.shape, strides)
            x = aval(shape, x.dtype)
            continue
        op, attrs = step
        result = abstract_eval[op](x, **attrs)
        found = lowering_for(op).layout(x, strides, result, attrs)
        if found is None:
            return None
        x, strides = result, found[1]
    return x.shape, strides


def is_contiguous(x: Any) -> bool:
    """Return whether a tensor is dense in row-major order, if its base is, as PyTorch tells it."""
    trace = ACTIVE.trace
    if x._view is not None and trace is not None and trace.layout_asked is not None and x._is_outside(trace):
        trace.layout_asked(x)
    if x._view is None:
        # A constant fills memory by strides of 0, as nothing in PyTorch does.
        return x.is_traced or x.strides == row_major(x.shape) or 0 in x.strides
    root = x._view.root
    shape, strides = _layout(root.base, root.steps) or ((), ())
    dense = row_major(shape)
    return 0 in shape or all(n == 1 or a == b for n, a, b in zip(shape, strides, dense, strict=True))


def contiguous_of(x: Any) -> Any:
    """Return a tensor itself if it is dense in row-major order, and else a dense copy."""
    is_view = is_contiguous(x)
    if not (x.is_traced or x.strides == row_major(x.shape)):
        flat: Any = reshape(x, (-1,))
        if flat.strides != (1,):  # a view of elements that lie evenly apart
            flat = contiguous(flat)
        dense: Any = reshape(flat, x.shape)
        if not is_view:
            return dense
        x._storage, x._layout, x._array = dense._storage, dense._layout, None  # the same values
    return x if is_view else x.handle()


def memory_order(x: Any) -> tuple[int, ...] | None:
    """Return the axes of ``x`` in the order in which it lies in the memory of its base; None if it has gaps there."""
    axes = tuple(range(x.ndim))
    root = x._view.root if isinstance(x, Handle) and x._view is not None else None
    layout = None if root is None else _layout(root.base, root.steps)
    if layout is None:
        return axes
    shape, strides = layout
    order = tuple(sorted(axes, key=lambda axis: (-strides[axis], shape[axis] == 1)))
    dense = row_major(tuple(shape[axis] for axis in order))
    filled = all(shape[a] == 1 or strides[a] == step for a, step in zip(order, dense, strict=True))
    return order if filled or 0 in shape else None


def write(x: Any, name: str, change: Callable[[Any], Any], fitted: Callable[..., Any]) -> None:
    """Give the base the value in which the view ``x`` has the value that ``change`` makes of its present one."""
    view = x._view
    if not view.is_detached:
        view.base.update(
            name, lambda base: view.written(base, lambda part: fitted(name, part.aval, change(part)).read())
        )
        return
    new = fitted(name, x.aval, change(moved_out(x))).read()
    with recording(False):
        view.base.update(name, lambda base: view.written(base, lambda part: new.untaped()))
    x.receive(name, new)


def refresh(base: Any) -> None:
    """Give the live views of ``base`` their new values, after it has changed."""
    live = [view for known in base._views if (view := known()) is not None and view._view.base is base]
    base._views[:] = map(weakref.ref, live)
    for view in live:
        view.look_again(run_recording(view._view.is_recorded, view._view.value, base.read()))
        if view._views:
            refresh(view)


def follow(written: frozenset[int]) -> None:
    """Refresh the views of the Variables with these ids, after a run that has written them."""
    for key, known in list(VIEWED.items()):
        base = known()
        if key in written and base is not None:
            if base._views:
                refresh(base)
            if not base._views:
                base._views = None
                VIEWED.pop(key, None)


def sever(base: Any, kept: Any) -> None:
    """Make ``kept``, a tensor with the value of ``base``, the base of its views: ``base`` is about to become
    something else."""
    if base._views:
        for known in base._views:
            view = known()
            if view is not None and view._view.base is base:
                view._view = View(kept, view._view.steps)
        kept._views, base._views = base._views, None


def _set_data(x: Any, value: Any) -> None:
    view = value._view if isinstance(value, Handle) else None
    if view is not None and _shows_all_of(view, x):
        return  # `x.data += 1` has written x
    sever(x, x.read().untaped())
    if isinstance(x, Handle):  # which may be a view until now
        x._view = None
    elif view is not None and _is_part_of_vector(value):
        raise GradientError(
            f"[data] {x.described} would show a part of a vector, and keeps its values apart; write "
            "x.data.copy_(part), or x.data = part.clone()."
        )
    source = value.read() if isinstance(value, ArrayMethods) else None
    with recording(False):
        x.update("data", lambda old: old.lift(value, old.dtype) if source is None else source)
    if source is not None and isinstance(x, Handle) and ACTIVE.trace is None and source.aval is x.aval:
        watched(x, source, _DETACHED)


def _shows_all_of(view: View, x: Any) -> bool:
    before = x._view if isinstance(x, Handle) else None
    if before is not None and view.base is before.base:
        return view.steps == before.steps + _DETACHED
    return view.base is x and view.steps in (_DETACHED, ())


def _is_part_of_vector(x: Any) -> bool:
    """Return whether ``x`` shows a part of a vector that others hold, as Parameters of flat memory do in PyTorch."""
    if is_own(x):
        return False
    base = x._view.base
    return isinstance(base, Handle) and base.aval.ndim == 1 and base.aval.size > x.aval.size


# The values of a tensor or Variable without a tape, as a view. After ``x.data = y`` earlier views show what ``x`` was.
DATA: Any = property(lambda x: x.detach(), _set_data, doc="A view of the values without a tape.")


def _references_of_one_attribute() -> int:
    view = View(object(), ())
    return sys.getrefcount(view.base)


_ONLY_HERE: Final = _references_of_one_attribute()


def is_own(x: Any) -> bool:
    """Return whether a tensor shows no other's elements. A base that only this view refers to is let go first."""
    view = x._view
    if view is None:
        return True
    if not isinstance(view.base, Handle) or view.base.requires_grad:
        return False
    others = [known for known in view.base._views or () if known() is not None and known() is not x]
    if others or sys.getrefcount(view.base) > _ONLY_HERE:
        return False
    x._view = None
    return True


def shown(base: Any, steps: Steps) -> Any:
    """Return the view of ``base`` that ``steps`` make."""
    x = base if steps else base.alias()
    for step in steps:
        if isinstance(step, ViewStep):
            x = x.view_by(step)
        else:
            x = x.detach() if step == DETACHED else x.apply_view(*step)
    return x


def has_views(base: Any) -> bool:
    """Return whether a tensor or Variable has live views."""
    return any(view is not None and view._view.base is base for view in (known() for known in base._views or ()))
