"""einops's layers as modules: ``Rearrange``, ``Reduce`` and ``EinMix``, with its arguments and parameter names."""

from __future__ import annotations

from einops.layers import RearrangeMixin, ReduceMixin
from einops.layers._einmix import _EinmixMixin

from runnel import nn
from runnel.ops.linear_algebra.products import einsum
from runnel.tensor.creation import empty
from runnel.tensor.tensor import Tensor


class Rearrange(RearrangeMixin, nn.Module):  # type: ignore[misc]
    """``rearrange`` with a fixed pattern."""

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self._apply_recipe(x)
        return result


class Reduce(ReduceMixin, nn.Module):  # type: ignore[misc]
    """``reduce`` with a fixed pattern."""

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self._apply_recipe(x)
        return result


class EinMix(_EinmixMixin, nn.Module):  # type: ignore[misc]
    """An einsum of its argument and a learned weight, with axes split before and joined after it."""

    def _create_parameters(
        self, weight_shape: list[int], weight_bound: float, bias_shape: list[int] | None, bias_bound: float
    ) -> None:
        self.weight = nn.Parameter(empty(tuple(weight_shape)))
        nn.init.uniform_(self.weight, -weight_bound, weight_bound)
        self.bias = None
        if bias_shape is not None:
            self.bias = nn.Parameter(empty(tuple(bias_shape)))
            nn.init.uniform_(self.bias, -bias_bound, bias_bound)

    def _create_rearrange_layers(
        self,
        pre_reshape_pattern: str | None,
        pre_reshape_lengths: dict[str, int] | None,
        post_reshape_pattern: str | None,
        post_reshape_lengths: dict[str, int] | None,
    ) -> None:
        self.pre_rearrange = _rearrangement(pre_reshape_pattern, pre_reshape_lengths)
        self.post_rearrange = _rearrangement(post_reshape_pattern, post_reshape_lengths)

    def forward(self, x: Tensor) -> Tensor:
        if self.pre_rearrange is not None:
            x = self.pre_rearrange(x)
        result = einsum(self.einsum_pattern, x, self.weight)
        if self.bias is not None:
            result = result + self.bias
        return result if self.post_rearrange is None else self.post_rearrange(result)


def _rearrangement(pattern: str | None, lengths: dict[str, int] | None) -> Rearrange | None:
    return None if pattern is None else Rearrange(pattern, **(lengths or {}))
