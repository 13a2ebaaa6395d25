"""``custom_vjp``: define the derivative of a function by its backward function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from runnel.core import pytree
from runnel.core.errors import GradientError
from runnel.core.functions import FunctionLike
from runnel.ops.arguments import as_shape
from runnel.tensor import tensor as tensors, tracing
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.handle import Record
from runnel.tensor.levels import Level, highest
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor
from runnel.transforms.custom_levels import at_level
from runnel.transforms.gradients import zeros_for

Forward = Callable[..., tuple[Any, Any]]
Backward = Callable[..., Sequence[Any]]


class CustomDerivative(FunctionLike):
    """A function with a user-defined derivative. ``users_functions`` names the attributes with the user's functions."""

    users_functions: ClassVar[tuple[str, ...]] = ("fn",)
    __wrapped__: Callable[..., Any]

    def __init__(self, fn: Callable[..., Any], nondiff_argnums: int | Iterable[int] = ()) -> None:
        self.fn = fn
        self.nondiff_argnums = as_shape(type(self).__name__, nondiff_argnums)
        self.__name__ = self.__qualname__ = type(fn).__name__  # partial functions have none
        functools.update_wrapper(self, fn)  # type: ignore[arg-type]

    def positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return all arguments by position, including defaults if there are keyword arguments."""
        if not kwargs:
            self.are_static(args)
            return args
        bound = inspect.signature(self.__wrapped__).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise GradientError(
                f"[{type(self).__name__}] all arguments of {self.__name__} must be positional; got the keyword-only "
                f"arguments {', '.join(bound.kwargs)}."
            )
        return bound.args

    def divided(self, args: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
        """Return the arguments without a derivative, and the others."""
        static: list[Any] = []
        others: list[Any] = []
        for x, is_static in zip(args, self.are_static(args), strict=True):
            (static if is_static else others).append(x)
        return static, others

    def merged(self, args: tuple[Any, ...], others: Iterable[Any], static: Iterable[Any]) -> list[Any]:
        """Return a value for each argument, from values for those with a derivative and for those without."""
        sources = iter(others), iter(static)
        return [next(sources[is_static]) for is_static in self.are_static(args)]

    def are_static(self, args: tuple[Any, ...]) -> list[bool]:
        """Return for each argument whether it has no derivative."""
        count = len(args)
        if not all(-count <= n < count for n in self.nondiff_argnums):
            raise GradientError(
                f"[{type(self).__name__}] nondiff_argnums of {self.__name__} must be positions of the {count} "
                f"arguments; got {self.nondiff_argnums}."
            )
        numbers = {n % count for n in self.nondiff_argnums}
        return [n in numbers for n in range(count)]


class custom_vjp(CustomDerivative):
    """Define the derivative of a function by the pair that you pass to :meth:`defvjp`.

    ``forward(*args)`` returns the result and any tree ``saved``. ``backward(saved, g)`` returns a tuple with the
    cotangent of each argument (None if it has none) from the cotangent ``g`` of the result. Without a gradient, ``fn``
    runs. Derivatives of higher order differentiate ``forward`` and ``backward``.

    Args:
        fn: the function.
        nondiff_argnums: the positions of arguments without a derivative, such as functions. ``forward`` gets all
            arguments. ``backward(*static, saved, g)`` gets these first, and returns cotangents only of the others.

    Example:
        >>> @rn.custom_vjp
        ... def cube(x):
        ...     return x**3
        >>> cube.defvjp(lambda x: (x**3, x), lambda x, g: (3 * x**2 * g,))
        >>> rn.grad(cube)(rn.asarray(2.0)).item()
        12.0
    """

    users_functions = ("fn", "_forward", "_backward")

    def __init__(self, fn: Callable[..., Any], nondiff_argnums: int | Iterable[int] = ()) -> None:
        super().__init__(fn, nondiff_argnums)
        self._forward: Forward | None = None
        self._backward: Backward | None = None

    def defvjp(self, forward: Forward, backward: Backward) -> None:
        """Set the derivative."""
        self._forward, self._backward = forward, backward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args = self.positional(args, kwargs)
        flat_args, _ = pytree.flatten(args)
        inputs = tuple(x.read() for x in flat_args if isinstance(x, ArrayMethods))
        level = highest(self.__name__, inputs)
        if not (RECORDING.get() and any(x.requires_grad for x in inputs)):
            return self.fn(*args) if level is None else self.at_level(level, args)
        self.require_derivative()
        trace = tracing.ACTIVE.trace
        if trace is not None:
            trace.custom_derivative = self.__name__
        result, residuals = self.forward(args)
        if level is not None:
            result = self.at_level(level, args)  # its components have their own derivatives
        saved = _each_tensor(residuals, lambda x: x.handle())  # as it is now, whatever is written to it later
        leaves, structure = pytree.flatten(result)
        outputs = [_detached(x) if isinstance(x, ArrayMethods) else x for x in leaves]
        for place, out in enumerate(outputs):
            if isinstance(out, Tensor) and out.dtype.is_inexact:
                out.requires_grad = True
                out._record = Record(None, inputs, {}, _Rule(self, args, saved, outputs, structure, place))
        return pytree.unflatten(structure, outputs)

    def at_level(self, level: Level, args: tuple[Any, ...]) -> Any:
        """Return the results on ``level``, the highest level of the arguments, without a tape of their handles."""
        return at_level(self, level, args)

    def derived(self, forward: Forward, backward: Backward) -> custom_vjp:
        """Return a function of the same name that computes ``forward`` and has the derivative ``backward``."""
        function = custom_vjp(functools.wraps(self.fn)(lambda *args: forward(*args)[0]))
        function.defvjp(forward, backward)
        return function

    def require_derivative(self) -> None:
        """Raise GradientError unless :meth:`defvjp` was called."""
        if self._forward is None or self._backward is None:
            raise GradientError(f"[custom_vjp] {self.__name__} must have a derivative; set it with defvjp().")

    def forward(self, args: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return the result, and what ``backward`` needs."""
        self.require_derivative()
        result: tuple[Any, Any] = self._forward(*args)  # type: ignore[misc]
        return result

    def pull(self, args: tuple[Any, ...], saved: Any, g: Any) -> list[Any]:
        """Return the cotangents of the tensors in ``args``, in their order."""
        static, others = self.divided(args)
        cotangents = self._backward(*static, saved, g)  # type: ignore[misc]
        if not isinstance(cotangents, tuple | list) or len(cotangents) != len(others):
            raise GradientError(
                f"[custom_vjp] the backward function of {self.__name__} must return {len(others)} cotangents, one "
                "for each argument (None for those without)."
            )
        answer: list[Any] = []
        for arg, cotangent in zip(args, self.merged(args, cotangents, [None] * len(static)), strict=True):
            leaves, structure = pytree.flatten(arg)
            if cotangent is None:
                theirs: list[Any] = [None] * len(leaves)
            else:
                theirs, shape = pytree.flatten(cotangent)
                if shape != structure:
                    raise GradientError(
                        f"[custom_vjp] the backward function of {self.__name__} must return a cotangent of the "
                        f"structure {structure!r} of its argument; got {shape!r}."
                    )
            answer += [c for x, c in zip(leaves, theirs, strict=True) if isinstance(x, ArrayMethods)]
        return answer


class _Rule:
    """The rule in the record of one output. The cotangents of the other outputs are zeros."""

    __slots__ = ("args", "function", "others", "place", "saved", "structure")

    def __init__(
        self,
        function: custom_vjp,
        args: tuple[Any, ...],
        saved: Any,
        outputs: Sequence[Any],
        structure: pytree.Structure,
        place: int,
    ) -> None:
        self.function = function
        self.args = args
        self.saved = saved
        self.others = [_detached(x) if isinstance(x, Tensor) else None for x in outputs]
        self.structure = structure
        self.place = place

    def __call__(self, g: Tensor, out: Tensor) -> list[Any]:
        cotangents = [
            g.handle() if i == self.place else x if x is None else zeros_for(x) for i, x in enumerate(self.others)
        ]
        is_differentiated = out.requires_grad  # the walk itself
        saved = _each_tensor(self.saved, lambda x: x.handle() if is_differentiated else x.untaped())
        return self.function.pull(self.args, saved, pytree.unflatten(self.structure, cotangents))


def _each_tensor(tree: Any, function: Callable[[Any], Tensor]) -> Any:
    """Return a tree with ``function`` of each tensor and Variable in it."""
    leaves, structure = pytree.flatten(tree)
    return pytree.unflatten(structure, [function(x.read()) if isinstance(x, ArrayMethods) else x for x in leaves])


def _detached(x: ArrayMethods[Tensor]) -> Tensor:
    """Return a new tensor with the value of ``x`` and without a tape."""
    tensor = x.read()
    if tensor._level is not None:
        return tensor.untaped()
    trace = tracing.ACTIVE.trace
    if trace is not None:
        return tensors.symbolic(tensors.node_of(tensor, trace))
    if tensor._storage is None:
        raise GradientError("[custom_vjp] a traced tensor was used after its trace ended.")
    return tensors.from_storage(tensor.aval, tensor._storage, *tensor._layout)
