"""Stories: small programs as text, each run in two equal worlds, eager and compiled.

A table of stories is one text. Each story begins with a line ``## name``; after the name may stand

* ``eager: text``: the calls run eagerly, after a warning that contains the text (``perhaps``: or as a program);
* ``traces: n``: how often the function is traced at most (otherwise 2, and once more for each change);
* ``calls: n``: how often it is called before each change and after the last (otherwise 4 times);
* ``fails: reason``: the story does not hold yet.

The story is a program that defines ``step``, which is called a few times. Each line ``#> ...`` is a change of the
world, after which it is called again. ``arguments(i)``, if defined, returns the arguments of call ``i``.
Compared are the result or error of each call, the output, and the values of all names of the program.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

import runnel as rn
from runnel.core import switches
from tests.compile.worlds import Call, Outcome, outcome, tensor, without_audits

_WORLD: Final = "user_program"
_NAMES: Final = """
import abc, bisect, collections, contextlib, copy, dataclasses, enum, functools, heapq, io, itertools, json, logging
import math, operator, queue, random, re, string, sys, threading, time, types, typing, warnings, weakref
import numpy as np
import runnel as rn
from runnel import nn, optim
from runnel.nn import functional as F
from runnel.optim import lr_scheduler
"""
_KEYS: Final = re.compile(r", (eager|traces|calls|fails): ")


class Story(NamedTuple):
    source: str
    changes: list[str]
    eager: str | None
    traces: int
    calls: int

    def run(self, patch: pytest.MonkeyPatch) -> Any:
        """Compare both worlds; return the compiled step."""
        plain, _ = self._told(patch, lambda step: step)
        compiled, step = self._told(patch, rn.compile)
        for number, (a, b) in enumerate(zip(plain, compiled, strict=True)):
            assert b.seen == a.seen, f"call {number}"
        messages = [text for one in compiled for text in one.told]
        if self.eager is None:
            assert not messages, messages
            assert step.statistics["traces"] <= self.traces, step.retraces
        elif self.eager:
            assert any(self.eager in text for text in messages), messages or "nothing was said"
        return step

    def _told(self, patch: pytest.MonkeyPatch, run: Callable[[Any], Any]) -> tuple[list[Outcome], Any]:
        world = types.ModuleType(_WORLD)
        patch.setitem(sys.modules, _WORLD, world)
        with switches.override(eager=run is not rn.compile), without_audits():
            for generator in (rn.manual_seed, np.random.seed, __import__("random").seed):
                generator(7)
            exec(_NAMES, vars(world))
            vars(world).update(tensor=tensor)
            given = dict(vars(world))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)  # of a return in a finally clause, from 3.14 on
                exec(self.source, vars(world))
            step = run(vars(world)["step"])

            def called(*args: Any) -> Any:
                try:
                    return step(*args)
                except Exception as problem:
                    return type(problem).__name__, str(problem).partition("\n")[0]

            def state() -> Any:
                names = [k for k in vars(world) if not k.startswith("_") and given.get(k) is not vars(world)[k]]
                return [content(k, vars(world)[k]) for k in names]

            outcomes = []
            arguments = vars(world).get("arguments", lambda _: (tensor(1.0, -2.0, 3.0),))
            for change in ["", *self.changes]:
                exec(change, vars(world))
                for _ in range(self.calls):
                    outcomes.append(outcome(called, Call(arguments(len(outcomes)), {}), state))
            return outcomes, step


def content(name: str, value: Any) -> Any:
    if inspect.isclass(value):
        return name, {k: v for k, v in vars(value).items() if type(v) in (int, float, str)}
    is_told_by_address = type(value).__module__ in ("weakref", "_weakrefset")
    return name, "" if inspect.isroutine(value) or inspect.ismodule(value) or is_told_by_address else value


def stories(text: str, before: str = "") -> list[Any]:
    """Return the stories of a table as parameters of a test. Each program begins with ``before``."""
    params = []
    for part in text.strip().split("## ")[1:]:
        head, _, body = part.partition("\n")
        name, *words = _KEYS.split(head)
        given = dict(zip(words[::2], words[1::2], strict=True))
        eager = "" if given.get("eager") == "perhaps" else given.get("eager")
        source, *changes = re.split(r"^#> ", body, flags=re.MULTILINE)
        traces, calls = int(given.get("traces", 2 + len(changes))), int(given.get("calls", 4))
        story = Story(before + source, changes, eager, traces, calls)
        marks = [pytest.mark.xfail(strict=True, reason=given["fails"])] if "fails" in given else []
        params.append(pytest.param(story, id=name, marks=marks))
    return params
