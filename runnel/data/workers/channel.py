"""Send messages, file handles and errors with their tracebacks between processes over a socket."""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import struct
import traceback
from collections import deque
from typing import NamedTuple

from runnel.core.errors import WorkerError

_LENGTH = struct.Struct("<Q")
_CHUNK = 1 << 16
_MOST_HANDLES = 4  # received at once; a message has one at most
_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


def send(end: socket.socket, content: bytes, handles: tuple[int, ...] = ()) -> None:
    """Send a message, and wait until it is under way (worker's side)."""
    head = _LENGTH.pack(len(content))
    if handles:
        socket.send_fds(end, [head], list(handles))  # a few bytes go at once or not at all
        head = b""
    end.sendall(head + content)


def receive(end: socket.socket) -> bytes | None:
    """Wait for a message (worker's side); None if there will be no more."""
    head = _exactly(end, _LENGTH.size)
    return None if head is None else _exactly(end, _LENGTH.unpack(head)[0])


def _exactly(end: socket.socket, size: int) -> bytes | None:
    content = bytearray()
    while len(content) < size:
        piece = end.recv(min(size - len(content), 1 << 20))
        if not piece:
            return None
        content += piece
    return bytes(content)


class Channel:
    """The parent's side, which never waits: unsent and partly received messages are kept."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._end = end
        self._unsent = bytearray()
        self._received = bytearray()
        self.handles: deque[int] = deque()
        self.is_open = True

    def fileno(self) -> int:
        return self._end.fileno()

    @property
    def has_unsent(self) -> bool:
        """True if there is something to send as soon as there is room."""
        return bool(self._unsent) and self.is_open

    def post(self, content: bytes) -> None:
        """Send a message now or later."""
        self._unsent += _LENGTH.pack(len(content)) + content
        self.flush()

    def flush(self) -> None:
        """Send as much as possible. :meth:`messages` reports a reader that is gone."""
        try:
            while self._unsent:
                sent = self._end.send(self._unsent[:_CHUNK])
                del self._unsent[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self._unsent.clear()

    def messages(self) -> list[bytes]:
        """Return the complete messages. Afterwards ``is_open`` is False if there will be no more."""
        while self.is_open:
            try:
                piece, handles, _, _ = socket.recv_fds(self._end, _CHUNK, _MOST_HANDLES, _CLOSE_ON_EXEC)
            except BlockingIOError:
                break
            except OSError:
                piece, handles = b"", []
            self.handles.extend(handles)
            self._received += piece
            self.is_open = bool(piece)
        contents = []
        while len(self._received) >= _LENGTH.size:
            size = _LENGTH.unpack_from(self._received)[0] + _LENGTH.size
            if len(self._received) < size:
                break
            contents.append(bytes(self._received[_LENGTH.size : size]))
            del self._received[:size]
        return contents

    def close(self) -> None:
        """Close it, with the handles that were not taken."""
        self.is_open = False
        with contextlib.suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)  # for the worker's end, even if a forked process has a copy of ours
        self._end.close()
        while self.handles:
            os.close(self.handles.popleft())


class Failure(NamedTuple):
    """An error in a worker: pickled if possible, and its traceback as a string."""

    error: bytes | None
    summary: str
    where: str
    traceback: str


class WorkerTraceback(Exception):
    """The traceback of an error in another process, set as its cause."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def failure(error: Exception, where: str) -> Failure:
    """Return ``error`` as a message."""
    text = "".join(traceback.format_exception(error))
    content = None
    with contextlib.suppress(Exception):
        content = pickle.dumps(error)
        pickle.loads(content)  # errors with custom arguments often can be pickled but not unpickled
        return Failure(content, f"{type(error).__name__}: {error}", where, text)
    return Failure(None, f"{type(error).__name__}: {error}", where, text)


def received(worker: str, sent: Failure) -> Exception:
    """Return the error that ``worker`` sent, with its traceback as the cause.

    It is a WorkerError if the original cannot be passed on.
    """
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
