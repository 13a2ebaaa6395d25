"""Compile Python functions to native programs, one for each signature: ``rn.compile``."""

from __future__ import annotations

import functools
import re
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
from runnel.compile.executable import (
    Executable,
    Explanation,
    Options,
    Raised,
    Unsettled,
    explained,
    is_of_a_handler,
    prepare,
)
from runnel.compile.lengths import changed
from runnel.compile.observe.recorder import NotCapturable
from runnel.compile.observe.values import has_usual_builtins
from runnel.compile.wrappers import WrappedMethod, Wrapper
from runnel.compiler.memory.arena import MemoryPlanner
from runnel.compiler.options import NO_CHOICES, Choices, chosen_by
from runnel.compiler.passes.pipeline import Pipeline
from runnel.core import switches, tracebacks
from runnel.core.conversion import CASTING
from runnel.core.errors import ArgumentError, AuditError, CaptureError, CaptureWarning, NewStateError, RunnelError
from runnel.core.functions import FunctionLike
from runnel.core.records import replace
from runnel.core.switches import byte_count
from runnel.inspection.inspection import Inspection
from runnel.tensor import tracing
from runnel.tensor.grad_mode import RECORDING

OF_VALUES: Final = "pass what changes as a tensor or a float, or keep it in a Variable"
OF_SHAPES: Final = "pad the input to few shapes, or write into a buffer of a fixed shape (rn.Variable)"
MANY: Final = 64  # traces of one function because values changed; then a warning says why


RECENT: Final = 4  # programs of one function that calls choose between without looking one up


class Compiled(FunctionLike, Wrapper):
    """A function that runs as native programs. ``function`` is the Python function.

    Inside another compiled function, ``jvp`` or ``vmap`` the Python function is called, and becomes part of the program
    around it. A pickle holds the function and the options; programs are compiled again.
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
        self._entry = cache.entry(function.__code__, has_usual_builtins(function), options, name)
        self._entry.used_by(self)
        self._quick: Any = None
        self._recent: tuple[Executable, ...] = ()
        self._retraces: deque[str] = deque(maxlen=cache.REASONS)
        self._traces = self._audits = self._by_value = self._new_states = 0
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        active = tracing.ACTIVE
        level = active.level
        if active.trace is not None or level is not None or switches.eager.value or switches.check_nans.value:
            if active.trace is None and level is not None:
                return level.called(self, self.function, args, kwargs)
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

    def bound_to(self, instance: Any) -> BoundCompiled:
        """Return the function as a method of ``instance``, its first argument."""
        return BoundCompiled(self, instance)

    def choosing(self, choices: Mapping[str, Any], keep_grads: bool, name: str | None) -> Compiled:
        """Return the same function compiled with these options as well."""
        own = self._options
        options = own._replace(keep_grads=own.keep_grads or keep_grads, choices=replace(own.choices, **choices))
        return Compiled(self.function, options, name or self.name)

    def falling_back(self) -> Compiled:
        """Return the same function, which runs eagerly where a value is asked for, and says so once."""
        return Compiled(self.function, self._options._replace(falls_back=True), self.name)

    def by_value(self, protocol: Any) -> tuple[Any, ...]:
        return Compiled, (self.function, self._options, self.name)

    def drop(self, executable: Executable, owner: str) -> None:
        """Forget a program whose ``owner`` is gone."""
        self._quick = None  # may belong to another program; the next call finds it again
        self._recent = tuple([other for other in self._recent if other is not executable])

    def clear_cache(self) -> None:
        """Drop the programs of this code, with their memory. The next call traces again."""
        self._entry.clear()

    # Looking at it ----------------------------------------------------------------------------------------------------

    @property
    def retraces(self) -> list[str]:
        """The reasons of retraces, one line each, the latest last."""
        return list(self._retraces)

    @property
    def statistics(self) -> dict[str, int]:
        """The numbers of traces, of audits, and of programs kept for this code."""
        return {"traces": self._traces, "audits": self._audits, "programs": self._entry.count()}

    def executables(self) -> list[Executable]:
        """Return all executables of this code."""
        return self._entry.every()

    def program(self, *args: Any, **kwargs: Any) -> Inspection:
        """Trace and compile for these arguments, and return the reports on the program without running it."""
        return self._executable_for(args, kwargs).inspect()

    lower = program

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Return what a call with these arguments checks and changes, and why the function was traced again."""
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
        for executable in self._entry.fitting(key, around, self.function, args, kwargs):
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
            pass  # the next call will find what this one prepares
        except (NotCapturable, NewStateError) as problem:
            self._tell(problem)
        except Raised as problem:
            failed = problem.with_traceback(None)
        result = self.function(*args, **kwargs)  # if the trace failed, this raises the same error
        if failed is not None:
            self._tell(failed)
        return result

    def _run(self, key: Hashable, executable: Executable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the call if ``executable`` fits; return MISS otherwise."""
        counter = executable.counter
        if counter.calls + 1 >= counter.audit_at and executable.native is not None:
            if not executable.fits(self.function, args, kwargs):
                return MISS
            failed = self._audited(executable, args, kwargs)
            if failed:
                result = self.function(*args, **kwargs)  # raises the same error, or the audit was wrong
                self._warn(f"'{self.name}' runs eagerly: {failed}")
                return result
        if tracing.ACTIVE.readings is not None and executable.captured is not None:
            if not executable.fits(self.function, args, kwargs):
                return MISS
            for variable in executable.captured.bound_variables():
                variable.read()  # tells who notes what is read, and keeps the value
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
        """Trace again and compare. Return a sentence about the error that the function raised, if it did."""
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

    def _may_vary(self) -> bool:
        """Return whether a trace may have lengths."""
        choices = self._options.choices
        is_plain = choices.memory_budget is None and choices.memory_planner is None
        return self._options.dynamic is not False and is_plain and self._entry.has_lengths

    @context.in_one_context
    def _around(self) -> Circumstances:
        return Circumstances(context.current(), RECORDING.get(), CASTING.dtype)

    def _executable_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Executable:
        """Return the program for these arguments; trace and compile if none fits."""
        if self._entry.refuted:
            raise CaptureError(f"[compile] {self.name}() runs eagerly since an audit failed: {self._entry.refuted}")
        around = self._around()
        key = (kinds(args, kwargs), around)
        for executable in self._entry.fitting(key, around, self.function, args, kwargs):
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
        """Return a new program for these arguments, or one that another thread has made meanwhile."""
        with self._entry.tracing():
            programs = self._entry.programs(key)
            for executable in programs:
                if executable.fits(self.function, args, kwargs):
                    return executable
            try:
                sizes = changed if self._may_vary() else _none
                varying = self._entry.varying_for(self.function, args, kwargs, programs, sizes)
                executable = prepare(self.function, args, kwargs, self._options, self.name, programs, varying)
            except NotCapturable as refused:
                if refused.guard is None:
                    raise
                executable = Executable(self.name, refused.guard, None, None, str(refused))
                self._tell(refused)
            self._explain(around, programs, args, kwargs)
            self._traces += 1
            executable = self._entry.kept(around, executable)
            self._entry.last = executable, around
            self._entry.add(key, executable)
            return executable

    def _explain(
        self, around: Circumstances, programs: list[Executable], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Record why the function was traced again."""
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
        if self._traces:  # the first trace of a function is not a retrace, even if it shares code with another function
            self._retraces.append(line)
            self._by_value += not reason.startswith("which ") and not reason.endswith(
                "is gone, and its program with it"
            )
            if self._by_value == MANY:
                self._by_value += 1
                advice = OF_SHAPES if re.search(r" is \w+\[[\d,]*\], was \w+\[", reason) else OF_VALUES
                self._warn(
                    f"'{self.name}' was traced more than {MANY} times, the last time because {reason}; {advice} "
                    "(retraces lists all reasons)"
                )
        if switches.debug.value >= 1:
            print(f"runnel: {line}", file=sys.stderr)

    def _tell(self, problem: Exception | NotCapturable) -> None:
        """Warn once that calls run eagerly, and why."""
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
    """A compiled method of one instance, which it keeps alive. A deep copy belongs to a copy of the instance."""

    __slots__ = ("__weakref__", "_compiled", "_instance")

    def __init__(self, compiled: Compiled, instance: Any) -> None:
        self._compiled = compiled
        self._instance = instance

    # Defined here, because __getattr__ would find the methods of the compiled function.
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
        """Return the same method compiled with these options as well."""
        return BoundCompiled(self._compiled.choosing(choices, keep_grads, name), self._instance)

    def program(self, *args: Any, **kwargs: Any) -> Inspection:
        """Trace and compile for these arguments, and return the reports on the program without running it."""
        return self._compiled.program(self._instance, *args, **kwargs)

    lower = program

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Return what a call with these arguments checks and changes, and why the function was traced again."""
        return self._compiled.explain(self._instance, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self._compiled, name)
        except AttributeError:
            if self._compiled.function is not call_it:
                raise
        return getattr(self._instance, name)  # of a compiled module

    def falling_back(self) -> BoundCompiled:
        """Return the same method, which runs eagerly where a value is asked for, and says so once."""
        return BoundCompiled(self._compiled.falling_back(), self._instance)

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
    dynamic: bool | None = None,
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
    dynamic: bool | None = None,
) -> Callable[[Callable[..., Any]], Compiled]: ...
def compile(
    fn: Callable[..., Any] | None = None,
    *,
    keep_grads: bool = False,
    name: str | None = None,
    memory_budget: int | str | None = None,
    passes: Pipeline | None = None,
    memory_planner: MemoryPlanner | None = None,
    dynamic: bool | None = None,
) -> Any:
    """Compile a function to a native program for each signature of its arguments.

    Use it as a decorator, or call it with a function, bound method or module. The function is traced at its first call.
    Each later call checks everything that the trace read: shapes and dtypes of tensors and arrays, values of Python
    objects, and what the function finds outside. If something has changed, the function is traced again. Float
    arguments are run-time inputs, unless the function looks at their values. Side effects, such as setting attributes
    or appending to lists, happen at each call. If the function does something that cannot be checked, such as reading a
    clock or a file, its calls run eagerly, and a CaptureWarning says so once.

    Args:
        fn: the function. A compiled function is compiled with these options as well. NumPy arrays among its arguments
            remain NumPy arrays. A compiled module is a module, with the class,
            attributes and state of ``fn``.
        keep_grads: store the gradients that an optimizer inside uses up.
        name: the name of the function in reports.
        memory_budget: the most bytes (a number, or "512MB", "1GB", in powers of 1024) that a program may plan for
            intermediate values and results; arguments, Variables and constants do not count. Values are recomputed, to
            the same bits, until the program fits. If it cannot fit, the call raises MemoryBudgetError before anything
            runs. The forward and backward programs of a call that is differentiated outside each have this budget.
        passes: the pipeline that rewrites graphs, including graphs of gradients: ``rn.passes.USUAL`` with passes
            inserted or left out (docs/extend/passes.md). It also applies to compiled functions that are called inside.
        memory_planner: the function that lays intermediate values out in memory (``rn.memory``).
        dynamic: whether sizes of tensors may differ without a trace. By default sizes that differed between calls may;
            True lets the sizes of all arguments, False none.

    Example:
        >>> @rn.compile
        ... def f(x):
        ...     return rn.tanh(x) * 2
        >>> f(rn.asarray([0.0])).tolist()
        [0.0]
    """
    chosen = chosen_by("compile", passes, memory_planner, _bytes(memory_budget))
    if fn is None:
        return functools.partial(compile, keep_grads=keep_grads, name=name, dynamic=dynamic, **chosen)
    if dynamic is not None and hasattr(type(fn), "choosing"):
        raise ArgumentError("[compile] dynamic must be given where a function is compiled first; got a compiled one.")
    if hasattr(type(fn), "choosing"):  # a compiled function, method or module
        compiled: Any = fn
        return compiled.choosing(chosen, keep_grads, name) if chosen or keep_grads or name else fn
    options = Options(keep_grads, Choices(**chosen) if chosen else NO_CHOICES, dynamic=dynamic)
    if isinstance(fn, MethodType) and isinstance(fn.__func__, FunctionType):
        return BoundCompiled(Compiled(fn.__func__, options, name or fn.__name__), fn.__self__)
    if isinstance(fn, FunctionType):
        return Compiled(fn, options, name or fn.__name__)
    if callable(fn):
        compiled = Compiled(cast(FunctionType, call_it), options, name or type(fn).__name__)
        as_module = getattr(type(fn), "called_by", None)
        return compiled.bound_to(fn) if as_module is None else as_module(fn, compiled)
    raise TypeError(f"[compile] fn must be a function; got {type(fn).__name__}.")


def _none(label: str, was: Any, now: Any) -> list[str]:
    """Return no sizes that may differ."""
    return []


def _bytes(budget: int | str | None) -> int | None:
    """Return a budget in bytes."""
    if budget is None:
        return None
    if isinstance(budget, bool) or not isinstance(budget, (int, str)):
        raise TypeError(f"[compile] memory_budget must be a number of bytes or a string; got {budget!r}.")
    try:
        count = byte_count.read(budget) if isinstance(budget, str) else budget
    except ValueError:
        raise ValueError(f'[compile] memory_budget must be a size such as "512MB" or "1GB"; got {budget!r}.') from None
    if count <= 0:
        raise ValueError(f"[compile] memory_budget must be positive; got {budget!r}.")
    return count


def call_it(fn: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call ``fn``, an object with ``__call__``, as a function."""
    return fn(*args, **kwargs)
