"""IMDB: 50,000 film reviews, half of them liked (A. Maas et al., "Learning word vectors for sentiment analysis", 2011),
each word as its rank by frequency."""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from runnel.core.errors import RunnelError
from runnel.data.classification import Classification
from runnel.data.download import Folder, arrays, cache_folder, fetch, file_in, folder_of

ARCHIVE = "imdb.npz"
CHECKSUM = "69664113be75683a8fe16e3ed0ab59fda8886cb3cd7ada244f7d9544e4676b9f"  # SHA-256
MIRRORS = ("https://storage.googleapis.com/tensorflow/tf-keras-datasets",)

START = 1  # stands before each review
RARE = 2  # stands for each word whose label would not be below ``words``
SHIFT = 3  # from a rank, which begins at 1, to a label
PADDING = 0


def imdb(
    folder: Folder | None = None,
    *,
    length: int = 150,
    words: int = 30000,
    mirrors: Sequence[str] = MIRRORS,
    checksum: str = CHECKSUM,
    cache: Path | None = None,
) -> Classification:
    """The reviews as int32 (N, length): the last ``length`` labels of each, zeros behind shorter ones.

    Args:
        folder: holds ``imdb_tokens.npz``, for ``train`` and ``test`` with ranks one review after the other (``_tok``),
            where each begins and the last ends (``_off``), and labels (``_y``). By default that which
            ``RUNNEL_DATA_DIR`` names, if it has it; else Keras's file of the same ranks is downloaded once, its
            checksum verified, and kept in the user's cache folder.
        length, words: how many labels a review has, and how many different labels there are.
        mirrors, checksum, cache: where to download from, what to expect, where to keep it.
    """
    place = folder_of("imdb", folder, "imdb_tokens.npz")
    if place is not None:
        parts = _tokens(file_in(place, "imdb", "imdb_tokens.npz"))
    else:
        parts = _pickled(fetch(ARCHIVE, checksum, mirrors, cache_folder("imdb", cache)))
    (train, train_y), (test, test_y) = ((_prepared(ranks, offsets, length, words), y) for ranks, offsets, y in parts)
    return Classification("imdb", train, train_y.astype(np.int64), test, test_y.astype(np.int64))


def _tokens(path: Path) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """For training and testing: ranks, offsets and labels."""
    parts = []
    for split in ("train", "test"):
        ranks, offsets, labels = arrays(path, f"{split}_tok", f"{split}_off", f"{split}_y").values()
        parts.append((ranks.astype(np.int64), offsets.astype(np.int64), labels))
    for ranks, offsets, labels in parts:
        rising = len(offsets) == len(labels) + 1 and offsets[0] == 0 and (np.diff(offsets) >= 0).all()
        if not rising or offsets[-1] != len(ranks):
            raise RunnelError(
                f"[imdb] the offsets in '{path}' do not cut {len(ranks)} ranks into {len(labels)} reviews."
            )
    return parts


def _pickled(content: bytes) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The same of Keras's file, whose arrays of lists are pickles: opened only because its checksum is known."""
    parts = []
    with np.load(io.BytesIO(content), allow_pickle=True) as archive:
        for split in ("train", "test"):
            reviews = archive[f"x_{split}"]
            offsets = np.cumsum([0, *(len(review) for review in reviews)])
            ranks = np.fromiter((rank for review in reviews for rank in review), np.int64, int(offsets[-1]))
            parts.append((ranks, offsets, archive[f"y_{split}"]))
    return parts


def _prepared(ranks: np.ndarray, offsets: np.ndarray, length: int, words: int) -> np.ndarray:
    """The reviews as labels, cut and padded."""
    labels = np.where(ranks + SHIFT < words, ranks + SHIFT, RARE)
    rows = np.full((len(offsets) - 1, length), PADDING, np.int32)
    for row, (start, end) in zip(rows, itertools.pairwise(offsets), strict=True):
        if end - start < length:
            row[0] = START
            row[1 : 1 + end - start] = labels[start:end]
        else:
            row[:] = labels[end - length : end]
    return rows
