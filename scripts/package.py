#!/usr/bin/env python3
"""Builds the sdist and the wheel, checks what they hold, and lays out the tests for a run against the installed wheel.

``scripts/package.py FOLDER`` needs ``pip install 'runnel[package]'``. It makes the folder and writes into it the sdist,
the wheel that is built from the sdist, and ``tests``: the sdist without the package, so that what is tested there is
the wheel that is installed. The path of the wheel is printed. RUNNEL_PREBUILT names the targets of the machine code in
the wheel (``hatch_build.py``); releases are built with "avx2 avx512 avx512_bf16 neon".
"""

from __future__ import annotations

import configparser
import email.message
import email.parser
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BESIDE = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}  # in the wheel's .dist-info
LARGEST = 15_000_000  # bytes of the wheel
ONLY_BUILT = {"PKG-INFO"}  # in the sdist and not in the repository


def project() -> dict[str, Any]:
    """Return the table of the package in pyproject.toml."""
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def tracked() -> set[str]:
    """The files of the repository."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {line for line in listed.splitlines() if (ROOT / line).is_file()}


def differences(name: str, actual: Iterable[str], expected: Iterable[str]) -> list[str]:
    """Return sentences about missing and unexpected files."""
    actual, expected = set(actual), set(expected)
    missing, extra = sorted(expected - actual), sorted(actual - expected)
    return [f"{name} lacks {each}" for each in missing] + [f"{name} should not hold {each}" for each in extra]


def stubs() -> set[str]:
    """Return the files for type checkers that the build writes into the wheel."""
    made = runpy.run_path(str(ROOT / "scripts" / "stubs.py"))["stubs"]
    return {path for path, _ in made()}


def wheel_faults(wheel: Path, files: set[str], declared: dict[str, Any]) -> list[str]:
    """Return the faults of a wheel: it must hold exactly the package and have the declared metadata."""
    info = f"{declared['name']}-{declared['version']}.dist-info/"
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        metadata = email.parser.Parser().parsestr(archive.read(f"{info}METADATA").decode())
        tags = email.parser.Parser().parsestr(archive.read(f"{info}WHEEL").decode()).get_all("Tag")
        scripts = configparser.ConfigParser()
        scripts.read_string(archive.read(f"{info}entry_points.txt").decode())
    package = {name for name in files if name.startswith("runnel/")}
    faults = differences("the wheel", names, package | {info + name for name in BESIDE})
    if tags != ["py3-none-any"]:
        faults.append(f"the wheel is for {tags}, and should be for py3-none-any")
    if dict(scripts["console_scripts"]) != declared["scripts"]:
        faults.append(f"the wheel's commands are {dict(scripts['console_scripts'])}")
    return faults + metadata_faults(metadata, declared)


def metadata_faults(metadata: email.message.Message, declared: dict[str, Any]) -> list[str]:
    """Compare the metadata with pyproject.toml."""
    extras = declared["optional-dependencies"]
    requirements = [*declared["dependencies"], *(each for group in extras.values() for each in group)]
    expected = {
        "Name": [declared["name"]],
        "Version": [declared["version"]],
        "Summary": [declared["description"]],
        "License-Expression": [declared["license"]],
        "Requires-Python": [declared["requires-python"]],
        "Description-Content-Type": ["text/markdown"],
        "Classifier": declared["classifiers"],
        "Provides-Extra": list(extras),
        "Requires-Dist": [plain(each) for each in requirements],
    }
    return [
        f"{key} is {actual}, and should be {value}"
        for key, value in expected.items()
        if (actual := sorted(map(plain, metadata.get_all(key, [])))) != sorted(map(plain, value))
    ]


def plain(text: str) -> str:
    """A requirement without its extra, names as they are compared, and bounds in one order."""
    return ",".join(sorted(re.sub(r"\s*;.*", "", text).replace("_", "-").split(",")))


def sdist_faults(sdist: Path, files: set[str]) -> list[str]:
    """Return the faults of an sdist: it must hold the repository."""
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    return differences("the sdist", names - ONLY_BUILT, files)


def main(folder: Path) -> int:
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        print(built.stdout, built.stderr, file=sys.stderr)
        return built.returncode
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    files, declared = tracked(), project()
    code = set() if os.environ.get("RUNNEL_PREBUILT") == "" else {"runnel/backends/cpu/prebuilt.bin"}
    faults = wheel_faults(wheel, files | stubs() | code, declared) + sdist_faults(sdist, files)
    if wheel.stat().st_size > LARGEST:
        faults.append(f"the wheel takes {wheel.stat().st_size / 1e6:.1f} MB, and should take at most {LARGEST / 1e6}")
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        return 1
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    tests = (folder / sdist.name.removesuffix(".tar.gz")).rename(folder / "tests")
    shutil.rmtree(tests / "runnel")
    print(wheel)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
