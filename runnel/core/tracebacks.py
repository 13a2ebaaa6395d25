"""Frames of users and of the package: tracebacks that show only the user's."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any, Final, TypeVar, cast

from runnel.core import switches
from runnel.core.errors import RunnelError

Function = TypeVar("Function", bound=Callable[..., Any])
_PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STDLIB: Final = os.path.dirname(os.__file__) + os.sep
_LIBRARIES: Final = ("numpy", "ml_dtypes", "llvmlite")  # what this package calls besides Python's own library
_OWN_FILES: Final[set[str]] = set()  # of this package, as far as they were met


def user_line() -> str:
    """Return ``file:line`` of the innermost frame outside this package: the user's line."""
    frame = _user_frame()
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def warn_user(text: str, category: type[Warning]) -> None:
    """Issue a warning at the user's line."""
    frame = _user_frame() or sys._getframe(1)
    warnings.warn_explicit(
        text,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        frame.f_globals.get("__name__"),
        frame.f_globals.setdefault("__warningregistry__", {}),
    )


def _user_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if file not in _OWN_FILES:
            if not file.startswith(_PACKAGE):
                return frame
            _OWN_FILES.add(file)
        frame = frame.f_back
    return None


def raised_at(error: BaseException) -> str:
    """Return ``file:line`` of the innermost user frame in ``error``'s traceback; an empty string if it has none."""
    lines = [f"{tb.tb_frame.f_code.co_filename}:{tb.tb_lineno}" for tb in _entries(error) if _is_users(tb)]
    return lines[-1] if lines else ""


def is_users(error: BaseException) -> bool:
    """Tell whether ``error`` was raised in user code, or in code that it called, as far as the traceback shows."""
    return any(map(_is_users, _entries(error)))


def passed(error: BaseException, name: str, modules: tuple[str, ...]) -> bool:
    """Tell whether ``error`` passed through a function ``name`` of a module whose name begins with one of ``modules``,
    as far as the traceback shows."""
    frames = [tb.tb_frame for tb in _entries(error) if tb.tb_frame.f_code.co_name == name]
    return any(str(frame.f_globals.get("__name__")).startswith(modules) for frame in frames)


def shorten(error: BaseException) -> None:
    """Drop the frames of this package from the traceback of an error that is not about them."""
    if switches.debug.value >= 1:
        return
    outer: TracebackType | None = None
    for tb in reversed([tb for tb in _entries(error) if _is_users(tb)]):
        outer = TracebackType(outer, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    error.__traceback__ = outer


def is_sentence(error: BaseException) -> bool:
    """Return whether ``error``, raised by this package, is meant for the user: ``[op] what is wrong``."""
    return isinstance(error, RunnelError) or str(error.args[0] if error.args else "").startswith("[")


def end_at_user(error: BaseException) -> None:
    """Let the traceback of what this package says of a mistake end at the user's line. For an ``except`` block that
    goes on with a bare ``raise``, which does not add its own line again."""
    if is_sentence(error) and not is_users(error):
        shorten(error)


def ending_at_user(function: Function) -> Function:
    """Decorate a function so that its errors about mistakes end at the user's line. Its arguments are not examined."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (Exception, KeyboardInterrupt) as error:
            end_at_user(error)
            raise

    return cast(Function, call)


def skip_own(error: BaseException) -> None:
    """Drop the frames of this package in front of the first one of the user's."""
    if switches.debug.value >= 1:
        return
    tb = error.__traceback__
    while tb is not None and not _is_users(tb):
        tb = tb.tb_next
    if tb is not None or isinstance(error, RunnelError):
        error.__traceback__ = tb


def is_own(function: Any) -> bool:
    """Return whether a function belongs to this package."""
    code = getattr(function, "__code__", None)
    return code is not None and code.co_filename.startswith(_PACKAGE)


def is_own_frame(frame: FrameType) -> bool:
    """Return whether ``frame`` runs code of this package."""
    return frame.f_code.co_filename.startswith(_PACKAGE)


def _entries(error: BaseException) -> Iterator[TracebackType]:
    tb = error.__traceback__
    while tb is not None:
        yield tb
        tb = tb.tb_next


def _is_users(tb: TracebackType) -> bool:
    return _is_users_file(tb.tb_frame.f_code.co_filename)


@functools.lru_cache(maxsize=1024)
def _is_users_file(file: str) -> bool:
    if file.startswith((_PACKAGE, "<frozen", "<guard", "<call")):
        return False
    if file.startswith(_STDLIB) and "site-packages" not in file and "dist-packages" not in file:
        return False
    return not file.startswith(_library_folders())


@functools.cache
def _library_folders() -> tuple[str, ...]:
    specs = [importlib.util.find_spec(name) for name in _LIBRARIES]
    return tuple(os.path.dirname(spec.origin) + os.sep for spec in specs if spec is not None and spec.origin)
