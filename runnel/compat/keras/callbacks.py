"""Callbacks under Keras's names."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import runnel.train.callbacks as train
from runnel.core.errors import ArgumentError
from runnel.io.saving import save
from runnel.train.tensorboard import Writer


class Callback:
    """The base class. ``self.model`` is the model; epochs and batches count from 0."""

    model: Any = None

    def set_model(self, model: Any) -> None:
        self.model = model

    def on_train_begin(self, logs: Any = None) -> None:
        """Run when ``fit`` begins."""

    def on_train_end(self, logs: Any = None) -> None:
        """Run when ``fit`` ends."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Run when an epoch begins."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Run when an epoch ends. ``logs`` maps names to results; you can add to it."""

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Run after a step."""


class History(Callback):
    """The result of ``fit``: ``history`` has a list for each result, ``epoch`` the numbers of the epochs."""

    def __init__(self) -> None:
        self.history: dict[str, list[Any]] = {}
        self.epoch: list[int] = []

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)


class EarlyStopping(Callback):
    """Stop when ``monitor`` has not improved for ``patience`` epochs."""

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0.0,
        patience: int = 0,
        mode: str = "auto",
        restore_best_weights: bool = False,
        start_from_epoch: int = 0,
    ) -> None:
        self._settings = monitor, mode, min_delta
        self.patience, self.restore_best_weights = patience, restore_best_weights
        self.start_from_epoch = start_from_epoch
        self.stopped_epoch = 0
        self.on_train_begin()

    def on_train_begin(self, logs: Any = None) -> None:
        self.watched = train.Watched("EarlyStopping", *self._settings)
        self.wait, self.best_weights = 0, None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if epoch < self.start_from_epoch:
            return
        if self.watched.improves(logs):
            self.wait = 0
            self.best_weights = self.model.get_weights() if self.restore_best_weights else None
            return
        self.wait += 1
        if self.wait >= max(self.patience, 1):
            self.stopped_epoch, self.model.stop_training = epoch, True
            if self.best_weights is not None:
                self.model.set_weights(self.best_weights)


class ModelCheckpoint(Callback):
    """Save the weights after each epoch, or with ``save_best_only`` when ``monitor`` improves.

    ``filepath`` may contain results, as in "{epoch:02d}-{val_loss:.2f}.weights". ``model.load_weights`` reads the
    files.
    """

    def __init__(
        self,
        filepath: str | os.PathLike[str],
        monitor: str = "val_loss",
        save_best_only: bool = False,
        save_weights_only: bool = True,
        mode: str = "auto",
    ) -> None:
        if not save_weights_only:
            raise ArgumentError("[ModelCheckpoint] weights are saved, not the model's code: save_weights_only=True.")
        self.filepath, self.save_best_only = os.fspath(filepath), save_best_only
        self.watched = train.Watched("ModelCheckpoint", monitor, mode)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if self.save_best_only and not self.watched.improves(logs):
            return
        path = Path(self.filepath.format(epoch=epoch + 1, **logs))
        path.parent.mkdir(parents=True, exist_ok=True)
        save(self.model.state_dict(), path)


class LearningRateScheduler(Callback):
    """Set the learning rate of each epoch to ``schedule(epoch, rate)``."""

    def __init__(self, schedule: Callable[[int, float], float]) -> None:
        self.schedule = schedule

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.model.optimizer.learning_rate = self.schedule(epoch, self.model.optimizer.learning_rate)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        logs["learning_rate"] = self.model.optimizer.learning_rate


class ReduceLROnPlateau(Callback):
    """Multiply the learning rate by ``factor`` when ``monitor`` has not improved for ``patience`` epochs.

    The next ``cooldown`` epochs do not count.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0.0,
    ) -> None:
        if factor >= 1:
            raise ArgumentError(f"[ReduceLROnPlateau] factor must be less than 1; got {factor}.")
        self.watched = train.Watched("ReduceLROnPlateau", monitor, mode, min_delta)
        self.factor, self.patience, self.cooldown, self.min_lr = factor, patience, cooldown, min_lr
        self.wait = self.cooling = 0

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        optimizer = self.model.optimizer
        logs["learning_rate"] = optimizer.learning_rate
        if self.cooling:
            self.cooling -= 1
            self.wait = 0
        if self.watched.improves(logs):
            self.wait = 0
        elif not self.cooling:
            self.wait += 1
            if self.wait >= self.patience and optimizer.learning_rate > self.min_lr:
                optimizer.learning_rate = max(optimizer.learning_rate * self.factor, self.min_lr)
                self.cooling, self.wait = self.cooldown, 0


class CSVLogger(Callback):
    """Write a row of results for each epoch, under a header with their names."""

    def __init__(self, filename: str | os.PathLike[str], separator: str = ",", append: bool = False) -> None:
        self.filename, self.separator, self.append = Path(filename), separator, append

    def on_train_begin(self, logs: Any = None) -> None:
        if not self.append:
            self.filename.write_text("")

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        row = {"epoch": epoch, **logs}
        with self.filename.open("a+", newline="") as file:
            writer = csv.writer(file, delimiter=self.separator, lineterminator="\n")
            if not file.tell():
                writer.writerow(row)
            writer.writerow(row.values())


class TensorBoard(Callback):
    """Write event files for TensorBoard, a point for each epoch, in the runs "train" and "validation"."""

    def __init__(self, log_dir: str | os.PathLike[str] = "./logs") -> None:
        self.log_dir = Path(log_dir)
        self._writers: dict[str, Writer] = {}

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        of_validation = {name.removeprefix("val_"): v for name, v in logs.items() if name.startswith("val_")}
        of_training = {name: v for name, v in logs.items() if not name.startswith("val_")}
        for run, figures in (("train", of_training), ("validation", of_validation)):
            if figures:
                if run not in self._writers:
                    self._writers[run] = Writer(self.log_dir / run, epoch if epoch else None)
                self._writers[run].write(epoch, {f"epoch_{name}": value for name, value in figures.items()})

    def on_train_end(self, logs: Any = None) -> None:
        while self._writers:
            self._writers.popitem()[1].close()


class Relay(train.Callback):
    """A Trainer's callback that calls Keras's callbacks."""

    def __init__(self, model: Any, callbacks: list[Callback]) -> None:
        self.model, self.callbacks = model, callbacks
        self._steps_before = 0  # steps of earlier epochs

    def on_fit_start(self, trainer: train.Run) -> None:
        for callback in self.callbacks:
            callback.set_model(self.model)
            callback.on_train_begin()

    def on_epoch_start(self, trainer: train.Run) -> None:
        self._steps_before = trainer.steps
        for callback in self.callbacks:
            callback.on_epoch_begin(trainer.epochs, {})

    def on_step_end(self, trainer: train.Run, logs: train.Logs) -> None:
        for callback in self.callbacks:
            callback.on_train_batch_end(trainer.steps - self._steps_before - 1, {"loss": logs["loss"]})
        self._stop(trainer)

    def on_epoch_end(self, trainer: train.Run, logs: Mapping[str, Any]) -> None:
        figures = {name: value for name, value in logs.items() if name != "lr"}
        for callback in self.callbacks:
            callback.on_epoch_end(trainer.epochs - 1, figures)
        self._stop(trainer)

    def on_fit_end(self, trainer: train.Run) -> None:
        for callback in self.callbacks:
            callback.on_train_end()

    def _stop(self, trainer: train.Run) -> None:
        if self.model.stop_training:
            trainer.stop("stop_training")
