"""Block sizes follow the cache that is found, and bits do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.backends import context
from runnel.backends.context import CompileContext
from runnel.backends.cpu.codegen import contract, dot_contract
from runnel.backends.host import threads
from runnel.compiler import disk_cache
from runnel.compiler.kernels.winograd_tiles import block_tiles
from runnel.core import dtypes, switches
from runnel.core.records import replace
from runnel.core.tables import Table
from runnel.graph.graph import Graph
from runnel.nn import functional as F
from tests.compiler.harness import Traced

SIZES = [threads.LEAST, threads.DEFAULT, threads.MOST]


def of_size(cache: int) -> CompileContext:
    return replace(context.current(), cache=cache)


def described(folder: Path, rows: list[tuple[str, str, str]]) -> Path:
    for number, row in enumerate(rows):
        (folder / f"index{number}").mkdir()
        for name, text in zip(("level", "type", "size"), row, strict=True):
            (folder / f"index{number}" / name).write_text(text + "\n")
    return folder


def test_the_second_level_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("1", "Data", "48K"), ("2", "Instruction", "64K"), ("2", "Unified", "1280K"), ("3", "Unified", "32M")]
    assert threads.of_folder(described(tmp_path, rows)) == 1280 << 10
    assert threads.of_folder(tmp_path / "missing") == 0
    assert [threads.usable(n) for n in (1, 1280 << 10, 1 << 30)] == [threads.LEAST, 1 << 20, threads.MOST]
    monkeypatch.setattr(threads, "_SYSTEM", tmp_path / "missing")
    monkeypatch.setattr(threads, "of_system", lambda: 0)
    assert threads.second_level.__wrapped__() == threads.DEFAULT


def test_blocks_are_cut_for_the_cache() -> None:
    small, usual, large = (contract.blocking_of(dtypes.float32, n) for n in SIZES)
    assert small.columns < usual.columns == large.columns
    assert small.small_a < usual.small_a == 1 << 20 < large.small_a
    assert small.crowded < usual.crowded == 1 << 18 < large.crowded
    assert dot_contract.blocking_of(threads.LEAST).columns < dot_contract.blocking_of(threads.DEFAULT).columns
    tiles = []
    for size in (threads.DEFAULT, threads.MOST):
        with context.entered(of_size(size)):
            tiles.append(block_tiles(64, 64, 10_000, dtypes.float32))
    assert tiles[0] < tiles[1]


def programs() -> list[tuple[Any, list[rn.Tensor]]]:
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> rn.Tensor:
        return rn.asarray(rng.standard_normal(shape).astype(np.float32))

    def convolution(x: Any, w: Any) -> Any:
        out, pull = rn.vjp(lambda x, w: F.conv2d(x, w, padding=1), x, w)
        return (out, *pull(out))

    return [
        (lambda a, b: a @ b, [normal(300, 1100), normal(1100, 530)]),
        (lambda a, b: a.T @ b, [normal(512, 200), normal(512, 64)]),
        (convolution, [normal(2, 48, 30, 30), normal(64, 48, 3, 3)]),
        (lambda a, b: a.astype(rn.bfloat16) @ b.astype(rn.bfloat16), [normal(90, 700), normal(700, 300)]),
    ]


def test_bits_do_not_depend_on_the_cache() -> None:
    for number, (fn, inputs) in enumerate(programs()):
        bits = []
        for size in SIZES:
            with context.entered(of_size(size)):
                bits.append([x.tobytes() for x in Traced(fn, inputs)(*inputs)])
        assert bits[0] == bits[1] == bits[2], number


def test_programs_on_disk_are_of_one_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Table, "registrations", Table.own_registrations)  # other tests may have registered rules
    graph = Traced(lambda x: x + 1, [rn.ones((3,))]).graph
    assert isinstance(graph, Graph)
    with switches.override(verify=False):
        keys = {disk_cache.key(graph, of_size(size), None) for size in SIZES}
    assert None not in keys and len(keys) == len(SIZES)
