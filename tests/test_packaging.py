"""The published files agree: pyproject.toml, the conda recipe, the docs, the wheel."""

from __future__ import annotations

import re
import runpy
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import runnel as rn
from runnel.compile.observe import versions

ROOT = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
PACKAGE: dict[str, Any] = runpy.run_path(str(ROOT / "scripts" / "package.py"), run_name="package")
INFO = f"runnel-{PROJECT['version']}.dist-info"


def recipe() -> dict[str, list[str]]:
    """The lists and values of the conda recipe, by their keys."""
    result: dict[str, list[str]] = {}
    key = ""
    for line in (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r" *(\w+): *(.*)", line):
            key = match[1]
            result[key] = [match[2].strip('"')] if match[2] else []
        elif match := re.fullmatch(r" +- (.+)", line):
            result[key].append(match[1])
    return result


def test_the_conda_recipe_is_of_this_version_and_needs_the_same() -> None:
    actual = recipe()
    python = f"python {PROJECT['requires-python']}"
    assert actual["version"] == [PROJECT["version"]] == [rn.__version__]
    assert actual["run"] == [python, *(each.replace(">", " >", 1) for each in PROJECT["dependencies"])]
    optional = {each.replace(">", " >", 1) for extra in ("einops", "demo", "data") for each in EXTRAS[extra]}
    assert set(actual["run_constrained"]) == optional
    assert actual["host"][0] == python and "hatchling" in actual["host"]
    ((command, function),) = PROJECT["scripts"].items()
    assert actual["entry_points"] == [f"{command} = {function}"]
    assert actual["summary"] == [PROJECT["description"]] and actual["license"] == [PROJECT["license"]]


def test_the_page_lists_every_extra_with_what_it_brings() -> None:
    page = (ROOT / "docs" / "start" / "install.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| ([^|]+) \|", page, flags=re.MULTILINE)
    listed = {extra: re.split(r",\s*", names.strip()) for extra, names in rows}
    assert listed == {extra: [re.split(r"[>=<]", each)[0] for each in group] for extra, group in EXTRAS.items()}


def test_the_versions_of_python_agree() -> None:
    classified = [
        match[1] for line in PROJECT["classifiers"] if (match := re.fullmatch(r".* :: Python :: (3\.\d+)", line))
    ]
    page = (ROOT / "docs" / "start" / "install.md").read_text(encoding="utf-8")
    (sentence,) = re.findall(r"on CPython ([^.]*(?:\.\d+[^.]*)*)\.", page)
    assert re.findall(r"3\.\d+", sentence) == classified
    after = tuple(map(int, classified[-1].split(".")))
    assert PROJECT["requires-python"] == f">={classified[0]},<{after[0]}.{after[1] + 1}"
    first, last = (tuple(map(int, version.split("."))) for version in (classified[0], classified[-1]))
    assert (first, last) == (versions.OLDEST, versions.NEWEST)


def wheel(folder: Path, *, without: str = "", extra: str = "", metadata: str = "") -> list[str]:
    """Return the faults found in a changed wheel of two files."""
    declared = {
        "name": "runnel", "version": PROJECT["version"], "description": "D", "license": "L",
        "requires-python": ">=3.11",
        "classifiers": ["C"], "dependencies": ["a>=1"], "optional-dependencies": {"more": ["b_c>=2"]},
        "scripts": {"runnel": "m:f"},
    }  # fmt: skip
    right = (
        f"Name: runnel\nVersion: {PROJECT['version']}\nSummary: D\nLicense-Expression: L\nRequires-Python: >=3.11\n"
        "Classifier: C\nRequires-Dist: a>=1\nProvides-Extra: more\nRequires-Dist: b-c>=2; extra == 'more'\n"
        "Description-Content-Type: text/markdown\n\nText."
    )
    files = {
        "runnel/__init__.py": "", "runnel/py.typed": "", f"{INFO}/METADATA": metadata or right,
        f"{INFO}/WHEEL": "Tag: py3-none-any\n", f"{INFO}/RECORD": "", f"{INFO}/licenses/LICENSE": "",
        f"{INFO}/entry_points.txt": "[console_scripts]\nrunnel = m:f\n",
    }  # fmt: skip
    if extra:
        files[extra] = ""
    path = folder / "runnel.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            if name != without:
                archive.writestr(name, text)
    faults: list[str] = PACKAGE["wheel_faults"](path, {"runnel/__init__.py", "runnel/py.typed", "tests/a.py"}, declared)
    return faults


def test_a_wheel_that_is_right(tmp_path: Path) -> None:
    assert wheel(tmp_path) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"without": "runnel/py.typed"}, "the wheel lacks runnel/py.typed"),
        ({"extra": "tests/a.py"}, "the wheel should not hold tests/a.py"),
        ({"metadata": "Name: other\n\n"}, "Name is ['other'], and should be ['runnel']"),
    ],
)
def test_faults_of_a_wheel(change: dict[str, str], fault: str, tmp_path: Path) -> None:
    assert fault in wheel(tmp_path, **change)
