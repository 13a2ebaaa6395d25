"""Two checkouts of Runnel beside one another: the same cases alternating, best against best.

    python benchmarks/paired.py ../before --cases mlp_b32 cnn_b64 --rounds 7 --seconds 2 --threads 1

Each turn is a separate process in the checkout's folder, so that neither sees the other's code; which goes first
changes from round to round. On a busy machine more rounds help, and one thread does.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

CASES = (
    "mlp_tiny_b8", "mlp_b32", "mlp_b256", "cnn_b64", "gru_b64", "encoder_b8_t128", "resnet50_b1", "bert_base_b1_t128",
)  # fmt: skip
HERE = Path(__file__).resolve().parents[1]


def milliseconds(checkout: Path, case: str, seconds: float, threads: int) -> float:
    """The best step of one process."""
    options = ["--json", f"--seconds={seconds}", f"--threads={threads}"]
    command = [sys.executable, "-m", "runnel.cli", "bench", case, *options]
    done = subprocess.run(command, cwd=checkout, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout.splitlines()[-1])["best_ms"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="the other checkout")
    parser.add_argument("--cases", nargs="+", default=CASES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each process's measurement")
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    print("| case | before, ms | after, ms | after / before |\n| --- | ---: | ---: | ---: |")
    for case in options.cases:
        best = {options.before.resolve(): float("inf"), HERE: float("inf")}
        for number in range(options.rounds):
            for checkout in sorted(best, reverse=bool(number % 2)):
                found = milliseconds(checkout, case, options.seconds, options.threads)
                best[checkout] = min(best[checkout], found)
        before, after = best.values()
        print(f"| `{case}` | {before:.4g} | {after:.4g} | {after / before:.3f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
