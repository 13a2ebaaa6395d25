"""A text as integer labels of its characters, for networks that predict the next character."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np

from runnel.core.errors import RunnelError


class Characters(NamedTuple):
    """Labels int64 of the characters for training and for validation; ``alphabet[label]`` is the character."""

    name: str
    alphabet: str
    train: np.ndarray
    valid: np.ndarray

    @classmethod
    def of(cls, name: str, text: str, held_out: float) -> Self:
        """``text``, its last ``held_out`` set aside."""
        alphabet = "".join(sorted(set(text)))
        points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        labels = np.searchsorted(np.array([ord(c) for c in alphabet], np.uint32), points).astype(np.int64)
        cut = len(labels) - round(len(labels) * held_out)
        return cls(name, alphabet, labels[:cut], labels[cut:])

    def encode(self, text: str) -> np.ndarray:
        """The labels of a text's characters."""
        unknown = sorted(set(text) - set(self.alphabet))
        if unknown:
            raise RunnelError(f"[{self.name}] no character {', '.join(map(repr, unknown))} in the alphabet.")
        return np.array([self.alphabet.index(c) for c in text], np.int64)

    def decode(self, labels: np.ndarray) -> str:
        """The text of labels."""
        return "".join(self.alphabet[label] for label in labels.reshape(-1).tolist())

    def batches(
        self, size: int, length: int, generator: np.random.Generator
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pairs (size, length) of windows of the training text and the windows one character later. Together they are
        the text cut into windows at a random place, in random order; what fills no batch is left out."""
        shift = int(generator.integers(length))
        yield from self._windows(self.train[shift:], size, length, generator)

    def validation(self, size: int, length: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The same of the validation text, in its order; the last batch may be smaller."""
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
