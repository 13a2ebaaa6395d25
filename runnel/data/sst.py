"""SST, the Stanford Sentiment Treebank: sentences as binary trees, each node with a label of 0 (very bad) to 4 (very
good) (R. Socher et al., "Recursive deep models for semantic compositionality over a sentiment treebank", 2013)."""

from __future__ import annotations

import re
from pathlib import Path

from runnel.core.errors import RunnelError
from runnel.core.records import record
from runnel.core.surface import offered
from runnel.data.places import Folder, file_in

SPLITS = ("train", "dev", "test")
_PIECES = re.compile(r"[()]|[^ \t\r\n()]+")  # a word may hold a no-break space, as "8 1/2" does


@offered("data")
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


@offered("data")
def sst(folder: Folder, split: str = "train") -> list[Tree]:
    """The trees of a split (train, dev or test), one for each line of ``folder/split.txt``, in bracketed form:
    ``(3 (2 good) (2 fun))``."""
    if split not in SPLITS:
        raise ValueError(f"[sst] a split is one of {', '.join(SPLITS)}; received {split!r}.")
    path: Path = file_in(folder, "sst", f"{split}.txt")
    lines = path.read_text(encoding="utf-8").split("\n")
    return [parse(line, f"{path}:{n}") for n, line in enumerate(lines, 1) if line.strip()]


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
