"""SST, the Stanford Sentiment Treebank: sentences as binary trees, each node with a label of 0 (very bad) to 4 (very
good) (R. Socher et al., "Recursive deep models for semantic compositionality over a sentiment treebank", 2013)."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

from runnel.core.errors import RunnelError
from runnel.core.records import record
from runnel.data.download import Folder, cache_folder, fetch, file_in, folder_of

ARCHIVE = "trainDevTestTrees_PTB.zip"
CHECKSUM = "5c613a4f673fc74097d523a2c83f38e0cc462984d847b82c7aaf36b01cbbbfcc"  # SHA-256 of the archive as it comes
MIRRORS = ("https://nlp.stanford.edu/sentiment",)
SPLITS = ("train", "dev", "test")
_PIECES = re.compile(r"[()]|[^ \t\r\n()]+")  # a word may hold a no-break space, as "8 1/2" does


@record
class Tree:
    """A node: a word, or two parts."""

    label: int
    word: str | None = None
    parts: tuple[Tree, ...] = ()

    def __len__(self) -> int:
        """How many nodes it has."""
        return 1 + sum(map(len, self.parts))

    @property
    def words(self) -> list[str]:
        """The sentence."""
        return [self.word] if self.word is not None else [word for part in self.parts for word in part.words]


def sst(
    folder: Folder | None = None,
    split: str = "train",
    *,
    mirrors: Sequence[str] = MIRRORS,
    checksum: str = CHECKSUM,
    cache: Path | None = None,
) -> list[Tree]:
    """The trees of a split (train, dev or test), one for each line of ``split.txt``, in bracketed form:
    ``(3 (2 good) (2 fun))``.

    Args:
        folder: holds the three files. By default that which ``RUNNEL_DATA_DIR`` names, if it has them; else their
            archive is downloaded once, its checksum verified, and kept in the user's cache folder.
        mirrors, checksum, cache: where to download from, what to expect, where to keep it.
    """
    if split not in SPLITS:
        raise ValueError(f"[sst] a split is one of {', '.join(SPLITS)}; received {split!r}.")
    if folder in SPLITS and not Path(folder).exists():
        raise ValueError(f"[sst] there is no folder {folder!r}; for the split write sst(split={folder!r}).")
    name = f"{split}.txt"
    place = folder_of("sst", folder, name, f"trees/{name}")
    if place is not None:
        path = file_in(place, "sst", name, f"trees/{name}")
        where, content = str(path), path.read_bytes()
    else:
        archive = fetch(ARCHIVE, checksum, mirrors, cache_folder("sst", cache), unpack=False)
        where, content = f"{ARCHIVE}:{name}", _member(archive, f"trees/{name}")
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
        raise RunnelError(f"[sst] {ARCHIVE} has no intact {name}: {error}.") from None


def parse(line: str, where: str = "tree") -> Tree:
    """The tree in a line. ``where`` is for messages."""
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
    """The node of what stood between its brackets."""
    label, *words = texts or [""]
    if not re.fullmatch("[0-4]", label) or (len(words), len(parts)) not in ((1, 0), (0, 2)):
        raise RunnelError(f"[sst] {where}: a node needs a label and a word, or a label and two nodes.")
    return Tree(int(label), words[0] if words else None, tuple(parts))
