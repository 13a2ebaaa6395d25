"""How fast the contraction is: GF/s of one thread for each shape and layout, beside the peak of FMAs in registers.

    python benchmarks/contract.py [--dtype float64] [--seconds 0.2]

Shapes are those of training steps, whole or as one of two threads gets them. Best of many runs.
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from runnel.codegen import contract, target
from runnel.core import dtypes
from runnel.inspection.peak import Peak

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
    pointers = {0, 1, 2, 13, 14, 15}
    loads, arguments = [], []
    for n in range(17):
        kind = "ptr" if n in pointers else "i64"
        loads.append(f"  %p{n} = getelementptr i64, ptr %w, i64 {n}\n  %x{n} = load {kind}, ptr %p{n}")
        arguments.append(f"{kind} %x{n}")
    text = REPEAT.replace("LOADS", "\n".join(loads)).replace("ARGUMENTS", ", ".join(arguments))
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    return compiled(text, row, "repeat", prototype)


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
    for (m, n, k), (rows, columns), layouts in CASES:
        for layout in layouts:
            a = rng.standard_normal((k, m) if layout[0] == "T" else (m, k)).astype(dtype.numpy)
            b = rng.standard_normal((n, k) if layout[1] == "T" else (k, n)).astype(dtype.numpy)
            c = np.zeros((m, n), dtype.numpy)
            a_steps = (1, m) if layout[0] == "T" else (k, 1)
            b_steps = (1, k) if layout[1] == "T" else (n, 1)
            words = np.array([a.ctypes.data, b.ctypes.data, c.ctypes.data, *a_steps, *b_steps, n, k,
                              0, rows, 0, columns, 0, thread.ctypes.data, 0, 0], np.int64)  # fmt: skip
            flops = 2 * rows * columns * k
            times = max(1, int(2e-4 * 5e10 / flops))
            least = best(lambda: repeat(address, words.ctypes.data, times), options.seconds) / times  # noqa: B023
            rate = flops / least / 1e9
            expected = (a.T if layout[0] == "T" else a) @ (b.T if layout[1] == "T" else b)
            close = np.allclose(c[:rows, :columns], expected[:rows, :columns], atol=1e-2)
            print(
                f"{m:5}x{n:5}x{k:5} {layout} as {rows}x{columns}: {rate:6.1f} GF/s {100 * rate / top:4.0f} % "
                f"{1e6 * least:9.2f} us{'' if close else '  WRONG'}"
            )


if __name__ == "__main__":
    main()
