"""Log records: they are made at each call, after the program has run. Handlers and filters of the user's that a record
reaches may change what the function reads; then the function cannot be kept."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any, Final

from runnel.compile.observe import operators
from runnel.compile.observe.classes import is_python_class, mro, namespace
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import FIXED, PLAIN, SYMBOLIC, described, is_class

_LEVELS: Final = {n: getattr(logging, n.upper()) for n in ("debug", "info", "warning", "error", "critical")}
_NAMES: Final = (*_LEVELS, "log")
_REACHED: Final = "reached by log records"


def table() -> dict[int, Callable[..., Any]]:
    """What the recorder does in place of functions that log, by their identity."""
    return deferred() | {id(logging.getLogger): _logger, id(logging.Logger.isEnabledFor): _is_enabled}


def deferred() -> dict[int, Callable[..., Any]]:
    """The same of those that make records."""
    functions = [(getattr(owner, n), owner is logging.Logger) for owner in (logging.Logger, logging) for n in _NAMES]
    return {id(function): _deferred(function, is_method) for function, is_method in functions}


def _deferred(function: Any, is_method: bool) -> Callable[..., Any]:
    named = function.__name__

    def answer(rec: Recorder, *args: Any, **kwargs: Any) -> None:
        target, rest = (args[0], args[1:]) if is_method else (None, args)
        level, rest = (rec.concrete_number(rest[0]), rest[1:]) if named == "log" else (_LEVELS[named], rest)
        if type(level) is not int or not rest:
            rec.refuse(f"a log record has no {'message' if rest == () else 'level that is a number'}")
        if any(type(x) not in PLAIN and type(x) not in SYMBOLIC for x in kwargs.values()):
            rec.refuse("a log record is made with objects")
        if kwargs.get("exc_info") or kwargs.get("stack_info"):
            rec.refuse("a log record holds a traceback", "log it outside of the compiled function")
        if any(type(x) not in PLAIN and type(x) not in SYMBOLIC for x in rest):
            if not _is_enabled(rec, _logger(rec) if target is None else target, level):
                return  # nobody formats it
            rest = (_message(rec, *rest),)
        _reaches(rec, target)
        place = _place(rec, rec.concrete_number(kwargs.get("stacklevel", 1)))
        rec.effects.show(lambda at, _, parts: _tell(at, level, place, *parts), target, list(rest), "logging")

    return answer


def _message(rec: Recorder, message: Any, *args: Any) -> Any:
    """What ``LogRecord.getMessage`` gives, of objects as they are."""
    template = message if type(message) in PLAIN or type(message) in SYMBOLIC else operators.text(rec, str, message)
    if not args:
        return template
    of_names = len(args) == 1 and isinstance(args[0], Mapping) and args[0]
    return operators.binary(rec, "%", template, args[0] if of_names else args)


def _place(rec: Recorder, level: int) -> tuple[str, int, str]:
    """File, line and function that a record names (``Logger.findCaller``)."""
    depth = 0
    while level > 0:
        depth += 1
        frame = rec.frame(depth)
        if frame is None:
            rec.refuse("a log record names a line outside of the function", "leave its stacklevel out")
        level -= frame.f_code.co_filename != logging.__file__
    return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name


def _tell(target: Any, level: int, place: tuple[str, int, str], message: Any, *args: Any) -> None:
    """Make a record as ``Logger._log`` does, with the place where it was made."""
    if target is None and not logging.root.handlers:
        logging.basicConfig()
    logger = logging.root if target is None else target
    if logger.isEnabledFor(level):
        file, line, function = place
        logger.handle(logger.makeRecord(logger.name, level, file, line, message, args, None, function, None, None))


def _logger(rec: Recorder, name: Any = None) -> Any:
    """``logging.getLogger(name)`` gives the same object for the same name."""
    name = rec.concrete_number(name)
    logger = logging.getLogger(name)
    label = f"logging.getLogger({name!r})"
    return rec.reach(logger, rec.log.source(None, "{0}({1})", label, logger, (logging.getLogger, rec.constant(name))))


def _is_enabled(rec: Recorder, logger: Any, level: Any) -> bool:
    """``logger.isEnabledFor(level)``, which depends on all loggers above."""
    level, at = rec.concrete_number(level), rec.source_of(logger)
    is_enabled = logger.isEnabledFor(level)
    if at is not None:
        label = f"{at}.isEnabledFor({level!r})"
        rec.reach(is_enabled, rec.log.source(at, "{p}.isEnabledFor({0})", label, is_enabled, (rec.constant(level),)))
    return bool(is_enabled)


# Handlers of the user's -----------------------------------------------------------------------------------------------


def _reaches(rec: Recorder, logger: Any) -> None:
    """A record goes to these handlers, as long as they are of the same classes."""
    at = rec.source_of(logger)
    names = rec.constant(_names(logger))
    where = "{v}" if at is not None else "None"
    rec.log.check(at, f"{{0}}({where}) != {{1}}", "handlers of log records", (_names, names))
    rec.memo.setdefault(_REACHED, []).extend(_of_users(logging.root if logger is None else logger))


def _of_users(logger: Any) -> Iterator[Any]:
    """Handlers, their formatters and filters that are not the library's own."""
    while logger is not None:
        for handler in logger.handlers:
            yield from filter(_is_users, (handler, handler.formatter, *handler.filters))
        yield from filter(_is_users, logger.filters)
        logger = logger.parent if logger.propagate else None


def _is_users(value: Any) -> bool:
    module = getattr(type(value), "__module__", None) or ""
    is_library = module.partition(".")[0] in sys.stdlib_module_names and module != "__main__"
    return value is not None and not is_library


def _names(logger: Any) -> tuple[str, ...]:
    kinds = [type(value) for value in _of_users(logging.root if logger is None else logger)]
    return tuple([f"{kind.__module__}.{kind.__qualname__}" for kind in kinds])


def require_unread(rec: Recorder) -> None:
    """What those handlers may change was not read by the run."""
    for value in rec.memo.get(_REACHED, ()):
        if any(_is_read(rec, part) for part in _named_by(value)):
            rec.refuse(
                f"something that {described(value)} names is read by the function, whose log records it handles",
                "read it outside, or keep the count in the function",
            )


def _is_read(rec: Recorder, value: Any) -> bool:
    return type(value) not in PLAIN and type(value) not in FIXED and id(value) in rec.sources


def _named_by(value: Any) -> Iterator[Any]:
    """The object, what it holds, its class, and what the methods of its class name."""
    yield value
    yield from getattr(value, "__dict__", {}).values()
    functions = [value] if type(value) is FunctionType else []
    for kind in mro(type(value)):
        if is_python_class(kind) and kind.__module__.partition(".")[0] not in sys.stdlib_module_names:
            yield kind
            functions += [x for x in namespace(kind).values() if type(x) is FunctionType]
    for function in functions:
        named = [function.__globals__.get(name) for name in function.__code__.co_names]
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):  # it is empty
                named.append(cell.cell_contents)
        yield from [x for x in named if not (type(x) is FunctionType or is_class(x))]
