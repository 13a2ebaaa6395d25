"""Layers: the expression that makes one, the arrays it is called with, and how."""

from __future__ import annotations

from typing import Any

ROWS, LINE, PLANE, SPACE = {"x": "3 4"}, {"x": "2 4 6"}, {"x": "2 4 5 6"}, {"x": "1 4 3 4 4"}
STEPS = {"x": "5 2 4"}
EVAL = {"train": False}


def case(inputs: dict[str, str], call: str = "m(x)", **options: Any) -> dict[str, Any]:
    return {"inputs": inputs, "call": call, **options}


def each(inputs: dict[str, str], text: str, call: str = "m(x)", **options: Any) -> dict[str, dict[str, Any]]:
    """The same for each line of ``text``."""
    return {line.strip(): case(inputs, call, **options) for line in text.strip().splitlines()}


TWO, THREE = "m(x, y)", "m(x, y, z)"
PAIR = {"x": "3 4", "y": "3 4"}

LAYERS: dict[str, dict[str, Any]] = {
    **each(
        ROWS,
        """
        nn.CELU(0.7)
        nn.ELU(alpha=1.2)
        nn.GELU('tanh')
        nn.GLU()
        nn.Hardshrink(0.3)
        nn.Hardsigmoid()
        nn.Hardswish()
        nn.Hardtanh(-0.5, 0.2)
        nn.Identity(54, unused=2)
        nn.LeakyReLU(0.2)
        nn.LogSigmoid()
        nn.LogSoftmax(dim=1)
        nn.Mish()
        nn.PReLU()
        nn.PReLU(4)
        nn.ReLU()
        nn.ReLU6()
        nn.SELU()
        nn.SiLU()
        nn.Sigmoid()
        nn.Softmax(dim=0)
        nn.Softmin(dim=1)
        nn.Softplus(2.0, 1.0)
        nn.Softshrink(0.2)
        nn.Softsign()
        nn.Tanh()
        nn.Tanhshrink()
        nn.Threshold(0.1, -2.0)
        nn.Linear(4, 3)
        nn.Linear(4, 3, bias=False)
        nn.LayerNorm(4)
        nn.LayerNorm((3, 4), eps=0.1, bias=False)
        nn.LayerNorm(4, elementwise_affine=False)
        nn.RMSNorm(4)
        nn.RMSNorm([3, 4], eps=0.1)
        nn.RMSNorm(4, elementwise_affine=False)
        nn.BatchNorm1d(4, momentum=None, bias=False)
        nn.BatchNorm1d(4, affine=False, track_running_stats=False)
        nn.Unflatten(1, (2, 2))
        nn.ConstantPad1d(2, 1.5)
        nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
        nn.utils.weight_norm(nn.Linear(4, 3))
        nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
        nn.utils.parametrizations.weight_norm(nn.Linear(4, 3), dim=None)
        nn.utils.prune.custom_from_mask(nn.Linear(4, 2), 'weight', torch.tensor([[1, 0, 1, 1], [0, 0, 1, 1]]))
        """,
    ),
    **each(ROWS, "nn.BatchNorm1d(4, momentum=0.3)", **EVAL),
    **each(ROWS, "nn.utils.spectral_norm(nn.Linear(4, 3))", **EVAL),
    **each(ROWS, "nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3))", **EVAL),
    **each({"x": "3 4"}, "nn.utils.spectral_norm(nn.Linear(4, 3, bias=False))"),
    **each({"x": "3 4"}, "nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3, bias=False))"),
    **each(ROWS, "nn.RReLU()", **EVAL),
    **each(
        LINE,
        """
        nn.Conv1d(4, 6, 3, padding=1)
        nn.Conv1d(4, 6, 3, groups=2, padding_mode='reflect', padding=2)
        nn.Conv1d(4, 6, 3, stride=2, padding=1)
        nn.ConvTranspose1d(4, 2, 3, stride=2, output_padding=1)
        nn.BatchNorm1d(4)
        nn.InstanceNorm1d(4)
        nn.InstanceNorm1d(4, affine=True, track_running_stats=True)
        nn.GroupNorm(2, 4)
        nn.GroupNorm(2, 4, affine=False)
        nn.GroupNorm(2, 4, bias=False)
        nn.LocalResponseNorm(3)
        nn.AvgPool1d(2)
        nn.MaxPool1d(2, return_indices=True)
        nn.MaxPool1d(3, 1)
        nn.LPPool1d(2, 3)
        nn.AdaptiveAvgPool1d(4)
        nn.AdaptiveMaxPool1d(4, return_indices=True)
        nn.ZeroPad1d((1, 2))
        nn.ReflectionPad1d(2)
        nn.ReplicationPad1d((1, 3))
        nn.CircularPad1d(2)
        nn.Upsample(scale_factor=2)
        nn.Upsample(9, mode='linear', align_corners=True)
        nn.Flatten()
        nn.ChannelShuffle(2)
        """,
    ),
    **each({"x": "4 6"}, "nn.InstanceNorm1d(4, affine=True)"),
    **each(
        PLANE,
        """
        nn.BatchNorm2d(4, momentum=None)
        nn.BatchNorm2d(4, momentum=0.2)
        nn.InstanceNorm2d(4, affine=True, track_running_stats=True)
        """,
        "m(m(x) * 2 + 1)",
    ),
    **each(PLANE, "nn.InstanceNorm2d(4, track_running_stats=True)", **EVAL),
    **each({"x": "2 4 5"}, "nn.BatchNorm1d(4, momentum=0.1)"),
    **each(
        PLANE,
        """
        nn.Conv2d(4, 6, 3, padding='same')
        nn.Conv2d(4, 6, (3, 2), stride=2, dilation=(1, 2), bias=False)
        nn.Conv2d(4, 6, 3, padding='same', dilation=2, groups=2)
        nn.Conv2d(4, 8, (2, 3), groups=4, bias=False)
        nn.Conv2d(4, 3, 3, padding=(1, 2), padding_mode='reflect')
        nn.Conv2d(4, 3, 3, padding=(1, 2), padding_mode='replicate')
        nn.Conv2d(4, 3, 3, padding=(1, 2), padding_mode='circular')
        nn.ConvTranspose2d(4, 2, 3, padding=1)
        nn.ConvTranspose2d(4, 6, 3, stride=(2, 3), padding=1, output_padding=(1, 0), groups=2)
        nn.BatchNorm2d(4)
        nn.InstanceNorm2d(4, affine=True, bias=False)
        nn.AvgPool2d(3, 2, 1, count_include_pad=False)
        nn.MaxPool2d(2, 2, ceil_mode=True)
        nn.MaxPool2d(3, 2, padding=1)
        nn.MaxPool2d(2, return_indices=True)
        nn.LPPool2d(2, 2)
        nn.AdaptiveAvgPool2d((2, None))
        nn.AdaptiveMaxPool2d(3)
        nn.AdaptiveMaxPool2d((None, 4))
        nn.ZeroPad2d((1, 2, 0, 1))
        nn.ConstantPad2d(1, 0.5)
        nn.ReflectionPad2d(2)
        nn.ReplicationPad2d((1, 0, 2, 1))
        nn.CircularPad2d(1)
        nn.PixelShuffle(2)
        nn.Softmax2d()
        nn.Unfold(2)
        nn.UpsamplingNearest2d(scale_factor=2)
        nn.UpsamplingBilinear2d((4, 7))
        nn.LocalResponseNorm(2)
        """,
    ),
    **each({"x": "1 2 4 4"}, "nn.PixelUnshuffle(2)"),
    **each({"x": "1 8 6"}, "nn.Fold((3, 4), 2)"),
    **each({"x": "1 2 4 4"}, "nn.MaxUnpool2d(2)", "m(*nn.MaxPool2d(2, return_indices=True)(x))"),
    **each({"x": "1 2 6"}, "nn.MaxUnpool1d(2)", "m(*nn.MaxPool1d(2, return_indices=True)(x))"),
    **each({"x": "1 2 4 4 2"}, "nn.MaxUnpool3d(2)", "m(*nn.MaxPool3d(2, return_indices=True)(x))"),
    **each(
        SPACE,
        """
        nn.Conv3d(4, 2, 2)
        nn.Conv3d(4, 3, 2, padding=(0, 1, 0))
        nn.ConvTranspose3d(4, 2, 2)
        nn.BatchNorm3d(4)
        nn.InstanceNorm3d(4)
        nn.AvgPool3d(2)
        nn.MaxPool3d(2)
        nn.LPPool3d(2, 2)
        nn.AdaptiveAvgPool3d(2)
        nn.AdaptiveMaxPool3d(2, return_indices=True)
        nn.ZeroPad3d(1)
        nn.ConstantPad3d(1, 0.5)
        nn.ReflectionPad3d(1)
        nn.ReplicationPad3d(1)
        nn.CircularPad3d(1)
        """,
    ),
    **each(
        {"x": "= 0 2 2 4"},
        """
        nn.Embedding(5, 3)
        nn.Embedding(5, 3, padding_idx=2)
        nn.Embedding(5, 3, max_norm=1.0)
        nn.Embedding(5, 3, max_norm=1.0, norm_type=1.0, scale_grad_by_freq=True)
        """,
    ),
    **each({"x": "= 0 2 2 4", "o": "= 0 1"}, "nn.EmbeddingBag(5, 3)", "m(x, o)"),
    **each({"x": "i5 2 3"}, "nn.EmbeddingBag(5, 3, mode='max', padding_idx=1)"),
    **each(
        {"x": "i5 3 4"},
        """
        nn.EmbeddingBag(5, 3, mode='sum')
        nn.EmbeddingBag(5, 3, mode='sum', padding_idx=0)
        nn.EmbeddingBag(5, 3, padding_idx=0)
        nn.EmbeddingBag(5, 3, mode='max')
        """,
    ),
    **each({"x": "= 1 2 0 3 5 4", "o": "= 0 2 5 5"}, "nn.EmbeddingBag(6, 3, mode='sum', padding_idx=5)", "m(x, o)"),
    **each({"x": "= 1 2 0 3 5 4", "o": "= 0 2 5 5"}, "nn.EmbeddingBag(6, 3, padding_idx=5)", "m(x, o)"),
    **each(PAIR, "nn.Bilinear(4, 4, 2)", TWO),
    **each(PAIR, "nn.Bilinear(4, 4, 2, bias=False)", TWO),
    **each(PAIR, "nn.CosineSimilarity(eps=0.1)", TWO),
    **each(PAIR, "nn.PairwiseDistance(p=1.0, keepdim=True)", TWO),
    **each(
        STEPS,
        """
        nn.RNN(4, 3, 2)
        nn.RNN(4, 3, nonlinearity='relu', bidirectional=True)
        nn.GRU(4, 3, bias=False)
        nn.LSTM(4, 3, 2, bidirectional=True)
        nn.LSTM(4, 3, 2, proj_size=2)
        nn.LSTM(4, 3, bidirectional=True, proj_size=2, batch_first=True)
        nn.TransformerEncoderLayer(4, 2, 8, 0.0)
        nn.TransformerEncoderLayer(4, 2, 8, 0.0, activation='gelu', norm_first=True, batch_first=True)
        """,
    ),
    **each(
        {"x": "5 4"},
        """
        nn.RNN(4, 3)
        nn.GRU(4, 3)
        nn.LSTM(4, 3)
        nn.GRUCell(4, 3, bias=False)
        """,
    ),
    **each({"x": "2 5 4", "h": "2 2 3"}, "nn.RNN(4, 3, 2, batch_first=True)", "m(x, h)"),
    **each({"x": "5 2 4", "h": "4 2 3"}, "nn.GRU(4, 3, 2, bidirectional=True)", "m(x, h)"),
    **each({"x": "5 2 4", "h": "2 2 3", "c": "2 2 3"}, "nn.LSTM(4, 3, 2, bias=False)", "m(x, (h, c))"),
    **each(
        {"x": "5 3 4"},
        """
        nn.RNN(4, 3, bidirectional=True)
        nn.GRU(4, 3, 2)
        nn.LSTM(4, 3, 2, bidirectional=True, bias=False)
        """,
        "m(nn.utils.rnn.pack_padded_sequence(x, [5, 3, 3]))",
    ),
    **each(
        {"x": "3 5 4", "h": "2 3 3"},
        "nn.GRU(4, 3, bidirectional=True)",
        "m(nn.utils.rnn.pack_padded_sequence(x, [2, 5, 3], batch_first=True, enforce_sorted=False), h)",
    ),
    **each({"x": "3 4", "h": "3 3"}, "nn.RNNCell(4, 3)", "m(x, h)"),
    **each({"x": "3 4", "h": "3 3"}, "nn.GRUCell(4, 3)", "m(x, h)"),
    **each({"x": "3 4", "h": "3 3", "c": "3 3"}, "nn.LSTMCell(4, 3)", "m(x, (h, c))"),
    **each({"x": "3 2 4"}, "nn.MultiheadAttention(4, 2)", "m(x, x, x, need_weights=True)"),
    **each(
        {"x": "3 2 4"},
        "nn.MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True)",
        "m(x, x, x, need_weights=True)",
    ),
    **each(
        {"x": "3 2 4", "y": "5 2 4", "k": "b 2 5", "b": "3 5"},
        "nn.MultiheadAttention(4, 2, add_zero_attn=True, bias=False)",
        "m(x, y, y, k, True, b)",
    ),
    **each(
        {"x": "2 3 4", "y": "2 5 6", "z": "2 5 3"},
        "nn.MultiheadAttention(4, 2, add_bias_kv=True, kdim=6, vdim=3, batch_first=True)",
        "m(x, y, z, need_weights=False)",
    ),
    **each({"x": "3 2 4", "y": "4 2 4"}, "nn.TransformerDecoderLayer(4, 2, 8, 0.0)", TWO),
    **each(
        {"x": "3 2 4", "y": "5 2 4", "k": "b 2 5", "b": "3 5"},
        "nn.MultiheadAttention(4, 2, dropout=0.0)",
        "m(x, y, y, k, attn_mask=b, average_attn_weights=False)",
    ),
    **each(
        {"x": "2 6 4", "k": "b 2 6"},
        "nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0, 'gelu', batch_first=True), 2, nn.LayerNorm(4))",
        "m(x, src_key_padding_mask=k)",
    ),
    **each(
        {"x": "5 2 4", "y": "4 2 4"},
        "nn.Transformer(4, 2, 1, 2, 8, 0.0)",
        "m(x, y, tgt_mask=nn.Transformer.generate_square_subsequent_mask(4))",
    ),
    **each({"x": "3 2 4"}, "nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0), 2, nn.LayerNorm(4))"),
    **each({"x": "3 1 4", "y": "2 1 4"}, "nn.Transformer(4, 2, 1, 1, 8, 0.0)", TWO),
    **each(
        PAIR,
        """
        nn.MSELoss()
        nn.L1Loss(reduction='sum')
        nn.SmoothL1Loss(beta=0.5)
        nn.HuberLoss(delta=0.5)
        """,
        TWO,
    ),
    **each({"x": "3 4", "y": "p 3 4"}, "nn.BCEWithLogitsLoss(torch.arange(1.0, 5), pos_weight=torch.ones(4))", TWO),
    **each({"x": "p 3 4", "y": "p 3 4"}, "nn.BCELoss()", TWO),
    **each({"x": "3 4", "y": "p 3 4"}, "nn.KLDivLoss(reduction='batchmean', log_target=True)", TWO),
    **each({"x": "3 4", "y": "p 3 4"}, "nn.PoissonNLLLoss(full=True)", TWO),
    **each({"x": "3 4", "y": "p 3 4"}, "nn.MultiLabelSoftMarginLoss(torch.arange(1.0, 5))", TWO),
    **each({"x": "3 4", "y": "s 3 4"}, "nn.HingeEmbeddingLoss(0.5)", TWO),
    **each({"x": "3 4", "y": "s 3 4"}, "nn.SoftMarginLoss()", TWO),
    **each({"x": "4 5", "y": "i5 4"}, "nn.CrossEntropyLoss(torch.arange(1.0, 6), label_smoothing=0.1)", TWO),
    **each({"x": "4 5", "y": "i5 4"}, "nn.NLLLoss(torch.arange(1.0, 6), ignore_index=2)", TWO),
    **each({"x": "4 5", "y": "i5 4"}, "nn.MultiMarginLoss(2, 0.5)", TWO),
    **each({"x": "4 5", "y": "i5 4 5"}, "nn.MultiLabelMarginLoss()", TWO),
    **each({"x": "4 6", "y": "i9 4"}, "nn.AdaptiveLogSoftmaxWithLoss(6, 9, [3, 6], 2.0, head_bias=True)", TWO),
    **each({"x": "3 4", "y": "i5 3"}, "nn.LinearCrossEntropyLoss(4, 5, bias=True)", TWO),
    **each({"x": "4", "y": "4", "z": "s 4"}, "nn.MarginRankingLoss(0.5)", THREE),
    **each({**PAIR, "z": "s 3"}, "nn.CosineEmbeddingLoss(0.2)", THREE),
    **each({**PAIR, "z": "3 4"}, "nn.TripletMarginLoss(2.0, 1.0, swap=True)", THREE),
    **each({**PAIR, "z": "3 4"}, "nn.TripletMarginWithDistanceLoss(distance_function=nn.PairwiseDistance(1.0))", THREE),
    **each({**PAIR, "z": "p 3 4"}, "nn.GaussianNLLLoss(full=True)", THREE),
    **each(
        {"x": "6 2 4", "y": "= 1 2 2 3 1", "l": "= 6 5", "n": "= 3 2"},
        "nn.CTCLoss()",
        "m(F.log_softmax(x, 2), y, l, n)",
    ),
    **each(ROWS, "nn.LazyLinear(3)"),
    **each(LINE, "nn.LazyConv1d(6, 3, groups=2)"),
    **each(PLANE, "nn.LazyConvTranspose2d(2, 3)"),
    **each(PLANE, "nn.LazyBatchNorm2d()"),
    **each(LINE, "nn.LazyInstanceNorm1d(affine=True)"),
}
