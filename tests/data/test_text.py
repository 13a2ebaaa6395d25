"""Texts: characters as labels, windows of them, and the trees of the sentiment treebank."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from runnel import data
from runnel.core.errors import RunnelError
from runnel.data.sentiment import SPLITS, parse
from tests.data.real import folder_of

TEXT = "To be, or not to be: that is the question.\n" * 20


@settings(deadline=None, max_examples=50)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])), st.floats(0, 1))
def test_characters_come_back(text: str, held_out: float) -> None:
    actual = data.Characters.of("some", text, held_out)
    assert actual.decode(actual.train) + actual.decode(actual.valid) == text
    assert len(actual.valid) == round(len(text) * held_out)
    assert actual.alphabet == "".join(sorted(set(text)))
    np.testing.assert_array_equal(actual.encode(text), np.concatenate([actual.train, actual.valid]))


def test_an_unknown_character_is_reported() -> None:
    with pytest.raises(RunnelError, match=r"no character 'é', 'ü' in the alphabet"):
        data.Characters.of("some", TEXT, 0).encode("übé")


def test_windows_are_whole_and_targets_one_later() -> None:
    actual = data.Characters.of("some", TEXT, 0.25)
    batches = list(actual.batches(4, 16, np.random.default_rng(3)))
    assert len(batches) in (9, 10)
    text = actual.decode(actual.train)
    observed = [actual.decode(row) for x, _ in batches for row in x]
    for x, y in batches:
        assert x.shape == y.shape == (4, 16)
        np.testing.assert_array_equal(x[:, 1:], y[:, :-1])
        assert all(actual.decode(np.append(a, b[-1])) in text for a, b in zip(x, y, strict=True))
    assert observed != [actual.decode(row) for x, _ in actual.batches(4, 16, np.random.default_rng(4)) for row in x]


def test_validation_takes_every_window_in_order() -> None:
    actual = data.Characters.of("some", TEXT, 0.25)
    batches = list(actual.validation(4, 16))
    assert [len(x) for x, _ in batches] == [4, 4, 4, 1]
    read = np.concatenate([x.reshape(-1) for x, _ in batches])
    np.testing.assert_array_equal(read, actual.valid[: len(read)])


def test_tiny_shakespeare(tmp_path: Path) -> None:
    (tmp_path / "input.txt").write_text(TEXT, encoding="utf-8")
    actual = data.tiny_shakespeare(tmp_path)
    assert actual.decode(actual.train) + actual.decode(actual.valid) == TEXT
    again = data.tiny_shakespeare(mirrors=[], checksum=hashlib.sha256(TEXT.encode()).hexdigest(), cache=tmp_path)
    np.testing.assert_array_equal(again.train, actual.train)
    with pytest.raises(RunnelError, match="could not be had"):
        data.tiny_shakespeare(mirrors=[], cache=tmp_path)
    (tmp_path / "input.txt").write_bytes(b"\xff")
    with pytest.raises(RunnelError, match="is no UTF-8 text"):
        data.tiny_shakespeare(tmp_path)


@pytest.mark.suite
def test_the_real_text_has_the_known_checksum() -> None:
    actual = data.tiny_shakespeare(mirrors=[], cache=folder_of("tinyshakespeare"))
    assert (len(actual.train), len(actual.valid), len(actual.alphabet)) == (1_003_855, 111_539, 65)


def test_trees_of_a_file(tmp_path: Path) -> None:
    line = "(3 (2 It) (4 (2 's) (3 (2 8\N{NO-BREAK SPACE}1\\/2) (4 good))))"
    (tmp_path / "dev.txt").write_text(f"{line}\n\n(1 no)\n", encoding="utf-8")
    first, second = data.sst(tmp_path, "dev")
    assert first.words == ["It", "'s", "8\N{NO-BREAK SPACE}1\\/2", "good"]
    assert (first.label, len(first), first.parts[1].label, first.parts[1].parts[0].word) == (3, 7, 4, "'s")
    assert (second.label, second.word, second.parts, len(second)) == (1, "no", (), 1)
    with pytest.raises(ValueError, match="train, dev, test"):
        data.sst(tmp_path, "valid")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "no whole tree"),
        ("(2 (2 a)", "no whole tree"),
        ("(2 a))", r"'\)' behind the tree"),
        ("a", "'a' outside brackets"),
        ("(5 a)", "a node needs"),
        ("(2)", "a node needs"),
        ("()", "a node needs"),
        ("(2 a b)", "a node needs"),
        ("(2 (2 a))", "a node needs"),
        ("(2 a (2 b) (2 c))", "a node needs"),
    ],
)
def test_values_that_are_not_a_tree_are_reported(line: str, message: str) -> None:
    with pytest.raises(RunnelError, match=message):
        parse(line)


@pytest.mark.suite
def test_the_real_treebank() -> None:
    folder = folder_of("sst")
    trees = {split: data.sst(folder, split) for split in SPLITS}
    assert [len(actual) for actual in trees.values()] == [8544, 1101, 2210]
    assert all(len(tree) == 2 * len(tree.words) - 1 for tree in trees["train"])
