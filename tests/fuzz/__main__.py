"""Random programs for as long as one likes: ``python -m tests.fuzz graphs --count 10000 --seed 0 --target avx2``."""

from __future__ import annotations

import argparse
import time

from runnel.core import switches
from tests.fuzz import graph_checks, graph_programs


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("kind", choices=["graphs"])
    parser.add_argument("--count", type=int, default=100, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="the first one's seed; the others follow")
    parser.add_argument("--target", default="host", help="instruction set to compile for")
    parser.add_argument("--keep-going", action="store_true", help="report every fault, as it is, without shrinking it")
    options = parser.parse_args()
    begun, faults = time.monotonic(), 0
    with switches.override(target=options.target):
        for seed in range(options.seed, options.seed + options.count):
            program = graph_programs.draw(seed)
            found = graph_checks.fault(program)
            if found is None:
                continue
            faults += 1
            print(f"seed {seed}, order {program.order}: {found}", flush=True)
            if not options.keep_going:
                small = graph_checks.smallest(program)
                shapes = {
                    name: a.shape for name, a in small.arguments.items() if any(name in x.reads for x in small.lines)
                }
                print(f"order {small.order}, arguments {shapes}\n{small.source}{graph_checks.fault(small)}", flush=True)
    print(f"{options.count} programs from seed {options.seed} on {options.target}: {faults} faults, "
          f"{time.monotonic() - begun:.0f} s")  # fmt: skip
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
