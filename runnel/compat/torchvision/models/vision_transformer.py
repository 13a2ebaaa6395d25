"""The vision transformer: patches of an image as tokens."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from runnel import nn
from runnel.compat.torchvision.models.weights import constructor
from runnel.compat.torchvision.ops.misc import MLP
from runnel.ops.shapes.pieces import concat
from runnel.tensor.creation import zeros

Layer = Callable[..., nn.Module]


class MLPBlock(MLP):
    """The two linear layers of a block."""

    def __init__(self, in_dim: int, mlp_dim: int, dropout: float) -> None:
        super().__init__(in_dim, [mlp_dim, in_dim], activation_layer=nn.GELU, inplace=None, dropout=dropout)
        for module in self.modules():
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.xavier_uniform_(module.weight)
                nn.init.normal_(module.bias, std=1e-6)


class EncoderBlock(nn.Module):
    """Attention and an MLP, each after a normalization and added to its input."""

    def __init__(
        self,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        attention_dropout: float,
        norm_layer: Layer = partial(nn.LayerNorm, eps=1e-6),  # noqa: B008
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.ln_1 = norm_layer(hidden_dim)
        self.self_attention = nn.MultiheadAttention(hidden_dim, num_heads, dropout=attention_dropout, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = norm_layer(hidden_dim)
        self.mlp = MLPBlock(hidden_dim, mlp_dim, dropout)

    def forward(self, input: Any) -> Any:
        x = self.ln_1(input)
        x, _ = self.self_attention(x, x, x, need_weights=False)
        x = self.dropout(x) + input
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    """Blocks over tokens with learned positions."""

    def __init__(
        self,
        seq_length: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        attention_dropout: float,
        norm_layer: Layer = partial(nn.LayerNorm, eps=1e-6),  # noqa: B008
    ) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(zeros((1, seq_length, hidden_dim)))
        nn.init.normal_(self.pos_embedding, std=0.02)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.Sequential()
        for i in range(num_layers):
            block = EncoderBlock(num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer)
            self.layers.add_module(f"encoder_layer_{i}", block)
        self.ln = norm_layer(hidden_dim)

    def forward(self, input: Any) -> Any:
        return self.ln(self.layers(self.dropout(input + self.pos_embedding)))


class VisionTransformer(nn.Module):
    """A. Dosovitskiy et al., "An image is worth 16x16 words", 2021."""

    def __init__(
        self,
        image_size: int,
        patch_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        num_classes: int = 1000,
        representation_size: int | None = None,
        norm_layer: Layer = partial(nn.LayerNorm, eps=1e-6),  # noqa: B008
    ) -> None:
        super().__init__()
        if image_size % patch_size:
            raise ValueError(
                f"[VisionTransformer] image_size must be divisible by patch_size; got {image_size} and {patch_size}."
            )
        self.image_size, self.patch_size, self.hidden_dim = image_size, patch_size, hidden_dim
        self.num_classes, self.representation_size = num_classes, representation_size
        self.conv_proj = nn.Conv2d(3, hidden_dim, patch_size, patch_size)
        self.seq_length = (image_size // patch_size) ** 2 + 1
        self.class_token = nn.Parameter(zeros((1, 1, hidden_dim)))
        self.encoder = Encoder(
            self.seq_length, num_layers, num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer
        )
        self.heads = nn.Sequential()
        if representation_size is not None:
            self.heads.add_module("pre_logits", nn.Linear(hidden_dim, representation_size))
            self.heads.add_module("act", nn.Tanh())
            nn.init.trunc_normal_(self.heads.pre_logits.weight, std=math.sqrt(1 / hidden_dim))
            nn.init.zeros_(self.heads.pre_logits.bias)
        self.heads.add_module("head", nn.Linear(representation_size or hidden_dim, num_classes))
        nn.init.zeros_(self.heads.head.weight)
        nn.init.zeros_(self.heads.head.bias)
        nn.init.trunc_normal_(self.conv_proj.weight, std=math.sqrt(1 / (3 * patch_size**2)))
        if self.conv_proj.bias is not None:
            nn.init.zeros_(self.conv_proj.bias)

    def forward(self, x: Any) -> Any:
        if tuple(x.shape[2:]) != (self.image_size, self.image_size):
            raise ValueError(
                f"[VisionTransformer] images must have {self.image_size} rows and columns; got {x.shape[2:]}."
            )
        x = self.conv_proj(x).flatten(2).permute(0, 2, 1)
        x = concat([self.class_token.expand(x.shape[0], -1, -1), x], axis=1)
        return self.heads(self.encoder(x)[:, 0])


# pixels of a patch, layers, heads, width, width inside the MLPs
_SIZES = {
    "vit_b_16": (16, 12, 12, 768, 3072),
    "vit_b_32": (32, 12, 12, 768, 3072),
    "vit_l_16": (16, 24, 16, 1024, 4096),
    "vit_l_32": (32, 24, 16, 1024, 4096),
    "vit_h_14": (14, 32, 16, 1280, 5120),
}


def _build(name: str, image_size: int = 224, **options: Any) -> VisionTransformer:
    return VisionTransformer(image_size, *_SIZES[name], **options)


vit_b_16, vit_b_32, vit_l_16, vit_l_32, vit_h_14 = (constructor(name, _build) for name in _SIZES)
