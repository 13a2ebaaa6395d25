"""Gradients of declared tensors as declared tensors: one operation for each differentiated call.

A gradient can be differentiated like a call, because it is a call too: of another function's pullback.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final

from runnel import ops
from runnel.core import pytree
from runnel.core.errors import ArgumentError, GradientError, MissingRuleError
from runnel.declarative.calls import Call, declared_call
from runnel.declarative.graph import whole
from runnel.declarative.inference import require_derivative
from runnel.declarative.operation import Declared, Operation, Run, Static, closure, ordered
from runnel.declarative.state import Assign
from runnel.tensor.creation import asarray
from runnel.tensor.tensor import Tensor
from runnel.transforms.gradients import vjp


class Gradient(Operation):
    """The cotangents of some inputs of ``of``, computed from its inputs and the cotangents of some outputs.

    ``through`` has the numbers of these outputs, ``asked`` of the inputs, one for each output of this operation.
    """

    __slots__ = ("asked", "of", "through")
    kind = "gradient"

    def __init__(
        self,
        of: Call | Gradient,
        through: Sequence[int],
        cotangents: Sequence[Declared],
        asked: Sequence[int],
        name: str = "",
    ) -> None:
        self.of: Final = of
        self.through: Final = tuple(through)
        self.asked: Final = tuple(asked)
        statics = [Static(of.inputs[i].static.shape, of.inputs[i].static.dtype) for i in asked]
        try:
            require_derivative(self._of_ones, self.identity, [x.static for x in of.inputs], self.hints)
        except (GradientError, MissingRuleError) as error:
            reason = f"no gradient passes through '{of.name}', declared at {of.where}: {error}"
            raise type(error)(f"[gradients] {reason}") from None
        super().__init__(of.graph, name or f"gradients/{of.name}", (*of.inputs, *cotangents), statics)

    def _of_ones(self, *values: Any) -> list[Any]:
        """Return the cotangents for output cotangents of ones."""
        leaves, pull = pullback(self.of.evaluate, values)
        return self._pulled(pull, [ops.ones_like(leaves[i]) for i in self.through])

    @property
    def identity(self) -> Hashable:
        """Key that distinguishes :meth:`evaluate` from the functions of other operations."""
        return Gradient, self.of.identity, self.through, self.asked

    @property
    def hints(self) -> tuple[int, ...]:
        """Sizes that unknown axes of the inputs may have."""
        return self.of.hints

    def evaluate(self, *values: Any) -> list[Any]:
        """Return the cotangents as a function of the inputs."""
        count = len(self.of.inputs)
        _, pull = pullback(self.of.evaluate, values[:count])
        return self._pulled(pull, values[count:])

    def compute(self, values: Sequence[Any], run: Run) -> Sequence[Any]:
        pull = run.pullback(self.of)
        if pull is None:
            return self.evaluate(*values)
        return self._pulled(pull, values[len(self.of.inputs) :])

    def _pulled(self, pull: Callable[..., Any], cotangents: Sequence[Any]) -> list[Any]:
        every = pull(dict(zip(self.through, cotangents, strict=True)))
        return [every[i] for i in self.asked]

    @property
    def label(self) -> str:
        return f"gradient of {self.of.label}"

    def attributes(self) -> dict[str, Any]:
        return {"of": self.of.name, "through": list(self.through), "asked": list(self.asked)}


Pullback = Callable[[dict[int, Any]], list[Any]]


def pullback(function: Callable[..., Any], values: Sequence[Any]) -> tuple[list[Any], Pullback]:
    """Return the leaves of ``function(*values)`` and a function from their cotangents, by number, to the values'.

    The cotangent is None for values that are not floating.
    """
    floating = [i for i, x in enumerate(values) if x.dtype.is_float]

    def of_floating(*some: Tensor) -> list[Tensor]:
        every = list(values)
        for i, x in zip(floating, some, strict=True):
            every[i] = x
        return [x if isinstance(x, Tensor) else asarray(x) for x in pytree.flatten(function(*every))[0]]

    leaves, pull = vjp(of_floating, *[values[i] for i in floating])

    def pulled(cotangents: dict[int, Any]) -> list[Any]:
        seeds = [cotangents[i] if i in cotangents else ops.zeros_like(x) for i, x in enumerate(leaves)]
        every: list[Any] = [None] * len(values)
        for i, x in zip(floating, pull(seeds), strict=True):
            every[i] = x
        return every

    return leaves, pulled


@whole
def gradients(ys: Any, xs: Any, grad_ys: Any = None) -> list[Declared | None]:
    """Return the derivatives of the sum of all elements of ``ys`` by each of ``xs``, as declared tensors.

    Args:
        ys: a tensor, or several.
        xs: a tensor, or several; variables are tensors too.
        grad_ys: cotangents of ``ys``, ones by default: the derivative of Σ grad_y · y.

    Returns:
        A list with an entry for each of ``xs``, None if ``ys`` do not depend on it. Dependence through comparisons,
        integers and ``detach()`` does not count.

    Raises:
        GradientError: an operation in between, such as a ``while_loop``, has no derivative. Nothing is declared.
    """
    tops = _each("ys", ys)
    graph = tops[0].operation.graph
    bottoms = [graph.capture(x) for x in _each("xs", xs)]
    for y in tops:
        graph.require(y)
    seeds = _seeds(tops, grad_ys)
    between = _between([y.operation for y in tops], bottoms)
    totals: dict[Declared, Declared] = {}
    with graph:
        for y, seed in zip(tops, seeds, strict=True):
            _add(totals, y, seed)
        for operation in reversed(ordered(between)):
            _pass_through(operation, between, bottoms, totals)
    return [totals.get(x) for x in bottoms]


def _pass_through(
    operation: Operation, between: set[Operation], bottoms: Sequence[Declared], totals: dict[Declared, Declared]
) -> None:
    """Add the cotangents of the inputs of ``operation`` to ``totals``."""
    through = [x for x in operation.outputs if x in totals]
    if not through:
        return
    if isinstance(operation, Assign):
        _add(totals, operation.inputs[0], totals[operation.outputs[0]])
    elif isinstance(operation, (Call, Gradient)):
        ends = set(bottoms)
        asked = [
            i for i, x in enumerate(operation.inputs)
            if (x in ends or x.operation in between) and (x.static.dtype is None or x.static.dtype.is_float)
        ]  # fmt: skip
        if not asked:
            return
        cotangents = [totals[x] for x in through]
        slopes = Gradient(operation, [x.index for x in through], cotangents, asked)
        for i, g in zip(asked, slopes.outputs, strict=True):
            _add(totals, operation.inputs[i], g)


def _between(tops: Iterable[Operation], bottoms: Iterable[Declared]) -> set[Operation]:
    """Return the operations that ``tops`` need and from which a path of inputs leads to ``bottoms``."""
    ends = {x.operation for x in bottoms}
    reaching: set[Operation] = set()
    for operation in ordered(closure(tops)):
        is_stopped = isinstance(operation, Call) and operation.function is ops.stop_gradient
        if operation in ends or (any(x.operation in reaching for x in operation.inputs) and not is_stopped):
            reaching.add(operation)
    return reaching


def _add(totals: dict[Declared, Declared], x: Declared, g: Declared) -> None:
    totals[x] = declared_call(ops.add, (totals[x], g), {}, "gradients/add") if x in totals else g


def _each(name: str, x: Any) -> list[Declared]:
    every = list(x) if isinstance(x, (list, tuple)) else [x]
    for one in every:
        if not isinstance(one, Declared):
            raise ArgumentError(f"[gradients] {name} must be declared tensors; got {type(one).__name__}.")
    if not every:
        raise ArgumentError(f"[gradients] {name} are empty; give at least one tensor.")
    return every


def _seeds(tops: Sequence[Declared], grad_ys: Any) -> list[Declared]:
    """Return the cotangents of ``tops``."""
    asked: list[Any] = (
        [None] * len(tops) if grad_ys is None else list(grad_ys) if isinstance(grad_ys, (list, tuple)) else [grad_ys]
    )
    if len(asked) != len(tops):
        raise ArgumentError(f"[gradients] there are {len(tops)} ys, and {len(asked)} grad_ys.")
    cotangents = []
    for y, seed in zip(tops, asked, strict=True):
        if y.static.dtype is not None and not y.static.dtype.is_float:
            raise GradientError(f"[gradients] '{y.name}' is {y.static}; only floating tensors have gradients.")
        with y.operation.graph:
            if seed is None:
                cotangents.append(declared_call(ops.ones_like, (y,), {}, "gradients/ones_like"))
            else:
                seed = seed if isinstance(seed, Declared) else asarray(seed)
                cotangents.append(declared_call(_like, (seed, y), {}, "gradients/seed"))
    return cotangents


def _like(seed: Tensor, y: Tensor) -> Tensor:
    """Return a given cotangent in the shape and dtype of its tensor."""
    return ops.cast(ops.broadcast_to(seed, y.shape), y.dtype)
