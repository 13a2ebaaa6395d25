"""One differentiable call of a compiled function: its residuals, and the tapes of its results."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Sequence
from typing import Any, Final

from runnel.backends.host.memory import Storage
from runnel.compile.differentiable.derivative import Derivative
from runnel.compile.differentiable.ends import OF_VARIABLES, End, Kind
from runnel.compile.differentiable.layouts import as_computed
from runnel.compile.differentiable.record import PartRecord, Shape, stand_in
from runnel.compiler.options import Options
from runnel.core.errors import CaptureWarning
from runnel.core.lifetime import Weak
from runnel.graph.node import InputKind, Value
from runnel.tensor import tensor as tensors
from runnel.tensor.handle import Record, passed_on, version
from runnel.tensor.holding import Hold
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
        pins: list[Pin],
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
