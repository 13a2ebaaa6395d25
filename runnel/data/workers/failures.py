"""Errors from process to process, with their tracebacks."""

from __future__ import annotations

import contextlib
import pickle
import traceback
from typing import NamedTuple

from runnel.core.errors import WorkerError


class Failure(NamedTuple):
    """An error that a worker met: the pickled error, if it can be pickled, and its traceback as text."""

    error: bytes | None
    summary: str
    where: str
    traceback: str


class WorkerTraceback(Exception):
    """The traceback of an error in the process where it was raised: its cause in this one."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def failure(error: Exception, where: str) -> Failure:
    """``error`` as it is sent."""
    text = "".join(traceback.format_exception(error))
    content = None
    with contextlib.suppress(Exception):
        content = pickle.dumps(error)
        pickle.loads(content)  # errors with arguments of their own often can be written and not read
        return Failure(content, f"{type(error).__name__}: {error}", where, text)
    return Failure(None, f"{type(error).__name__}: {error}", where, text)


def received(worker: str, sent: Failure) -> Exception:
    """The error that ``worker`` sent, with its traceback as the cause. WorkerError in place of one that cannot be
    passed on."""
    error: Exception | None = None
    if sent.error is not None:
        with contextlib.suppress(Exception):
            error = pickle.loads(sent.error)
    place = f"[DataLoader] raised by {worker}, {sent.where}."
    if error is None:
        error = WorkerError(f"{place} {sent.summary}")
    else:
        error.add_note(place)
    error.__cause__ = WorkerTraceback(sent.traceback)
    return error
