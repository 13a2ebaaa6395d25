"""The measured rates: sensible, kept on disk, and better ones replace them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runnel.backends.cpu import target
from runnel.backends.host import objects
from runnel.compiler.plan_ir.cost import Machine
from runnel.core import switches
from runnel.inspection import machine

TARGET = target.host()


def test_rates_are_positive_and_fall_with_the_bytes() -> None:
    rates = machine.measured(1)
    assert rates.flops > 1e9 and rates.threads == 1
    sizes, reads, writes = zip(*rates.levels, strict=True)
    assert list(sizes) == sorted(sizes)
    assert list(reads) == sorted(reads, reverse=True)
    assert min(reads) > 1e8 and min(writes) > 1e8


def test_rates_are_measured_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    levels = ((1 << 14, 3e9, 2e9), (1 << 26, 2e9, 1e9))
    measured: list[int] = []

    def measure(threads: int) -> Machine:
        measured.append(threads)
        return Machine(1.0, levels, threads)

    monkeypatch.setattr(machine, "measured", measure)
    with switches.override(cache=True, cache_dir=str(tmp_path)):
        fresh = machine._rates.__wrapped__
        assert fresh(1, TARGET) == Machine(1.0, levels, 1)
        again = fresh(1, TARGET)
        assert measured == [1]
        assert again.levels == levels and again.flops > 1.0  # the rate of arithmetic is looked at again: 1.0 was poor
        cache = objects.current()
        assert cache is not None
        body = cache.get(machine._key(1, TARGET))
        assert body is not None and json.loads(body)[0] == again.flops
        fresh(2, TARGET)
        assert measured == [1, 2]


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff", b"[]", b"[1, 2]", b'["x", [[1, 2, 3]]]', b"[1.0, []]", b"[NaN, [[1, 2, 3]]]", b"[1, [[1, 2, 0]]]"],
)
def test_values_kept_in_another_form_are_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    machine_now = Machine(1.0, ((1 << 14, 3e9, 2e9),), 1)
    monkeypatch.setattr(machine, "measured", lambda threads: machine_now)
    with switches.override(cache=True, cache_dir=str(tmp_path)):
        cache = objects.current()
        assert cache is not None
        cache.put(machine._key(1, TARGET), body)
        assert machine._rates.__wrapped__(1, TARGET) == machine_now
        entry = cache.get(machine._key(1, TARGET))
        assert entry is not None and json.loads(entry)[0] == 1.0
