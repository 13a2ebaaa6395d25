"""``torch.compile``, ``torch.jit`` and checkpoints."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from enum import Enum
from types import FunctionType
from typing import Any, Final as Final

from runnel.compile import compiled, wrappers
from runnel.compile.executable import Options, Unsettled
from runnel.core.errors import ArgumentError, CaptureError, NewStateError
from runnel.nn.module import Module
from runnel.tensor.trace import ACTIVE
from runnel.transforms import control
from runnel.transforms.checkpoint import checkpoint as rematerialized


def compile_(model: Any = None, *, fullgraph: bool = False, **options: Any) -> Any:
    """Compile a function or module with ``rn.compile``.

    Where the function asks for the value of a tensor, as in ``loss.item()``, ``if x.sum() > 0`` or ``x[mask]``, its
    calls run eagerly, and a CaptureWarning says so once; ``rn.compile`` raises TracedValueError. With
    ``fullgraph=True``, a call that would run eagerly raises CaptureError instead, except the first ones that
    create the state of an optimizer. ``mode``, ``backend``, ``dynamic`` and ``options`` have no effect.
    """
    if model is None:
        return functools.partial(compile_, fullgraph=fullgraph, **options)
    if not fullgraph:
        return compiled.compile(model).falling_back()
    if isinstance(model, wrappers.Uncompiled):
        raise ArgumentError("[compile] fullgraph must be False for a function that is excluded from compiled programs.")
    if type(model) is FunctionType:
        return WholeGraph(model, Options(), model.__name__)
    call_it: Any = compiled.call_it
    whole = WholeGraph(call_it, Options(), getattr(model, "__name__", type(model).__name__))
    return model.called_by(whole) if isinstance(model, Module) else whole.bound_to(model)


class WholeGraph(compiled.Compiled):
    """A compiled function that raises CaptureError where other compiled functions run eagerly."""

    __slots__ = ()

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            executable = self._executable_for(args, kwargs)
        except (NewStateError, Unsettled):  # the next call finds the state that this one creates
            return super()._call(args, kwargs)
        if executable.native is None:  # another compiled function of this code was refused
            raise CaptureError(f"[compile] {self.name}() runs eagerly: {executable.reason}.")
        return super()._call(args, kwargs)

    def _tell(self, problem: Any) -> None:
        if not isinstance(problem, NewStateError):
            raise CaptureError(f"[compile] {self.name}() runs eagerly: {problem}.")
        super()._tell(problem)

    def by_value(self, protocol: Any) -> tuple[Any, ...]:
        return WholeGraph, (self.function, self._options, self.name)


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: None = None,
    **kwargs: Any,
) -> Any:
    """Call ``function``, keep only its arguments for backward, and run it again there.

    The second run always draws the same random numbers, and it must compute the same values: the values of
    ``preserve_rng_state``, ``determinism_check``, ``debug`` and ``early_stop`` change nothing.

    Raises:
        ArgumentError: ``context_fn`` is set; enter the context in ``function`` instead.
    """
    if context_fn is not None:
        raise ArgumentError(
            "[checkpoint] context_fn must be left out: both runs are the same; enter a context in the function."
        )
    for option in ("preserve_rng_state", "determinism_check", "debug", "early_stop"):
        kwargs.pop(option, None)
    return rematerialized(function, *args, **kwargs) if args or kwargs else rematerialized(function)()


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Apply the functions (or a Sequential's modules) in ``segments`` checkpoints; the last keeps its values."""
    each = list(functions)
    size = len(each) // segments

    def run(part: list[Any], x: Any) -> Any:
        for function in part:
            x = function(x)
        return x

    for i in range(segments - 1):
        input = checkpoint(functools.partial(run, each[i * size : (i + 1) * size]), input, **kwargs)
    return run(each[(segments - 1) * size :], input)


class CheckpointImpl(Enum):
    """Ways to run a checkpoint, which give the same numbers."""

    REENTRANT, NO_REENTRANT = range(1, 3)


def apply_activation_checkpointing(model: Any, *args: Any, **options: Any) -> None:
    """Leave the model: where values are computed again changes no number. ``runnel.checkpoint`` saves memory."""


ScriptModule = Module  # the result of ``torch.jit.script`` for a module


class ScriptFunction:
    """PyTorch's class of TorchScript functions. ``torch.jit.script`` returns functions unchanged."""


def as_bool(condition: Any) -> bool:
    """Return a condition on sizes, which are numbers."""
    return bool(condition)


def as_given(function: Any = None, *args: Any, **options: Any) -> Any:
    """Return the argument: Python code runs without TorchScript, and :func:`runnel.compile` compiles it."""
    return function


def decorator(function: Any = None, **options: Any) -> Any:
    """Return the decorated function unchanged."""
    return function if callable(function) else decorator


def boolean_dispatch(arg_name: str, arg_index: int, default: bool, if_true: Any, if_false: Any, *names: Any) -> Any:
    """Return a function that calls ``if_true`` or ``if_false``, by the value of one argument."""

    def call(*args: Any, **kwargs: Any) -> Any:
        chosen = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    return call


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return ``the_value``."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Return True if ``obj`` is an instance of the type."""
    return sys.modules["builtins"].isinstance(obj, target_type)


def fork(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call the function at once; ``wait`` returns the result."""
    return function(*args, **kwargs)


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """Return ``true_fn(*operands)`` if ``pred`` is true, else ``false_fn(*operands)``: ``runnel.cond``."""
    return control.cond(pred, true_fn, false_fn, *operands)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """Apply ``body_fn`` while ``cond_fn`` holds, both functions of the carried values: ``runnel.while_loop``."""
    return control.while_loop(lambda x: cond_fn(*x), lambda x: tuple(body_fn(*x)), tuple(carried_inputs))


def is_compiling() -> bool:
    """Return True while a function is being captured for compilation."""
    return ACTIVE.trace is not None


def disable(function: Any = None, recursive: bool = True, **options: Any) -> Any:
    """Exclude a function from compiled programs, like ``runnel.uncompiled``."""
    return disable if function is None else wrappers.uncompiled(function)
