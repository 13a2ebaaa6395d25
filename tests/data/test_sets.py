"""Data sets: idx files, MNIST from a folder and from mirrors, the digits."""

from __future__ import annotations

import gzip
import hashlib
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from runnel import data
from runnel.core.errors import RunnelError
from runnel.data.classification import CHECKSUMS, PARTS
from runnel.data.download import read_idx
from tests.data.server import serving


def idx(array: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


RANDOM = np.random.default_rng(0)
ARRAYS = {
    part: RANDOM.integers(0, 10, (5, 28, 28) if "images" in part else 5, dtype=np.uint8) for part in PARTS
}  # fmt: skip
SUMS = {part: hashlib.sha256(idx(array)).hexdigest() for part, array in ARRAYS.items()}


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    folder = tmp_path / "served"
    folder.mkdir()
    for part, array in ARRAYS.items():
        (folder / f"{part}.gz").write_bytes(gzip.compress(idx(array)))
    with serving(folder) as url:
        yield url, folder


def check(actual: data.Classification) -> None:
    np.testing.assert_array_equal(actual.train_x, ARRAYS[PARTS[0]].reshape(5, -1) / np.float32(255))
    np.testing.assert_array_equal(actual.test_y, ARRAYS[PARTS[3]])
    assert (actual.train_x.dtype, actual.train_y.dtype) == (np.float32, np.int64)


@pytest.mark.parametrize("packed", [True, False])
def test_mnist_from_a_folder(tmp_path: Path, packed: bool) -> None:
    for part, array in ARRAYS.items():
        content = idx(array)
        (tmp_path / (f"{part}.gz" if packed else part)).write_bytes(gzip.compress(content) if packed else content)
    check(data.mnist(tmp_path))
    (tmp_path / (f"{PARTS[2]}.gz" if packed else PARTS[2])).unlink()
    with pytest.raises(RunnelError, match="has no file t10k-images"):
        data.mnist(tmp_path)


def test_mnist_is_downloaded_once(mirror: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = mirror
    cache = tmp_path / "cache" / "mnist"
    missing = url + "/elsewhere"
    check(data.mnist(mirrors=[missing, url], checksums=SUMS, cache=cache))
    for path in folder.iterdir():
        path.unlink()
    check(data.mnist(mirrors=[url], checksums=SUMS, cache=cache))


def test_wrong_bytes_are_not_kept(mirror: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = mirror
    cache = tmp_path / "cache"
    whole = (folder / f"{PARTS[0]}.gz").read_bytes()
    for wrong in (whole[:-20], gzip.compress(idx(ARRAYS[PARTS[0]] + 1)), b"<html>not found</html>"):
        (folder / f"{PARTS[0]}.gz").write_bytes(wrong)
        with pytest.raises(RunnelError, match="could not be had from any mirror"):
            data.mnist(mirrors=[url], checksums=SUMS, cache=cache)
        assert not list(cache.glob("*")) if cache.exists() else True
    (folder / f"{PARTS[0]}.gz").write_bytes(whole)
    check(data.mnist(mirrors=[url], checksums=SUMS, cache=cache))
    (cache / f"{PARTS[0]}.gz").write_bytes(b"damaged later")
    check(data.mnist(mirrors=[url], checksums=SUMS, cache=cache))


def test_checksums_name_every_part() -> None:
    assert set(CHECKSUMS) == set(PARTS)
    assert all(len(bytes.fromhex(s)) == 32 for s in CHECKSUMS.values())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no idx file"),
        (b"\0\0\x42\x01" + b"\0" * 4, "is no idx file"),
        (idx(np.zeros((3, 4)))[:-1], r"has 23 bytes; its header asks for 24"),
        (b"\0\0\x08\x03\0\0", "its header alone needs 16"),
        (b"\x1f\x8bnonsense", "is no intact gzip file"),
    ],
)
def test_damaged_idx_files_are_reported(content: bytes, message: str) -> None:
    with pytest.raises(RunnelError, match=message):
        read_idx(content, "x")


def test_idx_of_wider_elements() -> None:
    header = bytes([0, 0, 0x0B, 1]) + struct.pack(">I", 2)
    np.testing.assert_array_equal(read_idx(header + struct.pack(">hh", -2, 300), "x"), [-2, 300])


def test_digits_are_split_without_overlap() -> None:
    one, two = data.digits(seed=1), data.digits(seed=1)
    np.testing.assert_array_equal(one.train_x, two.train_x)
    assert len(one.train_y) + len(one.test_y) == 1797 and one.classes == 10
    assert (data.digits(seed=2).test_y != one.test_y).any()
    assert one.train_x.max() == 1 and one.train_x.dtype == np.float32


def test_batches_are_whole_and_do_not_repeat() -> None:
    actual = data.digits()
    batches = list(actual.batches(100, np.random.default_rng(0)))
    assert [len(y) for _, y in batches] == [100] * 14
    labels = np.concatenate([y for _, y in batches])
    assert abs(len(labels) - len(actual.train_y)) < 100
    assert (np.bincount(labels) <= np.bincount(actual.train_y)).all()
