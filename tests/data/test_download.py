"""Downloads: what is kept and what is not, and what may stand where a file should be."""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from runnel.core.errors import RunnelError
from runnel.data import download
from tests.data.server import serving

CONTENT = b"figures" * 100
CHECKSUM = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "file").write_bytes(gzip.compress(CONTENT))
    with serving(tmp_path / "served") as address:
        yield address


def holes(path: Path) -> None:
    path.touch()
    os.truncate(path, 40 << 30)


@pytest.mark.parametrize("stand_in", [None, holes, Path.touch])
def test_a_damaged_file_is_downloaded_again_and_nothing_else_stays(
    url: str, tmp_path: Path, stand_in: Callable[[Path], None] | None
) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    if stand_in is not None:
        stand_in(folder / "file")
    assert download.fetch("file", CHECKSUM, [url], folder) == CONTENT
    assert os.listdir(folder) == ["file"]
    assert download.fetch("file", CHECKSUM, [], folder) == CONTENT


def test_a_file_that_cannot_be_kept_is_a_warning(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", refuse)
        with pytest.warns(RuntimeWarning, match="No space left"):
            assert download.fetch("file", CHECKSUM, [url], tmp_path / "kept") == CONTENT
    assert os.listdir(tmp_path / "kept") == []


def test_a_pipe_in_a_files_place_does_not_hang(url: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "file")
    with pytest.warns(RuntimeWarning, match="no regular file"):
        assert download.fetch("file", CHECKSUM, [url], tmp_path) == CONTENT


def test_files_that_do_not_end_are_refused(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "LARGEST", 10)
    with pytest.raises(RunnelError, match="more than 10 bytes"):
        download.fetch("file", CHECKSUM, [url], tmp_path / "kept")


def test_files_that_grow_when_unpacked_are_refused() -> None:
    assert download.unpacked(gzip.compress(bytes(1000)), "zeros", 1000) == bytes(1000)
    with pytest.raises(RunnelError, match="more than 999 bytes"):
        download.unpacked(gzip.compress(bytes(1000)), "zeros", 999)


def test_a_connection_that_ends_early_is_reported(tmp_path: Path) -> None:
    class Short(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(bytes(10))

    with ThreadingHTTPServer(("127.0.0.1", 0), Short) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        message = rf"file: the connection ended after 10 of 1000 bytes\n.* put it into '{tmp_path}/kept' yourself"
        with pytest.raises(RunnelError, match=message):
            download.fetch("file", CHECKSUM, [url], tmp_path / "kept")
    assert not (tmp_path / "kept").exists()
