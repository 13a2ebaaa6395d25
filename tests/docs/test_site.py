"""The documentation as a site: each page has its place in it, and it builds without a warning."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT


def test_each_page_has_one_place() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    places = re.findall(r"- (?:[^:\n]+: )?(\S+\.md)$", text, flags=re.MULTILINE)
    pages = [str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")]
    assert sorted(places) == sorted(pages)


@pytest.mark.suite
@pytest.mark.skipif(importlib.util.find_spec("material") is None, reason="it needs pip install 'runnel[docs]'")
def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / "tutorial" / "training" / "index.html").is_file()
