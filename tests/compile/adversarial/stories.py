"""Stories as text: a world, a ``step(x)`` in it, and changes of that world. Compiled or not, all must look the same.

A table of stories is one text. A story begins with ``## name``, behind which it may say ``eager: ...``, a part of the
warning where calls run eagerly (``perhaps``: on some versions of Python), and ``traces: n``, how often it is traced at
most. A line ``#> ...`` is a change, with calls before and after it. ``arguments(i)``, where the world has it, gives the
arguments of call ``i``. What is compared is what each call gives or raises, what is printed, and all that the world
holds.
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
from tests.compile.adversarial.worlds import Call, Outcome, outcome, tensor, without_audits

WARM: Final = 3  # calls before each change, and after the last
_WORLD: Final = "user_program"
_NAMES: Final = """
import abc, bisect, collections, contextlib, copy, dataclasses, enum, functools, heapq, io, itertools, json, logging
import math, operator, queue, random, re, string, sys, time, types, typing, warnings, weakref
import numpy as np
import runnel as rn
from runnel import nn, optim
"""
_HEAD: Final = re.compile(r"(?P<name>\w+)(?:, eager: (?P<eager>.*?))?(?:, traces: (?P<traces>\d+))?")


class Story(NamedTuple):
    source: str
    changes: list[str]
    eager: str | None
    traces: int

    def run(self, patch: pytest.MonkeyPatch) -> Any:
        """The compiled step, after both worlds were compared."""
        plain, _ = self._told(patch, lambda step: step)
        compiled, step = self._told(patch, rn.compile)
        for number, (a, b) in enumerate(zip(plain, compiled, strict=True)):
            assert b.seen == a.seen, f"call {number}"
        messages = [text for one in compiled for text in one.told]
        if not self.eager:
            assert not messages or self.eager == "", messages
            assert step.statistics["traces"] <= self.traces, step.retraces
        else:
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
                for _ in range(WARM):
                    outcomes.append(outcome(called, Call(arguments(len(outcomes)), {}), state))
            return outcomes, step


def content(name: str, value: Any) -> Any:
    if inspect.isclass(value):
        return name, {k: v for k, v in vars(value).items() if type(v) in (int, float, str)}
    is_told_by_address = type(value).__module__ in ("weakref", "_weakrefset")
    return name, "" if inspect.isroutine(value) or inspect.ismodule(value) or is_told_by_address else value


def stories(text: str) -> list[Any]:
    """The stories of a table, as parameters of a test."""
    params = []
    for part in text.strip().split("## ")[1:]:
        head, _, body = part.partition("\n")
        words = _HEAD.fullmatch(head)
        assert words is not None, head
        eager = "" if words["eager"] == "perhaps" else words["eager"]
        source, *changes = re.split(r"^#> ", body, flags=re.MULTILINE)
        story = Story(source, changes, eager, int(words["traces"] or 3 + 2 * len(changes)))
        params.append(pytest.param(story, id=words["name"]))
    return params
