"""Functions that users attach to tensors and Variables, called with gradients on their way back.

They are kept by the identity of a node of the tape, or of the Variable whose value a leaf is, while that lives.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any, Final, Self

from runnel.core.errors import CaptureError, GradientError
from runnel.tensor.trace import ACTIVE

Hooks = dict[int, dict[int, Callable[[Any], Any]]]
ON_GRADIENT: Final[Hooks] = {}  # called with a gradient, which they may replace
AFTER_ACCUMULATION: Final[Hooks] = {}  # called with a leaf whose ``.grad`` has just been added to
_NUMBERS: Final = itertools.count()


class _Changes:
    """Counts how often hooks were attached or removed. Programs that differentiate come from traces without hooks."""

    def __init__(self) -> None:
        self.count = 0


CHANGES: Final = _Changes()


class GradientHook:
    """An attached hook. ``remove()`` detaches it, as does the end of a ``with`` block."""

    def __init__(self, hooks: Hooks, owner: Any, function: Callable[[Any], Any]) -> None:
        self._place, self._number = id(owner), next(_NUMBERS)
        self._hooks = hooks
        if self._place not in hooks:
            hooks[self._place] = {}
            weakref.finalize(owner, hooks.pop, self._place, None).atexit = False
        hooks[self._place][self._number] = function
        CHANGES.count += 1

    def remove(self) -> None:
        """Take the hook away; a second time, nothing happens."""
        if self._hooks.get(self._place, {}).pop(self._number, None) is not None:
            CHANGES.count += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def hooked(node: Any, g: Any) -> Any:
    """Return the gradient ``g`` of a node of the tape after its hooks have run."""
    for owner in (node, node._leaf() if node._leaf is not None else None):
        for hook in tuple(ON_GRADIENT.get(id(owner), {}).values()):
            require_no_trace("register_hook")
            changed = hook(g)
            if changed is None:
                continue
            for name in ("shape", "dtype"):
                given, asked = getattr(changed, name), getattr(g, name)
                if given != asked:
                    raise GradientError(
                        f"[register_hook] a hook gave a gradient of {name} {given} for one of {name} {asked}; they "
                        "must be the same."
                    )
            g = changed.read()
    return g


def is_hooked(node: Any) -> bool:
    """Return whether a node of the tape has hooks."""
    return id(node) in ON_GRADIENT or (node._leaf is not None and id(node._leaf()) in ON_GRADIENT)


def accumulated(owner: Any) -> None:
    """Tell the hooks of a leaf that its ``.grad`` was added to."""
    for hook in tuple(AFTER_ACCUMULATION.get(id(owner), {}).values()):
        require_no_trace("register_post_accumulate_grad_hook")
        hook(owner)


def require_no_trace(name: str) -> None:
    """Raise if a trace is active, since programs call no hooks. A compiled function then runs eagerly."""
    trace = ACTIVE.trace
    if trace is None:
        return
    reason, remedy = f"{name}: programs call no hooks of gradients", "call backward() outside the compiled function"
    if trace.refuse is not None:
        trace.refuse(reason, remedy)
    raise CaptureError(f"[{name}] programs call no hooks of gradients; {remedy}, and outside loops.")
