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
from runnel.transforms.custom_vjp import custom_vjp

Function = Callable[..., Any]
_NUMBERS: Final = itertools.count()
_OF_CALLS: Final = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


class Hook(NamedTuple):
    """A registered function."""

    number: int
    function: Function
    with_kwargs: bool = False
    always: bool = False  # also when the module's forward failed


class RemovableHandle:
    """The handle of a registered hook of a module or optimizer. ``remove()``, or the end of a ``with`` block, removes
    the hook."""

    def __init__(self, module: Any, kind: str, number: int) -> None:
        self._module = weakref.ref(module)
        self._kind = kind
        self._number = number

    def remove(self) -> None:
        """Remove the hook. A second call has no effect."""
        module = self._module()
        if module is None:
            return
        others = tuple(hook for hook in getattr(module, self._kind) if hook.number != self._number)
        setattr(module, self._kind, others)
        if self._kind in _OF_CALLS and not any(getattr(module, kind) for kind in _OF_CALLS):
            without_part(module, Hooked)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


class Hooks:
    """The methods of a module that register hooks. Each returns a handle whose ``remove()`` removes the hook."""

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
        """Call ``hook(module, args)`` before each call. A result that is not None replaces the arguments.

        Args:
            hook: the function.
            prepend: call it before the other hooks.
            with_kwargs: call ``hook(module, args, kwargs)``, which returns a pair or None.
        """
        return self._attached("_forward_pre_hooks", hook, prepend, with_kwargs)

    def register_forward_hook(
        self, hook: Function, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, result)`` after each call. A result that is not None replaces the result.

        Args:
            hook: the function.
            prepend: call it before the other hooks.
            with_kwargs: call ``hook(module, args, kwargs, result)``.
            always_call: also call it after a failed call, with None as the result.

        Example:
            >>> shapes = []
            >>> handle = layer.register_forward_hook(lambda module, args, result: shapes.append(result.shape))
        """
        return self._attached("_forward_hooks", hook, prepend, with_kwargs, always_call)

    def register_full_backward_pre_hook(self, hook: Function, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` when ``backward()`` has computed the gradients of the results, a tuple.

        A result that is not None replaces them.
        """
        return self._attached("_backward_pre_hooks", hook, prepend)

    def register_full_backward_hook(self, hook: Function, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when ``backward()`` has the gradients of the arguments.

        Both are tuples, with None for values that need no gradient. A result that is not None replaces ``grad_input``.
        """
        return self._attached("_backward_hooks", hook, prepend)

    def register_backward_hook(self, hook: Function) -> RemovableHandle:
        """Do the same as :meth:`register_full_backward_hook`."""
        return self.register_full_backward_hook(hook)

    def register_state_dict_pre_hook(self, hook: Function) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before ``state_dict()`` reads this module."""
        return self._attached("_state_dict_pre_hooks", hook)

    def register_state_dict_post_hook(self, hook: Function) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after ``state_dict()``; it may change the dict."""
        return self._attached("_state_dict_hooks", hook)

    def register_load_state_dict_pre_hook(self, hook: Function) -> RemovableHandle:
        """Call a hook before ``load_state_dict()``; it may change the dict, which is a copy.

        Its arguments are (module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
        error_msgs).
        """
        return self._attached("_load_state_dict_pre_hooks", hook)

    def register_load_state_dict_post_hook(self, hook: Function) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)``, which may change both lists, after ``load_state_dict()``."""
        return self._attached("_load_state_dict_post_hooks", hook)

    def _attached(
        self, kind: str, function: Any, prepend: bool = False, with_kwargs: bool = False, always: bool = False
    ) -> RemovableHandle:
        if not callable(function):
            name = "register" + kind.removesuffix("s")
            raise ArgumentError(f"[{name}] hook must be a function; got {type(function).__name__}.")
        hook, there = Hook(next(_NUMBERS), function, with_kwargs, always), getattr(self, kind)
        setattr(self, kind, (hook, *there) if prepend else (*there, hook))
        if kind in _OF_CALLS:
            with_part(self, Hooked)
        return RemovableHandle(self, kind, hook.number)


class Hooked(Part, Hooks):
    """A module that calls hooks when it is called."""

    def call_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of a call, calling all hooks around it."""
        for hook in self._forward_pre_hooks:
            if hook.with_kwargs:
                changed = hook.function(self, args, kwargs)
                if changed is not None:
                    args, kwargs = changed
            else:
                changed = hook.function(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        watch = None
        if self._backward_hooks or self._backward_pre_hooks:
            at_results = [hook.function for hook in self._backward_pre_hooks]
            watch = Watch(self, at_results, [hook.function for hook in self._backward_hooks])
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
    """The backward hooks of one call, through which the gradients of its results and its arguments pass.

    As in PyTorch, later changes of the module's hooks do not affect the call.
    """

    def __init__(self, module: Any, at_results: list[Function], at_arguments: list[Function]) -> None:
        self.module = module
        self.at_results = at_results
        self.at_arguments = at_arguments
        self.grad_output: tuple[Any, ...] = ()

    def arguments(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments such that their gradients call the hooks."""
        leaves, structure = pytree.flatten(args)
        return pytree.unflatten(structure, _passing(leaves, self._at_arguments))

    def results(self, result: Any) -> Any:
        """Return the results such that their gradients call the hooks."""
        leaves, structure = pytree.flatten(result)
        return pytree.unflatten(structure, _passing(leaves, self._at_results))

    def _at_results(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.at_results:
            gradients = _replaced(gradients, hook(self.module, gradients))
        self.grad_output = gradients
        return gradients

    def _at_arguments(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.at_arguments:
            gradients = _replaced(gradients, hook(self.module, gradients, self.grad_output))
        return gradients


def _replaced(gradients: tuple[Any, ...], changed: Any) -> tuple[Any, ...]:
    if changed is None:
        return gradients
    return changed if isinstance(changed, tuple) else (changed,)


def _passing(leaves: list[Any], changed: Function) -> list[Any]:
    """Return ``leaves`` such that the gradients of all tensors among them pass through ``changed`` together.

    They pass as one tensor, so that all of them are computed when ``changed`` is called.
    """
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
