"""Worker processes: the same batches as without them, whatever dies, hangs, raises or is left in the middle.

Nothing of them remains."""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import ArgumentError, FileError, StateError, WorkerError
from runnel.data import (
    ArrayDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    TensorDataset,
    default_collate,
    get_worker_info,
    transforms,
)
from runnel.data.workers import pool
from tests.data.samples import Samples, batches, plain

pytestmark = pytest.mark.suite
ROOT = Path(__file__).resolve().parents[2]


class Acting(Dataset[int]):
    """Sample ``at`` does something else."""

    def __init__(self, act: Any, at: int = 5) -> None:
        self.act = act
        self.at = at

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> int:
        return self.act() if index == self.at else index


class Numbers(IterableDataset[int]):
    """Each worker gives its share of the numbers."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[int]:
        worker = get_worker_info()
        first, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        return iter(range(first, self.count, step))


def children() -> set[int]:
    """The processes that this one has started, those that have ended without being waited for as well."""
    lists = (path.read_text() for path in Path("/proc/self/task").glob("*/children"))
    return {int(pid) for text in lists for pid in text.split()}


def shared_files() -> set[str]:
    """Return the shared memory with names of multiprocessing; other libraries' tests run beside this one."""
    return {name for name in os.listdir("/dev/shm") if name.startswith(("psm_", "sem.mp-", "pymp-"))}


@pytest.fixture(autouse=True)
def nothing_remains() -> Iterator[None]:
    """No process, no file of shared memory, no handle."""
    resource_tracker.ensure_running()  # stays, with a handle, once something starts by 'spawn'
    before = shared_files(), len(os.listdir("/proc/self/fd"))
    yield
    gc.collect()  # errors that were caught keep their frames
    assert multiprocessing.active_children() == []
    assert children() <= {resource_tracker._resource_tracker._pid}  # multiprocessing's own, for 'spawn'
    after = shared_files(), len(os.listdir("/proc/self/fd"))
    assert after[0] - before[0] == set() and after[1] <= before[1]


@pytest.mark.parametrize("options", [{}, {"drop_last": True, "prefetch_factor": 5}, {"batch_size": None}])
def test_any_number_of_workers_gives_the_same_batches(options: dict[str, Any]) -> None:
    alone = batches(0, **options)
    assert [batches(n, **options) for n in (1, 3)] == [alone, alone]
    assert batches(2, multiprocessing_context="thread", **options) == alone


def test_new_processes_return_them_too() -> None:
    script = """
        import runnel as rn
        from tests.data.samples import batches
        if __name__ == "__main__":
            assert batches(1, multiprocessing_context="spawn") == batches(0)
            print("equal")
    """
    assert run(script).stdout == "equal\n"


def test_batches_that_are_kept_keep_their_values() -> None:
    data = TensorDataset(rn.arange(6000).reshape(1000, 6), rn.arange(1000))

    def stacked(rows: list[Any]) -> list[Any]:
        return [rn.stack(column) for column in zip(*rows, strict=True)]

    kept = list(DataLoader(data, 2, num_workers=2, collate_fn=stacked))
    assert [y.tolist() for _, y in kept] == [[i, i + 1] for i in range(0, 1000, 2)]  # more than can be mapped
    assert all((x.numpy() == np.arange(6000).reshape(1000, 6)[y.numpy()]).all() for x, y in kept)


def test_batches_of_growing_and_odd_arrays() -> None:
    def ragged(numbers: list[int]) -> list[Any]:
        size = numbers[0] * 700
        return [np.arange(size), np.zeros((0, 3)), np.array("text"), np.arange(12).reshape(3, 4).T, rn.ones(size) * 2]

    for i, batch in enumerate(DataLoader(range(30), 1, num_workers=2, collate_fn=ragged)):  # type: ignore[arg-type]
        whole, empty, text, turned, twos = batch
        assert whole.tolist() == list(range(i * 700)) and empty.shape == (0, 3) and str(text) == "text"
        assert turned.shape == (4, 3) and turned[1].tolist() == [1, 5, 9] and (twos.numpy() == 2).all()


def test_errors_between_batches_do_not_disturb_them() -> None:
    def odd_ones_fail(numbers: list[int]) -> Any:
        if numbers[0] % 2:
            raise ValueError(numbers[0])
        return default_collate([np.full(100 + numbers[0], numbers[0])])

    loader = DataLoader(range(20), 1, num_workers=1, collate_fn=odd_ones_fail, persistent_workers=True)  # type: ignore[arg-type]
    workers, answers = loader._workers(0), {}
    workers.begin(0)
    for number in range(20):
        workers.ask(workers.workers[0], number, [number])
        workers.wait(number, answers, 5)
        if number % 2:
            assert answers[number].error.args == (number,)
        else:
            assert (answers[number].numpy() == number).all() and answers[number].shape == (1, 100 + number)
    workers.close()


def test_blocks_are_used_again() -> None:
    def where(numbers: list[int]) -> Any:
        return np.full(1000, numbers[0])

    addresses = Counter(
        batch.ctypes.data
        for batch in DataLoader(range(60), 1, num_workers=1, collate_fn=where)  # type: ignore[arg-type]
    )
    assert len(addresses) <= 5


def test_each_worker_has_a_share_of_a_stream() -> None:
    assert [b.tolist() for b in DataLoader(Numbers(7), 2, num_workers=1)] == [[0, 1], [2, 3], [4, 5], [6]]
    by_turns = [b.tolist() for b in DataLoader(Numbers(11), 2, num_workers=3)]
    assert by_turns == [[0, 3], [1, 4], [2, 5], [6, 9], [7, 10], [8]]
    assert [b.tolist() for b in DataLoader(Numbers(11), 2, num_workers=3, drop_last=True)] == by_turns[:-1]
    assert get_worker_info() is None


def test_workers_know_themselves_and_draw_apart() -> None:
    def tell(numbers: list[int]) -> Any:
        info = get_worker_info()
        assert info is not None and isinstance(info.dataset, range)
        return os.getpid(), info.id, info.num_workers, info.seed, random.getrandbits(60), np.random.randint(1 << 60)

    loader = DataLoader(range(8), 2, num_workers=2, collate_fn=tell, persistent_workers=True)  # type: ignore[arg-type]
    first, second = list(loader), list(loader)
    assert {i[1:3] for i in first} == {(0, 2), (1, 2)} and len({i[4] for i in first}) == len({i[5] for i in first}) == 4
    assert {i[3] - i[1] for i in first + second} == {first[0][3] - first[0][1]}
    assert {i[0] for i in first} == {i[0] for i in second}  # the same processes
    loader._pool.close()  # type: ignore[union-attr]


def test_an_epoch_that_is_left_does_not_disturb_the_next() -> None:
    loader = DataLoader(Samples(), 2, num_workers=2, persistent_workers=True)
    for _ in zip(range(2), loader, strict=False):
        pass
    assert [b["label"].tolist() for b in loader] == [list(range(i, min(i + 2, 23))) for i in range(0, 23, 2)]
    both = [(a["label"].tolist(), b["label"].tolist()) for a, b in zip(loader, loader, strict=True)]
    assert all(a == b for a, b in both) and len(both) == 12


def test_an_error_comes_at_its_place_with_the_traceback_of_the_worker() -> None:
    def fail() -> int:
        return {}["no such key"]  # type: ignore[no-any-return]

    loader = iter(DataLoader(Acting(fail), 2, num_workers=2))
    assert [next(loader).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(KeyError, match="no such key") as caught:
        next(loader)
    assert "in fail" in str(caught.value.__cause__)
    assert "reading sample 5 of batch 2" in caught.value.__notes__[0]


PREPARED: list[dict[str, Any]] = [
    {},
    {"num_workers": 2},
    {"num_workers": 2, "multiprocessing_context": "thread"},
]


def refuse(*_: Any) -> Any:
    raise FileError("[read_image] no image")


def end(*_: Any) -> Any:
    raise StopIteration


@pytest.mark.parametrize("options", PREPARED)
def test_the_sample_and_the_batch_of_an_error_are_named(options: dict[str, Any]) -> None:
    given = iter(DataLoader(Acting(refuse), 2, **options))
    assert [next(given).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(FileError, match="no image") as caught:
        next(given)
    (note,) = caught.value.__notes__
    assert "reading sample 5 of batch 2 (the data set's __getitem__ or __iter__)." in note
    with pytest.raises(FileError) as caught:
        list(DataLoader(Samples(), 2, collate_fn=refuse, **options))
    assert "putting batch 0 together (collate_fn)." in caught.value.__notes__[0]


@pytest.mark.parametrize("options", PREPARED)
def test_a_stop_iteration_in_a_sample_does_not_end_the_data(options: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError, match="raised StopIteration") as caught:
        list(DataLoader(Acting(end), 2, **options))
    assert "sample 5 of batch 2" in caught.value.__notes__[0]
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        list(DataLoader(Samples(), 2, collate_fn=end, **options))


@pytest.mark.parametrize("options", PREPARED[:2])
def test_a_stop_iteration_in_the_collate_fn_of_a_stream_does_not_end_it(options: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        list(DataLoader(Numbers(12), 2, collate_fn=end, **options))


def test_an_error_of_a_transform_of_whole_batches_names_the_batch() -> None:
    class Refusing(transforms.Transform):
        def many(self, images: Any, draws: Any) -> Any:
            return refuse()

    data = ArrayDataset(np.zeros((6, 3, 4, 4), np.uint8), np.arange(6), Refusing())
    with pytest.raises(FileError) as caught:
        list(DataLoader(data, 2))
    assert "reading the samples of batch 0, all at once" in caught.value.__notes__[0]


def test_an_error_that_cannot_be_sent_is_reported() -> None:
    class Local(Exception):
        def __init__(self, one: int, two: int) -> None:
            super().__init__(f"{one} and {two}")

    def fail() -> int:
        raise Local(1, 2)

    with pytest.raises(WorkerError, match=r"raised by worker . .*Local: 1 and 2"):
        list(DataLoader(Acting(fail), 2, num_workers=1))


def test_an_error_before_the_first_batch_is_reported() -> None:
    def fail(number: int) -> None:
        raise OSError(f"no file for worker {number}")

    with pytest.raises(OSError, match="no file for worker"):
        next(iter(DataLoader(Samples(), 2, num_workers=2, worker_init_fn=fail)))


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), r"was killed by SIGKILL .*; it was reading sample 5 of batch 2"),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), r"was killed by SIGSEGV; it was reading sample 5 of batch 2"),
        (lambda: os._exit(3), r"ended with exit code 3; it was reading sample 5"),
    ],
)
def test_a_worker_that_dies_is_named(act: Any, message: str) -> None:
    loader = DataLoader(Acting(act), 2, num_workers=2, persistent_workers=True)
    with pytest.raises(WorkerError, match=message):
        list(loader)
    assert loader.state_dict()["position"] <= 2
    loader.dataset.at = -1
    assert len(list(loader)) == 6  # new workers
    loader._pool.close()  # type: ignore[union-attr]


@pytest.mark.parametrize("context", ["fork", "thread"])
def test_a_worker_that_hangs_is_named(context: str) -> None:
    released = threading.Event()  # of this process: the others do not hear of it
    loader = DataLoader(Acting(released.wait), 2, num_workers=2, timeout=0.3, multiprocessing_context=context)
    with pytest.raises(WorkerError, match=r"batch 2 did not come within 0\.3 s") as caught:
        list(loader)
    if context == "fork":
        assert "has been reading sample 5 of batch 2" in str(caught.value)
    released.set()


def test_without_a_time_out_a_hanging_worker_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_WARN_AFTER", 0.2)
    event = multiprocessing.get_context("fork").Event()

    def wait() -> int:
        return 5 if event.wait(60) else 0

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        batches = iter(DataLoader(Acting(wait, 0), 2, num_workers=1))
        monkeypatch.setattr(pool.Pool, "_look_after_workers", lambda self: caught and event.set())
        assert next(batches).tolist() == [5, 1]
        del batches
    assert "worker 0" in str(caught[0].message) and "reading sample 0" in str(caught[0].message)


def test_a_worker_without_memory_to_share_is_reported() -> None:
    def limit(number: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    loader = DataLoader([np.zeros(1000), np.zeros(10**6)], 1, num_workers=1, worker_init_fn=limit)
    batches = iter(loader)
    assert next(batches).shape == (1, 1000)
    with pytest.raises(MemoryError, match=r"no shared memory of \d+ bytes for a batch"):
        next(batches)
    assert loader.state_dict()["position"] == 1


def test_objects_that_cannot_be_sent_to_a_new_process_are_reported() -> None:
    with pytest.raises(ArgumentError, match="Define them at the top of a module"):
        iter(DataLoader(range(3), collate_fn=lambda b: b, num_workers=1, multiprocessing_context="spawn"))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="cannot be sent by the worker"):
        list(DataLoader(range(3), collate_fn=lambda b: lambda: b, num_workers=1))  # type: ignore[arg-type]


@pytest.mark.parametrize("workers", [(0, 0), (2, 0), (0, 2), (2, 3)])
@pytest.mark.parametrize("own", [False, True])
def test_an_epoch_is_resumed_to_the_bit(workers: tuple[int, int], own: bool) -> None:
    def loader(count: int, seed: int) -> DataLoader:
        generator = rn.Generator(seed) if own else None
        return DataLoader(Samples(), 4, True, num_workers=count, generator=generator)

    def epochs(source: DataLoader, first: int) -> list[Any]:
        results = []
        for _ in range(first, 3):
            results.append([(plain(b), rn.rand(1).tolist()) for b in source])  # a model draws as well
        return results

    rn.manual_seed(3)
    whole = epochs(loader(0, 9), 0)
    rn.manual_seed(3)
    before = loader(workers[0], 9)
    for _ in before:
        rn.rand(1)
    iterator = iter(before)
    for _ in range(2):
        next(iterator), rn.rand(1)
    state, drawn = before.state_dict(), rn.get_rng_state().tolist()
    assert (state["epoch"], state["position"]) == (1, 2)
    del iterator
    rn.manual_seed(99)
    after = loader(workers[1], 11)
    rn.set_rng_state(np.array(drawn, np.uint32))
    after.load_state_dict(state)
    assert after.state_dict() == state
    resumed = epochs(after, 1)
    assert resumed == [whole[1][2:], whole[2]]


def test_a_state_survives_a_file(tmp_path: Path) -> None:
    loader = DataLoader(Samples(), 4, True, generator=rn.Generator(5))
    iterator = iter(loader)
    next(iterator)
    rn.save(loader.state_dict(), tmp_path / "state.safetensors")
    rest = [plain(b) for b in iterator]
    again = DataLoader(Samples(), 4, True, generator=rn.Generator(0))
    again.load_state_dict(rn.load(tmp_path / "state.safetensors"))
    assert [plain(b) for b in again] == rest


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_a_stream_is_resumed(workers: int) -> None:
    whole = [b.tolist() for b in DataLoader(Numbers(23), 2, num_workers=workers)]
    for position in (0, 1, 5, len(whole)):
        loader = DataLoader(Numbers(23), 2, num_workers=workers)
        iterator = iter(loader)
        for _ in range(position):
            next(iterator)
        state = loader.state_dict()
        del iterator
        again = DataLoader(Numbers(23), 2, num_workers=workers)
        again.load_state_dict(state)
        assert [b.tolist() for b in again] == whole[position:]
    assert loader.state_dict()["fits"]["streams"] == max(workers, 1)


def test_states_of_other_loaders_are_refused() -> None:
    state = DataLoader(Samples(), 4).state_dict()
    with pytest.raises(StateError, match="with batch_size 4; this one has batch_size 5"):
        DataLoader(Samples(), 5).load_state_dict(state)
    with pytest.raises(StateError, match="samples 23"):
        DataLoader(Samples(9), 4).load_state_dict(state)
    with pytest.raises(StateError, match="a state must have epoch"):
        DataLoader(Samples(), 4).load_state_dict({"position": 3})
    with pytest.raises(StateError, match="other generators"):
        DataLoader(Samples(), 4, generator=rn.Generator(1)).load_state_dict(state)


def run(script: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """A program as a file, which other processes can import."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(textwrap.dedent(script))
        file.flush()
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, file.name]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60, check=True, **options
        )


ENDLESS = """
    import os, signal, sys, time
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from runnel.data import DataLoader

    class Slow:
        def __len__(self):
            return 1000

        def __getitem__(self, index):
            if index > 40:
                time.sleep(60)
            return index

    loader = DataLoader(Slow(), 4, num_workers=2)
    try:
        for batch in loader:
            if batch[0] == 0:
                print(*(w.process.pid for w in batches_pool(loader)), flush=True)
    except KeyboardInterrupt:
        print("interrupted after", loader.state_dict()["position"], flush=True)
"""


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_their_parent(ending: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "endless.py"
    script.write_text(textwrap.dedent(ENDLESS).replace("batches_pool(loader)", "POOLS[-1].workers"))
    patch = "import runnel.data.loader as l\nPOOLS=[]\nclass P(l.Pool):\n    def __init__(s,*a,**k):\n"
    patch += "        super().__init__(*a,**k); POOLS.append(s)\nl.Pool=P\n"
    script.write_text(patch + script.read_text())
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, str(script)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None and process.stderr is not None
    workers = [int(pid) for pid in process.stdout.readline().split()]
    assert len(workers) == 2
    time.sleep(0.2)
    if ending == signal.SIGINT:
        os.killpg(process.pid, ending)  # as the terminal does
    else:
        process.send_signal(ending)
    output, errors = process.communicate(timeout=30)
    assert wait_for_end(workers)
    assert "Traceback" not in errors and not errors.strip()
    if ending == signal.SIGINT:
        assert output.startswith("interrupted after ") and process.returncode == 0


def wait_for_end(processes: list[int]) -> bool:
    """Return True as soon as none of them is running."""
    deadline = time.monotonic() + 20
    while any(is_running(pid) for pid in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"  # whoever inherits it may be slow to read its status


class Scaled(Dataset[int]):
    def __init__(self) -> None:
        self.settings = {"scale": 1}

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return index * self.settings["scale"] + 100 * os.getpid()


def test_workers_that_stay_read_the_data_set_as_it_is_now() -> None:
    def epoch() -> tuple[list[int], set[int]]:
        read = [sample for batch in loader for sample in batch.tolist()]
        return [sample % 100 for sample in read], {sample // 100 for sample in read}

    loader = DataLoader(Scaled(), 2, num_workers=1, persistent_workers=True)
    first, workers = epoch()
    assert epoch() == (first, workers) == ([0, 1, 2, 3], workers), "nothing has changed, and the worker stays"
    loader.dataset.settings["scale"] = 3
    changed, others = epoch()
    assert changed == [0, 3, 6, 9] and not others & workers
    loader.dataset = Scaled()
    assert epoch()[0] == first
    loader.collate_fn = lambda samples: default_collate(samples[::-1])
    assert epoch()[0] == [1, 0, 3, 2]
