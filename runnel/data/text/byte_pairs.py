"""Byte-pair encoding: text as ids of frequent byte sequences.

R. Sennrich, B. Haddow, A. Birch, "Neural machine translation of rare words with subword units", 2016; over bytes, so
that every text has an encoding: A. Radford et al., "Language models are unsupervised multitask learners", 2019.
"""

from __future__ import annotations

import heapq
import itertools
import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Self

from runnel.core.errors import ArgumentError, FileError
from runnel.core.files import write_atomically

Pair = tuple[int, int]

_BYTES: Final = 256
_FORMAT: Final = "runnel byte pairs 1"
_MOST_KNOWN: Final = 1 << 16  # words whose numbers are remembered
# Merges stay within words, each with the space in front of it: letters, digits, signs, or white space.
_WORDS: Final = re.compile(r" ?[^\W\d_]+| ?\d+| ?[^\w\s]+| ?_+|\s+(?!\S)|\s+")


class BytePairEncoding:
    """An encoding of text as token ids: ``decode(encode(text))`` is ``text`` for every text.

    Ids below 256 are bytes of UTF-8. Id 256 + i is the concatenation of the two ids ``merges[i]``. The ids of
    ``specials`` follow; encoding never makes them, so add them yourself: ``[*encoding.encode(text),
    encoding.specials["<end>"]]``.

    Args:
        merges: pairs of smaller ids, in the order in which they are merged.
        specials: strings with ids, such as "<pad>" or "<end>".
    """

    def __init__(self, merges: Iterable[Sequence[int]] = (), specials: Iterable[str] = ()) -> None:
        self.merges: list[Pair] = []
        self._contents = [bytes([byte]) for byte in range(_BYTES)]
        for one, other in merges:
            if not (0 <= one < len(self._contents) and 0 <= other < len(self._contents)):
                raise ArgumentError(
                    f"[BytePairEncoding] merge {len(self.merges)} must be of ids from 0 to "
                    f"{len(self._contents) - 1}; got {one} and {other}."
                )
            self.merges.append((one, other))
            self._contents.append(self._contents[one] + self._contents[other])
        self._ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        if len(self._ranks) != len(self.merges):
            raise ArgumentError("[BytePairEncoding] merges must not contain a pair twice.")
        self.specials = {text: len(self._contents) + i for i, text in enumerate(dict.fromkeys(specials))}
        self._contents += [text.encode() for text in self.specials]
        self._known: dict[str, list[int]] = {}

    @classmethod
    def train(cls, texts: Iterable[str], size: int, *, specials: Iterable[str] = (), min_freq: int = 2) -> Self:
        """Return an encoding of at most ``size`` ids, including ``specials``, learned from ``texts``.

        It merges the most frequent pair again and again, among equally frequent ones the pair of smaller ids, until
        pairs occur less than ``min_freq`` times.
        """
        specials = list(dict.fromkeys(specials))
        if size < _BYTES + len(specials):
            raise ArgumentError(
                f"[BytePairEncoding] size must be at least {_BYTES + len(specials)}, the bytes and the specials; got "
                f"{size}."
            )
        if isinstance(texts, str):
            raise ArgumentError("[BytePairEncoding] texts must be a list of strings; write [text] for one.")
        counts = Counter(word for text in texts for word in _WORDS.findall(text))
        return cls(_most_frequent(counts, size - _BYTES - len(specials), min_freq), specials)

    def __len__(self) -> int:
        return len(self._contents)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text; ArgumentError for half of a surrogate pair, which has no UTF-8."""
        try:
            return [number for word in _WORDS.findall(text) for number in self._word(word)]
        except UnicodeEncodeError as error:
            raise ArgumentError(f"[BytePairEncoding] text must have a UTF-8 encoding: {error}.") from None

    def __call__(self, text: str) -> list[int]:
        return self.encode(text)

    def decode(self, numbers: Iterable[Any]) -> str:
        """Return the text of ids. Bytes that are not UTF-8, as at the end of a cut text, become U+FFFD."""
        content = bytearray()
        for number in map(int, numbers):
            if not 0 <= number < len(self._contents):
                raise ArgumentError(
                    f"[BytePairEncoding] token ids must be from 0 to {len(self._contents) - 1}; got {number}."
                )
            content += self._contents[number]
        return content.decode("utf-8", errors="replace")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write merges and specials to a JSON file atomically."""
        content = {"format": _FORMAT, "merges": self.merges, "specials": list(self.specials)}
        try:
            write_atomically(path, [json.dumps(content).encode()])
        except OSError as error:
            raise FileError(f"[BytePairEncoding] '{path}' cannot be written: {error.strerror}.") from error

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file of ``save``; FileError if it cannot be read."""
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
        except OSError as error:
            raise FileError(f"[BytePairEncoding] '{path}' cannot be read: {error.strerror}.") from error
        except (ValueError, RecursionError) as error:
            raise FileError(f"[BytePairEncoding] '{path}' is not complete JSON: {error}.") from None
        if not _is_encoding(content):
            raise FileError(f"[BytePairEncoding] '{path}' was not written by BytePairEncoding.save.")
        try:
            return cls(content["merges"], content["specials"])
        except ArgumentError as error:
            raise FileError(f"[BytePairEncoding] '{path}' is damaged: {error}") from None

    def _word(self, word: str) -> list[int]:
        known = self._known.get(word)
        if known is None:
            known = list(word.encode())
            while len(known) > 1:
                pair = min(itertools.pairwise(known), key=lambda pair: self._ranks.get(pair, len(self._ranks)))
                rank = self._ranks.get(pair)
                if rank is None:
                    break
                known = _merged(known, pair, _BYTES + rank)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[word] = known
        return known


def _merged(numbers: list[int], pair: Pair, number: int) -> list[int]:
    """Replace each ``pair`` in ``numbers`` by ``number``, from the left."""
    result: list[int] = []
    for each in numbers:
        if result and each == pair[1] and result[-1] == pair[0]:
            result[-1] = number
        else:
            result.append(each)
    return result


def _most_frequent(counts: Mapping[str, int], most: int, min_freq: int) -> list[Pair]:
    """Return the merges, each the most frequent pair after the earlier ones.

    The heap has every pair with an earlier count; ``frequencies`` has the current ones.
    """
    words = [list(word.encode()) for word in counts]
    weights = list(counts.values())
    frequencies: Counter[Pair] = Counter()
    words_with: defaultdict[Pair, set[int]] = defaultdict(set)
    for place, word in enumerate(words):
        for pair in itertools.pairwise(word):
            frequencies[pair] += weights[place]
            words_with[pair].add(place)
    heap = [(-count, pair) for pair, count in frequencies.items()]
    heapq.heapify(heap)
    merges: list[Pair] = []
    while heap and len(merges) < most:
        count, pair = heapq.heappop(heap)
        if -count != frequencies[pair]:
            if frequencies[pair] > 0:
                heapq.heappush(heap, (-frequencies[pair], pair))
            continue
        if -count < min_freq:
            break
        changed: set[Pair] = set()
        for place in words_with.pop(pair):
            before, words[place] = words[place], _merged(words[place], pair, _BYTES + len(merges))
            for sign, word in ((-1, before), (1, words[place])):
                for each in itertools.pairwise(word):
                    frequencies[each] += sign * weights[place]
                    changed.add(each)
                    if sign > 0:
                        words_with[each].add(place)
        merges.append(pair)
        for each in changed:
            if frequencies[each] > 0:
                heapq.heappush(heap, (-frequencies[each], each))
    return merges


def _is_encoding(content: Any) -> bool:
    """Return True if a file's content has the form that ``save`` writes."""
    return (
        isinstance(content, dict)
        and content.get("format") == _FORMAT
        and isinstance(content.get("merges"), list)
        and all(isinstance(m, list) and len(m) == 2 and all(type(n) is int for n in m) for m in content["merges"])
        and isinstance(content.get("specials"), list)
        and all(isinstance(text, str) for text in content["specials"])
    )
