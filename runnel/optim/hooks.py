"""Hooks of optimizers: functions that are called before and after each step."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, Final

from runnel.nn.hooks import Hook, RemovableHandle

_NUMBERS: Final = itertools.count()


class StepHooks:
    """The methods of an optimizer that register hooks. Each returns a handle whose ``remove()`` removes the hook."""

    _step_pre_hooks: tuple[Hook, ...] = ()
    _step_post_hooks: tuple[Hook, ...] = ()

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; a pair that it returns takes the place of the
        arguments, of which the optimizer is the first."""
        return self._registered("_step_pre_hooks", hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return self._registered("_step_post_hooks", hook)

    def _registered(self, kind: str, hook: Callable[..., Any]) -> RemovableHandle:
        number = next(_NUMBERS)
        setattr(self, kind, (*getattr(self, kind), Hook(number, hook)))
        return RemovableHandle(self, kind, number)


def hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method ``step`` with the hooks of the optimizer around it."""

    @functools.wraps(step)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not (self._step_pre_hooks or self._step_post_hooks):
            return step(self, *args, **kwargs)
        args = (self, *args)
        for hook in self._step_pre_hooks:
            changed = hook.function(self, args, kwargs)
            if changed is not None:
                args, kwargs = changed
        result = step(*args, **kwargs)
        for hook in self._step_post_hooks:
            hook.function(self, args, kwargs)
        return result

    return run
