"""Files written at once: the old one or the new one, whatever happens, and nothing beside it."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runnel.core import files as atomic_files
from runnel.core.files import write_atomically

OLD, NEW = b"old" * 1000, b"new" * 5000


@pytest.fixture(params=["unnamed", "named"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """On a file system with unnamed files, and on one without."""
    if request.param == "named":
        monkeypatch.setattr(atomic_files, "_open_unnamed", lambda folder: None)
    return request.param


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


@pytest.mark.parametrize("before", [None, OLD])
def test_pieces_become_the_content(path: Path, kind: str, before: bytes | None) -> None:
    if before is not None:
        path.write_bytes(before)
    write_atomically(path, (piece for piece in (b"a", bytearray(b"bc"), memoryview(b""), memoryview(b"d" * 10))))
    assert path.read_bytes() == b"abc" + b"d" * 10
    assert os.listdir(path.parent) == ["file"]


@pytest.mark.parametrize("before", [None, OLD])
@pytest.mark.parametrize("function", ["open", "write", "fsync", "link", "replace", "fchmod"])
def test_an_error_of_the_system_leaves_what_was_there(
    path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, function: str, before: bytes | None
) -> None:
    if before is not None:
        path.write_bytes(before)
    called = []

    def refuse(*args: object, **kwargs: object) -> None:
        called.append(function)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, function, refuse)
        try:
            write_atomically(path, [NEW])
        except OSError as error:
            assert error.errno == errno.ENOSPC
            assert called
        else:
            assert not called  # this way of writing has no such step
    files = {name: (path.parent / name).read_bytes() for name in os.listdir(path.parent)}
    assert files == ({"file": before} if before is not None else {}) or (not called and files == {"file": NEW})


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, ZeroDivisionError])
def test_an_error_in_the_pieces_leaves_what_was_there(path: Path, kind: str, error: type[BaseException]) -> None:
    def pieces() -> Iterator[bytes]:
        yield NEW
        raise error

    path.write_bytes(OLD)
    with pytest.raises(error):
        write_atomically(path, pieces())
    assert path.read_bytes() == OLD
    assert os.listdir(path.parent) == ["file"]


def in_a_child(work: Callable[[], None]) -> int:
    """Run ``work`` in a forked child, and say how it ended."""
    child = multiprocessing.get_context("fork").Process(target=work)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, which this child does not need
        child.start()
    child.join(60)
    assert child.exitcode is not None
    return child.exitcode


def die(*args: object, **kwargs: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.suite
@pytest.mark.parametrize("before", [None, OLD])
@pytest.mark.parametrize("moment", ["write", "fsync", "link", "replace"])
def test_a_killed_writer_leaves_nothing_that_stays(
    path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, moment: str, before: bytes | None
) -> None:
    if before is not None:
        path.write_bytes(before)
    with monkeypatch.context() as patch:
        patch.setattr(os, moment, die)
        ended = in_a_child(lambda: write_atomically(path, [NEW]))
    assert ended in (0, -signal.SIGKILL)
    if ended:
        assert (path.read_bytes() if path.exists() else None) == before
    if kind == "unnamed" and moment != "replace":  # between naming and replacing lies a moment
        assert {*os.listdir(path.parent)} <= {"file"}
    write_atomically(path, [NEW, OLD])
    assert path.read_bytes() == NEW + OLD
    assert os.listdir(path.parent) == ["file"]


def test_files_of_a_running_writer_stay(path: Path, kind: str) -> None:
    def slow() -> Iterator[bytes]:
        yield OLD
        write_atomically(path.parent / "other", [NEW])  # looks for abandoned files
        yield OLD

    write_atomically(path, slow())
    assert path.read_bytes() == OLD + OLD
    assert sorted(os.listdir(path.parent)) == ["file", "other"]


def test_without_locks_files_are_abandoned_by_age(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(atomic_files.fcntl, "flock", refuse)
    young, old = path.parent / ".runnel-1.part", path.parent / ".runnel-2.part"
    for part in (young, old):
        part.write_bytes(b"half")
    os.utime(old, (time.time() - 1e6,) * 2)
    write_atomically(path, [NEW])
    assert sorted(os.listdir(path.parent)) == [young.name, "file"]


def test_files_that_only_look_abandoned_stay(path: Path) -> None:
    os.mkfifo(path.parent / ".runnel-1.part")
    (path.parent / ".runnel-2.part").symlink_to(path)
    (path.parent / ".runnel-3.part").mkdir()
    (path.parent / "mine.part").write_bytes(b"mine")
    before = {*os.listdir(path.parent)}
    write_atomically(path, [NEW])
    assert {*os.listdir(path.parent)} == before | {"file"}


def test_many_writers_of_one_file(path: Path, kind: str) -> None:
    contents = [bytes([i]) * 5000 for i in range(40)]
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda content: write_atomically(path, [content]), contents):
            assert path.read_bytes() in contents
    assert os.listdir(path.parent) == ["file"]


@pytest.mark.suite
def test_permissions_equal_the_ones_of_open(path: Path, kind: str) -> None:
    code = "import sys; from runnel.core.files import write_atomically as w; w(sys.argv[1], [b'x'])"
    subprocess.run([sys.executable, "-c", code, str(path)], umask=0o027, check=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    write_atomically(path, [NEW])
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_links_are_followed(path: Path, kind: str) -> None:
    folder = path.parent / "folder"
    folder.mkdir()
    (folder / "real").write_bytes(OLD)
    path.symlink_to("folder/real")
    write_atomically(path, [NEW])
    assert path.is_symlink() and (folder / "real").read_bytes() == NEW


def test_a_path_that_is_not_a_file_is_not_replaced(path: Path, kind: str) -> None:
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(path, [NEW])
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(FileExistsError, match="no regular file"):
        write_atomically(path, [NEW])
    assert stat.S_ISFIFO(path.stat().st_mode)
    with pytest.raises(FileNotFoundError):
        write_atomically(path.parent / "no" / "folder", [NEW])


def test_a_file_that_may_not_be_written_is_not_replaced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(OLD)
    monkeypatch.setattr(os, "access", lambda *args, **kwargs: False)  # root may write anything
    with pytest.raises(PermissionError):
        write_atomically(path, [NEW])
    assert path.read_bytes() == OLD


def test_names_of_any_length_and_of_bytes(path: Path, kind: str) -> None:
    long = path.parent / ("n" * 255)
    write_atomically(long, [NEW])
    write_atomically(os.fsencode(path), [OLD])
    assert (long.read_bytes(), path.read_bytes()) == (NEW, OLD)
