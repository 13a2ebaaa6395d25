"""What a call of a compiled function leaves for backward passes, and the tapes that its results get."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Sequence
from typing import Any, Final

from runnel.compile.differentiable.again import Again, Given
from runnel.compile.differentiable.derivative import Derivative, End, Kind
from runnel.compile.differentiable.record import PartRecord, Shape, stand_in
from runnel.compile.differentiable.segments import segments
from runnel.compile.late_tape import Rerun
from runnel.core.avals import aval
from runnel.core.dtypes import float32
from runnel.core.errors import CaptureWarning, GradientError
from runnel.core.lifetime import Weak
from runnel.ops.assembly import Piece
from runnel.tensor import tape
from runnel.tensor.grad_mode import recording
from runnel.tensor.holding import Hold
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import CLOCK, Pin, Variable

_NOBODY: Final = aval((), float32)
_FIRST: Final = End(Kind.PART, 0)


class Tapes:
    """Gives the results of one program their tape.

    ``variables`` are those of the program; ``again`` runs the function a second time.
    """

    def __init__(
        self,
        derivative: Derivative,
        variables: Sequence[Weak],
        name: str,
        again: Again,
        memory_budget: int | None,
    ) -> None:
        returned = {end for _, end in derivative.taped}
        former = derivative.former
        self.shapes = [
            Shape(i, part, returned, memory_budget, variables, former) for i, part in enumerate(derivative.parts)
        ]
        self.taped = derivative.taped
        self._is_one_part = [end for _, end in self.taped] == [_FIRST] and len(self.shapes) == 1
        self.former = former
        self.variables = variables
        self.name = name
        self.again = again
        self._told = False

    def attach(
        self,
        results: Sequence[Tensor],
        outside: Sequence[Tensor],
        given: tuple[Any, ...],
        inputs: tuple[Any, ...],
        addresses: Sequence[int],
        memory: tuple[Any, ...],
        pins: list[Pin],
        hold: Hold | None,
    ) -> None:
        """Have gradients of ``results`` (one for each of ``taped``) lead to Variables and the tensors ``outside``.

        ``given`` are function and arguments, and ``inputs`` as of ``again``. ``addresses`` are of what the derivative
        keeps, and ``memory`` keeps it; ``pins`` are the Variables' memory.
        """
        call = Call(self, outside, given, inputs, addresses, memory, pins, hold)
        if self._is_one_part:  # what follows, quickly
            (result,) = results
            result.requires_grad = True
            shape = self.shapes[0]
            result._record = PartRecord(call, shape, tuple([outside[x.number] for x in shape.given]))
            return
        roots: dict[End, Tensor] = {}
        for (_, end), result in zip(self.taped, results, strict=True):
            result.requires_grad = True
            if end.kind is Kind.OUTSIDE:
                _another_handle(result, outside[end.number])
            elif end.kind in (Kind.VARIABLE, Kind.FORMER):
                _another_handle(result, call.node(end))
            elif end in roots:
                _another_handle(result, roots[end])
            else:
                roots[end] = result
        for shape in self.shapes:
            end = End(Kind.PART, shape.number)
            root = roots.get(end)
            if root is None:
                root = roots[end] = stand_in(shape.value)
            read = [outside[x.number] if x.kind is Kind.OUTSIDE else roots[x] for x in shape.given]
            root._record = PartRecord(call, shape, tuple(read))

    def tell(self) -> None:
        """Say once that the function runs eagerly too."""
        if not self._told:
            self._told = True
            warnings.warn(
                f"[compile] '{self.name}' is differentiated more than once, and is run again eagerly for that. "
                "Differentiate inside of the compiled function to have all of it in its program.",
                CaptureWarning,
                stacklevel=2,
            )


class Call:
    """One call."""

    __slots__ = (
        "__weakref__",
        "_nodes",
        "addresses",
        "given",
        "hold",
        "inputs",
        "memory",
        "outside",
        "pins",
        "tapes",
        "writes",
    )

    def __init__(
        self,
        tapes: Tapes,
        outside: Sequence[Tensor],
        given: tuple[Any, ...],
        inputs: tuple[Any, ...],
        addresses: Sequence[int],
        memory: tuple[Any, ...],
        pins: list[Pin],
        hold: Hold | None,
    ) -> None:
        self.tapes = tapes
        self.outside = outside
        self.given = given  # as of Given
        self.inputs = inputs
        self.addresses = addresses
        self.memory = memory
        self.pins = pins
        self.hold = hold
        self.writes = CLOCK.writes
        self._nodes: dict[End, Tensor] = {}

    def node(self, end: End) -> Tensor:
        """What the tape calls a value of a Variable."""
        found = self._nodes.get(end)
        if found is None:
            found = self._nodes[end] = self._former(end.number) if end.kind is Kind.FORMER else self._node(end.number)
        return found

    def _former(self, number: int) -> Tensor:
        return self._leaf_of(self.tapes.variables[self.tapes.former[number]]())

    def _node(self, number: int) -> Tensor:
        if self.hold is not None and number in self.hold.handles:
            return self.hold.handles[number]
        variable = self.tapes.variables[number]()
        if variable is not None:
            node: Tensor = variable.node()
            if node.requires_grad and node._storage is self.pins[number].storage:
                return node
        return self._leaf_of(variable)

    @staticmethod
    def _leaf_of(variable: Variable | None) -> Tensor:
        """A node of the tape whose gradient is for ``variable``, if it is still there."""
        if variable is None:
            return stand_in(_NOBODY)
        node = stand_in(variable.aval)
        node._leaf = weakref.ref(variable)
        return node

    def rerun(self, number: int, g: Any) -> Rerun:
        """The cotangents of a part's readings, with a tape, if somebody asks for that."""
        return Rerun(self.tapes.name, lambda: self._again(number, g), self._is_unchanged)

    def _is_unchanged(self) -> bool:
        return self.writes == CLOCK.writes and self.tapes.again.is_possible(Given(*self.given), self.inputs)

    def _again(self, number: int, g: Any) -> list[Tensor | None]:
        tapes = self.tapes
        refusal = tapes.again.refusal
        if refusal:
            raise GradientError(
                f"[backward] '{tapes.name}' {refusal}, so it cannot be run again to differentiate its gradients; "
                "differentiate inside of the compiled function, or call the function itself, not compiled."
            )
        tapes.tell()
        outputs = tapes.again.outputs(Given(*self.given))
        with recording(True):
            ends = {id(tape.version(x)) for x in self.outside}
            found = segments([outputs[place].read() for place, _ in tapes.taped], ends)[number]
            given = [tape.ResultCotangent(i, x) for i, x in g.items()] if isinstance(g, dict) else [g]
            reached = found.stretch.cotangents([(found.root, x) for x in given], create_graph=True)
        return [x.g if isinstance(x, (Piece, tape.ResultCotangent)) else x for x in reached]


def _another_handle(result: Tensor, of: Tensor) -> None:
    """Make ``result`` another handle of the node of ``of``; the tape sees no difference."""
    result._record = tape.Record(None, (of,), {}, lambda g, out: (g,))
    result._is_rebound, result._version = True, tape.version(of)
