"""Equivalents of names in PyTorch, NumPy, JAX and TensorFlow, for messages about missing names.

A test checks that every name in them exists.
"""

from __future__ import annotations

from typing import Final

_KEY: Final = "runnel.Generator(seed).next_key()"
_TREE: Final = "runnel.tree.map(f, tree)"

_NOT_QUANTIZED: Final = "nothing: tensors are floats, integers and bools"

_FUNCTIONS: Final = {
    "ByteTensor": 'runnel.tensor(data, dtype="uint8")',
    "DoubleTensor": 'runnel.tensor(data, dtype="float64")',
    "FloatTensor": 'runnel.tensor(data, dtype="float32")',
    "GradientTape": "runnel.value_and_grad(fn), or x.requires_grad_(True) and loss.backward()",
    "IntTensor": 'runnel.tensor(data, dtype="int32")',
    "LongTensor": 'runnel.tensor(data, dtype="int64")',
    "Session": "runnel.declarative.Session()",
    "Size": "a tuple; shapes are tuples of ints",
    "config": "runnel.switches",
    "cuda": "nothing: programs run on CPUs",
    "device_put": "runnel.asarray(x)",
    "eval_shape": "runnel.compile(fn).program(x), which compiles without running",
    "expand": "runnel.broadcast_to(x, shape)",
    "fori_loop": "runnel.while_loop or runnel.scan",
    "function": "runnel.compile(fn)",
    "get_default_dtype": '"float32"; what makes tensors takes dtype=',
    "jit": "runnel.compile(fn)",
    "jnp": "runnel itself",
    "keras": "runnel.compat.keras",
    "lax": "runnel.scan, runnel.cond and runnel.while_loop",
    "loadtxt": "runnel.asarray(numpy.loadtxt(path))",
    "make_jaxpr": "print(runnel.compile(fn).program(x))",
    "mod": "runnel.remainder(x, y)",
    "np": "runnel itself",
    "numpy": "runnel itself",
    "placeholder": "runnel.declarative.placeholder(shape)",
    "quantization": _NOT_QUANTIZED,
    "quantize": _NOT_QUANTIZED,
    "reduce_max": "runnel.max(x, axis)",
    "reduce_mean": "runnel.mean(x, axis)",
    "reduce_sum": "runnel.sum(x, axis)",
    "savez": "runnel.save({'name': x}, path)",
    "set_default_dtype": "dtype= where tensors are made: their default is always float32",
    "set_printoptions": "numpy.set_printoptions(...): tensors are printed as NumPy's arrays are",
    "size": "x.shape",
    "testing": "numpy.testing.assert_allclose(x.numpy(), y.numpy())",
    "tree_map": _TREE,
    "tree_multimap": _TREE,
    "utils": "runnel.data, or runnel.compat.torch.utils",
    "view": "runnel.reshape(x, shape)",
}

_RANDOM: Final = {
    "PRNGKey": _KEY,
    "default_rng": "runnel.Generator(seed)",
    "key": _KEY,
    "split": "runnel.split_key(key, n)",
}

_METHODS: Final = {
    "at": "x = x.clone(), then x[i] = value",
    "block_until_ready": "nothing: results are ready when a call returns",
    "copy": "x.clone()",
    "dequantize": _NOT_QUANTIZED,
}

_LAYERS: Final = {
    "BatchNorm": "runnel.nn.BatchNorm1d, BatchNorm2d or BatchNorm3d",
    "BatchNormalization": "runnel.nn.BatchNorm1d, BatchNorm2d or BatchNorm3d",
    "Conv": "runnel.nn.Conv1d, Conv2d or Conv3d",
    "Dense": "runnel.nn.Linear(in_features, out_features)",
    "one_hot": "runnel.nn.functional.one_hot(x, num_classes)",
    "relu": "runnel.nn.functional.relu(x)",
    "softmax": "runnel.nn.functional.softmax(x, dim)",
}

_FUNCTIONAL: Final = {
    "avg_pool": "runnel.nn.functional.avg_pool1d, avg_pool2d or avg_pool3d",
    "conv": "runnel.nn.functional.conv1d, conv2d or conv3d",
    "log_sigmoid": "runnel.nn.functional.logsigmoid(x)",
    "max_pool": "runnel.nn.functional.max_pool1d, max_pool2d or max_pool3d",
    "swish": "runnel.nn.functional.silu(x)",
}

_OPTIMIZERS: Final = {
    "adamw": "runnel.optim.AdamW(parameters, lr)",
}

_INSPECTED: Final = "print(runnel.compile(fn).program(x)) to see a program"

_TORCH: Final = {
    "quantize_per_tensor": _NOT_QUANTIZED,
}

_NO_GPU: Final = "nothing: programs run on CPUs; torch.cuda.is_available() is False"

_ONE_PROCESS: Final = "nothing: one process trains, on all of its cores"

EQUIVALENTS: Final[dict[str, dict[str, str]]] = {
    "runnel": _FUNCTIONS,
    "runnel.random": _RANDOM,
    "Tensor": _METHODS,
    "runnel.nn": _LAYERS,
    "runnel.nn.functional": _FUNCTIONAL,
    "runnel.optim": _OPTIMIZERS,
    "runnel.compat.torch": _TORCH,
}

# Modules for features that are not supported: the answer for every missing name.
ABSENT: Final = {
    "runnel.compat.torch.cuda": _NO_GPU,
    "runnel.compat.torch.distributed": _ONE_PROCESS,
    "runnel.compat.torch.export": _INSPECTED,
    "runnel.compat.torch.fx": _INSPECTED,
    "runnel.compat.torch.hub": "the model in code, and its weights by runnel.load(path)",
    "runnel.compat.torch.nested": "runnel.Ragged, which layers and reductions take",
    "runnel.compat.torch.onnx": "runnel.save_file(model.state_dict(), path): ONNX files are not supported",
    "runnel.compat.torch.quantization": _NOT_QUANTIZED,
    "runnel.compat.torch.sparse": "nothing: tensors are dense; SparseAdam takes gradients of rows that were read",
}


def equivalent(owner: str, name: str) -> str:
    """Return the expression to write for ``owner.name``; an empty string if none is known."""
    return EQUIVALENTS.get(owner, {}).get(name) or ABSENT.get(owner, "")


def elsewhere(owner: str, name: str) -> str:
    """Return the expression to write for ``name`` in any module other than ``owner``; an empty string if none is."""
    return next((table[name] for space, table in EQUIVALENTS.items() if space != owner and name in table), "")
