"""Data sets, operations on boxes and networks, against formulas, files made here and published numbers."""

from __future__ import annotations

import gzip
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import runnel as rn
from runnel import nn
from runnel.compat import torchvision
from runnel.compat.torchvision import datasets, io, models, ops, transforms
from runnel.compat.torchvision.transforms import v2
from runnel.core.errors import RunnelError, UnsupportedError

pytestmark = pytest.mark.unit


def test_mnist_reads_idx_files(tmp_path: Path) -> None:
    pixels = np.arange(3 * 28 * 28, dtype=np.uint32).astype(np.uint8).reshape(3, 28, 28)
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    (raw / "train-images-idx3-ubyte").write_bytes(struct.pack(">HBBIII", 0, 8, 3, 3, 28, 28) + pixels.tobytes())
    (raw / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(struct.pack(">HBBI", 0, 8, 1, 3) + bytes([7, 1, 2])))
    data = datasets.MNIST(tmp_path, transform=np.asarray)
    assert len(data) == 3 and (data[1][0] == pixels[1]).all() and data[0][1] == 7
    assert data.targets.tolist() == [7, 1, 2] and tuple(data.data.shape) == (3, 28, 28)
    with pytest.raises(RunnelError, match="put t10k-images"):
        datasets.MNIST(tmp_path, train=False)


def test_cifar_reads_the_python_version_and_no_other_objects(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3072), np.uint8)
    (folder / "test_batch").write_bytes(pickle.dumps({"data": pixels, "labels": [3, 4]}))
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": list("abcdefghij")}))
    data = datasets.CIFAR10(tmp_path, train=False)
    assert data[1][1] == 4 and data.classes[4] == "e"
    assert (np.asarray(data[1][0]) == pixels[1].reshape(3, 32, 32).transpose(1, 2, 0)).all()
    (folder / "test_batch").write_bytes(pickle.dumps({"data": Path("x")}))
    with pytest.raises(RunnelError, match="only arrays"):
        datasets.CIFAR10(tmp_path, train=False)


def test_folders_of_images(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (4, 3), (name == "cat" and "red") or "blue").save(tmp_path / name / "1.png")
    data = datasets.ImageFolder(tmp_path)
    assert data.classes == ["cat", "dog"] and data[1][1] == 1 and data[1][0].getpixel((0, 0)) == (0, 0, 255)


def test_data_sets_that_are_not_read_refuse_the_call() -> None:
    with pytest.raises(UnsupportedError, match="ImageFolder"):
        datasets.CelebA("x")


BOXES = rn.asarray(np.array([[0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30]], np.float32))
SCORES = rn.asarray(np.array([0.5, 0.9, 0.3], np.float32))


def test_boxes() -> None:
    assert ops.nms(BOXES, SCORES, 0.5).tolist() == [1, 2] and ops.nms(BOXES, SCORES, 0.9).tolist() == [1, 0, 2]
    assert ops.batched_nms(BOXES, SCORES, rn.asarray([0, 1, 0]), 0.5).tolist() == [1, 0, 2]
    np.testing.assert_allclose(ops.box_iou(BOXES, BOXES)[0].numpy(), [1, 0.81, 0], rtol=1e-6)
    np.testing.assert_allclose(ops.generalized_box_iou(BOXES, BOXES)[0].numpy(), [1, 0.81, -700 / 900], rtol=1e-5)
    for name in ("xywh", "cxcywh"):
        there = ops.box_convert(BOXES, "xyxy", name)
        np.testing.assert_allclose(ops.box_convert(there, name, "xyxy").numpy(), BOXES.numpy())


def test_focal_loss_is_its_formula() -> None:
    x, y = np.array([-1.0, 0.5, 2.0]), np.array([0.0, 1.0, 1.0])
    p = 1 / (1 + np.exp(-x))
    pt, alpha = np.where(y == 1, p, 1 - p), np.where(y == 1, 0.25, 0.75)
    actual = ops.sigmoid_focal_loss(rn.asarray(x, dtype=rn.float64), rn.asarray(y, dtype=rn.float64))
    np.testing.assert_allclose(actual.numpy(), -alpha * (1 - pt) ** 2 * np.log(pt), rtol=1e-6)


COUNTS = {
    "resnet18": 11_689_512,
    "resnet50": 25_557_032,
    "resnext50_32x4d": 25_028_904,
    "squeezenet1_0": 1_248_424,
    "squeezenet1_1": 1_235_496,
    "alexnet": 61_100_840,
    "densenet121": 7_978_856,
    "mobilenet_v2": 3_504_872,
    "mobilenet_v3_small": 2_542_856,
    "shufflenet_v2_x0_5": 1_366_792,
    "efficientnet_b0": 5_288_548,
    "googlenet": 13_004_888,
    "inception_v3": 27_161_264,
    "convnext_tiny": 28_589_128,
}


@pytest.mark.parametrize(("name", "count"), COUNTS.items())
def test_networks_have_the_published_numbers_of_parameters(
    name: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for function in ("kaiming_normal_", "kaiming_uniform_", "normal_", "trunc_normal_", "uniform_"):
        monkeypatch.setattr(nn.init, function, lambda x, *args, **kwargs: x)  # drawing the weights takes most time
    assert sum(p.numel() for p in models.get_model(name).parameters()) == count


def test_a_network_trains_and_refuses_trained_weights() -> None:
    model: Any = models.resnet18(num_classes=3)
    model(rn.ones((2, 3, 32, 32))).sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    assert {"layer2.0.downsample.0.weight", "layer4.1.bn2.running_var", "fc.bias"} <= set(model.state_dict())
    with pytest.raises(UnsupportedError, match="load_state_dict"):
        models.resnet18(weights=models.ResNet18_Weights.DEFAULT)


# a network, a place among its weights, sizes of its images and of its results
SMALL: dict[str, tuple[Any, str, int, Any]] = {
    "vision transformer": (
        lambda: models.VisionTransformer(32, 16, 1, 2, 8, 16, num_classes=3, representation_size=4),
        *("encoder.layers.encoder_layer_0.mlp.3.bias", 32, (2, 3)),
    ),
    "dense": (
        lambda: models.DenseNet(4, (2, 1), 8, drop_rate=0.1, num_classes=3),
        *("features.denseblock1.denselayer2.conv1.weight", 64, (2, 3)),
    ),
    "half as wide": (
        lambda: models.mobilenet_v3_small(width_mult=0.5, num_classes=3),
        *("features.1.block.1.fc1.weight", 32, (2, 3)),
    ),
    "shuffled": (
        lambda: models.ShuffleNetV2([1, 2, 1], [8, 16, 16, 32, 32], 3),
        "stage3.1.branch2.0.weight",
        32,
        (2, 3),
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_networks_train(name: str) -> None:
    build, place, size, shape = SMALL[name]
    model: Any = build()
    result = model(rn.randn(2, 3, size, size))
    assert tuple(result.shape) == shape and place in model.state_dict()
    result.square().sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_every_name_is_there() -> None:
    for package in (torchvision, datasets, io, models, ops, transforms, transforms.functional, v2, v2.functional):
        assert [name for name in package.PLACED if not hasattr(package, name)] == []
    assert callable(models.alexnet) and models.list_models(include="vgg*", exclude="*_bn")[0] == "vgg11"
