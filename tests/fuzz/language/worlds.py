"""Run a random program in two equal worlds, eager and compiled: after each call they must look the same.

Audits are off, so that a read that a guard misses is seen. Calls that are refused with a warning are compared like any
others. An error of Runnel's in the compiled world ends the comparison.
"""

from __future__ import annotations

import contextlib
import functools
import io
import random
import re
import signal
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

import runnel as rn
from runnel.compile.wrappers import Wrapper
from runnel.core import switches
from runnel.core.errors import CaptureWarning, GradientError, RunnelError
from runnel.tensor.variable import Variable
from tests.compile import worlds
from tests.fuzz.language.grammar import Program

_NAME: Final = "random_program"
_IMPORTS: Final = """
import abc, bisect, collections, collections.abc, contextlib, contextvars, copy, dataclasses, enum, functools, heapq
import itertools, json, math, operator, re, types, typing, warnings
import numpy as np
import runnel as rn
from runnel import nn, optim
def tensor(*values):
    return rn.asarray(np.array(values if len(values) > 1 else values[0], np.float32))
"""
_CALL: Final = re.compile(r"(last = )?(step|helper\d|fast\d)\(")
_ADDRESS: Final = re.compile("0x[0-9a-f]+")
_HIDDEN: Final = ("__builtins__", "__warningregistry__")
# What changes between calls use where they are written like statements of ``step``.
_LOCALS: Final = "x, y, s, total, extra = tensor(1.0, 2.0, 3.0), tensor(2.0, 1.0), 2, 3, None\n"


# Seconds: of a program itself, which takes milliseconds or never ends; and of one that is compiled, on a busy machine.
LONGEST: Final = 5
LONGEST_COMPILED: Final = 100


class Endless(BaseException):
    """Not an Exception, which programs catch."""


class Refused(Exception):
    """A change between calls is refused where ``step`` is compiled, by a clear error."""


@contextlib.contextmanager
def limited(seconds: int) -> Iterator[None]:
    """End the block with Endless when it takes too long."""

    def end(*_: object) -> None:
        raise Endless

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Called(NamedTuple):
    """The result or error of a call, its warnings, and the world after it."""

    result: Any
    seen: Any
    told: tuple[str, ...]  # what the capture warns of
    refused: bool  # by a clear error of ours


class Outcome(NamedTuple):
    fault: str | None
    calls: int
    traces: int
    reasons: tuple[str, ...]  # of eager runs, and refusals


class AnyGradient:
    """Equal to every gradient."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class Look(worlds.Look):
    """Private attributes, classes, functions and modules of the program, too; one NaN is like another."""

    def __init__(self, grads: bool) -> None:
        super().__init__()
        self.grads = grads

    def __call__(self, value: Any) -> Any:
        kind = type(value)
        if kind is str:
            return ("str", _ADDRESS.sub("an address", value))
        if isinstance(value, np.generic):  # a value, like a number of Python's
            return (kind.__name__, *self.bits(np.asarray(value)))
        if isinstance(value, Wrapper) or kind in (types.BuiltinFunctionType, types.MethodDescriptorType):
            return super().__call__(value)
        if isinstance(value, Variable) and id(value) not in self.met:
            return (*super().__call__(value), self.gradient(value))
        is_ours = (
            ((kind is types.FunctionType or isinstance(value, type)) and value.__module__ == _NAME)
            or (kind is types.ModuleType and value.__name__ == "user_module")
            or kind in (types.MethodType, functools.partial, property, types.CellType)
        )
        if not is_ours:
            return super().__call__(value)
        if id(value) in self.met:
            return ("again", self.met[id(value)])
        self.met[id(value)] = len(self.met)
        self.kept.append(value)
        return (kind.__name__, *map(self, self.hanging(value)))

    def gradient(self, variable: Variable) -> Any:
        """Gradients, too, where the program looks at some; one that a compiled step used up is like any other."""
        if not self.grads:
            return ()
        try:
            grad = variable.grad
        except GradientError:
            return AnyGradient()
        return None if grad is None else self.bits(grad.numpy())

    def hanging(self, value: Any) -> Iterator[Any]:
        kind = type(value)
        if kind is types.FunctionType:
            yield from (value.__name__, value.__defaults__, value.__kwdefaults__, vars(value))
            yield [self.cell(c) for c in value.__closure__ or ()]
        elif kind is types.MethodType:
            yield from (value.__self__, value.__func__)
        elif kind is types.CellType:
            yield self.cell(value)
        elif kind is functools.partial:
            yield from (value.func, value.args, value.keywords, vars(value))
        elif kind is property:
            yield from (value.fget, value.fset)
        else:
            skip = ("__dict__", "__weakref__", "__doc__", "__module__", "__builtins__", "_abc_impl")
            yield {k: v for k, v in sorted(vars(value).items()) if k not in skip and not k.startswith("__")}

    def cell(self, cell: Any) -> Any:
        try:
            return cell.cell_contents
        except ValueError:
            return "empty"

    def bits(self, array: np.ndarray) -> Any:
        if array.dtype.kind == "f" and np.isnan(array).any():
            array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
        return super().bits(array)

    def attributes(self, value: Any, skip: str = "") -> Any:
        kind = type(value)
        if not own_module(kind):
            return super().attributes(value, skip)
        slots = [
            (name, self(member.__get__(value)))
            for base in kind.__mro__
            if "__slots__" in vars(base)
            for name, member in vars(base).items()
            if type(member) is types.MemberDescriptorType and _has(member, value)
        ]
        space = getattr(value, "__dict__", {})
        hidden = _hidden(value)
        return [(k, self(v)) for k, v in space.items() if k not in hidden], slots

    def content(self, value: Any) -> Any:
        if isinstance(value, (dict, list, tuple)):  # not by what the class makes of it
            base = next(b for b in (dict, list, tuple) if isinstance(value, b))
            items = (
                dict.items(value)
                if base is dict and type(value).__mro__[1] is dict and own_module(type(value))
                else None
            )
            return [(self(k), self(v)) for k, v in items] if items is not None else super().content(value)
        return () if own_module(type(value)) and not isinstance(value, (set, frozenset)) else super().content(value)


def own_module(kind: type) -> bool:
    return kind.__module__ == _NAME


def _has(member: Any, value: Any) -> bool:
    try:
        member.__get__(value)
    except AttributeError:
        return False
    return True


def _hidden(value: Any) -> tuple[str, ...]:
    """Return the attributes that Runnel itself keeps on Modules, which differ between worlds."""
    return tuple(k for k in vars(value) if k.startswith("_")) if isinstance(value, rn.nn.Module) else ()


class World:
    def __init__(self, program: Program, compiled: bool, refused_changes: frozenset[str] = frozenset()) -> None:
        self.compiled = compiled
        self.refused_changes = set(refused_changes)  # that fail with an error of ours where nothing is compiled
        self.module = types.ModuleType(_NAME)
        self.space = vars(self.module)
        exec(_IMPORTS, self.space)
        self.given = set(self.space)
        self.program = program

    def run(self) -> Iterator[Called]:
        with (
            pytest.MonkeyPatch.context() as patch,
            switches.override(eager=not self.compiled),
            worlds.without_audits(),
        ):
            patch.setitem(sys.modules, _NAME, self.module)
            for generator in (rn.manual_seed, np.random.seed, random.seed):
                generator(7)
            exec(compile(_LOCALS + self.program.source, f"<{_NAME}>", "exec"), self.space)
            self.step = self.space["step"]
            if not callable(self.step):  # made smaller
                raise TypeError("step is no function")
            if self.compiled:
                self.step = rn.compile(self.step, keep_grads=self.space.get("keep_grads", False))
            for event in self.program.events:
                if _CALL.match(event):
                    yield self.call(event)
                else:
                    self.change(event)

    def change(self, event: str) -> None:
        """Change the world. A failure changes nothing; but a clear error of ours ends the comparison."""
        with quiet(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exec(event, self.space)
            except RunnelError as problem:
                if not self.compiled:
                    self.refused_changes.add(event)
                elif event not in self.refused_changes:
                    raise Refused(f"{event}: {problem}") from problem
            except Exception:
                pass

    def call(self, text: str) -> Called:
        refused = False
        out = io.StringIO()
        space, kept = self.space, text.startswith("last = ")
        scope = {**space, "step": self.step}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = compile(text.removeprefix("last = "), "<call>", "eval")
        with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out):
            warnings.simplefilter("always")
            try:
                result: Any = ("gives", eval(code, scope))
                if kept:
                    space["last"] = result[1]
            except Exception as problem:
                refused = isinstance(problem, RunnelError) and self.compiled
                result = ("raises", type(problem).__name__, str(problem).partition("\n")[0])
        told = tuple(str(w.message) for w in caught if issubclass(w.category, CaptureWarning))
        said = [str(w.message) for w in caught if not issubclass(w.category, CaptureWarning)]
        try:
            seen = self.seen(result, out.getvalue(), said)
        except RunnelError as problem:  # a traced tensor is left behind
            seen = [("(unreadable)", str(problem))]
        return Called(result, seen, told, refused)

    def seen(self, result: Any, printed: str, said: list[str]) -> list[Any]:
        """Return everything that is compared."""
        look = Look("keep_grads" in self.space)
        seen = [("(result)", look(result)), ("(printed)", _ADDRESS.sub("an address", printed)), ("(warned)", said)]
        seen += [(k, look(self.space[k])) for k in sorted(set(self.space) - self.given - {"step"}) if k not in _HIDDEN]
        seen.append(("(generator)", look(rn.get_rng_state())))
        return seen


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()):
        yield


def compare(program: Program) -> Outcome:
    """Return the first difference between the worlds, if any; a compiled world that never ends differs, too."""
    try:
        first = World(program, compiled=False)
        with limited(LONGEST):
            plain = list(first.run())
    except (Exception, Endless) as problem:  # the world is not one, which can be when it was made smaller
        return Outcome(None, 0, 0, (f"no world: {type(problem).__name__}: {problem}",))
    world = World(program, compiled=True, refused_changes=frozenset(first.refused_changes))
    known = [Outcome(None, 0, 0, ())]
    try:
        with limited(LONGEST_COMPILED):
            known.extend(_compared(plain, world))
    except Refused as problem:
        return known[-1]._replace(reasons=(*known[-1].reasons, f"between calls: {problem}"))
    except Endless:
        return known[-1]._replace(fault=f"call {known[-1].calls}: not done after {LONGEST_COMPILED} s")
    return known[-1]


def _compared(plain: list[Called], world: World) -> Iterator[Outcome]:
    """Yield the outcome after each call, up to the one that differs."""
    reasons: tuple[str, ...] = ()
    for number, (a, b) in enumerate(zip(plain, world.run(), strict=True)):
        reasons += b.told
        if b.refused and b.result[:2] != a.result[:2]:
            yield Outcome(None, number, traces(world), (*reasons, f"{b.result[1]}: {b.result[2]}"))
            return
        if a.seen != b.seen:
            yield Outcome(f"call {number}: {difference(a, b)}", number, traces(world), reasons)
            return
        yield Outcome(None, number + 1, traces(world), reasons)


def traces(world: World) -> int:
    return int(world.step.statistics["traces"]) if hasattr(world.step, "statistics") else 0


def difference(a: Called, b: Called) -> str:
    """Return the first difference, as text."""
    names = dict(b.seen)
    for name, value in a.seen:
        if name not in names:
            return f"{name} is missing, {names.get('(unreadable)', '')}"
        if names[name] != value:
            return f"{name}\n  eager    {_short(value)}\n  compiled {_short(names[name])}"
    return f"more names: {sorted(set(names) - set(dict(a.seen)))}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 600 else text[:600] + "..."
