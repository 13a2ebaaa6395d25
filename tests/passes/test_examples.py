"""The passes of examples/passes: attributes of ops that exist, and passes that read them."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as rn
from runnel import nn, passes
from runnel.nn import functional

from ..random_numbers import RNG
from .examples import example


def normal(*shape: int) -> rn.Tensor:
    return rn.asarray(RNG.standard_normal(shape).astype(np.float32))


def evaluated(net: nn.Module) -> nn.Module:
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            for value in (module.weight, module.bias, module.running_mean, module.running_var):
                value.assign(rn.asarray(RNG.uniform(0.5, 2.0, value.shape).astype(np.float32)))
    return net.eval()


def names(graph: passes.Graph, least: int = 0) -> list[str]:
    """The ops of a graph whose results have at least so many elements."""
    return [v.op.name for v in graph.values if v.op is not None and v.aval.size >= least]


def test_constant_folding_by_attributes() -> None:
    fold = example("passes/constant_folding")
    own = passes.USUAL.without("fold").insert(fold.FOLD, after="decompose")

    def f(x: rn.Tensor) -> rn.Tensor:
        half = rn.asarray([0.5]) * 3 + rn.asarray([1.0])
        return x * half.reshape((1, 1))

    x = normal(4, 3)
    compiled = rn.compile(f, passes=own)
    np.testing.assert_array_equal(compiled(x).numpy(), f(x).numpy())
    assert names(dict(compiled.program(x).passes)["fold_by_attributes"]) == ["mul"]
    unfolded = rn.compile(f, passes=passes.USUAL.without("fold")).program(x).optimized
    assert len(names(unfolded)) > 1


def test_flops_as_an_attribute() -> None:
    flops = example("passes/flops")
    with pytest.raises(ValueError, match=r"has 204 floating-point operations, and 100 are allowed"):
        rn.compile(lambda x, w: rn.tanh(x @ w), passes=passes.USUAL.insert(flops.at_most(100), before="decompose"))(
            normal(2, 8), normal(8, 6)
        )
    allowed = rn.compile(lambda x: x + 1, passes=passes.USUAL.insert(flops.at_most(100), before="decompose"))
    assert allowed(rn.ones(100)).shape == (100,)


def test_a_layout_as_an_attribute() -> None:
    """The same bits in both layouts, and no more copies than before."""
    layout = example("passes/layout")
    own = passes.USUAL.insert(layout.CORRECT_LAYOUT, after="decompose")

    def f(x: rn.Tensor, y: rn.Tensor) -> rn.Tensor:
        return rn.tanh(rn.relu(x) * y + x)

    x, y = normal(2, 3, 4, 5), normal(2, 3, 4, 5)
    compiled = rn.compile(f, passes=own)
    np.testing.assert_array_equal(compiled(x, y).numpy(), f(x, y).numpy())
    after = dict(compiled.program(x, y).passes)
    assert names(after["correct_layout"]).count("permute") == 6 + 4
    assert names(after["sink_permutes"]).count("permute") <= 3
    assert len(compiled.program(x, y).plan.calls) == 1


def net() -> nn.Module:
    return evaluated(nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()))


def test_batch_normalization_at_inference_is_scale_and_shift() -> None:
    simplify = example("passes/simplify_inference").SIMPLIFY_INFERENCE
    model, x = net(), normal(2, 3, 6, 6)
    plain = rn.compile(lambda x: model(x))
    own = rn.compile(lambda x: model(x), passes=passes.USUAL.insert(simplify, before="decompose"))
    with rn.no_grad():
        np.testing.assert_allclose(own(x).numpy(), plain(x).numpy(), rtol=1e-4, atol=1e-5)
        at_points = [names(f.program(x).optimized, 2 * 8 * 36) for f in (plain, own)]
    assert [ops.count("sub") for ops in at_points] == [1, 0]
    assert [ops.count("mul") for ops in at_points] == [1, 1]
    assert not {op for ops in at_points for op in ops} & {"batch_norm", "random_bits"}


def test_scales_become_part_of_filters() -> None:
    simplify = example("passes/simplify_inference").SIMPLIFY_INFERENCE
    fold = example("passes/fold_scale_axis").FOLD_SCALE_AXIS
    own = passes.USUAL.insert(simplify, before="decompose").insert(fold, before="decompose")
    model, x = net(), normal(2, 3, 6, 6)
    compiled = rn.compile(lambda x: model(x), passes=own)
    with rn.no_grad():
        np.testing.assert_allclose(compiled(x).numpy(), model(x).numpy(), rtol=1e-4, atol=1e-5)
        at_points = names(compiled.program(x).optimized, 2 * 8 * 36)
    assert at_points.count("mul") == 0 and at_points.count("add") == 1


@pytest.mark.parametrize("on_inputs", [False, True])
def test_scales_on_either_side(on_inputs: bool) -> None:
    fold = example("passes/fold_scale_axis").FOLD_SCALE_AXIS

    def f(x: rn.Tensor, w: rn.Tensor, s: rn.Tensor) -> rn.Tensor:
        conv = functional.conv2d
        return conv(x * s, w, padding=1) if on_inputs else conv(x, w, padding=1) * s

    x, w, s = normal(2, 3, 5, 5), normal(4, 3, 3, 3), normal(1, 3 if on_inputs else 4, 1, 1)
    own = rn.compile(f, passes=passes.USUAL.insert(fold, before="decompose"))
    np.testing.assert_allclose(own(x, w, s).numpy(), f(x, w, s).numpy(), rtol=1e-4, atol=1e-5)
    graph = dict(own.program(x, w, s).passes)["fold_scale_axis"]
    scaled = [v.aval.shape for v in graph.values if v.op is not None and v.op.name == "mul"]
    assert scaled == [(4, 3, 3, 3)]


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        self.one, self.two = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norms = nn.ModuleList([nn.BatchNorm2d(channels) for _ in range(2)])

    def forward(self, x: rn.Tensor) -> rn.Tensor:
        return rn.relu(x + self.norms[1](self.two(rn.relu(self.norms[0](self.one(x))))))


def test_a_residual_network_folds_to_the_same_output_and_prepares_its_filters_once() -> None:
    simplify = example("passes/simplify_inference").SIMPLIFY_INFERENCE
    fold = example("passes/fold_scale_axis").FOLD_SCALE_AXIS
    own = passes.USUAL.insert(simplify, before="decompose").insert(fold, before="decompose")
    model, x = evaluated(Residual(64)), normal(1, 64, 4, 4)
    compiled = rn.compile(lambda x: model(x), passes=own)
    with rn.no_grad():
        np.testing.assert_allclose(compiled(x).numpy(), model(x).numpy(), rtol=1e-3, atol=1e-2)
        inspection = compiled.program(x)
    assert inspection.hoisted_constants is not None
    assert names(inspection.optimized, 64 * 16).count("mul") == 0
    assert names(inspection.hoisted_constants.optimized, 64 * 64 * 9).count("mul") == 2
