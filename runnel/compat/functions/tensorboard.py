"""``torch.utils.tensorboard.SummaryWriter``: write scalars to event files for TensorBoard."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runnel.train.tensorboard import Writer


class SummaryWriter:
    """Write numbers by tag and step to event files in a folder, by default ``runs/DATE_TIME``.

    You do not need TensorBoard to write them. Histograms, images, text and graphs are not written; a warning says so.
    """

    def __init__(
        self, log_dir: Any = None, comment: str = "", purge_step: int | None = None, *args: Any, **options: Any
    ) -> None:
        folder = log_dir or f"runs/{time.strftime('%b%d_%H-%M-%S')}{comment}"
        self.log_dir = str(folder)
        self._purge_step = purge_step
        self._writers: dict[Path, Writer] = {}
        self._writer(Path(folder))

    def _writer(self, folder: Path) -> Writer:
        if folder not in self._writers:
            self._writers[folder] = Writer(folder, self._purge_step)
        return self._writers[folder]

    def get_logdir(self) -> str:
        return self.log_dir

    def add_scalar(self, tag: str, scalar_value: Any, global_step: Any = None, *args: Any, **options: Any) -> None:
        """Write a number at a step."""
        self._writer(Path(self.log_dir)).write(int(global_step or 0), {tag: float(scalar_value)})

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: Any = None, *args: Any
    ) -> None:
        """Write several numbers for one chart, each as a run in its own folder."""
        for tag, value in tag_scalar_dict.items():
            folder = Path(self.log_dir) / f"{main_tag.replace('/', '_')}_{tag}"
            self._writer(folder).write(int(global_step or 0), {main_tag: float(value)})

    def flush(self) -> None:
        """Do nothing: numbers are written at once."""

    def close(self) -> None:
        """Close the files."""
        while self._writers:
            self._writers.popitem()[1].close()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def add_histogram(self, *args: Any, **options: Any) -> None:
        """Not written."""
        _left_out("add_histogram")

    def add_image(self, *args: Any, **options: Any) -> None:
        """Not written."""
        _left_out("add_image")

    def add_images(self, *args: Any, **options: Any) -> None:
        """Not written."""
        _left_out("add_images")

    def add_figure(self, *args: Any, **options: Any) -> None:
        """Not written."""
        _left_out("add_figure")

    def add_text(self, *args: Any, **options: Any) -> None:
        """Not written."""
        _left_out("add_text")

    def add_graph(self, *args: Any, **options: Any) -> None:
        """Not written."""
        _left_out("add_graph")

    def add_embedding(self, *args: Any, **options: Any) -> None:
        """Not written."""
        _left_out("add_embedding")

    def add_pr_curve(self, *args: Any, **options: Any) -> None:
        """Not written."""
        _left_out("add_pr_curve")

    def add_hparams(self, hparam_dict: Any, metric_dict: Mapping[str, Any], *args: Any, **options: Any) -> None:
        """Write the metrics, without the hyperparameters."""
        for tag, value in metric_dict.items():
            self.add_scalar(tag, value)


def _left_out(name: str) -> None:
    warnings.warn(f"[{name}] event files here hold numbers alone; this is not written.", UserWarning, stacklevel=3)
