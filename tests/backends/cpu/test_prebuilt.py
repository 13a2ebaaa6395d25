"""Machine code that comes with the package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runnel.backends.cpu import compiler, driver, prebuilt
from runnel.backends.host import objects
from runnel.core import switches

TEXT = "define i64 @prebuilt_twice(i64 %x) {\n  %y = add i64 %x, %x\n  ret i64 %y\n}\n"
CODES = {prebuilt.key("machine", name): name.encode() * 5 for name in ("a", "b", "c")}


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The path where an archive is looked for during a test."""
    monkeypatch.setattr(prebuilt, "PATH", tmp_path / "prebuilt.bin")
    prebuilt._opened.cache_clear()
    yield prebuilt.PATH
    prebuilt._opened.cache_clear()


def test_entries_are_found_by_key(archive: Path) -> None:
    prebuilt.write(archive, CODES)
    assert [prebuilt.get(key) for key in CODES] == list(CODES.values())
    assert prebuilt.get(prebuilt.key("another machine", "a")) is None


@pytest.mark.parametrize("kept", [0, 5, 20, 100, -1])
def test_a_file_that_is_cut_off_is_not_used(archive: Path, kept: int) -> None:
    prebuilt.write(archive, CODES)
    archive.write_bytes(archive.read_bytes()[:kept])
    assert [prebuilt.get(key) for key in CODES] == [None] * 3


def test_recorded_code_is_linked_and_not_compiled(
    archive: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with switches.override(cache_dir=str(tmp_path / "cache")):
        monkeypatch.setattr(prebuilt, "recording", {})
        driver.host_compiler().object_code(TEXT)
        driver.host_compiler().compile({"key": compiler.of_text("prebuilt_twice", TEXT)})
        prebuilt.write(archive, prebuilt.recording or {})
        compiled = objects.statistics.compiled
        assert driver.host_compiler().addresses([("prebuilt_twice", TEXT)])[0] > 0
        assert objects.statistics.compiled == compiled


def test_code_that_cannot_be_linked_is_compiled(archive: Path, tmp_path: Path) -> None:
    with switches.override(cache_dir=str(tmp_path / "cache")):
        other = driver.host_compiler()
        prebuilt.write(archive, {prebuilt.key(other._machine_identity, TEXT): b"no object file"})
        assert other.addresses([("prebuilt_twice", TEXT)])[0] > 0
