"""A traced, guarded and compiled function for one signature: what a call ends up running."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from types import FunctionType
from typing import Any, NamedTuple, Protocol
from weakref import WeakSet

import numpy as np

from runnel.codegen import context
from runnel.compile import audit
from runnel.compile.calling import MISS, CallWriter, Counter
from runnel.compile.capture import Capture, Origin, capture
from runnel.compile.differentiable.derivative import NotDivisible
from runnel.compile.guards import Guard
from runnel.compile.inspection import inspected
from runnel.compile.native import Native
from runnel.compile.signature import Arguments
from runnel.compile.watch import find
from runnel.core.dtypes import from_numpy as dtype_of
from runnel.core.errors import MemoryBudgetError
from runnel.core.lifetime import tied
from runnel.core.pytree import unflatten
from runnel.inspection import ladder
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.tensor import Tensor, from_numpy
from runnel.tensor.variable import CLOCK


class Keeper(Protocol):
    """Who holds executables."""

    def drop(self, executable: Executable, owner: str) -> None:
        """Let go of one, whose ``owner`` is gone. It comes at any moment, on any thread."""


class Options(NamedTuple):
    """What ``rn.compile`` was told."""

    keep_grads: bool = False
    memory_budget: int | None = None  # bytes


class Executable:
    """One capture with its guard and its program.

    It belongs to the objects that the guard tells by identity and to the Variables it is bound to, and keeps none of
    them alive. When the first of them goes, it leaves all its ``keepers`` (``end``), and nothing else holds it but a
    call in progress.

    ``native`` is None when calls run eagerly, because a tensor the function can reach requires a gradient, or because
    there are no programs for its derivative.
    """

    def __init__(
        self,
        function: FunctionType,
        arguments: Arguments,
        guard: Guard,
        captured: Capture | None,
        native: Native | None,
    ) -> None:
        self.function_name = captured.graph.name if captured is not None else function.__name__
        self.arguments = arguments._replace(leaves=[])  # the arguments themselves are not kept alive
        self.guard = guard
        self.captured = captured
        self.counter = Counter()
        self.native = native
        self.keepers: WeakSet[Keeper] = WeakSet()
        self.is_over = False
        self.quick: Any = None
        self._general: Any = None
        if native is not None:
            writer = CallWriter(native, arguments, guard, self.counter)
            self._general = writer.general()
            self.quick = writer.quick()
        self._ties = tied(self, guard.owners + ([] if captured is None else captured.owners))

    def end(self, owner: str) -> None:
        """An owner is gone; nothing that this was traced for can come back."""
        self.is_over = True
        for keeper in list(self.keepers):
            keeper.drop(self, owner)

    def fits(self, function: FunctionType, objects: list[Any]) -> bool:
        """Whether everything this was traced with is as it was."""
        return self.guard.holds(function, objects) and self.wrong_gradient() is None

    def wrong_gradient(self) -> str | None:
        """The Variable whose ``.grad`` is not in the state that the program was traced with."""
        if self.captured is None:
            return None
        for reference in self.captured.absent_gradients:
            variable = reference()
            if variable is not None and variable._grad is not None:
                return f"{variable.name}.grad changed from None to a gradient"
        for origin, what in self.captured.sources:
            variable = what() if origin is Origin.GRADIENT else None
            if variable is not None and type(variable._grad) is not Tensor:
                return f"{variable.name}.grad changed from a gradient to none"
        return None

    def change(self, function: FunctionType, objects: list[Any]) -> str:
        """Why this does not fit."""
        return self.guard.change(function, objects) or self.wrong_gradient() or "something it reads changed"

    def run(self, function: FunctionType, arguments: Arguments) -> Any:
        """Run with arguments of the right signature; the caller has seen that this fits. MISS if it does not any more,
        because another thread or a signal handler came between."""
        self.counter.calls += 1
        if self.native is None:
            args, kwargs = unflatten(arguments.structure, arguments.leaves)
            return function(*args, **kwargs)
        leaves = [_ready(x) for x in arguments.leaves]
        objects = arguments.objects
        now, grads = CLOCK.now, CLOCK.grads
        if grads != self.counter.grads:
            if self.wrong_gradient() is not None:
                return MISS
            self.counter.grads = grads
        if now != self.counter.clock:
            by_clock = self.guard.by_clock(function, objects)
            if by_clock is None:
                return MISS
            self.counter.by_clock = by_clock
            self.counter.clock = now  # last: Ctrl-C may come at each line
        captured = self.guard.always(function, objects)
        if captured is None:
            return MISS
        return self._general(function, leaves, captured + self.counter.by_clock, arguments.leaves)

    def audit(self, function: FunctionType, arguments: Arguments, keep_grads: bool) -> None:
        """Trace again and compare."""
        self.counter.audit_at = max(2 * self.counter.audit_at, 2)
        if self.captured is None or self.native is None:
            return
        with context.entered(self.native.context):
            found = find(function, named_objects(arguments))
            audit.compare(
                self.function_name,
                self.captured,
                capture(function, arguments, found, keep_grads, self.captured.graph.name, self.captured.least_kept),
            )


def named_objects(arguments: Arguments) -> list[tuple[str, Any]]:
    """The watched arguments with names for messages."""
    return [(f"argument {type(x).__name__}", x) for x in arguments.objects]


def prepare(
    function: FunctionType, arguments: Arguments, options: Options, name: str, known: Iterable[Executable]
) -> Executable:
    """Trace and compile ``function`` for this signature. A trace equal to one in ``known`` shares its program."""
    found = find(function, named_objects(arguments))
    if RECORDING.get() and found.needs_tape:
        return Executable(function, arguments, Guard(found.watches, ()), None, None)
    try:
        captured = capture(function, arguments, found, options.keep_grads, name)
    except NotDivisible as reason:
        warnings.warn(
            f"[compile] '{name}' runs eagerly when its results are to be differentiated: {reason}.",
            RuntimeWarning,
            stacklevel=2,
        )
        return Executable(function, arguments, Guard(found.watches, ()), None, None)
    guard = Guard(found.watches, [what for origin, what in captured.sources if origin is Origin.CAPTURED])
    for other in known:
        if other.native is not None and other.native.captured.same_as(captured):
            return Executable(function, arguments, guard, captured, other.native)
    try:
        native = Native(captured, options.memory_budget)
    except MemoryBudgetError:
        if captured.derivative is None:
            raise
        captured = capture(function, arguments, found, options.keep_grads, name, least_kept=True)
        native = Native(captured, options.memory_budget)
    ladder.announce(inspected(native))
    return Executable(function, arguments, guard, captured, native)


def _ready(leaf: Any) -> Any:
    """An argument as the program's code takes it."""
    if isinstance(leaf, np.ndarray):
        return from_numpy(np.ascontiguousarray(leaf).reshape(leaf.shape), dtype_of(leaf.dtype), copy=False)
    if type(leaf) is Tensor and not leaf.is_dense:
        return from_numpy(leaf.numpy(), leaf.dtype, copy=True)
    return leaf
