"""Keep the residuals of one differentiable call, and attach the tape to its results."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, Final

from runnel.backends import context
from runnel.backends.host.memory import Storage
from runnel.backends.host.state import StateLock
from runnel.compiler.entry import CompiledGraph
from runnel.compiler.options import Options
from runnel.core.errors import CaptureWarning
from runnel.core.lifetime import Weak
from runnel.graph.graph import Graph
from runnel.graph.node import InputKind, Value
from runnel.tensor import tensor as tensors
from runnel.tensor.differentiable.derivative import Derivative, as_computed
from runnel.tensor.differentiable.ends import OF_VARIABLES, End, Kind
from runnel.tensor.differentiable.record import PartRecord, Shape, stand_in
from runnel.tensor.handle import Record, passed_on, version
from runnel.tensor.holding import Hold, ReadVariables
from runnel.tensor.pin import Pin
from runnel.tensor.tensor import Tensor

_FIRST: Final = End(Kind.PART, 0)


class Tapes:
    """Gives the results of one program their tape. ``variables`` are those of the program, with their nodes."""

    def __init__(
        self, derivative: Derivative, variables: Sequence[Weak], nodes: Sequence[Value], name: str, options: Options
    ) -> None:
        returned = {end for _, end in derivative.taped}
        self.derivative = derivative
        self.shapes = [
            Shape(i, part, returned, options, variables, derivative.former) for i, part in enumerate(derivative.parts)
        ]
        self.variables = variables
        self.numbers = {node: i for i, node in enumerate(nodes)}
        self.avals = [node.aval for node in nodes]
        self.name = name
        self._is_one_part = [end for _, end in derivative.taped] == [_FIRST] and len(self.shapes) == 1
        self.is_reported = False
        self.is_composition = False  # called eagerly: it runs op by op at first, and so do derivatives of its gradients

    def attach(self, results: Sequence[Tensor], call: Call) -> None:
        """Have gradients of ``results`` (one for each that is taped) lead to Variables and the tensors outside."""
        outside = call.outside
        if self._is_one_part:  # what follows, quickly
            (result,) = results
            result.requires_grad = True
            shape = self.shapes[0]
            result._record = PartRecord(call, shape, tuple([outside[x.number] for x in shape.ends]))
            return
        roots: dict[End, Tensor] = {}
        for (_, end), result in zip(self.derivative.taped, results, strict=True):
            result.requires_grad = True
            if end.kind is Kind.OUTSIDE:
                _another_handle(result, outside[end.number])
            elif end.kind in OF_VARIABLES:
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
            read = [outside[x.number] if x.kind is Kind.OUTSIDE else roots[x] for x in shape.ends]
            root._record = PartRecord(call, shape, tuple(read))

    def tell(self) -> None:
        """Say once that derivatives of gradients run op by op."""
        if not (self.is_reported or self.is_composition):
            self.is_reported = True
            warnings.warn(
                f"[compile] gradients of '{self.name}' are differentiated outside of it, which runs op by op. "
                "Differentiate inside of the compiled function to have all of it in its program.",
                CaptureWarning,
                stacklevel=2,
            )


class Call:
    """One call: the tensors ``outside`` that gradients lead to; the ``addresses`` of what the derivative keeps, and the
    ``memory`` that it lies in; the Variables' memory, ``pins``, with a ``hold`` on what is read of it; and, should the
    tape be made anew, the other ``inputs`` that this reads: numbers, and of tensors storage and layout."""

    __slots__ = ("__weakref__", "_known", "_nodes", "addresses", "hold", "inputs", "memory", "outside", "pins", "tapes")

    def __init__(
        self,
        tapes: Tapes,
        outside: Sequence[Tensor],
        inputs: tuple[Any, ...],
        addresses: Sequence[int],
        memory: tuple[Storage, ...],
        pins: Sequence[Pin],
        hold: Hold | None,
    ) -> None:
        self.tapes = tapes
        self.outside = outside
        self.inputs = inputs
        self.addresses = addresses
        self.memory = memory
        self.pins = pins
        self.hold = hold
        self._nodes: dict[End, Tensor] = {}
        self._known: dict[Value, Tensor] | None = None

    def node(self, end: End) -> Tensor:
        """What the tape calls a value of a Variable."""
        node = self._nodes.get(end)
        if node is None:
            node = self._nodes[end] = self._former(end.number) if end.kind is Kind.FORMER else self._node(end.number)
        return node

    def _former(self, number: int) -> Tensor:
        return self._leaf(self.tapes.derivative.former[number])

    def _node(self, number: int) -> Tensor:
        if self.hold is not None and number in self.hold.handles:
            return self.hold.handles[number]
        variable = self.tapes.variables[number]()
        if variable is not None:
            node: Tensor = variable.node()
            if node.requires_grad and self.pins[number].holds(node):
                return node
        return self._leaf(number)

    def _leaf(self, number: int) -> Tensor:
        """A node of the tape whose gradient is for a Variable, if it is still there."""
        variable = self.tapes.variables[number]()
        node = stand_in(self.tapes.avals[number])
        if variable is not None:
            node._leaf = weakref.ref(variable)
        return node

    def known(self) -> dict[Value, Tensor]:
        """Values that the call has kept, for making the tape anew."""
        if self._known is None:
            derivative = self.tapes.derivative
            known: dict[Value, Tensor] = {}
            own = set(derivative.residuals)
            for x, stored, address in zip(derivative.saved, derivative.stored, self.addresses, strict=True):
                is_read = x in self.tapes.numbers and x not in own
                known[x] = (
                    self._variable(x) if is_read else as_computed(x, stored, self._stored_tensor(stored, address))
                )
            inputs = iter(self.inputs)
            for x in derivative.inputs:
                if x.kind is InputKind.VARIABLE:
                    known[x] = self._variable(x)
                elif x.kind is InputKind.SCALAR:
                    known[x] = tensors.constant(next(inputs), x.aval.dtype)
                else:
                    storage, layout = next(inputs), next(inputs)
                    known[x] = tensors.from_storage(x.aval, storage, *layout)
            self._known = known
        return self._known

    def _stored_tensor(self, stored: Value, address: int) -> Tensor:
        """The value at an address in what the call keeps."""
        for storage in self.memory:
            offset = address - storage.address
            if 0 <= offset < max(storage.nbytes, 1):
                return tensors.from_storage(stored.aval, storage, offset // stored.aval.dtype.itemsize)
        raise LookupError(f"nothing is kept at {address:#x}")

    def _variable(self, node: Value) -> Tensor:
        """The value of a Variable that the call has left as it was."""
        number = self.tapes.numbers[node]
        pin, variable = self.pins[number], self.tapes.variables[number]()
        if self.hold is not None and number in self.hold.handles:
            return self.hold.handles[number]
        if variable is not None and variable.is_stored_in(pin):
            current: Tensor = variable.read()  # from now on, nobody writes there
            if pin.holds(current):
                return current
        return tensors.from_storage(node.aval, pin.storage, pin.offset)


def _another_handle(result: Tensor, of: Tensor) -> None:
    """Make ``result`` another handle of the node of ``of``; the tape sees no difference."""
    result._record = Record(None, (of,), {}, passed_on)
    result._is_rebound, result._version = True, version(of)


def _row(parts: Iterable[str]) -> str:
    """The items of a tuple, as code."""
    return "".join(f"{part}, " for part in parts)


class Taping:
    """``before`` and ``after`` the run, while the frame is the call's own, and ``attach`` when there are results. They
    read the values of the call; ``names`` are the other names that they need. The inputs with numbers in
    ``residual_inputs`` are ``d0``, ``d1``, ... as the program reads them.

    Outputs that only backward programs read live and die ``together``, so they share one block of memory."""

    def __init__(
        self,
        derivative: Derivative,
        graph: Graph,
        compiled: CompiledGraph,
        values: Sequence[str],
        ends: Sequence[str],
        variables: Sequence[Weak] = (),
        locks: Sequence[StateLock] = (),
    ) -> None:
        """Write the lines for a program of ``graph``. ``values`` are expressions for its inputs that are not Variables,
        and ``ends`` for the tensors outside that gradients lead to; ``locks`` are those of its Variables."""
        program = compiled.program
        own_inputs = [x for x in graph.inputs if x.kind is InputKind.VARIABLE]
        others = [x for x in graph.inputs if x.kind is not InputKind.VARIABLE]
        residuals = set(derivative.residuals)
        results = {program.output_of[i] for i, node in enumerate(graph.outputs) if node not in residuals}
        self.together = frozenset(range(len(program.outputs))).difference(results)
        slots: list[int] = []
        memory: dict[str, None] = {}
        read: dict[int, Any] = {}
        self.residual_inputs: set[int] = set()
        for node in derivative.stored:
            if node in residuals or not node.is_input:
                place = program.output_of[graph.outputs.index(node)]
                memory["shared" if place in self.together else f"s{place}"] = None
                slots.append(program.first_output + place)
            elif node.kind is InputKind.VARIABLE:
                number = own_inputs.index(node)
                read[number] = variables[number]()
                slots.append(program.first_variable + number)
            else:
                number = others.index(node)
                self.residual_inputs.add(number)
                memory[f"d{number}._storage"] = None
                slots.append(2 + number)
        inputs: list[str] = []
        for node in derivative.inputs:
            if node.kind is InputKind.VARIABLE:
                read[own_inputs.index(node)] = variables[own_inputs.index(node)]()
            elif node.kind is InputKind.SCALAR:
                inputs.append(f"F[{others.index(node)}]")
            else:
                value = values[others.index(node)]
                inputs += [f"{value}._storage", f"{value}._layout"]
        with context.entered(compiled.recipe.context):
            self.tapes = Tapes(derivative, variables, own_inputs, graph.name, compiled.recipe.options)
        self.names: dict[str, Any] = {"attach": self.tapes.attach, "Call": Call, "Hold": Hold, "TAPES": self.tapes}
        self.before = [f"inputs = ({_row(inputs)})", "hold = None"]
        self.after = ["B = frame.bases", f"addresses = ({_row(f'B[{slot}]' for slot in slots)})"]
        pins = "()"
        if variables:
            pins = "pins"
            self.after.append("pins = frame.pins")
        if read:
            self.names |= {"HELD": ReadVariables(read), "LOCKS": locks}
            self.before[-1] = "hold = Hold(HELD, LOCKS)"
            self.after.append("hold.pins = pins")
        taped = _row(f"r{place}" for place, _ in derivative.taped)
        call = f"Call(TAPES, ({_row(ends)}), inputs, addresses, ({_row(memory)}), {pins}, hold)"
        self.attach = [f"attach(({taped}), {call})"]
