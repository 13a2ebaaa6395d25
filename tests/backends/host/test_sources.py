"""The digest of the package's sources: what changes it, what is read for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runnel.backends.host import objects
from runnel.core import switches

OLD = 1_000_000_000  # a time, in seconds


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of two files, and a separate cache."""
    folder = tmp_path / "package"
    for name in ("ops/add.py", "ops/deep/dot.py"):
        write(folder / name, f"# {name}")
    monkeypatch.setattr(objects, "_PACKAGE", str(folder))
    with switches.override(cache=True, cache_dir=str(tmp_path / "cache")):
        yield folder


def write(path: Path, text: str, time: float = OLD) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (time, time))


def digest(*folders: str) -> str:
    """As in a process that begins."""
    objects.digest.cache_clear()
    try:
        return objects.digest(*folders)
    finally:
        objects.digest.cache_clear()


def test_each_change_of_sources_changes_it(package: Path) -> None:
    seen = [digest("ops")]
    write(package / "ops/add.py", "# another one")
    seen.append(digest("ops"))
    write(package / "ops/deep/dot.py", "# ops/deep/dat.py", OLD + 1)  # of the same length
    seen.append(digest("ops"))
    write(package / "ops/new.py", "")
    seen.append(digest("ops"))
    (package / "ops/new.py").rename(package / "ops/newer.py")
    seen.append(digest("ops"))
    (package / "ops/newer.py").unlink()
    assert digest("ops") == seen[2]
    write(package / "ops/notes.txt", "no source")
    assert digest("ops") == seen[2] and len({*seen}) == len(seen)


def test_files_that_did_not_change_are_not_read_again(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = digest("ops")
    monkeypatch.setattr(objects, "_of_contents", lambda paths: pytest.fail("sources were read"))
    assert digest("ops") == expected


def test_it_does_not_depend_on_times_or_on_the_cache(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = digest("ops")
    os.utime(package / "ops/add.py")  # just changed, as far as can be told: what follows may be a second change
    assert digest("ops") == expected
    (package / "ops/add.py").write_text("# ops/ADD.py")
    assert digest("ops") != expected
    write(package / "ops/add.py", "# ops/add.py")
    monkeypatch.setattr(objects, "current", lambda: None)
    assert digest("ops") == expected


def test_entries_of_another_form_are_made_anew(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = digest("ops")
    cache = objects.current()
    assert cache is not None
    (key,) = (path.stem for path in cache.folder.glob("*.rno"))
    for body in (b"", b"\xff" * 64, expected.encode()[:40], expected.encode() + b"\n"):
        cache.put(key, body)
        assert digest("ops") == expected and cache.get(key) == expected.encode()
