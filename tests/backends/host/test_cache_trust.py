"""Whom the cache on disk believes: folders of the user alone, and entries that the user has signed for this key."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from runnel.backends.host import objects, own_folder
from runnel.backends.host.objects import ObjectCache

KEY, OTHER = "ab" * 32, "cd" * 32
ROOT = Path(__file__).parents[3]
STRANGER = 12345  # a user id that is not ours

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of this test's own, where the user's secret is."""
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an entry, below another one."""
    place = tmp_path / "outer" / "cache"
    cache_in(place).put(KEY, b"object")
    assert cache_in(place).get(KEY) == b"object"
    return place


def cache_in(folder: Path) -> ObjectCache:
    return ObjectCache(folder, 1 << 20)


def entry(folder: Path, key: str = KEY) -> Path:
    return folder / f"{key}.rno"


def assert_refused(folder: Path, reason: str) -> None:
    """Nothing is read or written, and there is one warning."""
    before = sorted(p.name for p in folder.iterdir())
    cache = cache_in(folder)
    with pytest.warns(RuntimeWarning, match=reason) as caught:
        assert cache.get(KEY) is None
        cache.put(OTHER, b"new")
        cache.drop(KEY)
    assert len(caught) == 1
    assert sorted(p.name for p in folder.iterdir()) == before


@pytest.mark.suite
def test_folders_are_made_for_the_user_alone(tmp_path: Path) -> None:
    code = """if True:
        import sys
        from runnel.backends.host.objects import ObjectCache
        ObjectCache(sys.argv[1], 99999).put('0' * 64, b'x')
        """
    folder = tmp_path / "a" / "b"
    subprocess.run([sys.executable, "-c", code, str(folder)], cwd=ROOT, umask=0, check=True)
    for place in (folder, folder.parent):
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE(entry(folder, "0" * 64).stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777, 0o1777])
def test_a_folder_that_others_may_write_is_refused(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    assert_refused(folder, "others may write to it")


@pytest.mark.parametrize("mode", [0o707, 0o777, 0o702])
def test_a_folder_that_others_may_replace_is_refused(folder: Path, mode: int) -> None:
    folder.parent.chmod(mode)
    assert_refused(folder, "others may write to .*outer")
    folder.parent.chmod(mode | stat.S_ISVTX)
    assert cache_in(folder).get(KEY) == b"object"


def test_a_folder_whose_group_may_replace_it_is_refused_unless_it_is_the_users_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.parent.chmod(0o770)
    state = folder.parent.stat()
    if state.st_uid == state.st_gid:  # users with a separate group often let it write everywhere
        assert cache_in(folder).get(KEY) == b"object"
    monkeypatch.setattr("runnel.backends.host.own_folder._user_name", lambda uid: "somebody")
    assert_refused(folder, "others may write to .*outer")


@as_root
def test_a_folder_of_another_user_is_refused(folder: Path) -> None:
    os.chown(folder, STRANGER, -1)
    assert_refused(folder, f"it belongs to user {STRANGER}")


@as_root
def test_a_folder_in_another_users_folder_is_refused(folder: Path) -> None:
    os.chown(folder.parent, STRANGER, -1)
    assert_refused(folder, f"outer belongs to user {STRANGER}")


@as_root
def test_links_are_followed_if_they_are_the_users_own(folder: Path, tmp_path: Path) -> None:
    for name, target in (
        ("absolute", folder),
        ("relative", Path("outer/../outer/./cache")),
        ("twice", Path("absolute")),
    ):
        link = tmp_path / name
        link.symlink_to(target)
        assert cache_in(link).get(KEY) == b"object"
    os.chown(tmp_path / "absolute", STRANGER, -1, follow_symlinks=False)
    assert_refused(tmp_path / "twice", f"the link .*absolute belongs to user {STRANGER}")


def test_a_link_to_a_bad_place_or_to_itself_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    folder.parent.chmod(0o777)
    assert_refused(tmp_path / "link", "others may write to .*outer")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.warns(RuntimeWarning, match="Too many levels"):
        assert cache_in(tmp_path / "loop").get(KEY) is None


def test_what_was_fine_is_asked_again(folder: Path) -> None:
    cache = cache_in(folder)
    assert cache.get(KEY) == b"object"
    folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="others may write"):
        assert cache.get(KEY) is None


def test_entries_are_sealed_for_their_key(folder: Path) -> None:
    entry(folder).rename(entry(folder, OTHER))
    cache = cache_in(folder)
    assert cache.get(OTHER) is None
    assert not entry(folder, OTHER).exists()


def test_entries_of_another_user_are_refused(folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(home / "other"))
    (home / "other").mkdir(mode=0o700)
    assert cache_in(folder).get(KEY) is None


def test_an_entry_with_a_checksum_alone_is_refused(folder: Path) -> None:
    import hashlib

    body = b"evil"
    for magic in (b"runnel object 1\n", objects._MAGIC):
        entry(folder).write_bytes(magic + hashlib.sha256(body).digest() + body)
        assert cache_in(folder).get(KEY) is None


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as s:
        place = os.open(path.parent, os.O_RDONLY)
        s.bind(f"/proc/self/fd/{place}/{path.name}")  # paths of sockets are short
        os.close(place)


def empty_folder(path: Path) -> None:
    path.mkdir()


def holes(path: Path) -> None:
    path.touch()
    os.truncate(path, 40 << 30)


def link_to_a_good_entry(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


def link_to_zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def unreadable(path: Path) -> None:
    path.touch(mode=0)


@pytest.mark.parametrize(
    "stand_in", [pipe, listening, empty_folder, holes, link_to_a_good_entry, link_to_zeros, unreadable]
)
def test_what_is_no_entry_is_a_miss_and_makes_room(folder: Path, stand_in: Callable[[Path], None]) -> None:
    if stand_in is not link_to_a_good_entry:
        entry(folder).unlink()
    stand_in(entry(folder))
    cache = cache_in(folder)
    assert cache.get(KEY) is None
    cache.put(KEY, b"again")
    assert cache.get(KEY) == b"again"
    assert entry(folder).is_file() and not entry(folder).is_symlink()


def test_a_full_folder_in_an_entrys_place_stays(folder: Path) -> None:
    entry(folder).unlink()
    entry(folder).mkdir()
    (entry(folder) / "something").touch()
    cache = cache_in(folder)
    assert cache.get(KEY) is None
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        cache.put(KEY, b"again")
    assert (entry(folder) / "something").exists()


def test_random_damage_never_gives_another_body(folder: Path) -> None:
    random = np.random.default_rng(5)
    bodies = {f"{i:064x}": random.bytes(int(random.integers(1, 200))) for i in range(30)}
    cache = cache_in(folder)
    for key, body in bodies.items():
        cache.put(key, body)
    whole = {key: entry(folder, key).read_bytes() for key in bodies}
    for _ in range(300):
        key, other = random.choice(list(bodies), 2)
        content = bytearray(whole[key])
        kind = random.integers(4)
        if kind == 0:
            content[random.integers(len(content))] ^= 1 << int(random.integers(8))
        elif kind == 1:
            del content[random.integers(len(content)) :]
        elif kind == 2:
            content = bytearray(whole[other])
        else:
            at = random.integers(len(content))
            content[at:at] = random.bytes(int(random.integers(1, 50)))
        entry(folder, key).write_bytes(content)
        assert cache.get(key) == (bodies[key] if content == whole[key] else None)


def test_the_secret_is_the_users_alone(home: Path, folder: Path) -> None:
    path = home / ".cache" / "runnel" / own_folder.SECRET_NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.stat().st_size == own_folder.SECRET_BYTES
    assert not (folder / own_folder.SECRET_NAME).exists()


@pytest.mark.parametrize("fault", ["seen", "short", "long", "link", "pipe"])
def test_a_bad_secret_is_replaced(home: Path, folder: Path, fault: str) -> None:
    path = home / ".cache" / "runnel" / own_folder.SECRET_NAME
    before = path.read_bytes()
    if fault == "seen":
        path.chmod(0o644)
    elif fault in ("short", "long"):
        path.write_bytes(before[:-1] if fault == "short" else before * 2)
    else:
        path.rename(home / "moved")
        path.symlink_to(home / "moved") if fault == "link" else os.mkfifo(path)
    assert cache_in(folder).get(KEY) is None
    cache_in(folder).put(KEY, b"again")
    assert cache_in(folder).get(KEY) == b"again"
    assert path.read_bytes() != before
    assert not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("fault", ["shared", "file"])
def test_without_a_home_of_ones_own_the_secret_is_in_the_folder(home: Path, tmp_path: Path, fault: str) -> None:
    if fault == "shared":
        home.chmod(0o777)
    else:
        (home / ".cache").write_text("in the way")
    folder = tmp_path / "cache"
    cache_in(folder).put(KEY, b"object")
    assert cache_in(folder).get(KEY) == b"object"
    assert stat.S_IMODE((folder / own_folder.SECRET_NAME).stat().st_mode) == 0o600


def test_all_who_start_at_once_have_one_secret(tmp_path: Path) -> None:
    def come(number: int) -> bytes:
        handle = os.open(tmp_path, os.O_RDONLY)
        try:
            return own_folder.secret_in(handle)
        finally:
            os.close(handle)

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(come, range(40)))) == 1
    assert os.listdir(tmp_path) == [own_folder.SECRET_NAME]
