"""Tiny Shakespeare: 40,000 lines of his plays as one text of 1,115,394 characters (gathered by A. Karpathy, 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from runnel.core.errors import RunnelError
from runnel.data.characters import Characters
from runnel.data.download import Folder, cache_folder, fetch, file_in, folder_of

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
    """The text as labels of its characters; the last ``held_out`` of it is for validation.

    Args:
        folder: holds ``input.txt``. By default that which ``RUNNEL_DATA_DIR`` names, if it has it; else it is
            downloaded once, its checksum verified, and kept in the user's cache folder.
        held_out: the share of the text that training does not see.
        mirrors, checksum, cache: where to download from, what to expect, where to keep it.
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
