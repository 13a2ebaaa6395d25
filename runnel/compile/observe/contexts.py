"""Context variables: state that the guard asks for, and that each call sets and resets."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any, Final

from runnel.compile.observe.classes import MISSING
from runnel.compile.observe.plain import returning
from runnel.compile.observe.recorder import Recorder


def _get(rec: Recorder, variable: Any, function: Any, args: Any, kwargs: Any) -> Any:
    value = variable.get(MISSING) if not args else variable.get(*args)
    current = variable.get(MISSING)
    at = rec.source_of(variable)
    if at is not None and (id(variable), "") not in rec.effects.written:
        current = rec.reach_symbolic(current, rec.log.source(at, "{p}.get(MISSING)", f"{at}.get()", current))
        value = value if current is MISSING else current
    if current is MISSING and not args:
        return returning(variable.get())
    return returning(value)


class _Setting:
    """A value that the run has set: its token, and the list in which later calls keep theirs."""

    def __init__(self, variable: ContextVar[Any], value: Any) -> None:
        self.variable = variable
        self.token: Token[Any] = variable.set(value)
        self.tokens: list[Any] = []
        self.is_set = True

    def reset(self) -> None:
        if self.is_set:
            self.is_set = False
            self.variable.reset(self.token)


def _set(rec: Recorder, variable: Any, function: Any, args: Any, kwargs: Any) -> Any:
    source = rec.source_of(variable)
    if source is None or len(args) != 1 or kwargs:
        rec.refuse("a context variable that the function made is set", "make it outside")
    _get(rec, variable, function, (None,), {})  # resetting finds what was there
    setting = _Setting(variable, args[0])
    rec.effects.undo_by(setting.reset)
    rec.memo.setdefault(("settings", id(variable)), []).append(setting)
    rec.keep(setting)
    rec.effects.written.add((id(variable), ""))
    rec.effects.record(_set_again, variable, None, (args[0], setting.tokens), f"{source}.set(...)")
    return returning(setting.token)


def _reset(rec: Recorder, variable: Any, function: Any, args: Any, kwargs: Any) -> Any:
    settings = rec.memo.get(("settings", id(variable)), [])
    if len(args) != 1 or not settings or settings[-1].token is not args[0]:
        rec.refuse("a context variable is reset by another token than that of its last set()", "reset it outside")
    setting = settings.pop()
    setting.reset()
    rec.effects.record(_reset_again, variable, None, setting.tokens, f"{rec.source_of(variable)}.reset(...)")
    return returning(None)


def _set_again(variable: ContextVar[Any], _: Any, what: tuple[Any, list[Any]]) -> None:
    value, tokens = what
    tokens.append(variable.set(value))


def _reset_again(variable: ContextVar[Any], _: Any, tokens: list[Any]) -> None:
    variable.reset(tokens.pop())


METHODS: Final[dict[tuple[type, str], Any]] = {
    (ContextVar, "get"): _get,
    (ContextVar, "set"): _set,
    (ContextVar, "reset"): _reset,
}
