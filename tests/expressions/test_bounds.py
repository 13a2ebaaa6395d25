"""Machine code of expressions beside unreadable pages: nothing before or after an array is touched."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from runnel.backends.cpu.codegen import build
from runnel.compiler.lowering.parts import named
from runnel.expressions.candidates import automatic
from runnel.expressions.lowering import dense_nest, kernel as dense_kernel
from runnel.expressions.nest import Nest
from runnel.expressions.resolving import resolved
from runnel.expressions.schedule import Schedule, Steps
from runnel.expressions.solving import solved
from tests.expressions.test_random_schedules import arrays_of

TILED: Steps = (
    ("tile", "i", "j", 3, 16),
    ("reorder", "i_0", "j_0", "k", "i_1", "j_1"),
    ("unroll", "i_1"),
    ("vectorise", "j_1"),
    ("cache", "B"),
    ("compute_at", "B", "j_0"),
)
CASES: dict[str, tuple[str, tuple[tuple[int, ...], ...], Steps | None]] = {
    "tiled product": ("C[i, j] += A[i, k] * B[k, j]", ((7, 5), (5, 37)), TILED),
    "padded convolution": (
        "O[y: 6, x: 21] += I[y + i - 1, x + j - 1] * W[i, j] where 0 <= y + i - 1 < 6, 0 <= x + j - 1 < 21",
        ((6, 21), (3, 3)),
        None,
    ),
    "its transpose with strides": ("O[2*q + i: 9, 2*p + j: 41] += G[q, p] * W[i, j]", ((4, 20), (3, 3)), None),
    "cumulative sum": ("O[i: 35] += I[k: 35] where i - k < 35", ((35,),), None),
    "flip": ("O[i] = I[34 - i: 35]", ((35,),), None),
}


@contextmanager
def fenced(size: int, *, at_end: bool) -> Iterator[np.ndarray]:
    """So many float32 between two unreadable pages, next to one of them."""
    page = mmap.PAGESIZE
    inner = -(-4 * size // page) * page
    memory = mmap.mmap(-1, inner + 2 * page)
    first = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for fence in (first, first + page + inner):
        assert protect(fence, page, 0) == 0
    begin = first + page + (inner - 4 * size if at_end else 0)
    yield np.frombuffer((ctypes.c_char * (4 * size)).from_address(begin), np.float32)
    for fence in (first, first + page + inner):
        assert protect(fence, page, mmap.PROT_READ | mmap.PROT_WRITE) == 0


def run(nest: Nest, arrays: dict[str, np.ndarray], rows: int) -> None:
    """Run machine code; the scratch memory belongs to the one cache, if there is one."""
    plain = dense_kernel(nest)
    kernel = named("fenced", plain.buffers, plain.params, plain.body, "")
    (address,) = build.kernels([kernel])
    shared = [b.name for b in kernel.buffers if b.mode != "scratch"]
    bases = (ctypes.c_int64 * len(shared))(*[arrays[name].ctypes.data for name in shared])
    scratch = next((arrays[b.name].ctypes.data for b in kernel.buffers if b.mode == "scratch"), 0)
    thread = (ctypes.c_int64 * 16)(ctypes.addressof(bases), scratch)
    words = [word for slot in range(len(shared)) for word in (slot, 0)] + [0, 0]
    args = (ctypes.c_int64 * len(words))(*words)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 4)(address)
    function(ctypes.addressof(thread), ctypes.addressof(args), 0, rows, 0, 1)


@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_nothing_outside_arrays_is_touched(name: str, at_end: bool) -> None:
    text, shapes, steps = CASES[name]
    solution = solved(resolved(text, shapes))
    nest = dense_nest(automatic(solution) if steps is None else Schedule(solution, steps))
    expression = solution.expression
    values = arrays_of(expression)
    sizes = {name: len(values[name]) for name in values} | {expression.name: int(np.prod(expression.shape))}
    expected = {**values, expression.name: np.full(sizes[expression.name], np.nan, np.float32)}
    run(dense_nest(Schedule(solution)), expected, 1)
    sizes |= {cache.buffer: cache.size for cache in nest.caches.values()}
    fences = {name: fenced(size, at_end=at_end) for name, size in sizes.items()}
    arrays = {name: fence.__enter__() for name, fence in fences.items()}
    for key, value in values.items():
        arrays[key][:] = value
    run(nest, arrays, nest.rows)
    assert arrays[expression.name].tobytes() == expected[expression.name].tobytes()
    for fence in fences.values():
        fence.__exit__(None, None, None)
