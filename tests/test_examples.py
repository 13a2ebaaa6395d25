"""The examples, run as a reader would: on small data sets in the formats of the real ones."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from runnel.core import switches
from tests.data.files import cifar_batches, reviews, write_imdb, write_packed_cifar

pytestmark = pytest.mark.suite


ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py") if path.stem != "running")
# Smaller than a reader's run, so that the tests take seconds.
SMALLER = {
    "cifar10_cnn": {"BATCH": 8},
    "imdb_gru": {"BATCH": 16, "LENGTH": 8},
    "sst_trees": {"BATCH": 8, "UNITS": 96, "WIDTH": 64},
    "shakespeare_transformer": {"BATCH": 4, "WINDOW": 16, "WIDTH": 64, "HEADS": 4, "BLOCKS": 2},
}


def write_data(example: str, folder: Path) -> None:
    if example == "cifar10_cnn":
        write_packed_cifar(folder, cifar_batches(8))
    elif example == "imdb_gru":
        write_imdb(folder, reviews(128, ranks=200))
    elif example == "sst_trees":
        for split, count in (("train", 48), ("dev", 9), ("test", 10)):
            (folder / f"{split}.txt").write_text("".join(tree(n) + "\n" for n in range(count)))
    else:
        lines = ("To be, or not to be: that is the question.\n", "All the world's a stage.\n")
        (folder / "input.txt").write_text("".join(lines[n * n % 7 % 2] for n in range(150)))


def tree(number: int) -> str:
    """Return a tree in brackets, of one to four words, whose label is one of its words'."""
    words = [(2 * n * number % 5, f"word{n * number % 7}") for n in range(1, 2 + number % 4)]
    text = "({} {})".format(*words[0])
    for label, word in words[1:]:
        text = f"({label} {text} ({label} {word}))"
    return text


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Imports an example as its script would be, but smaller."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))

    def load(example: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(example, ROOT / "examples" / f"{example}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, value in SMALLER[example].items():
            assert hasattr(module, name)
            setattr(module, name, value)
        return module

    return load


def run(example: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the script in a separate process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / f"{example}.py"), *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_every_example_is_tested_and_short() -> None:
    assert set(SMALLER) == set(EXAMPLES)
    lengths = {path.name: len(path.read_text().splitlines()) for path in (ROOT / "examples").glob("*.py")}
    assert max(lengths.values()) < 150, lengths


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_learn_and_repeat_themselves(
    example: str,
    loaded: Callable[[str], ModuleType],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_data(example, tmp_path)
    options = ["--data-dir", str(tmp_path), "--quick", "--epochs", "3", "--seed", "4", "--json"]
    monkeypatch.setattr(sys, "argv", [example, *options])
    results: list[dict[str, Any]] = []
    for threads in (1, 2):
        with switches.override(num_threads=threads):
            loaded(example).main()
        results.append(json.loads(capsys.readouterr().out.splitlines()[-1]))
    first, second = results
    assert first["example"] == example and first["parameters"] > 100_000 and first["ms_per_step"] > 0
    assert len(first["epoch_losses"]) == 3 and first["epoch_losses"][-1] < first["epoch_losses"][0]
    timeless = ["epoch_losses", *({"test_accuracy", "validation_nats", "sample"} & set(first))]
    assert [first[name] for name in timeless] == [second[name] for name in timeless]


@pytest.mark.parametrize("example", EXAMPLES)
def test_missing_data_are_reported_in_a_sentence(example: str, tmp_path: Path) -> None:
    done = run(example, "--data-dir", str(tmp_path))
    assert done.returncode == 1
    assert "has no file" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("example", EXAMPLES)
def test_help_says_what_the_example_shows(example: str) -> None:
    done = run(example, "--help")
    assert done.returncode == 0 and "--quick" in done.stdout
    heading = (ROOT / "examples" / f"{example}.py").read_text().splitlines()[0].strip('"')
    assert heading.split(":")[0] in " ".join(done.stdout.split())
