"""A training that was interrupted anywhere continues to the bit."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import data, train
from runnel.core.errors import FileError, StateError
from tests.train.trainings import BATCH, SAMPLES, arrays, described, full, loader, outcome, trainer

pytestmark = pytest.mark.suite


class Dies(train.Callback):
    """Raises after a step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, trainer: Any, logs: Any) -> None:
        if trainer.steps == self.step:
            raise RuntimeError("died")


class Noisy:
    """Samples to which random numbers of the default generator are added as they are loaded."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, i: int) -> tuple[Any, int]:
        return rn.randn(4) + i % 3, i % 2


LOADERS = {
    "default generator": loader,
    "generator": lambda: loader(rn.Generator(7)),
    "workers": lambda: loader(rn.Generator(7), workers=2),
    "noisy": lambda: data.DataLoader(Noisy(), 8, shuffle=True),
    "in rounds": lambda: data.DataLoader(
        Noisy(), 8, sampler=data.RandomSampler(range(40), num_samples=100), num_workers=0
    ),
}


@pytest.mark.parametrize(
    ("kind", "accumulate"), [*((kind, 1) for kind in LOADERS), ("default generator", 2), ("in rounds", 2)]
)
def test_continued_in_the_middle_of_an_epoch(kind: str, accumulate: int, tmp_path: Path) -> None:
    whole = full(tmp_path / "whole", accumulate=accumulate)
    whole.fit(LOADERS[kind](), 3, loader())
    expected = outcome(whole, tmp_path / "whole")
    early = [4] if (kind, accumulate) == ("default generator", 1) else []
    for step in (*early, 2 * whole.steps // 3):
        folder = tmp_path / f"{step}"
        died = full(folder, accumulate=accumulate)
        died.callbacks.insert(0, Dies(step))
        with pytest.raises(RuntimeError, match="died"):
            died.fit(LOADERS[kind](), 3, loader())
        continued = full(folder, accumulate=accumulate)
        rn.manual_seed(99)
        continued.fit(LOADERS[kind](), 3, loader(), resume=folder / "states")
        assert outcome(continued, folder) == expected


def test_a_training_that_raised_continues_in_the_same_process(tmp_path: Path) -> None:
    whole = full(tmp_path / "whole")
    whole.fit(loader(), 3, loader())

    class Fails(data.TensorDataset):
        fails = True

        def collated(self, numbers: Any) -> Any:
            if Fails.fails and sorted(numbers) != list(numbers) and 65 in numbers:
                Fails.fails = False
                raise OSError("disk gone")
            return super().collated(numbers)

    ours, source = full(tmp_path / "ours"), loader()
    source.dataset = Fails(*source.dataset.tensors)
    with pytest.raises(OSError, match="disk gone"):
        ours.fit(source, 3, loader())
    ours.fit(source, 3, loader())
    assert outcome(ours, tmp_path / "ours") == outcome(whole, tmp_path / "whole")


@pytest.mark.parametrize("own", [False, True])
def test_a_first_batch_that_failed_comes_again(own: bool) -> None:
    def batches() -> data.DataLoader:
        return loader(rn.Generator(7) if own else None)

    whole = trainer()
    whole.fit(batches(), 2)
    ours, source = trainer(), batches()
    collate = source.collate_fn

    def fails(samples: Any) -> Any:
        source.collate_fn = collate
        raise OSError("disk gone")

    source.collate_fn = fails
    with pytest.raises(OSError, match="disk gone"):
        ours.fit(source, 2)
    ours.fit(source, 2)
    assert described(ours.state_dict()) == described(whole.state_dict())


class Interrupts(train.Callback):
    """Presses Ctrl-C after a step, or while the validation runs."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, trainer: Any, logs: Any) -> None:
        if trainer.steps == self.step:
            os.kill(os.getpid(), signal.SIGINT)


class InterruptingBatches:
    """Batches of a validation that press Ctrl-C the first time."""

    def __init__(self) -> None:
        self.is_over = False

    def __iter__(self) -> Iterator[Any]:
        for i, batch in enumerate(loader()):
            if i == 2 and not self.is_over:
                self.is_over = True
                os.kill(os.getpid(), signal.SIGINT)
            yield batch


@pytest.fixture
def pythons_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "given back"
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("pythons_handler")
def test_ctrl_c_leaves_a_state_to_continue_from(tmp_path: Path) -> None:
    whole = full(tmp_path / "whole", every_steps=0)
    whole.fit(loader(), 3, loader())
    expected = outcome(whole, tmp_path / "whole")
    for number, validation in enumerate((InterruptingBatches(), loader())):
        folder = tmp_path / f"{number}"
        ours = full(folder, every_steps=0)
        if number:
            ours.callbacks.insert(0, Interrupts(7))
        sentence = (
            rf"stopped after step {7 if number else 5}, in epoch {number + 1}\. The state is in '.*\d.state': fit"
        )
        with pytest.raises(KeyboardInterrupt, match=sentence):
            ours.fit(loader(), 3, validation)
        continued = full(folder, every_steps=0)
        continued.fit(loader(), 3, validation, resume=folder / "states")
        assert outcome(continued, folder) == expected


@pytest.mark.usefixtures("pythons_handler")
def test_ctrl_c_without_a_checkpoint() -> None:
    whole = trainer()
    whole.fit(loader(), 2)
    ours = trainer(callbacks=[Interrupts(3)])
    with pytest.raises(KeyboardInterrupt, match="Nothing was saved"):
        ours.fit(loader(), 2)
    ours.fit(loader(), 2)
    assert ours.history == whole.history


def test_the_last_few_states_stay_and_the_best(tmp_path: Path) -> None:
    ours = trainer(callbacks=[train.Checkpoint(tmp_path, every_steps=2, every_epochs=0, keep=3, best="loss")])
    ours.fit(loader(), 4)
    assert sorted(os.listdir(tmp_path)) == ["best.state", *(f"step-{n:010d}.state" for n in (16, 18, 20))]
    losses = [figures["loss"] for figures in ours.history]
    assert rn.load(tmp_path / "best.state")["epochs"] == 1 + int(np.argmin(losses))
    assert train.last_checkpoint(tmp_path) == str(tmp_path / "step-0000000020.state")
    assert train.last_checkpoint(tmp_path / "nowhere") is None


def test_a_full_disk_leaves_the_last_state(tmp_path: Path) -> None:
    whole = full(tmp_path / "whole", every_steps=2)
    whole.fit(loader(), 2, loader())
    folder = tmp_path / "ours"
    ours = full(folder, every_steps=2)

    class Full(train.Callback):
        def on_step_end(self, trainer: Any, logs: Any) -> None:
            if trainer.steps == 4:
                resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, before[1]))

    ours.callbacks.insert(0, Full())
    sentence = (
        r"\[Checkpoint\] the state after step 4 could not be written to .*: File too large\. The last whole state is "
        r"'.*step-0000000002.state'\. Free some space"
    )
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with pytest.raises(FileError, match=sentence) as caught:
            ours.fit(loader(), 2, loader())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.errno == errno.EFBIG and os.listdir(folder / "states") == ["step-0000000002.state"]
    continued = full(folder, every_steps=2)
    continued.fit(loader(), 2, loader(), resume=folder / "states")
    assert outcome(continued, folder) == outcome(whole, tmp_path / "whole")


def test_runs_that_cannot_be_resumed(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"\[resume\] there is no file"):
        trainer().fit(loader(), resume=tmp_path / "step-0000000001.state")
    (tmp_path / "step-0000000001.state").write_bytes(b"12345678 damaged")
    with pytest.raises(FileError, match=r"\[resume\].*cannot be read.*no older state"):
        trainer().fit(loader(), resume=tmp_path)
    ours = trainer()
    state = ours.state_dict()
    state["pass"] = {"count": 9, "generators": [], "drawn_before": [], "default": [], "loader": None}
    ours.load_state_dict(state)
    with pytest.raises(StateError, match="a pass over more than 5 batches, and now there are 5"):
        ours.fit(loader())


def test_a_damaged_last_state_and_the_one_before(tmp_path: Path) -> None:
    whole = full(tmp_path / "whole")
    whole.fit(loader(), 2, loader())
    folder = tmp_path / "cut"
    full(folder).fit(loader(), 2, loader())
    *_, before, last = sorted((folder / "states").glob("step-*"))
    last.write_bytes(last.read_bytes()[:100])
    continued = full(folder)
    with pytest.raises(FileError, match=rf"\[resume\].*{last.name}' cannot be read.*{before.name}', is whole: delete"):
        continued.fit(loader(), 2, loader(), resume=folder / "states")
    continued.fit(loader(), 2, loader(), resume=before)
    assert outcome(continued, folder) == outcome(whole, tmp_path / "whole")


class Counting(data.TensorDataset):
    """Remembers which samples are read."""

    def __init__(self) -> None:
        x, y = arrays()
        super().__init__(rn.asarray(x), rn.asarray(y))
        self.read: list[int] = []

    def collated(self, numbers: Any) -> Any:
        self.read += numbers
        return super().collated(numbers)


def test_a_loader_goes_on_without_reading_what_was_read() -> None:
    def batches() -> data.DataLoader:
        return data.DataLoader(Counting(), BATCH, shuffle=True)

    whole, source = trainer(), batches()
    whole.fit(source, 1)
    died, interrupted = trainer(callbacks=[Dies(3)]), batches()
    with pytest.raises(RuntimeError, match="died"):
        died.fit(interrupted, 1)
    state = died.state_dict() | {"callbacks": []}
    continued, rest = trainer(seed=99), batches()
    continued.load_state_dict(state)
    continued.fit(rest, 1)
    assert interrupted.dataset.read + rest.dataset.read == source.dataset.read
    assert described(continued.state_dict()) == described(whole.state_dict())
    other = trainer()
    other.load_state_dict(state)
    with pytest.raises(StateError, match=r"\[DataLoader\] the state is of a loader with batch_size 16; this one has"):
        other.fit(loader(batch=7), 1)


class Late(data.Sampler[int]):
    """Draws each number when it is asked for."""

    def __init__(self, generator: rn.Generator | None = None) -> None:
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        return (int(rn.randint(0, SAMPLES, (1,), generator=self.generator).item()) for _ in range(SAMPLES))

    def __len__(self) -> int:
        return SAMPLES


@pytest.mark.parametrize("own", [False, True])
def test_an_order_that_is_drawn_batch_by_batch(own: bool) -> None:
    def batches() -> data.DataLoader:
        sampler = Late(rn.Generator(3) if own else None)
        return data.DataLoader(Counting(), BATCH, sampler=sampler)

    whole = trainer()
    whole.fit(batches(), 2)
    died = trainer(callbacks=[Dies(8)])
    with pytest.raises(RuntimeError, match="died"):
        died.fit(batches(), 2)
    state = died.state_dict() | {"callbacks": []}
    continued = trainer(seed=99)
    continued.load_state_dict(state)
    continued.fit(batches(), 2)
    assert described(continued.state_dict()) == described(whole.state_dict())


def test_the_training_data_may_be_gone_through_in_between() -> None:
    def run(step: int, seed: int = 1) -> train.Trainer:
        source = loader(rn.Generator(7))

        class Looks(train.Callback):
            def on_step_end(self, trainer: Any, logs: Any) -> None:
                next(iter(source))  # draws from the loader's generator

        ours = trainer(seed, callbacks=[Looks()] + [Dies(step)] * (step > 0))
        if state is not None:
            ours.load_state_dict(state)
        if step:
            with pytest.raises(RuntimeError, match="died"):
                ours.fit(source, 2)
        else:
            ours.fit(source, 2)
        return ours

    state = None
    whole = run(0)
    state = run(3).state_dict() | {"callbacks": [["Looks", {}]]}
    assert described(run(0, 99).state_dict()) == described(whole.state_dict())
