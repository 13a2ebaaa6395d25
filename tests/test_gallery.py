"""The gallery: every script trains, and its page shows it."""

from __future__ import annotations

import importlib.util
import math
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import runnel as rn

pytestmark = pytest.mark.suite

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "examples" / "gallery"
SHARED = {"showing", "cartpole"}
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in SHARED)
# Steps, the figure that they must move, and where to.
SHORT = {
    "diffusion": (30, "loss", "<", 1.0),
    "dqn": (40, "first 20 episodes, steps", ">", 5.0),
    "gan": (20, "clouds covered", ">=", 0.0),
    "gnn": (30, "members put right", ">=", 32.0),
    "gpt": (3, "rows sorted", ">=", 0.0),
    "maml": (20, "a task's error before", "<", 3.0),
    "pinn": (100, "largest error", "<", 2.0),
    "ppo": (1, "first 20 episodes, steps", ">", 5.0),
    "seq2seq": (3, "dates right", ">=", 0.0),
    "unet": (3, "intersection over union", ">=", 0.0),
    "vae": (100, "nats after", "<", 32.0),
    "vit": (10, "loss", "<", 2.6),
}
# Sizes that are smaller than a reader's: each plan is verified, element by element.
SMALLER = {
    "gpt": {"BATCH": 4, "TESTED": 4, "WIDTH": 16, "BLOCKS": 1},
    "seq2seq": {"BATCH": 4, "WIDTH": 16},
    "unet": {"BATCH": 2, "CHANNELS": 4, "SIDE": 16},
    "vit": {"BATCH": 4, "TESTED": 8, "WIDTH": 16, "BLOCKS": 1},
}


def load(example: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    spec = importlib.util.spec_from_file_location(f"gallery_{example}", FOLDER / f"{example}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, value in SMALLER.get(example, {}).items():
        assert hasattr(module, name)
        monkeypatch.setattr(module, name, value)
    return module


@pytest.mark.parametrize("example", EXAMPLES)
def test_it_trains(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a few steps, and natively: a warning that a function runs eagerly is an error."""
    steps, name, comparison, bound = SHORT[example]
    rn.manual_seed(0)
    reached = load(example, monkeypatch).train(steps)["reached"]
    assert all(math.isfinite(value) for value in reached.values()), reached
    value = float(reached[name])
    assert {"<": value < bound, ">": value > bound, ">=": value >= bound}[comparison], reached


def test_a_script_prints_and_draws(tmp_path: Path) -> None:
    can_draw = importlib.util.find_spec("matplotlib") is not None
    picture = ["--picture", str(tmp_path / "club.png")] if can_draw else []
    command = [sys.executable, "-W", "error", str(FOLDER / "gnn.py"), "--steps", "30", "--seed", "3", *picture]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("members put right")
    assert not can_draw or (tmp_path / "club.png").read_bytes().startswith(b"\x89PNG")


def test_the_page_shows_every_example() -> None:
    page = (ROOT / "docs" / "gallery" / "README.md").read_text(encoding="utf-8")
    missing = [name for name in EXAMPLES if f"`examples/gallery/{name}.py`" not in page or f"({name}.png)" not in page]
    missing += [name for name in EXAMPLES if not (ROOT / "docs" / "gallery" / f"{name}.png").is_file()]
    assert len(EXAMPLES) == 12 and missing == []
