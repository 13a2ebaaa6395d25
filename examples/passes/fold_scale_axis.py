"""Scales of channels become part of the filters of a convolution.

conv(x, w)·s, with a number for each channel of the result, becomes conv(x, w·s), and conv(x·s, w), with one for each
channel of the input, becomes conv(x, w·s), too. w·s depends on Variables alone where s does, so that a program prepares
it once. It is rounded otherwise, so a program with this pass gives other bits than eager code.

    passes.USUAL.insert(FOLD_SCALE_AXIS, before="decompose")
"""

from __future__ import annotations

import math
from typing import Any

import runnel as rn
from runnel import passes
from runnel.passes import anything, applied

CHANNELS_LAST = (0, 2, 3, 1)

x, w, scale = anything("x"), anything("w"), anything("scale")
convolution = applied("convolution", x, w, groups=1, called="convolution")
moved = applied("permute", convolution, axes=CHANNELS_LAST, called="moved")


def is_vector(axis: int) -> Any:
    """A condition: ``scale`` depends on the place along this axis only."""

    def condition(scale: passes.Value, **rest: passes.Value) -> bool:
        source = scale.inputs[0] if scale.op is passes.op("broadcast") else scale
        return source.aval.ndim == 4 and source.aval.size == source.aval.shape[axis] == scale.aval.shape[axis]

    return condition


def vector(scale: Any) -> Any:
    """The elements of ``scale``: without the copies that a broadcast makes."""
    source = scale.value.inputs[0] if scale.value.op is passes.op("broadcast") else scale.value
    plain = passes.Written(source, scale.line)
    return plain.reshape((math.prod(plain.shape),))


def of_results(x: Any, w: Any, scale: Any, convolution: Any, moved: Any = None) -> Any:
    result = convolution.again(x, w * vector(scale).reshape((-1, 1, 1, 1)))
    return result if moved is None else rn.permute(result, CHANNELS_LAST)


def of_inputs(x: Any, w: Any, scale: Any, convolution: Any) -> Any:
    return convolution.again(x, w * vector(scale).reshape((1, -1, 1, 1)))


FOLD_SCALE_AXIS = passes.rewriting(
    "fold_scale_axis",
    "scales of channels become part of a convolution's filters",
    passes.Rule(applied("mul", moved, scale, any_order=True), of_results, when=is_vector(3)),
    passes.Rule(applied("mul", convolution, scale, any_order=True), of_results, when=is_vector(1)),
    passes.Rule(
        applied("convolution", applied("mul", x, scale, any_order=True), w, groups=1, called="convolution"),
        of_inputs,
        when=is_vector(1),
    ),
)
