"""Transforms of images: what they compute, that single images and batches agree, what random ones follow from."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import ArgumentError, ShapeError
from runnel.data import ArrayDataset, DataLoader, transforms as T

RANDOM = {
    "crop": T.RandomCrop(12, padding=3),
    "crop of unlike sides": T.RandomCrop((9, 14), padding=(1, 2), fill=7),
    "horizontal": T.RandomHorizontalFlip(),
    "vertical": T.RandomVerticalFlip(0.3),
    "resized": T.RandomResizedCrop(8),
    "erasing": T.RandomErasing(0.7, value=9),
    "colours": T.ColorJitter(0.4, 0.5, (0.3, 2), 0.2),
}


def images(count: int = 40) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, 3, 16, 14), dtype=np.uint8)


def loaded(transform: Any, workers: int = 0, *, whole: bool = True, shuffle: bool = True) -> np.ndarray:
    data = ArrayDataset(images(), np.arange(40), transform)
    rn.manual_seed(4)
    options = {"collate_fn": lambda samples: [np.stack([np.asarray(s[i]) for s in samples]) for i in (0, 1)]}
    batches = list(DataLoader(data, 7, shuffle, num_workers=workers, **({} if whole else options)))
    x, y = (np.concatenate([np.asarray(b[i]) for b in batches]) for i in (0, 1))
    return x[np.argsort(y)]


@pytest.mark.parametrize("name", RANDOM)
def test_whole_batches_are_transformed_as_single_images(name: str) -> None:
    transform = T.Compose([RANDOM[name], T.ToTensor(), T.Normalize([0.4, 0.5, 0.6], 0.25)])
    assert ArrayDataset(images(), np.arange(40), transform).collated is not None
    whole, single = loaded(transform), loaded(transform, whole=False)
    np.testing.assert_array_equal(whole, single)
    np.testing.assert_array_equal(whole, loaded(transform, shuffle=False))  # it is the sample that counts
    assert whole.dtype == np.float32 and len(np.unique(whole, axis=0)) == 40


@pytest.mark.suite
def test_processes_transform_in_the_same_way() -> None:
    transform = T.Compose([*RANDOM.values()])
    np.testing.assert_array_equal(loaded(transform), loaded(transform, 2))


def test_a_seed_gives_the_same_numbers_outside_a_loader() -> None:
    def drawn() -> list[list[int]]:
        rn.manual_seed(1)
        return [T.RandomCrop(5)(image).ravel().tolist() for image in images(4)]

    assert drawn() == drawn()


def test_crops_are_parts_of_the_padded_image() -> None:
    image = np.arange(1, 26).reshape(1, 5, 5)
    padded = np.pad(image, ((0, 0), (2, 2), (2, 2)))
    windows = {padded[0, i : i + 4, j : j + 4].tobytes() for i in range(6) for j in range(6)}
    rn.manual_seed(0)
    actual = {T.RandomCrop(4, padding=2)(image)[0].tobytes() for _ in range(400)}
    assert actual == windows
    np.testing.assert_array_equal(T.CenterCrop(3)(image)[0], image[0, 1:4, 1:4])
    np.testing.assert_array_equal(T.CenterCrop((1, 7))(image)[0], np.pad(image[0, 2:3], ((0, 0), (1, 1))))
    nines = np.pad(image[0], ((2, 4), (1, 3)), constant_values=9)
    np.testing.assert_array_equal(T.Pad((1, 2, 3, 4), fill=9)(image)[0], nines)


def test_flips_mirror_about_half_of_the_images() -> None:
    many = T.RandomHorizontalFlip().many(batch := images(), rn.data.randomness.Draws(np.arange(40, dtype=np.uint64)))
    mirrored = [(a == b[..., ::-1]).all() and not (a == b).all() for a, b in zip(many, batch, strict=True)]
    assert 10 < sum(mirrored) < 30
    np.testing.assert_array_equal(T.RandomVerticalFlip(1.0)(batch[0]), batch[0, :, ::-1])
    np.testing.assert_array_equal(T.RandomVerticalFlip(0.0)(batch[0]), batch[0])


def test_values_become_floats_and_are_normalized() -> None:
    image = images(1)[0]
    tensor = T.ToTensor()(image)
    assert isinstance(tensor, rn.Tensor) and tensor.dtype is rn.float32
    np.testing.assert_array_equal(tensor.numpy(), image / np.float32(255))
    np.testing.assert_array_equal(T.ToTensor()(np.ascontiguousarray(image.transpose(1, 2, 0))).numpy(), tensor.numpy())
    normal = T.Normalize([0.1, 0.2, 0.3], [1.0, 2.0, 4.0])(tensor)
    expected = (tensor.numpy() - np.float32([[[0.1]], [[0.2]], [[0.3]]])) / np.float32([[[1]], [[2]], [[4]]])
    np.testing.assert_array_equal(normal.numpy(), expected)
    with pytest.raises(ArgumentError, match="Put ToTensor"):
        T.Normalize(0, 1)(image)
    with pytest.raises(ShapeError, match="2 means and an image of 3 channels"):
        T.Normalize([0, 0], 1)(tensor)


@pytest.mark.parametrize("size", [(8, 8), (31, 20), 7, (16, 14), (1, 40)])
def test_sizes_equal_the_ones_of_pillow(size: Any) -> None:
    PIL = pytest.importorskip("PIL.Image")
    image = np.random.default_rng(1).integers(0, 256, (3, 16, 14), dtype=np.uint8)
    actual = T.Resize(size)(image)
    height, width = actual.shape[1:]
    other = PIL.fromarray(image.transpose(1, 2, 0)).resize((width, height), PIL.Resampling.BILINEAR)
    assert np.abs(actual.astype(int) - np.asarray(other).transpose(2, 0, 1).astype(int)).max() <= 1
    if isinstance(size, int):
        assert (height, width) == (8, 7)


def test_colors_keep_their_range_and_their_meaning() -> None:
    image = images(1)[0].astype(np.float32) / 255
    gray = 0.299 * image[0] + 0.587 * image[1] + 0.114 * image[2]
    np.testing.assert_allclose(T.ColorJitter(brightness=(2, 2))(image), np.minimum(image * 2, 1), rtol=1e-6)
    np.testing.assert_allclose(T.ColorJitter(contrast=(0, 0))(image), np.full_like(image, gray.mean()), rtol=1e-5)
    np.testing.assert_allclose(T.ColorJitter(saturation=(0, 0))(image), np.stack([gray] * 3), rtol=1e-5)
    third = T.ColorJitter(hue=(1 / 3, 1 / 3))(image)  # red becomes green, green blue, blue red
    np.testing.assert_allclose(third, image[[2, 0, 1]], atol=1e-5)
    assert T.ColorJitter(0.5, 0.5, 0.5, 0.5)(images(1)[0]).dtype == np.uint8
    assert T.Grayscale(3)(images(1)[0]).shape == (3, 16, 14)


def test_erased_rectangles_have_the_area_that_was_asked() -> None:
    rn.manual_seed(2)
    erase = T.RandomErasing(1.0, scale=(0.1, 0.2), value=-1)
    shares = [(erase(np.zeros((1, 40, 40))) == -1).mean() for _ in range(100)]
    assert 0.08 < min(shares) < 0.12 and 0.17 < max(shares) < 0.22


@pytest.mark.parametrize("kind", [T.MixUp, T.CutMix])
def test_mixed_batches_have_mixed_labels(kind: Any) -> None:
    def batches(seed: int) -> list[Any]:
        rn.manual_seed(seed)
        data = ArrayDataset(np.stack([np.full((1, 20, 20), i, np.float32) for i in range(6)]), np.arange(6))
        return [(x.numpy(), y.numpy()) for x, y in DataLoader(data, 3, collate_fn=kind(num_classes=6))]

    for x, y in batches(0):
        np.testing.assert_allclose(y.sum(axis=1), 1, rtol=1e-6)
        np.testing.assert_allclose(x.mean(axis=(1, 2, 3)), y @ np.arange(6), rtol=1e-5, atol=1e-5)
    assert all((a[0] == b[0]).all() for a, b in zip(batches(0), batches(0), strict=True))
    assert any((a[0] != b[0]).any() for a, b in zip(batches(0), batches(1), strict=True))


def test_custom_functions_take_single_images() -> None:
    data = ArrayDataset(images(4), np.arange(4), T.Compose([T.ToTensor(), lambda image: image[:, :2]]))
    assert data.collated is None
    assert next(iter(DataLoader(data, 4)))[0].shape == (4, 3, 2, 14)


def test_transforms_are_sent_to_new_processes() -> None:
    transform = pickle.loads(pickle.dumps(T.Compose([*RANDOM.values(), T.ToTensor()])))
    assert transform(images(1)[0]).shape == (3, 8, 8)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: T.RandomCrop(0), "size must be a number of pixels"),
        (lambda: T.RandomCrop(3, padding=(1, 2, 3)), "2 or 4"),
        (lambda: T.RandomCrop(20)(images(1)[0]), "no part of 20×20"),
        (lambda: T.RandomHorizontalFlip(2), "probability"),
        (lambda: T.ColorJitter(hue=0.7), "0 to 0.5"),
        (lambda: T.ColorJitter(-1), "0 or more"),
        (lambda: T.Normalize(0, 0), "std must be above 0"),
        (lambda: T.MixUp(3, alpha=0), "alpha must be above 0"),
        (lambda: T.RandomCrop(3)("image"), "an image must be an array"),
        (lambda: T.RandomCrop(3)(np.zeros((2, 3, 4, 5))), r"got \(2, 3, 4, 5\)"),
    ],
)
def test_wrong_arguments_are_reported(make: Any, message: str) -> None:
    with pytest.raises((ArgumentError, ShapeError), match=message):
        make()
