"""Transformer encoders and decoders with PyTorch's arguments and names; state dicts are interchangeable."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar

from runnel import ops
from runnel.core.dtypes import Dtype
from runnel.nn import init
from runnel.nn.attention import MultiheadAttention
from runnel.nn.containers import ModuleList
from runnel.nn.dropout import Dropout
from runnel.nn.linear import Linear
from runnel.nn.module import Module
from runnel.nn.normalization import LayerNorm
from runnel.nn.parameter import Parameter, parameter_dtype
from runnel.tensor.creation import full
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable

Activation = str | Callable[[Any], Any]


def _activation(activation: Activation) -> Callable[[Any], Any]:
    if callable(activation):
        return activation
    known: dict[str, Callable[[Any], Any]] = {"relu": ops.relu, "gelu": ops.gelu}
    if activation not in known:
        raise ValueError(
            f"[transformer] activation must be a function, {' or '.join(map(repr, known))}; got {activation!r}."
        )
    return known[activation]


def copied(module: Module) -> Any:
    """Return a copy of ``module`` with separate Parameters of the same values."""
    memo: dict[int, Any] = {}
    for variable in _variables(module):
        value = variable.numpy().copy()
        if isinstance(variable, Parameter):
            new: Variable = Parameter(value, variable.requires_grad, dtype=variable.dtype, device=variable.device)
        else:
            new = Variable(value, device=variable.device)
        memo[id(variable)] = new
    return copy.deepcopy(module, memo)


def _variables(module: Module) -> list[Variable]:
    own = [x for x in vars(module).values() if isinstance(x, Variable)]
    return own + [v for child in module.children() for v in _variables(child)]


def _present(**lengths: Any) -> dict[str, Any]:
    """Return the arguments that are not None, since custom layers may not accept lengths."""
    return {name: x for name, x in lengths.items() if x is not None}


class _Block(Module):
    """The base of encoder and decoder layers: attention, and a feed-forward network, each with a normalization."""

    attentions: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        dtype: Dtype = None,
    ) -> None:
        kind = parameter_dtype(dtype)
        for name in self.attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, dtype=kind))
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype=kind)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype=kind)
        self.activation = _activation(activation)
        self.norm_first = norm_first
        parts = range(1, len(self.attentions) + 2)
        for i in parts:
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=kind))
        for i in parts:
            setattr(self, f"dropout{i}", Dropout(dropout))

    def _feed_forward(self, x: Any) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _around(self, x: Any, norm: Module, part: Callable[[Any], Any]) -> Any:
        """Return x + part(x), with the normalization before the part or after the sum."""
        return x + part(norm(x)) if self.norm_first else norm(x + part(x))


class TransformerEncoderLayer(_Block):
    """Apply self-attention and a feed-forward network, each added to its input and normalized.

    A. Vaswani et al., "Attention is all you need", 2017.

    Args:
        d_model: number of features.
        nhead: number of heads, which divides ``d_model``.
        dim_feedforward: number of features inside the feed-forward network.
        dropout: the probability with which elements are set to 0 in training mode.
        activation: "relu", "gelu" or a function, for the feed-forward network.
        layer_norm_eps: a small number that is added to the variance in layer normalizations.
        batch_first: inputs and results have the batch as first axis.
        norm_first: normalize before each part instead of after adding it (R. Xiong et al., "On layer normalization in
            the transformer architecture", 2020).
        bias: whether projections and normalizations have a bias.
        dtype: the dtype of the Parameters; float32 by default.

    Shape:
        input and output ``(T, N, d_model)``, or with ``batch_first`` ``(N, T, d_model)``.

    Example:
        >>> layer = nn.TransformerEncoderLayer(64, 8, dim_feedforward=128, batch_first=True)
        >>> layer(rn.ones((2, 10, 64))).shape
        (2, 10, 64)
    """

    attentions = ("self_attn",)

    def forward(
        self,
        src: Any,
        src_mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
        *,
        lengths: Any = None,
    ) -> Any:
        """Return the result for ``src``.

        Args:
            src: the sequences.
            src_mask: a mask as ``attn_mask`` of :class:`MultiheadAttention`.
            src_key_padding_mask: a mask as ``key_padding_mask`` of :class:`MultiheadAttention`.
            is_causal: each position only attends to itself and earlier ones.
            lengths: the length of each sequence, shape (N,); faster than a ``src_key_padding_mask``.
        """

        def attend(x: Any) -> Any:
            attended, _ = self.self_attn(
                x, x, x,
                key_padding_mask=src_key_padding_mask, need_weights=False, attn_mask=src_mask, is_causal=is_causal,
                lengths=lengths,
            )  # fmt: skip
            return self.dropout1(attended)

        x = self._around(src, self.norm1, attend)
        return self._around(x, self.norm2, lambda y: self.dropout2(self._feed_forward(y)))


class TransformerDecoderLayer(_Block):
    """Apply self-attention, attention to the result of an encoder, and a feed-forward network.

    It takes the arguments of :class:`TransformerEncoderLayer`.

    Shape:
        tgt and output ``(T, N, d_model)``; memory ``(S, N, d_model)``. With ``batch_first`` N comes first.
    """

    attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
        *,
        tgt_lengths: Any = None,
        memory_lengths: Any = None,
    ) -> Any:
        """Return the result for ``tgt`` and ``memory``.

        Masks are as in :class:`MultiheadAttention`. ``tgt_lengths`` and ``memory_lengths`` are the length of each
        sequence, shape (N,); they are faster than key padding masks.
        """

        def attend(x: Any) -> Any:
            attended, _ = self.self_attn(
                x, x, x,
                key_padding_mask=tgt_key_padding_mask, need_weights=False, attn_mask=tgt_mask, is_causal=tgt_is_causal,
                lengths=tgt_lengths,
            )  # fmt: skip
            return self.dropout1(attended)

        def attend_memory(x: Any) -> Any:
            attended, _ = self.multihead_attn(
                x, memory, memory,
                key_padding_mask=memory_key_padding_mask, need_weights=False, attn_mask=memory_mask,
                is_causal=memory_is_causal, lengths=memory_lengths,
            )  # fmt: skip
            return self.dropout2(attended)

        x = self._around(tgt, self.norm1, attend)
        x = self._around(x, self.norm2, attend_memory)
        return self._around(x, self.norm3, lambda y: self.dropout3(self._feed_forward(y)))


class TransformerEncoder(Module):
    """Apply copies of an encoder layer one after the other.

    Args:
        encoder_layer: the layer to copy.
        num_layers: number of copies.
        norm: a module to apply at the end.
        enable_nested_tensor: has no effect.
        mask_check: has no effect.

    Example:
        >>> layer = nn.TransformerEncoderLayer(64, 8, batch_first=True)
        >>> nn.TransformerEncoder(layer, num_layers=2)(rn.ones((2, 10, 64))).shape
        (2, 10, 64)
    """

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        self.layers = ModuleList([copied(encoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        src: Any,
        mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
        *,
        lengths: Any = None,
    ) -> Any:
        more = _present(lengths=lengths)
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, is_causal, **more)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Apply copies of a decoder layer one after the other.

    Args:
        decoder_layer: the layer to copy.
        num_layers: number of copies.
        norm: a module to apply at the end.
    """

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None) -> None:
        self.layers = ModuleList([copied(decoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
        *,
        tgt_lengths: Any = None,
        memory_lengths: Any = None,
    ) -> Any:
        more = _present(tgt_lengths=tgt_lengths, memory_lengths=memory_lengths)
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                tgt_is_causal, memory_is_causal, **more,
            )  # fmt: skip
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Apply an encoder and a decoder, with a normalization at the end of each. Add positional encodings yourself.

    Args:
        d_model: number of features.
        nhead: number of heads, which divides ``d_model``.
        num_encoder_layers: number of encoder layers.
        num_decoder_layers: number of decoder layers.
        dim_feedforward: number of features inside the feed-forward networks.
        dropout: the probability with which elements are set to 0 in training mode.
        activation: "relu", "gelu" or a function, for the feed-forward networks.
        custom_encoder: a module to use instead of the encoder.
        custom_decoder: a module to use instead of the decoder.
        layer_norm_eps: a small number that is added to the variance in layer normalizations.
        batch_first: inputs and results have the batch as first axis.
        norm_first: normalize before each part instead of after adding it.
        bias: whether projections and normalizations have a bias.
        dtype: the dtype of the Parameters; float32 by default.

    Shape:
        src ``(S, N, d_model)``; tgt and output ``(T, N, d_model)``. With ``batch_first`` N comes first.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        dtype: Dtype = None,
    ) -> None:
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        common = (*sizes, batch_first, norm_first, bias)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)

        if custom_encoder is None:
            custom_encoder = TransformerEncoder(
                TransformerEncoderLayer(*common, dtype=dtype), num_encoder_layers, norm()
            )
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(
                TransformerDecoderLayer(*common, dtype=dtype), num_decoder_layers, norm()
            )
        self.encoder = custom_encoder
        self.decoder = custom_decoder
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool = False,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
        *,
        src_lengths: Any = None,
        tgt_lengths: Any = None,
        memory_lengths: Any = None,
    ) -> Any:
        """Return the decoder's result for ``tgt``, given ``src``.

        Masks are as in :class:`MultiheadAttention`. Lengths are the length of each sequence, shape (N,); they are
        faster than key padding masks.
        """
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal, **_present(lengths=src_lengths))
        return self.decoder(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
            tgt_is_causal, memory_is_causal, **_present(tgt_lengths=tgt_lengths, memory_lengths=memory_lengths),
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, dtype: Dtype = None) -> Tensor:
        """Return a mask that hides later positions: -inf above the diagonal and 0 elsewhere."""
        hidden = full((sz, sz), float("-inf"), parameter_dtype(dtype))
        rows, columns = ops.iota(hidden, (sz, sz), axis=0), ops.iota(hidden, (sz, sz), axis=1)
        mask: Tensor = ops.where(ops.greater(columns, rows), hidden, 0)
        return mask
