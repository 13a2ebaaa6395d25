"""Print the CPythons of this machine that the package supports, one of each version: version and path.

It looks for ``python3.N`` on the path and in pyenv. Interpreters that cannot make environments are left out, and so
are builds without the global interpreter lock.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

OLDEST = (3, 11)
_PROBE = """
import sys, sysconfig, venv, ensurepip
plain = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
print("%d.%d" % sys.version_info[:2] if plain else "")
"""


def candidates() -> Iterator[Path]:
    """Programs that may be interpreters, those on the path first."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        yield from sorted(p for p in Path(folder or ".").glob("python3.*") if re.fullmatch(r"python3\.\d+", p.name))
    roots = [Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")]
    if shutil.which("pyenv"):
        told = subprocess.run(["pyenv", "root"], capture_output=True, text=True, check=False).stdout
        roots.append(Path(told.strip()))
    for root in roots:
        yield from sorted(root.glob("versions/*/bin/python3"))


def version(program: Path) -> tuple[int, ...]:
    """The version of an interpreter that can be used; nothing if it is none."""
    try:
        done = subprocess.run([program, "-I", "-c", _PROBE], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(map(int, done.stdout.split("."))) if done.returncode == 0 and done.stdout.strip() else ()


def interpreters() -> dict[tuple[int, ...], Path]:
    """The first interpreter of each version, the oldest version first."""
    found: dict[tuple[int, ...], Path] = {}
    for program in candidates():
        number = version(program)
        if number >= OLDEST:
            found.setdefault(number, program)
    return dict(sorted(found.items()))


if __name__ == "__main__":
    for number, program in interpreters().items():
        print(".".join(map(str, number)), program)
