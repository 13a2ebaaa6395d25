"""Texts as numbers, and samples of different lengths as batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import ArgumentError, ShapeError
from runnel.data import DataLoader, DistributedSampler, pack_collate, text
from runnel.nn import functional as F

REVIEWS = [("It's good, it IS good.", 1), ("Bad.", 0), ("", 0)]


def test_words_and_signs() -> None:
    assert text.tokenize("It's naïve, 3x_y!") == ["it's", "naïve", ",", "3x", "_", "y", "!"]
    assert text.tokenize("A b", lower=False) == ["A", "b"]
    assert text.ngrams(["a", "b", "c"], 3) == ["a", "b", "c", "a b", "b c", "a b c"]
    assert text.ngrams([], 2) == []


def test_vocabularies() -> None:
    vocab = text.Vocab.build([["b", "a", "b"], ["c", "a", "b", "<pad>"]], max_size=4)
    assert vocab.words == ["<pad>", "<unk>", "b", "a"] and len(vocab) == 4 and "c" not in vocab
    assert vocab(["a", "c", "b"]) == [3, 1, 2] and vocab.decode(np.array([3, 1])) == ["a", "<unk>"]
    assert text.Vocab.build([["a", "b", "b"]], min_freq=2, specials=(), unknown=None).words == ["b"]
    with pytest.raises(ArgumentError, match="no word 'z'"):
        text.Vocab(["a"])["z"]
    with pytest.raises(ArgumentError, match="'a' is there more often"):
        text.Vocab(["a", "b", "a"])
    with pytest.raises(ArgumentError, match="unknown must be one of the words"):
        text.Vocab(["a"], unknown="b")


def test_sequences_of_one_length() -> None:
    assert text.truncate([1, 2, 3], 2) == [1, 2] and text.truncate([1, 2, 3], 2, "left") == [2, 3]
    assert text.truncate([1], 2, "left") == [1] and text.truncate([1, 2], 0, "left") == []
    assert (
        text.pad([1, 2], 4) == [1, 2, 0, 0]
        and text.pad([1], 3, 9, "left") == [9, 9, 1]
        and text.pad([1, 2], 1) == [1, 2]
    )
    with pytest.raises(ArgumentError, match="left or right"):
        text.pad([1], 2, side="middle")


def samples() -> list[Any]:
    vocab = text.Vocab.build(text.tokenize(review) for review, _ in REVIEWS)
    return [(vocab(text.tokenize(review)), label) for review, label in REVIEWS]


def test_padded_batches() -> None:
    ((words, lengths, labels),) = DataLoader(samples(), 3, collate_fn=text.pad_collate)
    assert words.shape == (3, 7) and lengths.tolist() == [7, 2, 0] and labels.tolist() == [1, 0, 0]
    assert words.numpy()[1, 2:].tolist() == [0] * 5


def test_packed_batches_hold_no_padding() -> None:
    ((words, labels),) = DataLoader(samples(), 3, collate_fn=pack_collate)
    assert words.values.shape == (9,) and words.offsets.tolist() == [0, 7, 9, 9] and words.lengths.tolist() == [7, 2, 0]
    assert labels.tolist() == [1, 0, 0]
    mixed = pack_collate([{"x": np.ones((n, 2), np.float32), "y": rn.ones(n), "s": "t"} for n in (1, 3)])
    assert mixed["x"].values.shape == (4, 2) and mixed["y"].values.shape == (4,) and mixed["s"] == ["t", "t"]
    with pytest.raises(ShapeError, match="only in their first axis"):
        pack_collate([np.ones((1, 2)), np.ones((1, 3))])


def test_packed_batches_are_what_attention_takes() -> None:
    rng = np.random.default_rng(0)
    sequences = [rng.standard_normal((n, 2, 8)).astype(np.float32) for n in (5, 3)]
    packed = pack_collate(sequences)
    x = packed.values
    together = F.varlen_attn(x, x, x, packed.offsets)
    for i, each in enumerate(sequences):
        alone = pack_collate([each])
        y = F.varlen_attn(alone.values, alone.values, alone.values, alone.offsets)
        begin, end = packed.offsets.tolist()[i : i + 2]
        np.testing.assert_array_equal(together.numpy()[begin:end], y.numpy())


@pytest.mark.suite
def test_packed_batches_come_from_processes() -> None:
    (alone,), (sent,) = (list(DataLoader(samples(), 3, collate_fn=pack_collate, num_workers=n)) for n in (0, 1))
    assert sent[0].values.tolist() == alone[0].values.tolist() and sent[0].lengths.tolist() == alone[0].lengths.tolist()


def test_shares_of_processes() -> None:
    def shares(**options: Any) -> list[list[int]]:
        return [list(DistributedSampler(range(10), 3, rank, **options)) for rank in range(3)]

    assert shares(shuffle=False) == [[0, 3, 6, 9], [1, 4, 7, 0], [2, 5, 8, 1]]
    assert shares(shuffle=False, drop_last=True) == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    assert {n for share in shares() for n in share} == set(range(10)) and shares() == shares() != shares(seed=1)
    sampler = DistributedSampler(range(10), 2, 0)
    first = list(sampler)
    sampler.set_epoch(1)
    second = list(sampler)
    assert first != second and len(sampler) == 5
    loader = DataLoader(range(10), 2, sampler=sampler)  # type: ignore[arg-type]
    next(iter(loader))
    state = loader.state_dict()
    other = DataLoader(range(10), 2, sampler=DistributedSampler(range(10), 2, 0))  # type: ignore[arg-type]
    other.load_state_dict(state)
    assert [n for batch in other for n in batch.tolist()] == second[2:]
    with pytest.raises(ArgumentError, match="pass num_replicas and rank"):
        DistributedSampler(range(3))
