"""PyTorch's ways to run functions: compile, jit, checkpoint, autocast, DataParallel and accelerators."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final as Final

from runnel.compile import compiled, wrappers
from runnel.core import switches
from runnel.core.conversion import CASTING
from runnel.core.devices import as_device
from runnel.core.dtypes import DType, Dtype, bfloat16, float16
from runnel.nn.module import Module
from runnel.tensor.autocast import autocast as casting
from runnel.tensor.random import get_rng_state, set_rng_state
from runnel.tensor.trace import ACTIVE
from runnel.transforms.checkpoint import checkpoint as rematerialized


def compile_(model: Any = None, **options: Any) -> Any:
    """``rn.compile`` of a function, or of a module: then of its call, with the module's attributes. ``mode``,
    ``backend``, ``fullgraph``, ``dynamic`` and ``options`` have no effect."""
    if model is None:
        return functools.partial(compile_, **options)
    if isinstance(model, Module):
        return CompiledModule(model)
    return compiled.compile(model)


class CompiledModule(Module):
    """A module whose calls are compiled; Parameters, state dict and attributes are those of the module."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        self._orig_mod = module
        object.__setattr__(self, "_call", compiled.compile(lambda *args, **kwargs: module(*args, **kwargs)))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's result."""
        return self._call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            raise AttributeError(name)
        return getattr(self._orig_mod, name)


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)``, of which backward keeps the arguments only and runs ``function`` again."""
    for option in ("preserve_rng_state", "determinism_check", "debug", "context_fn", "early_stop"):
        kwargs.pop(option, None)
    return rematerialized(function, *args, **kwargs) if args or kwargs else rematerialized(function)()


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """The functions (or the modules of a Sequential) one after the other, in ``segments`` checkpoints, the last of
    which keeps its values."""
    each = list(functions)
    size = len(each) // segments

    def run(part: list[Any], x: Any) -> Any:
        for function in part:
            x = function(x)
        return x

    for i in range(segments - 1):
        input = checkpoint(functools.partial(run, each[i * size : (i + 1) * size]), input)
    return run(each[(segments - 1) * size :], input)


ACCELERATORS = ("cuda", "mps", "xpu")


def autocast(
    device_type: Any = "cpu", dtype: Dtype = None, enabled: bool = True, cache_enabled: bool | None = None
) -> casting:
    """``rn.autocast``: products in ``dtype`` (bfloat16 unless another one is named) inside a ``with`` block. For
    a device that is not there, such as "cuda", nothing is cast, as in PyTorch."""
    if isinstance(device_type, str):
        if device_type in ACCELERATORS:
            return casting(enabled=False)
        as_device(device_type)
    return casting(enabled=enabled) if dtype is None else casting(dtype, enabled)


class GradScaler:
    """Loss scaling that scales by 1: gradients of Parameters are float32 and need no scale. Loops that are written with
    ``scale``, ``unscale_``, ``step`` and ``update`` run."""

    def __init__(self, device: Any = "cpu", enabled: bool = True, **options: Any) -> None:
        self._enabled = enabled

    def scale(self, outputs: Any) -> Any:
        """``outputs`` themselves."""
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Nothing: gradients have no scale."""

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """``optimizer.step()``."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | None = None) -> None:
        """Nothing: the scale is 1."""

    def get_scale(self) -> float:
        """1."""
        return 1.0

    def is_enabled(self) -> bool:
        """What was asked for."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Nothing has a state."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Nothing has a state."""


def is_autocast_available(device_type: str) -> bool:
    """Whether there is such a device."""
    return device_type == "cpu"


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether products on the device are cast where this is called."""
    return device_type == "cpu" and CASTING.dtype is not None


def is_autocast_cpu_enabled() -> bool:
    """``is_autocast_enabled("cpu")``."""
    return CASTING.dtype is not None


def get_autocast_dtype(device_type: str = "cpu") -> DType:
    """What products on the device are cast to, or would be."""
    return (CASTING.dtype or bfloat16) if device_type == "cpu" else float16


def is_anomaly_enabled() -> bool:
    """Whether the first NaN is an error."""
    return bool(switches.check_nans.value)


def custom_autocast(function: Any = None, **options: Any) -> Any:
    """A decorator of ``forward`` and ``backward`` of an autograd function, for GPUs: the function as it is."""
    return custom_autocast if function is None else function


def autocast_on_gpu(enabled: bool = True, dtype: Dtype = None, cache_enabled: bool | None = None) -> casting:
    """Nothing: there is no GPU whose products could be cast."""
    return casting(enabled=False)


def is_available() -> bool:
    """Never."""
    return False


def is_initialized() -> bool:
    """Never."""
    return False


def device_count() -> int:
    """How many GPUs programs can use: none."""
    return 0


def current_accelerator(check_available: bool = False) -> None:
    """None: there is no accelerator."""


def bytes_of_gpu(device: Any = None) -> int:
    """0: there is no GPU. What a program needs stands in its report's ``memory``."""
    return 0


def get_rng_state_all() -> list[Any]:
    """The states of the generators of all GPUs: of none."""
    return []


def no_effect(*args: Any, **kwargs: Any) -> None:
    """Nothing: there is no GPU."""


class OutOfMemoryError(RuntimeError):
    """Never raised: there is no GPU whose memory could be full."""


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Nothing: results are the same from run to run, on any number of threads."""


def set_float32_matmul_precision(precision: str) -> None:
    """Nothing: products of float32 are computed in float32."""


@contextmanager
def save_on_cpu(pin_memory: bool = False, device_type: str = "cuda") -> Iterator[None]:
    """A block in which nothing is different: what the tape keeps is in the CPU's memory."""
    yield


@contextmanager
def fork_rng(*args: Any, **options: Any) -> Iterator[None]:
    """Inside the block draws advance the default generator; at its end that is where it was."""
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


ScriptModule = Module  # what ``torch.jit.script`` gives for a module


class ScriptFunction:
    """PyTorch's class of functions in TorchScript; ``torch.jit.script`` gives functions as they are."""


config: Final = SimpleNamespace(
    cache_size_limit=8, recompile_limit=8, suppress_errors=False, verbose=False, capture_scalar_outputs=False
)


def script(obj: Any, *args: Any, **options: Any) -> Any:
    """The function or module itself: Python code runs as it stands, and :func:`runnel.compile` compiles it."""
    return obj


def as_it_is(function: Any = None, **options: Any) -> Any:
    """A decorator that leaves a function as it is."""
    return function if callable(function) else as_it_is


def annotate(the_type: Any, the_value: Any) -> Any:
    """``the_value``."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether ``obj`` is of the type."""
    return sys.modules["builtins"].isinstance(obj, target_type)


def fork(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of the function, which ``wait`` gives: it is computed at once."""
    return function(*args, **kwargs)


def wait(future: Any) -> Any:
    """What ``fork`` gave."""
    return future


def never_scripting() -> bool:
    """Never: Python code runs as it stands."""
    return False


def is_compiling() -> bool:
    """Whether a function is being captured for compilation."""
    return ACTIVE.trace is not None


def disable(function: Any = None, recursive: bool = True, **options: Any) -> Any:
    """The function as ``runnel.uncompiled`` has it: it runs as it is, and is no part of a program."""
    return disable if function is None else wrappers.uncompiled(function)


def without_compiler(function: Any = None, *args: Any, **options: Any) -> Any:
    """Nothing; a function is given back as it is."""
    return function


class DataParallel(Module):
    """A module whose calls are those of ``module``: PyTorch's on a machine without GPUs. Paths in the state dict begin
    with "module."."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module = module

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What ``module`` gives."""
        return self.module(*inputs, **kwargs)


def data_parallel(module: Any, inputs: Any, device_ids: Any = None, *args: Any, module_kwargs: Any = None) -> Any:
    """``module(*inputs)``."""
    several = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*several, **(module_kwargs or {}))
