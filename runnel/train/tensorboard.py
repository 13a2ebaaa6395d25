"""Write metrics for TensorBoard: its event files, by their public format, and the callback that fills them."""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from runnel.core.errors import ArgumentError, FileError
from runnel.train.callbacks import Callback, Logs, Run

_MASK: Final = 0xA282EAD8
_VERSION: Final = b"brain.Event:2"
_START: Final = 1  # SessionLog.START: what has this step or a later one, and was written before, is void


def _table() -> tuple[int, ...]:
    """Return the CRC-32C of each byte: polynomial 0x1EDC6F41, reflected (G. Castagnoli et al., 1993)."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


_TABLE: Final = _table()


def crc32c(data: bytes) -> int:
    """Return the CRC-32C checksum of ``data``."""
    value = 0xFFFFFFFF
    for byte in data:
        value = _TABLE[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


def masked(checksum: int) -> int:
    """Return a checksum as stored in records: rotated by 15 bits, plus a constant."""
    return ((checksum >> 15 | checksum << 17) + _MASK) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(crc32c(length))) + data + struct.pack("<I", masked(crc32c(data)))


def first_event(wall_time: float) -> bytes:
    """Return the first event of a file."""
    return _event(wall_time, 0, _bytes(3, _VERSION))


def start_event(wall_time: float, step: int) -> bytes:
    """Return the first event of a continued training run."""
    return _event(wall_time, step, _bytes(7, _varint(1, _START)))


def scalars(wall_time: float, step: int, values: Mapping[str, float]) -> bytes:
    """Return an event with numbers by their tags, at a step."""
    parts = [_bytes(1, _bytes(1, tag.encode()) + _float(2, value)) for tag, value in values.items()]
    return _event(wall_time, step, _bytes(5, b"".join(parts)))


def _event(wall_time: float, step: int, what: bytes) -> bytes:
    return _key(1, 1) + struct.pack("<d", wall_time) + _varint(2, step) + what


def _key(number: int, wire: int) -> bytes:
    return _base128(number << 3 | wire)


def _varint(number: int, value: int) -> bytes:
    return _key(number, 0) + _base128(value & 0xFFFFFFFFFFFFFFFF)


def _bytes(number: int, value: bytes) -> bytes:
    return _key(number, 2) + _base128(len(value)) + value


def _float(number: int, value: float) -> bytes:
    return _key(number, 5) + struct.pack("<f", value)


def _base128(value: int) -> bytes:
    """Return groups of seven bits, the lowest first; all but the last have the top bit set."""
    result = bytearray()
    while value > 0x7F:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)


class TensorBoard(Callback):
    """Write results to event files in a folder, for ``tensorboard --logdir FOLDER``.

    The run "epoch" has a point for each epoch, and with ``every_steps`` the run "step" one every ``every_steps`` steps.
    A continued training run writes new files, and voids what was written after its state. You need only Runnel to write
    them.

    Args:
        folder: the folder, created if need be.
        every_steps: 0 for only epochs.
    """

    def __init__(self, folder: str | os.PathLike[str], every_steps: int = 0) -> None:
        if every_steps < 0:
            raise ArgumentError(f"[TensorBoard] every_steps must be 0 or more; got {every_steps}.")
        self.folder = Path(folder)
        self.every_steps = every_steps
        self._writers: dict[str, Writer] = {}

    def on_fit_start(self, trainer: Run) -> None:
        first = {"epoch": trainer.epochs + 1, **({"step": trainer.steps + 1} if self.every_steps else {})}
        for name, number in first.items():
            self._writers[name] = Writer(self.folder / name, number if trainer.steps else None)

    def on_step_end(self, trainer: Run, logs: Logs) -> None:
        if self.every_steps and trainer.steps % self.every_steps == 0:
            self._writers["step"].write(trainer.steps, logs)

    def on_epoch_end(self, trainer: Run, logs: Logs) -> None:
        self._writers["epoch"].write(trainer.epochs, logs)

    def on_fit_end(self, trainer: Run) -> None:
        while self._writers:
            self._writers.popitem()[1].close()


class Writer:
    """An event file. Epochs and steps have separate files, because numbers in one run must increase."""

    def __init__(self, folder: Path, void_from: int | None) -> None:
        self._path = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._path, self._file = _new_file(folder)
        except OSError as error:
            raise self._failure(error) from error
        self._append(first_event(time.time()))
        if void_from is not None:
            self._append(start_event(time.time(), void_from))

    def write(self, number: int, logs: Mapping[str, Any]) -> None:
        numbers = {name: float(value) for name, value in logs.items() if isinstance(value, int | float | np.floating)}
        self._append(scalars(time.time(), number, numbers))

    def close(self) -> None:
        self._file.close()

    def _append(self, event: bytes) -> None:
        try:
            self._file.write(record(event))
            self._file.flush()
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> FileError:
        answer = FileError(f"[TensorBoard] '{self._path}' could not be written: {error.strerror}.")
        answer.errno = error.errno
        return answer


def _new_file(folder: Path) -> tuple[Path, Any]:
    """Create a file whose name sorts after the existing ones, because TensorBoard reads them in that order."""
    now = int(time.time())
    taken = [int(parts[3]) for name in os.listdir(folder) if (parts := name.split("."))[3:] and parts[3].isdigit()]
    while True:
        now = max([now, *(number + 1 for number in taken)])
        path = folder / f"events.out.tfevents.{now:010d}.{socket.gethostname()}"
        try:
            return path, open(path, "xb")
        except FileExistsError:
            taken.append(now)
