"""``DataParallel`` where there is no GPU: the module itself, one level down."""

from __future__ import annotations

from typing import Any

from runnel.nn.module import Module


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
