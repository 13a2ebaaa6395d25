"""``runnel bench``: the work of its cases, what it prints, and first calls in separate processes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from runnel.cli import bench_cases as models
from runnel.cli.bench import first_calls
from runnel.cli.bench_cases import CASES, work
from runnel.cli.main import main
from runnel.core.errors import RunnelError

pytestmark = pytest.mark.suite


def products(network: type, *shape: int) -> list[int]:
    """Without making the network."""
    actual: list[int] = network.products(object.__new__(network), *shape)  # type: ignore[attr-defined]
    return actual


def encoder(width: int, layers: int, vocabulary: int) -> models.Encoder:
    result = object.__new__(models.Encoder)
    for name, value in (("width", width), ("layers", layers), ("vocabulary", vocabulary)):
        object.__setattr__(result, name, value)
    return result


def test_work_covers_forward_and_backward() -> None:
    assert work(models.MLP(4, 16, 16, 3).products(8, 4), True) == 8 * (2 * 4 * 16 + 3 * 16 * 16 + 3 * 16 * 3)
    assert work([5, 7], False) == 12


def test_work_of_the_known_networks() -> None:
    """The Rosetta networks' published sums; ResNet-50's "4.1 billion" without its last layer; BERT's 24·d² a word."""
    assert round(sum(products(models.CNN, 1, 3, 32, 32)) / 1e6, 2) == 62.26
    assert round(sum(products(models.GRU, 1, 150)) / 1e6, 1) == 10.1
    assert round(sum(products(models.ResNet50, 1, 3, 224, 224)) / 1e9, 2) == 4.09
    assert products(models.ResNet50, 32, 3, 224, 224) == [32 * n for n in products(models.ResNet50, 1, 3, 224, 224)]
    bert = encoder(768, 12, 1000).products(1, 128)
    assert sum(bert) == 128 * (12 * (12 * 768**2 + 2 * 128 * 768) + 768 * 1000)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("mlp_tiny_b8", 403),
        ("mlp_b32", 235_146),
        ("mlp_b256", 1_863_690),
        ("cnn_b64", 3_441_592),
        ("gru_b64", 3_818_302),
        ("encoder_b8_t128", 3_672_040),
        ("resnet50_b1", 23_508_032),
    ],
)
def test_networks_have_the_weights_of_the_peers(name: str, parameters: int) -> None:
    assert CASES[name].network().num_parameters() == parameters


def test_data_equal_the_data_of_the_peers() -> None:
    rng = np.random.default_rng(0)
    images, classes = CASES["cnn_b64"].x(rng), CASES["cnn_b64"].y
    assert images.shape == (64, 3, 32, 32) and images.dtype == np.float32 and 0 <= images.min() < images.max() < 1
    assert classes is not None and classes(rng).shape == (64,) and set(classes(rng)) == set(range(10))
    assert CASES["resnet50_b1"].y is None and CASES["resnet50_b1"].optimizer is None


@pytest.mark.parametrize("case", ["cnn_b64", "gru_b64", "encoder_b8_t128"])
def test_steps_of_training_run(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", case, "--json", "--seconds", "0"]) == 0
    line = printed(capsys)
    assert line["best_ms"] > 0 and line["share_of_peak"] > 0  # how much depends on who else uses the machine
    assert line["lower_bound_bytes"] <= line["planned_bytes"] < line["bytes_beside_weights"]


def test_first_calls_are_made_in_new_processes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "mlp_tiny_b8", "--json", "--seconds", "0", "--first-call"]) == 0
    line = printed(capsys)
    assert line["first_cold_s"] > 0 and line["first_warm_s"] > 0


def test_a_first_call_that_fails_is_reported() -> None:
    with pytest.raises(RunnelError, match=r"a new process failed: .*no_such_case"):
        first_calls(["no_such_case"])


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    actual: dict[str, Any] = json.loads(capsys.readouterr().out)
    return actual
