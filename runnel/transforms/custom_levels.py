"""``custom_vjp`` functions of tensors of a level, whose components also get the user-defined derivative.

Tangents come from the transpose of the backward function. A batch is a function of the stacked components; its backward
function runs the user's for all elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from runnel.core import pytree
from runnel.tensor.batching import Batching
from runnel.tensor.creation import asarray
from runnel.tensor.forward import Forward, Transpose
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.levels import every_component
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor


class Custom(Protocol):
    """A function with a user-defined derivative, as levels use it."""

    fn: Callable[..., Any]

    def __call__(self, *args: Any) -> Any: ...

    def forward(self, args: tuple[Any, ...]) -> tuple[Any, Any]: ...

    def pull(self, args: tuple[Any, ...], saved: Any, g: Any) -> list[Any]: ...

    def derived(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> Callable[..., Any]: ...


def at_level(function: Custom, level: Any, args: tuple[Any, ...]) -> Any:
    """Return the results on ``level``, the highest level of the arguments, without a tape of their handles."""
    return _forward(function, level, args) if isinstance(level, Forward) else _Batch(function, level, args).run()


def tensors_in(tree: Any) -> list[Tensor]:
    """Return the tensors and the values of Variables in a tree."""
    return [x.read() for x in pytree.flatten(tree)[0] if isinstance(x, ArrayMethods)]


def with_tensors(tree: Any, tensors: Sequence[Any]) -> Any:
    """Return ``tree`` with other tensors in place of its tensors and Variables."""
    leaves, structure = pytree.flatten(tree)
    rest = iter(tensors)
    return pytree.unflatten(structure, [next(rest) if isinstance(x, ArrayMethods) else x for x in leaves])


def _needs_tape(tensors: Sequence[Tensor]) -> bool:
    return RECORDING.get() and any(y.requires_grad for x in tensors for y in (x, *every_component(x)))


def _forward(function: Custom, level: Forward, args: tuple[Any, ...]) -> Any:
    inputs = tensors_in(args)
    pairs = [level.split(x) for x in inputs]
    primals, tangents = [x for x, _ in pairs], [t for _, t in pairs]
    arguments = with_tensors(args, primals)
    if all(t is None for t in tangents):
        result = function(*arguments)
        return with_tensors(result, [level.lifted(x) for x in tensors_in(result)])
    result, saved = function.forward(arguments)
    if _needs_tape(primals):
        result = function(*arguments)
    outs = tensors_in(result)

    def pull(seeds: list[Tensor]) -> list[Any]:
        return function.pull(arguments, saved, with_tensors(result, seeds))

    out_tangents = Transpose(pull, outs, primals).tangents(tangents)
    return with_tensors(result, [level.dual(x, t) for x, t in zip(outs, out_tangents, strict=True)])


class Batch:
    """A call for all elements of a batch, as a function of the components of its arguments."""

    def __init__(self, level: Batching, args: tuple[Any, ...]) -> None:
        self.level = level
        self.args = args
        self.pairs = [level.split(x) for x in tensors_in(args)]
        self.components = [x for x, _ in self.pairs]
        self.result: Any = None

    def needs_derivative(self) -> bool:
        """Return whether an outer level or tape may need the derivative."""
        return any(x._level is not None or (x.requires_grad and RECORDING.get()) for x in self.components)

    def wrapped(self, level: Batching, components: Sequence[Tensor]) -> tuple[Any, ...]:
        """Return the arguments with these components."""
        pairs = zip(components, self.pairs, strict=True)
        lifted = [level.stack(x) if each else level.lifted(x) for x, (_, each) in pairs]
        wrapped: tuple[Any, ...] = with_tensors(self.args, lifted)
        return wrapped

    def open_level(self) -> Batching:
        """Return the level, or an equal one if it has ended."""
        return self.level if self.level.is_open else Batching(self.level.size)

    def stacked(self, components: Sequence[Tensor]) -> Any:
        """Return the result with these values of all elements."""
        return with_tensors(self.result, [self.level.stack(x) for x in components])


class _Batch(Batch):
    """The call of a ``custom_vjp`` function for all elements."""

    def __init__(self, function: Custom, level: Batching, args: tuple[Any, ...]) -> None:
        super().__init__(level, args)
        self.function = function
        self.residuals: Any = None

    def run(self) -> Any:
        if not self.needs_derivative():
            return self.function.fn(*self.args)
        return self.stacked(self.function.derived(self._forward, self._backward)(*self.components))

    def _forward(self, *components: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        with self.level:
            self.result, self.residuals = self.function.forward(self.wrapped(self.level, components))
            outs = [self.level.all_elements(x) for x in tensors_in(self.result)]
            return outs, [*components, *(self.level.all_elements(x) for x in tensors_in(self.residuals))]

    def _backward(self, saved: list[Tensor], gs: Sequence[Tensor]) -> list[Any]:
        """Return the cotangents of the components, summed over the elements for shared ones."""
        count = len(self.components)
        level = self.open_level()
        with level:
            residuals = with_tensors(self.residuals, [level.stack(x) for x in saved[count:]])
            args = self.wrapped(level, saved[:count])
            cotangents = self.function.pull(args, residuals, with_tensors(self.result, [level.stack(g) for g in gs]))
            answer: list[Any] = []
            for g, (_, each) in zip(cotangents, self.pairs, strict=True):
                every = None if g is None else level.all_elements(asarray(g))
                answer.append(every if every is None or each else every.sum(0))
            return answer
