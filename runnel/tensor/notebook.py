"""Tensors and Variables as notebooks show them."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.core import html

_SHOWN = 200  # elements of an array that is written in full


def tensor_html(tensor: Any) -> str:
    """``_repr_html_`` of a tensor: its dtype, shape and values, few of a large one."""
    extra = ", requires_grad=True" if tensor.requires_grad else ""
    caption = f"Tensor {tensor.dtype.name}{list(tensor.shape)}{extra}"
    if tensor.is_traced:
        return html.pre("without values: it is traced", caption)
    return html.pre(np.array2string(tensor.numpy(), separator=", ", threshold=_SHOWN), caption)


def variable_html(variable: Any) -> str:
    """``_repr_html_`` of a Variable: its name and its value."""
    return html.folded(f"{type(variable).__name__} '{variable.name}'", variable.read().detach()._repr_html_())
