"""A good call of every public function, method and constructor: what the sweep of wrong arguments starts from.

Arguments are found by the parameter's name, with exceptions for the functions that need other ones.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import runnel as rn
from runnel import nn, optim
from runnel.compat import numpy as numpy_names
from runnel.compat.torch import names as torch_names
from runnel.core.namespaces import imported
from runnel.core.public import public as public_form
from runnel.nn import functional
from runnel.tensor.methods import ArrayMethods
from tests.core.errors import late_calls


class Call(NamedTuple):
    """A public function and arguments that it takes, all by name but those in ``starred``."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any]


def _numbers(*shape: int) -> rn.Tensor:
    return rn.asarray(np.linspace(0.25, 0.75, int(np.prod(shape)), dtype=np.float32).reshape(shape))


def _ints(*values: int) -> rn.Tensor:
    return rn.asarray(np.array(values))


def _model() -> nn.Module:
    return nn.Linear(4, 3)


X = _numbers(3, 4)
IMAGE = {1: _numbers(2, 4, 8), 2: _numbers(2, 4, 8, 8), 3: _numbers(2, 4, 6, 6, 6)}
FILTER = {1: _numbers(4, 4, 3), 2: _numbers(4, 4, 3, 3), 3: _numbers(4, 4, 3, 3, 3)}
HEADS = _numbers(1, 2, 4, 8)
KEY = rn.Generator(0).next_key()
ROW = _numbers(4)
SQUARE = rn.asarray(np.eye(3, dtype=np.float32) * 2)
PLACES = _ints(0, 1, 2, 0).reshape(1, 4)
MATRIX = _numbers(4, 2)
PACKED = nn.utils.rnn.pack_sequence([X, X[:2]])

BY_NAME: dict[str, Any] = {
    "x": X, "y": X, "like": X, "target": X, "gate": X, "data": [[1.0, 2.0]], "axis": 0, "dim": 0, "keepdims": False,
    "shape": (3, 4), "dtype": "float32", "device": "cpu", "key": KEY, "indices": _ints(0, 1), "labels": _ints(0, 1),
    "condition": X > 0.5, "weight": ROW, "bias": ROW, "eps": 1e-5, "reduction": "mean", "low": 0.25, "high": 0.75,
    "value": 0.5, "p": 0.5, "arrays": [X, X], "seed": 1, "start": 0, "end": 1, "kernel_size": 2, "stride": 1,
    "padding": 0, "dilation": 1, "groups": 1, "in_features": 4, "out_features": 3, "num_features": 4,
    "in_channels": 4, "out_channels": 2, "input_size": 4, "hidden_size": 3, "num_layers": 1, "embed_dim": 4,
    "num_heads": 2, "d_model": 4, "nhead": 2, "num_embeddings": 5, "embedding_dim": 3, "normalized_shape": 4,
    "num_groups": 2, "num_channels": 4, "size": 4, "output_size": 2, "alpha": 1.0, "negative_slope": 0.1, "beta": 1.0,
    "delta": 1.0, "params": list(_model().parameters()), "lr": 0.1, "count": 2, "generator": rn.Generator(1),
    "dim_feedforward": 8, "dropout": 0.0, "n": 3, "stop": 6, "step": 2, "num": 4, "classes": 3, "sizes": 2,
    "source": 0, "destination": 1, "first": 0, "second": 1, "shift": 1, "bias_flag": True, "start_dim": 0,
    "end_dim": 1, "dim0": 0, "dim1": 1, "shape_": (3, 4), "widths": [(1, 1), (0, 2)], "axes": (1, 0),
    "updates": _numbers(2, 4), "rows": 4, "mean": ROW, "variance": ROW, "query": HEADS, "qkv": None,
    "optimizer": None, "step_size": 2, "T_max": 4, "momentum": 0.1, "correction": 0, "ord": 2, "word": 0,
    "ceil_mode": False, "training": True, "negative": 1, "approximate": "none", "copy": None, "enabled": True,
    "other": X, "a": X, "b": X, "max": 1.0, "min": 0.0, "index": _ints(0, 1), "values": ROW, "mask": X > 0.5, "k": 2,
    "q": 0.5, "chunks": 2, "indices_or_sections": 2, "repetitions": (2, 1), "repeats": 2, "src": X[:2],
    "reduce": "sum", "num_segments": 3, "data_": X, "segment_ids": _ints(0, 1, 1), "sorted_sequence": ROW,
    "boundaries": ROW, "test_elements": ROW, "minlength": 2, "bins": 4, "mat1": X, "mat2": _numbers(4, 4),
    "vec": ROW, "mat": X, "vec1": _numbers(3), "vec2": ROW, "batch1": _numbers(2, 3, 4), "batch2": _numbers(2, 4, 4),
    "r": 2, "axis1": 0, "axis2": 1, "offset": 0, "exponent": _ints(1), "obj": X, "from_": "float32", "to": "float64",
    "real": X, "imag": X, "abs": X, "angle": X, "fill_value": 2,
    "tensor": nn.Parameter(np.zeros((3, 4), np.float32)), "sparsity": 0.5, "val": 1.0, "sequences": [X, X[:2]],
    "lengths": [4, 2, 1], "padded_sequences": X, "packed_sequences": PACKED, "permutation": _ints(1, 0),
    "kind": "numeric", "type": "float32", "rtol": 1e-5, "atol": 1e-8, "fweights": None, "dx": 1.0,
}  # fmt: skip

# What functions need instead, by their names with the namespace in front.
OWN: dict[str, dict[str, Any]] = {
    "rn.squeeze": {"x": _numbers(1, 4)}, "rn.take": {"axis": 0},
    "rn.take_along_axis": {"indices": rn.zeros((3, 4), "int64")}, "rn.outer": {"x": ROW, "y": ROW},
    "rn.linear": {"weight": _numbers(2, 4), "bias": _numbers(2)},
    "rn.tensordot": {"axes": 2}, "rn.batch_norm": {}, "rn.instance_norm": {"x": _numbers(2, 4, 5)},
    "rn.group_norm": {"x": _numbers(2, 4, 5)}, "rn.channel_moments": {},
    "rn.bitwise_and": {"x": _ints(1, 2), "y": _ints(3, 4)}, "rn.bitwise_or": {"x": _ints(1, 2), "y": _ints(3, 4)},
    "rn.bitwise_xor": {"x": _ints(1, 2), "y": _ints(3, 4)}, "rn.bitwise_invert": {"x": _ints(1, 2)},
    "rn.bitwise_left_shift": {"x": _ints(1, 2), "y": _ints(3, 4)},
    "rn.bitwise_right_shift": {"x": _ints(1, 2), "y": _ints(3, 4)}, "rn.embedding": {"weight": X},
    "F.embedding": {"weight": X}, "rn.nll_loss": {"target": _ints(0, 1, 3)},
    "rn.cross_entropy": {"target": _ints(0, 1, 3)}, "rn.normal": {"mean": 0.0, "std": 1.0},
    "rn.conv": {"x": IMAGE[1], "weight": FILTER[1]}, "rn.conv_transpose": {"x": IMAGE[1], "weight": FILTER[1]},
    "rn.glu": {}, "F.pad": {"pad": (1, 1), "value": 0.0}, "rn.iota": {"start": 0},
    "rn.randint": {"low": 0, "high": 5}, "rn.eye": {"m": 2}, "rn.permute": {},
    "rn.binary_cross_entropy": {"weight": X}, "rn.binary_cross_entropy_with_logits": {"weight": X},
    "F.batch_norm": {"running_mean": None, "running_var": None, "training": True}, "rn.narrow": {"size": 2},
    "rn.rms_norm": {"normalized_shape": (4,)}, "rn.split": {"axis": 1}, "rn.one_hot": {"dtype": "float32"},
    "rn.clamp": {"min": 0.0, "max": 1.0}, "Tensor.clamp": {"min": 0.0, "max": 1.0},
    "rn.imag": {"x": X * 1j}, "rn.view_as_real": {"x": X * 1j}, "rn.view_as_complex": {"x": _numbers(3, 2)},
    "nn.Embedding": {"padding_idx": 0},
    "nn.BCELoss": {"weight": X}, "nn.BCEWithLogitsLoss": {"weight": X}, "nn.CrossEntropyLoss": {"weight": ROW},
    "nn.Softplus": {"beta": 1.0}, "nn.Conv1d": {}, "rn.Parameter": {"data": [1.0]}, "nn.Parameter": {"data": [1.0]},
    "rn.Variable": {"value": [1.0]}, "optim.StepLR": {}, "optim.RMSprop": {"alpha": 0.9}, "rn.stop_gradient": {},
    "Tensor.squeeze": {"x": _numbers(1, 4)}, "Tensor.T": {}, "Tensor.clip": {"min": 0.0, "max": 1.0},
    "Tensor.to": {"target": "float64"}, "Tensor.expand": {}, "rn.random_bits": {}, "rn.bernoulli": {},
    "rn.packed_attention": {"qkv": _numbers(1, 4, 3, 2, 8)}, "rn.vecdot": {"axis": -1},
    "rn.asarray": {"dtype": "float32"}, "nn.Flatten": {"start_dim": 0, "end_dim": 1}, "rn.huber_loss": {},
    "rn.lerp": {"end": X}, "rn.gather": {"index": PLACES}, "rn.trace": {"offset": 0},
    "rn.scatter": {"index": PLACES}, "rn.scatter_add": {"index": PLACES},
    "rn.scatter_reduce": {"index": PLACES}, "rn.index_reduce": {"source": X[:2]},
    "rn.put_along_axis": {"indices": PLACES, "values": 0.5}, "rn.index_add": {"source": X[:2]},
    "rn.index_copy": {"source": X[:2]}, "rn.masked_scatter": {"source": X},
    "rn.select_scatter": {"src": ROW, "index": 1},
    "rn.slice_scatter": {"src": X, "start": 0, "end": 3}, "rn.select": {"index": 1},
    "rn.index_put": {"indices": (_ints(0, 1),)},
    "rn.cross": {"x": _numbers(3), "y": _numbers(3)}, "rn.vander": {"x": ROW, "n": 3}, "rn.addmm": {"x": X},
    "rn.addmv": {"x": _numbers(3)}, "rn.addbmm": {"x": X}, "rn.baddbmm": {"x": X}, "rn.addr": {"x": X},
    "rn.vdot": {"x": ROW, "y": ROW}, "rn.dot": {"y": MATRIX}, "rn.combinations": {"x": ROW},
    "rn.unfold": {"size": 2}, "torch.unfold_copy": {"size": 2}, "special.multigammaln": {"p": 1},
    "linalg.expm": {"x": SQUARE}, "linalg.inv": {"x": SQUARE},
    "rn.unflatten": {"sizes": (3, 1)}, "rn.heaviside": {"values": 0.5}, "rn.trapezoid": {"y": X, "x": ROW},
    "rn.cumulative_trapezoid": {"y": X, "x": ROW}, "rn.bincount": {"x": _ints(0, 1)}, "rn.repeat": {"axis": 0},
    "rn.flatnonzero": {}, "rn.moveaxis": {}, "rn.segment_sum": {"data": X}, "rn.segment_mean": {"data": X},
    "rn.segment_prod": {"data": X}, "rn.segment_max": {"data": X}, "rn.segment_min": {"data": X},
    "rn.matmul": {"y": MATRIX}, "rn.ragged": {"rows": [ROW, ROW], "axes": 1, "dtype": "float32"},
    "rn.mm": {"y": MATRIX}, "rn.bmm": {"y": MATRIX}, "rn.mv": {"y": MATRIX},
    "rn.ger": {"x": ROW, "y": ROW},
    "rn.take_along_dim": {"indices": rn.zeros((3, 4), "int64")}, "rn.fmod": {}, "rn.masked_fill": {"value": 0.5},
    "rn.bitwise_not": {"x": _ints(1, 2)}, "rn.invert": {"x": _ints(1, 2)}, "rn.as_tensor": {"dtype": "float32"},
    "rn.from_numpy": {"dtype": "float32"}, "rn.set_num_threads": {"count": 0},
    **{f"rn.{name}": {"x": SQUARE} for name in ("det", "slogdet", "logdet", "inverse", "cholesky", "matrix_exp")},
    "rn.matrix_power": {"x": SQUARE}, "rn.cumulative_sum": {"x": ROW},
    "rn.cumulative_prod": {"x": ROW}, "rn.dsplit": {"x": _numbers(2, 2, 2)},
    "rn.vsplit": {"x": MATRIX}, "rn.is_nonzero": {"x": _numbers(1)}, "rn.polygamma": {"n": 1}, "rn.mvlgamma": {"p": 1},
    "init.dirac_": {"tensor": nn.Parameter(np.zeros((4, 2, 3), np.float32))},
    "init.dirac": {"tensor": nn.Parameter(np.zeros((4, 2, 3), np.float32))}, "rnn.pack_padded_sequence": {"input": X.T},
    "rnn.pad_packed_sequence": {"sequence": PACKED}, "rnn.unpad_sequence": {"padded_sequences": X.T},
    "init.gain_of": {"nonlinearity": "relu"}, "init.calculate_gain": {"nonlinearity": "relu"},
    "rn.fold_in": {"data": 3}, "rn.arange": {"start": 0}, "optim.Muon": {"params": [_model().weight]},
}  # fmt: skip

TABLES = (late_calls.OWN, OWN)

# Left out: they take functions, files or wholes of other kinds (their own tests say what they answer to mistakes).
LEFT_OUT = {
    "nn.FractionalMaxPool2d", "nn.FractionalMaxPool3d", "rn.checkpoint", "rn.cond", "rn.compile",
    "rn.custom_jvp", "rn.custom_vjp", "rn.from_dlpack", "rn.grad",
    "rn.export_native", "F.multi_head_attention_forward", "rn.load_file", "rn.save_file",
    "rn.recur", "rn.scan", "rn.value_and_grad", "rn.vjp", "rn.while_loop", "rn.Tensor", "nn.Module",
    "nn.Sequential", "nn.ModuleList", "nn.ModuleDict", "nn.RNNBase", "nn.RNNCellBase", "nn.Identity",
    "nn.Transformer", "nn.TransformerDecoder",
    "nn.TransformerEncoder", "optim.Optimizer", "optim.LRScheduler", "rn.varlen_attn", "F.varlen_attn",
    "rn.broadcast_arrays", "rn.autocast", "rn.getitem", "rn.put", "rn.load", "rn.save", "rn.set_rng_state",
    "rn.snapshot", "rn.uncompiled", "rn.pure_callback", "rn.ShapeDtypeStruct",
    "rn.autobatch", "rn.hessian", "rn.jacfwd", "rn.jacrev", "rn.jvp", "rn.linearize", "rn.vmap",
    "rn.einsum", "rn.block_diag", "rn.cartesian_prod", "rn.iinfo", "rn.result_type", "rn.promote_types",
    "rnn.PackedSequence", "rn.no_grad", "rn.enable_grad", "rn.inference_mode", "rn.set_grad_enabled",
}  # fmt: skip


SPACES = {
    "rn": rn, "F": functional, "nn": nn, "optim": optim, "init": nn.init, "rnn": nn.utils.rnn, "special": rn.special,
    "fft": rn.fft, "linalg": rn.linalg, "random": rn.random, "torch": torch_names.NAMES["torch"],
    "np": numpy_names.NAMES,
}  # fmt: skip
SKIPPED = LEFT_OUT | late_calls.LEFT_OUT


def _arguments(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    own = next((table[key] for key in (name, f"rn.{name.partition('.')[2]}") for table in TABLES if key in table), {})
    results: dict[str, Any] = {}
    for p in inspect.signature(function).parameters.values():
        if p.name == "self" or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        if p.name == "optimizer":
            results[p.name] = optim.SGD(_model().parameters(), lr=0.1)
        elif p.name in own:
            results[p.name] = own[p.name]
        elif p.annotation == "bool":
            results[p.name] = p.default is True
        elif "pool" in name and p.name == "x":
            digits = [int(c) for c in name if c.isdigit()]
            results[p.name] = IMAGE[digits[0] if digits else 2]
        elif name.startswith(("F.conv", "rn.conv")) and p.name in ("x", "weight"):
            results[p.name] = (IMAGE if p.name == "x" else FILTER)[int(name[-2]) if name[-1] == "d" else 1]
        elif p.name in ("key", "value", "query") and "attention" in name:
            results[p.name] = HEADS
        elif p.default is inspect.Parameter.empty:
            results[p.name] = BY_NAME[p.name] if p.name in BY_NAME else late_calls.BY_NAME[p.name]
        elif p.name in BY_NAME and p.default is not None and isinstance(p.default, (int, float, str, tuple)):
            results[p.name] = p.default
    return results


def calls() -> Iterator[Call]:
    """All of them."""
    seen: set[Any] = set()
    for space, module in SPACES.items():
        for public in module if isinstance(module, dict) else getattr(module, "NAMES", None) or module.__all__:
            function = imported(module[public]) if isinstance(module, dict) else getattr(module, public)
            function = public_form(function) if inspect.isfunction(function) else function
            name = f"{space}.{public}"
            if not inspect.isfunction(function) and (isinstance(module, dict) or not inspect.isclass(function)):
                continue
            if function in seen or {name, f"rn.{public}"} & SKIPPED or public.endswith("_"):
                continue  # those with _ at the end change their arguments
            if any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(function).parameters.values()):
                continue
            try:
                arguments = _arguments(name, function)
            except KeyError:
                if inspect.isfunction(function):
                    raise
                continue
            seen.add(function)
            yield Call(name, function, arguments)
    for public, method in vars(ArrayMethods).items():
        if (
            inspect.isfunction(method)
            and not public.startswith("_")
            and public not in ("read", "numpy", "reshape_in_place")
        ):
            name = f"Tensor.{public}"
            holder = OWN.get(name, {}).get("x", X)
            method = getattr(holder, public)
            if not any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(method).parameters.values()):
                yield Call(name, method, _arguments(name, method))
