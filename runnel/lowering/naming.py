"""Kernels are named by what they do, so that equal kernels are one kernel wherever they come from."""

from __future__ import annotations

import hashlib

from runnel.loops.ir import Buffer, Kernel, Param, Stmt


def named(
    prefix: str, buffers: tuple[Buffer, ...], params: tuple[Param, ...], body: tuple[Stmt, ...], doc: str = ""
) -> Kernel:
    """A kernel called ``prefix_<digest of its contents>``."""
    digest = hashlib.sha256(repr((buffers, params, body)).encode()).hexdigest()[:16]
    return Kernel(f"{prefix}_{digest}", buffers, params, body, doc)
