"""Transforms: tensors against Pillow's images, shapes and dtypes, random numbers that repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

import runnel as rn
from runnel.compat.torchvision import io, transforms as T, utils
from runnel.compat.torchvision.transforms import functional as F, v2

pytestmark = pytest.mark.unit


def smooth_image() -> Any:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 25, 3), np.uint8)
    return Image.fromarray(pixels).resize((50, 40), Image.Resampling.BICUBIC)


CORNERS = [[0, 0], [49, 0], [49, 39], [0, 39]]
# a function of an image, and how far the tensor's pixels may be from Pillow's, as torchvision's are
SAME: list[tuple[Callable[[Any], Any], int]] = [
    (F.hflip, 0),
    (F.vflip, 0),
    (lambda i: F.crop(i, 5, 6, 10, 12), 0),
    (lambda i: F.crop(i, -5, 45, 60, 12), 0),
    (lambda i: F.center_crop(i, 21), 0),
    (lambda i: F.center_crop(i, (61, 33)), 0),
    *((lambda i, m=m: F.pad(i, [3, 4, 5, 6], padding_mode=m), 0) for m in ("constant", "edge", "reflect", "symmetric")),
    (lambda i: F.pad(i, 3, fill=(10, 20, 30)), 0),
    (lambda i: F.resize(i, 20), 1),
    (lambda i: F.resize(i, (70, 30)), 1),
    (lambda i: F.resize(i, (70, 30), T.InterpolationMode.BICUBIC), 2),
    (lambda i: F.resize(i, 20, max_size=22), 1),
    (F.rgb_to_grayscale, 1),
    (lambda i: F.rgb_to_grayscale(i, 3), 1),
    (lambda i: F.adjust_brightness(i, 1.3), 0),
    (lambda i: F.adjust_contrast(i, 0.6), 1),
    (lambda i: F.adjust_saturation(i, 1.7), 1),
    (lambda i: F.adjust_hue(i, 0.2), 12),
    (lambda i: F.adjust_gamma(i, 1.5), 0),
    (lambda i: F.adjust_sharpness(i, 1.7), 0),
    (F.invert, 0),
    (lambda i: F.posterize(i, 3), 0),
    (lambda i: F.solarize(i, 100), 0),
    (F.autocontrast, 1),
    (F.equalize, 0),
    (lambda i: F.gaussian_blur(i, 5), 0),
    (lambda i: F.rotate(i, 30), 0),
    (lambda i: F.rotate(i, 30, expand=True), 0),
    (lambda i: F.rotate(i, 30, center=[5, 6]), 0),
    (lambda i: F.affine(i, 20, [3, 4], 1.2, [5, 7]), 0),
    (lambda i: F.perspective(i, CORNERS, CORNERS), 1),
]


@pytest.mark.parametrize(("function", "tolerance"), SAME)
def test_tensors_change_as_images_of_pillow(function: Callable[[Any], Any], tolerance: int) -> None:
    image = smooth_image()
    expected = np.atleast_3d(np.asarray(function(image))).astype(int)
    actual = function(F.pil_to_tensor(image)).numpy().transpose(1, 2, 0).astype(int)
    assert actual.shape == expected.shape and np.abs(actual - expected).max() <= tolerance


RANDOM = [
    *(T.RandomCrop(32, padding=4), T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.RandomVerticalFlip()),
    *(T.ColorJitter(0.4, 0.4, 0.4, 0.1), T.RandomRotation(10), T.RandomAffine(5, (0.1, 0.1), (0.9, 1.1), 5)),
    *(T.RandomGrayscale(0.5), T.RandomPerspective(p=1.0), T.GaussianBlur(3), T.ElasticTransform()),
    *(T.AutoAugment(), T.AutoAugment(T.AutoAugmentPolicy.CIFAR10), T.AutoAugment(T.AutoAugmentPolicy.SVHN)),
    *(T.RandAugment(), T.TrivialAugmentWide(), T.AugMix(), T.RandomEqualize(), T.RandomPosterize(3)),
    *(T.RandomSolarize(128), T.RandomAdjustSharpness(2), T.RandomAutocontrast(), T.RandomInvert()),
    *(T.RandomApply([T.CenterCrop(9)]), T.RandomChoice([T.CenterCrop(9), T.Pad(1)]), T.RandomOrder([T.Pad(1)])),
]


@pytest.mark.parametrize("transform", RANDOM, ids=lambda t: type(t).__name__)
def test_random_transforms_repeat_with_the_seed_and_keep_the_kind(transform: Any) -> None:
    image = smooth_image()
    for given in (image, F.pil_to_tensor(image)):
        results = []
        for _ in range(2):
            rn.manual_seed(3)
            results.append(transform(given))
        assert type(results[0]) is type(given)
        assert (np.asarray(results[0]) == np.asarray(results[1])).all()


def test_a_pipeline_of_version_1_and_of_version_2_is_the_same() -> None:
    image = smooth_image()
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    first = T.Compose([T.Resize(20), T.CenterCrop(16), T.ToTensor(), T.Normalize(mean, std)])
    second = v2.Compose(
        [v2.Resize(20), v2.CenterCrop(16), v2.ToImage(), v2.ToDtype(rn.float32, scale=True), v2.Normalize(mean, std)]
    )
    expected = (np.asarray(image.resize((25, 20), 2)).transpose(2, 0, 1)[:, 2:18, 4:20] / 255 - 0.5) / 0.25
    assert first(image).shape == (3, 16, 16) and first(image).dtype == rn.float32
    np.testing.assert_allclose(second(image).numpy(), first(image).numpy(), rtol=1e-6, atol=1e-6)
    unit = T.Compose([T.Resize(20), T.CenterCrop(16), T.ToTensor(), T.Normalize(0.5, 0.25)])(image)
    np.testing.assert_allclose(unit.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_gradients_pass_through_transforms_of_tensors() -> None:
    x = rn.ones((1, 3, 12, 12)).requires_grad_()
    F.affine(F.resize(x, 8), 10, [0, 0], 1.0, [0.0], T.InterpolationMode.BILINEAR).sum().backward()
    assert float(x.grad.abs().sum()) > 1


def test_mixtures_of_batches_keep_the_sum_of_labels() -> None:
    for mixture in (v2.MixUp(num_classes=4), v2.CutMix(num_classes=4)):
        images, labels = mixture(rn.ones((4, 3, 8, 8)), rn.arange(4))
        np.testing.assert_allclose(images.numpy(), 1, rtol=1e-6)
        np.testing.assert_allclose(labels.sum(axis=1).numpy(), 1, rtol=1e-6)


def test_grids_and_files_of_images(tmp_path: Any) -> None:
    images = rn.asarray(np.random.default_rng(0).random((5, 1, 4, 4), np.float32))
    grid = utils.make_grid(images, nrow=3, padding=1, pad_value=0.5).numpy()
    assert grid.shape == (3, 11, 16) and (grid[:, 0] == 0.5).all()
    assert (grid[1, 6:10, 6:10] == images.numpy()[4, 0]).all()
    utils.save_image(images[0], tmp_path / "a.png")
    expected = np.round(images.numpy()[0] * 255)
    assert np.abs(io.read_image(tmp_path / "a.png").numpy() - expected).max() <= 0.5


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: T.ToTensor()(3), "Pillow image or an array"),
        (lambda: T.Normalize(0, 1)(rn.ones((3, 2, 2), rn.uint8)), "float tensor"),
        (lambda: T.Normalize(0, 0)(rn.ones((3, 2, 2))), "std"),
        (lambda: T.RandomCrop(9)(rn.ones((3, 2, 2))), "at most"),
        (lambda: F.adjust_hue(rn.ones((3, 2, 2)), 0.7), "hue_factor"),
        (lambda: F.pad(rn.ones((3, 2, 2)), 1, padding_mode="round"), "padding_mode"),
    ],
)
def test_bad_arguments_name_themselves(call: Callable[[], Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        call()
