"""``autograd.Function``: a computation with a derivative of its own, as a class."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from runnel.core.errors import GradientError
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor
from runnel.transforms.custom import custom_vjp


class FunctionContext:
    """What ``forward`` leaves for ``backward``: the tensors of ``save_for_backward``, and any attributes."""

    def __init__(self, needs: tuple[bool, ...] = ()) -> None:
        self.needs_input_grad = needs
        self._saved: tuple[Any, ...] = ()
        self._marked: tuple[Any, ...] = ()
        self.constants: frozenset[int] = frozenset()  # the numbers of the results without a gradient

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (or None) for ``backward``, which finds them in ``saved_tensors``."""
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What ``save_for_backward`` kept."""
        return self._saved

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """These results have no gradient."""
        self._marked = tensors

    def number_constants(self, result: Any) -> None:
        """Note which of the results were marked."""
        marked = {id(x) for x in self._marked}
        self.constants = frozenset(i for i, y in enumerate(_several(result)) if id(y) in marked)

    def save_for_forward(self, *tensors: Any) -> None:
        """Nothing: derivatives forwards follow from ``backward``."""

    def mark_dirty(self, *tensors: Any) -> None:
        """Nothing: tensors are values, and what a function gives is another one."""

    def set_materialize_grads(self, value: bool) -> None:
        """Nothing: ``backward`` gets zeros for results without a gradient."""


class Function:
    """A computation with a derivative of its own, called by ``apply``::

        class Cube(rn.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x * x

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return 3 * x * x * g

        y = Cube.apply(x)

    ``backward`` gets the cotangent of each result and returns that of each argument, None where there is none. Instead
    of ``forward(ctx, *args)`` there may be ``forward(*args)`` and ``setup_context(ctx, inputs, output)``. If
    ``backward`` computes with array functions, its results are differentiable in turn.
    """

    @staticmethod
    def forward(*args: Any) -> Any:
        """The computation."""
        raise NotImplementedError("[Function] a subclass defines forward(ctx, *args).")

    @staticmethod
    def setup_context(ctx: FunctionContext, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep what ``backward`` needs, if ``forward`` has no ``ctx``."""
        raise NotImplementedError("[Function] a subclass may define setup_context(ctx, inputs, output).")

    @staticmethod
    def backward(ctx: FunctionContext, *gradients: Any) -> Any:
        """The cotangents of the arguments."""
        raise GradientError("[Function] a subclass that is differentiated defines backward(ctx, *gradients).")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """The result of ``forward``, with ``backward`` for its derivative."""
        context = FunctionContext(tuple(isinstance(x, ArrayMethods) and x.read().requires_grad for x in args))

        def forward(*args: Any) -> tuple[Any, Any]:
            if cls.setup_context is Function.setup_context:
                result = cls.forward(context, *args)
            else:
                result = cls.forward(*args)
                cls.setup_context(context, args, result)
            context.number_constants(result)
            return result, context.saved_tensors

        def backward(saved: tuple[Any, ...], g: Any) -> tuple[Any, ...]:
            context.save_for_backward(*saved)
            cotangents = _several(cls.backward(context, *_several(g)))
            extra = cotangents[len(args) :]
            return cotangents[: len(args)] if all(c is None for c in extra) else cotangents

        def compute(*args: Any) -> Any:
            return forward(*args)[0]

        compute.__name__ = cls.__name__
        function = custom_vjp(compute)
        function.defvjp(forward, backward)
        result = function(*args)
        if not context.constants:
            return result
        results = tuple(y.detach() if i in context.constants else y for i, y in enumerate(_several(result)))
        return results if isinstance(result, tuple | list) else results[0]


def _several(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, tuple | list) else (values,)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of ``backward``: its results are not differentiated again."""

    @functools.wraps(backward)
    def call(ctx: FunctionContext, *gradients: Any) -> Any:
        cotangents = backward(ctx, *(g.detach() for g in gradients))
        return tuple(c.detach() if isinstance(c, Tensor) else c for c in _several(cotangents))

    return call
