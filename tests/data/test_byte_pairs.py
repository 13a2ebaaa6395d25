"""Byte-pair encoding: every text comes back, merges are the most frequent pairs, files are whole or refused."""

from __future__ import annotations

import itertools
import json
import random
import resource
from collections import Counter
from pathlib import Path

import pytest

from runnel.core.errors import ArgumentError, FileError
from runnel.data.text import BytePairEncoding
from runnel.data.text.byte_pairs import _WORDS

TEXTS = ["the cat sat on the mat, the cat!", "Ein Bär\tsah 12345 Bären…\n\n  日本語のテキスト 🐻‍❄️ a_b", "", " \n "]
ALPHABET = "ab é日🐻\n\t_1.  \x00\u2028\u0301"


def counted_again(texts: list[str], most: int) -> list[tuple[int, int]]:
    """Return the merges by the definition: count all pairs again for each."""
    counts = Counter(word for text in texts for word in _WORDS.findall(text))
    words = [(list(word.encode()), count) for word, count in counts.items()]
    merges: list[tuple[int, int]] = []
    while len(merges) < most:
        pairs: Counter[tuple[int, int]] = Counter()
        for word, count in words:
            for pair in itertools.pairwise(word):
                pairs[pair] += count
        best = min(pairs, key=lambda pair: (-pairs[pair], pair), default=None)
        if best is None or pairs[best] < 2:
            break
        for word, _ in words:
            place = 0
            while place < len(word) - 1:
                if (word[place], word[place + 1]) == best:
                    word[place : place + 2] = [256 + len(merges)]
                place += 1
        merges.append(best)
    return merges


@pytest.mark.parametrize("seed", range(5))
def test_merges_are_the_most_frequent_pairs(seed: int) -> None:
    rng = random.Random(seed)
    texts = ["".join(rng.choices("aab cé", k=rng.randint(0, 60))) for _ in range(8)]
    assert BytePairEncoding.train(texts, 256 + 40).merges == counted_again(texts, 40)


def test_every_text_comes_back() -> None:
    encoding = BytePairEncoding.train(TEXTS, 300, specials=["<end>"])
    rng = random.Random(0)
    texts = [*TEXTS, *("".join(rng.choices(ALPHABET, k=rng.randint(0, 40))) for _ in range(200))]
    assert [encoding.decode(encoding.encode(text)) for text in texts] == texts
    assert encoding.encode("<end>") != [encoding.specials["<end>"]], "a text makes no specials"
    assert len(encoding.encode(TEXTS[0])) < len(TEXTS[0].encode()) and encoding("the") == encoding.encode("the")
    assert encoding.decode([*encoding.encode("a"), encoding.specials["<end>"]]) == "a<end>"
    assert encoding.decode(encoding.encode("日")[:1]) == "\ufffd" or len(encoding.encode("日")) == 1


def test_trained_parameters() -> None:
    encoding = BytePairEncoding.train(["aaaa aaaa", "b"], 300, specials=["<pad>", "<pad>"])
    assert encoding.merges == [(97, 97), (256, 256)] and len(encoding) == 259 and encoding.specials == {"<pad>": 258}
    assert encoding.encode("aaa aaaa") == [256, 97, 32, 257] and BytePairEncoding().encode("é") == [0xC3, 0xA9]
    assert BytePairEncoding.train(["ab ab"], 300, min_freq=3).merges == []


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "words.json"
    encoding = BytePairEncoding.train(TEXTS, 290, specials=["<end>", "<é>"])
    encoding.save(path)
    loaded = BytePairEncoding.load(path)
    assert loaded.merges == encoding.merges and loaded.specials == encoding.specials
    assert loaded.encode(TEXTS[1]) == encoding.encode(TEXTS[1])
    whole = path.read_bytes()
    other = json.dumps({"format": "other"}).encode()
    for content in (whole[:-5], b"", b"\xff", b"[]", other, whole.replace(b"[[", b"[[9999, 1], [")):
        path.write_bytes(content)
        with pytest.raises(FileError, match=r"\[BytePairEncoding\] '.*words.json' (is|was) (not|damaged)"):
            BytePairEncoding.load(path)
    with pytest.raises(FileError, match="cannot be read: No such file"):
        BytePairEncoding.load(tmp_path / "nowhere")


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "words.json"
    BytePairEncoding().save(path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(FileError, match="cannot be written: File too large"):
            BytePairEncoding([(97, 98)]).save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert BytePairEncoding.load(path).merges == []


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="size must be at least 257"):
        BytePairEncoding.train(TEXTS, 256, specials=["<end>"])
    with pytest.raises(ArgumentError, match=r"texts must be a list.*\[text\]"):
        BytePairEncoding.train("text", 300)
    with pytest.raises(ArgumentError, match="merge 0 must be of ids from 0 to 255; got 256 and 1"):
        BytePairEncoding([(256, 1)])
    with pytest.raises(ArgumentError, match="a pair twice"):
        BytePairEncoding([(1, 1), (1, 1)])
    with pytest.raises(ArgumentError, match="from 0 to 255; got 256"):
        BytePairEncoding().decode([256])
    with pytest.raises(ArgumentError, match="UTF-8"):
        BytePairEncoding().encode("\ud800")
