"""Calls of functions: the expression, and the arrays in it (``made.array``). Floats get gradients."""

from __future__ import annotations

X = {"x": "3 4"}
IMAGE = {"x": "2 4 5 6"}
PAIR = {"x": "3 4", "y": "3 4"}
LOGITS = {"x": "4 5", "y": "i5 4"}
SCORES = {"x": "3 4", "y": "3 4", "z": "s 3"}
SIGNS = {"x": "3 4", "y": "s 3 4"}
MARKS = {"x": "3 4", "y": "p 3 4"}

ACTIVATIONS = dict.fromkeys(
    """
F.celu(x)
F.celu(x, alpha=0.7)
F.elu(x, 1.3)
F.gelu(x)
F.gelu(x, approximate='tanh')
F.glu(x)
F.glu(x, dim=1)
F.hardshrink(x)
F.hardshrink(x, 0.3)
F.hardsigmoid(x * 3)
F.hardswish(x * 3)
F.hardtanh(x)
F.hardtanh(x, min_val=-0.5, max_val=0.2)
F.leaky_relu(x, 0.2)
F.log_softmax(x, dim=0)
F.log_softmax(x, dim=1)
F.logsigmoid(x)
F.mish(x)
F.normalize(x)
F.normalize(x, p=3.0, dim=0)
F.relu(x)
F.relu6(x * 5)
F.rrelu(x)
F.rrelu(x, 0.2, 0.4)
F.selu(x)
F.sigmoid(x)
F.silu(x)
F.softmax(x, dim=1)
F.softmin(x, dim=1)
F.softplus(x)
F.softplus(x, beta=2.0, threshold=1.0)
F.softshrink(x)
F.softshrink(x, lambd=0.2)
F.softsign(x)
F.tanh(x)
F.tanhshrink(x)
F.threshold(x, 0.1, -2.0)
""".strip().splitlines(),
    X,
)
ACTIVATIONS["F.prelu(x, w)"] = {"x": "2 3 4", "w": "3"}
ACTIVATIONS["F.prelu(x, v)"] = {"x": "2 3 4", "v": "1"}

PADDING = {
    "F.pad(x, (1, 2))": IMAGE,
    "F.pad(x, (1, -2, -1, 3), value=1.5)": IMAGE,
    "F.pad(x, (1, 1, 2, 0, 0, 1))": IMAGE,
    "F.pad(x, (1, 2, 0, 3), mode='reflect')": IMAGE,
    "F.pad(x, (1, 2, 0, 3), mode='replicate')": IMAGE,
    "F.pad(x, (1, 2, 0, 3), mode='circular')": IMAGE,
    "F.pad(x, (-1, 2, 1, -2), mode='replicate')": IMAGE,
}

REARRANGING = {
    "F.pixel_shuffle(x, 2)": IMAGE,
    "F.pixel_unshuffle(x, 2)": {"x": "2 1 4 6"},
    "F.channel_shuffle(x, 2)": {"x": "2 4 3 2"},
    "F.unfold(x, (2, 3))": {"x": "2 2 4 5"},
    "F.unfold(x, 2, dilation=2, padding=1, stride=2)": {"x": "2 2 4 5"},
    "F.unfold(x[0], 2)": {"x": "2 2 4 5"},
    "F.fold(x, (4, 5), (2, 2))": {"x": "2 8 12"},
    "F.fold(x, (4, 5), 2, dilation=2, padding=1, stride=2)": {"x": "2 8 6"},
    "F.fold(x[0], (4, 5), (2, 2))": {"x": "2 8 12"},
    "F.one_hot(x, num_classes=6)": {"x": "i5 2 3"},
    "F.one_hot(x)": {"x": "= 0 3 1"},
}

RESAMPLING = {
    "F.interpolate(x, scale_factor=2)": {"x": "2 2 3 4"},
    "F.interpolate(x, (7, 3))": {"x": "1 2 3 4"},
    "F.interpolate(x, scale_factor=1.7)": {"x": "1 2 5"},
    "F.interpolate(x, size=(5, 2, 3), mode='nearest-exact')": {"x": "1 1 3 4 2"},
    "F.interpolate(x, scale_factor=(1.5, 0.6), mode='nearest-exact')": {"x": "1 1 5 6"},
    "F.interpolate(x, 7, mode='linear')": {"x": "1 2 4"},
    "F.interpolate(x, 7, mode='linear', align_corners=True)": {"x": "1 2 4"},
    "F.interpolate(x, (5, 3), mode='bilinear')": {"x": "1 2 3 4"},
    "F.interpolate(x, (5, 3), mode='bilinear', align_corners=True)": {"x": "1 2 3 4"},
    "F.interpolate(x, scale_factor=2.3, mode='bilinear')": {"x": "1 1 3 4"},
    "F.interpolate(x, scale_factor=2.3, mode='bilinear', recompute_scale_factor=True)": {"x": "1 1 3 4"},
    "F.interpolate(x, (3, 2), mode='bilinear', antialias=True)": {"x": "1 1 7 5"},
    "F.interpolate(x, (9, 2), mode='bicubic', antialias=True)": {"x": "1 1 7 5"},
    "F.interpolate(x, (5, 3), mode='bicubic')": {"x": "1 1 3 4"},
    "F.interpolate(x, (5, 6), mode='bicubic', align_corners=True)": {"x": "1 1 3 4"},
    "F.interpolate(x, (4, 3, 3), mode='trilinear')": {"x": "1 1 2 3 4"},
    "F.interpolate(x, (4, 3, 1), mode='trilinear', align_corners=True)": {"x": "1 1 2 3 4"},
    "F.interpolate(x, (2, 3), mode='area')": {"x": "1 2 5 4"},
    "F.upsample_nearest(x, scale_factor=2)": {"x": "1 1 2 3"},
    "F.upsample_bilinear(x, scale_factor=2)": {"x": "1 1 2 3"},
    "F.affine_grid(x, (2, 1, 3, 4), align_corners=False)": {"x": "2 2 3"},
    "F.affine_grid(x, (2, 1, 3, 4), align_corners=True)": {"x": "2 2 3"},
    "F.affine_grid(x, (1, 1, 2, 3, 2), align_corners=False)": {"x": "1 3 4"},
    **{
        f"F.grid_sample(x, g, mode='{mode}', padding_mode='{padding}', align_corners={aligned})": {
            "x": "1 2 3 4",
            "g": "1 2 3 2",
        }
        for mode in ("bilinear", "nearest", "bicubic")
        for padding in ("zeros", "border", "reflection")
        for aligned in (False, True)
    },
    "F.grid_sample(x, g, align_corners=False)": {"x": "1 1 2 3 4", "g": "1 2 3 2 3"},
    "F.grid_sample(x, g, 'nearest', 'reflection', align_corners=True)": {"x": "1 1 2 3 4", "g": "1 2 3 2 3"},
}

POOLING = {
    "F.avg_pool1d(x, 2)": {"x": "2 2 5"},
    "F.avg_pool2d(x, 3, 2, 1, True, False)": IMAGE,
    "F.avg_pool2d(x, 2, divisor_override=3)": IMAGE,
    "F.avg_pool3d(x, 2, 1)": {"x": "1 2 3 4 3"},
    "F.max_pool1d(x, 2, return_indices=True)": {"x": "2 2 5"},
    "F.max_pool2d(x, 3, 2, 1, return_indices=True)": IMAGE,
    "F.max_pool2d(x, 2, stride=1, dilation=2, return_indices=True)": IMAGE,
    "F.max_pool2d(x, 2, 2, ceil_mode=True, return_indices=True)": {"x": "1 2 5 5"},
    "F.max_pool3d(x, 2, return_indices=True)": {"x": "1 2 4 4 2"},
    "F.max_pool2d_with_indices(x, 2)": IMAGE,
    "F.adaptive_avg_pool2d(x, (3, None))": IMAGE,
    "F.adaptive_max_pool1d(x, 3, return_indices=True)": {"x": "2 2 5"},
    "F.adaptive_max_pool2d(x, (3, 2), return_indices=True)": IMAGE,
    "F.adaptive_max_pool2d_with_indices(x, (2, 2))": IMAGE,
    "F.adaptive_max_pool3d(x, 2, return_indices=True)": {"x": "1 1 3 4 5"},
    "F.lp_pool1d(x, 3, 2)": {"x": "p 2 2 5"},
    "F.lp_pool2d(x, 2, (2, 3), stride=2)": IMAGE,
    "F.lp_pool2d(x, 1.5, 3, ceil_mode=True)": {"x": "p 1 2 7 7"},
    "F.lp_pool3d(x, 2, 2)": {"x": "1 2 4 4 4"},
    "F.max_unpool1d(x, i.reshape(1, 1, 3), 2)": {"x": "1 1 3", "i": "= 0 3 4"},
    "F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)": {"x": "1 2 4 6"},
    "F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(5, 6))": {"x": "1 2 5 6"},
    "F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2)": {"x": "1 1 4 4 2"},
    "F.fractional_max_pool2d(x, 2, output_size=(3, 2), return_indices=True, _random_samples=s)": {
        "x": "2 2 7 5",
        "s": "c 2 2 2",
    },
    "F.fractional_max_pool2d(x, (2, 3), output_ratio=(0.5, 0.6), _random_samples=s)": {
        "x": "1 2 7 8",
        "s": "c 1 2 2",
    },
    "F.fractional_max_pool3d(x, 2, output_size=2, return_indices=True, _random_samples=s)": {
        "x": "1 2 5 4 6",
        "s": "c 1 2 3",
    },
    "F.conv_tbc(x, w, b, pad=1)": {"x": "4 2 3", "w": "3 3 2", "b": "2"},
}

NORMS = {
    "F.layer_norm(x, (3, 4), w, b)": {"x": "2 3 4", "w": "3 4", "b": "3 4"},
    "F.rms_norm(x, (4,))": {"x": "2 3 4"},
    "F.rms_norm(x, (3, 4), w)": {"x": "2 3 4", "w": "3 4"},
    "F.rms_norm(x, (3, 4), w, eps=0.1)": {"x": "2 3 4", "w": "3 4"},
    "F.group_norm(x, 2, w, b)": {"x": "2 4 3", "w": "4", "b": "4"},
    "F.instance_norm(x, weight=w, bias=b)": {"x": "2 4 3", "w": "4", "b": "4"},
    "F.local_response_norm(x, 3)": IMAGE,
    "F.local_response_norm(x, 2, alpha=0.5, beta=0.6, k=2.0)": {"x": "2 4 5"},
}

DISTANCES = {
    "F.cosine_similarity(x, y)": PAIR,
    "F.cosine_similarity(x, y, dim=0, eps=0.1)": {"x": "3 4", "y": "3 1"},
    "F.pairwise_distance(x, y)": PAIR,
    "F.pairwise_distance(x, y, p=1.0, keepdim=True)": PAIR,
    "F.pairwise_distance(x, y, p=3.0, eps=0.01)": PAIR,
    "F.pdist(x)": {"x": "4 3"},
    "F.pdist(x, p=1.0)": {"x": "4 3"},
    "F.pdist(x, p=float('inf'))": {"x": "4 3"},
}

LINEAR = {
    "F.linear(x, w, b)": {"x": "2 3", "w": "4 3", "b": "4"},
    "F.bilinear(x, y, w, b)": {"x": "2 3", "y": "2 4", "w": "5 3 4", "b": "5"},
    "F.embedding(i, w)": {"i": "i5 2 3", "w": "5 4"},
    "F.embedding(i, w, padding_idx=2)": {"i": "= 0 2 2 4", "w": "5 4"},
    "F.embedding(i, w, scale_grad_by_freq=True)": {"i": "= 0 2 2 4", "w": "5 4"},
    "F.embedding_bag(i, w, mode='sum')": {"i": "i5 2 3", "w": "5 4"},
    "F.embedding_bag(i, w)": {"i": "i5 2 3", "w": "5 4"},
    "F.embedding_bag(i, w, mode='max')": {"i": "i5 2 3", "w": "5 4"},
    "F.embedding_bag(i, w, o)": {"i": "= 0 2 2 4 1", "o": "= 0 2 2", "w": "5 4"},
    "F.embedding_bag(i, w, o, mode='max')": {"i": "= 0 2 2 4 1", "o": "= 0 2 2", "w": "5 4"},
    "F.embedding_bag(i, w, o, mode='sum', include_last_offset=True)": {"i": "= 0 2 2 4 1", "o": "= 0 2 5", "w": "5 4"},
    "F.embedding_bag(i, w, o, mode='sum', per_sample_weights=s)": {
        "i": "= 0 2 2 4 1",
        "o": "= 0 2 2",
        "w": "5 4",
        "s": "5",
    },
    "F.embedding_bag(i, w, mode='sum', per_sample_weights=s)": {"i": "i5 2 3", "w": "5 4", "s": "2 3"},
    "F.embedding_bag(i, w, o, padding_idx=2)": {"i": "= 0 2 2 4 1", "o": "= 0 1 2", "w": "5 4"},
}

LOSSES = {
    "F.mse_loss(x, y)": PAIR,
    "F.mse_loss(x, y, reduction='sum', weight=z)": {**PAIR, "z": "c 3 4"},
    "F.mse_loss(x, y, weight=z)": {**PAIR, "z": "c 3 4"},
    "F.l1_loss(x, y)": PAIR,
    "F.l1_loss(x, y, weight=z)": {**PAIR, "z": "c 3 4"},
    "F.smooth_l1_loss(x, y, beta=0.6)": PAIR,
    "F.huber_loss(x, y, delta=0.6)": PAIR,
    "F.huber_loss(x, y, weight=z, reduction='none')": {**PAIR, "z": "c 3 4"},
    "F.binary_cross_entropy(F.sigmoid(x), y)": MARKS,
    "F.binary_cross_entropy(F.sigmoid(x), y, weight=z, reduction='sum')": {**MARKS, "z": "c 3 4"},
    "F.binary_cross_entropy_with_logits(x, y)": MARKS,
    "F.binary_cross_entropy_with_logits(x, y, z, pos_weight=w)": {**MARKS, "z": "c 3 4", "w": "c 4"},
    "F.kl_div(F.log_softmax(x, 1), y)": MARKS,
    "F.kl_div(F.log_softmax(x, 1), y, reduction='batchmean', log_target=True)": MARKS,
    "F.nll_loss(F.log_softmax(x, 1), y)": LOGITS,
    "F.nll_loss(F.log_softmax(x, 1), y, w, ignore_index=2)": {**LOGITS, "w": "c 5"},
    "F.nll_loss(x, y, reduction='sum')": {"x": "2 3 2 2", "y": "i3 2 2 2"},
    "F.cross_entropy(x, y)": LOGITS,
    "F.cross_entropy(x, y, w)": {**LOGITS, "w": "c 5"},
    "F.cross_entropy(x, y, w, label_smoothing=0.1)": {**LOGITS, "w": "c 5"},
    "F.cross_entropy(x, y, ignore_index=1, label_smoothing=0.3, reduction='none')": LOGITS,
    "F.cross_entropy(x, y, w, ignore_index=1, label_smoothing=0.3)": {**LOGITS, "w": "c 5"},
    "F.cross_entropy(x, F.softmax(y, 1), w, label_smoothing=0.2)": {"x": "4 5", "y": "4 5", "w": "c 5"},
    "F.cross_entropy(x, F.softmax(y, 1), reduction='sum')": {"x": "2 3 2", "y": "2 3 2"},
    "F.linear_cross_entropy(x, w, y)": {"x": "3 4", "w": "5 4", "y": "i5 3"},
    "F.linear_cross_entropy(x, w, y, linear_bias=b, reduction='sum')": {
        "x": "3 4",
        "w": "5 2 4",
        "b": "5 2",
        "y": "i5 3 2",
    },
    "F.margin_ranking_loss(x, y, z)": {"x": "4", "y": "4", "z": "s 4"},
    "F.margin_ranking_loss(x, y, z, margin=0.5, reduction='sum')": {"x": "4", "y": "4", "z": "s 4"},
    "F.hinge_embedding_loss(x, y)": SIGNS,
    "F.hinge_embedding_loss(x, y, margin=0.4, reduction='none')": SIGNS,
    "F.soft_margin_loss(x, y)": SIGNS,
    "F.cosine_embedding_loss(x, y, z)": SCORES,
    "F.cosine_embedding_loss(x, y, z, margin=0.2, reduction='sum')": SCORES,
    "F.triplet_margin_loss(x, y, z)": {**PAIR, "z": "3 4"},
    "F.triplet_margin_loss(x, y, z, margin=2.0, p=1, swap=True, reduction='none')": {**PAIR, "z": "3 4"},
    "F.triplet_margin_with_distance_loss(x, y, z)": {**PAIR, "z": "3 4"},
    "F.triplet_margin_with_distance_loss(x, y, z, distance_function=F.cosine_similarity, swap=True, margin=0.5)": {
        **PAIR,
        "z": "3 4",
    },
    "F.multi_margin_loss(x, y)": LOGITS,
    "F.multi_margin_loss(x, y, p=2, margin=0.5, weight=w)": {**LOGITS, "w": "c 5"},
    "F.multi_margin_loss(x[0], y[0], reduction='sum')": LOGITS,
    "F.multilabel_margin_loss(x, y)": {"x": "2 4", "y": "i4 2 4"},
    "F.multilabel_margin_loss(x, y, reduction='sum')": {"x": "4", "y": "= 3 0 -1 1"},
    "F.multilabel_soft_margin_loss(x, y)": MARKS,
    "F.multilabel_soft_margin_loss(x, y, w, reduction='none')": {**MARKS, "w": "c 4"},
    "F.gaussian_nll_loss(x, y, z)": {**PAIR, "z": "p 3 4"},
    "F.gaussian_nll_loss(x, y, z, full=True, reduction='sum')": {**PAIR, "z": "p 3"},
    "F.gaussian_nll_loss(x, y, z, eps=0.5, reduction='none')": {**PAIR, "z": "c 3 1"},
    "F.poisson_nll_loss(x, y)": {"x": "3 4", "y": "p 3 4"},
    "F.poisson_nll_loss(x, y * 5, full=True)": {"x": "3 4", "y": "p 3 4"},
    "F.poisson_nll_loss(x, y, log_input=False, reduction='sum')": {"x": "p 3 4", "y": "p 3 4"},
    "F.ctc_loss(F.log_softmax(x, 2), y, l, n)": {"x": "6 2 4", "y": "= 1 2 2 3 1", "l": "= 6 5", "n": "= 3 2"},
    "F.ctc_loss(F.log_softmax(x, 2), y % 3, l, n, blank=3, reduction='none')": {
        "x": "6 2 4",
        "y": "i3 2 3",
        "l": "= 6 4",
        "n": "= 3 0",
    },
    "F.ctc_loss(F.log_softmax(x, 2), y, (3, 6), (3, 2), reduction='sum', zero_infinity=True)": {
        "x": "6 2 4",
        "y": "= 2 2 2 1 1",
    },
    "F.ctc_loss(F.log_softmax(x, 1), y, (6,), (2,))": {"x": "6 4", "y": "= 1 3"},
}

FUNCTIONS = {
    **ACTIVATIONS, **PADDING, **REARRANGING, **RESAMPLING, **POOLING, **NORMS, **DISTANCES, **LINEAR, **LOSSES,
}  # fmt: skip
