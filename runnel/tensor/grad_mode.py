"""Switch the recording of ops for differentiation: ``no_grad``, ``enable_grad``, ``inference_mode``.

The mode belongs to the context that sets it (:mod:`contextvars`): each thread begins with recording on, and each
asyncio task has a separate mode. A compiled function has separate programs for each mode.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from runnel.core.errors import GradientError

T = TypeVar("T")

RECORDING: Final[ContextVar[bool]] = ContextVar("recording", default=True)


def is_grad_enabled() -> bool:
    """Return whether operations on tensors that require a gradient are recorded now."""
    return RECORDING.get()


def run_recording(enabled: bool, work: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Return ``work(*args, **kwargs)``, run in this mode.

    The mode is restored also when Ctrl-C interrupts: by a C function, so this is not a ``with`` block.
    """
    before = RECORDING.get()
    try:
        RECORDING.set(enabled)
        return work(*args, **kwargs)
    finally:
        RECORDING.set(before)


class recording:
    """Set the mode for the block."""

    __slots__ = ("_before", "_enabled")

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled

    def __enter__(self) -> None:
        self._before = RECORDING.get()
        RECORDING.set(self._enabled)

    def __exit__(self, *error: object) -> None:
        RECORDING.set(self._before)


class _Mode:
    """A mode for a ``with`` block, or for every run of a decorated function. One object can be entered many times."""

    _enabled: bool

    def __init__(self) -> None:
        self._outer: list[bool] = []

    def __enter__(self) -> Self:
        self._outer.append(RECORDING.get())
        RECORDING.set(self._enabled)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        RECORDING.set(self._outer.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return decorated(function, self._enabled)


class _FixedMode(_Mode):
    """A mode that needs no argument, so that it decorates with and without parentheses."""

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        return super().__new__(cls) if function is None else decorated(function, cls._enabled)

    def __init__(self, function: None = None) -> None:
        super().__init__()


class no_grad(_FixedMode):
    """``with rn.no_grad():`` or ``@rn.no_grad()``: results require no gradient, and leaves may be changed in place.

    As a decorator it also works without parentheses. A decorated generator runs in this mode and its caller in the
    caller's own; so does a decorated coroutine.
    """

    _enabled = False


class enable_grad(_FixedMode):
    """Record operations, also inside ``no_grad``: ``with rn.enable_grad():`` or ``@rn.enable_grad()``."""

    _enabled = True


class inference_mode(_Mode):
    """``with rn.inference_mode():``: the same as ``no_grad``, since tensors are values and need no further care.
    ``inference_mode(False)`` is ``enable_grad``."""

    def __new__(cls, mode: bool | Callable[..., Any] = True) -> Any:
        return decorated(mode, False) if callable(mode) else super().__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._enabled = not mode


class set_grad_enabled(_Mode):
    """``rn.set_grad_enabled(flag)`` sets the mode from here on; in a ``with`` statement, until the block ends. As a
    decorator, ``@rn.set_grad_enabled(flag)``, it sets the mode for the function alone."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        if not isinstance(mode, bool):
            raise GradientError(f"[set_grad_enabled] the mode must be True or False; got {mode!r}.")
        self._enabled = mode
        self._before = RECORDING.get()
        RECORDING.set(mode)

    def __enter__(self) -> Self:
        self._outer.append(self._before)
        RECORDING.set(self._enabled)
        return self

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        RECORDING.set(self._before)
        return super().__call__(function)


def decorated(function: Callable[..., Any], enabled: bool) -> Callable[..., Any]:
    """Return ``function`` as one that runs in the mode. Between the steps of a generator, its caller has its own
    mode."""
    if inspect.isclass(function) or not callable(function):
        what = f"class {function.__name__}" if inspect.isclass(function) else type(function).__name__
        raise TypeError(f"[no_grad] a decorated object must be a function; got {what}. Decorate its methods.")
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generate(*args: Any, **kwargs: Any) -> Any:
            return _stepped(function(*args, **kwargs), enabled)

        return generate
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def wait(*args: Any, **kwargs: Any) -> Any:
            with recording(enabled):
                return await function(*args, **kwargs)

        return wait

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with recording(enabled):
            return function(*args, **kwargs)

    return call


def _stepped(generator: Generator[Any, Any, Any], enabled: bool) -> Generator[Any, Any, Any]:
    """Run each step of ``generator`` in the mode."""
    step: Callable[..., Any] = generator.send
    arguments: tuple[Any, ...] = (None,)
    try:
        while True:
            with recording(enabled):
                value = step(*arguments)
            try:
                step, arguments = generator.send, ((yield value),)
            except GeneratorExit:
                raise
            except BaseException as error:
                step, arguments = generator.throw, (error,)
    except StopIteration as stop:
        return stop.value
    finally:
        with recording(enabled):
            generator.close()
