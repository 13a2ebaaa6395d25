"""Figures of a training as TensorBoard shows them."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from runnel.core.errors import ArgumentError, FileError
from runnel.train import event_files
from runnel.train.callbacks import Callback, Logs, Run


class TensorBoard(Callback):
    """Write the figures to event files in a folder: ``tensorboard --logdir FOLDER`` shows them. The run "epoch" has a
    point for each epoch, and with ``every_steps`` the run "step" one for each so many steps. A training that is
    continued writes files of its own, and voids what was written after the state that it continues from.

    Nothing but Runnel is needed to write them.

    Args:
        folder: where; it is made if need be.
        every_steps: 0 for epochs alone.
    """

    def __init__(self, folder: str | os.PathLike[str], every_steps: int = 0) -> None:
        if every_steps < 0:
            raise ArgumentError(f"[TensorBoard] every_steps is 0 or more; received {every_steps}.")
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
    """An event file. Epochs and steps have files of their own, since numbers in one run only grow."""

    def __init__(self, folder: Path, void_from: int | None) -> None:
        self._path = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._path, self._file = _new_file(folder)
        except OSError as error:
            raise self._failure(error) from error
        self._append(event_files.first_event(time.time()))
        if void_from is not None:
            self._append(event_files.start_event(time.time(), void_from))

    def write(self, number: int, logs: Mapping[str, Any]) -> None:
        numbers = {name: float(value) for name, value in logs.items() if isinstance(value, int | float | np.floating)}
        self._append(event_files.scalars(time.time(), number, numbers))

    def close(self) -> None:
        self._file.close()

    def _append(self, event: bytes) -> None:
        try:
            self._file.write(event_files.record(event))
            self._file.flush()
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> FileError:
        answer = FileError(f"[TensorBoard] '{self._path}' could not be written: {error.strerror}.")
        answer.errno = error.errno
        return answer


def _new_file(folder: Path) -> tuple[Path, Any]:
    """A file whose name sorts behind those that are there: TensorBoard reads them in the order of their names."""
    now = int(time.time())
    taken = [int(parts[3]) for name in os.listdir(folder) if (parts := name.split("."))[3:] and parts[3].isdigit()]
    while True:
        now = max([now, *(number + 1 for number in taken)])
        path = folder / f"events.out.tfevents.{now:010d}.{socket.gethostname()}"
        try:
            return path, open(path, "xb")
        except FileExistsError:
            taken.append(now)
