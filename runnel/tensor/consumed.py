"""Gradients that an optimizer inside a compiled function has used up."""

from __future__ import annotations

from typing import Final

from runnel.core.errors import GradientError


class ConsumedGradient:
    """Stands in ``Variable.grad`` after a compiled step whose optimizer used the gradient up: it was never stored."""

    __slots__ = ()

    def __reduce__(self) -> str:
        return "CONSUMED"


CONSUMED: Final = ConsumedGradient()


def consumed(described: str) -> GradientError:
    """Somebody wants to know the gradient of this Variable."""
    return GradientError(
        f"[grad] the gradient of {described} was used up by the optimizer inside a compiled function and never stored; "
        "call zero_grad() before backward(), return it from the function, or compile with keep_grads=True."
    )
