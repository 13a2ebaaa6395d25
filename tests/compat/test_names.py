"""PyTorch's modules and names in ``runnel.compat.torch``."""

from __future__ import annotations

import copy
import importlib
import pickle
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.compat.torch as torch
from runnel.compat.torch import names, nn
from runnel.core.errors import (
    ArgumentError,
    CaptureError,
    CaptureWarning,
    DeviceError,
    DTypeError,
    MissingNameError,
    TracedValueError,
    UnsupportedError,
)

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "name", ["torch", *(f"torch.{path}" for path in sorted({*names.FORWARDS, *names.NAMES} - {"torch"}))]
)
def test_each_module_is_there_and_its_names_are_found(name: str) -> None:
    module = importlib.import_module(f"runnel.compat.{name}")
    assert all(hasattr(module, member) for member in dir(module))
    parent, _, last = name.rpartition(".")
    found = getattr(importlib.import_module(f"runnel.compat.{parent}"), last) if parent else module
    is_hidden = last in names.NAMES.get(parent.removeprefix("torch").removeprefix("."), {})
    assert (found is module) is not is_hidden  # by PyTorch's function of the same name


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
        (lambda: torch.cuda.no_such_name, "programs run on CPUs"),
        (lambda: torch.distributed.no_such_name, "one process trains"),
    ],
)
def test_missing_names_say_what_to_do(ask: Any, message: str) -> None:
    with pytest.raises(MissingNameError, match=message):
        ask()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: torch.cuda.current_device(), r"\[torch.cuda.current_device\] .* programs run on CPUs"),
        (lambda: torch.cuda.FloatTensor(2), "programs run on CPUs"),
        (lambda: torch.cuda.Stream(), "programs run on CPUs"),
        (lambda: torch.distributed.send(torch.ones(1), 0), "one process trains"),
        (lambda: torch.distributed.init_process_group("gloo", world_size=2, rank=0), "world_size must be 1"),
        (lambda: torch.multiprocessing.spawn(print, nprocs=2), "nprocs must be 1"),
        (lambda: torch.onnx.export(nn.Linear(1, 1), torch.ones(1), "x"), "ONNX files are not written"),
        (lambda: nn.attention.flex_attention.flex_attention(1), "takes a mask"),
        (lambda: torch.distributed.elastic.rendezvous.Any(), "one process trains"),
        (lambda: torch.hub.load("a", "b"), r"runnel\.load"),
        (lambda: torch.sparse_csc_tensor([0, 1], [0], [1.0]), "sparse_csr_tensor"),
        (lambda: torch.autograd.graph.saved_tensors_hooks(id, id), r"runnel\.checkpoint"),
        (lambda: torch.fx.symbolic_trace(nn.Linear(1, 1)), "shows the program"),
        (lambda: type("Mine", (torch.fx.Tracer,), {})(), "shows the program"),
        (lambda: torch.nested.nested_tensor([]), "different lengths"),
    ],
)
def test_names_of_what_does_not_exist_raise_when_they_are_called(call: Any, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        call()


def test_names_of_what_does_not_exist_can_be_named() -> None:
    assert not isinstance(torch.ones(1), torch.cuda.FloatTensor) and not isinstance(
        nn.Linear(1, 1), torch.fx.GraphModule
    )
    assert torch.fx.Proxy | None and torch.fx.Proxy is torch.fx.Proxy and torch.fx.Proxy.__module__.endswith("torch.fx")
    assert torch.fx.wrap(len) is len and not torch.onnx.is_in_onnx_export() and not torch.jit.is_scripting()
    assert torch.cuda.get_arch_list() == [] and torch.cuda.memory_stats() == {}


# Lines that programs begin with, as PyTorch has the names.
HEADS = """
from torch import Size, Tensor, device, dtype, einsum, is_tensor, float8_e4m3fn, Stream
from torch._C import _log_api_usage_once
from torch._dynamo.eval_frame import OptimizedModule
from torch._jit_internal import List, Optional, _overload, boolean_dispatch
from torch._tensor import Tensor
from torch.amp.autocast_mode import autocast
from torch.ao.quantization.observer import MinMaxObserver
from torch.autograd.gradcheck import gradcheck
from torch.backends.cuda import SDPAParams, can_use_flash_attention, sdp_kernel
from torch.cpu.amp import autocast
from torch.cuda.amp.autocast_mode import autocast, custom_fwd
from torch.cuda.random import manual_seed_all
from torch.distributed import DistBackendError, FileStore, GradBucket, HashStore, TCPStore, init_device_mesh
from torch.distributed._composable.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.elastic.agent.server.api import WorkerState
from torch.distributed.fsdp import FullStateDictConfig, MixedPrecision, StateDictType
from torch.distributed.tensor.placement_types import Replicate, Shard
from torch.futures import Future, wait_all
from torch.fx.passes.shape_prop import ShapeProp
from torch.hub import HASH_REGEX, get_dir, load_state_dict_from_url, urlparse
from torch.multiprocessing import ProcessRaisedException, start_processes
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.common_types import _size_2_t
from torch.nn.modules.module import _IncompatibleKeys
from torch.nn.modules.utils import _ntuple
from torch.nn.parallel.distributed import _find_tensors
from torch.nn.parallel.scatter_gather import scatter_kwargs
from torch.nn.parameter import is_lazy
from torch.nn.quantized.modules import Linear
from torch.nn.utils.fusion import fuse_conv_bn_eval
from torch.onnx.symbolic_helper import parse_args
from torch.optim.optimizer import ParamsT, params_t, required
from torch.types import _dtype, _size
from torch.utils.cpp_extension import CUDA_HOME, CUDAExtension
from torch.utils.data._utils.collate import default_collate
from torch.utils.data.dataloader import _BaseDataLoaderIter
from torch.utils.weak import WeakTensorKeyDictionary
import torch.__config__, torch._dynamo.config, torch._inductor.config, torch.cuda.nccl, torch.distributed.rpc
""".strip().splitlines()


@pytest.mark.parametrize("line", HEADS)
def test_heads_of_programs_import(line: str) -> None:
    exec(re.sub(r"\btorch\b(?=[._ ])", "runnel.compat.torch", line), {})


def test_settings_of_compilers_and_builds() -> None:
    for module in ("_dynamo", "_inductor"):
        config = importlib.import_module(f"runnel.compat.torch.{module}.config")
        config.some_setting = True
        assert config.some_setting
    torch._inductor.config.triton.unique_kernel_names = True
    assert "Runnel" in torch.__config__.show() and torch.hub.get_dir().endswith("hub")


def test_layers_are_fused_with_their_normalization() -> None:
    for layer, bn, x in (
        (nn.Conv2d(2, 3, 3, bias=False), nn.BatchNorm2d(3), torch.randn(2, 2, 5, 5)),
        (nn.ConvTranspose1d(2, 3, 3), nn.BatchNorm1d(3), torch.randn(2, 2, 5)),
    ):
        bn(layer(x))
        layer, bn = layer.eval(), bn.eval()
        fused = torch.nn.utils.fusion.fuse_conv_bn_eval(layer, bn, isinstance(layer, nn.ConvTranspose1d))
        assert torch.allclose(fused(x), bn(layer(x)), atol=1e-5)
    with pytest.raises(ArgumentError, match="evaluation mode"):
        torch.nn.utils.fusion.fuse_linear_bn_eval(nn.Linear(2, 2), nn.BatchNorm1d(2))


def test_trees_are_built_from_leaves_and_a_specification() -> None:
    leaves, spec = torch.utils._pytree.tree_flatten({"a": [1, 2]})
    assert torch.utils._pytree.tree_unflatten(leaves, spec) == {"a": [1, 2]}


# Calls in a world of one process: the result, which is PyTorch's; x is [1, 2] and y gets results.
COLLECTIVES: dict[str, Any] = {
    "all_reduce": lambda d, x, y: d.all_reduce(y.copy_(x), op=d.ReduceOp.AVG),
    "broadcast": lambda d, x, y: d.broadcast(y.copy_(x), src=0),
    "reduce": lambda d, x, y: d.reduce(y.copy_(x), 0),
    "all_gather": lambda d, x, y: d.all_gather([y], x),
    "all_gather_into_tensor": lambda d, x, y: d.all_gather_into_tensor(y, x),
    "gather": lambda d, x, y: d.gather(x, [y], dst=0),
    "scatter": lambda d, x, y: d.scatter(y, [x], src=0),
    "reduce_scatter": lambda d, x, y: d.reduce_scatter(y, [x]),
    "reduce_scatter_tensor": lambda d, x, y: d.reduce_scatter_tensor(y, x),
    "all_to_all": lambda d, x, y: d.all_to_all([y], [x]),
    "all_to_all_single": lambda d, x, y: d.all_to_all_single(y, x),
    "barrier": lambda d, x, y: d.barrier(y.copy_(x)),
}


@pytest.fixture
def world() -> Any:
    torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    yield torch.distributed
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_of_one_process(name: str, world: Any) -> None:
    x, y = torch.tensor([1.0, 2.0]), torch.zeros(2)
    assert COLLECTIVES[name](world, x, y) is None and y.tolist() == [1.0, 2.0]


def test_a_world_of_one_process(world: Any) -> None:
    assert (world.get_rank(), world.get_world_size(), world.get_backend()) == (0, 1, "gloo")
    assert world.is_initialized() and world.is_available() and not world.is_nccl_available()
    assert world.all_reduce(torch.ones(1), async_op=True).wait() and world.new_group([0]).size() == 1
    objects: list[Any] = [None]
    world.all_gather_object(objects, {"a": 1})
    assert objects == [{"a": 1}] and torch.distributed.nn.all_reduce(objects) is objects
    with pytest.raises(ValueError, match="must be 0"):
        world.broadcast(torch.ones(1), 1)
    with pytest.raises(ValueError, match="made before"):
        world.init_process_group("gloo", rank=0, world_size=1)
    model = nn.Linear(2, 1)
    wrapped = nn.parallel.DistributedDataParallel(model, device_ids=None)
    assert wrapped.module is model and list(wrapped.state_dict()) == ["module.weight", "module.bias"]
    with wrapped.no_sync():
        wrapped(torch.ones(2)).sum().backward()
    assert model.weight.grad.tolist() == [[1.0, 1.0]] and not hasattr(wrapped, "weight")
    sharded = torch.distributed.fsdp.FullyShardedDataParallel(model)
    assert sharded.weight is model.weight and torch.distributed.fsdp.fully_shard(model) is model
    assert list(torch.utils.data.DistributedSampler([1, 2, 3], shuffle=False)) == [0, 1, 2]
    world.destroy_process_group()
    for call in (world.get_rank, world.barrier, lambda: nn.parallel.DistributedDataParallel(model)):
        with pytest.raises(ValueError, match="init_process_group must be called first"):
            call()


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


def test_devices_that_do_not_exist_are_values() -> None:
    cuda = torch.device("cuda")
    assert cuda == torch.device("cuda") != torch.device("cuda:0") == torch.device("cuda", 0) == torch.device(0)
    assert {cuda: 1}[torch.device("cuda")] == 1 and isinstance(cuda, torch.device) and cuda != torch.device("cpu")
    assert (cuda.type, cuda.index, str(cuda), repr(cuda)) == ("cuda", None, "cuda", "device(type='cuda')")
    second = pickle.loads(pickle.dumps(torch.device("cuda:1")))
    assert (second.type, second.index, repr(second)) == ("cuda", 1, "device(type='cuda', index=1)")
    assert [torch.device(name).type for name in ("mps", "meta", "xpu:0")] == ["mps", "meta", "xpu"]
    for put in (
        lambda: torch.zeros(2, device=cuda), lambda: torch.ones(2).to(cuda), lambda: torch.ones(2).to("cuda:0"),
        lambda: nn.Linear(2, 2).to(torch.device("meta")), lambda: nn.Linear(2, 2, device=cuda), cuda.__enter__,
        lambda: torch.tensor([1.0], device="mps"), lambda: nn.Linear(2, 2).cuda(), lambda: torch.device("warp"),
    ):  # fmt: skip
        with pytest.raises(DeviceError):
            put()


def test_with_blocks_of_devices() -> None:
    with torch.device("interpreter"):
        with torch.device("cpu:0"):
            assert torch.zeros(2).device.type == "cpu"
        assert torch.zeros(2).device.type == "interpreter"
    assert nn.Linear(2, 2).weight.device.type == "cpu"


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


@pytest.mark.parametrize("compile", [torch.compile, rn.compile, lambda m: torch.compile(m, fullgraph=True)])
def test_compiled_modules_share_everything_with_the_module(compile: Any) -> None:
    model, x = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5), nn.Linear(3, 1)), torch.ones(3, 2)
    quick = compile(model)
    assert isinstance(quick, nn.Sequential) and quick[0] is model[0] and quick._orig_mod is model and len(quick) == 3
    assert [n for n, _ in quick.named_parameters()] == list(quick.state_dict()) == list(model.state_dict())
    quick.eval()
    assert not model.training and torch.equal(quick(x), model(x)) and quick.statistics["programs"] >= 1
    quick.load_state_dict({f"_orig_mod.{k}": v + 1 for k, v in model.state_dict().items()})
    quick.note = "mine"
    model.train()
    assert quick.training and model.note == "mine" and quick.to(torch.float64) is quick
    assert model[0].weight.dtype is torch.float64 and torch.equal(quick.eval()(x.double()), model(x.double()))
    outer = nn.Sequential(quick, nn.Linear(1, 1).double())
    assert list(outer.state_dict())[:2] == ["0.0.weight", "0.0.bias"] and outer(x.double()).shape == (3, 1)
    seen: list[Any] = []
    quick.register_forward_hook(lambda module, args, result: seen.append(module is model))
    quick(x.double()), model(x.double())
    assert seen == [True, True]


@pytest.mark.parametrize("again", [copy.deepcopy, copy.copy, lambda m: pickle.loads(pickle.dumps(m))])
def test_compiled_modules_are_copied(again: Any) -> None:
    model = nn.Linear(2, 1)
    twin = again(rn.compile(model))
    assert type(twin) is type(rn.compile(model)) and twin._orig_mod is not model
    assert torch.equal(twin(torch.ones(3, 2)), model(torch.ones(3, 2)))


def test_modules_compile_themselves() -> None:
    model, x = nn.Linear(2, 1), torch.ones(3, 2)
    before = model(x)
    model.compile(mode="max-autotune")
    assert all(torch.equal(model(x), before) for _ in range(2)) and model.forward.statistics["programs"] == 1
    assert list(model.state_dict()) == ["weight", "bias"] and torch.equal(copy.deepcopy(model)(x), before)
    with pytest.raises(ArgumentError, match="fullgraph"):
        model.compile(fullgraph=True)


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


ASKS_FOR_VALUES: dict[str, Any] = {
    "item": lambda x: x.sum().item(),
    "if": lambda x: 1.0 if x.sum() > 0 else 2.0,
    "while": lambda x: (lambda y: y if y > 3 else y + 1)(x.sum()),
    "float": lambda x: float(x.sum()),
    "tolist": lambda x: x.tolist(),
    "mask": lambda x: x[x > 1],
    "nonzero": lambda x: x.nonzero(),
    "unique": lambda x: x.unique(),
}


@pytest.mark.parametrize("name", ASKS_FOR_VALUES)
def test_compiled_functions_that_ask_for_values_run_eagerly(name: str) -> None:
    function, x = ASKS_FOR_VALUES[name], torch.tensor([1.0, 2.0])
    lenient = torch.compile(function)
    with pytest.warns(CaptureWarning, match="runs eagerly: while it was traced") as told:
        results = [lenient(x) for _ in range(3)]
    assert len(told) == 1 and lenient.statistics["traces"] == 1
    assert all(torch.equal(torch.as_tensor(r), torch.as_tensor(function(x))) for r in results)
    for strict in (rn.compile(function), torch.compile(function, fullgraph=True)):
        with pytest.raises(TracedValueError):
            strict(x)


def test_a_step_that_returns_a_number_trains() -> None:
    losses = []
    for compiled in (torch.compile, lambda step: step):
        torch.manual_seed(0)
        model, seen = nn.Linear(2, 1), []
        optimizer = torch.optim.Adam(model.parameters())

        def step(x: Any, model: Any = model, optimizer: Any = optimizer, seen: Any = seen) -> float:
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            seen.append(1)
            return loss.item()

        run = compiled(step)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CaptureWarning)
            losses.append([run(torch.ones(3, 2)) for _ in range(4)])
        assert len(seen) == 4
    assert losses[0] == losses[1] and losses[0][0] > losses[0][-1]


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
