"""Text as integer labels of its characters, for networks that predict the next character; Tiny Shakespeare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from runnel.core.errors import RunnelError
from runnel.data.download import Folder, cache_folder, fetch, file_in, folder_of


class Characters(NamedTuple):
    """Labels int64 of the characters for training and validation; ``alphabet[label]`` is the character."""

    name: str
    alphabet: str
    train: np.ndarray
    valid: np.ndarray

    @classmethod
    def of(cls, name: str, text: str, held_out: float) -> Self:
        """Encode ``text`` and set its last ``held_out`` share aside."""
        alphabet = "".join(sorted(set(text)))
        points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        labels = np.searchsorted(np.array([ord(c) for c in alphabet], np.uint32), points).astype(np.int64)
        cut = len(labels) - round(len(labels) * held_out)
        return cls(name, alphabet, labels[:cut], labels[cut:])

    def encode(self, text: str) -> np.ndarray:
        """Return the labels of a text's characters."""
        unknown = sorted(set(text) - set(self.alphabet))
        if unknown:
            raise RunnelError(f"[{self.name}] no character {', '.join(map(repr, unknown))} in the alphabet.")
        return np.array([self.alphabet.index(c) for c in text], np.int64)

    def decode(self, labels: np.ndarray) -> str:
        """Return the text of labels."""
        return "".join(self.alphabet[label] for label in labels.reshape(-1).tolist())

    def batches(
        self, size: int, length: int, generator: np.random.Generator
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield pairs (size, length) of windows of the training text and the windows one character later.

        Together they are the text split into windows at a random offset, in random order; an incomplete batch is
        dropped.
        """
        shift = int(generator.integers(length))
        yield from self._windows(self.train[shift:], size, length, generator)

    def validation(self, size: int, length: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield pairs of windows of the validation text, in order; the last batch may be smaller."""
        return self._windows(self.valid, size, length, None)

    def _windows(
        self, labels: np.ndarray, size: int, length: int, generator: np.random.Generator | None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        count = max(len(labels) - 1, 0) // length
        x, y = (labels[at : at + count * length].reshape(count, length) for at in (0, 1))
        order = np.arange(count) if generator is None else generator.permutation(count)
        end = count if generator is None else count - count % size
        for start in range(0, end, size):
            chosen = order[start : start + size]
            yield x[chosen], y[chosen]


TEXT = "input.txt"
CHECKSUM = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"  # SHA-256
MIRRORS = ("https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare",)


def tiny_shakespeare(
    folder: Folder | None = None,
    *,
    held_out: float = 0.1,
    mirrors: Sequence[str] = MIRRORS,
    checksum: str = CHECKSUM,
    cache: Path | None = None,
) -> Characters:
    """Return Tiny Shakespeare, 1,115,394 characters of his plays (collected by A. Karpathy, 2015).

    Args:
        folder: has ``input.txt``. The default is the folder in ``RUNNEL_DATA_DIR`` if it has it; else it is downloaded
            once, verified, and kept in the user's cache folder.
        held_out: the share of the text, at its end, for validation.
        mirrors, checksum, cache: where to download from, the expected SHA-256, where to keep the file.
    """
    place = folder_of("tinyshakespeare", folder, TEXT)
    if place is not None:
        content = file_in(place, "tinyshakespeare", TEXT).read_bytes()
    else:
        content = fetch(TEXT, checksum, mirrors, cache_folder("tinyshakespeare", cache))
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RunnelError(f"[tiny_shakespeare] {TEXT} is no UTF-8 text: {error}.") from None
    return Characters.of("tiny_shakespeare", text, held_out)
