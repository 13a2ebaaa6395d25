"""Switches: what they accept, from code and from the environment, and what is told about the rest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runnel.core import switches
from runnel.core.errors import SettingError
from runnel.core.switches import RESOLVED, Switch

ROOT = Path(__file__).resolve().parents[2]

ACCEPTED = {
    "num_threads": [("4", 4), (" 3 ", 3), ("0", 0), (256, 256), ("+2", 2)],
    "target": [("avx2", "avx2"), ("host", "host"), (" neon ", "neon")],
    "cache": [("0", False), ("1", True), ("Off", False), (" yes ", True), (True, True), (0, False)],
    "cache_dir": [("~", os.path.expanduser("~")), ("$FOLDER/x", "/somewhere/x"), ("${FOLDER}x", "/somewherex"),
                  (" a b ", "a b"), (Path("/tmp"), "/tmp"), ("", "")],
    "cache_size": [("512MB", 512 << 20), ("1.5 GB", 3 << 29), ("7", 7), ("0", 0), ("2kb", 2048), (1 << 40, 1 << 40)],
    "debug": [("5", 5), (0, 0)],
    "stress": [("100", 100)],
    "effort": [("0", 0), (3, 3)],
}  # fmt: skip
REFUSED = {
    "num_threads": ["4.0", "four", "-1", "257", "9" * 5000, "1e3", "４", 2.0, True, None, [2], "0x2", "1_0"],
    "target": ["avx", "AVX2,", 7, None, []],
    "cache": ["maybe", "2", 2, None, 0.5, ""],
    "cache_dir": ["$NOWHERE/x", "${NOWHERE}", "~nobody-of-this-name/x", 7, None, b"/tmp", "a\0b"],
    "cache_size": ["-1", "1TBB", "inf", "nan", "1e400GB", "1.5", "MB", "9" * 30, -1, 1.5, True, None],
    "debug": ["6", "-1", "verbose"],
    "stress": ["1.5", "-3", "10000000"],
    "effort": ["4", "-1", "O2", True],
}
CASES = [(name, *case) for name, cases in ACCEPTED.items() for case in cases]
FAULTS = [(name, value) for name, values in REFUSED.items() for value in values]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDER", "/somewhere")
    monkeypatch.delenv("NOWHERE", raising=False)


@pytest.mark.parametrize(("name", "setting", "value"), CASES)
def test_accepted_arguments(name: str, setting: Any, value: Any) -> None:
    with switches.override(**{name: setting}):
        actual = Switch.registry[name].value
        assert actual == value and type(actual) is type(value)


@pytest.mark.parametrize(("name", "setting"), FAULTS)
def test_refusals_are_reported_and_change_nothing(name: str, setting: Any) -> None:
    before = {s.name: s.value for s in Switch.registry.values()}
    with pytest.raises(SettingError) as caught, switches.override(verify=False, **{name: setting}):
        pass
    message = str(caught.value)
    assert message.startswith(f"[{name}] must be {Switch.registry[name].accepted.what}; got {setting!r}")
    assert "\n" not in message and message.endswith(".")
    assert {s.name: s.value for s in Switch.registry.values()} == before


def test_an_unknown_switch_is_reported() -> None:
    with (
        pytest.raises(SettingError, match="No switch is called threads; there are"),
        switches.override(threads=2),
    ):
        pass


def test_each_change_makes_a_new_state() -> None:
    before = RESOLVED.state
    with switches.override(debug=1):
        inside = RESOLVED.state
    assert len({before, inside, RESOLVED.state}) == 3


def imported(**environment: str) -> subprocess.CompletedProcess[str]:
    code = (
        "import runnel\nfrom runnel.core.switches import Switch\n"
        "print({s.name: s.value for s in Switch.registry.values()})"
    )
    plain = {k: v for k, v in os.environ.items() if not k.startswith("RUNNEL_")}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=plain | environment, capture_output=True, text=True, check=False
    )


@pytest.mark.suite
def test_empty_variables_count_as_unset() -> None:
    defaults = {s.name: s.default for s in Switch.registry.values()}
    for blank in ("", "  "):
        done = imported(**{s.variable: blank for s in Switch.registry.values()})
        assert (done.stdout.strip(), done.stderr) == (str(defaults), "")


@pytest.mark.suite
def test_variables_are_read_like_values_in_code() -> None:
    setting = {name: str(cases[0][0]) for name, cases in ACCEPTED.items()}
    done = imported(**{Switch.registry[name].variable: text for name, text in setting.items()})
    expected = {s.name: s.default for s in Switch.registry.values()} | {n: c[0][1] for n, c in ACCEPTED.items()}
    assert done.stdout.strip() == str(expected), done.stderr


@pytest.mark.suite
def test_a_nonsensical_variable_is_reported_in_a_sentence() -> None:
    done = imported(RUNNEL_NUM_THREADS="4.0")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "runnel.core.errors.SettingError: [RUNNEL_NUM_THREADS] must be a whole number from 0 to 256; got '4.0'."
    )
