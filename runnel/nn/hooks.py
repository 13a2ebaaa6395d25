"""Hooks: functions that are called with a module's arguments and results, in forward and backward."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Self

from runnel import ops
from runnel.core import pytree
from runnel.core.errors import ArgumentError
from runnel.nn.derived import Part, with_part, without_part
from runnel.tensor.methods import ArrayMethods
from runnel.transforms.custom import custom_vjp

Function = Callable[..., Any]
_NUMBERS: Final = itertools.count()
_OF_CALLS: Final = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


class Hook(NamedTuple):
    """A function that was attached."""

    number: int
    function: Function
    with_kwargs: bool = False
    always: bool = False  # also when the module's forward failed


class RemovableHandle:
    """What attaching a hook gives: ``remove()`` takes the hook away, as does the end of a ``with`` block."""

    def __init__(self, module: Any, kind: str, number: int) -> None:
        self._module = weakref.ref(module)
        self._kind = kind
        self._number = number

    def remove(self) -> None:
        """Take the hook away; a second time, nothing happens."""
        module = self._module()
        if module is None:
            return
        others = tuple(hook for hook in getattr(module, self._kind) if hook.number != self._number)
        setattr(module, self._kind, others)
        if not any(getattr(module, kind) for kind in _OF_CALLS):
            without_part(module, Hooked)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


class Hooks:
    """The methods of a module that attach hooks; each gives a handle whose ``remove()`` takes the hook away."""

    _forward_hooks: tuple[Hook, ...] = ()
    _forward_pre_hooks: tuple[Hook, ...] = ()
    _backward_hooks: tuple[Hook, ...] = ()
    _backward_pre_hooks: tuple[Hook, ...] = ()
    _state_dict_hooks: tuple[Hook, ...] = ()
    _state_dict_pre_hooks: tuple[Hook, ...] = ()
    _load_state_dict_pre_hooks: tuple[Hook, ...] = ()
    _load_state_dict_post_hooks: tuple[Hook, ...] = ()

    def register_forward_pre_hook(
        self, hook: Function, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """``hook(module, args)`` before each call; what it returns, unless None, takes the place of the arguments.
        ``with_kwargs``: ``hook(module, args, kwargs)``, which returns a pair. ``prepend``: before other hooks."""
        return self._attached("_forward_pre_hooks", hook, prepend, with_kwargs)

    def register_forward_hook(
        self, hook: Function, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """``hook(module, args, result)`` after each call; what it returns, unless None, takes the place of the result.
        ``with_kwargs``: ``hook(module, args, kwargs, result)``. ``always_call``: after a failed call too, with None."""
        return self._attached("_forward_hooks", hook, prepend, with_kwargs, always_call)

    def register_full_backward_pre_hook(self, hook: Function, prepend: bool = False) -> RemovableHandle:
        """``hook(module, grad_output)`` when ``backward()`` has the gradients of the results (a tuple); what it
        returns, unless None, takes their place."""
        return self._attached("_backward_pre_hooks", hook, prepend)

    def register_full_backward_hook(self, hook: Function, prepend: bool = False) -> RemovableHandle:
        """``hook(module, grad_input, grad_output)`` when ``backward()`` has the gradients of the arguments, as tuples
        with None for what needs none; what it returns, unless None, takes the place of ``grad_input``."""
        return self._attached("_backward_hooks", hook, prepend)

    def register_backward_hook(self, hook: Function) -> RemovableHandle:
        """The same as :meth:`register_full_backward_hook`."""
        return self.register_full_backward_hook(hook)

    def register_state_dict_pre_hook(self, hook: Function) -> RemovableHandle:
        """``hook(module, prefix, keep_vars)`` before ``state_dict()`` reads this module."""
        return self._attached("_state_dict_pre_hooks", hook)

    def register_state_dict_post_hook(self, hook: Function) -> RemovableHandle:
        """``hook(module, state_dict, prefix, local_metadata)`` when ``state_dict()`` has read this module; it may
        change the dict."""
        return self._attached("_state_dict_hooks", hook)

    def register_load_state_dict_pre_hook(self, hook: Function) -> RemovableHandle:
        """``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``
        before ``load_state_dict()`` looks at a copy of the dict, which it may change."""
        return self._attached("_load_state_dict_pre_hooks", hook)

    def register_load_state_dict_post_hook(self, hook: Function) -> RemovableHandle:
        """``hook(module, incompatible_keys)`` when ``load_state_dict()`` has loaded; it may change both lists of it."""
        return self._attached("_load_state_dict_post_hooks", hook)

    def _attached(
        self, kind: str, function: Any, prepend: bool = False, with_kwargs: bool = False, always: bool = False
    ) -> RemovableHandle:
        if not callable(function):
            name = "register" + kind.removesuffix("s")
            raise ArgumentError(f"[{name}] a hook is a function; received {type(function).__name__}.")
        hook, there = Hook(next(_NUMBERS), function, with_kwargs, always), getattr(self, kind)
        setattr(self, kind, (hook, *there) if prepend else (*there, hook))
        if kind in _OF_CALLS:
            with_part(self, Hooked)
        return RemovableHandle(self, kind, hook.number)


class Hooked(Part, Hooks):
    """A module that calls hooks when it is called."""

    def call_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """The result of a call, with all hooks around it."""
        for hook in self._forward_pre_hooks:
            if hook.with_kwargs:
                changed = hook.function(self, args, kwargs)
                if changed is not None:
                    args, kwargs = changed
            else:
                changed = hook.function(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        watch = Watch(self) if self._backward_hooks or self._backward_pre_hooks else None
        if watch is not None:
            args = watch.arguments(args)
        try:
            result = super().__call__(*args, **kwargs)  # type: ignore[misc]
        except Exception:
            for hook in self._forward_hooks:
                if hook.always:
                    _called(hook, self, args, kwargs, None)
            raise
        for hook in self._forward_hooks:
            changed = _called(hook, self, args, kwargs, result)
            result = result if changed is None else changed
        return result if watch is None else watch.results(result)

    __call__ = call_with_hooks


def _called(hook: Hook, module: Any, args: Any, kwargs: Any, result: Any) -> Any:
    if hook.with_kwargs:
        return hook.function(module, args, kwargs, result)
    return hook.function(module, args, result)


class Watch:
    """The backward hooks of one call: gradients pass by on their way through the results and the arguments."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.grad_output: tuple[Any, ...] = ()

    def arguments(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, whose gradients call the hooks."""
        leaves, structure = pytree.flatten(args)
        return pytree.unflatten(structure, _passing(leaves, self._at_arguments))

    def results(self, result: Any) -> Any:
        """The results, whose gradients call the hooks."""
        leaves, structure = pytree.flatten(result)
        return pytree.unflatten(structure, _passing(leaves, self._at_results))

    def _at_results(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.module._backward_pre_hooks:
            gradients = _replaced(gradients, hook.function(self.module, gradients))
        self.grad_output = gradients
        return gradients

    def _at_arguments(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.module._backward_hooks:
            gradients = _replaced(gradients, hook.function(self.module, gradients, self.grad_output))
        return gradients


def _replaced(gradients: tuple[Any, ...], changed: Any) -> tuple[Any, ...]:
    if changed is None:
        return gradients
    return changed if isinstance(changed, tuple) else (changed,)


def _passing(leaves: list[Any], changed: Function) -> list[Any]:
    """``leaves``, with the gradients of the tensors among them, together, through ``changed``. They pass as one tensor:
    so all of them are there at once."""
    places = [i for i, x in enumerate(leaves) if isinstance(x, ArrayMethods) and x.read().requires_grad]
    if not places:
        return leaves
    inputs = [leaves[i].read() for i in places]

    def pulled(saved: Any, g: Any) -> tuple[Any]:
        gradients: list[Any] = [None] * len(leaves)
        for place, part in zip(places, _apart(g, inputs), strict=True):
            gradients[place] = part
        after = changed(tuple(gradients))
        return (_together([after[i] for i in places]),)

    passage = custom_vjp(_same)
    passage.defvjp(lambda x: (x, None), pulled)
    result = list(leaves)
    for place, part in zip(places, _apart(passage(_together(inputs)), inputs), strict=True):
        result[place] = part
    return result


def _same(x: Any) -> Any:
    return x


def _together(arrays: list[Any]) -> Any:
    if len(arrays) == 1:
        return arrays[0]
    return ops.concat([ops.reshape(x, (-1,)) for x in arrays])


def _apart(x: Any, like: list[Any]) -> list[Any]:
    if len(like) == 1:
        return [x]
    parts = ops.split(x, [y.size for y in like])
    return [ops.cast(ops.reshape(part, y.shape), y.dtype) for part, y in zip(parts, like, strict=True)]
