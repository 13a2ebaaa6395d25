"""The documentation's code, run as it is printed."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, README, ROOT, blocks, prose, runnable, shell_lines
from tests.docs.run_page import matches, run

pytestmark = pytest.mark.suite


@pytest.mark.parametrize("page", runnable())
def test_code_of_the_page_runs_and_prints_what_it_promises(page: str) -> None:
    command = [sys.executable, "-W", "error", "-m", "tests.docs.run_page", str(ROOT / page)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_broken_promise_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(2)\n```\n\n```text\n2\n```\n\n```python\nprint(3)\n```\n", encoding="utf-8")
    (problem,) = run(page)
    assert problem.startswith("page.md:10 ")


@pytest.mark.parametrize(
    ("promised", "printed", "same"),
    [
        ("loss ≈ 0.50\n", "loss 0.52\n", True),
        ("loss ≈ 0.50\n", "loss 0.92\n", False),
        ("eager ≈ 1,900 µs, compiled ≈ 12 µs\n", "eager 7 µs, compiled 3.5 µs\n", True),
        ("eager ≈ 1,900 µs\n", "eager quick\n", False),
        ("a ... c ≈ 1\n", "a b c 1.1\n", True),
        ("[1, 2]\n", "[1,  3]\n", False),
    ],
)
def test_numbers_after_a_sign_are_about_right(promised: str, printed: str, same: bool) -> None:
    assert matches(promised, printed) == same


def test_blocks_know_their_lines_and_outputs() -> None:
    text = "# Page\n\n```python\na = 1\n```\n\nWords.\n\n```text\nno output\n```\n\n```sh\nls\n```\n"
    (block,) = blocks(text)
    (varying,) = blocks("```python\nf()\n```\n\n<!-- numbers vary -->\n\n```text\n0.5 in 3 ms, 4\n```\n")
    assert varying.output == "≈ 0.5 in ≈ 3 ms, 4\n"
    assert (block.code, block.line, block.output) == ("a = 1\n", 4, None)
    assert shell_lines(text) == ["ls"]


def test_every_relative_link_leads_somewhere() -> None:
    pages = [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *PAGES]
    missing = [f"{page.name}: {link}" for page in pages for link in links(page) if not (page.parent / link).exists()]
    assert missing == []


def test_every_file_that_a_page_names_exists() -> None:
    pages = [README, *PAGES]
    named = [(page, name) for page in pages for name in re.findall(r"`([\w/]+/\w+\.py)`", page.read_text("utf-8"))]
    missing = [f"{p.name}: {n}" for p, n in named if not ((ROOT / n).exists() or (ROOT / "runnel" / n).exists())]
    assert missing == []


def test_the_index_lists_every_page() -> None:
    pages = {str(page.relative_to(ROOT / "docs")) for page in PAGES} - {"README.md"}
    assert {link for link in links(ROOT / "docs" / "README.md") if link.endswith(".md")} == pages


def links(page: Path) -> list[str]:
    actual = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose(page.read_text(encoding="utf-8")))
    return [link for link in actual if "://" not in link]


def test_commands_of_the_readme_are_those_that_are_tested() -> None:
    commands = shell_lines(README.read_text(encoding="utf-8"))
    assert "python -m pip install '.[demo]' && runnel demo" in commands
    (test_command,) = [line for line in commands if "pytest" in line]
    install, run_tests = test_command.split(" && ")
    script = (ROOT / "scripts" / "test").read_text(encoding="utf-8")
    assert install.removeprefix("python -m ") in script.replace(" --quiet", "") and run_tests in script
    assert "scripts/test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_project_declares_what_the_readme_installs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"demo", "test"} <= set(project["optional-dependencies"])
    assert set(project["scripts"]) == {"runnel"}
