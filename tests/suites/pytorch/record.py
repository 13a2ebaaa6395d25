"""Records in ``pytorch.json.gz`` what PyTorch makes of the cases: values, gradients and the names of states.

python tests/suites/pytorch/record.py     (with torch 2.13 and numpy, and without Runnel)
"""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path
from typing import Any

import edges
import functions
import layers
import made
import numpy as np
import operations
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import prune  # noqa: F401 (as nn.utils.prune)

EVERY = {**functions.FUNCTIONS, **operations.OPERATIONS, **edges.EDGES}
PLACE = Path(__file__).with_name("pytorch.json.gz")


def plain(x: torch.Tensor | np.ndarray) -> list[Any]:
    """The shape of an array, and its elements with twelve digits."""
    if isinstance(x, torch.Tensor) and x.dtype == torch.bfloat16:
        x = x.float()  # exactly; NumPy has no such dtype
    values = np.asarray(x.detach().numpy(force=True) if isinstance(x, torch.Tensor) else x)
    return [list(values.shape), [float(f"{v:.12g}") if values.dtype.kind == "f" else int(v) for v in values.flat]]


def tensors(arrays: dict[str, str], case: str) -> dict[str, torch.Tensor]:
    actual = {name: torch.from_numpy(np.asarray(made.array(text, f"{case} {name}"))) for name, text in arrays.items()}
    for name, text in arrays.items():
        actual[name].requires_grad_(made.has_gradient(text))
    return actual


def leaves(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [torch.view_as_real(value.resolve_conj()).resolve_neg() if value.is_complex() else value]
    if isinstance(value, bool | int | float):
        return [torch.tensor(value)]
    if isinstance(value, nn.utils.rnn.PackedSequence):
        return [value.data]
    return [leaf for part in value if part is not None for leaf in leaves(part)]


def outcome(result: Any, inputs: dict[str, torch.Tensor]) -> dict[str, Any]:
    """Values and gradients; of gradients those that there are."""
    outputs = leaves(result)
    loss = sum((x * torch.from_numpy(made.weights(tuple(x.shape)))).sum() for x in outputs if x.requires_grad)
    if isinstance(loss, torch.Tensor):
        loss.backward()
    gradients = {name: plain(x.grad) for name, x in inputs.items() if x.grad is not None}
    dtypes = [str(x.dtype).removeprefix("torch.") for x in outputs]
    return {"values": [plain(x) for x in outputs], "dtypes": dtypes, "gradients": gradients}


def function(call: str, arrays: dict[str, str]) -> dict[str, Any]:
    inputs = tensors(arrays, call)
    return outcome(eval(call, {"F": functional, "torch": torch, **inputs}), inputs)


def layer(made_by: str, case: dict[str, Any]) -> dict[str, Any]:
    torch.manual_seed(0)
    module = eval(made_by, {"nn": nn, "F": functional, "torch": torch}).double()
    inputs = tensors(case["inputs"], made_by)
    names = {"m": module, "nn": nn, "F": functional, **inputs}
    if "Lazy" in made_by:
        eval(case["call"], names)
    state = module.state_dict()
    shapes = {name: list(value.shape) for name, value in state.items()}
    for name, value in state.items():
        if value.is_floating_point():
            value.copy_(torch.from_numpy(made.parameter(f"{made_by} {name}", tuple(value.shape))))
    module.train(case.get("train", True))
    actual = outcome(eval(case["call"], names), inputs)
    actual["gradients"] |= {f".{n}": plain(p.grad) for n, p in module.named_parameters() if p.grad is not None}
    actual["state"] = shapes
    actual["after"] = {name: plain(value) for name, value in module.named_buffers()}
    return actual


def main() -> None:
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    recorded = {
        "torch": torch.__version__,
        "functions": {call: function(call, arrays) for call, arrays in EVERY.items()},
        "layers": {made_by: layer(made_by, case) for made_by, case in layers.LAYERS.items()},
    }
    text = json.dumps(recorded, separators=(",", ":"))
    PLACE.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
