"""Models of the dot instructions, in NumPy and in LLVM text: as their makers' manuals say it.

VDPBF16PS (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2) adds the product of the second
elements of the pairs, then the first ones' product, each fused and rounded to nearest; subnormal operands and results
are zeros. BFDOT (Arm Architecture Reference Manual for A-profile, functions BFDotAdd and BFAdd, without FEAT_EBF16)
adds the two products, rounded to odd, and that to the total, rounded to odd.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.backends.cpu.codegen import dot_contract
from runnel.backends.cpu.target import AVX512_BF16
from runnel.loops.formulas.computed import fused_multiply_add
from runnel.loops.ir import K_BLOCK
from tests.loops.summation import paired

Array = np.ndarray[Any, Any]

_FLUSHED = """\
  %{0}.bits = bitcast <16 x float> %{0} to <16 x i32>
  %{0}.size = and <16 x i32> %{0}.bits, splat (i32 2139095040)
  %{0}.small = icmp eq <16 x i32> %{0}.size, zeroinitializer
  %{0}.sign = and <16 x i32> %{0}.bits, splat (i32 -2147483648)
  %{0}.kept = select <16 x i1> %{0}.small, <16 x i32> %{0}.sign, <16 x i32> %{0}.bits
  %{0}.f = bitcast <16 x i32> %{0}.kept to <16 x float>
"""
_HALVES = """\
  %{0}.words = bitcast <32 x i16> %{0} to <16 x i32>
  %{0}.top = and <16 x i32> %{0}.words, splat (i32 -65536)
  %{0}.low = shl <16 x i32> %{0}.words, splat (i32 16)
  %{0}2 = bitcast <16 x i32> %{0}.top to <16 x float>
  %{0}1 = bitcast <16 x i32> %{0}.low to <16 x float>
"""
_FMA = "  %{0} = call <16 x float> @llvm.fma.v16f32(<16 x float> %{1}.f, <16 x float> %{2}.f, <16 x float> %{3}.f)\n"
_INSTRUCTION = "".join(
    [
        "declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)\n\n",
        "define internal <16 x float> @dots(<16 x float> %c, <32 x i16> %a, <32 x i16> %b) noinline nounwind {\n",
        *(_HALVES.format(x) for x in "ab"),
        *(_FLUSHED.format(x) for x in ("c", "a1", "a2", "b1", "b2")),
        _FMA.format("second", "a2", "b2", "c"),
        _FLUSHED.format("second"),
        _FMA.format("both", "a1", "b1", "second"),
        _FLUSHED.format("both"),
        "  ret <16 x float> %both.f\n}\n",
    ]
)


def without_the_instruction(blocking: dot_contract.DotBlocking | None) -> str:
    """The module for AVX512_BF16 with a function in place of the instruction: for any x86 machine that has FMA."""
    text = dot_contract.emit_module(AVX512_BF16, blocking).replace("<32 x bfloat>", "<32 x i16>")
    lines = [line for line in text.splitlines() if not line.startswith(f"declare <16 x float> @{AVX512_BF16.dot}")]
    return "\n".join([_INSTRUCTION, *lines]).replace(f"@{AVX512_BF16.dot}(", "@dots(")


def vdpbf16ps(a: Array, b: Array) -> Array:
    """The product of float32 matrices that hold bfloat16, none of them subnormal."""
    return _in_blocks(_vdpbf16ps_chains, a, b)


def _vdpbf16ps_chains(a: Array, b: Array) -> Array:
    a, b = _even(a, b)
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for p in range(0, a.shape[1], 2):
        for k in (p + 1, p):
            total = fused_multiply_add(a[:, k, None], b[None, k], total)
    return total


def bfdot(a: Array, b: Array) -> Array:
    """The same, for operands whose sums float64 holds exactly."""
    return _in_blocks(_bfdot_chains, a, b)


def _in_blocks(chains: Callable[[Array, Array], Array], a: Array, b: Array) -> Array:
    ends = range(0, max(a.shape[1], 1), K_BLOCK)
    total: Array = paired([chains(a[:, at : at + K_BLOCK], b[at : at + K_BLOCK]) for at in ends])
    return total


def _bfdot_chains(a: Array, b: Array) -> Array:
    a, b = _even(a.astype(np.float64), b.astype(np.float64))
    total = np.zeros((a.shape[0], b.shape[1]))
    for p in range(0, a.shape[1], 2):
        pair = to_odd(a[:, p, None] * b[None, p] + a[:, p + 1, None] * b[None, p + 1])
        total = to_odd(total + pair)
    return total.astype(np.float32)


def to_odd(x: Array) -> Array:
    """float64 to float32, toward zero, with the last bit set where digits are lost; as float64."""
    near = x.astype(np.float32)
    beyond = np.abs(near.astype(np.float64)) > np.abs(x)
    cut = np.where(beyond, np.nextafter(near, np.float32(0)), near)
    lost = cut.astype(np.float64) != x
    return (cut.view(np.uint32) | lost.astype(np.uint32)).view(np.float32).astype(np.float64)


def _even(a: Array, b: Array) -> tuple[Array, Array]:
    odd = a.shape[1] % 2
    return np.pad(a, ((0, 0), (0, odd))), np.pad(b, ((0, odd), (0, 0)))
