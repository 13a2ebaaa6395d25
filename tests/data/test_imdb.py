"""IMDB: ranks become labels, long reviews lose their beginning, short ones get zeros behind."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from runnel import data
from runnel.core.errors import RunnelError
from runnel.data.sentiment import _prepared
from tests.data.files import reviews, write_imdb
from tests.data.real import folder_of

MADE = reviews(20)


def prepared(review: list[int], length: int, words: int) -> list[int]:
    """The rule, for one review."""
    labels = [1, *(rank + 3 if rank + 3 < words else 2 for rank in review)][-length:]
    return labels + [0] * (length - len(labels))


def check(actual: data.Classification, length: int, words: int) -> None:
    for split, x, y in (("train", actual.train_x, actual.train_y), ("test", actual.test_x, actual.test_y)):
        texts, labels = MADE[split]
        np.testing.assert_array_equal(x, [prepared(text, length, words) for text in texts])
        np.testing.assert_array_equal(y, labels)
        assert (x.dtype, y.dtype) == (np.int32, np.int64)


@pytest.mark.parametrize(("length", "words"), [(150, 30000), (10, 100)])
def test_tokens_of_a_folder(tmp_path: Path, length: int, words: int) -> None:
    write_imdb(tmp_path, MADE)
    check(data.imdb(tmp_path, length=length, words=words), length, words)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.integers(1, 12), max_size=8), max_size=4), st.integers(1, 8), st.integers(4, 16))
def test_every_length(texts: list[list[int]], length: int, words: int) -> None:
    ranks = np.array([rank for text in texts for rank in text], np.int64)
    actual = _prepared(ranks, np.cumsum([0, *map(len, texts)]), length, words)
    assert actual.tolist() == [prepared(text, length, words) for text in texts]


def test_the_file_of_lists(tmp_path: Path) -> None:
    results: dict[str, np.ndarray] = {}
    for split, (texts, labels) in MADE.items():
        results[f"x_{split}"] = np.array([*texts, None], dtype=object)[:-1]
        results[f"y_{split}"] = labels.astype(np.int64)
    np.savez(tmp_path / "imdb.npz", **results)  # type: ignore[arg-type]
    checksum = hashlib.sha256((tmp_path / "imdb.npz").read_bytes()).hexdigest()
    check(data.imdb(mirrors=[], checksum=checksum, cache=tmp_path), 150, 30000)


def test_a_pickle_of_unknown_checksum_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "imdb.npz").write_bytes(b"anything")
    with pytest.raises(RunnelError, match="could not be had from any mirror"):
        data.imdb(mirrors=[], cache=tmp_path)


@pytest.mark.parametrize("offsets", [[0, 2, 1, 4], [0, 2, 5], [1, 2, 3, 4], [0, 2, 3, 5]])
def test_offsets_that_do_not_fit_are_reported(tmp_path: Path, offsets: list[int]) -> None:
    actual = {"tok": np.ones(4, np.uint32), "off": np.array(offsets, np.uint32), "y": np.zeros(3, np.uint8)}
    np.savez(tmp_path / "imdb_tokens.npz", **{f"{s}_{n}": a for s in ("train", "test") for n, a in actual.items()})
    with pytest.raises(RunnelError, match="do not cut 4 ranks into 3 reviews"):
        data.imdb(tmp_path)


@pytest.mark.suite
def test_the_real_set() -> None:
    actual = data.imdb(folder_of("imdb"))
    assert actual.train_x.shape == actual.test_x.shape == (25_000, 150)
    assert actual.train_y.mean() == actual.test_y.mean() == 0.5
    assert actual.train_x.max() == 29_999 and not (actual.train_x == 3).any()
    assert abs((actual.train_x == 0).mean() - 0.0985) < 1e-3 and abs((actual.train_x == 2).mean() - 0.0137) < 1e-3
