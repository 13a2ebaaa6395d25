"""Each rung of RUNNEL_DEBUG prints what docs/debug/README.md says, and the page lists every switch."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

import runnel as rn
from runnel import ops
from runnel.core import switches
from runnel.core.switches import Switch
from runnel.inspection.inspection import _RUNGS, announce
from tests.inspection.programs import network, values

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "debug" / "README.md").read_text(encoding="utf-8")
SIGNS = {2: "as traced:", 3: "#  kernel", 4: "for x0 in i0..i1:", 5: "define void @"}


@pytest.mark.parametrize("level", range(6))
def test_rungs_include_those_below(level: int, capsys: pytest.CaptureFixture[str]) -> None:
    with switches.override(debug=level):
        announce(network())
    printed = capsys.readouterr()
    assert printed.out == ""
    for rung, sign in SIGNS.items():
        assert (sign in printed.err) == (level >= rung), (rung, level)


def test_a_program_is_announced_once(capsys: pytest.CaptureFixture[str]) -> None:
    @rn.compile
    def once(x: rn.Tensor) -> rn.Tensor:
        return ops.tanh(x) * 3.0

    with switches.override(debug=3):
        for _ in range(3):
            once(values(5))
    printed = capsys.readouterr().err
    assert printed.count("runnel: once, calls:") == 1


def test_passes_that_change_nothing_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    inspection = network()
    with switches.override(debug=2):
        announce(inspection)
    printed = capsys.readouterr().err
    texts = [str(inspection.graph), *(str(graph) for _, graph in inspection.passes)]
    same = sum(a == b for a, b in itertools.pairwise(texts))
    assert printed.count("unchanged") == same
    for name, _ in inspection.passes:
        assert f"after {name}:" in printed


def shown(default: object) -> str:
    """A default as one would write it in the environment."""
    return str(int(default)) if isinstance(default, bool) else str(default) or "empty"


def test_the_page_has_every_switch() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(RUNNEL_\w+)` \| (.+?) \| (.+?) \| (.+) \|$", PAGE, flags=re.MULTILINE)
    expected = [(s.name, s.variable, shown(s.default), s.accepted.what, s.help) for s in Switch.registry.values()]
    assert rows == expected


def test_the_page_has_every_rung() -> None:
    rungs = [int(n) for n in re.findall(r"^\| (\d) \| ", PAGE, flags=re.MULTILINE)]
    assert rungs == [1, *_RUNGS] == list(range(1, 6))


def test_compilations_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    @rn.compile
    def scaled(x: rn.Tensor) -> rn.Tensor:
        return rn.sin(x) / (rn.cos(x) + x) - x / (x - rn.sin(x))  # which no other test computes

    with switches.override(debug=1, cache=False):
        scaled(values(5))
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "compiled" in line]
    assert re.fullmatch(r"runnel: compiled map_\w+ in [\d.]+ ms", line)
