"""How fast the contraction is: GF/s of one thread for each shape and layout, beside the peak of FMAs in registers.

    python benchmarks/contract.py [--dtype float64] [--seconds 0.2]

Shapes are taken from training steps, whole or as one of two threads gets them. Best of many runs.
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from runnel.backends.cpu import target
from runnel.backends.cpu.codegen import contract
from runnel.core import dtypes
from runnel.inspection.machine import Peak

# (M, N, K), the rows and columns of C that the thread computes, layouts
CASES = [
    ((256, 1024, 1024), (256, 1024), ("NN", "TN", "NT")),
    ((256, 1024, 1024), (128, 1024), ("NN", "TN", "NT")),
    ((1024, 1024, 256), (512, 1024), ("NN", "TN", "NT")),
    ((512, 512, 512), (512, 512), ("NN", "TN", "NT")),
    ((32, 256, 784), (32, 128), ("NN", "TN", "NT")),
    ((256, 256, 784), (256, 128), ("NN", "TN", "NT")),
    ((784, 256, 32), (784, 128), ("TN",)),
    ((784, 256, 32), (392, 256), ("TN",)),
    ((784, 256, 256), (392, 256), ("TN",)),
    ((64, 100, 100), (64, 100), ("NN", "TN", "NT")),
    ((32, 128, 256), (32, 64), ("NN", "NT")),
    ((32, 10, 128), (32, 10), ("NN", "NT")),
    ((8, 16, 4), (8, 16), ("NN", "NT")),
    ((8, 16, 16), (8, 16), ("NN", "NT")),
    ((8, 3, 16), (8, 3), ("NN", "NT")),
    ((1, 1024, 1024), (1, 512), ("NN", "NT")),
    ((3, 1024, 1024), (3, 512), ("NN", "NT")),
]
# Convolutions, channels last and padded already: batch, rows and columns of pixels, channels in and out, taps each way
CONVOLUTIONS = [
    (32, 32, 32, 3, 50, 3),
    (32, 32, 32, 50, 50, 3),
    (32, 16, 16, 50, 100, 3),
    (32, 16, 16, 100, 100, 3),
    (2, 56, 56, 64, 64, 3),
    (1, 28, 28, 128, 128, 3),
    (1, 14, 14, 256, 256, 3),
]
WORDS = 21


def compiled(text: str, row: target.Target, symbol: str, prototype: Any) -> tuple[Any, Any]:
    """The function ``symbol`` of a module's text, and what keeps it alive."""
    machine = row.machine()
    linker = llvm.create_lljit_compiler(machine)
    module = machine.emit_object(llvm.parse_assembly(text))
    library = llvm.JITLibraryBuilder().add_object_img(module).export_symbol(symbol).link(linker, symbol)
    return prototype(library[symbol]), (library, linker)


def best(call: Callable[[], None], seconds: float) -> float:
    """The least time of one call, in seconds."""
    least, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        least = min(least, time.perf_counter() - start)
    return least


REPEAT = """
define void @repeat(ptr %f, ptr %w, i64 %times) {
entry:
  br label %again
again:
  %i = phi i64 [ 0, %entry ], [ %j, %again ]
LOADS
  call void %f(ARGUMENTS)
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %times
  br i1 %more, label %again, label %done
done:
  ret void
}"""


def repeater(row: target.Target) -> tuple[Any, Any]:
    """A native loop around the contraction, so that what is timed is not the call from Python."""
    pointers = {0, 1, 2, 13, 14, 15, 18, 19}
    loads, arguments = [], []
    for n in range(WORDS):
        kind = "ptr" if n in pointers else "i64"
        loads.append(f"  %p{n} = getelementptr i64, ptr %w, i64 {n}\n  %x{n} = load {kind}, ptr %p{n}")
        arguments.append(f"{kind} %x{n}")
    text = REPEAT.replace("LOADS", "\n".join(loads)).replace("ARGUMENTS", ", ".join(arguments))
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    return compiled(text, row, "repeat", prototype)


def convolution(shape: tuple[int, ...], dtype: dtypes.DType) -> tuple[Any, Any, Any]:
    """An image and the offsets of its pixels and of a pixel's window."""
    batch, height, width, channels, _, taps = shape
    image = np.random.default_rng(0).standard_normal((batch, height + taps - 1, width + taps - 1, channels))
    image = image.astype(dtype.numpy)
    by_batch, by_row, by_column, _ = (step // dtype.itemsize for step in image.strides)

    def lists(*axes: tuple[int, int]) -> Any:
        total = np.zeros(1, np.int32)
        for extent, step in axes:
            total = (total[:, None] + np.arange(extent, dtype=np.int32) * np.int32(step)).reshape(-1)
        return total

    pixels = lists((batch, by_batch), (height, by_row), (width, by_column))
    return image, pixels, lists((taps, by_row), (taps, by_column), (channels, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", default="float32", choices=sorted(contract.SYMBOLS))
    parser.add_argument("--seconds", type=float, default=0.2)
    options = parser.parse_args()
    dtype, row = dtypes.by_name(options.dtype), target.host()
    start = time.perf_counter()
    text = contract.emit_module(dtype, row)
    emitted = time.perf_counter()
    symbol = contract.SYMBOLS[dtype.name]
    address_type = ctypes.CFUNCTYPE(None)
    function, _keep = compiled(text, row, symbol, address_type)
    built = time.perf_counter()
    top = Peak(1, dtype).measure(options.seconds)
    print(
        f"{row.name} {dtype.name}: peak {top:.1f} GF/s; text {1e3 * (emitted - start):.0f} ms, "
        f"machine code {1e3 * (built - emitted):.0f} ms"
    )
    address = ctypes.cast(function, ctypes.c_void_p).value
    repeat, _keep_repeat = repeater(row)
    scratch = np.zeros(contract.SCRATCH + 64, np.uint8)
    thread = np.array([0, scratch.ctypes.data + -scratch.ctypes.data % 64, contract.SCRATCH], np.int64)
    rng = np.random.default_rng(0)

    def timed(what: str, matrices: list[Any], numbers: list[int], lists: tuple[Any, ...], flops: int) -> None:
        lie = [x.ctypes.data for x in lists] or [0, 0]
        words = np.array(
            [*(x.ctypes.data for x in matrices), *numbers, 0, thread.ctypes.data, 0, 0, 0, *lie, 0], np.int64
        )
        times = max(1, int(2e-4 * 5e10 / flops))
        least = best(lambda: repeat(address, words.ctypes.data, times), options.seconds) / times
        rate = flops / least / 1e9
        print(f"{what:36} {rate:6.1f} GF/s {100 * rate / top:4.0f} % {1e6 * least:9.2f} us")

    for (m, n, k), (rows, columns), layouts in CASES:
        for layout in layouts:
            a = rng.standard_normal((k, m) if layout[0] == "T" else (m, k)).astype(dtype.numpy)
            b = rng.standard_normal((n, k) if layout[1] == "T" else (k, n)).astype(dtype.numpy)
            c = np.zeros((m, n), dtype.numpy)
            a_steps = (1, m) if layout[0] == "T" else (k, 1)
            b_steps = (1, k) if layout[1] == "T" else (n, 1)
            what = f"{m:5}x{n:5}x{k:5} {layout} as {rows}x{columns}:"
            timed(what, [a, b, c], [*a_steps, *b_steps, n, k, 0, rows, 0, columns], (), 2 * rows * columns * k)
            expected = (a.T if layout[0] == "T" else a) @ (b.T if layout[1] == "T" else b)
            if not np.allclose(c[:rows, :columns], expected[:rows, :columns], atol=1e-2):
                print("  WRONG")
    for shape in CONVOLUTIONS:
        image, pixels, window = convolution(shape, dtype)
        *_, channels, outputs, taps = shape
        for name, lists in (("", (pixels, window)), (" to weights", (window, pixels))):
            m, k, n = len(lists[0]), len(lists[1]), outputs
            b, c = rng.standard_normal((k, n)).astype(dtype.numpy), np.zeros((m, n), dtype.numpy)
            what = f"{m:5}x{n:5}x{k:5} {taps}x{taps} of {channels}{name}:"
            timed(what, [image, b, c], [0, 0, n, 1, n, k, 0, m, 0, n], lists, 2 * m * n * k)
            expected = image.reshape(-1)[lists[0][:9, None] + lists[1]] @ b
            if not np.allclose(c[:9], expected, atol=1e-1):
                print("  WRONG")


if __name__ == "__main__":
    main()
