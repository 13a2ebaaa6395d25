"""Run random programs: ``python -m tests.fuzz graphs --count 10000 --seed 0 --target avx2``."""

from __future__ import annotations

import argparse
import gc
import time
import traceback
import warnings
from collections.abc import Callable
from importlib import import_module

import numpy as np

import runnel as rn
from runnel.backends.cpu.target import EFFORT
from runnel.core import switches
from runnel.core.errors import CaptureWarning
from tests.fuzz import graph_checks, graph_programs, modes, sums, uneven, views
from tests.fuzz.graph_checks import Way
from tests.fuzz.language import checking as language
from tests.ops.indexing import checking as assignments

FEW = 512  # programs whose plans and machine code may be kept
COLLECTED = 32  # programs between two collections of cycles, which otherwise take a sixth of the time


def way_of(seed: int) -> Way:
    """On two threads mostly, which is a harder test than one; a quarter of the programs has whole calls dealt to two
    threads or to four. One in twenty with all of LLVM's effort, and another one against a wholly eager run: these take
    most of the time, and what LLVM leaves alone cannot go wrong in it."""
    threads = {0: 1, 4: 1, 5: 4}.get(seed % 8, 2)
    effort = EFFORT.default if seed % 20 == 3 else 0
    return Way((threads,), effort, eager=seed % 20 == 10, dealt=seed % 4 == 1)


def graph_fault(seed: int, shrink: bool) -> str | None:
    """Return the fault of the graph of ``seed``, as small as it can be shown."""
    program, way = graph_programs.draw(seed), way_of(seed)
    actual = graph_checks.fault(program, way)
    if actual is None or not shrink:
        return None if actual is None else f"order {program.order}: {actual}"
    small = graph_checks.smallest(program, way)
    shapes = {name: a.shape for name, a in small.arguments.items() if any(name in x.reads for x in small.lines)}
    text = f"order {small.order}, arguments {shapes}\n{small.source}{graph_checks.fault(small, way)}"
    return f"order {program.order}: {actual}\n{text}"


def fault_of(run: Callable[[int], str]) -> Callable[[int, bool], str | None]:
    """The traceback of ``run``, if it fails."""

    def fault(seed: int, shrink: bool) -> str | None:
        try:
            run(seed)
        except Exception:
            return traceback.format_exc(limit=-4)
        return None

    return fault


KINDS: dict[str, Callable[[int, bool], str | None]] = {
    "graphs": graph_fault,
    "sums": fault_of(sums.run),
    "modes": fault_of(modes.run),
    "assignments": fault_of(assignments.run_random),
    "uneven": fault_of(uneven.run),
    "programs": language.fault,
    "views": lambda seed, shrink: views.fault(seed, compiled=seed % 4 == 0),
    "gradients": lambda seed, shrink: views.gradient_fault(seed, import_module("torch"), compiled=seed % 4 == 0),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--count", type=int, default=100, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="the first one's seed; the others follow")
    parser.add_argument("--target", default="host", help="instruction set to compile for")
    parser.add_argument("--keep-going", action="store_true", help="report every fault, as it is, without shrinking it")
    options = parser.parse_args()
    begun, faults = time.monotonic(), 0
    np.seterr(all="ignore")
    warnings.simplefilter("error", CaptureWarning)  # a program that runs eagerly has nothing to be compared with
    gc.disable()
    with switches.override(target=options.target, effort=0, cache=False, verify=True):
        for done, seed in enumerate(range(options.seed, options.seed + options.count), 1):
            actual = KINDS[options.kind](seed, not options.keep_going)
            if actual is not None:
                faults += 1
                print(f"seed {seed}, {actual}", flush=True)
            if done % COLLECTED == 0:
                gc.collect()
            if done % FEW == 0:
                rn.clear_caches()
                print(f"{done} programs, {faults} faults, {time.monotonic() - begun:.0f} s", flush=True)
    print(f"{options.count} programs from seed {options.seed} on {options.target}: {faults} faults, "
          f"{time.monotonic() - begun:.0f} s")  # fmt: skip
    if language.COUNTS:
        print(", ".join(f"{name}: {count}" for name, count in language.COUNTS.items()))
        for reason, seeds in sorted(language.REASONS.items(), key=lambda item: -len(item[1])):
            print(f"{len(seeds):6} {reason} (seed {seeds[0]})")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
