"""Saving that is cut short: by kill -9 at any moment, by a full disk, by a place that cannot be written."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import FileError, RunnelError
from tests.tensor.copying.test_every_class import ROOT

pytestmark = pytest.mark.stress


KILLS = """
import os, random, signal, sys, time
import runnel as rn

folder = sys.argv[1]
target = os.path.join(folder, "state")
states = [{"step": i, "w": rn.full((200_000,), i), "kept": [rn.full((1000,), i)]} for i in range(2)]
rn.save(states[0], target)
random.seed(7)
debris = 0
for _ in range(40):
    child = os.fork()
    if not child:
        while True:
            for state in states[::-1]:
                rn.save(state, target)
    time.sleep(random.random() * 0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    found = rn.load(target)
    assert (found["w"].numpy() == found["step"]).all() and (found["kept"][0].numpy() == found["step"]).all()
    debris += os.listdir(folder) != ["state"]
    if random.random() < 0.2:
        rn.save(states[1], target)
        assert os.listdir(folder) == ["state"]
rn.save(states[0], target)
assert os.listdir(folder) == ["state"]
print("whole", debris)
"""


def test_a_killed_process_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", KILLS, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.startswith("whole"), done.stderr
    assert int(done.stdout.split()[1]) <= 6, "a name beside the target exists only for the instant of replacing it"


def limited(path: Path) -> None:
    """As on a full disk: the system refuses further bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        rn.save({"w": rn.zeros(100_000)}, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def missing_folder(path: Path) -> None:
    rn.save(1, path.parent / "nowhere" / "state")


def a_folder(path: Path) -> None:
    rn.save(1, path.parent)


def a_device(path: Path) -> None:
    rn.save_file({"x": rn.ones(1)}, "/dev/null")


@pytest.mark.parametrize(
    ("attempt", "code"),
    [
        (limited, errno.EFBIG),
        (missing_folder, errno.ENOENT),
        (a_folder, errno.EISDIR),
        (a_device, errno.EEXIST),
    ],
)
def test_graphs_that_cannot_be_written(attempt: Callable[[Path], None], code: int, tmp_path: Path) -> None:
    path = tmp_path / "state"
    rn.save({"old": rn.ones(3)}, path)
    with pytest.raises(
        FileError, match=r"^\[save(_file)?\] '.*' could not be written: .*\. An existing file"
    ) as caught:
        attempt(path)
    assert caught.value.errno == code and isinstance(caught.value, OSError) and isinstance(caught.value, RunnelError)
    assert rn.load(path)["old"].tolist() == [1.0] * 3
    assert os.listdir(tmp_path) == ["state"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(FileError, match="Permission denied"):
        rn.save(1, tmp_path / "state")


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    rn.save(1, tmp_path / "real")
    (tmp_path / "latest").symlink_to("real")
    rn.save(2, tmp_path / "latest")
    assert (tmp_path / "latest").is_symlink() and rn.load(tmp_path / "real") == 2


def test_saving_takes_no_second_copy_of_the_state(tmp_path: Path) -> None:
    """Dense values are written without a copy, however large."""
    state: dict[str, Any] = {f"w{i}": rn.asarray(np.zeros(1 << 20, np.float32)) for i in range(8)}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rn.save(state, tmp_path / "state")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 << 10
