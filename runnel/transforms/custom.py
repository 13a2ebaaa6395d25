"""``custom_vjp``: a function with a user-defined derivative, by its backward function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from runnel.core import pytree
from runnel.core.errors import GradientError
from runnel.core.references import FunctionLike
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
    """A function and its user-defined derivative. ``users_functions`` are the attributes with what users gave."""

    users_functions: ClassVar[tuple[str, ...]] = ("fn",)
    __wrapped__: Callable[..., Any]

    def __init__(self, fn: Callable[..., Any], nondiff_argnums: int | Iterable[int] = ()) -> None:
        self.fn = fn
        self.nondiff_argnums = as_shape(type(self).__name__, nondiff_argnums)
        self.__name__ = self.__qualname__ = type(fn).__name__  # partial functions have none
        functools.update_wrapper(self, fn)  # type: ignore[arg-type]

    def positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments without names; defaults are filled in where there were some."""
        if not kwargs:
            self.are_static(args)
            return args
        bound = inspect.signature(self.__wrapped__).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise GradientError(
                f"[{type(self).__name__}] {self.__name__} is called with the keyword-only arguments "
                f"{', '.join(bound.kwargs)}; its derivative takes arguments by position."
            )
        return bound.args

    def divided(self, args: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
        """The arguments that have no derivative, and the others."""
        static: list[Any] = []
        others: list[Any] = []
        for x, is_static in zip(args, self.are_static(args), strict=True):
            (static if is_static else others).append(x)
        return static, others

    def merged(self, args: tuple[Any, ...], others: Iterable[Any], static: Iterable[Any]) -> list[Any]:
        """Something for each argument, from what there is for those with a derivative and for those without."""
        sources = iter(others), iter(static)
        return [next(sources[is_static]) for is_static in self.are_static(args)]

    def are_static(self, args: tuple[Any, ...]) -> list[bool]:
        """Whether each argument is one of those without a derivative."""
        count = len(args)
        if not all(-count <= n < count for n in self.nondiff_argnums):
            raise GradientError(
                f"[{type(self).__name__}] nondiff_argnums {self.nondiff_argnums} of {self.__name__} name an argument "
                f"that a call with {count} does not have."
            )
        numbers = {n % count for n in self.nondiff_argnums}
        return [n in numbers for n in range(count)]


class custom_vjp(CustomDerivative):
    """Decorator: ``fn`` computes; where a gradient is needed, the pair given to :meth:`defvjp` takes over::

        @custom_vjp
        def cube_root(x): ...

        cube_root.defvjp(forward, backward)

    ``forward(*args)`` gives the result and whatever ``backward(saved, g)`` needs to turn the result's cotangent into a
    tuple of cotangents, one for each argument (None for those without). Derivatives of higher order differentiate both.

    The arguments numbered ``nondiff_argnums`` (functions, say) have no derivative: ``forward`` is given all arguments
    where they are, ``backward(*those, saved, g)`` gets them in front and gives cotangents of the others alone.
    """

    users_functions = ("fn", "_forward", "_backward")

    def __init__(self, fn: Callable[..., Any], nondiff_argnums: int | Iterable[int] = ()) -> None:
        super().__init__(fn, nondiff_argnums)
        self._forward: Forward | None = None
        self._backward: Backward | None = None

    def defvjp(self, forward: Forward, backward: Backward) -> None:
        """Give the derivative."""
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
        """The results on ``level``, the highest of the arguments', without a tape of their handles."""
        return at_level(self, level, args)

    def derived(self, forward: Forward, backward: Backward) -> custom_vjp:
        """A function of the same name with another derivative, which computes as ``forward`` does."""
        function = custom_vjp(functools.wraps(self.fn)(lambda *args: forward(*args)[0]))
        function.defvjp(forward, backward)
        return function

    def require_derivative(self) -> None:
        """GradientError unless :meth:`defvjp` was called."""
        if self._forward is None or self._backward is None:
            raise GradientError(f"[custom_vjp] {self.__name__} has no derivative yet; give it one with defvjp().")

    def forward(self, args: tuple[Any, ...]) -> tuple[Any, Any]:
        """The result, and what backward needs."""
        self.require_derivative()
        result: tuple[Any, Any] = self._forward(*args)  # type: ignore[misc]
        return result

    def pull(self, args: tuple[Any, ...], saved: Any, g: Any) -> list[Any]:
        """The cotangents of the tensors in ``args``, in their order."""
        if self._backward is None:
            raise GradientError(f"[custom_vjp] {self.__name__} has no derivative.")
        static, others = self.divided(args)
        cotangents = self._backward(*static, saved, g)
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
                        f"[custom_vjp] a cotangent returned by the backward function of {self.__name__} has another "
                        "structure than its argument."
                    )
            answer += [c for x, c in zip(leaves, theirs, strict=True) if isinstance(x, ArrayMethods)]
        return answer


class _Rule:
    """What the record of one output does with its cotangent; the other outputs' cotangents are zeros."""

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
    """A tree with ``function`` of each tensor and Variable in it."""
    leaves, structure = pytree.flatten(tree)
    return pytree.unflatten(structure, [function(x.read()) if isinstance(x, ArrayMethods) else x for x in leaves])


def _detached(x: ArrayMethods[Tensor]) -> Tensor:
    """A tensor of its own with the value of ``x`` and no tape."""
    tensor = x.read()
    if tensor._level is not None:
        return tensor.untaped()
    trace = tracing.ACTIVE.trace
    if trace is not None:
        return tensors.symbolic(tensors.node_of(tensor, trace))
    if tensor._storage is None:
        raise GradientError("[custom_vjp] a traced tensor was used after its trace ended.")
    return tensors.from_storage(tensor.aval, tensor._storage, *tensor._layout)
