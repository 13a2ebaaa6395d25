"""How much memory a step of eager PyTorch needs beside the network's weights and its inputs.

    python torch_memory.py torch_bench.py CASE

Networks, data and steps come from the peers' script named first. The figure is by how much the peak of resident
memory (``VmHWM``, which Linux lets a process reset) rises over three steps above what is resident before them:
gradients, optimizer state, intermediate values and the allocator's own. A step of a copy with two examples is made
before, so that the code of the libraries is in memory already.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch


def status(field: str) -> int:
    """A field of the process's status, in bytes."""
    found = re.search(rf"^{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("peer_bench", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def step_of(bench: ModuleType, case: str, share: slice) -> Callable[[], Any]:
    """The eager step of a case, on a part of its batch."""
    torch.manual_seed(0)
    make, draw, *kind = bench.TRAIN.get(case) or bench.INFER[case]
    model, data = make(), draw()
    if kind:
        x, y = data
        per_example = len(y) // len(x)
        y = y.reshape(len(x), per_example)[share].reshape(-1)
        return bench.train_step(model, x[share].contiguous(), y.contiguous(), kind[0])
    model, x = model.eval(), data[share].contiguous()

    def evaluate() -> Any:
        with torch.inference_mode():
            return model(x)

    return evaluate


def main() -> None:
    script, case = sys.argv[1:3]
    bench = load(script)
    step_of(bench, case, slice(2))()
    step = step_of(bench, case, slice(None))
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    for _ in range(3):
        step()
    grown = status("VmHWM") - before
    threads = torch.get_num_threads()
    line = {"peer": f"torch {torch.__version__}", "case": case, "config": "eager", "threads": threads}
    print(json.dumps({**line, "bytes_beside_weights": grown}))


if __name__ == "__main__":
    main()
