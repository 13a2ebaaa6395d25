"""Functions of the table that take a ragged value or a dense batch of one row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import numpy as np

import runnel as rn
from runnel import nn
from runnel.nn import functional as F

FEATURES: Final = 6


class Record(NamedTuple):
    """``function`` of (rows, length, ``features``); ``least`` elements in a row; ``smooth``: has a gradient."""

    function: Callable[[Any], Any]
    features: tuple[int, ...] = (FEATURES,)
    least: int = 1
    smooth: bool = True


def _channels_first(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return ``function`` of dense batches with features last: PyTorch's convolutions have them before the length."""

    def called(x: Any) -> Any:
        return function(x) if isinstance(x, rn.Ragged) else function(x.transpose(1, 2)).transpose(1, 2)

    return called


def _layer(kind: Callable[..., Any], *args: Any, **options: Any) -> Any:
    rn.manual_seed(0)
    return kind(*args, **options)


ATTENTION: Final = _layer(nn.MultiheadAttention, FEATURES, 2, batch_first=True)
ENCODER: Final = _layer(nn.TransformerEncoderLayer, FEATURES, 2, 8, 0.0, batch_first=True)
PRENORM: Final = _layer(nn.TransformerEncoderLayer, FEATURES, 2, 8, 0.0, "gelu", batch_first=True, norm_first=True)
DECODER: Final = _layer(nn.TransformerDecoderLayer, FEATURES, 2, 8, 0.0, batch_first=True)
LINEAR: Final = _layer(nn.Linear, FEATURES, 4)
NORM: Final = nn.LayerNorm(FEATURES)
PRELU: Final = nn.PReLU()
GRU: Final = _layer(nn.GRU, FEATURES, 4, 2, batch_first=True, bidirectional=True)
LSTM: Final = _layer(nn.LSTM, FEATURES, 4, batch_first=True)


def _conv(**options: Any) -> Callable[[Any], Any]:
    return _channels_first(_layer(nn.Conv1d, FEATURES, 4, **options))


def _losses(x: Any) -> Any:
    if isinstance(x, rn.Ragged):
        return F.cross_entropy(x, x.argmax(-1), reduction="none").unsqueeze(-1)
    return F.cross_entropy(x[0], x[0].argmax(-1), reduction="none").reshape(1, -1, 1)


RECORDS: Final[dict[str, Record]] = {
    "add": Record(lambda x: x + 1),
    "subtract from": Record(lambda x: 1 - x),
    "multiply": Record(lambda x: x * x),
    "divide by features": Record(lambda x: x / rn.asarray(np.arange(1, FEATURES + 1, dtype=np.float32))),
    "power": Record(lambda x: x**2),
    "compare": Record(lambda x: x > 0, smooth=False),
    "negative": Record(lambda x: -x),
    "exp": Record(rn.exp),
    "tanh": Record(lambda x: x.tanh()),
    "relu": Record(nn.ReLU()),
    "gelu": Record(F.gelu),
    "silu": Record(F.silu),
    "softplus": Record(F.softplus),
    "prelu": Record(PRELU),
    "clamp": Record(lambda x: x.clamp(-0.5, 0.5)),
    "where": Record(lambda x: rn.where(x > 0, x, x * 2)),
    "half and back": Record(lambda x: x.half().float()),
    "centred rows": Record(lambda x: x - x.mean(1, keepdims=True)),
    "glu": Record(F.glu),
    "linear": Record(LINEAR),
    "sequential": Record(nn.Sequential(LINEAR, nn.Tanh(), nn.LayerNorm(4))),
    "matmul": Record(lambda x: x @ rn.asarray(np.linspace(-1, 1, 3 * FEATURES, dtype=np.float32).reshape(FEATURES, 3))),
    "layer norm": Record(NORM),
    "rms norm": Record(lambda x: F.rms_norm(x, (FEATURES,))),
    "dropout": Record(nn.Dropout(0.5).eval()),
    "softmax of features": Record(lambda x: rn.softmax(x, -1)),
    "sum of features": Record(lambda x: x.sum(-1).unsqueeze(-1)),
    "norm of features": Record(lambda x: F.normalize(x, dim=-1)),
    "running sum of features": Record(lambda x: x.cumsum(-1)),
    "largest features": Record(lambda x: x.topk(2, -1)[0]),
    "sum": Record(lambda x: rn.sum(x, 1)),
    "sum of numbers": Record(lambda x: rn.sum(x, 1), ()),
    "sum of single features": Record(lambda x: x.sum(1), (1,)),
    "mean": Record(lambda x: x.mean(1)),
    "mean of numbers": Record(lambda x: x.mean(1), ()),
    "max": Record(lambda x: rn.max(x, 1)),
    "max and place": Record(lambda x: x.max(1)[0]),
    "place of max": Record(lambda x: x.argmax(1), smooth=False),
    "min": Record(lambda x: rn.min(x, 1)),
    "place of min": Record(lambda x: x.argmin(1), smooth=False),
    "any": Record(lambda x: (x > 1).any(1), smooth=False),
    "all": Record(lambda x: (x > -1).all(1), smooth=False),
    "variance": Record(lambda x: rn.var(x, 1)),
    "deviation": Record(lambda x: x.std(1, correction=0)),
    "softmax": Record(lambda x: rn.softmax(x, 1)),
    "softmax of numbers": Record(lambda x: rn.softmax(x, 1), ()),
    "log softmax": Record(lambda x: rn.log_softmax(x, 1)),
    "log-sum-exp": Record(lambda x: rn.logsumexp(x, 1)),
    "attention pooling": Record(lambda x: (x * rn.softmax(x.sum(-1), 1).unsqueeze(-1)).sum(1)),
    "attention": Record(lambda x: ATTENTION(x, x, x, need_weights=False)[0]),
    "causal attention": Record(lambda x: ATTENTION(x, x, x, need_weights=False, is_causal=True)[0]),
    "cross attention": Record(lambda x: ATTENTION(x, x[:, 1:], x[:, 1:], need_weights=False)[0], least=2),
    "one head": Record(lambda x: F.scaled_dot_product_attention(x, x, x)),
    "encoder": Record(nn.TransformerEncoder(ENCODER, 2, NORM)),
    "encoder, normalized first": Record(PRENORM),
    "decoder": Record(lambda x: DECODER(x, x, tgt_is_causal=True)),
    "GRU": Record(lambda x: GRU(x)[0]),
    "GRU at the ends": Record(lambda x: GRU(x)[1].permute(1, 0, 2)),
    "LSTM": Record(lambda x: LSTM(x)[0]),
    "convolution": Record(_conv(kernel_size=3, padding=1)),
    "even convolution": Record(_conv(kernel_size=4, padding="same")),
    "dilated convolution": Record(_conv(kernel_size=3, padding=2, dilation=2)),
    "valid convolution": Record(_conv(kernel_size=3), least=3),
    "wide convolution": Record(_conv(kernel_size=3, padding=2)),
    "grouped convolution": Record(_conv(kernel_size=3, padding=1, groups=2)),
    "convolution with stride": Record(_conv(kernel_size=3, padding=1, stride=2)),
    "max pooling": Record(_channels_first(nn.MaxPool1d(3, 1, 1))),
    "max pooling with stride": Record(_channels_first(nn.MaxPool1d(2)), least=2),
    "average pooling": Record(_channels_first(nn.AvgPool1d(3, 1, 1))),
    "concatenate features": Record(lambda x: rn.cat([x, x * 2], -1)),
    "concatenate rows": Record(lambda x: rn.cat([x, x * 2], 1)),
    "stack": Record(lambda x: rn.stack([x, x * 2], -1)),
    "first": Record(lambda x: x[:, 0]),
    "last": Record(lambda x: x[:, -1]),
    "shifted": Record(lambda x: x[:, 1:], least=2),
    "shortened": Record(lambda x: x[:, 1:-1], least=3),
    "some features": Record(lambda x: x[..., 1:3]),
    "cross entropy": Record(_losses),
    "squared error": Record(lambda x: F.mse_loss(x, x * 0.5, reduction="none")),
}  # fmt: skip


def rows_of(record: Record, lengths: Iterable[int], rng: np.random.Generator) -> list[np.ndarray]:
    """Return random rows of these lengths, or a little longer ones if the record needs them."""
    return [rng.normal(size=(max(n, record.least), *record.features)).astype(np.float32) for n in lengths]
