"""Results of a training run in text files: a JSON object or a row of CSV for each epoch or each few steps."""

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
    """A file to which lines are appended.

    A continued training run cuts off what was written after its state, so the file is the same as without interruption.
    """

    def __init__(self, path: str | os.PathLike[str], every_steps: int = 0) -> None:
        if every_steps < 0:
            raise ArgumentError(f"[{type(self).__name__}] every_steps must be 0 or more; got {every_steps}.")
        self.path = Path(path)
        self.every_steps = every_steps
        self._length: int | None = None  # of the file when the state was saved that is continued from
        self._file: Any = None

    def text(self, row: dict[str, Any], is_first: bool) -> str:
        """Return a line, or the first lines of the file."""
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
    """Write a JSON object per line for each epoch, or every ``every_steps`` steps. Non-finite numbers are null.

    Args:
        path: the file.
        every_steps: 0 for a line per epoch.
    """

    def text(self, row: dict[str, Any], is_first: bool) -> str:
        return json.dumps({name: _plain(value) for name, value in row.items()}) + "\n"


class CSVLog(_LogFile):
    """Write a row of comma-separated values for each epoch, or every ``every_steps`` steps, under a header.

    Results that are not numbers are left out.

    Args:
        path: the file.
        every_steps: 0 for a row per epoch.
        separator: the text between values.
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
