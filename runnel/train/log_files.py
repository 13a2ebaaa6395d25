"""Figures of a training in text files: a JSON object or a row of CSV for each epoch, or for each step."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from runnel.core.errors import ArgumentError, FileError
from runnel.train.callbacks import Callback, Logs, Run


class _LogFile(Callback):
    """Lines that are appended to a file. A training that is continued cuts off what was written after the state that it
    continues from, so that the file is that of a training without interruption."""

    def __init__(self, path: str | os.PathLike[str], every_steps: int = 0) -> None:
        if every_steps < 0:
            raise ArgumentError(f"[{type(self).__name__}] every_steps is 0 or more; received {every_steps}.")
        self.path = Path(path)
        self.every_steps = every_steps
        self._length: int | None = None  # of the file when the state was saved that is continued from
        self._file: Any = None

    def text(self, row: dict[str, Any], is_first: bool) -> str:
        """A line, or at the start of the file more than one."""
        raise NotImplementedError

    def on_fit_start(self, trainer: Run) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "ab" if self._length is not None or trainer.steps else "wb")  # noqa: SIM115
            if self._length is not None and self._length < self._file.tell():
                self._file.truncate(self._length)
                self._file.seek(self._length)
        except OSError as error:
            raise self._failure(error) from error

    def on_step_end(self, trainer: Run, logs: Logs) -> None:
        if self.every_steps and trainer.steps % self.every_steps == 0:
            self._write({"epoch": trainer.epochs + 1, "step": trainer.steps, **logs})

    def on_epoch_end(self, trainer: Run, logs: Logs) -> None:
        if not self.every_steps:
            self._write({"epoch": trainer.epochs, "step": trainer.steps, **logs})

    def on_fit_end(self, trainer: Run) -> None:
        if self._file is not None:
            self._length = self._file.tell()
            self._file.close()
            self._file = None

    def _write(self, row: dict[str, Any]) -> None:
        try:
            self._file.write(self.text(row, self._file.tell() == 0).encode())
            self._file.flush()
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> FileError:
        answer = FileError(f"[{type(self).__name__}] '{self.path}' could not be written: {error.strerror}.")
        answer.errno = error.errno
        return answer

    def state_dict(self) -> dict[str, Any]:
        return {"length": self._length if self._file is None else self._file.tell()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._length = state["length"]


class JSONLines(_LogFile):
    """A JSON object for each epoch, or with ``every_steps`` for each so many steps, on a line of its own. Numbers that
    are not finite are null.

    Args:
        path: the file.
        every_steps: 0 for a line an epoch.
    """

    def text(self, row: dict[str, Any], is_first: bool) -> str:
        return json.dumps({name: _plain(value) for name, value in row.items()}) + "\n"


class CSVLog(_LogFile):
    """A row of comma-separated values for each epoch, or with ``every_steps`` for each so many steps, under a head with
    the names. Figures that are no numbers are left out.

    Args:
        path: the file.
        every_steps: 0 for a row an epoch.
        separator: between two values.
    """

    def __init__(self, path: str | os.PathLike[str], every_steps: int = 0, separator: str = ",") -> None:
        super().__init__(path, every_steps)
        self.separator = separator

    def text(self, row: dict[str, Any], is_first: bool) -> str:
        numbers = {name: value for name, value in row.items() if isinstance(value, int | float)}
        buffer = io.StringIO()
        writer = csv.writer(buffer, delimiter=self.separator, lineterminator="\n")
        if is_first:
            writer.writerow(numbers)
        writer.writerow(numbers.values())
        return buffer.getvalue()


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
