"""Run the capture tests of an earlier revision against the current package, and accept refusals.

    python scripts/history.py [--revision 00682d7a] [-j 2] [-k PATTERN] [FOLDER OR FILE OF tests/compile ...]

The adversarial programs of a revision (in ``tests/compile/adversarial`` and ``tests/compile/observe/adversarial``) come
out of git into a temporary folder. Each program runs in two equal worlds, eager and compiled. Accepted are:

* compiled: every call returns, raises, prints and changes what eager execution does, without a CaptureWarning;
* refused: the same, after a CaptureWarning that says why the calls run eagerly;
* stopped: every compiled call raises the error that the test of the revision expects, such as a TracedValueError;
* passed: a test of the revision that compares by itself, and passes.

A program that differs, or that kills its process, is a failure: its name is printed, and the exit status is 1. Tests of
the revision that assert something else (counts of traces, sentences of refusals) and fail are counted apart: "asserts
more". ``--verbose`` prints the difference of each failure.

pytest runs the programs, with a copy of the package as it is when the script starts. This file is its plugin, which
replaces what the tests of the revision compare with.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import types
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

import runnel as rn
from runnel.core import switches
from runnel.core.errors import CaptureWarning

ROOT: Final = Path(__file__).resolve().parent.parent
ADVERSARIAL: Final = "tests.compile.adversarial"
FOLDERS: Final = ("tests/compile/adversarial", "tests/compile/observe/adversarial")
TAKEN: Final = ("tests/__init__.py", "tests/random_numbers.py", "tests/compile")
KINDS: Final = ("compiled", "refused", "stopped", "passed", "asserts more", "cannot run", "crashed", "different")
EARLIER: Final = ("ops", "special", "random", "expressions", "compat.numpy", "nn.functional", "compat.torch")
SECONDS: Final = 120  # for one program; then its process ends, which counts as a crash
SETTINGS: Final = f"""
[pytest]
addopts = -p history -p no:cacheprovider --no-header --dist=worksteal -qq
faulthandler_timeout = {SECONDS}
faulthandler_exit_on_timeout = true
filterwarnings = ignore
markers =
    unit: a kind
    suite: a kind
    stress: a kind
"""


class Differs(AssertionError):
    """The compiled world does not look like the eager one."""


class Last:
    """How the program under way ended so far."""

    kind = ""


# The comparisons ------------------------------------------------------------------------------------------------------


def compare(plain: list[Any], compiled: list[Any]) -> None:
    """Raise Differs at the first call whose outcomes differ."""
    for number, (a, b) in enumerate(zip(plain, compiled, strict=True)):
        if a != b:
            raise Differs(f"call {number}\neager:    {a}\ncompiled: {b}")


def ended(is_refused: bool) -> None:
    """Note how a program ran. Of several in one test one that was refused counts."""
    if Last.kind != "refused":
        Last.kind = "refused" if is_refused else "compiled"


def run_story(story: Any, patch: pytest.MonkeyPatch) -> Any:
    """Run a story of a table, in place of ``Story.run``."""
    plain, _ = story._told(patch, lambda step: step)
    compiled, step = story._told(patch, rn.compile)
    compare([one.seen for one in plain], [one.seen for one in compiled])
    ended(any(one.told for one in compiled))
    return step


class Case(NamedTuple):
    """A case of ``worlds``: a function in a story."""

    make: Callable[[], Any]
    eager: str | None
    traces: int | None
    error: str | None

    def run(self) -> None:
        """Run the case in both worlds, and once more without gradients."""
        self._run()
        with rn.no_grad():
            self._run()

    def _run(self) -> None:
        worlds = sys.modules[f"{ADVERSARIAL}.worlds"]
        plain, _ = worlds.story(self.make, lambda function: function)
        compiled, _ = worlds.story(self.make, rn.compile)
        if self.error is not None and all(one.seen[0][1][1] == ("str", repr(self.error)) for one in compiled):
            Last.kind = "stopped"
            return
        compare([one.seen for one in plain], [one.seen for one in compiled])
        ended(any(one.told for one in compiled))


class Cases(list[Any]):
    """The cases of a file of the revision."""

    def case(self, make: Any = None, **expected: Any) -> Any:
        def add(function: Any) -> Any:
            case = Case(function, *(expected.get(name) for name in Case._fields[1:]))
            self.append(pytest.param(case, id=function.__name__))
            return function

        return add if make is None else add(make)


def shown(value: Any, depth: int = 0) -> Any:
    """Return a value of plain Python with its types, without addresses."""
    kind = type(value)
    if depth > 6:
        return "..."
    if isinstance(value, (list, tuple)) or kind.__name__ == "deque":
        return (kind.__name__, [shown(x, depth + 1) for x in list(value)])
    if isinstance(value, dict):
        return (kind.__name__, [(shown(k, depth + 1), shown(v, depth + 1)) for k, v in value.items()])
    if isinstance(value, (set, frozenset)):
        return (kind.__name__, sorted(map(repr, value)))
    if isinstance(value, (type, type(len), type(shown))):
        return value.__name__
    if hasattr(value, "__dict__") and not isinstance(value, BaseException):
        return (kind.__name__, shown(vars(value), depth + 1))
    return (kind.__name__, re.sub("0x[0-9a-f]+", "an address", repr(value)))


def called(make: Callable[[], Any], run: Callable[[Any], Any] = lambda function: function) -> list[Any]:
    """Return the outcome and the state after each call of a program of plain Python."""
    function, steps, *rest = make()
    state = rest[0] if rest else lambda: None
    target, outcomes = run(function), []
    for step in steps:
        if callable(step):
            step()
            continue
        args, kwargs = step
        try:
            result: Any = ("gives", shown(target(*args, **kwargs)))
        except Exception as problem:
            result = ("raises", type(problem).__name__, str(problem))
        outcomes.append((*result, shown(state())))
    return outcomes


def check(make: Callable[[], Any], refused: str | None = None) -> Any:
    """Run a program of plain Python, in place of ``observed.check``."""
    plain = called(make)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled = called(make, rn.compile)
    if called(make) == plain:  # otherwise it draws numbers or shows addresses
        compare(plain, compiled)
    ended(any(issubclass(one.category, CaptureWarning) for one in caught))
    return types.SimpleNamespace(raised=1, runs=0)


# The plugin -----------------------------------------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    """Replace what the tests of the revision compare with."""
    sys.path.insert(0, str(config.rootpath))
    for place in EARLIER:  # names that the top had then
        module = importlib.import_module(f"runnel.{place}")
        for name in dir(module):
            if not hasattr(rn, name):
                setattr(rn, name, getattr(module, name))
    worlds = types.ModuleType(f"{ADVERSARIAL}.worlds")
    exec((ROOT / "tests/compile/worlds.py").read_text(), vars(worlds))
    vars(worlds).update(Case=Case, Cases=Cases)
    observed = types.ModuleType("tests.compile.observe.observed")
    vars(observed).update(check=check)
    sys.modules.update({module.__name__: module for module in (worlds, observed)})
    importlib.import_module(f"{ADVERSARIAL}.stories").Story.run = run_story
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Summary())


@pytest.fixture(autouse=True)
def seeded(request: pytest.FixtureRequest) -> Iterator[None]:
    """Start each program with separate random numbers, and check what is compiled."""
    seed = zlib.crc32(request.node.nodeid.encode())
    for start in (random.seed, np.random.seed, rn.manual_seed):
        start(seed)
    Last.kind = ""
    with switches.override(verify=True):
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Note on the report of a program how it ended."""
    report = (yield).get_result()
    if call.when == "call":
        kind = "asserts more" if report.failed else Last.kind or "passed"
        report.user_properties.append(
            ("kind", "different" if call.excinfo and call.excinfo.errisinstance(Differs) else kind)
        )


class Summary:
    """Count how the programs ended, in the process that starts the others."""

    def __init__(self) -> None:
        self.names: dict[str, list[str]] = {kind: [] for kind in KINDS}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        kind = dict(report.user_properties).get("kind", "crashed" if report.failed else "")
        if kind and (report.when != "teardown" or report.failed):
            self.names[kind].append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.names["cannot run"].append(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for kind in KINDS[4:]:
            for name in self.names[kind]:
                terminalreporter.write_line(f"{kind}: {name}")
        terminalreporter.write_line(", ".join(f"{len(self.names[kind])} {kind}" for kind in KINDS))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        session.exitstatus = int(bool(self.names["crashed"] or self.names["different"]))


def copied(source: Path, target: Path) -> None:
    """Copy a file or a folder, without bytecode."""
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="*", default=FOLDERS, help="files or folders of the revision")
    parser.add_argument("--revision", default="00682d7a")
    parser.add_argument("-k", dest="pattern", default="", help="run the programs whose names match (as pytest -k)")
    parser.add_argument("-j", dest="processes", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="print how the failures differ")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="runnel-history-") as folder:
        packed = subprocess.run(["git", "archive", options.revision, *TAKEN], cwd=ROOT, check=True, capture_output=True)
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
        (Path(folder) / "pytest.ini").write_text(SETTINGS)
        for part in ("runnel", "scripts/history.py", "tests/compile/worlds.py"):  # as they are now, until the end
            copied(ROOT / part, Path(folder) / "now" / part)
        environment = {**os.environ, "RUNNEL_EFFORT": "0"}
        environment["PYTHONPATH"] = os.pathsep.join((f"{folder}/now", f"{folder}/now/scripts"))
        chosen = [f"-n{options.processes}", f"--tb={'short' if options.verbose else 'no'}", "-k", options.pattern]
        command = [sys.executable, "-m", "pytest", *chosen, *options.places]
        return subprocess.run(command, cwd=folder, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
