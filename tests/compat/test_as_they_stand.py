"""Programs written for PyTorch rely on these: arguments, aliases, classes of errors, paths of modules, settings."""

from __future__ import annotations

import copy
import importlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.compat.torch as torch
from runnel.compat.torch import nn
from runnel.compat.torch.autograd import forward_ad
from runnel.compat.torch.profiler import ProfilerActivity, profile, record_function, schedule
from runnel.compat.torch.utils.tensorboard import SummaryWriter
from runnel.core.errors import ArgumentError, ShapeError


def test_results_go_where_out_says() -> None:
    x, out = torch.eye(2), torch.zeros(2, 2)
    assert torch.matmul(x, x + 1, out=out) is out and out.tolist() == [[2.0, 1.0], [1.0, 2.0]]
    values, places = torch.zeros(2), torch.zeros(2, dtype=torch.int64)
    torch.max(out, 1, out=(values, places))
    assert values.tolist() == [2.0, 2.0] and places.tolist() == [0, 1]
    assert rn.add(x[0], 1, out=values) is values and values.tolist() == [2.0, 1.0]
    with pytest.raises(ShapeError, match="keeps its shape"):
        torch.add(x, x, out=values)
    with pytest.raises(ArgumentError, match="out must be an array"):
        torch.exp(x, out=3)
    with pytest.raises(ArgumentError, match="a tuple of 2 arrays"):
        torch.max(out, 1, out=values)


def test_state_dicts_write_through() -> None:
    layer = nn.Linear(2, 1)
    state = layer.state_dict()
    for value in state.values():
        value.copy_(torch.ones_like(value))
    assert layer.weight.tolist() == [[1.0, 1.0]] and layer.bias.tolist() == [1.0]
    weight = state["weight"]
    weight *= 0.5
    state["bias"][0] = 7.0
    assert layer.weight.tolist() == weight.tolist() == [[0.5, 0.5]] and layer.bias.item() == 7.0
    with torch.no_grad():
        layer.weight.add_(1)
    assert weight.tolist() == [[1.5, 1.5]], "values change with the module"
    weight.mul_(2)
    assert layer.weight.tolist() == weight.tolist() == [[3.0, 3.0]]
    for own in (copy.deepcopy(state), pickle.loads(pickle.dumps(state)), {k: v.clone() for k, v in state.items()}):
        own["weight"].zero_()
        assert layer.weight.tolist() == [[3.0, 3.0]]


def test_data_that_is_replaced_keeps_its_value() -> None:
    for x in (nn.Parameter(torch.ones(2)), torch.ones(2, requires_grad=True), torch.ones(2)):
        kept = x.data
        x.data = torch.zeros(2)
        assert kept.tolist() == [1.0, 1.0] and x.tolist() == [0.0, 0.0]
        x.data = kept
        live = x.data
        x.data += 1
        live.mul_(3)
        assert x.tolist() == live.tolist() == [6.0, 6.0]


def test_errors_are_of_pytorchs_classes() -> None:
    a, b = torch.ones(2, 3), torch.ones(2, 3)
    for call in (
        lambda: a @ b, lambda: a.view(5), lambda: torch.cat([a, torch.ones(3)]), lambda: bool(a),
        lambda: nn.Linear(2, 2).load_state_dict({"weight": torch.ones(1)}), lambda: a.int() @ b.bool(),
        lambda: torch.zeros(1, device="cuda"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError):
            call()
    data = torch.utils.data.TensorDataset(a)
    with pytest.raises(ValueError, match="both choose the order"):
        torch.utils.data.DataLoader(data, shuffle=True, sampler=torch.utils.data.SequentialSampler(data))


def test_types_and_dtypes() -> None:
    x = torch.ones(2, 3)
    assert x.type(torch.LongTensor).dtype is x.type("torch.LongTensor").dtype is torch.int64
    assert x.half().type() == "torch.HalfTensor" and torch.uint8.is_signed is False and torch.int8.is_signed
    assert torch.float16.is_floating_point and not torch.int64.is_floating_point
    assert torch.float64.to_complex() is torch.complex128 and torch.complex64.to_real() is torch.float32
    assert 1.0 in x and 2.0 not in x
    assert nn.Linear(1, 1).to(memory_format=torch.channels_last, dtype=torch.float64).weight.dtype is torch.float64


def test_modules() -> None:
    class Own(nn.Module):
        def __repr__(self) -> str:
            return "Own (1 -> 2)\nsecond line"

    assert "  (0): Own (1 -> 2)\n  second line\n" in repr(nn.Sequential(Own()))
    lstm = nn.LSTM(2, 3, num_layers=2, bidirectional=True)
    lstm.flatten_parameters()
    assert [len(part) for part in lstm.all_weights] == [4] * 4
    assert lstm.all_weights[3][0] is lstm.weight_ih_l1_reverse
    wrapped = nn.DataParallel(lstm.double())
    assert wrapped.module is lstm and all(name.startswith("module.") for name in wrapped.state_dict())
    assert nn.parallel.data_parallel(torch.abs, torch.tensor([-1.0])).item() == 1.0
    x = torch.ones(2, 3, 4)
    assert nn.MultiheadAttention(4, 2)(x, x, x)[1].shape == (3, 2, 2)


def test_paths() -> None:
    for path, name in {
        "distributions.categorical": "Categorical", "distributions.constraint_registry": "biject_to",
        "distributions.constraints": "positive", "distributions.kl": "kl_divergence",
        "distributions.transforms": "ExpTransform", "distributions.utils": "logits_to_probs",
        "nn.modules.module": "Module", "nn.modules.loss": "_Loss", "nn.modules.batchnorm": "_BatchNorm",
        "nn.modules.utils": "_pair", "nn.parallel": "DataParallel", "nn.attention": "sdpa_kernel",
        "optim.adamw": "AdamW", "optim.optimizer": "required", "optim.lr_scheduler": "_LRScheduler",
        "autograd.function": "once_differentiable", "autograd.grad_mode": "no_grad", "functional": "einsum",
        "autograd.graph": "save_on_cpu", "utils.data.distributed": "DistributedSampler", "types": "Device",
        "utils.hooks": "RemovableHandle", "utils.dlpack": "to_dlpack", "utils._pytree": "tree_map",
        "multiprocessing": "Process", "compiler": "is_compiling", "_dynamo": "config", "version": "cuda",
    }.items():  # fmt: skip
        assert hasattr(importlib.import_module(f"runnel.compat.torch.{path}"), name), path
    space: dict[str, Any] = {}
    exec("from runnel.compat.torch.optim.lr_scheduler import *; from runnel.compat.torch.nn import *", space)
    assert space["StepLR"] is torch.optim.lr_scheduler.StepLR and space["Linear"] is nn.Linear


def test_settings_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    b = torch.backends
    assert b.cudnn.enabled and isinstance(b.cudnn.benchmark, bool) and not b.mkl.is_available()
    assert isinstance(b.cuda.matmul.allow_tf32, bool) and not b.cuda.flash_sdp_enabled() and b.cuda.math_sdp_enabled()
    assert b.cudnn.version() is None and b.mkldnn.enabled and b.opt_einsum.enabled and not b.openmp.is_available()
    monkeypatch.setattr(b.cudnn, "benchmark", True, raising=False)
    assert b.cudnn.benchmark
    assert torch.__version__ == torch.version.__version__ >= "2" and torch.version.cuda is None
    assert not torch.is_anomaly_enabled() and not torch.is_autocast_cpu_enabled()
    with torch.autocast("cpu"), b.cuda.sdp_kernel(enable_flash=False):
        assert torch.is_autocast_enabled("cpu") and not torch.is_autocast_enabled()
        assert torch.get_autocast_dtype("cpu") is torch.bfloat16
    torch._dynamo.reset()
    assert not torch.jit.is_scripting() and torch.jit.wait(torch.jit.fork(torch.neg, torch.ones(1))).item() == -1
    assert torch.jit.annotate(int, 3) == 3 and torch.jit.isinstance([1], list)
    assert torch.compile(torch.compiler.disable(torch.neg))(torch.ones(1)).item() == -1


def test_profiles(tmp_path: Path) -> None:
    ready: list[Any] = []
    with profile(activities=[ProfilerActivity.CPU], on_trace_ready=ready.append) as run:
        for _ in range(3):
            with record_function("stretch"):
                torch.ones(3).sum()
    (stretch,) = run.key_averages()
    assert (stretch.key, stretch.count, ready) == ("stretch", 3, [run]) and stretch.cpu_time_total > 0
    assert "stretch" in run.key_averages().table(sort_by="cpu_time_total", row_limit=5)
    run.export_chrome_trace(str(tmp_path / "trace.json"))
    assert (tmp_path / "trace.json").read_text().count("stretch") == 3
    actions = [schedule(wait=1, warmup=1, active=2, repeat=1)(i).name for i in range(6)]
    assert actions == ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE", "NONE"]


def test_numbers_for_tensorboard(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", torch.tensor(0.5), global_step=3)
        writer.add_scalars("both", {"a": 1.0, "b": 2}, 4)
        with pytest.warns(UserWarning, match="add_histogram.*numbers alone"):
            writer.add_histogram("weights", torch.ones(3), 1)
    files = {path.parent.name: path.read_bytes() for path in tmp_path.rglob("events*")}
    assert b"loss" in files[tmp_path.name] and b"both" in files["both_a"] and b"both" in files["both_b"]


def test_derivatives() -> None:
    with forward_ad.dual_level():
        y = forward_ad.make_dual(torch.tensor(2.0), torch.tensor(1.0)) ** 3
        assert forward_ad.unpack_dual(y).tangent.item() == 12.0
    with pytest.raises(RuntimeError, match="dual_level"):
        forward_ad.make_dual(torch.tensor(2.0), torch.tensor(1.0))
    x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: x**3, (x,))
    twice_wrong = lambda x: x.detach() ** 2 * x  # noqa: E731
    assert not torch.autograd.gradgradcheck(lambda x: twice_wrong(x) * x.sin(), (x,), raise_exception=False)
    (rows,) = torch.autograd.grad(x**2, x, torch.eye(2, dtype=torch.float64), is_grads_batched=True, only_inputs=True)
    np.testing.assert_allclose(rows.numpy(), np.diag([1.0, 4.0]))


def test_custom_distributions_draw_by_their_rsample() -> None:
    class Shifted(torch.distributions.Distribution):
        has_rsample = True

        def __init__(self, loc: Any) -> None:
            self.loc = loc
            super().__init__(loc.shape)

        def rsample(self, sample_shape: Any = ()) -> Any:
            return self.loc + torch.ones(self._extended_shape(sample_shape))

    inner = Shifted(torch.zeros(3))
    assert inner.sample((2,)).tolist() == [[1.0] * 3] * 2
    assert torch.distributions.Independent(inner, 1).sample().tolist() == [1.0] * 3
    doubled = torch.distributions.TransformedDistribution(inner, torch.distributions.AffineTransform(0.0, 2.0))
    assert doubled.rsample().tolist() == [2.0] * 3


def test_buffers_are_registered_again() -> None:
    module = nn.Module()
    module.register_buffer("mask", None)
    module.register_buffer("mask", torch.ones(2), persistent=False)
    assert list(module.state_dict()) == [] and module.mask.tolist() == [1.0, 1.0]
    module.register_buffer("mask", torch.zeros(3))
    assert list(module.state_dict()) == ["mask"] and [b.tolist() for b in module.buffers()] == [[0.0] * 3]
    module.register_buffer("mask", None)
    assert module.mask is None and list(module.buffers()) == []
    module.weight = nn.Parameter(torch.ones(2))
    with pytest.raises(ValueError, match="already has an attribute 'weight'"):
        module.register_buffer("weight", torch.ones(2))
    assert nn.init._calculate_fan_in_and_fan_out(torch.ones(2, 3, 5, 5)) == (75, 50)
