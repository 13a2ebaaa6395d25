"""``rn.compile``: a Python function as one native program for each signature it is called with."""

from __future__ import annotations

import functools
import sys
import warnings
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from copy import deepcopy
from types import FunctionType, MethodType
from typing import Any, Final, cast, overload

from runnel.backends import context
from runnel.compile import cache
from runnel.compile.cache import Circumstances, difference, kinds
from runnel.compile.calling import MISS
from runnel.compile.executable import Executable, Explanation, Options, Raised, Unsettled, explained, prepare
from runnel.compile.interruptions import is_of_a_handler
from runnel.compile.observe.not_capturable import NotCapturable
from runnel.compile.wrappers import WrappedMethod, Wrapper
from runnel.compiler.memory.planner import MemoryPlanner
from runnel.compiler.options import Choices, chosen_by
from runnel.compiler.passes.pipeline import Pipeline
from runnel.core import switches, tracebacks
from runnel.core.accepting import byte_count
from runnel.core.casting import CASTING
from runnel.core.errors import AuditError, CaptureError, CaptureWarning, NewStateError, RunnelError
from runnel.core.records import replace
from runnel.core.references import FunctionLike
from runnel.inspection.inspection import Inspection
from runnel.tensor import tracing
from runnel.tensor.grad_mode import RECORDING

MANY: Final = 64  # traces of one function because of other values, after which a warning says why


RECENT: Final = 4  # programs of one function that calls choose between without looking one up


class Compiled(FunctionLike, Wrapper):
    """A function that runs as native programs. Called like the function; ``function`` is the Python one.

    Inside another compiled function it is simply called, and becomes part of that one's program. It is simply called
    under jvp and vmap, too. In a pickle it is the function and the options; programs are made again.
    """

    # In slots, which attributes of the function do not replace.
    __slots__ = (
        "_audits", "_by_value", "_entry", "_new_states", "_options", "_quick", "_recent",
        "_retraces", "_traces", "function", "name",
    )  # fmt: skip

    def __init__(self, function: FunctionType, options: Options, name: str) -> None:
        self.function = function
        self.name = name
        self._options = options
        self._entry = cache.entry(function.__code__, options, name)
        self._entry.used_by(self)
        self._quick: Any = None
        self._recent: tuple[Executable, ...] = ()
        self._retraces: deque[str] = deque(maxlen=cache.REASONS)
        self._traces = self._audits = self._by_value = self._new_states = 0
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        active = tracing.ACTIVE
        if active.trace is not None or active.level is not None or switches.eager.value or switches.check_nans.value:
            return self.function(*args, **kwargs)
        if self._quick is not None and active.readings is None:
            result = self._quick(self.function, args, kwargs)
            if result is not MISS:
                return result
        try:
            return self._call(args, kwargs)
        except RunnelError as error:
            tracebacks.shorten(error)
            raise

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else BoundCompiled(self, instance)

    def choosing(self, choices: Mapping[str, Any], keep_grads: bool, name: str | None) -> Compiled:
        """The same function, compiled with these options, too; what they do not name is as it was."""
        options = Options(self._options.keep_grads or keep_grads, replace(self._options.choices, **choices))
        return Compiled(self.function, options, name or self.name)

    def by_value(self, protocol: Any) -> tuple[Any, ...]:
        return Compiled, (self.function, self._options, self.name)

    def drop(self, executable: Executable, owner: str) -> None:
        """Forget a program whose ``owner`` is gone."""
        self._quick = None  # may belong to another program; the next call finds it again
        self._recent = tuple([other for other in self._recent if other is not executable])

    def clear_cache(self) -> None:
        """Let the programs of this code go, with their memory. The next call traces again."""
        self._entry.clear()

    # Looking at it ----------------------------------------------------------------------------------------------------

    @property
    def retraces(self) -> list[str]:
        """Why it was traced again, a line each; the latest last."""
        return list(self._retraces)

    @property
    def statistics(self) -> dict[str, int]:
        """How many traces and audits there were, and how many programs are kept for this code."""
        return {"traces": self._traces, "audits": self._audits, "programs": self._entry.count()}

    def executables(self) -> list[Executable]:
        """All that was made of this code, for whatever arguments."""
        return self._entry.every()

    def program(self, *args: Any, **kwargs: Any) -> Inspection:
        """What runs for these arguments, traced and compiled but not run."""
        return self._executable_for(args, kwargs).inspect()

    lower = program

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """What a call with these arguments reads and checks, what it changes, and why it was traced again."""
        return explained(self.name, self.retraces, self._executable_for(args, kwargs))

    def __repr__(self) -> str:
        return f"<compiled {self.function.__qualname__}>"

    # The general way --------------------------------------------------------------------------------------------------

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._entry.refuted:
            return self.function(*args, **kwargs)
        if tracing.ACTIVE.readings is None:
            for executable in self._recent:
                result = executable.quick(self.function, args, kwargs)
                if result is MISS and executable.writes_gradients:
                    result = executable.alternate(self.function, args, kwargs)
                if result is not MISS:
                    self._ran(executable)
                    return result
        around = self._around()
        key = (kinds(args, kwargs), around)
        for executable in self._entry.programs(key):
            result = self._run(key, executable, args, kwargs)
            if result is not MISS:
                return result
        failed: Raised | None = None
        try:
            while True:
                executable = self._compile_for(key, around, args, kwargs)
                result = self._run(key, executable, args, kwargs)
                if result is not MISS:
                    return result
                self._entry.discard(executable)
                if not executable.is_over:
                    break
            raise Unsettled("what it reads changed while it was traced")
        except Unsettled:
            pass  # the next call finds what this one prepares
        except (NotCapturable, NewStateError) as problem:
            self._tell(problem)
        except Raised as problem:
            failed = problem.with_traceback(None)
        result = self.function(*args, **kwargs)  # where the trace failed, this raises the same, and leaves what it did
        if failed is not None:
            self._tell(failed)
        return result

    def _run(self, key: Hashable, executable: Executable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call, if ``executable`` fits."""
        counter = executable.counter
        if counter.calls + 1 >= counter.audit_at and executable.native is not None:
            if not executable.fits(self.function, args, kwargs):
                return MISS
            failed = self._audited(executable, args, kwargs)
            if failed:
                result = self.function(*args, **kwargs)  # raises the same, or what was found is not true
                self._warn(f"'{self.name}' runs eagerly: {failed}")
                return result
        if tracing.ACTIVE.readings is not None and executable.captured is not None:
            if not executable.fits(self.function, args, kwargs):
                return MISS
            for variable in executable.captured.bound_variables():
                variable.read()  # for whoever notes what was read, and to keep the value
        result = executable.run(self.function, args, kwargs)
        if result is not MISS:
            self._entry.promote(key, executable)
            if counter.calls > 1 and executable.native is not None:  # a program called once needs no quicker code
                self._ran(executable)
        return result

    def _ran(self, executable: Executable) -> None:
        """Try this program first at the next call."""
        recent = self._recent
        if not recent or recent[0] is not executable:
            executable.keepers.add(self)
            self._recent = (executable, *[other for other in recent if other is not executable][: RECENT - 1])
            self._quick = executable.quick
            if executable.is_over:  # meanwhile
                self.drop(executable, "")

    def _audited(self, executable: Executable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Trace again and compare. What the function raised there, if it did."""
        self._audits += 1
        try:
            executable.audit(self.function, args, kwargs, self._options.keep_grads)
            return ""
        except AuditError as error:
            self._entry.refute(str(error))
            raise
        except Exception as problem:
            if is_of_a_handler(problem):  # such as a timeout, which says nothing about the function
                raise
            failed = f"traced again it raised {type(problem).__name__}: {problem}"
            self._entry.refute(failed)
            return failed

    @context.in_one_context
    def _around(self) -> Circumstances:
        return Circumstances(context.current(), RECORDING.get(), CASTING.dtype)

    def _executable_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Executable:
        """The program for these arguments, traced and compiled if there is none that fits."""
        if self._entry.refuted:
            raise CaptureError(f"[compile] {self.name}() runs eagerly since an audit failed: {self._entry.refuted}")
        around = self._around()
        key = (kinds(args, kwargs), around)
        for executable in self._entry.programs(key):
            if executable.fits(self.function, args, kwargs):
                return executable
        try:
            return self._compile_for(key, around, args, kwargs)
        except NotCapturable as refused:
            raise CaptureError(f"[compile] {self.name}() runs eagerly: {refused}.") from None
        except Raised as raised:
            raise (raised.__cause__ or raised) from None

    @context.in_one_context
    def _compile_for(
        self, key: Hashable, around: Circumstances, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Executable:
        """A new program for these arguments; or the one that another thread has made meanwhile."""
        with self._entry.tracing():
            programs = self._entry.programs(key)
            for executable in programs:
                if executable.fits(self.function, args, kwargs):
                    return executable
            try:
                varying = self._entry.varying_for(self.function, args, kwargs, programs)
                executable = prepare(self.function, args, kwargs, self._options, self.name, programs, varying)
            except NotCapturable as refused:
                if refused.guard is None:
                    raise
                executable = Executable(self.name, refused.guard, None, None, str(refused))
                self._tell(refused)
            self._explain(around, programs, args, kwargs)
            self._traces += 1
            self._entry.last = executable, around
            self._entry.add(key, executable)
            return executable

    def _explain(
        self, around: Circumstances, programs: list[Executable], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Record why there is another trace."""
        if self._entry.last is None:
            if not self._entry.ended:
                return
            reason = f"{self._entry.ended} is gone, and its program with it"
        else:
            executable, before = self._entry.last
            reason = difference(before, around)
            if not reason:
                executable = programs[0] if programs else executable
                reason = executable.change(self.function, args, kwargs)
        line = f"retrace of {self.name}(): {reason}"
        if self._traces:  # the first trace of a function that shares another one's code is no retrace of it
            self._retraces.append(line)
            self._by_value += not reason.startswith("which ") and not reason.endswith(
                "is gone, and its program with it"
            )
            if self._by_value == MANY:
                self._by_value += 1
                self._warn(
                    f"'{self.name}' was traced more than {MANY} times, the last time because {reason}; pass what "
                    "changes as a tensor or a float, or keep it in a Variable (retraces lists all reasons)"
                )
        if switches.debug.value >= 1:
            print(f"runnel: {line}", file=sys.stderr)

    def _tell(self, problem: Exception | NotCapturable) -> None:
        """Say once why calls run eagerly."""
        sentence = str(problem)
        if isinstance(problem, NotCapturable) and problem.is_intended:
            return
        if isinstance(problem, NewStateError):
            self._new_states += 1
            if self._new_states == 2:
                self._warn(f"'{self.name}' runs eagerly: {sentence}")
            return
        if sentence not in self._entry.refused:
            self._entry.refused.add(sentence)
            self._warn(f"'{self.name}' runs eagerly: {sentence}")

    def _warn(self, sentence: str) -> None:
        sentence = sentence.removesuffix(".")  # of an error that it tells
        warnings.warn(f"[compile] {sentence}.", CaptureWarning, stacklevel=4)


class BoundCompiled(WrappedMethod):
    """A compiled method of one instance, which it keeps alive. Its deep copy is that of the instance's copy."""

    __slots__ = ("__weakref__", "_compiled", "_instance")

    def __init__(self, compiled: Compiled, instance: Any) -> None:
        self._compiled = compiled
        self._instance = instance

    # Said here, because __getattr__ would find the compiled function's.
    def __copy__(self) -> BoundCompiled:
        return BoundCompiled(self._compiled, self._instance)

    def __deepcopy__(self, memo: dict[int, Any]) -> BoundCompiled:
        twin = BoundCompiled.__new__(BoundCompiled)
        memo[id(self)] = twin  # before the instance, which may hold this method
        twin.__setstate__((self._compiled, deepcopy(self._instance, memo)))
        return twin

    def __getstate__(self) -> tuple[Compiled, Any]:
        return self._compiled, self._instance

    def __setstate__(self, state: tuple[Compiled, Any]) -> None:
        self._compiled, self._instance = state

    @property
    def function(self) -> Any:
        return self._compiled.function

    @property
    def wrapper(self) -> Compiled:
        return self._compiled

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(self._instance, *args, **kwargs)

    @property
    def __self__(self) -> Any:
        return self._instance

    def choosing(self, choices: Mapping[str, Any], keep_grads: bool, name: str | None) -> BoundCompiled:
        """The same method, compiled with these options too."""
        return BoundCompiled(self._compiled.choosing(choices, keep_grads, name), self._instance)

    def program(self, *args: Any, **kwargs: Any) -> Inspection:
        """What runs for these arguments."""
        return self._compiled.program(self._instance, *args, **kwargs)

    lower = program

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """What a call with these arguments reads and checks, what it changes, and why it was traced again."""
        return self._compiled.explain(self._instance, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiled, name)

    def __repr__(self) -> str:
        return f"<compiled method of {self._instance!r}>"


@overload
def compile(
    fn: Callable[..., Any],
    *,
    keep_grads: bool = False,
    name: str | None = None,
    memory_budget: int | str | None = None,
    passes: Pipeline | None = None,
    memory_planner: MemoryPlanner | None = None,
) -> Compiled: ...
@overload
def compile(
    fn: None = None,
    *,
    keep_grads: bool = False,
    name: str | None = None,
    memory_budget: int | str | None = None,
    passes: Pipeline | None = None,
    memory_planner: MemoryPlanner | None = None,
) -> Callable[[Callable[..., Any]], Compiled]: ...
def compile(
    fn: Callable[..., Any] | None = None,
    *,
    keep_grads: bool = False,
    name: str | None = None,
    memory_budget: int | str | None = None,
    passes: Pipeline | None = None,
    memory_planner: MemoryPlanner | None = None,
) -> Any:
    """Make a function run as one native program; use it as a decorator, or on a lambda or bound method.

    The function is traced when it is first called, and what the trace reads is checked at each later call: shapes and
    dtypes of tensors and arrays, values of other Python objects (float arguments are run-time data, unless the function
    looks at them), and whatever it finds outside. Where something has changed, it is traced again. What it changes
    outside, such as attributes and lists, is changed at each call. What cannot be known so, such as a clock or a file,
    makes calls run eagerly, which a CaptureWarning says once.

    Args:
        fn: the function, or one that is compiled already, which is compiled with the options given here, too. NumPy
            arrays among its arguments stay NumPy's.
        keep_grads: store the gradients that an optimizer inside uses up.
        name: how reports call it.
        memory_budget: the most bytes (a number, or "512MB", "1GB", in powers of 1024) that a program may plan for
            intermediate values and results; arguments, Variables and constants do not count. Values are computed again,
            to the same bits, until it fits; where it cannot, the call raises MemoryBudgetError and has run nothing.
            Forward and backward programs of a call that is differentiated outside each have this budget.
        passes: the pipeline that rewrites its graphs, those of gradients included: ``rn.passes.USUAL`` with passes
            inserted or left out (docs/extend/passes.md). Compiled functions that are called inside get it as well.
        memory_planner: the function that lays intermediate values out in memory (``rn.memory``).
    """
    chosen = chosen_by("compile", passes, memory_planner, _bytes(memory_budget))
    if fn is None:
        return functools.partial(compile, keep_grads=keep_grads, name=name, **chosen)
    if isinstance(fn, (Compiled, BoundCompiled)):
        return fn.choosing(chosen, keep_grads, name) if chosen or keep_grads or name else fn
    options = Options(keep_grads, Choices(**chosen)) if chosen else Options(keep_grads)
    if isinstance(fn, MethodType) and isinstance(fn.__func__, FunctionType):
        return BoundCompiled(Compiled(fn.__func__, options, name or fn.__name__), fn.__self__)
    if isinstance(fn, FunctionType):
        return Compiled(fn, options, name or fn.__name__)
    if callable(fn):
        return BoundCompiled(Compiled(cast(FunctionType, _call_it), options, name or type(fn).__name__), fn)
    raise TypeError(f"[compile] takes a function; received {type(fn).__name__}.")


def _bytes(budget: int | str | None) -> int | None:
    """A budget in bytes."""
    if budget is None:
        return None
    if isinstance(budget, bool) or not isinstance(budget, (int, str)):
        raise TypeError(f"[compile] memory_budget is a number of bytes or a string; received {budget!r}.")
    try:
        count = byte_count.read(budget) if isinstance(budget, str) else budget
    except ValueError:
        raise ValueError(f'[compile] memory_budget {budget!r} cannot be read; write "512MB" or "1GB".') from None
    if count <= 0:
        raise ValueError(f"[compile] memory_budget must be positive; received {budget!r}.")
    return count


def _call_it(fn: Any, /, *args: Any, **kwargs: Any) -> Any:
    return fn(*args, **kwargs)
