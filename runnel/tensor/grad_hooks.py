"""Functions that users attach to tensors and Variables, called with gradients on their way back.

They are kept by the identity of a node of the tape, or of the Variable whose value a leaf is, while that lives.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any, Final, Self

from runnel.core.errors import CaptureError, GradientError
from runnel.tensor.handle import version
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
        self._number = next(_NUMBERS)
        self._hooks = _of(hooks, owner)
        self._hooks[self._number] = function
        CHANGES.count += 1

    def remove(self) -> None:
        """Take the hook away; a second time, nothing happens."""
        if self._hooks.pop(self._number, None) is not None:
            CHANGES.count += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def _of(hooks: Hooks, owner: Any) -> dict[int, Callable[[Any], Any]]:
    place = id(owner)
    if place not in hooks:
        hooks[place] = {}
        weakref.finalize(owner, hooks.pop, place, None).atexit = False
    return hooks[place]


class Keeping:
    """A hook that puts the gradient of a computed tensor into its ``.grad``, whatever value the tensor has by then."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = weakref.ref(tensor)

    def __call__(self, gradient: Any) -> None:
        tensor = self._tensor()
        if tensor is not None:
            tensor.grad = gradient if tensor.grad is None else tensor.grad + gradient


def moved(handle: Any, before: Any) -> None:
    """Let the hooks of a handle that has got another value stay with its former value, whose node is ``before``."""
    if not ON_GRADIENT or before._leaf is not None:  # the hooks of a leaf are the handle's
        return
    hooks = ON_GRADIENT.pop(id(handle), None)
    if hooks is None:
        hooks = ON_GRADIENT.get(id(before), {})
    else:
        _of(ON_GRADIENT, before)
        ON_GRADIENT[id(before)] = hooks
    for number, hook in tuple(hooks.items()):
        if isinstance(hook, Keeping):
            del hooks[number]
            if handle.requires_grad:
                GradientHook(ON_GRADIENT, version(handle), hook)


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
