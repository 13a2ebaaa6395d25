"""Data sets for sentiment analysis: IMDB's film reviews, and SST, the Stanford Sentiment Treebank.

IMDB has 50,000 reviews, half of them positive, with each word as its rank by frequency (A. Maas et al., "Learning word
vectors for sentiment analysis", 2011). SST has sentences as binary trees with a label of 0 (very bad) to 4 at each node
(R. Socher et al., "Recursive deep models for semantic compositionality over a sentiment treebank", 2013).
"""

from __future__ import annotations

import io
import itertools
import re
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from runnel.core.errors import RunnelError
from runnel.core.records import record
from runnel.data.classification import Classification
from runnel.data.download import Folder, arrays, cache_folder, fetch, file_in, folder_of

ARCHIVE = "imdb.npz"
CHECKSUM = "69664113be75683a8fe16e3ed0ab59fda8886cb3cd7ada244f7d9544e4676b9f"  # SHA-256
MIRRORS = ("https://storage.googleapis.com/tensorflow/tf-keras-datasets",)

START = 1  # first label of each review
RARE = 2  # label of each word whose label would not be below ``words``
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
    """Return the reviews as int32 (N, length): the last ``length`` labels of each, shorter ones padded with zeros.

    Args:
        folder: has ``imdb_tokens.npz``. For ``train`` and ``test`` it has concatenated ranks (``_tok``), offsets of the
            reviews (``_off``) and labels (``_y``). The default is the folder in ``RUNNEL_DATA_DIR`` if it has the file;
            else Keras's file of the same ranks is downloaded once, verified, and kept in the user's cache folder.
        length, words: number of labels in a review, and number of different labels.
        mirrors, checksum, cache: where to download from, the expected SHA-256, where to keep the file.
    """
    place = folder_of("imdb", folder, "imdb_tokens.npz")
    if place is not None:
        parts = _tokens(file_in(place, "imdb", "imdb_tokens.npz"))
    else:
        parts = _pickled(fetch(ARCHIVE, checksum, mirrors, cache_folder("imdb", cache)))
    (train, train_y), (test, test_y) = ((_prepared(ranks, offsets, length, words), y) for ranks, offsets, y in parts)
    return Classification("imdb", train, train_y.astype(np.int64), test, test_y.astype(np.int64))


def _tokens(path: Path) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return ranks, offsets and labels for training and testing."""
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
    """Return ranks, offsets and labels of Keras's file, a pickle that is opened only because its checksum is known."""
    parts = []
    with np.load(io.BytesIO(content), allow_pickle=True) as archive:
        for split in ("train", "test"):
            reviews = archive[f"x_{split}"]
            offsets = np.cumsum([0, *(len(review) for review in reviews)])
            ranks = np.fromiter((rank for review in reviews for rank in review), np.int64, int(offsets[-1]))
            parts.append((ranks, offsets, archive[f"y_{split}"]))
    return parts


def _prepared(ranks: np.ndarray, offsets: np.ndarray, length: int, words: int) -> np.ndarray:
    """Return the reviews as labels, truncated and padded."""
    labels = np.where(ranks + SHIFT < words, ranks + SHIFT, RARE)
    rows = np.full((len(offsets) - 1, length), PADDING, np.int32)
    for row, (start, end) in zip(rows, itertools.pairwise(offsets), strict=True):
        if end - start < length:
            row[0] = START
            row[1 : 1 + end - start] = labels[start:end]
        else:
            row[:] = labels[end - length : end]
    return rows


TREES_ARCHIVE = "trainDevTestTrees_PTB.zip"
TREES_CHECKSUM = (
    "5c613a4f673fc74097d523a2c83f38e0cc462984d847b82c7aaf36b01cbbbfcc"  # SHA-256 of the archive as it comes
)
TREES_MIRRORS = ("https://nlp.stanford.edu/sentiment",)
SPLITS = ("train", "dev", "test")
_PIECES = re.compile(r"[()]|[^ \t\r\n()]+")  # a word may hold a no-break space, as "8 1/2" does


@record
class Tree:
    """A node: a word, or two parts."""

    label: int
    word: str | None = None
    parts: tuple[Tree, ...] = ()

    def __len__(self) -> int:
        """Return the number of nodes."""
        return 1 + sum(map(len, self.parts))

    @property
    def words(self) -> list[str]:
        """Words of the sentence."""
        return [self.word] if self.word is not None else [word for part in self.parts for word in part.words]


def sst(
    folder: Folder | None = None,
    split: str = "train",
    *,
    mirrors: Sequence[str] = TREES_MIRRORS,
    checksum: str = TREES_CHECKSUM,
    cache: Path | None = None,
) -> list[Tree]:
    """Return the trees of a split (train, dev or test).

    Each line of ``split.txt`` is a tree in brackets: ``(3 (2 good) (2 fun))``.

    Args:
        folder: has the three files. The default is the folder in ``RUNNEL_DATA_DIR`` if it has them; else their archive
            is downloaded once, verified, and kept in the user's cache folder.
        mirrors, checksum, cache: where to download from, the expected SHA-256, where to keep the file.
    """
    if split not in SPLITS:
        raise ValueError(f"[sst] a split must be one of {', '.join(SPLITS)}; got {split!r}.")
    if folder in SPLITS and not Path(folder).exists():
        raise ValueError(f"[sst] there is no folder {folder!r}; for the split write sst(split={folder!r}).")
    name = f"{split}.txt"
    place = folder_of("sst", folder, name, f"trees/{name}")
    if place is not None:
        path = file_in(place, "sst", name, f"trees/{name}")
        where, content = str(path), path.read_bytes()
    else:
        archive = fetch(TREES_ARCHIVE, checksum, mirrors, cache_folder("sst", cache), unpack=False)
        where, content = f"{TREES_ARCHIVE}:{name}", _member(archive, f"trees/{name}")
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise RunnelError(f"[sst] '{where}' is no UTF-8 text: {error}.") from None
    return [parse(line, f"{where}:{n}") for n, line in enumerate(lines, 1) if line.strip()]


def _member(archive: bytes, name: str) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as files:
            return files.read(name)
    except (KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise RunnelError(f"[sst] {TREES_ARCHIVE} has no intact {name}: {error}.") from None


def parse(line: str, where: str = "tree") -> Tree:
    """Return the tree in a line. ``where`` is for messages."""
    open_nodes: list[tuple[list[str], list[Tree]]] = []
    root: Tree | None = None
    for piece in _PIECES.findall(line):
        if root is not None:
            raise RunnelError(f"[sst] {where}: {piece!r} behind the tree.")
        if piece == "(":
            open_nodes.append(([], []))
        elif not open_nodes:
            raise RunnelError(f"[sst] {where}: {piece!r} outside brackets.")
        elif piece == ")":
            node = _closed(*open_nodes.pop(), where)
            if open_nodes:
                open_nodes[-1][1].append(node)
            else:
                root = node
        else:
            open_nodes[-1][0].append(piece)
    if root is None:
        raise RunnelError(f"[sst] {where}: no whole tree in {line[:40]!r}.")
    return root


def _closed(texts: list[str], parts: list[Tree], where: str) -> Tree:
    """Return the node made of the items between its brackets."""
    label, *words = texts or [""]
    if not re.fullmatch("[0-4]", label) or (len(words), len(parts)) not in ((1, 0), (0, 2)):
        raise RunnelError(f"[sst] {where}: a node needs a label and a word, or a label and two nodes.")
    return Tree(int(label), words[0] if words else None, tuple(parts))
