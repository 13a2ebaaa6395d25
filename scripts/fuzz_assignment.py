#!/usr/bin/env python3
"""Random programs that assign in place, each checked against NumPy's assignment with derivatives.

``scripts/fuzz_assignment.py --count 10000 --seed 0 --mode plain --second`` runs programs 0 to 9999.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.ops.indexing.checking import MODES, check


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--mode", choices=sorted(MODES), default="plain")
    parser.add_argument("--length", type=int, default=10, help="statements of a program")
    parser.add_argument("--compiled", action="store_true", help="compare with the compiled program, bit by bit")
    parser.add_argument("--second", action="store_true", help="second derivatives too")
    options = parser.parse_args()
    failed: list[int] = []
    for seed in range(options.seed, options.seed + options.count):
        if seed > options.seed and (seed - options.seed) % 500 == 0:
            print(f"{seed - options.seed} programs, {len(failed)} failed so far", flush=True)
        try:
            check(seed, options.mode, compiled=options.compiled, second=options.second, length=options.length)
        except Exception:
            failed.append(seed)
            print(f"program {seed}:", traceback.format_exc(limit=-4), flush=True)
    print(f"{options.count} programs, {len(failed)} failed", *failed[:20])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
