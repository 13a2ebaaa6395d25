"""Arguments of the functions that few programs use: what ``calls`` has no good ones for."""

from __future__ import annotations

from typing import Any

import numpy as np

import runnel as rn
import runnel.compat.torch as torch
from runnel import nn


def numbers(*shape: int) -> rn.Tensor:
    return rn.asarray(np.linspace(0.25, 0.75, int(np.prod(shape)), dtype=np.float32).reshape(shape))


def ints(*values: int) -> rn.Tensor:
    return rn.asarray(np.array(values))


X, ROW = numbers(3, 4), numbers(4)
SQUARE = rn.asarray(np.eye(3, dtype=np.float32) * 2)
IMAGE = numbers(2, 4, 8, 8)
MODEL = nn.Linear(4, 3)
WAVE = numbers(2, 40)

BY_NAME: dict[str, Any] = {
    "input": X, "x1": X, "x2": X, "input1": X, "input2": X, "window_length": 5, "factor": SQUARE, "tau": numbers(3),
    "n_fft": 8, "num_samples": 2, "maxnorm": 1.0, "op": "sum", "text": "a b -> b a", "var": X + 1, "logits": X,
    "norm_type": 2.0, "threshold": 0.5, "model": MODEL, "df": 3.0, "mu": 0.5, "cov": SQUARE, "steps": 4,
    "physical_layout": (1, 0), "upscale_factor": 2, "downscale_factor": 2, "s": 1.0, "precision": "high", "row": 3,
    "col": 3, "A": SQUARE, "anchor": X, "positive": X + 1, "ndarray": np.ones(3), "theta": numbers(2, 2, 3),
    "align_corners": False, "tensors": [X, X], "LU_data": SQUARE, "LU_pivots": ints(1, 2, 3), "d": "float32",
    "pad": (1, 1), "train": True, "v": X,
    "tensor": X, "interpolation_mode": 0,
    "padding_mode": 0, "module": MODEL, "models": [MODEL], "order": 2, "kappa": 1.5, "M": 5, "x0": X,
}  # fmt: skip

VECTORS = {"x": ROW, "y": numbers(3)}

OWN: dict[str, dict[str, Any]] = {
    **{f"rn.{name}": VECTORS for name in ("convolve", "correlate", "polyadd", "polysub", "polymul")},
    "rn.interp": {"xp": ROW, "fp": ROW}, "rn.polyval": {"p": ROW}, "rn.polyder": {"p": ROW, "m": 1},
    "rn.polyint": {"p": ROW, "m": 1}, "rn.roots": {"p": ROW}, "rn.polyfit": {"x": ROW, "y": ROW, "deg": 1},
    "rn.append": {"values": X, "axis": 0}, "rn.delete": {"obj": 1, "axis": 0},
    "rn.insert": {"obj": 1, "values": 0.5, "axis": 0}, "rn.compress": {"condition": ints(1, 0, 1), "axis": 0},
    "rn.extract": {"condition": X}, "rn.average": {"weights": X}, "rn.percentile": {"q": 30.0, "axis": 0},
    "rn.nanpercentile": {"q": 30.0, "axis": 0}, "rn.unwrap": {"axis": 0}, "rn.rollaxis": {"axis": 1, "start": 0},
    "rn.as_strided_scatter": {"src": ROW}, "rn.cholesky_inverse": {"factor": SQUARE},
    "rn.cholesky_solve": {"b": SQUARE, "factor": SQUARE},
    "rn.diagonal_scatter": {"src": numbers(3)}, "rn.gcd": {"x": ints(4, 6), "y": ints(6, 9)},
    "rn.lcm": {"x": ints(4, 6), "y": ints(6, 9)}, "rn.istft": {"x": torch.stft(WAVE, 8, return_complex=True)},
    "rn.stft": {"x": WAVE, "return_complex": True}, "rn.ormqr": {"x": SQUARE, "tau": numbers(3), "other": SQUARE},
    "rn.randint_like": {"like": ints(1, 2), "low": 0, "high": 5},
    "rn.nonzero_static": {"size": 3}, "rn.histogramdd": {"bins": 3}, "rn.histogram2d": {"y": X, "bins": 3},
    "rn.geqrf": {"x": SQUARE},
    "F.bilinear": {"weight": numbers(2, 4, 4), "bias": numbers(2)}, "F.channel_shuffle": {"x": IMAGE, "groups": 2},
    "F.conv_tbc": {"x": numbers(5, 2, 4), "weight": numbers(3, 4, 2), "bias": numbers(2)},
    "F.cosine_embedding_loss": {"target": ints(1, -1, 1)},
    "F.dropout2d": {"x": IMAGE}, "F.dropout3d": {"x": numbers(1, 2, 3, 3, 3)},
    "F.fold": {"x": numbers(1, 16, 9), "output_size": (4, 4), "kernel_size": 2},
    "F.gaussian_nll_loss": {"x": X, "target": X, "var": X}, "F.grid_sample": {"x": IMAGE, "grid": numbers(2, 3, 3, 2)},
    "F.interpolate": {"x": IMAGE, "size": (4, 4)}, "F.local_response_norm": {"x": IMAGE, "size": 2},
    "F.margin_ranking_loss": {"target": X}, "F.pixel_shuffle": {"x": IMAGE}, "F.pixel_unshuffle": {"x": IMAGE},
    "F.multi_margin_loss": {"target": ints(0, 1, 2), "weight": ROW, "p": 1},
    "F.multilabel_margin_loss": {"target": rn.zeros((3, 4), "int64")},
    "F.triplet_margin_loss": {"negative": X}, "F.triplet_margin_with_distance_loss": {"negative": X},
    "F.unfold": {"x": IMAGE, "kernel_size": 2}, "F.upsample_bilinear": {"x": IMAGE, "size": (4, 4)},
    "F.upsample_nearest": {"x": IMAGE, "size": (4, 4)}, "F.affine_grid": {"size": (2, 1, 3, 3)},
    "rn._grouped_mm": {"mat_a": X, "mat_b": numbers(1, 4, 2), "offs": ints(3)},
    "F.embedding_bag": {"x": rn.zeros((2, 2), "int64"), "weight": X},
    **{f"linalg.{name}": {"x": SQUARE} for name in
       ("cholesky_ex", "eigh", "eig", "eigvals", "eigvalsh", "inv_ex", "householder_product",
        "ldl_factor", "ldl_factor_ex")},
    "linalg.eigh": {"x": SQUARE, "a": SQUARE, "y": SQUARE}, "linalg.solve": {"a": SQUARE, "b": SQUARE},
    "linalg.ldl_solve": {"LD": SQUARE, "pivots": ints(1, 2, 3), "B": SQUARE},
    "linalg.lu_solve": {"LU": SQUARE, "pivots": ints(1, 2, 3), "B": SQUARE},
    "linalg.multi_dot": {"arrays": [X, X.T]}, "linalg.solve_ex": {"a": SQUARE, "b": SQUARE, "x": SQUARE, "A": SQUARE,
                                                                 "B": SQUARE},
    "linalg.solve_triangular": {"a": SQUARE, "b": SQUARE, "A": SQUARE, "B": SQUARE, "upper": True},
    "linalg.tensorinv": {"x": SQUARE, "ind": 1}, "linalg.tensorsolve": {"a": SQUARE, "b": numbers(3), "x": SQUARE,
                                                                        "y": numbers(3)},
    "special.ndtri": {"p": X}, "random.dirichlet": {"alpha": ROW}, "random.multivariate_normal": {"mean": numbers(3)},
    "torch.cross": {"input": numbers(3), "other": numbers(3)}, "torch.empty_permuted": {"size": (2, 3)},
    "torch.affine_grid_generator": {"theta": numbers(2, 2, 3), "size": (2, 1, 3, 3)},
    "torch.grid_sampler": {"input": IMAGE, "grid": numbers(2, 3, 3, 2)}, "torch.norm_except_dim": {"v": X},
    "torch.native_layer_norm": {"normalized_shape": (4,), "weight": ROW, "bias": ROW, "eps": 1e-5},
    "torch.gru_cell": {"input": X, "hx": X, "w_ih": numbers(12, 4), "w_hh": numbers(12, 4)},
    "torch.rnn_tanh_cell": {"input": X, "hx": X, "w_ih": numbers(4, 4), "w_hh": numbers(4, 4)},
    "torch.rnn_relu_cell": {"input": X, "hx": X, "w_ih": numbers(4, 4), "w_hh": numbers(4, 4)},
    "torch.lstm_cell": {"input": X, "hx": (X, X), "w_ih": numbers(16, 4), "w_hh": numbers(16, 4)},
    "torch.lu_solve": {"b": SQUARE, "LU_data": SQUARE, "LU_pivots": ints(1, 2, 3)}, "torch.narrow_copy": {"size": 2},
    "torch.randint_like": {"input": X, "low": 0, "high": 5}, "torch.svd_lowrank": {"q": 2},
    "torch.triangular_solve": {"b": SQUARE, "A": SQUARE}, "torch.randint": {"low": 0, "high": 5, "size": (3,)},
    "torch.pca_lowrank": {"q": 2}, "torch.repeat_interleave": {"repeats": 2},
}  # fmt: skip

# They take functions, files or wholes of other kinds, or any number of arguments; or they set something.
LEFT_OUT = {
    "rn.block_diag", "rn.cartesian_prod", "rn.einsum", "rn.functional_call", "rn.lu_unpack", "rn.promote_types",
    "rn.reindex", "rn.reindex_reduce", "rn.search_schedule", "rn.stack_module_state", "rn.tensor_expr",
    "rn.multinomial", "rn.combinations", "F.ctc_loss", "F.fractional_max_pool2d", "F.fractional_max_pool3d",
    "F.fractional_max_pool2d_with_indices", "F.fractional_max_pool3d_with_indices", "F.linear_cross_entropy",
    "F.gumbel_softmax", "F.max_unpool1d", "F.max_unpool2d", "F.max_unpool3d", "nn.summary", "random.categorical",
    "torch.select_copy", "torch.view_as_complex_copy", "torch.view_as_real_copy",
    "torch.frombuffer", "torch.from_numpy", "torch.chain_matmul", "torch.load", "torch.save", "torch.put",
    "torch.segment_reduce", "torch.set_default_dtype", "torch.set_default_tensor_type", "torch.vmap", "torch.lobpcg",
    "random.set_rng_state", "torch.convolution", "torch.native_group_norm", "torch.native_batch_norm",
    "torch.randint", "torch.from_file", "torch.set_anomaly_enabled", "torch.sym_ite", "torch.to_dlpack",
    "torch.gru", "torch.lstm", "torch.rnn_relu", "torch.rnn_tanh", "torch.batch_norm", "torch.instance_norm",
    "torch.sparse_csr_tensor", "torch.sparse_coo_tensor", "torch.spmm", "torch._check", "torch._check_index",
    "torch._check_is_size", "torch._check_not_implemented", "torch._check_tensor_all", "torch._check_tensor_all_with",
    "torch._check_type", "torch._check_value", "torch._check_with", "torch._assert",
}  # fmt: skip
