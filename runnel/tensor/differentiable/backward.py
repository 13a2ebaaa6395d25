"""Compile and run the backward programs of one part of a derivative.

A training step of a small network spends most of a general backward pass in Python. So a pass through a single call
whose gradients all go to Variables is generated code (:class:`Direct`): it reads the addresses that the call kept, runs
the program, and sets or adds to ``.grad``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from runnel.backends import context
from runnel.compiler.entry import compile_graph
from runnel.compiler.options import Bindings, Options
from runnel.compiler.program import Program
from runnel.core.avals import ShapedArray
from runnel.core.lifetime import Weak
from runnel.graph.graph import Graph
from runnel.tensor.bound import Bound, Feed
from runnel.tensor.differentiable.derivative import Cotangent, Pullback
from runnel.tensor.differentiable.ends import OF_VARIABLES, End, Kind
from runnel.tensor.handle import plain
from runnel.tensor.tensor import Tensor, from_storage
from runnel.tensor.variable import STATE_VERSION


class CompiledBackward(NamedTuple):
    """A program for some results, with their numbers in the graph, in order, and their avals."""

    program: Program
    numbers: list[int]
    avals: list[ShapedArray]


class Backward:
    """Computes cotangents from kept values and cotangents, by a program for each selection of results."""

    def __init__(self, pullback: Pullback, options: Options) -> None:
        self._graph = pullback.gradients
        self.reads = pullback.reads  # the numbers of the kept values
        self._options = options
        self._context = context.current()
        self._compiled: dict[frozenset[int], CompiledBackward] = {}

    def run(self, addresses: Sequence[int], seeds: Sequence[Tensor], numbers: frozenset[int]) -> dict[int, Tensor]:
        """Run the program for the results ``numbers``, and return them by number. ``addresses`` are those of all kept
        values, and ``seeds`` the cotangents."""
        if not numbers:
            return {}
        compiled = self.program_for(numbers)
        program = compiled.program
        dense = [g if g.is_dense else plain(g).contiguous() for g in seeds]
        storages = [program.backend.allocate(nbytes) for nbytes in program.outputs]
        inputs = [addresses[i] for i in self.reads]
        inputs += [g.address for g in dense]
        program.run(inputs, [storage.address for storage in storages])
        results = zip(compiled.numbers, program.output_of, compiled.avals, strict=True)
        return {number: from_storage(aval, storages[place]) for number, place, aval in results}

    def program_for(self, numbers: frozenset[int]) -> CompiledBackward:
        """Return the program for these results, compiled at the first call."""
        compiled = self._compiled.get(numbers)
        if compiled is None:
            compiled = self._compiled[numbers] = self._make(numbers)
        return compiled

    def _make(self, selected: frozenset[int]) -> CompiledBackward:
        graph, numbers = self._graph, sorted(selected)
        outputs = [graph.outputs[i] for i in numbers]
        part = Graph(graph.inputs, outputs, {}, graph.name)
        program = compile_graph(part, Bindings(), self._context, self._options).program
        return CompiledBackward(program, numbers, [node.aval.on(self._context.device) for node in outputs])


SMALL: Final = 1024  # bytes: gradients up to this size share one block, since they are used together


class Direct:
    """A part of the tape whose readings are values of different Variables with different cotangents.

    ``owners`` are the Variables, with the numbers of their cotangents.
    """

    def __init__(self, backward: Backward, owners: Sequence[tuple[Weak, int]]) -> None:
        self._backward = backward
        self._owners = owners
        self._written: Callable[[Sequence[int], Tensor], None] | None = None

    def run(self, addresses: Sequence[int], g: Tensor) -> None:
        """Add to the gradients of the Variables that are alive, given the cotangent ``g`` of the beginning."""
        if self._written is None:
            self._written = self._write()
        self._written(addresses, g if g.is_dense else g.detach().contiguous())

    def _write(self) -> Callable[[Sequence[int], Tensor], None]:
        compiled = self._backward.program_for(frozenset(number for _, number in self._owners))
        program = compiled.program
        feeds = [*[Feed(f"A[{place}]") for place in self._backward.reads], Feed("g.address")]
        together = [place for place, nbytes in enumerate(program.outputs) if nbytes <= SMALL]
        bound = Bound(program, Tensor, feeds, compiled.avals, together=together)
        bound.namespace["STATE"] = STATE_VERSION
        lines: list[str] = []
        for i, (variable, number) in enumerate(self._owners):
            bound.namespace[f"variable{i}"] = variable
            lines += [
                *bound.tensor("t", compiled.numbers.index(number)),
                f"v = variable{i}()",
                "if v is None: pass",
                "elif v._grad is None: v._grad = t; STATE.grads += 1",
                "else: v.add_gradient(t)",
            ]
        written: Callable[[Sequence[int], Tensor], None] = bound.function(
            "backward(A, g)", "backward of a compiled function", then=lines
        )
        return written


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
