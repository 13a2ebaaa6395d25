"""How long ``import runnel`` takes: seconds of the processor, the best of some processes.

    python benchmarks/import_time.py [--runs 10] [--budget 0.35]

With a budget the exit status is 1 where the best one is above it. The first process writes the byte code that an
installed package has, and does not count.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROBE = """
import sys, time
sys.dont_write_bytecode = False
start = time.process_time()
import runnel
print(time.process_time() - start)
"""


def seconds(folder: str) -> float:
    """Of one process, with its byte code in ``folder``."""
    command = [sys.executable, "-X", f"pycache_prefix={folder}", "-c", PROBE]
    return float(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--budget", type=float)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seconds(folder)
        best = min(seconds(folder) for _ in range(max(options.runs, 1)))
    print(f"import runnel: {best:.3f} s")
    if options.budget is not None and best > options.budget:
        sys.exit(1)


if __name__ == "__main__":
    main()
