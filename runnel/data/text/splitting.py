"""Texts cut into words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from runnel.core.errors import ArgumentError

_WORDS = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[^\w\s]|_")


def tokenize(text: str, lower: bool = True) -> list[str]:
    """The words of a text, and its signs one by one, in lower case unless ``lower`` is False:
    ``tokenize("It's fine.")`` gives ``["it's", "fine", "."]``."""
    return _WORDS.findall(text.lower() if lower else text)


def ngrams(tokens: Sequence[str], n: int) -> list[str]:
    """The tokens, and behind them each run of 2 to ``n`` of them, joined by spaces."""
    if n < 1:
        raise ArgumentError(f"[ngrams] n is 1 or more; received {n!r}.")
    runs = [tokens[i : i + size] for size in range(2, n + 1) for i in range(len(tokens) - size + 1)]
    return [*tokens, *(" ".join(run) for run in runs)]
