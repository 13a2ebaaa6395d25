"""Averages of models: formulas, buffers, statistics of batch normalization, saving."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from runnel.optim import swa_utils

VALUES = np.random.default_rng(0).standard_normal((5, 2, 3)).astype(np.float32)


def averaged(**options: Any) -> np.ndarray:
    model = nn.Linear(3, 2, bias=False)
    average = swa_utils.AveragedModel(model, **options)
    for value in VALUES:
        model.weight.assign(value)
        average.update_parameters(model)
    assert average.n_averaged.item() == 5
    return average.module.weight.numpy()


def ema(decay: float) -> np.ndarray:
    expected = VALUES[0]
    for value in VALUES[1:]:
        expected = decay * expected + (1 - decay) * value
    return expected


def test_all_models_count_equally_or_the_last_ones_more() -> None:
    for options in ({}, {"avg_fn": swa_utils.get_swa_avg_fn()}, {"multi_avg_fn": swa_utils.get_swa_multi_avg_fn()}):
        np.testing.assert_allclose(averaged(**options), VALUES.mean(0), rtol=1e-5, atol=1e-6)
    for options in (
        {"avg_fn": swa_utils.get_ema_avg_fn(0.8)},
        {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.8)},
        {"avg_fn": lambda average, new, count: 0.8 * average + 0.2 * new},
    ):
        np.testing.assert_allclose(averaged(**options), ema(0.8), rtol=1e-5, atol=1e-6)


def test_averages_in_a_compiled_step_have_the_same_bits() -> None:
    def run(compiled: bool) -> np.ndarray:
        rn.manual_seed(0)
        model = nn.Linear(3, 2)
        average = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9))

        def step(x: rn.Tensor) -> None:
            model.weight.assign(model.weight.value * 0.5 + x)
            average.update_parameters(model)

        call: Any = rn.compile(step) if compiled else step
        for value in VALUES:
            call(rn.asarray(value))
        return average.module.weight.numpy()

    np.testing.assert_array_equal(run(True), run(False))


@pytest.mark.parametrize("use_buffers", [True, False])
def test_buffers(use_buffers: bool) -> None:
    model = nn.BatchNorm1d(3)
    average = swa_utils.AveragedModel(model, use_buffers=use_buffers)
    for value in (1.0, 3.0, 8.0):
        model.running_mean.assign(np.full(3, value, np.float32))
        average.update_parameters(model)
    np.testing.assert_allclose(average.module.running_mean.numpy(), 4.0 if use_buffers else 8.0, rtol=1e-6)


def test_statistics_cover_the_whole_data() -> None:
    data = np.random.default_rng(1).standard_normal((4, 8, 3)).astype(np.float32)
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2))
    model.eval()
    model[0].running_mean.assign(np.full(3, 9.0, np.float32))
    swa_utils.update_bn([(rn.asarray(batch), None) for batch in data], model)
    np.testing.assert_allclose(model[0].running_mean.numpy(), data.mean((0, 1)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model[0].running_var.numpy(), data.var(1, ddof=1).mean(0), rtol=1e-4)
    assert model[0].momentum == 0.1 and not model[0].training and not model.training


def test_an_average_is_saved_and_loaded_with_pytorchs_names() -> None:
    model = nn.Linear(3, 2)
    one, two = swa_utils.AveragedModel(model), swa_utils.AveragedModel(nn.Linear(3, 2))
    one.update_parameters(model)
    assert set(one.state_dict()) == {"n_averaged", "module.weight", "module.bias"}
    two.load_state_dict(one.state_dict())
    np.testing.assert_array_equal(two(rn.ones((1, 3))).numpy(), model(rn.ones((1, 3))).numpy())


def test_refused() -> None:
    with pytest.raises(TypeError, match=r"\[AveragedModel\] model must be a Module; got 1.0"):
        swa_utils.AveragedModel(1.0)
    with pytest.raises(ValueError, match="avg_fn or multi_avg_fn; got both"):
        swa_utils.AveragedModel(nn.Linear(2, 2), None, swa_utils.get_swa_avg_fn(), swa_utils.get_swa_multi_avg_fn())
    with pytest.raises(ValueError, match="have the shapes"):
        swa_utils.AveragedModel(nn.Linear(2, 2)).update_parameters(nn.Linear(2, 3))
    with pytest.raises(ValueError, match=r"decay must be in \[0, 1\]"):
        swa_utils.get_ema_avg_fn(1.5)
