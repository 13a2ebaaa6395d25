"""A training that is saved, and goes on in a fresh process, gives the bits of one that was never interrupted."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import runnel as rn
from runnel import optim
from tests.tensor.copying.described import described
from tests.tensor.copying.test_every_class import ROOT
from tests.tensor.copying.trainer import Trainer

KINDS = {kind.__name__: kind for kind in (optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop, optim.Adagrad)}


def saved(trainer: Trainer) -> dict[str, Any]:
    """Everything that the rest of the training depends on."""
    return {
        "model": trainer.model.state_dict(),
        "optimizer": trainer.optimizer.state_dict(),
        "schedule": trainer.schedule.state_dict(),
        "random": rn.get_rng_state(),
        "generator": trainer.model.generator.state_dict(),
        "counters": (trainer.epoch, {"best": trainer.best}),
    }


def resumed(kind: str, path: Path) -> Trainer:
    """A new trainer that goes on from the file."""
    state = rn.load(path)
    trainer = Trainer(KINDS[kind])
    trainer.model.load_state_dict(state["model"])
    trainer.optimizer.load_state_dict(state["optimizer"])
    trainer.schedule.load_state_dict(state["schedule"])
    trainer.model.generator.load_state_dict(state["generator"])
    rn.set_rng_state(state["random"])
    trainer.epoch, counters = state["counters"]
    trainer.best = counters["best"]
    return trainer


def outcome(trainer: Trainer, steps: int, compiled: bool) -> Any:
    """The losses of further steps, and the whole state after them."""
    return trainer.train(steps, compiled), described(saved(trainer))


@pytest.mark.parametrize(("kind", "compiled"), [*((kind, False) for kind in KINDS), ("SGD", True), ("AdamW", True)])
def test_a_resumed_run_equals_the_uninterrupted_one(kind: str, compiled: bool, tmp_path: Path) -> None:
    trainer = Trainer(KINDS[kind])
    if kind == "SGD":
        trainer.optimizer.param_groups[0].update(momentum=0.9, dampening=0.1)
    trainer.train(3, compiled)
    rn.save(saved(trainer), tmp_path / "state")
    expected = outcome(trainer, 3, compiled)
    assert outcome(resumed(kind, tmp_path / "state"), 3, compiled) == expected
    if compiled:
        assert outcome(resumed(kind, tmp_path / "state"), 3, False)[0] == expected[0], "in the other mode, too"


@pytest.mark.suite
def test_in_a_fresh_process(tmp_path: Path) -> None:
    trainer = Trainer()
    trainer.train(2, True)
    rn.save(saved(trainer), tmp_path / "state")
    expected = outcome(trainer, 2, True)
    code = (
        "import pickle, sys; from pathlib import Path\n"
        "from tests.io.test_resuming import outcome, resumed\n"
        "folder = Path(sys.argv[1])\n"
        "found = outcome(resumed('Adam', folder / 'state'), 2, True)\n"
        "(folder / 'found').write_bytes(pickle.dumps(found))"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=True)
    assert pickle.loads((tmp_path / "found").read_bytes()) == expected
