"""Calls of PyTorch's functions of tensors, other than in networks: the expression, and the arrays in it."""

from __future__ import annotations

X = {"x": "3 4"}
PAIR = {"x": "3 4", "y": "3 4"}
SQUARE = {"m": "4 4"}
LONG = {"x": "2 40"}

# These draw random numbers: the bits differ from call to call.
UNTRACED: set[str] = {"torch.svd_lowrank(x @ y, 2)[1]", "torch.pca_lowrank(x @ y, 2)[1]"}

SIGNALS = {
    "torch.stft(x, 8, return_complex=True)": LONG,
    "torch.stft(x[0], 8, hop_length=3, win_length=5, window=w, center=False, return_complex=True)": {**LONG, "w": "5"},
    "torch.stft(x, 8, window=w, normalized=True, onesided=False, return_complex=True)": {**LONG, "w": "8"},
    "torch.stft(x, 8, 2, pad_mode='constant', return_complex=False)": LONG,
    "torch.istft(torch.complex(x, y), 8, window=w)": {"x": "2 5 9", "y": "2 5 9", "w": "p 8"},
    "torch.istft(torch.complex(x, y), 8, 3, 7, window=w, length=25)": {"x": "5 9", "y": "5 9", "w": "p 7"},
    "torch.istft(torch.complex(x, y), 8, 2, normalized=True, onesided=False)": {"x": "8 6", "y": "8 6"},
    "torch.istft(torch.complex(x, y), 8, 2, center=False, return_complex=True, onesided=False)": {
        "x": "8 6",
        "y": "8 6",
    },
    **{
        f"torch.{name}_window({arguments}, dtype=torch.float64)": {}
        for name in ("hann", "hamming", "blackman", "bartlett", "kaiser")
        for arguments in ("0", "1", "7", "8, False")
    },
    "torch.hamming_window(7, True, 0.5, 0.4, dtype=torch.float64)": {},
    "torch.kaiser_window(7, False, 5.0, dtype=torch.float64)": {},
    **{
        f"torch.signal.windows.{call}, dtype=torch.float64)": {}
        for call in (
            "bartlett(7", "blackman(8, sym=False", "cosine(7", "cosine(8, sym=False", "exponential(7, tau=2.0",
            "exponential(7, center=1, sym=False", "gaussian(7, std=1.5", "gaussian(8, std=1.5, sym=False", "hann(9",
            "general_cosine(8, a=[0.4, 0.3, 0.3]", "general_hamming(8, alpha=0.6", "hamming(8", "nuttall(9",
            "kaiser(8, beta=3.0",
        )
    },
}  # fmt: skip

SLOPES = {
    "torch.gradient(x)": X,
    "torch.gradient(x, spacing=2.0, dim=1)": X,
    "torch.gradient(x, spacing=[2.0, 0.5], edge_order=2)": X,
    "torch.gradient(x, spacing=(y.cumsum(0), z.cumsum(0)))": {**X, "y": "p 3", "z": "p 4"},
    "torch.gradient(x, spacing=(z.cumsum(0),), dim=1, edge_order=2)": {**X, "z": "p 4"},
    "torch.gradient(x, dim=(0,))": {"x": "2 3"},
}

STRIDES = {
    "torch.as_strided(x, (2, 2), (1, 2))": X,
    "torch.as_strided(x, (3, 3), (1, 1), 2)": X,
    "x.as_strided((2, 3), (4, 1))": X,
    "torch.as_strided_scatter(x, y, (2, 2), (4, 2), 1).detach()": {**X, "y": "2 2"},
    "torch.split_with_sizes(x, [1, 3], 1)": X,
    "x.split_with_sizes((1, 2))": X,
}

SUMS = {
    "torch.einsum(x, [0, 1], m, [1, 2], [0, 2])": {**X, **SQUARE},
    "torch.einsum(x, [1, 0], m, [0, 2])": {**X, **SQUARE},
    "torch.einsum(x, [..., 5, 1], m, [1, 2], [..., 5, 2])": {"x": "2 3 4", **SQUARE},
    "torch.einsum(x, [3, 3])": {"x": "4 4"},
    "torch.einsum('ij,jk,kl,lm->im', x, m, m, m)": {**X, **SQUARE},
}

# Arrays without axes.
NUMBER = {"x": ""}
NUMBERS = {
    "torch.topk(x, 1)": NUMBER,
    "torch.topk(x, 1, dim=0, largest=False)": NUMBER,
    "torch.argsort(x)": NUMBER,
    "torch.sort(x)": NUMBER,
    "torch.index_select(x, 0, i)": {**NUMBER, "i": "= 0"},
    "torch.gather(x, 0, i[0])": {**NUMBER, "i": "= 0"},
    "torch.gather(x, 0, i)": {**NUMBER, "i": "= 0"},
    "torch.gather(y, 0, i[0])": {"y": "3", "i": "= 2"},
    "torch.scatter(x, 0, i[0], y)": {**NUMBER, "y": "", "i": "= 0"},
    "torch.scatter(x, 0, i, 2.0)": {**NUMBER, "i": "= 0"},
    "torch.scatter_add(x, 0, i[0], y)": {**NUMBER, "y": "", "i": "= 0"},
    "torch.scatter_reduce(x, 0, i[0], y, 'prod')": {**NUMBER, "y": "", "i": "= 0"},
    "torch.index_copy(x, 0, i, y)": {**NUMBER, "y": "", "i": "= 0"},
    "torch.index_fill(x, 0, i, 3.0)": {**NUMBER, "i": "= 0"},
    "torch.index_add(x, 0, i, y)": {**NUMBER, "y": "", "i": "= 0"},
    "torch.take(x, i)": {**NUMBER, "i": "= 0 0"},
}

HEADS = "F.multi_head_attention_forward(q, q, q, 4, 2, w, b, None, None, False, 0.0, o, c"
WEIGHTS = {"w": "12 4", "b": "12", "o": "4 4", "c": "4"}
SEPARATE = "use_separate_proj_weight=True, q_proj_weight=o, k_proj_weight=k, v_proj_weight=k"
STATISTICS = {"w": "3", "b": "3", "r": "c 3", "v": "c 3"}
NETWORKS = {
    f"{HEADS})": {"q": "3 2 4", **WEIGHTS},
    f"{HEADS}, need_weights=False)": {"q": "3 2 4", **WEIGHTS},
    f"{HEADS}, average_attn_weights=False, attn_mask=m)": {"q": "3 2 4", "m": "c 3 3", **WEIGHTS},
    f"{HEADS}, static_k=k, static_v=s)": {"q": "3 4", "k": "2 5 2", "s": "2 5 2", **WEIGHTS},
    "F.multi_head_attention_forward(q, x, x, 4, 2, None, b, None, None, True, 0.0, o, None, " + SEPARATE + ")": {
        "q": "3 2 4", "x": "5 2 6", "k": "4 6", "b": "12", "o": "4 4",
    },
    "F.multi_head_attention_forward(q, q, q, 4, 2, w, b, k, v, False, 0.0, o, c)": {
        "q": "3 2 4", "k": "1 1 4", "v": "1 1 4", **WEIGHTS,
    },
    "(F.batch_norm(x, r, v, w, b, training=True), r, v)": {"x": "4 3 2", **STATISTICS},
    "(F.batch_norm(x, r, v, w, b, training=True, momentum=0.3, eps=0.1), r, v)": {"x": "4 3", **STATISTICS},
    "(F.batch_norm(x, r, v, w, b), r, v)": {"x": "4 3 2", **STATISTICS},
    "(F.instance_norm(x, r, v, w, b), r, v)": {"x": "2 3 4", **STATISTICS},
    "(F.instance_norm(x, r, v, w, b, use_input_stats=False), r, v)": {"x": "2 3 4", **STATISTICS},
}  # fmt: skip

WHOLE = {"x": "i9 2 4 7", "w": "i9 6 2 3"}
IMAGES = {"x": "i9 2 4 7 6", "w": "i9 6 2 3 2", "b": "i9 6"}
INTEGERS = {
    "F.conv1d(x, w, groups=2, padding=1)": WHOLE,
    "F.conv2d(x - 4, w - 4, b, stride=2, padding=1, dilation=2, groups=2)": IMAGES,
    "F.conv2d(x.to(torch.uint8), w.to(torch.uint8), groups=2)": IMAGES,
    "F.conv3d(x, w)": {"x": "i9 1 2 4 4 4", "w": "i9 3 2 2 3 2"},
    "F.conv_transpose1d(x, w, stride=2, padding=1)": {"x": "i9 2 4 7", "w": "i9 4 3 3"},
    "F.conv_transpose2d(x - 4, w, b, stride=2, output_padding=1, groups=2)": {"x": "i9 2 4 3 3", "w": "i9 4 3 3 2",
                                                                              "b": "i9 6"},
    "F.avg_pool1d(x - 5, 2)": WHOLE,
    "F.avg_pool2d(x - 5, 3, 2, padding=1, count_include_pad=False)": IMAGES,
    "F.avg_pool2d(x - 5, 3, 2, ceil_mode=True)": IMAGES,
    "F.avg_pool3d(x - 5, 2, divisor_override=3)": {"x": "i9 1 2 4 4 4"},
    "F.linear(x, w)": {"x": "i9 2 3", "w": "i9 4 3"},
}  # fmt: skip

CELL = {"x": "3 4", "h": "3 5"}
STACKED = {"x": "6 3 4", "h": "2 3 5", "c": "2 3 5", "w": "20 4", "u": "20 5", "b": "20", "v": "20 5"}
RECURRENT = {
    "torch.rnn_tanh_cell(x, h, w, u, b, b)": {**CELL, "w": "5 4", "u": "5 5", "b": "5"},
    "torch.rnn_relu_cell(x, h, w, u)": {**CELL, "w": "5 4", "u": "5 5"},
    "torch.gru_cell(x, h, w, u, b, b)": {**CELL, "w": "15 4", "u": "15 5", "b": "15"},
    "torch.lstm_cell(x, (h, c), w, u, b, b)": {**CELL, "c": "3 5", "w": "20 4", "u": "20 5", "b": "20"},
    "torch.lstm(x, (h, c), [w, u, b, b, v, u, b, b], True, 2, 0.0, False, False, False)": STACKED,
    "torch.lstm(x.transpose(0, 1), (h[:1], c[:1]), [w, u], False, 1, 0.0, True, False, True)": STACKED,
    "torch.lstm(x[:3].reshape(9, 4), torch.tensor([3, 3, 2, 1]), (h, c), [w, u, w, u], False, 1, 0.0, False, True)": {
        **STACKED,
        "x": "3 3 4",
    },
    "torch.gru(x, h, [w[:15], u[:15], w[:15], u[:15]], False, 1, 0.0, False, True, False)": STACKED,
    "torch.rnn_tanh(x, h, [w[:5], u[:5], w[5:10], u[5:10]], False, 1, 0.0, False, True, False)": STACKED,
    "torch.rnn_relu(x, h[:1], [w[:5], u[:5], b[:5], b[5:10]], True, 1, 0.0, False, False, False)": STACKED,
}

NORMALS = {"x": "3 4 5", "w": "4", "b": "4"}
BENEATH = {
    "torch.affine_grid_generator(t, [2, 1, 3, 4], True)": {"t": "2 2 3"},
    "torch.grid_sampler(x, g, 0, 1, False)": {"x": "2 3 4 4", "g": "p 2 3 3 2"},
    "torch.constant_pad_nd(x, [1, 2, 0, 1], 0.5)": X,
    "torch.convolution(x, w, None, [2], [1], [1], False, [0], 2)": {"x": "2 4 7", "w": "6 2 3"},
    "torch.convolution(x, w, None, [2, 1], [1, 0], [1, 1], True, [1, 0], 1)": {"x": "2 4 3 3", "w": "4 2 3 2"},
    "torch.native_layer_norm(x, [5], v, v, 1e-5)": {**NORMALS, "v": "5"},
    "torch.native_group_norm(x, w, b, 3, 4, 5, 2, 1e-5)": NORMALS,
    "torch.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5)": NORMALS,
    "torch.norm_except_dim(x, 2, 1)": NORMALS,
    "torch.norm_except_dim(x, 2, -1)": NORMALS,
    "torch.embedding_renorm_(c.clone(), i, 0.7, 2.0)": {"c": "c 5 3", "i": "i5 4"},
    "torch.fill(c, 2.5)": {"c": "c 2 3"},
    "torch.native_dropout(x, 0.3, False)": X,
}

COUNTS = {
    "torch.histogramdd(c, [2, 3], range=[0.0, 1.0, 0.2, 0.8])": {"c": "c 9 2"},
    "torch.histogramdd(c, 2, range=[0.0, 1.0] * 3, weight=w, density=True)": {"c": "c 9 3", "w": "c 9"},
    "torch.histogramdd(c, (c[:, 0].sort()[0], c[:3, 1].sort()[0]))": {"c": "c 9 2"},
    "torch.nonzero_static(x > 0, size=5)": X,
    "(x > 0).nonzero_static(size=20, fill_value=7)": X,
    "torch.nonzero_static(i, size=2)": {"i": "= 3"},
}

TRANSFORMS = {
    "torch.fft.hfft2(torch.complex(x, y))": PAIR,
    "torch.fft.hfftn(torch.complex(x, y), s=(5, 6), norm='ortho')": PAIR,
    "torch.fft.hfftn(torch.complex(x, y), dim=(1, 0), norm='forward')": PAIR,
    "torch.fft.ihfft2(x)": X,
    "torch.fft.ihfftn(x, dim=(0,), norm='ortho')": X,
    "torch.fft.ihfftn(x, s=(2, 5))": X,
}

A = {"a": "4 4"}
STACK = {"a": "2 3 3"}
MATRICES = {
    "torch.linalg.lu(a)": STACK,
    "torch.linalg.lu(b)": {"b": "5 3"},
    "torch.linalg.lu(c)": {"c": "2 3 4"},
    "torch.linalg.lu_factor(a)": STACK,
    "torch.linalg.lu_factor_ex(a)": STACK,
    "torch.lu(a, get_infos=True)": STACK,
    "torch.lu_unpack(*torch.linalg.lu_factor(b))": {"b": "5 3"},
    "torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b)": {**STACK, "b": "3 2"},
    "torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b, adjoint=True)": {**STACK, "b": "2 3 2"},
    "torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b, left=False)": {**STACK, "b": "2 2 3"},
    "torch.lu_solve(b, *a.lu())": {**A, "b": "4 1"},
    "torch.linalg.householder_product(x, t)": {"x": "2 5 3", "t": "2 3"},
    "torch.orgqr(x, t)": {"x": "5 3", "t": "2"},
    "torch.ormqr(x, t, y)": {"x": "5 3", "t": "3", "y": "5 2"},
    "torch.ormqr(x, t, y, left=False, transpose=True)": {"x": "5 3", "t": "3", "y": "2 5"},
    "torch.linalg.cholesky_ex(a @ a.mT)": STACK,
    "torch.linalg.cholesky_ex(a.detach())[1]": STACK,
    "torch.linalg.ldl_factor(c + c.mT - 1)": {"c": "c 2 5 5"},
    "torch.linalg.ldl_factor_ex(torch.complex(c, c.mT), hermitian=True)": {"c": "c 4 4"},
    "torch.linalg.ldl_factor_ex(c * 0)[2]": {"c": "c 3 3"},
    "torch.linalg.ldl_solve(*torch.linalg.ldl_factor(c + c.mT), d)": {"c": "c 2 5 5", "d": "c 2 5 2"},
    "torch.geqrf(c)": {"c": "c 2 5 3"},
    "torch.triangular_solve(b, a)": {"a": "3 3", "b": "3 2"},
    "b.triangular_solve(a, upper=False, transpose=True, unitriangular=True)[0]": {"a": "3 3", "b": "3 2"},
    "torch.svd_lowrank(x @ y, 2)[1]": {"x": "5 2", "y": "2 6"},
    "torch.pca_lowrank(x @ y, 2)[1]": {"x": "7 2", "y": "2 6"},
    "x.svd()[1]": X,
    "x.qr()[1].abs()": X,
    "torch.linalg.inv_ex(a)": STACK,
    "torch.linalg.inv_ex(a * 0)[1]": {"a": "c 2 3 3"},
    "torch.linalg.solve_ex(a, b)": {**STACK, "b": "2 3 2"},
    "torch.linalg.solve_ex(a, b, left=False)": {**STACK, "b": "2 2 3"},
    "torch.linalg.tensorinv(a.reshape(2, 2, 4))": A,
    "torch.linalg.tensorinv(a.reshape(4, 2, 2), ind=1)": A,
    "torch.linalg.tensorsolve(a.reshape(2, 2, 4), b)": {**A, "b": "2 2"},
    "torch.linalg.tensorsolve(a.reshape(4, 2, 2), b, dims=(0,))": {**A, "b": "2 2"},
    "torch.linalg.cond(a.detach(), 1)": STACK,
    "torch.linalg.cond(a * 0, 'fro')": {"a": "c 3 3"},
    "torch.linalg.matrix_rank(a @ a.mT, hermitian=True)": {"a": "4 2"},
    "torch.linalg.matrix_rank(a, tol=1.0)": {"a": "c 2 4 4"},
    "torch.linalg.matrix_rank(a, atol=0.5, rtol=0.3)": {"a": "c 2 4 4"},
    "torch.linalg.pinv(a, atol=0.5)": {"a": "4 3"},
    "torch.linalg.pinv(a @ a.mT, hermitian=True)": A,
    "torch.linalg.norm(x, dtype=torch.float64)": X,
    "torch.chain_matmul(x, m, m)": {**X, **SQUARE},
    "torch.svd(x)[1]": X,
    "torch.svd(x, compute_uv=False)[1]": X,
    "torch.qr(x)[1].abs()": X,
    "torch.nuclear_norm(x)": X,
    "torch.frobenius_norm(x, 1)": X,
    "torch.cov(x[:1])": X,
    "torch.corrcoef(x[:1]).detach()": X,
    "torch.cov(x, fweights=n)": {**X, "n": "= 2 1 3 1"},
}

COPIES = {
    "torch.unfold_copy(x, 1, 2, 1)": X,
    "torch.slice_copy(x, -1, 1, None, 2)": X,
    "torch.split_with_sizes_copy(x, [1, 2])": X,
    "torch.unbind_copy(x, 1)": X,
    "torch.diagonal_copy(x, 1)": X,
    "torch.vdot(torch.complex(x, y), torch.complex(y, x))": {"x": "3", "y": "3"},
    "torch.complex(x, y).adjoint()": PAIR,
    "x.cross(y)": {"x": "2 3", "y": "2 3"},
    "x.prelu(w)": {**X, "w": "1"},
    "x.hardshrink(0.4)": X,
    "p.mvlgamma(1)": {"p": "p 3"},
    "x.broadcast_to((2, 3, 4))": X,
}

SPECIAL = {
    **{
        f"torch.special.{name}(x * 6)": X
        for name in ("airy_ai", "bessel_j0", "bessel_j1", "modified_bessel_i0", "modified_bessel_i1",
                     "spherical_bessel_j0")
    },
    **{
        f"torch.special.{name}(c * 9)": {"c": "c 3 4"}
        for name in ("bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1",
                     "scaled_modified_bessel_k0", "scaled_modified_bessel_k1")
    },
    **{
        f"torch.special.{name}(x, {n})": {"x": "3 4", "i": "i9 4"} if n == "i" else X
        for name in ("chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v",
                     "chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he",
                     "laguerre_polynomial_l", "legendre_polynomial_p", "shifted_chebyshev_polynomial_t",
                     "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
                     "shifted_chebyshev_polynomial_w")
        for n in ("0", "3", "i")
    },
    "torch.special.zeta(1 + 9 * c, p * 5)": {"c": "c 3 4", "p": "p 3 4"},
    "torch.special.zeta(3, x * 9)": X,
    "torch.special.polygamma(33, p)": {"p": "p 3"},
    "torch.special.round(x, decimals=2)": X,
}  # fmt: skip

OPERATIONS: dict[str, dict[str, str]] = {
    **SPECIAL,
    **SIGNALS,
    **SLOPES,
    **STRIDES,
    **SUMS,
    **NUMBERS,
    **NETWORKS,
    **MATRICES,
    **COUNTS,
    **INTEGERS,
    **BENEATH,
    **RECURRENT,
    **TRANSFORMS,
    **COPIES,
}
