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
    """Inside ``with rn.autocast():``, or in a function decorated ``@rn.autocast()``, matrix products, linear layers,
    convolutions and attention round their float32 operands to ``dtype`` and give results in it; they multiply and add
    up in float32. Reductions, softmax, norms and losses convert what has two bytes to float32 and stay there. Nothing
    else changes: parameters are float32, and so are their gradients.

    It holds for the calls made in the block on this thread, not for a backward pass. Blocks nest, the innermost one
    counts; ``enabled=False`` switches it off inside another. A compiled function has programs of its own for each
    ``dtype`` that it is called under.
    """

    def __init__(self, dtype: Dtype = bfloat16, enabled: bool = True) -> None:
        target = as_dtype(dtype)
        if target not in (bfloat16, float16):
            raise DTypeError(f"[autocast] dtype is bfloat16 or float16; received {target.name}.")
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
        """``function`` with this in force whenever it runs."""
        dtype = self.dtype

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with casting(dtype):
                return function(*args, **kwargs)

        return call
