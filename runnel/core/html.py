"""Render small pieces of HTML without scripts for notebooks; all text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

_LONGEST = 100_000  # letters of a text


def escape(text: str) -> str:
    """Text as it is written in HTML, in attributes, too. (Python's own module would be imported with the package.)"""
    for letter, name in (("&", "amp"), ("<", "lt"), (">", "gt"), ('"', "quot"), ("'", "#x27")):
        text = text.replace(letter, f"&{name};")
    return text


def pre(text: str, caption: str = "") -> str:
    """Text as it is, with a line above it."""
    head = f"<div><code>{escape(caption)}</code></div>" if caption else ""
    cut = text if len(text) <= _LONGEST else text[:_LONGEST] + "\n…"
    return f"{head}<pre>{escape(cut)}</pre>"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows of cells under their heads."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def folded(title: str, content: str, is_open: bool = True) -> str:
    """Return a title with content that can be folded. ``content`` is HTML."""
    return f"<details{' open' if is_open else ''}><summary><code>{escape(title)}</code></summary>{content}</details>"


_SHOWN = 200  # elements of an array that is written in full


def tensor_html(tensor: Any) -> str:
    """Return ``_repr_html_`` of a tensor: its dtype, shape and values, abridged if it is large."""
    extra = ", requires_grad=True" if tensor.requires_grad else ""
    caption = f"Tensor {tensor.dtype.name}{list(tensor.shape)}{extra}"
    if tensor.is_traced:
        return pre("without values: it is traced", caption)
    return pre(np.array2string(tensor.numpy(), separator=", ", threshold=_SHOWN), caption)


def variable_html(variable: Any) -> str:
    """Return ``_repr_html_`` of a Variable: its name and its value."""
    return folded(f"{type(variable).__name__} '{variable.name}'", variable.read().without_tape()._repr_html_())
