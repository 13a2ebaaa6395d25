"""Options, and pictures drawn by matplotlib, which the gallery's examples share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import runnel as rn


def run(description: str | None, train: Callable[[int], dict[str, Any]], steps: int, quick: int, draw: Any) -> None:
    """Train for ``steps``, or ``quick`` ones with ``--quick``; print what ``train`` gives for its name "reached", and
    have the rest drawn with ``--picture FILE``."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, help=f"training steps ({steps})")
    parser.add_argument("--quick", action="store_true", help=f"{quick} steps: does everything run?")
    parser.add_argument("--seed", type=int, default=0, help="of initial values and random numbers")
    parser.add_argument("--picture", metavar="FILE", help="draw what was learned (needs matplotlib)")
    chosen = parser.parse_args()
    rn.manual_seed(chosen.seed)
    results = train(chosen.steps or (quick if chosen.quick else steps))
    for name, value in results.pop("reached").items():
        print(f"{name:24} {value:.4g}")
    if chosen.picture:
        axes, save = canvas(chosen.picture)
        draw(axes, **results)
        save()


def canvas(file: str, width: float = 4.5, height: float = 3.4) -> tuple[Any, Callable[[], None]]:
    """Axes to draw on, and what writes them to the file."""
    try:
        import matplotlib
    except ImportError:
        raise SystemExit("Pictures need matplotlib: pip install 'runnel[gallery]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(width, height), layout="constrained")
    return axes, lambda: figure.savefig(file, dpi=80)


def tiles(images: Any, columns: int) -> Any:
    """Images (N, height, width) side by side in one."""
    count, height, width = images.shape
    rows = count // columns
    return images[: rows * columns].reshape(rows, columns, height, width).swapaxes(1, 2).reshape(-1, columns * width)
