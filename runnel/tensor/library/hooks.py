"""Methods that attach functions to tensors and Variables, for gradients on their way back."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from runnel.core.errors import GradientError
from runnel.tensor.grad_hooks import AFTER_ACCUMULATION, ON_GRADIENT, GradientHook, require_no_trace
from runnel.tensor.handle import version
from runnel.tensor.variable import Variable


def _node(name: str, x: Any) -> Any:
    """What stands for ``x`` on the tape as long as it lives."""
    if not x.requires_grad:
        raise GradientError(f"[{name}] the tensor requires no gradient; call requires_grad_() on a leaf.")
    return x if isinstance(x, Variable) else version(x)


def register_hook(x: Any, hook: Callable[[Any], Any]) -> GradientHook:
    """Call ``hook(gradient)`` whenever the gradient of ``x`` is computed; what it returns, if not None, takes the
    gradient's place. The answer's ``remove()`` ends that. Compiled functions in which a hook is attached or called run
    eagerly."""
    require_no_trace("register_hook")
    return GradientHook(ON_GRADIENT, _node("register_hook", x), hook)


def register_post_hook(x: Any, hook: Callable[[Any], Any]) -> GradientHook:
    """Call ``hook(x)`` whenever ``backward()`` has added to ``x.grad``, of a leaf. Compiled functions in which one is
    attached or called run eagerly."""
    require_no_trace("register_post_accumulate_grad_hook")
    if not x.is_leaf:
        raise GradientError("[register_post_accumulate_grad_hook] gradients are accumulated in leaves alone.")
    return GradientHook(AFTER_ACCUMULATION, x, hook)


def retain_grad(x: Any) -> None:
    """Let ``backward()`` put the gradient of ``x`` into ``x.grad``, though ``x`` was computed; of a leaf it does."""
    if x.is_leaf:
        return
    owner = weakref.ref(x)

    def keep(gradient: Any) -> None:
        handle = owner()
        if handle is not None:
            handle.grad = gradient if handle.grad is None else handle.grad + gradient

    register_hook(x, keep)
