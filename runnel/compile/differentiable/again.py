"""Running a compiled function a second time, eagerly and with the tape: for derivatives of its gradients.

It must find everything that the call found: what the guard checks, and the values that the program read.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any, NamedTuple

from runnel.compile.capture import Capture, Origin
from runnel.compile.observe.observation import Observation
from runnel.compile.recipes import OUTPUTS
from runnel.core.casting import CASTING, casting
from runnel.core.errors import GradientError
from runnel.core.pytree import flatten
from runnel.tensor.grad_mode import RECORDING, recording


class Given(NamedTuple):
    """What a function was called with."""

    function: FunctionType
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class _Mark:
    """Stands for a tensor among what a function returns, so that its place can be looked up."""

    __slots__ = ()

    def numpy(self) -> float:
        """Also where a number is made of it."""
        return 0.0


class Again:
    """How calls of one kind run again. ``inputs`` are the values that a call must find again, as code of the call."""

    def __init__(self, observation: Observation) -> None:
        captured: Capture = observation.program
        self._guard = observation.guard
        self._result = observation.result
        self._outputs = len(captured.outputs)
        self._sources = captured.sources
        self._cast, self._mode = CASTING.dtype, RECORDING.get()
        self.inputs: list[str] = []
        for i, (origin, what) in enumerate(captured.sources):
            if origin is Origin.TENSOR:
                value = f"v{self._guard.wanted[what]}"
                self.inputs += [f"{value}._storage", f"{value}._layout"]
            elif origin in (Origin.NUMBER, Origin.GETTER):
                self.inputs.append(f"F[{i}]")
        self.refusal = _refusal(observation)

    def is_possible(self, given: Given, inputs: Sequence[Any]) -> bool:
        """Whether everything is as it was at the call, Variables aside."""
        values = self._guard.holds(*given)
        if values is None:
            return False
        now: list[Any] = []
        for origin, what in self._sources:
            if origin is Origin.TENSOR:
                now += [values[what]._storage, values[what]._layout]
            elif origin is Origin.NUMBER:
                now.append(float(values[what]))
            elif origin is Origin.GETTER:
                now.append(float(what()))
        return all(a is b or a == b for a, b in zip(now, inputs, strict=True))

    def outputs(self, given: Given) -> list[Any]:
        """The tensors that leave the run, by their numbers."""
        marks = [_Mark() for _ in range(self._outputs)]
        made: dict[Any, Any] = {OUTPUTS: marks}
        pattern, _ = flatten(self._result(self._guard.holds(*given), made))
        places = {id(x): i for i, x in enumerate(pattern)}
        with casting(self._cast), recording(self._mode):
            found, _ = flatten(given.function(*given.args, **given.kwargs))
        try:
            return [found[places[id(mark)]] for mark in marks]
        except LookupError:
            raise GradientError(
                f"[backward] '{given.function.__name__}' returns tensors in objects that cannot be looked into, so its "
                "gradients cannot be differentiated; return them in tuples, lists, dicts or dataclasses."
            ) from None


def _refusal(observation: Observation) -> str:
    """Why the function may not run again; "" if it may."""
    captured: Capture = observation.program
    if captured.written:
        return "writes Variables"
    if captured.uses_grads:
        return "reads or sets gradients"
    if observation.effects:
        return "changes something outside"
    if any(source.origin is Origin.ARRAY for source in captured.sources):
        return "reads a NumPy array, which may have changed"
    return ""
