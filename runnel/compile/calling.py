"""The code of a call, generated: arguments to base pointers, the launch, and results to tensors.

A step of a small network runs in a few microseconds, as long as a few dozen lines of Python; so the lines that a
program does not need are not there. Two functions share one body: ``general(leaves, captured)`` runs with whatever
arguments have the right signature, and ``quick(fn, args, kwargs)`` takes a call as it comes, checks that everything is
as it was, and gives ``MISS`` where it is not sure. ``general`` gives it where the state of a ``.grad`` has changed
since somebody looked.

Both take a frame of the program's pool, so that what a call writes down for its run is its own, whatever breaks in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from runnel.compile.capture import Capture, Gradient, Origin, Result, Tape
from runnel.compile.checks import differs
from runnel.compile.differentiable.taping import Taping
from runnel.compile.guards import Guard
from runnel.compile.native import Native, dense
from runnel.compile.signature import Arguments, Role
from runnel.core.avals import row_major
from runnel.core.casting import CASTING
from runnel.core.lifetime import Weak
from runnel.core.pytree import Branch, Structure, unflatten
from runnel.core.switches import SETTLED
from runnel.runtime.layout import COMPLETED, STALE
from runnel.runtime.memory import allocate, allocate_slab
from runnel.tensor import tape
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.holding import HOLDS, protect
from runnel.tensor.tensor import Tensor, from_storage
from runnel.tensor.variable import CLOCK, CONSUMED

Call = Callable[..., Any]


class _Miss:
    """What a quick call gives when it leaves the call to the general way."""

    __slots__ = ()


MISS: Final = _Miss()


CELL: Final = 64  # bytes: results up to this size share slabs
CELLS: Final = 64  # in a slab; a small result that is kept keeps its slab
WRITES: Final = "CLOCK.writes += 1"
WRITING: Final = ("HOLDS.writing += 1", "if HOLDS.now: protect(WRITTEN)")


class Counter:
    """A program's bookkeeping that its calls share: how often it ran, when it is audited next, and up to which readings
    of the state clock its binding and guards are known to hold. Also the memory that small results are cut from: an
    allocation for each would cost more than the rest of the call."""

    __slots__ = ("audit_at", "by_clock", "calls", "clock", "grads", "room", "slab")

    def __init__(self) -> None:
        self.calls = 0
        self.audit_at = 2
        self.clock = self.grads = -1
        self.by_clock: tuple[Any, ...] = ()  # captured arrays that live in state which ticks the clock
        self.slab: Any = None
        self.room = 0  # cells left in the slab


class CallWriter:
    """Writes the functions of one program."""

    def __init__(self, native: Native, arguments: Arguments, guard: Guard, counter: Counter) -> None:
        self.native = native
        self.captured: Capture = native.captured
        self.arguments = arguments
        self.guard = guard
        self.namespace: dict[str, Any] = {
            "CAST": CASTING.dtype, "CASTING": CASTING, "CLOCK": CLOCK, "CONSUMED": CONSUMED,
            "CONTEXT": native.recipe.context, "FREED": _freed_record(), "MISS": MISS, "MODE": RECORDING.get(),
            "S": counter, "SETTLED": SETTLED, "Tensor": Tensor, "allocate": allocate, "allocate_slab": allocate_slab,
            "always": guard.always, "dense": dense, "differs": differs, "error": native.program.error,
            "from_storage": from_storage, "frames": native.binding.pool.frames, "give": native.binding.pool.give,
            "make": native.binding.pool.make, "recording": RECORDING.get, "resume": native.binding.resume,
            "unflatten": unflatten, "HOLDS": HOLDS, "protect": protect, "WRITTEN": native.binding.written_ids,
        }  # fmt: skip
        self.taping = None if self.captured.derivative is None else Taping(native, arguments, guard)
        if self.taping is not None:
            self.namespace |= self.taping.names

    def general(self) -> Call:
        """``general(fn, leaves, captured, given)``: runs; the caller has checked everything. ``leaves`` are dense, and
        ``given`` what they were made from."""
        read = [f"a{i} = leaves[{i}]" for i in self._dynamic() + self._returned_leaves()]
        return self._function("general(fn, leaves, c, given)", [*read, *self._body()])

    def quick(self) -> Call | None:
        """``quick(fn, args, kwargs)``; None for signatures and programs that only the general way handles."""
        roles = [tag[0] for tag in self.arguments.tags]
        structure = self.arguments.structure
        if not isinstance(structure, Branch) or Role.ARRAY in roles:
            return None
        positional, keywords = structure.children
        flat = [*positional.children, *keywords.children]  # type: ignore[union-attr]
        if any(isinstance(child, Branch) for child in flat):
            return None
        lines = self._unpack(len(positional.children), keywords.names or ())  # type: ignore[union-attr]
        for i, tag in enumerate(self.arguments.tags):
            lines.append(f"if {self._wrong(i, tag)}: return MISS")
        objects = ", ".join(f"a{i}" for i, role in enumerate(roles) if role is Role.OBJECT)
        grads = " or CLOCK.grads != S.grads" if self.captured.uses_grads else ""
        lines += [
            "if SETTLED.state.context is not CONTEXT or CASTING.dtype is not CAST or recording() is not MODE: "
            "return MISS",
            f"c = always(fn, ({objects}{',' if objects else ''}))",
            "if c is None: return MISS",
            "n = S.calls + 1",
            f"if CLOCK.now != S.clock or n == S.audit_at{grads}: return MISS",
            "S.calls = n",
        ]
        if self.guard.captured_by_clock:
            lines.append("c += S.by_clock")
        if self.taping is not None:
            lines.append(f"given = ({''.join(f'a{i}, ' for i in range(len(roles)))})")
        return self._function("quick(fn, args, kwargs)", [*lines, *self._body(settled=True)])

    # Arguments --------------------------------------------------------------------------------------------------------

    def _unpack(self, count: int, keywords: tuple[str, ...]) -> list[str]:
        lines = [f"if len(args) != {count} or len(kwargs) != {len(keywords)}: return MISS"]
        if count:
            lines.append("".join(f"a{i}, " for i in range(count)) + "= args")
        for i, name in enumerate(keywords):
            lines.append(f"a{count + i} = kwargs.get({name!r}, MISS)")
        return lines

    def _wrong(self, i: int, tag: tuple[Any, ...]) -> str:
        if tag[0] is Role.TENSOR:
            self.namespace[f"aval{i}"] = tag[1]
            steps = row_major(tag[1].shape)
            wrong_mode = ""
            if RECORDING.get():
                wrong_mode = f" or {'not ' if i in self.arguments.differentiated else ''}a{i}.requires_grad"
            return (
                f"type(a{i}) is not Tensor or a{i}._aval is not aval{i} or a{i}._layout[1] != {steps}"
                f"{wrong_mode} or a{i}._storage is None"
            )
        if tag[0] is Role.FLOAT:
            return f"type(a{i}) is not float"
        self.namespace[f"kind{i}"] = tag[1]
        if tag[0] is Role.OBJECT:
            return f"type(a{i}) is not kind{i}()" if type(tag[1]) is Weak else f"type(a{i}) is not kind{i}"
        self.namespace[f"value{i}"] = self.arguments.leaves[i]
        return f"a{i} is not value{i} and differs(a{i}, value{i})"

    def _dynamic(self) -> list[int]:
        return [s.what for s in self.captured.sources if s.origin in (Origin.LEAF, Origin.FLOAT)]

    def _returned_leaves(self) -> list[int]:
        return [r.what for r in self.captured.returned if r.result is Result.LEAF]

    # The body ---------------------------------------------------------------------------------------------------------

    def _body(self, settled: bool = False) -> list[str]:
        """``settled``: the clock has not ticked since the last run, so that no ``.grad`` has changed its state."""
        after = self._after(settled)
        return [
            *self._frame(), *self._inputs(), *self._outputs(), *self._gradients(settled), *self._launch(after), *after,
            *self._results(), f"return {self._value()}",
        ]  # fmt: skip

    def _frame(self) -> list[str]:
        lines = ["try: frame = frames.pop()", "except IndexError: frame = make()", "B = frame.bases"]
        origins = {source.origin for source in self.captured.sources}
        return [*lines, "F = frame.floats"] if origins & {Origin.FLOAT, Origin.GETTER} else lines

    def _inputs(self) -> list[str]:
        lines: list[str] = []
        captured = [*self.guard.captured, *self.guard.captured_by_clock]
        for i, (origin, what) in enumerate(self.captured.sources):
            slot = 2 + i
            if origin is Origin.LEAF:
                size = self.arguments.tags[what][1].dtype.itemsize
                lines.append(f"B[{slot}] = a{what}._storage.address + a{what}._layout[0] * {size}")
            elif origin is Origin.FLOAT:
                lines.append(f"F[{i}] = a{what}")
            elif origin is Origin.CAPTURED:
                lines += [f"d{i} = dense(c[{captured.index(what)}])", f"B[{slot}] = d{i}.address"]
            elif origin is Origin.GRADIENT:
                self.namespace[f"variable{i}"] = what
                lines += [
                    f"d{i} = variable{i}()._grad",
                    f"if d{i}.__class__ is not Tensor: give(frame); return MISS",
                    f"d{i} = dense(d{i})",
                    f"B[{slot}] = d{i}.address",
                ]
            else:
                self.namespace[f"getter{i}"] = what
                lines.append(f"F[{i}] = getter{i}()")
        return lines

    def _outputs(self) -> list[str]:
        first = self.native.program.first_output
        lines: list[str] = []
        for i, nbytes in enumerate(self.native.program.outputs):
            if nbytes <= CELL:
                lines += [
                    f"if not S.room: S.slab = allocate_slab({CELL * CELLS}); S.room = {CELLS}",
                    f"S.room = n{i} = S.room - 1",
                    f"s{i} = S.slab",
                    f"B[{first + i}] = s{i}.address + n{i} * {CELL}",
                ]
            else:
                lines += [f"s{i} = allocate({nbytes})", f"B[{first + i}] = s{i}.address"]
        return lines

    def _gradients(self, settled: bool) -> list[str]:
        """The gradients that will be stored, who holds them, and those that they replace, which are kept until after
        the run: the end of a tensor may run code of the user's. See ``_after``."""
        lines: list[str] = []
        for i, (_, how, result) in enumerate(self.captured.gradients):
            if how is Gradient.TENSOR:
                lines.append(f"g{i} = {self._tensor(result)}")
            if how is Gradient.TENSOR or not settled:
                lines += [f"h{i} = variable_of{i}()", f"o{i} = h{i}._grad"]
        return lines

    def _launch(self, after: list[str]) -> list[str]:
        """The run. A signal's handler that raises does so right before the run or right after it."""
        launch = ["status = frame.run()"]
        if self.captured.variables:
            launch.append(f"if status == {STALE}: status = resume(frame)")
        before = [] if self.taping is None else self.taping.before
        over = [
            *([] if self.taping is None else self.taping.after),
            "if frames: give(frame)",
            "else: frames.append(frame)",
            "if status: raise error(status)",
        ]
        if self.captured.written:
            before, over = [*before, *WRITING], ["HOLDS.writing -= 1", *over]
        if not after:
            return [*before, *launch, *over]
        run = ["try:", *("    " + line for line in launch), "except BaseException:"]
        if after == [WRITES]:  # to count once too often does no harm
            return [*before, *run, f"    {WRITES}", "    raise", *over]
        return [
            *before,
            "L = frame.launch.words",
            f"completed = L[{COMPLETED}]",
            *run,
            f"    if L[{COMPLETED}] != completed:",
            *("        " + line for line in after),
            "    raise",
            *over,
        ]

    def _after(self, settled: bool) -> list[str]:
        """What a completed run changes besides memory. Calls nothing: Python lets signal handlers in only at calls (and
        loops), so that none sees Variables changed and the rest not."""
        lines = [WRITES] if self.captured.written else []
        for i, (variable, how, _) in enumerate(self.captured.gradients):
            self.namespace[f"variable_of{i}"] = variable
            if how is Gradient.TENSOR:
                lines += [
                    f"if h{i}._grad.__class__ is not Tensor: CLOCK.grads += 1",
                    f"h{i}._grad = g{i}",
                ]
            elif not settled:
                value = "None" if how is Gradient.NONE else "CONSUMED"
                lines.append(f"if h{i}._grad is not {value}: h{i}._grad = {value}; CLOCK.grads += 1")
        return lines

    def _results(self) -> list[str]:
        lines: list[str] = []
        for i, returned in enumerate(self.captured.returned):
            if returned.result is Result.TENSOR:
                lines.append(f"r{i} = {self._tensor(returned.what)}")
                if returned.tape is Tape.FREED:
                    lines += [f"r{i}.requires_grad = True", f"r{i}._record = FREED"]
        return lines if self.taping is None else [*lines, *self.taping.attach]

    def _tensor(self, result: int) -> str:
        place = self.native.program.output_of[result]
        value = self.captured.graph.outputs[result].aval
        self.namespace[f"result{result}"] = value
        small = self.native.program.outputs[place] <= CELL
        offset = f"n{place} * {CELL // value.dtype.itemsize}" if small else "0"
        return f"from_storage(result{result}, s{place}, {offset}, {row_major(value.shape)})"

    def _value(self) -> str:
        parts: list[str] = []
        for i, returned in enumerate(self.captured.returned):
            if returned.result is Result.TENSOR:
                parts.append(f"r{i}")
            elif returned.result is Result.FLOAT:
                parts.append(f"float({self._tensor(returned.what)}.numpy())")
            elif returned.result is Result.LEAF:
                parts.append(f"a{returned.what}")
            elif returned.result is Result.OBJECT:
                self.namespace[f"plain{i}"] = returned.what
                parts.append(f"plain{i}()")
            else:
                self.namespace[f"plain{i}"] = returned.what
                parts.append(f"plain{i}.copy()" if returned.result is Result.ARRAY else f"plain{i}")
        return self._nested(self.captured.structure, parts)

    def _nested(self, structure: Structure, parts: list[str]) -> str:
        if not isinstance(structure, Branch):
            return parts[0]
        if structure.kind is tuple and not any(isinstance(child, Branch) for child in structure.children):
            return f"({''.join(part + ', ' for part in parts)})"
        self.namespace["STRUCTURE"] = structure
        return f"unflatten(STRUCTURE, [{', '.join(parts)}])"

    def _function(self, head: str, lines: list[str]) -> Call:
        source = f"def {head}:\n" + "".join(f"    {line}\n" for line in lines)
        exec(compile(source, "<call of a compiled function>", "exec"), self.namespace)
        made: Call = self.namespace.pop(head.partition("(")[0])  # a function in its own namespace keeps itself alive
        return made


def _freed_record() -> tape.Record:
    record = tape.Record(None, (), {})
    record.free()
    return record
