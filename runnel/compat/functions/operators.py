"""Operators of programs: ``torch.library.custom_op``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from runnel.core.errors import UnsupportedError


class CustomOperator:
    """A function as an operator of a program. Its derivative must follow from its body."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self.function = name, function
        self.has_derivative = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        needed = any(getattr(x, "requires_grad", False) for x in (*args, *kwargs.values()))
        if self.has_derivative and needed:
            raise UnsupportedError(
                f"[{self.name}] the derivative of register_autograd is not supported: write a torch.autograd.Function."
            )
        return self.function(*args, **kwargs)

    def register_fake(self, function: Any = None) -> Any:
        """Return the function: shapes follow from the body."""
        return function

    def register_autograd(self, backward: Any, *, setup_context: Any = None) -> None:
        """Note that the operator has its own derivative; calls that need it raise UnsupportedError."""
        self.has_derivative = True


_CUSTOM: Final[dict[str, CustomOperator]] = {}


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Any = (),
    device_types: Any = None,
    schema: str | None = None,
) -> Any:
    """Return a function as an operator, or a decorator that does."""
    if fn is None:
        return lambda function: custom_op(name, function)
    found = _CUSTOM[name] = CustomOperator(name, fn)
    return found


def register_fake(op: Any, func: Any = None, /, **options: Any) -> Any:
    """Return the function, or a decorator that does: shapes follow from the body."""
    return (lambda function: function) if func is None else func


def register_autograd(op: Any, backward: Any, /, *, setup_context: Any = None, **options: Any) -> None:
    """Note that an operator has its own derivative."""
    found = op if isinstance(op, CustomOperator) else _CUSTOM.get(str(op))
    if found is None:
        raise UnsupportedError(f"[register_autograd] op must be one of torch.library.custom_op; got {op!r}.")
    found.register_autograd(backward)
