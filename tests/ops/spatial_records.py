"""Records of the ops over spatial axes: what they mean, place by place, and cases with every kind of geometry."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from runnel.core import dtypes as dt
from runnel.ops.elementwise.rows import ANY, NUMBERS


def _places(size: Any, kernel: Any, stride: Any, dilation: Any) -> list[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Each place of a kernel over ``size`` with the slices that it sees."""
    counts = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(size, kernel, stride, dilation, strict=True)]
    return [
        (
            at,
            tuple(
                slice(p * s, p * s + d * (k - 1) + 1, d)
                for p, s, k, d in zip(at, stride, kernel, dilation, strict=True)
            ),
        )
        for at in itertools.product(*map(range, counts))
    ]


def _padded(x: Any, padding: Any, value: Any = 0) -> Any:
    return np.pad(x, ((0, 0), (0, 0), *padding), constant_values=value)


def _windows(x: Any, *, kernel: Any, stride: Any, dilation: Any) -> Any:
    patches = {at: x[(slice(None), *part)] for at, part in _places(x.shape[1:-1], kernel, stride, dilation)}
    counts = tuple(np.max([*patches], axis=0) + 1)
    result = np.empty((x.shape[0], *counts, *kernel, x.shape[-1]), x.dtype)
    for at, part in patches.items():
        result[(slice(None), *at)] = part
    return result


def _pad(x: Any, value: Any, *, widths: Any) -> Any:
    for axis, (low, high, step) in enumerate(widths):
        n = x.shape[axis]
        apart = np.insert(x, np.repeat(np.arange(1, n), step - 1), value.reshape(-1)[0], axis) if n else x
        x = np.pad(
            apart, [(low, high) if i == axis else (0, 0) for i in range(x.ndim)], constant_values=value.reshape(-1)[0]
        )
    return x


def _groups(x: Any, groups: int) -> list[slice]:
    each = x // groups
    return [slice(i * each, (i + 1) * each) for i in range(groups)]


def _convolution(x: Any, w: Any, *, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    padded = _padded(x, padding)
    results = {}
    for at, part in _places(padded.shape[2:], w.shape[2:], stride, dilation):
        patches = padded[(slice(None), slice(None), *part)]
        results[at] = np.concatenate(
            [
                np.tensordot(patches[:, c], w[k], (range(1, x.ndim), range(1, x.ndim)))
                for c, k in zip(_groups(x.shape[1], groups), _groups(w.shape[0], groups), strict=True)
            ],
            axis=1,
        )
    result = np.empty((x.shape[0], w.shape[0], *(np.max([*results], axis=0) + 1)))
    for at, value in results.items():
        result[(slice(None), slice(None), *at)] = value
    return result


def _input_gradient(g: Any, w: Any, *, size: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    padded = np.zeros((g.shape[0], w.shape[1] * groups, *(n + a + b for n, (a, b) in zip(size, padding, strict=True))))
    channels, results = _groups(padded.shape[1], groups), _groups(w.shape[0], groups)
    for at, part in _places(padded.shape[2:], w.shape[2:], stride, dilation):
        for c, k in zip(channels, results, strict=True):
            padded[(slice(None), c, *part)] += np.tensordot(g[(slice(None), k, *at)], w[k], 1)
    return padded[(slice(None), slice(None), *(slice(a, a + n) for n, (a, _) in zip(size, padding, strict=True)))]


def _weight_gradient(x: Any, g: Any, *, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    padded = _padded(x, padding)
    result = np.zeros((g.shape[1], x.shape[1] // groups, *kernel))
    channels, results = _groups(x.shape[1], groups), _groups(g.shape[1], groups)
    for at, part in _places(padded.shape[2:], kernel, stride, dilation):
        for c, k in zip(channels, results, strict=True):
            result[k] += np.tensordot(g[(slice(None), k, *at)].T, padded[(slice(None), c, *part)], 1)
    return result


def _max_pool(x: Any, *, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    padded = _padded(x, padding, np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf)
    windows = _windows(np.moveaxis(padded, 1, -1), kernel=kernel, stride=stride, dilation=dilation)
    return np.moveaxis(windows.max(axis=tuple(range(x.ndim - 1, 2 * x.ndim - 3))), -1, 1)


def _geometry(stride: Any, padding: Any, dilation: Any, groups: int = 1) -> dict[str, Any]:
    pairs = tuple((p, p) if isinstance(p, int) else p for p in padding)
    return {"stride": stride, "padding": pairs, "dilation": dilation, "groups": groups}


# x, w, geometry: one to three axes, strides, uneven padding, dilation, groups, depthwise, kernels of 1
_CONVOLUTIONS: tuple[tuple[Any, Any, dict[str, Any]], ...] = (
    ((2, 3, 7), (4, 3, 3), _geometry((1,), (1,), (1,))),
    ((1, 2, 9), (2, 2, 3), _geometry((2,), ((2, 0),), (2,))),
    ((2, 4, 5, 6), (6, 2, 3, 2), _geometry((1, 1), (1, (0, 1)), (1, 1), 2)),
    ((1, 3, 8, 7), (5, 3, 3, 3), _geometry((3, 2), (1, 2), (1, 2))),
    ((2, 3, 6, 5), (3, 1, 3, 3), _geometry((1, 1), (1, 1), (1, 1), 3)),
    ((1, 3, 7, 7), (6, 1, 2, 3), _geometry((2, 1), (0, 1), (1, 2), 3)),
    ((2, 3, 5, 5), (4, 3, 1, 1), _geometry((2, 2), (0, 0), (1, 1))),
    ((1, 2, 4, 3, 5), (3, 2, 2, 3, 1), _geometry((1, 2, 1), (0, 1, 1), (2, 1, 1))),
    ((1, 2, 6, 6), (17, 2, 1, 3), _geometry((1, 1), (1, 1), (1, 1))),
)  # fmt: skip


def _result(x: Any, w: Any, geometry: dict[str, Any]) -> Any:
    return _convolution(np.zeros(x), np.zeros(w), **geometry).shape


_FLOATS = (dt.float32, dt.float64)
_FACTORS = (*_FLOATS, dt.bfloat16)
_POOLS: tuple[Any, ...] = tuple(
    (((shape),), {"kernel": k, "stride": s, "padding": p, "dilation": d})
    for shape, k, s, p, d in (
        ((2, 3, 6), (2,), (2,), ((0, 0),), (1,)), ((1, 2, 5, 7), (2, 2), (2, 2), ((0, 0), (0, 1)), (1, 1)),
        ((2, 2, 6, 5), (3, 2), (2, 1), ((1, 1), (0, 1)), (1, 2)),
        ((1, 2, 3, 4, 3), (2, 2, 3), (1, 2, 1), ((0, 1),) * 3, (1,) * 3),
        ((1, 3, 4, 4), (2, 2), (3, 1), ((0, 0), (1, 1)), (1, 1)),
        ((2, 17, 4, 6), (2, 3), (2, 3), ((0, 0), (0, 0)), (1, 1)),
    )
)  # fmt: skip

HALF = (-0.5, 0.5)
SPATIAL: dict[str, dict[str, Any]] = {
    "im2col": {"oracle": _windows, "dtypes": ANY, "cases": tuple(
        ((shape,), {"kernel": k, "stride": s, "dilation": d})
        for shape, k, s, d in (
            ((2, 6, 3), (3,), (1,), (1,)), ((1, 5, 7, 2), (2, 3), (2, 1), (1, 2)),
            ((2, 3, 4, 3, 2), (1, 2, 3), (2, 1, 1), (1, 2, 1)),
            ((1, 4, 4, 3), (1, 1), (2, 3), (1, 1)),
        )
    )},
    "pad": {"oracle": _pad, "dtypes": ANY, "cases": tuple(
        ((shape, (1,) * len(shape)), {"widths": w})
        for shape, w in (
            ((5,), ((2, 3, 1),)), ((2, 3, 4), ((0, 0, 1), (1, 2, 1), (0, 0, 1))), ((0, 3), ((1, 0, 1), (2, 0, 2))),
            ((), ()),
            ((3, 2, 1, 4), ((0, 0, 1), (1, 1, 3), (0, 1, 1), (1, 0, 2))), ((2, 5), ((1, 1, 1), (0, 0, 1))),
            ((2, 3, 17, 3), ((0, 0, 1), (1, 1, 1), (2, 1, 1), (0, 0, 1))),
        )
    )},
    "convolution": {"oracle": _convolution, "dtypes": _FACTORS, "domain": HALF, "cases": tuple(
        ((x, w), geometry) for x, w, geometry in _CONVOLUTIONS
    )},
    "convolution_input_gradient": {"oracle": _input_gradient, "dtypes": _FACTORS, "domain": HALF, "cases": tuple(
        ((_result(x, w, geometry), w), {"size": x[2:], **geometry}) for x, w, geometry in _CONVOLUTIONS
    )},
    "convolution_weight_gradient": {"oracle": _weight_gradient, "dtypes": _FACTORS, "domain": HALF, "cases": tuple(
        ((x, _result(x, w, geometry)), {"kernel": w[2:], **geometry}) for x, w, geometry in _CONVOLUTIONS
    )},
    "max_pool": {"oracle": _max_pool, "dtypes": NUMBERS, "cases": _POOLS},
}  # fmt: skip
