"""Compile a captured function, and write the code of its calls: guard, run, results and side effects.

Three functions take a call: ``general(fn, args, kwargs)`` checks everything, ``quick`` only what can change without a
change of the state version, and ``alternate`` that and the gradients. Each returns ``MISS`` if something has changed.
"""

from __future__ import annotations

import builtins
import copy
import operator
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import starmap
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

from runnel.backends import context
from runnel.compile.capture import Capture, Gradient, InputOrigin, Tape
from runnel.compile.observe.effects import Direct
from runnel.compile.observe.observation import Constant, GuardValue, Observation, Row
from runnel.compile.recipes import OUTPUTS, Output
from runnel.compiler.entry import compile_graph
from runnel.compiler.options import NO_CHOICES, Bindings, Choices
from runnel.compiler.plan_ir.plan import Plan
from runnel.compiler.program import Program
from runnel.core.avals import ShapedArray
from runnel.core.conversion import CASTING
from runnel.core.lengths import expected
from runnel.core.switches import RESOLVED
from runnel.graph.node import InputKind
from runnel.tensor.binding import Binding
from runnel.tensor.bound import CELL, WRITES, Bound, Feed, any_layout, number
from runnel.tensor.dense import dense
from runnel.tensor.differentiable.recorded_call import Taping
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.handle import Record
from runnel.tensor.tensor import Tensor
from runnel.tensor.traced_values import CONSUMED
from runnel.tensor.variable import STATE_VERSION


class CompiledProgram:
    """The program of a :class:`Capture`, bound to its Variables."""

    def __init__(self, captured: Capture, choices: Choices = NO_CHOICES) -> None:
        self.captured = captured
        self.circumstances: Final = context.current()  # in which it was traced
        bindings = Bindings(are_trained=captured.derivative is not None, lengths=captured.lengths)
        self.compiled = compile_graph(captured.graph, bindings, context.on(captured.device), choices.stored())
        self.recipe: Final = self.compiled.recipe
        self.binding = Binding(self.compiled, captured.bound_variables)
        self.settle(expected)

    def settle(self, value_of: Callable[[Any], int]) -> None:
        """Set the avals of arguments and results, whose sizes may be lengths."""
        graph = self.captured.graph
        self.arguments = [x.aval.settled(value_of) for x in graph.inputs if x.kind is not InputKind.VARIABLE]
        self.results = [x.aval.settled(value_of).on(self.captured.device) for x in graph.outputs]

    def at(self, values: Sequence[int], value_of: Callable[[Any], int]) -> CompiledProgram | None:
        """Return the program for other lengths; None if a condition on them does not hold."""
        compiled = self.compiled.at(values)
        if compiled is None:
            return None
        other = copy.copy(self)
        other.compiled = compiled
        other.binding = Binding(other.compiled, self.captured.bound_variables, self.binding.prepared)
        other.settle(value_of)
        return other

    @property
    def program(self) -> Program:
        return self.compiled.program

    @property
    def plan(self) -> Plan:
        return self.program.plan


Call = Callable[..., Any]


class _Miss:
    """The result of a call that the program does not fit."""

    __slots__ = ()


MISS: Final = _Miss()


NEVER: Final = 1 << 62


class Counter:
    """The counts that the calls of one program share: how often it ran, when it is audited next, and the state versions
    for which its guard is known to hold."""

    __slots__ = ("audit_at", "calls", "clock", "grads")

    def __init__(self) -> None:
        self.calls = 0
        self.audit_at = 2
        self.clock = self.grads = -1


class Written(NamedTuple):
    """The code of a call, and the names that were added for it."""

    code: CodeType
    names: dict[str, Any]


class CallWriter:
    """Writes the functions that call one program. Programs of one trace for different lengths share ``codes``."""

    def __init__(
        self,
        native: CompiledProgram,
        observation: Observation,
        counter: Counter,
        codes: dict[Any, Written] | None = None,
    ) -> None:
        self.codes: dict[Any, Written] = {} if codes is None else codes
        self._kinds = tuple([nbytes <= CELL for nbytes in native.program.outputs])
        self.captured: Capture = observation.program
        self.observation = observation
        self.guard = observation.guard
        of_state = [isinstance(e.apply, Direct) and e.apply.is_of_state for e in observation.effects]
        self.of_state = sum(of_state)
        self.advances_version = sum(map(operator.or_, of_state, (e.advances_version for e in observation.effects)))
        captured = self.captured
        self.taping: Taping | None = None
        if captured.derivative is not None:
            of_guard = (InputOrigin.TENSOR, InputOrigin.ARRAY, InputOrigin.NUMBER)
            values = [self._value_of(what) if origin in of_guard else "" for origin, what in captured.sources]
            ends = [self._value_of(place) for place in captured.ends]
            self.taping = Taping(
                captured.derivative, captured.graph, native.compiled, values, ends, captured.variables,
                native.binding.locks,
            )  # fmt: skip
        space: dict[str, Any] = {
            "CAST": CASTING.dtype, "CASTING": CASTING, "CONSUMED": CONSUMED,
            "CONTEXT": native.circumstances, "COUNTER": counter, "FREED": _freed_record(), "MISS": MISS,
            "MODE": RECORDING.get(), "RESOLVED": RESOLVED, "STATE": STATE_VERSION, "Tensor": Tensor,
            "dense": dense,
            "recording": RECORDING.get, "RESULT": observation.result, "calls": observation.calls,
            "each": partial(starmap, operator.call),
            "do": deque(maxlen=0).extend,
        }  # fmt: skip
        if self.taping is not None:
            space |= self.taping.names
        feeds = self._feeds(space, native.arguments)
        self.bound = Bound(
            native.program,
            Tensor,
            feeds,
            native.results,
            variables=native.binding,
            together=() if self.taping is None else self.taping.together,
        )
        self.namespace = self.bound.namespace
        for name, value in (*observation.guard.namespace.items(), *space.items()):
            self.namespace[name] = value

    def general(self) -> Call:
        """Write ``general(fn, args, kwargs)``: check everything, and run."""
        return self._written("general", self._general)

    def _general(self) -> Call:
        lines = [
            _SAME_CIRCUMSTANCES,
            "now, grads = STATE.now, STATE.grads",
            *self._guarded(fast=False),
            *self._gradient_checks(),
            "COUNTER.clock, COUNTER.grads = now, grads",  # last: Ctrl-C may come at each line
            "COUNTER.calls += 1",
        ]
        return self._function("general(fn, args, kwargs)", lines, fast=False)

    def quick(self) -> Call:
        """Write ``quick(fn, args, kwargs)``: check what can change without a tick of the clock, and run."""
        return self._written("quick", self._quick)

    def _quick(self) -> Call:
        grads = " or STATE.grads != COUNTER.grads" if self.captured.uses_grads else ""
        return self._function("quick(fn, args, kwargs)", self._quick_checks(grads), fast=True)

    def alternate(self) -> Call:
        """Write ``alternate(fn, args, kwargs)``: like ``quick``, but gradients came or went since the last run, because
        another program of the function has run."""
        return self._written("alternate", self._alternate)

    def _alternate(self) -> Call:
        lines = [*self._quick_checks(""), "grads = STATE.grads", *self._gradient_checks(), "COUNTER.grads = grads"]
        return self._function("alternate(fn, args, kwargs)", lines, fast=False)

    def _written(self, name: str, write: Callable[[], Call]) -> Call:
        """Return a function whose code may have been written for other lengths."""
        known = self.codes.get((name, self._kinds))
        if known is not None:
            self.namespace.update(known.names)
            self.namespace["__builtins__"] = vars(builtins)
            return FunctionType(known.code.replace(), self.namespace)
        before = set(self.namespace)
        call: Any = write()
        names = {key: value for key, value in self.namespace.items() if key not in before}
        self.codes[name, self._kinds] = Written(call.__code__, names)
        return call

    def _quick_checks(self, grads: str) -> list[str]:
        return [
            "n = COUNTER.calls + 1",
            f"if STATE.now != COUNTER.clock or n == COUNTER.audit_at{grads}: return MISS",
            _SAME_CIRCUMSTANCES,
            *self._guarded(fast=True),
            "COUNTER.calls = n",
        ]

    def _gradient_checks(self) -> list[str]:
        """Check that each ``.grad`` is as it was: a tensor, None, or used up by an optimizer."""
        captured = self.captured
        read = [what for origin, what in captured.sources if origin is InputOrigin.GRADIENT]
        checks = [(x, "_grad.__class__ is not Tensor") for x in read]
        checks += [(x, "_grad is not None") for x in captured.absent_gradients]
        checks += [(x, "_grad is not CONSUMED") for x in captured.lost_gradients]
        for i, (variable, _) in enumerate(checks):
            self.namespace[f"checked{i}"] = variable
        return [f"if (v := checked{i}()) is not None and v.{test}: return MISS" for i, (_, test) in enumerate(checks)]

    def _value_of(self, place: int) -> str:
        """Return the name of a value that the guard reads."""
        return f"v{self.guard.read_sources[place]}"

    def _guarded(self, fast: bool) -> list[str]:
        inside = [f"    {line}" for line in self.guard.lines(fast, "MISS")]
        return ["try:", *inside, "except Exception: return MISS"]

    def _function(self, head: str, checks: list[str], fast: bool) -> Call:
        """Write a function. ``fast``: no ``.grad`` has come or gone since the last run."""
        before, when_over = ([], []) if self.taping is None else (self.taping.before, self.taping.after)
        call: Call = self.bound.function(
            head,
            "call of a compiled function",
            checks=checks,
            setup=[*self._gradients(fast), *before, *self._effects()],
            after=self._after(fast),
            when_over=when_over,
            then=[*self._results(), *self._effects_done(), f"return {self._value()}"],
        )
        return call

    def _feeds(self, space: dict[str, Any], arguments: Sequence[ShapedArray]) -> list[Feed]:
        feeds: list[Feed] = []
        for i, (origin, what) in enumerate(self.captured.sources):
            if origin is InputOrigin.TENSOR:
                tensor = self._value_of(what)
                feed = any_layout(i, tensor, arguments[i])
                if self.taping is not None and i in self.taping.residual_inputs:
                    feed = feed._replace(lines=(f"d{i} = {tensor}", *feed.lines))
            elif origin is InputOrigin.ARRAY:
                feed = Feed(f"d{i}.address", (f"d{i} = dense({self._value_of(what)})",))
            elif origin is InputOrigin.NUMBER:
                feed = number(i, self._value_of(what))
            elif origin is InputOrigin.GRADIENT:
                space[f"variable{i}"] = what
                lines = (
                    f"d{i} = variable{i}()._grad",
                    f"if d{i}.__class__ is not Tensor: give(frame); return MISS",
                    f"d{i} = dense(d{i})",
                )
                feed = Feed(f"d{i}.address", lines)
            else:
                space[f"getter{i}"] = what
                feed = number(i, f"getter{i}()")
            feeds.append(feed)
        return feeds

    def _gradients(self, fast: bool) -> list[str]:
        """Make the gradients that will be stored. Those that they replace are kept until after the run, since the end
        of a tensor may run code of the user."""
        lines: list[str] = []
        for i, (_, how, result) in enumerate(self.captured.gradients):
            if how is Gradient.TENSOR:
                lines += self.bound.tensor(f"g{i}", result)
            if how is Gradient.TENSOR or not fast:
                lines += [f"h{i} = variable_of{i}()", f"o{i} = h{i}._grad"]
        return lines

    def _after(self, fast: bool) -> list[str]:
        """Change what a completed run changes besides memory. Side effects come last: they are one call of C code,
        which no signal handler interrupts as long as C code makes them. After an interruption the rest is made."""
        lines = [WRITES] if self.captured.written else []
        for i, (variable, how, _) in enumerate(self.captured.gradients):
            self.namespace[f"variable_of{i}"] = variable
            if how is Gradient.TENSOR:
                lines += [
                    f"if h{i}._grad.__class__ is not Tensor: STATE.grads += 1",
                    f"h{i}._grad = g{i}",
                ]
            elif not fast:
                value = "None" if how is Gradient.NONE else "CONSUMED"
                lines.append(f"if h{i}._grad is not {value}: h{i}._grad = {value}; STATE.grads += 1")
        if self.observation.effects:
            work = ["try: do(work)", "except Exception: raise", "except BaseException: do(work); raise"]
            if self.of_state:  # after the changes, even if these were interrupted
                work = ["try:", *[f"    {line}" for line in work], f"finally: STATE.now += {self.of_state}"]
            lines += work
        return lines

    def _results(self) -> list[str]:
        lines = [] if self.observation.effects else self._tensors()
        for i, (_, kind) in enumerate(self.captured.outputs):
            if kind is Tape.FREED:
                lines += [f"r{i}.requires_grad = True", f"r{i}._record = FREED"]
        return lines if self.taping is None else [*lines, *self.taping.attach]

    def _tensors(self) -> list[str]:
        return [line for i, (n, _) in enumerate(self.captured.outputs) for line in self.bound.tensor(f"r{i}", n)]

    def _effects(self) -> list[str]:
        """Prepare the side effects as calls."""
        if not self.observation.effects:
            return []
        return [
            *self._tensors(), "objects = " + self._outputs_by_key(),
            f"work = each(calls(({self.guard.values()}), objects))",
        ]  # fmt: skip

    def _effects_done(self) -> list[str]:
        """Take note that own changes of Modules have advanced the state version."""
        count = self.advances_version
        return [f"if STATE.now == COUNTER.clock + {count}: COUNTER.clock = STATE.now"] if count else []

    def _outputs_by_key(self) -> str:
        outputs = ", ".join(f"r{i}" for i in range(len(self.captured.outputs)))
        return f"{{{OUTPUTS!r}: [{outputs}]}}"

    def _value(self) -> str:
        direct = self._expression(self.observation.result)
        if direct is not None:
            return direct
        return f"RESULT(({self.guard.values()}), {'objects' if self.observation.effects else self._outputs_by_key()})"

    def _expression(self, recipe: Any, level: int = 0) -> str | None:
        """Return a result as code if it is simple. Nested tuples are not: one that occurs twice must be one object."""
        if type(recipe) is Output and recipe.steps is None:
            return f"r{recipe.place}"
        if type(recipe) is GuardValue:
            return self._value_of(recipe.place)
        if type(recipe) is Constant:
            name = f"constant{len(self.namespace)}"
            self.namespace[name] = recipe.value
            return name
        if type(recipe) is Row and level == 0 and not self.observation.effects:
            parts = [self._expression(part, 1) for part in recipe.parts]
            return None if None in parts else f"({''.join(f'{part}, ' for part in parts)})"
        return None


_SAME_CIRCUMSTANCES: Final = (
    "if RESOLVED.state.context is not CONTEXT or CASTING.dtype is not CAST or recording() is not MODE: return MISS"
)


def _freed_record() -> Record[Tensor]:
    record: Record[Tensor] = Record(None, (), {})
    record.free()
    return record
