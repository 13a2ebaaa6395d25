"""Compile and run the backward programs of one part of a derivative.

A training step of a small network spends most of a general backward pass in Python. A pass through a single call
whose gradients all go to Variables therefore has specialized code (:class:`Direct`), which sets or adds to ``.grad``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from runnel.backends import context
from runnel.compiler.entry import compile_graph
from runnel.compiler.options import Bindings, Options
from runnel.core.lifetime import Weak
from runnel.graph.graph import Graph
from runnel.tensor.bound import Bound, Feed, any_layout
from runnel.tensor.dense import dense
from runnel.tensor.differentiable.derivative import Cotangent, Pullback
from runnel.tensor.differentiable.segments import OF_VARIABLES, End, Kind
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import STATE_VERSION

SMALL: Final = 1024  # bytes: gradients up to this size share one block, since they are used together
_NAME: Final = "backward of a compiled function"


class Backward:
    """Computes cotangents from kept values and cotangents, by a program for each selection of results."""

    def __init__(self, pullback: Pullback, options: Options) -> None:
        self._graph = pullback.gradients
        self._reads = pullback.reads  # the numbers of the kept values
        self._seeds = [f"g{i}" for i in range(len(self._graph.inputs) - len(self._reads))]
        self._options = options
        self._context = context.current()
        self._bound: dict[frozenset[int], Bound] = {}
        self._calls: dict[frozenset[int], Callable[..., dict[int, Tensor]]] = {}

    def run(self, addresses: Sequence[int], seeds: Sequence[Tensor], numbers: frozenset[int]) -> dict[int, Tensor]:
        """Run the program for the results ``numbers``, and return them by number.

        ``addresses`` are the addresses of all kept values, and ``seeds`` the cotangents.
        """
        if not numbers:
            return {}
        call = self._calls.get(numbers)
        if call is None:
            results = [f"r{i}" for i in range(len(numbers))]
            bound = self.bound(numbers)
            returned = ", ".join(f"{n}: {name}" for n, name in zip(sorted(numbers), results, strict=True))
            lines = [line for i, name in enumerate(results) for line in bound.tensor(name, i)]
            call = self._calls[numbers] = self.function(bound, [*lines, f"return {{{returned}}}"])
        return call(addresses, *seeds)

    def bound(self, selected: frozenset[int]) -> Bound:
        """Return the program for these results, in the order of their numbers; it is compiled at the first call."""
        bound = self._bound.get(selected)
        if bound is None:
            graph = self._graph
            outputs = [graph.outputs[i] for i in sorted(selected)]
            part = Graph(graph.inputs, outputs, {}, graph.name)
            program = compile_graph(part, Bindings(), self._context, self._options).program
            feeds = [Feed(f"A[{place}]") for place in self._reads]
            for i, name in enumerate(self._seeds, len(feeds)):
                feeds.append(any_layout(i, name, graph.inputs[i].aval))
            together = [place for place, nbytes in enumerate(program.outputs) if nbytes <= SMALL]
            results = [x.aval.on(self._context.device) for x in outputs]
            bound = self._bound[selected] = Bound(program, Tensor, feeds, results, together=together)
            bound.namespace["dense"] = dense
        return bound

    def function(self, bound: Bound, lines: Sequence[str]) -> Callable[..., Any]:
        """Return the function of addresses and cotangents that runs the program and then ``lines``."""
        call: Callable[..., Any] = bound.function(f"backward({', '.join(['A', *self._seeds])})", _NAME, then=lines)
        return call


class Direct:
    """A part of the tape whose readings are values of different Variables with different cotangents.

    ``owners`` are the Variables, with the numbers of their cotangents.
    """

    def __init__(self, backward: Backward, owners: Sequence[tuple[Weak, int]]) -> None:
        self._backward = backward
        self._owners = owners
        self._call: Callable[[Sequence[int], Tensor], None] | None = None

    def run(self, addresses: Sequence[int], g: Tensor) -> None:
        """Add to the gradients of the Variables that are alive, given the cotangent ``g`` of the beginning."""
        if self._call is None:
            self._call = self._written()
        self._call(addresses, g)

    def _written(self) -> Callable[[Sequence[int], Tensor], None]:
        numbers = frozenset(number for _, number in self._owners)
        bound, places = self._backward.bound(numbers), sorted(numbers)
        bound.namespace["STATE"] = STATE_VERSION
        lines: list[str] = []
        for i, (variable, number) in enumerate(self._owners):
            bound.namespace[f"variable{i}"] = variable
            lines += [
                *bound.tensor("t", places.index(number)),
                f"v = variable{i}()",
                "if v is None: pass",
                "elif v._grad is None: v._grad = t; STATE.grads += 1",
                "else: v.add_gradient(t)",
            ]
        return self._backward.function(bound, lines)


def direct(
    ends: Sequence[End],
    cotangents: Sequence[Cotangent | None],
    backward: Backward,
    variables: Sequence[Weak],
    former: Sequence[int],
) -> Direct | None:
    """Return the direct way from a part to its Variables; None if the part is not as simple as :class:`Direct` says."""
    numbers = [c.output for c in cotangents if c is not None and c.wrapped is None]
    is_simple = all(end.kind in OF_VARIABLES for end in ends) and len(numbers) == len(ends)
    if not is_simple or len(set(ends)) < len(ends) or len(set(numbers)) < len(numbers):
        return None
    owners = [variables[former[end.number] if end.kind is Kind.FORMER else end.number] for end in ends]
    return Direct(backward, list(zip(owners, numbers, strict=True)))
