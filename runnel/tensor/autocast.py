"""``autocast``: products in bfloat16 or float16 inside a block, sums in float32."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

from runnel.core.conversion import CASTING, casting
from runnel.core.dtypes import DType, Dtype, as_dtype, bfloat16, float16
from runnel.core.errors import DTypeError

P = ParamSpec("P")
R = TypeVar("R")


class autocast:
    """Compute matrix products, linear layers, convolutions and attention in ``dtype`` inside a block or function.

    Write ``with rn.autocast():`` or ``@rn.autocast()``. These functions round their float32 operands to ``dtype`` and
    return results in it; they accumulate in float32. Reductions, softmax, norms and losses convert two-byte floats to
    float32 and return float32. Nothing else changes: parameters and their gradients are float32.

    Autocast applies to calls made in the block on this thread, not to a backward pass. Blocks nest, and the innermost
    one applies; ``enabled=False`` switches autocast off inside another block. A compiled function has separate
    programs for each ``dtype``.
    """

    def __init__(self, dtype: Dtype = bfloat16, enabled: bool = True) -> None:
        target = as_dtype(dtype)
        if target not in (bfloat16, float16):
            raise DTypeError(f"[autocast] dtype must be bfloat16 or float16; got {target.name}.")
        self.dtype: DType | None = target if enabled else None

    def __enter__(self) -> autocast:
        CASTING.outer.append(CASTING.dtype)
        CASTING.dtype = self.dtype
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        CASTING.dtype = CASTING.outer.pop()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Return ``function`` as one that runs under autocast."""
        dtype = self.dtype

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with casting(dtype):
                return function(*args, **kwargs)

        return call
