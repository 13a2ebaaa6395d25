"""Event files: read back by a decoder of the tests' own, and by TensorBoard where it is installed."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from runnel import train
from runnel.train.tensorboard import crc32c
from tests.train.trainings import loader, trainer


def checksum(data: bytes) -> int:
    """CRC-32C bit by bit, rotated and offset as records hold it."""
    value = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            value = (value >> 1) ^ (0x82F63B78 * ((value ^ (byte >> bit)) & 1))
    value ^= 0xFFFFFFFF
    return (((value >> 15) | (value << 17)) + 0xA282EAD8) % 2**32


def fields(data: bytes) -> list[tuple[int, Any]]:
    """The fields of a message by number."""
    result: list[tuple[int, Any]] = []
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            value |= (data[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if not data[at - 1] & 0x80:
                return value

    while at < len(data):
        key = varint()
        wire = key & 7
        if wire == 0:
            result.append((key >> 3, varint()))
            continue
        size = {1: 8, 5: 4}.get(wire) or varint()
        piece, at = data[at : at + size], at + size
        result.append((key >> 3, struct.unpack({1: "<d", 5: "<f"}[wire], piece)[0] if wire in (1, 5) else piece))
    return result


def events(path: Path) -> list[dict[int, Any]]:
    data, result = path.read_bytes(), []
    while data:
        size, of_size = struct.unpack("<QI", data[:12])
        body, of_body = data[12 : 12 + size], struct.unpack("<I", data[12 + size : 16 + size])[0]
        assert (of_size, of_body) == (checksum(data[:8]), checksum(body))
        result.append(dict(fields(body)))
        data = data[16 + size :]
    return result


def scalars(event: dict[int, Any]) -> dict[str, float]:
    return {dict(fields(value))[1].decode(): dict(fields(value))[2] for _, value in fields(event.get(5, b""))}


def test_checksums_of_the_standard() -> None:
    """RFC 3720, B.4."""
    assert crc32c(b"\0" * 32) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(b"123456789") == 0xE3069283


def trained(folder: Path) -> train.Trainer:
    ours = trainer(callbacks=[train.TensorBoard(folder, every_steps=1)])
    ours.fit(loader(), 2)
    return ours


def test_events_hold_the_figures(tmp_path: Path) -> None:
    ours = trained(tmp_path)
    first, *epochs = events(next((tmp_path / "epoch").iterdir()))
    assert first[3] == b"brain.Event:2" and first[1] > 1e9
    assert [event[2] for event in epochs] == [1, 2]
    for event, figures in zip(epochs, ours.history, strict=True):
        assert scalars(event) == pytest.approx(figures, rel=1e-6)
    _, *steps = events(next((tmp_path / "step").iterdir()))
    assert [event[2] for event in steps] == list(range(1, 11))


def test_a_continued_training_run_voids_later_entries(tmp_path: Path) -> None:
    state = trained(tmp_path).state_dict()
    again = trainer(callbacks=[train.TensorBoard(tmp_path, every_steps=1)])
    again.load_state_dict(state)
    again.fit(loader(), 3)
    _, latest = sorted((tmp_path / "step").iterdir())
    _, start, *steps = events(latest)
    assert (start[2], dict(fields(start[7]))) == (11, {1: 1})
    assert [event[2] for event in steps] == list(range(11, 16))


@pytest.mark.suite
@pytest.mark.filterwarnings("ignore")
def test_tensorboard_reads_them(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    ours = trained(tmp_path)
    read = accumulator.EventAccumulator(str(tmp_path / "epoch"))
    read.Reload()
    assert set(read.Tags()["scalars"]) == set(ours.history[0])
    for name in ours.history[0]:
        points = [(point.step, point.value) for point in read.Scalars(name)]
        assert points == [(i + 1, pytest.approx(h[name], rel=1e-6)) for i, h in enumerate(ours.history)]
