"""Equivalents of names in PyTorch, NumPy and JAX: the table behind messages about missing names.

A test evaluates every expression's names: each exists.
"""

from __future__ import annotations

from typing import Final

_FUNCTIONS: Final = {
    "Size": "a tuple; shapes are tuples of ints",
    "cuda": "nothing: programs run on CPUs",
    "expand": "runnel.broadcast_to(x, shape)",
    "jit": "runnel.compile(fn)",
    "jnp": "runnel itself",
    "lax": "runnel.scan, runnel.cond and runnel.while_loop",
    "mod": "runnel.remainder(x, y)",
    "reduce_mean": "runnel.mean(x, axis)",
    "reduce_sum": "runnel.sum(x, axis)",
    "size": "x.shape",
    "view": "runnel.reshape(x, shape)",
}

_METHODS: Final = {
    "block_until_ready": "nothing: results are ready when a call returns",
    "cuda": "nothing: programs run on CPUs",
}

_LAYERS: Final = {
    "BatchNorm": "runnel.nn.BatchNorm1d, BatchNorm2d or BatchNorm3d",
    "BatchNormalization": "runnel.nn.BatchNorm1d, BatchNorm2d or BatchNorm3d",
    "Conv": "runnel.nn.Conv1d, Conv2d or Conv3d",
    "Dense": "runnel.nn.Linear(in_features, out_features)",
    "KLDivLoss": "runnel.nn.functional.kl_div(x, target)",
    "LazyLinear": "runnel.nn.Linear(in_features, out_features)",
    "Mish": "runnel.nn.functional.mish(x)",
    "ReLU6": "runnel.nn.functional.relu6(x)",
    "SELU": "runnel.nn.functional.selu(x)",
    "GLU": "runnel.nn.functional.glu(x)",
    "Hardsigmoid": "runnel.nn.functional.hardsigmoid(x)",
    "Hardswish": "runnel.nn.functional.hardswish(x)",
    "Hardtanh": "runnel.nn.functional.hardtanh(x)",
    "LogSigmoid": "runnel.nn.functional.logsigmoid(x)",
    "SyncBatchNorm": "runnel.nn.BatchNorm1d, BatchNorm2d or BatchNorm3d",
    "Unflatten": "runnel.reshape(x, shape)",
}

_FUNCTIONAL: Final = {
    "avg_pool": "runnel.nn.functional.avg_pool1d, avg_pool2d or avg_pool3d",
    "conv": "runnel.nn.functional.conv1d, conv2d or conv3d",
    "log_sigmoid": "runnel.nn.functional.logsigmoid(x)",
    "max_pool": "runnel.nn.functional.max_pool1d, max_pool2d or max_pool3d",
    "softmin": "runnel.nn.functional.softmax(-x, dim)",
    "swish": "runnel.nn.functional.silu(x)",
}

_OPTIMIZERS: Final = {
    "adam": "runnel.optim.Adam(parameters, lr)",
    "adamw": "runnel.optim.AdamW(parameters, lr)",
    "sgd": "runnel.optim.SGD(parameters, lr)",
}

_TORCH: Final = {
    "complex64": "nothing: there are no complex tensors",
    "complex128": "nothing: there are no complex tensors",
    "quantization": "nothing: tensors are floats, integers and bools",
    "sparse_coo_tensor": "nothing: tensors are dense; SparseAdam takes gradients of rows that were read",
}

_NO_GPU: Final = "nothing: programs run on CPUs; torch.cuda.is_available() is False"
_CUDA: Final = dict.fromkeys(("Stream", "amp", "current_device", "get_device_name", "memory_allocated"), _NO_GPU)

_ONE_PROCESS: Final = "nothing: one process trains, on all of its cores"
_DISTRIBUTED: Final = dict.fromkeys(("all_reduce", "init_process_group", "get_rank", "get_world_size"), _ONE_PROCESS)

EQUIVALENTS: Final[dict[str, dict[str, str]]] = {
    "runnel": _FUNCTIONS,
    "Tensor": _METHODS,
    "runnel.nn": _LAYERS,
    "runnel.nn.functional": _FUNCTIONAL,
    "runnel.optim": _OPTIMIZERS,
    "runnel.compat.torch": _TORCH,
    "runnel.compat.torch.cuda": _CUDA,
    "runnel.compat.torch.distributed": _DISTRIBUTED,
}
