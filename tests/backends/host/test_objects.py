"""The object cache on disk: what it keeps, what it refuses, and what may happen to its folder."""

import errno
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runnel.backends.host import objects
from runnel.backends.host.objects import ObjectCache
from runnel.core import switches

KEY = "ab" * 32


OTHER = "cd" * 32


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of this test's own, where the user's secret is."""
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    return folder


def entry(cache: ObjectCache, key: str = KEY) -> Path:
    return cache.folder / f"{key}.rno"


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_is_put_comes_back(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path / "new" / "folder", 1 << 20)
    assert cache.get(KEY) is None
    cache.put(KEY, b"object")
    assert cache.get(KEY) == b"object"
    assert ObjectCache(tmp_path / "new" / "folder", 1 << 20).get(KEY) == b"object"
    assert len(files(cache.folder)) == 1


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "garbage", "longer"])
def test_a_damaged_file_is_a_miss_and_goes(tmp_path: Path, damage: str) -> None:
    cache = ObjectCache(tmp_path, 1 << 20)
    cache.put(KEY, b"object code of some length")
    path = entry(cache)
    content = bytearray(path.read_bytes())
    damaged = {"truncate": content[:-1], "empty": b"", "garbage": b"x" * 500, "longer": content + b"x"}
    if damage == "flip":
        content[-3] ^= 1
    path.write_bytes(damaged.get(damage, content))
    assert cache.get(KEY) is None
    assert not path.exists()
    cache.put(KEY, b"again")
    assert cache.get(KEY) == b"again"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT])
@pytest.mark.parametrize("function", ["open", "write", "link", "mkdir"])
def test_a_disk_that_refuses_is_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, number: int
) -> None:
    ready = ObjectCache(tmp_path, 1 << 20)
    ready.put(OTHER, b"object")  # the secret is there
    called = getattr(os, function)

    def refuse(*args: object, **kwargs: object) -> object:
        if function == "open" and args[1] & os.O_TMPFILE != os.O_TMPFILE:  # type: ignore[operator]
            return called(*args, **kwargs)
        raise OSError(number, os.strerror(number))

    cache = ObjectCache(tmp_path / "new" if function == "mkdir" else tmp_path, 1 << 20)
    with monkeypatch.context() as patch:
        patch.setattr(os, function, refuse)
        with pytest.warns(RuntimeWarning, match=os.strerror(number)) as caught:
            cache.put(KEY, b"object")
            cache.put(KEY, b"object")
    assert len(caught) == 1
    assert files(tmp_path) == [OTHER + ".rno"]
    assert cache.get(KEY) is None
    assert ready.get(OTHER) == b"object"


def test_a_file_in_the_folders_place_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = ObjectCache(tmp_path / "file", 1 << 20)
    with pytest.warns(RuntimeWarning, match="Not a directory"):
        cache.put(KEY, b"object")
    assert cache.get(KEY) is None


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_no_error(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path, 1 << 20)
    cache.put(KEY, b"object")
    tmp_path.chmod(0o500)
    try:
        with pytest.warns(RuntimeWarning, match="Permission denied"):
            cache.put(OTHER, b"other")
        assert cache.get(KEY) == b"object"
        assert cache.get(OTHER) is None
    finally:
        tmp_path.chmod(0o700)


def test_the_least_recently_used_files_go_first(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path, 10_000)
    now = time.time()
    for i in range(9):
        cache.put(f"{i:064x}", bytes(1000))
        os.utime(entry(cache, f"{i:064x}"), (now, now - 10_000 * (9 - i)))
    assert cache.get(f"{0:064x}") is not None  # used: now the youngest
    cache.put(f"{9:064x}", bytes(1000))
    left = {int(name.split(".")[0], 16) for name in files(tmp_path)}
    assert sum((tmp_path / name).stat().st_size for name in files(tmp_path)) <= 7500
    assert {0, 8, 9} <= left and not {1, 2} & left


def test_the_folder_stays_below_its_bound(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path, 50_000)
    for i in range(200):
        cache.put(f"{i:064x}", bytes(1000 + i))
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 50_000
    cache.put(KEY, bytes(60_000))
    assert cache.get(KEY) is None


def test_eviction_counts_what_others_wrote_and_clears_their_litter(tmp_path: Path) -> None:
    other = ObjectCache(tmp_path, 1 << 20)
    for i in range(20):
        other.put(f"{i:064x}", bytes(1000))
    litter = tmp_path / ".runnel-dead.part"
    litter.write_bytes(b"half")
    ObjectCache(tmp_path, 5_000).put(KEY, bytes(100))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 5_000
    assert not litter.exists()


def test_many_writers_and_evictors_share_a_folder(tmp_path: Path) -> None:
    def work(seed: int) -> int:
        cache = ObjectCache(tmp_path, 20_000)
        wrong = 0
        for i in range(60):
            key = (seed * 7 + i) % 40
            entry = cache.get(f"{key:064x}")
            wrong += entry not in (None, bytes([key]) * 900)
            cache.put(f"{key:064x}", bytes([key]) * 900)
        return wrong

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(work, range(6))) == 0


def test_the_switches_choose_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with switches.override(cache=False):
        assert objects.current() is None
    with switches.override(cache=True, cache_dir=str(tmp_path), cache_size=77):
        cache = objects.current()
        assert cache is not None and (cache.folder, cache.limit) == (tmp_path, 77)
        assert objects.current() is cache
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert objects.user_cache_dir() == tmp_path / "runnel"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert objects.user_cache_dir() == tmp_path / "home" / ".cache" / "runnel"
    monkeypatch.setattr("sys.platform", "darwin")
    assert objects.user_cache_dir() == tmp_path / "home" / "Library" / "Caches" / "runnel"


@pytest.mark.parametrize("home", ["", "relative"])
def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    monkeypatch.setenv("HOME", home)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path.replace("~", home) if home else path)
    monkeypatch.setattr(objects, "_OPEN", {})
    with switches.override(cache=True, cache_dir=""):
        with pytest.warns(RuntimeWarning, match="no home folder; RUNNEL_CACHE_DIR can name another"):
            assert objects.current() is None
        assert objects.current() is None
