"""PyTorch's modules and names in ``runnel.compat.torch``."""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.compat.torch as torch
from runnel.compat.torch import names, nn
from runnel.core.errors import ArgumentError, CaptureError, DeviceError, DTypeError, MissingNameError

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "name", ["torch", *(f"torch.{path}" for path in sorted({*names.FORWARDS, *names.NAMES} - {"torch"}))]
)
def test_each_module_is_there_and_its_names_are_found(name: str) -> None:
    module = importlib.import_module(f"runnel.compat.{name}")
    assert all(hasattr(module, member) for member in dir(module))
    parent, _, last = name.rpartition(".")
    assert not parent or getattr(importlib.import_module(f"runnel.compat.{parent}"), last) is module


def test_equal_names_are_the_same_object() -> None:
    assert torch.nn.Linear is rn.nn.Linear and torch.sin is rn.sin and torch.optim.Lion is rn.optim.Lion
    assert torch.utils.data.DataLoader is rn.data.DataLoader and torch.nn.functional.relu is rn.nn.functional.relu
    assert (
        torch.complex64 is rn.complex64
        and torch.long is rn.int64
        and torch.float is rn.float32
        and torch.no_grad is rn.no_grad
    )


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: torch.sofmax, "did you mean softmax"),
        (lambda: nn.Liner, "did you mean Linear"),
        (lambda: torch.cuda.current_device, "programs run on CPUs"),
        (lambda: torch.distributed.init_process_group, "one process trains"),
        (lambda: nn.parallel.DistributedDataParallel, "the module itself"),
        (lambda: torch.onnx.export, "no writer of ONNX"),
        (lambda: torch.hub.load, r"runnel\.load"),
        (lambda: torch.sparse.mm, "tensors are dense"),
        (lambda: torch.autograd.graph.saved_tensors_hooks, r"runnel\.checkpoint"),
        (lambda: torch.zeros(1).cuda, "programs run on CPUs"),
    ],
)
def test_missing_names_say_what_to_do(ask: Any, message: str) -> None:
    with pytest.raises(MissingNameError, match=message):
        ask()


def test_kinds_of_tensors() -> None:
    x = torch.Tensor([1, 2])
    assert (
        x.dtype is torch.float32 and torch.Tensor(2, 3).shape == (2, 3) and torch.LongTensor([1]).dtype is torch.int64
    )
    assert isinstance(x, torch.Tensor) and isinstance(x, torch.FloatTensor) and not isinstance(x, torch.LongTensor)
    assert isinstance(nn.Parameter(x), torch.Tensor) and not isinstance(1.0, torch.Tensor)
    assert isinstance(x.shape, torch.Size) and isinstance(x.dtype, torch.dtype)
    assert torch.Tensor.sum(x).item() == 3.0


def test_devices() -> None:
    assert torch.device("cpu") is rn.device("cpu") and torch.device("cpu:0") is torch.device("cpu")
    assert isinstance(torch.zeros(1).device, torch.device) and not torch.cuda.is_available()
    with pytest.raises(DeviceError):
        torch.device("cuda")


def test_lines_about_devices_run_where_there_is_one() -> None:
    """Scripts say these unconditionally; the values are PyTorch's on a machine without a GPU."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = torch.backends.cudnn.deterministic = True
    torch.backends.cuda.enable_flash_sdp(False)
    assert not torch.backends.mps.is_available() and not torch.backends.mps.is_built()
    assert not torch.backends.cuda.is_built() and not torch.backends.cudnn.is_available()
    available = torch.accelerator.is_available(), torch.mps.is_available(), torch.xpu.is_available()
    assert available == (False, False, False) and torch.accelerator.current_accelerator() is None
    assert torch.cuda.device_count() == torch.accelerator.device_count() == 0
    assert not torch.cuda.is_bf16_supported() and not torch.cuda.is_initialized()
    assert torch.cuda.max_memory_allocated() == torch.cuda.memory_reserved() == 0
    torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
    torch.cuda.empty_cache()
    torch.set_num_interop_threads(1)
    assert issubclass(torch.cuda.OutOfMemoryError, RuntimeError)
    x = torch.rand(3, 3)
    scaler = torch.cuda.amp.GradScaler()
    with torch.cuda.amp.autocast(), torch.autocast("cuda", dtype=torch.float16):
        assert scaler.scale(x @ x).dtype is torch.float32
    with torch.autocast("cpu"):
        assert (x @ x).dtype is torch.bfloat16
    with pytest.raises(DeviceError):
        torch.autocast("no such device")


def test_arguments_as_pytorch_has_them() -> None:
    assert torch.zeros(2, 3, requires_grad=True).requires_grad and torch.full((2,), fill_value=1.5).tolist() == [
        1.5,
        1.5,
    ]
    assert torch.randn(2, 3, dtype=torch.float64, requires_grad=True).dtype is torch.float64
    assert torch.randint(3, (2, 2)).shape == (2, 2) and torch.randint(1, 2, size=(2,)).tolist() == [1, 1]
    assert sorted(torch.randperm(5).tolist()) == [0, 1, 2, 3, 4] and torch.rand_like(torch.ones(3)).shape == (3,)
    assert torch.normal(0.0, 1.0, size=(2, 2)).shape == torch.normal(torch.zeros(2, 2), 1.0).shape == (2, 2)
    assert (
        torch.add(torch.ones(1), 2, alpha=3).item() == 7
        and torch.div(torch.tensor(7), 2, rounding_mode="floor").item() == 3
    )
    assert torch.arange(1, 7, 2).tolist() == [1, 3, 5] and torch.linspace(0, 1, 3).tolist() == [0, 0.5, 1]
    assert [a.tolist() for a in torch.meshgrid(torch.arange(2), torch.arange(1))] == [[[0], [1]], [[0], [0]]]
    assert torch.std(torch.tensor([1.0, 3.0])).item() == pytest.approx(np.sqrt(2))
    assert torch.var_mean(torch.tensor([1.0, 3.0]))[0].item() == 2 and torch.equal(torch.ones(1), torch.ones(1)) is True
    draws = torch.multinomial(torch.tensor([[0.0, 1.0, 1.0]]), 2)
    assert sorted(draws[0].tolist()) == [1, 2] and set(
        torch.multinomial(torch.tensor([0.0, 1.0]), 5, True).tolist()
    ) == {1}
    with pytest.raises(DTypeError, match=r"\.double\(\)"):
        torch.set_default_dtype(torch.float64)


def test_seeds_give_equal_numbers() -> None:
    numbers = []
    for _ in range(2):
        generator = torch.manual_seed(3)
        numbers.append(torch.rand(3).tolist())
    assert numbers[0] == numbers[1] and generator is not None and torch.initial_seed() == 3


def test_compiled_modules_share_everything_with_the_module() -> None:
    model = nn.Linear(2, 1)
    quick = torch.compile(model, mode="reduce-overhead")
    x = torch.ones(3, 2)
    assert torch.equal(quick(x), model(x)) and quick.weight is model.weight and len(list(quick.parameters())) == 2
    assert torch.compile(lambda x: x + 1)(x).tolist() == (x + 1).tolist() and torch.jit.script(model) is model


def test_fullgraph_raises_where_calls_would_run_eagerly() -> None:
    model, x = nn.Linear(2, 1), torch.ones(3, 2)
    optimizer = torch.optim.Adam(model.parameters())

    @torch.compile(fullgraph=True)
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    losses = [step(x).item() for _ in range(3)]
    assert losses == sorted(losses, reverse=True) and step.statistics["programs"] == 1
    assert torch.equal(torch.compile(model, fullgraph=True)(x), model(x))
    assert torch.compile(torch.neg, fullgraph=True)(x).tolist() == (-x).tolist()
    calls = []

    def reads_the_clock(x: Any) -> Any:
        calls.append(1)
        return x + time.time()

    whole = torch.compile(reads_the_clock, fullgraph=True)
    for _ in range(2):
        with pytest.raises(CaptureError, match=r"runs eagerly: .*a clock is read"):
            whole(x)
    assert not calls
    excluded = torch.compiler.disable(torch.neg)
    with pytest.raises(CaptureError, match="uncompiled"):
        torch.compile(lambda x: excluded(x), fullgraph=True)(x)
    with pytest.raises(ArgumentError, match="fullgraph must be False"):
        torch.compile(excluded, fullgraph=True)


def test_checkpoints_refuse_contexts() -> None:
    with pytest.raises(ArgumentError, match="enter a context in the function"):
        torch.utils.checkpoint.checkpoint(
            torch.exp, torch.ones(2), context_fn=lambda: (torch.no_grad(), torch.no_grad())
        )


def test_close_tensors() -> None:
    torch.testing.assert_close({"a": [torch.ones(2)]}, {"a": [torch.ones(2) + 1e-7]})
    for actual, expected, message in (
        (torch.ones(2), torch.ones(3), "shapes"),
        (torch.ones(2), torch.ones(2).double(), "dtypes"),
        (torch.ones(2), torch.ones(2) + 1e-3, "2 of 2 elements"),
        ([torch.ones(2)], [], "lengths"),
    ):
        with pytest.raises(AssertionError, match=message):
            torch.testing.assert_close(actual, expected)


def test_gradients_are_computed_again_in_segments() -> None:
    layers = [nn.Tanh(), nn.Tanh(), nn.Tanh()]
    x = torch.ones(2, requires_grad=True)
    torch.utils.checkpoint.checkpoint_sequential(layers, 2, x, use_reentrant=False).sum().backward()
    again = torch.ones(2, requires_grad=True)
    torch.tanh(torch.tanh(torch.tanh(again))).sum().backward()
    assert x.grad is not None and again.grad is not None and x.grad.tolist() == again.grad.tolist()


@pytest.mark.suite
def test_importing_runnel_brings_none_of_this() -> None:
    probe = "import runnel, sys; print(*[m for m in sys.modules if m.startswith(('runnel.compat', 'runnel.data'))])"
    done = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, check=True, text=True)
    assert done.stdout.split() == []
