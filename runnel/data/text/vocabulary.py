"""Words as numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Self

from runnel.core.errors import ArgumentError


class Vocab:
    """Numbers of words: ``vocab(words)`` gives those of a list, ``vocab[word]`` that of one, ``vocab.words[number]``
    the word. A word that is not in it has the number of ``unknown``; ArgumentError if there is none.

    Args:
        words: each once; the number of a word is its position.
        unknown: the word that stands for all others, None for an error in their place.
    """

    def __init__(self, words: Iterable[str], unknown: str | None = None) -> None:
        self.words = list(words)
        self.unknown = unknown
        self._numbers = {word: number for number, word in enumerate(self.words)}
        if len(self._numbers) != len(self.words):
            twice = next(word for word, count in Counter(self.words).items() if count > 1)
            raise ArgumentError(f"[Vocab] each word is there once; {twice!r} is there more often.")
        if unknown is not None and unknown not in self._numbers:
            raise ArgumentError(f"[Vocab] unknown is one of the words; received {unknown!r}.")

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
        """The words of texts (lists of words): ``specials`` first, then the frequent ones, equally frequent ones in
        alphabetical order; those that are there ``min_freq`` times at least, ``max_size`` in all at most."""
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
        """The words of numbers."""
        return [self.words[int(number)] for number in numbers]
