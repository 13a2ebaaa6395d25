"""Completion of the command's words, and help that has examples."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

import runnel as rn
from runnel.cli.main import PARTS, main, parser

pytestmark = pytest.mark.suite


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def completed(text: str, *words: str) -> set[str]:
    """Return what bash offers for the last of ``words``."""
    listed = " ".join(map(shlex.quote, words))
    command = f'{text}\nCOMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _runnel; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, cwd="/")
    return set(done.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="it needs bash")
def test_bash_completes(capsys: pytest.CaptureFixture[str]) -> None:
    text = script("bash", capsys)
    assert completed(text, "runnel", "") == {*PARTS, "--help", "--version"}
    assert completed(text, "runnel", "d") == {"demo", "doctor"}
    assert completed(text, "runnel", "demo", "--da") == {"--data", "--data-dir"}
    assert completed(text, "runnel", "demo", "--data", "") == {"digits", "mnist"}
    assert completed(text, "runnel", "completion", "z") == {"zsh"}
    assert "mlp_b32" in completed(text, "runnel", "bench", "mlp")
    assert "etc" in completed(text, "runnel", "demo", "--data-dir", "et")


@pytest.mark.skipif(shutil.which("fish") is None, reason="it needs fish")
def test_fish_completes(capsys: pytest.CaptureFixture[str]) -> None:
    text = script("fish", capsys)
    for line, words in (
        ("runnel d", {"demo", "doctor"}),
        ("runnel completion ", {"bash", "fish", "zsh"}),  # and no files
        ("runnel demo --da", {"--data", "--data-dir"}),
    ):
        command = f"{text}\ncomplete -C '{line}'"
        done = subprocess.run(["fish", "-c", command], capture_output=True, text=True, check=True, cwd="/")
        assert {offered.partition("\t")[0] for offered in done.stdout.splitlines()} == words


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_name_every_option_and_are_well_formed(
    shell: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = script(shell, capsys)
    for word in (*PARTS, "trace", "first-call", "mnist"):
        assert word in text
    path = tmp_path / "script"
    path.write_text(text)
    if shutil.which(shell):
        assert subprocess.run([shell, "-n", str(path)], check=False).returncode == 0


@pytest.mark.parametrize("part", PARTS)
def test_help_has_examples_that_the_parser_takes(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([part, "--help"])
    out = capsys.readouterr().out
    for command, what in PARTS[part].EXAMPLES:
        assert command in out and what in out
        words = shlex.split(command, comments=True)
        end = next((i for i, word in enumerate(words) if word in ("|", ">", ">>", "&&")), len(words))
        assert words[0] == "runnel" and parser().parse_args(words[1:end]).part == part


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"runnel {rn.__version__}\n"
