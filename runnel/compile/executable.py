"""Trace, guard and compile a function for one signature."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Iterable, Sequence
from types import FunctionType
from typing import Any, Final, NamedTuple, Protocol
from weakref import WeakSet

from runnel.backends import context
from runnel.compile import audit
from runnel.compile.calling import MISS, CallWriter, CompiledProgram, Counter, Written
from runnel.compile.capture import Capture, capture
from runnel.compile.lengths import is_size
from runnel.compile.observe.guard import Guard
from runnel.compile.observe.observation import Observation
from runnel.compile.observe.recorder import NotCapturable
from runnel.compiler.options import NO_CHOICES, Choices
from runnel.core.caching import lazy
from runnel.core.errors import CaptureError, MemoryBudgetError, NewStateError, TracedValueError
from runnel.core.lifetime import tied
from runnel.core.records import record
from runnel.inspection import inspection
from runnel.inspection.inspection import Inspection, inspected
from runnel.tensor.variable import STATE_VERSION


def is_of_a_handler(error: BaseException) -> bool:
    """Return whether the handler of a signal raised an error, such as a timeout. A second run would not raise it."""
    handlers = {_code(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    return any(frame.f_code in handlers for frame, _ in traceback.walk_tb(error.__traceback__))


def _code(handler: Any) -> Any:
    function = getattr(handler, "__func__", handler)
    return getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)


class Keeper(Protocol):
    """An object that holds executables."""

    def drop(self, executable: Executable, owner: str) -> None:
        """Drop an executable whose ``owner`` has died. This is called at any moment, on any thread."""


class Options(NamedTuple):
    """The options of ``rn.compile``, and ``falls_back``: run eagerly where the value of a tensor is asked for."""

    keep_grads: bool = False
    choices: Choices = NO_CHOICES
    falls_back: bool = False
    dynamic: bool | None = None


_AUDITS_APART: Final = 8  # an audit costs as much as a trace: of the first thousand calls four are audited


class Executable:
    """One observed run with its guard and its program.

    It belongs to the objects that the guard compares by identity and to the Variables that it is bound to, and keeps
    none of them alive. When the first of them dies, all ``keepers`` drop it (``end``).

    ``native`` is None if calls run eagerly; ``reason`` says why.
    """

    def __init__(
        self,
        name: str,
        guard: Guard,
        observation: Observation | None,
        native: CompiledProgram | None,
        reason: str = "",
        varying: frozenset[str] = frozenset(),
        codes: dict[Any, Written] | None = None,
    ) -> None:
        self.function_name = name
        self.guard = guard
        self.observation = observation
        self.captured: Capture | None = None if observation is None else observation.program
        self.counter = Counter()
        self.native = native
        self.reason = reason
        self.varying = varying
        self.keepers: WeakSet[Keeper] = WeakSet()
        self.is_over = False
        self.writes_gradients = self.captured is not None and self.captured.uses_grads
        self._writer: CallWriter | None = None
        if native is not None and observation is not None:
            self._writer = CallWriter(native, observation, self.counter, codes)
            self._general = self._writer.general()
        owners = [(label, owner) for label, reference in guard.owners if (owner := reference()) is not None]
        self._ties = tied(self, owners + ([] if self.captured is None else self.captured.owners))

    def inspect(self) -> Inspection:
        """Return the reports on the program; CaptureError if calls run eagerly."""
        if self.native is None:
            raise CaptureError(f"[program] this call runs eagerly, {self.reason}: no program.")
        return inspected(self.native.compiled)

    @lazy
    def quick(self) -> Any:
        """Return the function for calls while the state version stays the same; None if calls run eagerly."""
        return None if self._writer is None else self._writer.quick()

    @lazy
    def alternate(self) -> Any:
        """Like ``quick``, for functions whose calls alternate between programs that set gradients."""
        return None if self._writer is None else self._writer.alternate()

    def end(self, owner: str) -> None:
        """Leave all keepers, since an owner has died: this cannot fit again."""
        self.is_over = True
        for keeper in list(self.keepers):
            keeper.drop(self, owner)

    def fits(self, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Return whether nothing that the trace read has changed."""
        return self.guard.holds(function, args, kwargs) is not None and self._wrong_gradient() is None

    def change(self, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Return why this does not fit."""
        return self.guard.why(function, args, kwargs) or self._wrong_gradient() or "something it reads changed"

    def _wrong_gradient(self) -> str | None:
        return None if self.captured is None else self.captured.wrong_gradient()

    def run(self, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the call if this fits; return MISS otherwise."""
        if self.native is None:
            if not self.fits(function, args, kwargs):
                return MISS
            self.counter.calls += 1
            return function(*args, **kwargs)
        if self.counter.clock == STATE_VERSION.now:
            result = self.quick(function, args, kwargs)
            if result is not MISS:
                return result
        return self._general(function, args, kwargs)

    def audit(self, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any], keep_grads: bool) -> None:
        """Trace again and compare.

        Raises:
            AuditError: the trace differs, or the function cannot be captured any more.
        """
        self.counter.audit_at *= _AUDITS_APART
        if self.captured is None or self.native is None:
            return
        with context.entered(self.native.circumstances):
            name, recompute = self.captured.graph.name, self.captured.recompute
            try:
                are_all = self.captured.lengths is not None and not any(map(is_size, self.varying))
                now = capture(function, args, kwargs, keep_grads, name, self.varying, recompute, are_all)
            except NotCapturable as refused:
                if refused.is_passing:
                    return
                raise audit.error(self.function_name, f"{refused.reason} at {refused.where}") from None
            except NewStateError as problem:
                raise audit.error(self.function_name, str(problem)) from None
            if now.guard.aliases == self.guard.aliases:  # a call that names one thing twice gets a shorter trace
                audit.compare(self.function_name, self.captured, now.program)


def prepare(
    function: FunctionType,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: Options,
    name: str,
    known: Iterable[Executable],
    varying: frozenset[str],
) -> Executable:
    """Trace and compile ``function`` for this call. If the trace equals one in ``known``, share its program.

    Sizes among ``varying`` become symbols if that works. A function that needs their values is traced without.
    """
    plain = frozenset(label for label in varying if not is_size(label))
    is_limited = options.choices.memory_budget is not None or options.choices.memory_planner is not None
    if (options.dynamic or plain != varying) and not is_limited:
        try:
            executable = _prepared(function, args, kwargs, options, name, known, varying, are_all=bool(options.dynamic))
        except (Exception, NotCapturable):
            pass  # without lengths it says what is wrong
        else:
            if executable.captured is None or executable.captured.derivative is None:
                return executable
    return _prepared(function, args, kwargs, options, name, known, plain, are_all=False)


def _prepared(
    function: FunctionType,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: Options,
    name: str,
    known: Iterable[Executable],
    varying: frozenset[str],
    *,
    are_all: bool,
) -> Executable:
    def traced(recompute: bool) -> Observation:
        try:
            observation = capture(function, args, kwargs, options.keep_grads, name, varying, recompute, are_all)
        except TracedValueError as problem:
            if not options.falls_back:
                raise
            refused = NotCapturable(str(problem).rstrip("."), "while it was traced")
            refused.guard = problem.guard
            raise refused from None
        except (CaptureError, NotCapturable, KeyboardInterrupt):
            raise
        except BaseException as error:
            if is_of_a_handler(error):
                raise
            raise Raised(f"while it was traced it raised {type(error).__name__}: {error}") from error
        if observation.unsettled_by:
            raise Unsettled(observation.unsettled_by)
        return observation

    observation = traced(recompute=False)
    captured: Capture = observation.program
    for other in known if captured.lengths is None else ():  # a program with lengths serves one call
        if other.native is not None and other.native.captured.same_as(captured):
            return Executable(name, observation.guard, observation, other.native, varying=varying)
    try:
        native = CompiledProgram(captured, options.choices)
    except MemoryBudgetError:
        if captured.derivative is None:
            raise
        observation = traced(recompute=True)
        native = CompiledProgram(observation.program, options.choices)
    inspection.announce(inspected(native.compiled))
    return Executable(name, observation.guard, observation, native, varying=varying)


class Raised(Exception):
    """The function raised an error while it was traced."""


class Unsettled(Exception):
    """The call prepared something that later calls will find, so it runs eagerly once."""


@record(slots=False)
class Explanation:
    """The checks, effects and retraces of one kind of call. ``str`` returns a report."""

    name: str
    runs: str  # as a program, or eagerly and why
    checked: tuple[str, ...]  # at each call
    checked_by_clock: tuple[str, ...]  # after an attribute of a Module or optimizer was set
    computed: tuple[str, ...]  # at each call, from what it reads; without values that are only checked
    changes: tuple[str, ...]  # side effects of each call
    traced_again: tuple[str, ...]

    def __str__(self) -> str:
        parts = (
            ("checks at each call", self.checked),
            ("checks when a Module or an optimizer was changed", self.checked_by_clock),
            ("computes at each call", self.computed),
            ("changes", self.changes),
            ("was traced again because", self.traced_again),
        )
        lines = [f"{self.name}() {self.runs}"]
        for title, items in parts:
            if items:
                lines += [f"{title}:", *(f"  {item}" for item in items)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)


def explained(name: str, retraces: Sequence[str], executable: Executable) -> Explanation:
    """Return the explanation of an executable."""
    how = "runs as a program" if executable.native is not None else f"runs eagerly: {executable.reason}"
    always, by_version = executable.guard.labels()
    effects = () if executable.observation is None else executable.observation.effects
    changes = tuple(effect.label for effect in effects)
    again = tuple(line.partition(": ")[2] for line in retraces)
    computed = tuple(label for label in executable.guard.computed if label not in {*always, *by_version})
    return Explanation(name, how, always, by_version, computed, changes, again)
