"""``torch._check`` and its kind, by which libraries check arguments: each raises an error unless a condition holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Message: TypeAlias = Callable[[], object] | None


def _check_with(error_type: type[Exception], cond: Any, message: Message = None) -> None:
    """Raise ``error_type`` unless the bool ``cond`` is True. ``message`` makes the text."""
    if not cond:
        raise error_type(
            str(message()) if message else "[check] the condition must be True; got False. The caller gave no message."
        )


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Message = None) -> None:
    """Raise ``error_type`` unless all elements of the tensor ``cond`` are True."""
    _check_with(error_type, cond.all(), message)


def _check_tensor_all(cond: Any, message: Message = None) -> None:
    """Raise RuntimeError unless all elements of the tensor ``cond`` are True."""
    _check_with(RuntimeError, cond.all(), message)


def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError unless ``condition`` is True."""
    if not condition:
        raise AssertionError(message)


def _check_is_size(i: int, message: Message = None, *, max: int | None = None) -> None:
    """Raise RuntimeError unless ``i`` is at least 0, and at most ``max``."""
    _check_with(RuntimeError, i >= 0 and (max is None or i <= max), message)


def _checking(error_type: type[Exception]) -> Callable[..., None]:
    def check(cond: bool, message: Message = None) -> None:
        """Raise an error unless ``cond`` is True."""
        _check_with(error_type, cond, message)

    return check


_check, _check_index, _check_value = (_checking(error) for error in (RuntimeError, IndexError, ValueError))
_check_type, _check_not_implemented = (_checking(error) for error in (TypeError, NotImplementedError))
