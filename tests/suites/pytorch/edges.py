"""Calls at the edges of what PyTorch's functions take: numbers that are not finite, complex numbers, integers, arrays
without elements or axes, half precision among others."""

from __future__ import annotations

ODD = {"o": "v nan inf -inf 0 -0.0 1 -1 2.5 -0.3"}
Z = {"x": "3 4", "y": "3 4"}
MATRIX = {"x": "3 3", "y": "3 3"}
IMAGE = {"x": "1 2 5 6"}
WHOLE = "(x * 9).detach().long()"
POSITIVE = "torch.complex(x, y) @ torch.complex(x, y).mH + torch.eye(3, dtype=torch.float64)"

NOT_FINITE = dict.fromkeys(
    (
        "F.relu(o)", "F.relu6(o)", "F.hardshrink(o)", "F.softshrink(o)", "torch.angle(o)",
        "torch.logit(o, 0.1)", "torch.expm1(o)", "F.elu(o * 9)",
        "F.hardtanh(o)", "F.leaky_relu(o)", "F.celu(o)", "F.selu(o)",
        "torch.fmax(o, o.flip(0))", "torch.nan_to_num(o)", "F.threshold(o, 0.5, 3.0)", "F.hardsigmoid(o)",
        "torch.abs(o)", "torch.max(o)", "F.huber_loss(o, o.detach().nan_to_num() * 0, reduction='none')",
        "F.smooth_l1_loss(o, o.detach().nan_to_num() * 0, reduction='none')", "torch.clamp(o, float('nan')).isnan()",
        "torch.sqrt(o)", "torch.log(o)", "torch.atan(o)", "torch.tanh(o)",
        "torch.maximum(o, o.flip(0))", "torch.sinc(o)", "torch.where(o > 0, o, 0.0)",
        "torch.nansum(o)", "torch.round(o)", "torch.frac(o)", "torch.relu(o)", "torch.sigmoid(o)",
    ),
    ODD,
)  # fmt: skip

NOT_FINITE["torch.special.entr(o)"] = {"o": "v nan 0 1 2.5 -0.3 -4"}
NOT_FINITE["torch.logit(o)"] = {"o": "v nan inf -inf 0 1 2.5 -0.3 0.3"}

COMPLEX = {
    f"{call.replace('z', 'torch.complex(x, y)')}": Z
    for call in (
        "torch.exp2(z)", "torch.sinc(z)", "torch.float_power(z, 2)", "torch.ldexp(z, torch.tensor(2))",
        "torch.logaddexp(z, z.flip(0))", "torch.logsumexp(z, 1)", "torch.logcumsumexp(z, 1)", "torch.cov(z)",
        "torch.corrcoef(z)", "torch.isclose(z, z.flip(0), 0.5)", "F.conv1d(z[None], z[None, :, :2], z[:1, 0])",
        "F.conv_transpose1d(z[None], z[:, None, :2], stride=2)", "F.unfold(z[None, None], 2)",
    )
} | {
    f"torch.linalg.cholesky({POSITIVE})": MATRIX,
    "torch.logdet(torch.complex(x, y)).exp()": MATRIX,
}  # fmt: skip

EMPTY = {
    "torch.linalg.inv_ex(x)[0]": {"x": "2 0 0"},
    "torch.linalg.cholesky_ex(x)": {"x": "0 0"},
    "torch.linalg.solve_ex(x, y)[0]": {"x": "0 0", "y": "0 2"},
    "torch.linalg.lu_factor(x)[0]": {"x": "2 0 0"},
    "torch.lu_solve(y, *torch.linalg.lu_factor(x))": {"x": "0 0", "y": "0 1"},
    "torch.ormqr(x, w, y)": {"x": "2 4", "w": "2", "y": "2 3"},
    "x.unfold(0, 1, 1)": {"x": ""},
    "torch.split(x, 2)": {"x": "0 3"},
    "F.multi_margin_loss(x, n)": {"x": "", "n": "= 0"},
    "F.multi_margin_loss(x, n, reduction='none')": {"x": "3", "n": "= 1"},
    "F.multi_margin_loss(x, n[0], reduction='none')": {"x": "3", "n": "= 1"},
    "F.multilabel_margin_loss(x, n[0])": {"x": "", "n": "= 0"},
}

WHOLE_NUMBERS = {
    f"F.avg_pool1d({WHOLE}, 2)": {"x": "2 3 7"},
    f"F.avg_pool2d({WHOLE}, 2, 1, 1, count_include_pad=False)": IMAGE,
    f"F.avg_pool2d({WHOLE}, 2, divisor_override=-3)": IMAGE,
    f"F.conv1d({WHOLE}, {WHOLE}[:, :, :2], {WHOLE}[:, 0, 0])": {"x": "2 2 7"},
    f"F.conv_transpose2d({WHOLE}, {WHOLE}[0, :, None, :2, :2], stride=2)": IMAGE,
    "(x > 0).sum_to_size(1, 4)": {"x": "3 4"},
    "torch.scatter_reduce(n, 0, i, m, 'mean')": {"n": "= 1 2 3", "i": "= 0 0 2", "m": "= 5 8 9"},
    "torch.scatter_reduce(n.int(), 0, i, m.int(), 'mean')": {"n": "= 1 2 3", "i": "= 0 0 2", "m": "= 5 8 9"},
    "torch.tril_indices(3, 4, dtype=torch.int32)": {},
    "torch.linalg.vander(n)": {"n": "= 1 2 3"},
}

MIXED = {
    "F.hardshrink(x.bfloat16(), 0.5).detach()": Z,
    "torch.addcmul(x, y, y, value=float('inf')).isinf()": Z,
    "torch.addcdiv(x, y, w, value=3)": {**Z, "w": "p 3 4"},
    "torch.addcdiv(x, y.bfloat16().detach(), y.float().detach(), value=3)": Z,
    "torch.addcmul(x, y.half().detach(), y.float().detach(), value=3)": Z,
    "torch.mm(x.bfloat16(), y.bfloat16().T)": Z,
    "torch.mv(x.bfloat16(), y[0].bfloat16())": Z,
    "F.linear(x.bfloat16(), y.bfloat16())": Z,
}

PIECES = {
    "F.gaussian_nll_loss(x, y, p)": {**Z, "p": "p 1 4"},
    "F.kl_div(x, p, reduction='batchmean')": {"x": "", "p": "p"},
    "torch.narrow(x, 1, -3, 2)": {"x": "3 4"},
    "x.narrow(0, 3, 0)": {"x": "3 4"},
    "F.pad(x, (-1, 1, -2, 1), mode='circular')": IMAGE,
    "F.avg_pool2d(x, (2, 2), (), (0,), False, True, -2)": IMAGE,
    "F.conv_transpose2d(x, w, stride=(3, 2), padding=(1, 2), output_padding=(2, 3), dilation=4)": {
        **IMAGE, "w": "2 3 2 3",
    },
    "F.conv_transpose1d(x, w, stride=1, padding=1, output_padding=2, dilation=3)": {"x": "1 2 5", "w": "2 3 2"},
    "F.scaled_dot_product_attention(x[0, 0], x, x)": {"x": "2 3 4 5"},
    **{
        f"torch.linalg.lstsq(x, y{driver})": {"x": "c 4 3", "y": "c 4 2"}
        for driver in ("", ", driver='gels'", ", driver='gelsd'")
    },
    "torch.stft(x, 8, 2, 5, center=False, align_to_window=True, return_complex=True)": {"x": "20"},
    "torch.lu(x, get_infos=True)[2]": {"x": "3 3"},
    "x.lu(get_infos=True)[0]": {"x": "3 3"},
    "torch.gradient(x, spacing=None)": {"x": "3 4"},
    "x.float().cdouble(memory_format=torch.preserve_format)": {"x": "3 4"},
}  # fmt: skip

EDGES: dict[str, dict[str, str]] = {**NOT_FINITE, **COMPLEX, **EMPTY, **WHOLE_NUMBERS, **MIXED, **PIECES}
