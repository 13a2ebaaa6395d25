"""The rates of this machine, measured in a tenth of a second and kept beside the compiled kernels.

Reports compare kernels with them. Plans do not use them: they must not depend on what was measured when.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import platform
import time
from typing import Final

import numpy as np

from runnel.codegen import build, target
from runnel.core.dtypes import float32
from runnel.inspection.peak import Peak
from runnel.loops.ir import Acc, Apply, Buffer, For, Index, Kernel, Load, RangeBound, Ref, Store, Update, Var
from runnel.loops.scalar import add
from runnel.lowering.model import Machine
from runnel.lowering.naming import named
from runnel.runtime import memory, objects
from runnel.runtime.launch import Launch

_FORM: Final = "rates 1"  # of what is kept
_SIZES: Final = tuple(1 << power for power in (14, 17, 19, 21, 23, 25, 26))  # bytes gone through by all threads
_STREAMS: Final = 4  # read side by side
_SECONDS: Final = 3e-3  # of measuring one rate


@functools.cache
def rates(threads: int) -> Machine:
    """What ``threads`` threads can do at once; measured when this machine is asked for the first time."""
    kept, key = objects.current(), _key(threads)
    body = None if kept is None else kept.get(key)
    if body is not None:
        flops, levels = json.loads(body)
        return Machine(flops, tuple((size, read, write) for size, read, write in levels), threads=threads)
    machine = measured(threads)
    if kept is not None:
        kept.put(key, json.dumps([machine.flops, machine.levels]).encode())
    return machine


def measured(threads: int) -> Machine:
    """The rates, measured now."""
    peak = Peak(threads).measure(0.01) * 1e9
    block = memory.allocate(max(_SIZES))
    block.ndarray((block.nbytes // 4,), np.float32, writeable=True)[:] = 1.0
    levels = []
    for size in _SIZES:
        part = size // threads // (64 * _STREAMS) * 16  # float32 of a stream
        read = _best(_read_kernel(), block, threads, [part * n for n in range(_STREAMS)], part * _STREAMS, part)
        copy = _best(_copy_kernel(), block, threads, [0, 2 * part], 4 * part, 2 * part)
        nbytes = 16 * part * threads
        writing = max(copy - 0.5 * read, 0.1 * copy)  # half of the bytes are read
        levels.append((size, nbytes / read, 0.5 * nbytes / writing))
    return Machine(peak, tuple(levels), threads=threads)


def _key(threads: int) -> str:
    identity = (_FORM, platform.node(), platform.processor(), repr(target.current()), threads, build.emitters())
    return hashlib.sha256(repr(identity).encode()).hexdigest()


def _best(kernel: Kernel, block: memory.Storage, threads: int, starts: list[int], step: int, count: int) -> float:
    """Seconds of one pass of all threads, each over its own ``step`` elements, of ``count`` turns each."""
    address = build.kernels([kernel])[0]
    arguments = [[word for s in starts for word in (0, 4 * (t * step + s))] for t in range(threads)]
    words = np.array([[*a, *([0, block.nbytes - 64] if len(a) > 4 else [])] for a in arguments], np.int64)
    passes = max((1 << 18) // (step * 4 * threads), 1)
    records = []
    for t in range(threads):
        row = [address, words[t].__array_interface__["data"][0], 0, 1, 0, count, 0, 0]
        records.append(np.array([row] * passes + [[0] * 8], np.int64))
    bases = (ctypes.c_int64 * 1)(block.address)
    launch = Launch(records, ctypes.addressof(bases))
    best, end = float("inf"), time.perf_counter() + _SECONDS
    launch.run()
    while True:
        start = time.perf_counter()
        launch.run()
        now = time.perf_counter()
        best = min(best, now - start)
        if now >= end:
            return best / passes


@functools.cache
def _copy_kernel() -> Kernel:
    at, once = Var("at"), Var("once")
    here = Index(((at, 1),))
    body = (Store("b1", here, Load("b0", here, float32)),)
    loop = For(once, RangeBound.I0, RangeBound.I1, "seq", (For(at, RangeBound.J0, RangeBound.J1, "vec", body),))
    return named("rate_copy", (Buffer("b0", float32, "in"), Buffer("b1", float32, "out")), (), (loop,))


@functools.cache
def _read_kernel() -> Kernel:
    """The sum of several streams, so that no sum waits for the one before it."""
    at, once = Var("at"), Var("once")
    here = Index(((at, 1),))
    loads = [Load(f"b{n}", here, float32) for n in range(_STREAMS)]
    value = functools.reduce(lambda x, y: Apply(add, (x, y), float32), loads[1:], loads[0])
    loop = For(at, RangeBound.J0, RangeBound.J1, "vec", (Update("sum", value),))
    store = Store(f"b{_STREAMS}", Index(), Ref("sum", float32))
    body = For(once, RangeBound.I0, RangeBound.I1, "seq", (Acc("sum", "sum", float32), loop, store))
    buffers = (*(Buffer(f"b{n}", float32, "in") for n in range(_STREAMS)), Buffer(f"b{_STREAMS}", float32, "out"))
    return named("rate_read", buffers, (), (body,))
