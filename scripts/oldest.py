"""Print the oldest versions of dependencies that pyproject.toml allows, as constraints for pip.

``scripts/oldest.py EXTRA ...`` prints the dependencies of the package and of these extras. ``.ci/run`` tests a wheel
with them.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

_REQUIREMENT = re.compile(r"(?P<name>[\w-]+)>=(?P<version>[\d.]+)")


def constraints(extras: list[str]) -> list[str]:
    """``name==version`` for each requirement; ValueError for one that names no oldest version."""
    text = (Path(__file__).resolve().parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    requirements = list(project["dependencies"])
    for extra in extras:
        requirements += project["optional-dependencies"][extra]
    lines: list[str] = []
    for requirement in requirements:
        match = _REQUIREMENT.fullmatch(requirement)
        if match is None:
            raise ValueError(f"'{requirement}' does not say which version is the oldest")
        lines.append(f"{match['name']}=={match['version']}")
    return lines


if __name__ == "__main__":
    print(*constraints(sys.argv[1:]), sep="\n")
