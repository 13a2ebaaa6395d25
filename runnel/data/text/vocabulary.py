"""Split text into words, map words to ids, and bring sequences to one length."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from runnel.core.errors import ArgumentError
from runnel.data.collating import new_array
from runnel.tensor.creation import asarray


class Vocab:
    """Ids of words: ``vocab(words)`` returns the ids of a list, ``vocab[word]`` one id, ``vocab.words[id]`` the word.

    A missing word has the id of ``unknown``; ArgumentError if that is None.

    Args:
        words: each once; the id of a word is its position.
        unknown: the word that replaces all others, or None.
    """

    def __init__(self, words: Iterable[str], unknown: str | None = None) -> None:
        self.words = list(words)
        self.unknown = unknown
        self._numbers = {word: number for number, word in enumerate(self.words)}
        if len(self._numbers) != len(self.words):
            twice = next(word for word, count in Counter(self.words).items() if count > 1)
            raise ArgumentError(f"[Vocab] each word is there once; {twice!r} is there more often.")
        if unknown is not None and unknown not in self._numbers:
            raise ArgumentError(f"[Vocab] unknown must be one of the words; got {unknown!r}.")

    @classmethod
    def build(
        cls,
        texts: Iterable[Sequence[str]],
        *,
        max_size: int | None = None,
        min_freq: int = 1,
        specials: Sequence[str] = ("<pad>", "<unk>"),
        unknown: str | None = "<unk>",
    ) -> Self:
        """Return the vocabulary of texts (lists of words).

        ``specials`` come first, then words by decreasing frequency and alphabetically: words that occur at least
        ``min_freq`` times, and at most ``max_size`` entries in all.
        """
        counts = Counter(word for text in texts for word in text)
        for special in specials:
            counts.pop(special, None)
        order = sorted((word for word, n in counts.items() if n >= min_freq), key=lambda word: (-counts[word], word))
        return cls([*specials, *order][:max_size], unknown if unknown in specials else None)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self._numbers

    def __getitem__(self, word: str) -> int:
        number = self._numbers.get(word)
        if number is None:
            if self.unknown is None:
                raise ArgumentError(f"[Vocab] no word {word!r}; pass unknown to have a word for all others.")
            number = self._numbers[self.unknown]
        return number

    def __call__(self, words: Iterable[str]) -> list[int]:
        return [self[word] for word in words]

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """Return the words of ids."""
        return [self.words[int(number)] for number in numbers]


_WORDS = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[^\w\s]|_")


def tokenize(text: str, lower: bool = True) -> list[str]:
    """Split a text into words and single signs, in lower case unless ``lower`` is False.

    ``tokenize("It's fine.")`` returns ``["it's", "fine", "."]``.
    """
    return _WORDS.findall(text.lower() if lower else text)


def ngrams(tokens: Sequence[str], n: int) -> list[str]:
    """Return the tokens, followed by each run of 2 to ``n`` of them joined by spaces."""
    if n < 1:
        raise ArgumentError(f"[ngrams] n must be 1 or more; got {n!r}.")
    runs = [tokens[i : i + size] for size in range(2, n + 1) for i in range(len(tokens) - size + 1)]
    return [*tokens, *(" ".join(run) for run in runs)]


def truncate(tokens: Sequence[Any], length: int, side: str = "right") -> Sequence[Any]:
    """Return at most ``length`` tokens, cut at the "right" or the "left"."""
    if length < 0 or side not in ("left", "right"):
        raise ArgumentError(f"[truncate] length must be 0 or more and side left or right; got {length!r} and {side!r}.")
    return tokens[:length] if side == "right" else tokens[max(len(tokens) - length, 0) :]


def pad(tokens: Sequence[int], length: int, value: int = 0, side: str = "right") -> list[int]:
    """Add ``value`` at the "right" or "left" until there are at least ``length`` tokens."""
    if side not in ("left", "right"):
        raise ArgumentError(f"[pad] side must be left or right; got {side!r}.")
    missing = [value] * (length - len(tokens))
    return [*tokens, *missing] if side == "right" else [*missing, *tokens]


def pad_collate(batch: Sequence[tuple[Sequence[int], int]]) -> list[Any]:
    """Combine pairs (word ids, label): a ``collate_fn``.

    It returns int64 tensors: ids (N, longest) padded with zeros, lengths (N,) and labels (N,).
    """
    texts, labels = zip(*batch, strict=True)
    lengths = np.array([len(text) for text in texts], np.int64)
    rows = new_array((len(texts), int(lengths.max(initial=0))), np.dtype(np.int64))
    rows[...] = 0
    for row, text in zip(rows, texts, strict=True):
        row[: len(text)] = text
    return [asarray(array, copy=False) for array in (rows, lengths, np.array(labels, np.int64))]
