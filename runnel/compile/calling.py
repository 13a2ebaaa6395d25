"""The generated code of a call: guard, base pointers of the inputs, launch, and tensors of the results.

A step of a small network runs in a few microseconds, as long as a few dozen lines of Python; so the lines that a
program does not need are not there. Two functions take a call as it comes: ``general(fn, args, kwargs)`` checks
everything, and ``quick(fn, args, kwargs)`` what can change without a change of the state version. Each gives ``MISS``
where something is not as it was.

Both take a frame of the program's pool, so that what a call writes down for its run is its own, whatever breaks in.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import starmap
from typing import Any, Final

from runnel.compile.capture import Capture, Gradient, InputOrigin, Tape
from runnel.compile.compiled_program import CompiledProgram, dense
from runnel.compile.differentiable.taping import Taping
from runnel.compile.launching import TAKE, WRITES, launch, names
from runnel.compile.observe.changes import Direct
from runnel.compile.observe.observation import Constant, GuardValue, Observation, Row
from runnel.compile.recipes import OUTPUTS, Output
from runnel.core.avals import row_major
from runnel.core.casting import CASTING
from runnel.core.generated import function
from runnel.core.switches import RESOLVED
from runnel.graph.node import InputKind
from runnel.tensor.consumed import CONSUMED
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.handle import Record
from runnel.tensor.tensor import Tensor, placed

Call = Callable[..., Any]


class _Miss:
    """What a call gives when the program is not the one for it."""

    __slots__ = ()


MISS: Final = _Miss()

CELL: Final = 64  # bytes: results up to this size share slabs
CELLS: Final = 64  # in a slab; a small result that is kept keeps its slab


class Counter:
    """A program's bookkeeping that its calls share: how often it ran, when it is audited next, and up to which readings
    of the state version its guard is known to hold. Also the memory that small results are cut from: an allocation for
    each would cost more than the rest of the call."""

    __slots__ = ("audit_at", "calls", "clock", "grads", "room", "slab")

    def __init__(self) -> None:
        self.calls = 0
        self.audit_at = 2
        self.clock = self.grads = -1
        self.slab: Any = None
        self.room = 0  # cells left in the slab


class CallWriter:
    """Writes the functions of one program."""

    def __init__(self, native: CompiledProgram, observation: Observation, counter: Counter) -> None:
        self.native = native
        self.captured: Capture = observation.program
        self.observation = observation
        self.guard = observation.guard
        of_state = [isinstance(e.apply, Direct) and e.apply.is_of_state for e in observation.effects]
        self.of_state = sum(of_state)
        self.advances_version = sum(map(operator.or_, of_state, (e.advances_version for e in observation.effects)))
        self.namespace: dict[str, Any] = {
            **observation.guard.namespace, **names(native.program, native.binding.pool, native.binding),
            "CAST": CASTING.dtype, "CASTING": CASTING, "CONSUMED": CONSUMED,
            "CONTEXT": native.circumstances, "FREED": _freed_record(), "MISS": MISS, "MODE": RECORDING.get(),
            "S": counter, "RESOLVED": RESOLVED, "Tensor": Tensor,
            "dense": dense, "wrong_gradient": observation.program.wrong_gradient, "placed": placed,
            "recording": RECORDING.get, "RESULT": observation.result, "calls": observation.calls,
            "calls_later": observation.calls_later, "each": partial(starmap, operator.call),
            "do": deque(maxlen=0).extend,
        }  # fmt: skip
        self.addresses: dict[int, str] = {}  # of inputs and outputs, by slot: expressions
        self.taping = None if self.captured.derivative is None else Taping(native, observation)
        if self.taping is not None:
            self.namespace |= self.taping.names

    def general(self) -> Call:
        """``general(fn, args, kwargs)``: checks everything, and runs."""
        lines = [
            _SAME_CIRCUMSTANCES,
            "now, grads = STATE.now, STATE.grads",
            *self._guarded(fast=False),
            "if wrong_gradient() is not None: return MISS",
            "S.clock, S.grads = now, grads",  # last: Ctrl-C may come at each line
            "S.calls += 1",
            *self._body(fast=False),
        ]
        return self._function("general(fn, args, kwargs)", lines)

    def quick(self) -> Call:
        """``quick(fn, args, kwargs)``: checks what can change without a tick of the clock, and runs."""
        grads = " or STATE.grads != S.grads" if self.captured.uses_grads else ""
        lines = [
            "n = S.calls + 1",
            f"if STATE.now != S.clock or n == S.audit_at{grads}: return MISS",
            _SAME_CIRCUMSTANCES,
            *self._guarded(fast=True),
            "S.calls = n",
            *self._body(fast=True),
        ]
        return self._function("quick(fn, args, kwargs)", lines)

    def direct(self) -> Call:
        """``direct(v0, v1, ...)``: runs with the values that the guard wants, which are known to fit. Nobody has asked
        for a program, so nobody is told what does not run in one."""
        if self.taping is not None:
            self.taping.tapes.is_composition = True
        return self._function(f"direct({self.guard.values()})", self._body(fast=True))

    def _guarded(self, fast: bool) -> list[str]:
        inside = [f"    {line}" for line in self.guard.lines(fast, "MISS")]
        return ["try:", *inside, "except Exception: return MISS"]

    # The body ---------------------------------------------------------------------------------------------------------

    def _body(self, fast: bool) -> list[str]:
        """``fast``: the clock has not ticked since the last run, so that no ``.grad`` has changed its state."""
        after = self._after(fast)
        before, when_over = ([], []) if self.taping is None else (self.taping.before, self.taping.after)
        return [
            *self._frame(), *self._inputs(), *self._outputs(), *self._gradients(fast), *before, *self._effects(),
            *launch(self.addresses, bool(self.captured.variables), after, when_over), *self._results(),
            *self._effects_done(), f"return {self._value()}",
        ]  # fmt: skip

    def _frame(self) -> list[str]:
        origins = {source.origin for source in self.captured.sources}
        return [*TAKE, "F = frame.floats"] if origins & {InputOrigin.NUMBER, InputOrigin.GETTER} else list(TAKE)

    def _inputs(self) -> list[str]:
        lines: list[str] = []
        inputs = [x for x in self.captured.graph.inputs if x.kind is not InputKind.VARIABLE]
        for i, (origin, what) in enumerate(self.captured.sources):
            slot = 2 + i
            if origin is InputOrigin.TENSOR:
                tensor = f"v{self.guard.read_sources[what]}"
                value = inputs[i].aval
                if self.taping is not None and i in self.taping.residual_inputs:
                    lines.append(f"d{i} = {tensor}")
                lines += [
                    f"m, (o, strides) = {tensor}._storage, {tensor}._layout",  # reading these is not cheap
                    f"if strides == {row_major(value.shape)} and m is not None: "
                    f"a{i} = m.address + o * {value.dtype.itemsize}",
                    f"else: d{i} = dense({tensor}); a{i} = d{i}.address",
                ]
                self.addresses[slot] = f"a{i}"
            elif origin is InputOrigin.ARRAY:
                lines.append(f"d{i} = dense(v{self.guard.read_sources[what]})")
                self.addresses[slot] = f"d{i}.address"
            elif origin is InputOrigin.NUMBER:
                lines.append(f"F[{i}] = v{self.guard.read_sources[what]}")
            elif origin is InputOrigin.GRADIENT:
                self.namespace[f"variable{i}"] = what
                lines += [
                    f"d{i} = variable{i}()._grad",
                    f"if d{i}.__class__ is not Tensor: give(frame); return MISS",
                    f"d{i} = dense(d{i})",
                ]
                self.addresses[slot] = f"d{i}.address"
            else:
                self.namespace[f"getter{i}"] = what
                lines.append(f"F[{i}] = getter{i}()")
        return lines

    def _outputs(self) -> list[str]:
        first = self.native.program.first_output
        lines: list[str] = []
        joint: dict[int, int] = {}
        if self.taping is not None and self.taping.residuals:
            joint = self.taping.residuals
            lines += [f"residuals = allocate({self.taping.residual_bytes})", "R = residuals.address"]
        for i, nbytes in enumerate(self.native.program.outputs):
            if i in joint:
                self.addresses[first + i] = f"R + {joint[i]}"
            elif nbytes <= CELL:
                lines += [
                    # The former slab does not end before a cell is taken, since that would run other code.
                    f"if not S.room: slab = allocate_slab({CELL * CELLS}); "
                    f"slab, S.slab = S.slab, slab; S.room = {CELLS}",
                    f"S.room = n{i} = S.room - 1",
                    f"s{i} = S.slab",
                ]
                self.addresses[first + i] = f"s{i}.address + n{i} * {CELL}"
            else:
                lines.append(f"s{i} = allocate({nbytes})")
                self.addresses[first + i] = f"s{i}.address"
        return lines

    def _gradients(self, fast: bool) -> list[str]:
        """The gradients that will be stored, who holds them, and those that they replace, which are kept until after
        the run: the end of a tensor may run code of the user's. See ``_after``."""
        lines: list[str] = []
        for i, (_, how, result) in enumerate(self.captured.gradients):
            if how is Gradient.TENSOR:
                lines.append(f"g{i} = {self._tensor(result)}")
            if how is Gradient.TENSOR or not fast:
                lines += [f"h{i} = variable_of{i}()", f"o{i} = h{i}._grad"]
        return lines

    def _after(self, fast: bool) -> list[str]:
        """What a completed run changes besides memory. Things outside last: that call is one of C code, as long as they
        are changed by such, so that nobody breaks in; where somebody does, they are changed all the same."""
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
            if self.of_state:  # behind the changes, where they broke off, too
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
        return [f"r{i} = {self._tensor(result)}" for i, (result, _) in enumerate(self.captured.outputs)]

    def _tensor(self, result: int) -> str:
        place = self.native.program.output_of[result]
        value = self.captured.graph.outputs[result].aval
        self.namespace[f"result{result}"] = value.on(self.captured.device)
        small = self.native.program.outputs[place] <= CELL
        offset = f"n{place} * {CELL // value.dtype.itemsize}" if small else "0"
        return f"placed(result{result}, s{place}, {offset}, {row_major(value.shape)})"

    def _effects(self) -> list[str]:
        """The changes of things outside, as calls that are made out before the run, unless they need what it gives."""
        if not self.observation.effects:
            return []
        method = "calls_later" if self.observation.reads_results else "calls"
        return [
            *self._tensors(), "objects = " + self._outputs_by_key(),
            f"work = each({method}(({self.guard.values()}), objects))",
        ]  # fmt: skip

    def _effects_done(self) -> list[str]:
        """Changes of Modules advance the state version, which changes nothing that this checks."""
        return (
            [f"if STATE.now == S.clock + {self.advances_version}: S.clock = STATE.now"] if self.advances_version else []
        )

    def _outputs_by_key(self) -> str:
        outputs = ", ".join(f"r{i}" for i in range(len(self.captured.outputs)))
        return f"{{{OUTPUTS!r}: [{outputs}]}}"

    def _value(self) -> str:
        direct = self._expression(self.observation.result)
        if direct is not None:
            return direct
        return f"RESULT(({self.guard.values()}), {'objects' if self.observation.effects else self._outputs_by_key()})"

    def _expression(self, recipe: Any, level: int = 0) -> str | None:
        """A result as code, where it is simple; a tuple that occurs twice is not, for it must be one object."""
        if type(recipe) is Output:
            return f"r{recipe.place}"
        if type(recipe) is GuardValue:
            return f"v{self.guard.read_sources[recipe.place]}"
        if type(recipe) is Constant:
            name = f"constant{len(self.namespace)}"
            self.namespace[name] = recipe.value
            return name
        if type(recipe) is Row and level == 0 and not self.observation.effects:
            parts = [self._expression(part, 1) for part in recipe.parts]
            return None if None in parts else f"({''.join(f'{part}, ' for part in parts)})"
        return None

    def _function(self, head: str, lines: list[str]) -> Call:
        call: Call = function(head, lines, self.namespace, "call of a compiled function")
        return call


_SAME_CIRCUMSTANCES: Final = (
    "if RESOLVED.state.context is not CONTEXT or CASTING.dtype is not CAST or recording() is not MODE: return MISS"
)


def _freed_record() -> Record[Tensor]:
    record: Record[Tensor] = Record(None, (), {})
    record.free()
    return record
