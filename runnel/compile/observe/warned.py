"""Warnings: told at each call, as if at the line that was observed; raised there where filters make them errors."""

from __future__ import annotations

import warnings
from typing import Any

from runnel.compile.observe import operators
from runnel.compile.observe.classes import is_python_class
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import SYMBOLIC


def warn(
    rec: Recorder, message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **kwargs: Any
) -> None:
    """``warnings.warn``, by the recorder."""
    if is_python_class(type(message)) and not issubclass(type(message), Warning):
        message = operators.text(rec, str, message)
    kind = type(message) if issubclass(type(message), Warning) else category or UserWarning
    frame = rec.frame(stacklevel)
    registry = frame.f_globals.setdefault("__warningregistry__", {}) if frame is not None else {}
    module = frame.f_globals.get("__name__") if frame is not None else "sys"
    file, line = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("sys", 1)
    if _is_error(rec, message, kind, module, line):
        raise message if issubclass(type(message), Warning) else kind(message)
    rec.effects.show(
        lambda _, __, text: warnings.warn_explicit(text, kind, file, line, module, registry),
        None,
        message,
        "warnings.warn()",
    )


def _is_error(rec: Recorder, message: Any, kind: type[Warning], module: str, line: int) -> bool:
    """Whether filters make it an error, which is asked again at each call."""
    is_error = raises(str(message), kind, module, line)
    text = str(message) if type(message) not in SYMBOLIC else None
    if text is None and raises(None, kind, module, line) is not is_error:
        text = rec.concrete_number(message)
    constants = (raises, text, kind, module, line)
    at = rec.log.source(None, "{0}({1}, {2}, {3}, {4})", "whether a warning is an error", is_error, constants)
    rec.reach(is_error, at)
    return is_error


def raises(text: str | None, kind: type[Warning], module: str, line: int) -> bool:
    """Whether ``warnings.warn_explicit`` raises such a warning. A text that is not known, for it differs from call to
    call, is taken for one that a filter asks for."""
    for action, pattern, category, modules, at in warnings.filters:
        may_match = text is None and action == "error"
        matches = pattern is None or may_match or (text is not None and pattern.match(text))
        if matches and issubclass(kind, category) and (modules is None or modules.match(module)) and at in (0, line):
            return bool(action == "error")
    return bool(vars(warnings)["defaultaction"] == "error")
