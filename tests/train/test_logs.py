"""Figures in text files, callbacks in their order, and the progress of a training."""

from __future__ import annotations

import csv
import errno
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runnel import train
from runnel.core.errors import ArgumentError, FileError
from runnel.train.callbacks import Progress
from tests.train.trainings import loader, trainer


def test_a_line_for_each_epoch(tmp_path: Path) -> None:
    path, rows = tmp_path / "deep" / "log.jsonl", tmp_path / "log.csv"
    ours = trainer(callbacks=[train.JSONLines(path), train.CSVLog(rows)], metrics=["accuracy", "confusion_matrix"])
    history = ours.fit(loader(), 2, loader())
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["step"] for line in lines] == [5, 10]
    for line, figures in zip(lines, history, strict=True):
        assert line["val_loss"] == figures["val_loss"]
        assert np.array_equal(line["confusion_matrix"], figures["confusion_matrix"])
    with rows.open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [float(row["val_accuracy"]) for row in table] == [figures["val_accuracy"] for figures in history]
    assert list(table[0]) == ["epoch", "step", "loss", "accuracy", "val_loss", "val_accuracy", "lr"]


def test_a_line_for_each_few_steps(tmp_path: Path) -> None:
    ours = trainer(callbacks=[train.JSONLines(tmp_path / "log", every_steps=2)])
    ours.fit(loader(), 2)
    assert [json.loads(line)["step"] for line in (tmp_path / "log").read_text().splitlines()] == [2, 4, 6, 8, 10]


def test_figures_that_are_not_finite_are_null(tmp_path: Path) -> None:
    ours = trainer(callbacks=[train.JSONLines(tmp_path / "log")])
    ours.fit([(np.ones((2, 4), np.float32), np.ones(2, np.int64))])  # one class alone: no area
    assert json.loads((tmp_path / "log").read_text())["auroc"] is None


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for callback in (train.JSONLines(tmp_path / "file" / "log"), train.TensorBoard(tmp_path / "file")):
        with pytest.raises(FileError, match=rf"\[{type(callback).__name__}\] '.*' could not be written") as caught:
            trainer(callbacks=[callback]).fit(loader())
        assert caught.value.errno in (errno.EEXIST, errno.ENOTDIR)


def test_callbacks_are_called_in_their_order() -> None:
    calls: list[str] = []

    class Records(train.Callback):
        def on_fit_start(self, trainer: Any) -> None:
            calls.append("fit")

        def on_epoch_start(self, trainer: Any) -> None:
            calls.append(f"epoch {trainer.epochs}")

        def on_step_end(self, trainer: Any, logs: Any) -> None:
            assert set(logs) == {"loss", "lr"}
            calls.append(f"step {trainer.steps}")
            if trainer.steps == 7:
                trainer.stop("enough")

        def on_epoch_end(self, trainer: Any, logs: Any) -> None:
            calls.append(f"end {trainer.epochs}")

        def on_fit_end(self, trainer: Any) -> None:
            calls.append("over")

    ours = trainer(callbacks=[Records()])
    ours.fit(loader(), 3)
    steps = [f"step {n}" for n in range(1, 8)]
    assert calls == ["fit", "epoch 0", *steps[:5], "end 1", "epoch 1", *steps[5:], "over"]
    assert ours.stopped == "enough"


@pytest.mark.parametrize(
    "refused",
    [
        lambda: train.Checkpoint("x", keep=0),
        lambda: train.EarlyStopping(patience=0),
        lambda: train.EarlyStopping(mode="best"),
        lambda: train.JSONLines("x", every_steps=-1),
        lambda: train.TensorBoard("x", every_steps=-1),
    ],
)
def test_arguments_that_are_refused(refused: Any) -> None:
    with pytest.raises(ArgumentError, match="got"):
        refused()


def test_progress_without_a_terminal_is_lines(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setattr("runnel.train.callbacks._EVERY", 0.0)
    with Progress("epoch 1/2", None) as bar:
        bar.advance(2, "loss 0.5")
    assert capsys.readouterr().err == "epoch 1/2: 2  loss 0.5\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("columns", "kind", "has_bar"), [("100", "xterm", True), ("40", "xterm", False), ("100", "dumb", False)]
)
def test_progress_on_terminals(columns: str, kind: str, has_bar: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("TERM", kind)
    monkeypatch.setattr("runnel.train.callbacks._EVERY", 0.0)
    monkeypatch.setattr("sys.stderr", Terminal())
    with Progress("epoch 1/2", 20) as bar:
        bar.done = 10  # as a training that is continued in the middle of an epoch says
        bar.advance(1, "loss 0.5")
    shown = sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert ("━" in shown) == has_bar and "loss 0.5" in shown
    assert ("11 of 20" if kind == "dumb" else "11/20") in shown
