"""Actions: what machine code does instead of a call (:mod:`runnel.backends.host.recall` has the layout)."""

from __future__ import annotations

import array
import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from runnel.backends.base import Recalling
from runnel.backends.host import layout as launches, memory, recall as layout
from runnel.compiler.program import Program
from runnel.core.avals import Shape, aval, row_major
from runnel.core.recall import SETTLED, Recalled
from runnel.ops.shapes.views import reshape_p
from runnel.tensor import eager
from runnel.tensor.handle import Handle
from runnel.tensor.inplace import CONSTANT_SERIAL
from runnel.tensor.variable import Variable


class Unlearnable(Exception):
    """The events of a call do not lead from its arguments to its result."""


@functools.cache
def _scratch() -> memory.Storage:
    """Return the scratch memory of all recalled programs: they run with the GIL held, one after another."""
    return memory.allocate(2 * launches.THREAD_SCRATCH)


def tensors_of(values: Iterable[Any], into: dict[int, Any]) -> dict[int, Any]:
    """Collect the different tensors among the arguments, by id, in the order in which machine code meets them."""
    for x in values:
        if type(x) is tuple or type(x) is list:
            tensors_of(x, into)
        elif type(x) in SETTLED:
            settled: Any = x._settled
            into.setdefault(id(settled), settled)
        elif isinstance(x, (Handle, np.ndarray)):
            into.setdefault(id(x), x)
    return into


def _same_but_ones(before: Shape, after: Shape) -> bool:
    return len(before) != len(after) and [n for n in before if n != 1] == [n for n in after if n != 1]


def _each(result: Any) -> Iterable[Any]:
    return result if isinstance(result, (tuple, list)) else (result,)


class Action:
    """The words of an action, and what they refer to."""

    __slots__ = (
        "_arguments",
        "_assigned",
        "_constants_by_id",
        "_kept",
        "_machine_code",
        "_of",
        "_registers",
        "_steps",
        "_waiting",
        "_watched",
        "words",
    )

    def __init__(
        self,
        values: tuple[Any, ...],
        events: list[tuple[Any, ...]],
        result: Any,
        recalled: Recalled,
        machine_code: Recalling,
    ) -> None:
        self._machine_code = machine_code
        self._kept: list[Any] = []
        arguments = tensors_of(values, {})
        self._of: dict[int, int] = {each: i for i, each in enumerate(arguments)}  # registers by id
        constants = self._constants(events, recalled.makes and not any(type(x) is np.ndarray for x in values))
        for each in constants:
            self._of[each] = len(self._of)
        self._kept.append(constants)
        self._constants_by_id, self._arguments = constants, len(arguments)
        self._registers = len(self._of)
        self._steps: list[list[int]] = []
        self._waiting: dict[int, tuple[Any, ...]] = {}  # views that are made where they are used, by id
        self._assigned: dict[int, list[Any]] = {}  # by id of a Variable: it, registers before and after
        self._watched: dict[int, list[int]] = {}  # the steps that made views, by id of the view
        changed: tuple[Any, ...] = ()
        for event in events:
            if changed:
                raise Unlearnable
            changed = self._add(event)
        end = self._end(result, changed)
        self._assign_at_last(end)
        if not recalled.passes and not changed and any(id(x) in arguments for x in _each(result)):
            raise Unlearnable
        if self._registers > layout.MOST_REGISTERS - 2 or len(arguments) > layout.MOST_ARGUMENTS:
            raise Unlearnable
        head = [id(self), len(constants), *map(id, constants.values())]
        self.words = array.array("q", [*head, *[word for step in self._steps for word in step], *end])

    def _constants(self, events: list[tuple[Any, ...]], makes: bool) -> dict[int, Any]:
        """Return the constant tensors of the steps, by id of the values in the events."""
        constants: dict[int, Any] = {}
        for kind, *event in events:
            if kind == "op":
                for x in event[1]:
                    if id(x) not in self._of and x._serial == CONSTANT_SERIAL:
                        constants[id(x)] = x
            elif kind == "array" and id(event[1]) not in self._of and makes and event[1].nbytes <= layout.SLAB_BYTES:
                made = event[0]
                constants[id(event[1])] = made._over(made._aval, made._storage, *made._layout)
            elif kind == "write" and isinstance(event[2], np.ndarray):
                constants[id(event[2])] = self._alone(event[0], event[2])
        return constants

    def _alone(self, x: Any, array: np.ndarray) -> Any:
        """Return a constant over ``array``, of the dtype of ``x``."""
        value = aval(array.shape, x._aval.dtype, x._aval.device)
        return x._over(value, memory.Storage.wrap(array), 0, value.strides)

    def _add(self, event: tuple[Any, ...]) -> tuple[Any, ...]:
        kind, *rest = event
        if kind == "op":
            self._op(*rest)
        elif kind == "view":
            self._view(*rest)
        elif kind == "program":
            self._program(*rest)
        elif kind == "array":
            made, array = rest
            if id(array) not in self._of:
                return ()
            register = self._register(array)
            is_argument = register < self._arguments
            if is_argument and (made._aval.dtype.numpy != array.dtype or not made._storage.is_ours):
                raise Unlearnable
            self._write(register, int(is_argument), made, made)
            self._made(made)
        elif kind == "write":
            self._write_at(*rest)
        elif kind == "read":
            self._read(*rest)
        elif kind == "assign":
            self._assign(*rest)
        elif kind == "moved":
            handle, before = rest
            self._of.setdefault(id(before), self._register(handle))
        else:
            return tuple(rest)
        return ()

    def _register(self, x: Any) -> int:
        waiting = self._waiting.pop(id(x), None)
        if waiting is not None:
            self._view_step(*waiting)
            self._made(x)
        try:
            return self._of[id(x)]
        except KeyError:
            raise Unlearnable from None

    def _made(self, x: Any) -> None:
        if id(x) in self._of:
            raise Unlearnable
        self._of[id(x)] = self._registers
        self._registers += 1

    def _step(self, words: list[int], *kept: Any) -> list[int]:
        words[0] = len(words)
        self._steps.append(words)
        self._kept.append(kept)
        return words

    def _op(self, op: Any, operands: tuple[Any, ...], attrs: dict[str, Any], result: Any) -> None:
        plan = eager.plan_of(op, operands, attrs)
        results = result if op.multiple_results else (result,)
        by = (0, 0)
        if any(x.requires_grad for x in results):
            if op.multiple_results or result._record is None or result._record.op is not op:
                raise Unlearnable
            by = id(op), id(attrs)
        if isinstance(plan, eager.Viewing) and by == (0, 0):  # made where it is used: it may be a step to another view
            (x,) = operands
            register, source, _, offset, *_ = self._waiting.get(id(x)) or (self._register(x), x, None, 0)
            self._waiting[id(result)] = (register, source, plan.result, offset + plan.offset, plan.strides, by)
            return
        registers = [self._register(x) for x in operands]
        if isinstance(plan, eager.Viewing):
            (x,) = operands
            self._view_step(registers[0], x, plan.result, plan.offset, plan.strides, by, plan, op, attrs)
        elif isinstance(plan, eager.Running):
            for x, value, strides in zip(results, plan.results, plan.strides, strict=True):
                if x._aval is not value or x._layout[1] != strides:  # given another shape since
                    raise Unlearnable
            block = self._block(plan.program)
            if block is not None:
                self._start(block, plan.program, plan.results, plan.strides, registers, operands, by, op, attrs, plan)
            elif op.multiple_results:
                raise Unlearnable
            else:
                words = [0, layout.CALL_STEP, id(plan.run), 0, *by, 0, len(registers), *registers]
                self._step(words, plan, plan.run, op, attrs)
        else:
            raise Unlearnable
        for x in results:
            self._made(x)

    def _view_step(
        self, register: int, source: Any, value: Any, offset: int, strides: Any, by: tuple[int, int], *kept: Any
    ) -> list[int]:
        before = source._layout[1]
        words = [0, layout.VIEW_STEP, register, id(source._aval), id(before), id(value), offset, id(strides), 0, 0, 0]
        return self._step([*words, *by], source._aval, before, value, strides, *kept)

    def _block(self, program: Program) -> tuple[int, int] | None:
        """Return the addresses of a launch block of the program for machine code alone, and of the function that runs
        it; None if the program may wait, or needs more than that."""
        if program.hosts or program.buffer.variables or not program.has_own_arena:
            return None
        if len(program.outputs) > layout.MOST_OUTPUTS:
            return None
        frame = program.pool.take()
        run = self._machine_code.lend(frame.launch, _scratch())
        if not run:
            program.pool.give(frame)
            return None
        self._kept.append(frame)
        return frame.launch.address, run

    def _start(
        self,
        block: tuple[int, int],
        program: Program,
        results: Sequence[Any],
        strides_of: Sequence[Any],
        registers: Sequence[int],
        operands: Sequence[Any],
        by: tuple[int, int],
        *kept: Any,
    ) -> None:
        words = [
            0, layout.START_STEP, *block, len(operands), len(program.outputs), len(results), *by,
        ]  # fmt: skip
        for i, (register, x) in enumerate(zip(registers, operands, strict=True)):
            strides = x._layout[1]
            words += [register, id(x._aval), id(strides), x._aval.dtype.itemsize, 2 + i]
            self._kept += (x._aval, strides)
        for i, nbytes in enumerate(program.outputs):
            rounded = max(-(-nbytes // layout.CELL), 1) * layout.CELL
            words += [nbytes, rounded, program.first_output + i]
        for i, (made, strides) in enumerate(zip(results, strides_of, strict=True)):
            words += [id(made), id(strides), program.output_of[i], made.dtype.itemsize]
        self._step(words, program, results, strides_of, *kept)

    def _read(self, variable: Variable, value: Any) -> None:
        assigned = self._assigned.get(id(variable))
        if assigned is not None:  # it has the value that this action is going to assign
            self._of[id(value)] = assigned[2]
            return
        self._step([0, layout.READ_STEP, id(variable)], variable)
        self._made(value)

    def _assign(self, variable: Variable, before: Any, after: Any, is_done: bool) -> None:
        is_taken = after._aval is variable.aval and after._layout[1] == row_major(after._aval.shape)
        if not is_done or not is_taken or not after._storage.is_ours:
            raise Unlearnable
        kept = self._assigned.setdefault(id(variable), [variable, self._register(before), 0])
        kept[2] = self._register(after)

    def _assign_at_last(self, end: list[int]) -> None:
        """Assign after all steps that may fail, together: then the function may still be called instead."""
        if self._assigned:
            rebinds = end[layout.KIND] == layout.REBIND
            words = [0, layout.ASSIGN_STEP, *(end[3:5] if rebinds else (-1, -1)), len(self._assigned)]
            for variable, before, after in self._assigned.values():
                words += [id(variable), before, after]
            self._step(words)

    def _write(self, register: int, is_array: int, source: Any, result: Any) -> list[int]:
        value, before, strides = result._aval, source._layout[1], result._aval.strides
        if before != strides or value.nbytes != source._aval.nbytes:
            raise Unlearnable
        rounded = max(-(-value.nbytes // layout.CELL), 1) * layout.CELL
        words = [
            0, layout.WRITE_STEP, register, is_array, id(source._aval), id(before), value.nbytes, rounded, id(value),
            id(strides), value.dtype.itemsize, 0, 0, 0, 0, 0, *[1, 0, 0] * layout.AXES,
        ]  # fmt: skip
        return self._step(words, source._aval, before, value, strides)

    def _write_at(self, x: Any, key: Any, new: Any, result: Any) -> None:
        """Write at a basic key: NumPy tells the window."""
        words = self._write(self._register(x), 0, x, result)
        item = x._aval.dtype.itemsize
        window = np.empty(x._aval.shape, np.dtype((np.void, item)))
        items = key if isinstance(key, tuple) else (key,)
        part = window[items if any(k is ... for k in items) else (*items, ...)]  # a view, also of one element
        value = self._constants_by_id.get(id(new), new)
        source = np.lib.stride_tricks.as_strided(
            np.empty(1, window.dtype), value._aval.shape, [s * item for s in value._layout[1]], writeable=False
        )
        spread = np.broadcast_to(source, part.shape)
        axes = list(zip(part.shape, part.strides, spread.strides, strict=True))
        run = item
        while axes and axes[-1][1] == axes[-1][2] == run:
            run *= axes.pop()[0]
        if len(axes) > layout.AXES or not part.size:
            raise Unlearnable
        offset = part.__array_interface__["data"][0] - window.__array_interface__["data"][0]
        words[layout.W_VALUE : layout.W_AXES] = [
            self._register(new), id(value._aval), id(value._layout[1]), offset, run
        ]  # fmt: skip
        for i, axis in enumerate(axes):
            at = layout.W_AXES + layout.AXIS_WORDS * i
            words[at : at + layout.AXIS_WORDS] = axis
        self._kept.append((value, value._aval, value._layout[1]))
        self._made(result)

    def _program(self, function: Any, operands: tuple[Any, ...], result: Any) -> None:
        """Start the program of a composition, whose operands are dense, or call the function that does more."""
        program, results, places = getattr(function, "started", (None, (), ()))
        inputs = [operands[i] for i in places]
        is_dense = all(x._layout[1] == row_major(x._aval.shape) for x in inputs)
        block = self._block(program) if program is not None and is_dense else None
        made = result if isinstance(result, tuple) else (result,)
        if program is not None and block is not None:
            if any(x.requires_grad for x in made):
                raise Unlearnable
            strides = [row_major(each.shape) for each in results]
            self._start(block, program, results, strides, [self._register(x) for x in inputs], inputs, (0, 0))
            for x in made:
                self._made(x)
            return
        if not all(isinstance(x, Handle) for x in made):
            raise Unlearnable
        registers, count = [self._register(x) for x in operands], len(result) if isinstance(result, tuple) else 0
        self._step([0, layout.CALL_STEP, id(function), 1, 0, 0, count, len(registers), *registers], function)
        for x in made:
            self._made(x)

    def _view(self, view: Any, source: Any, steps: Any) -> None:
        register = self._register(source)
        if id(view) in self._waiting:
            self._register(view)
        if id(view) not in self._of:
            strides = view._layout[1]
            if view._storage is not source._storage or view.requires_grad:
                raise Unlearnable
            if steps is None and view._layout == source._layout and view._aval is source._aval:
                self._view_step(register, source, view._aval, 0, view._layout[1], (0, 0))
                self._made(view)
                return
            offset = view._layout[0] - source._layout[0]
            self._view_step(register, source, view._aval, offset, strides, (0, 0))
            self._made(view)
            words = self._steps[-1]
        else:
            words = self._steps[-1]
            is_last = self._of[id(view)] == self._registers - 1
            if not is_last or words[layout.KIND] != layout.VIEW_STEP or words[layout.V_STEPS]:
                raise Unlearnable
        words[layout.V_OF], words[layout.V_STEPS] = register, id(steps)
        is_reshaped = len(steps) == 1 and steps[0][0] is reshape_p
        words[layout.V_MAY_COPY] = int(is_reshaped and not _same_but_ones(source._aval.shape, view._aval.shape))
        self._kept.append(steps)

    def _end(self, result: Any, changed: tuple[Any, ...]) -> list[int]:
        if changed:
            handle, after = changed
            if result is not handle and result is not None:
                raise Unlearnable
            return [0, layout.REBIND, 2, self._register(handle), self._register(after)]
        if isinstance(result, Handle):
            return [0, layout.RETURN, 1, self._register(result)]
        if not isinstance(result, (tuple, list)):
            raise Unlearnable
        registers = [self._register(x) for x in result]
        kind = type(result)
        if kind is tuple or kind is list:
            return [0, layout.TUPLE if kind is tuple else layout.LIST, len(registers), *registers]
        if not hasattr(kind, "_fields"):
            raise Unlearnable
        self._kept.append(kind)
        return [0, layout.MAKE, len(registers), id(kind), *registers]
