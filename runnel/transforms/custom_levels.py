"""``custom_vjp`` functions on tensors of a level: their components get the user-defined derivative, too.

Tangents come from the transpose of the backward function. A batch is a function of the stacked components, whose
backward function is the given one for all elements.
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
    """What is asked of a function with a derivative of its own."""

    fn: Callable[..., Any]

    def __call__(self, *args: Any) -> Any: ...

    def forward(self, args: tuple[Any, ...]) -> tuple[Any, Any]: ...

    def pull(self, args: tuple[Any, ...], saved: Any, g: Any) -> list[Any]: ...

    def derived(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> Callable[..., Any]: ...


def at_level(function: Custom, level: Any, args: tuple[Any, ...]) -> Any:
    """The results of ``function`` on ``level``, the highest of its arguments, without a tape of their handles."""
    return _forward(function, level, args) if isinstance(level, Forward) else _Batch(function, level, args).run()


def _tensors(tree: Any) -> list[Tensor]:
    return [x.read() for x in pytree.flatten(tree)[0] if isinstance(x, ArrayMethods)]


def _replaced(tree: Any, tensors: Sequence[Any]) -> Any:
    """``tree`` with other tensors in the places of its own."""
    leaves, structure = pytree.flatten(tree)
    rest = iter(tensors)
    return pytree.unflatten(structure, [next(rest) if isinstance(x, ArrayMethods) else x for x in leaves])


def _needs_tape(tensors: Sequence[Tensor]) -> bool:
    return RECORDING.get() and any(y.requires_grad for x in tensors for y in (x, *every_component(x)))


def _needs_derivative(tensors: Sequence[Tensor]) -> bool:
    """Whether levels or tapes further out may ask for the derivative by ``tensors``."""
    return any(x._level is not None or (x.requires_grad and RECORDING.get()) for x in tensors)


def _forward(function: Custom, level: Forward, args: tuple[Any, ...]) -> Any:
    inputs = _tensors(args)
    pairs = [level.split(x) for x in inputs]
    primals, tangents = [x for x, _ in pairs], [t for _, t in pairs]
    arguments = _replaced(args, primals)
    if all(t is None for t in tangents):
        result = function(*arguments)
        return _replaced(result, [level.lifted(x) for x in _tensors(result)])
    result, saved = function.forward(arguments)
    if _needs_tape(primals):
        result = function(*arguments)
    outs = _tensors(result)

    def pull(seeds: list[Tensor]) -> list[Any]:
        return function.pull(arguments, saved, _replaced(result, seeds))

    out_tangents = Transpose(pull, outs, primals).tangents(tangents)
    return _replaced(result, [level.dual(x, t) for x, t in zip(outs, out_tangents, strict=True)])


class _Batch:
    """The call for all elements of a batch, as a function of the components of its arguments."""

    def __init__(self, function: Custom, level: Batching, args: tuple[Any, ...]) -> None:
        self.function = function
        self.level = level
        self.args = args
        self.inputs = _tensors(args)
        self.pairs = [level.split(x) for x in self.inputs]
        self.result: Any = None
        self.residuals: Any = None

    def run(self) -> Any:
        if not _needs_derivative([x for x, _ in self.pairs]):
            return self.function.fn(*self.args)
        components = self.function.derived(self._forward, self._backward)(*(x for x, _ in self.pairs))
        return _replaced(self.result, [self.level.stack(x) for x in components])

    def _wrapped(self, level: Batching, components: Sequence[Tensor]) -> tuple[Any, ...]:
        pairs = zip(components, self.pairs, strict=True)
        lifted = [level.stack(x) if each else level.lifted(x) for x, (_, each) in pairs]
        wrapped: tuple[Any, ...] = _replaced(self.args, lifted)
        return wrapped

    def _forward(self, *components: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        with self.level:
            self.result, self.residuals = self.function.forward(self._wrapped(self.level, components))
            outs = [self.level.all_elements(x) for x in _tensors(self.result)]
            return outs, [*components, *(self.level.all_elements(x) for x in _tensors(self.residuals))]

    def _backward(self, saved: list[Tensor], gs: Sequence[Tensor]) -> list[Any]:
        """Cotangents of the components: of those that all elements share, the sum of the elements'."""
        count = len(self.inputs)
        level = self.level if self.level.is_open else Batching(self.level.size)
        with level:
            residuals = _replaced(self.residuals, [level.stack(x) for x in saved[count:]])
            args = self._wrapped(level, saved[:count])
            cotangents = self.function.pull(args, residuals, _replaced(self.result, [level.stack(g) for g in gs]))
            answer: list[Any] = []
            for g, (_, each) in zip(cotangents, self.pairs, strict=True):
                every = None if g is None else level.all_elements(asarray(g))
                answer.append(every if every is None or each else every.sum(0))
            return answer
