"""The lines of text files, by number, without holding them in memory."""

from __future__ import annotations

import bisect
import itertools
import mmap
import operator
import os
from typing import Any

import numpy as np

from runnel.core.errors import ArgumentError, FileError
from runnel.data.datasets import Dataset

Path = str | os.PathLike[str]


class TextLines(Dataset[str]):
    """The lines of UTF-8 files, one file behind the other, without the line's end. Files are mapped, and only where
    lines begin is kept. FileError for a line that is no UTF-8."""

    def __init__(self, *paths: Path) -> None:
        if not paths:
            raise ArgumentError("[TextLines] there are no files; pass one at least.")
        self.paths = [os.fspath(path) for path in paths]
        self._open()
        self._ends = list(itertools.accumulate(len(begins) - 1 for _, begins in self._files))

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, index: Any) -> str:
        number = operator.index(index)
        if not -len(self) <= number < len(self):
            raise IndexError(f"[TextLines] line {number} of {len(self)} was asked for.")
        number %= len(self)
        file = bisect.bisect_right(self._ends, number)
        line = number - (self._ends[file - 1] if file else 0)
        content, begins = self._files[file]
        text = content[begins[line] : begins[line + 1]].removesuffix(b"\n").removesuffix(b"\r")
        try:
            return text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise FileError(f"[TextLines] line {line + 1} of '{self.paths[file]}' is no UTF-8: {error}.") from None

    def __getstate__(self) -> dict[str, Any]:
        return {"paths": self.paths, "_ends": self._ends}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def _open(self) -> None:
        self._files = [_lines(path) for path in self.paths]


def _lines(path: str) -> tuple[Any, np.ndarray]:
    """The bytes of a file, and where its lines begin and the last one ends."""
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return b"", np.zeros(1, np.int64)
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    begins = np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n")) + 1
    ends = [] if len(begins) and begins[-1] == len(content) else [len(content)]
    return content, np.concatenate([[0], begins, ends]).astype(np.int64)
