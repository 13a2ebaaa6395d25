"""benchmarks/compare.py: reading peers' lines, keeping the best, the table; with scripts of a few lines as peers."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.suite


SCRIPT = Path(__file__).resolve().parents[1] / "benchmarks" / "compare.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmarks_compare", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


compare = load()


def line(best: float, config: str = "jit", case: str = "small", **more: object) -> dict[str, object]:
    return {"case": case, "config": config, "best_ms": best, "median_ms": 2 * best, "first_s": 1.0, **more}


def script(folder: Path, name: str, body: str) -> Path:
    path = folder / f"{name}_bench.py"
    path.write_text(f"import json, os, sys, time\ncase = sys.argv[1]\n{body}\n")
    return path


def prints(*lines: dict[str, object]) -> str:
    return "\n".join(f"print({json.dumps(json.dumps(each))})" for each in lines)


def test_lines_of_other_kinds_are_passed_over() -> None:
    expected = line(1.5)
    text = "\n".join(
        [
            "warning: something",
            "{not json",
            "[1]",
            '"text"',
            json.dumps(line(1.0, case="another")),
            json.dumps({"case": "small", "best_ms": 1.0}),
            json.dumps(line(1.0) | {"best_ms": "quick"}),
            json.dumps(expected),
            json.dumps(line(0.5, "bf16")),
        ]
    )

    assert compare.read_lines(text, "small", with_bf16=False) == [expected]
    assert compare.read_lines(text, "small", with_bf16=True) == [expected, line(0.5, "bf16")]


def test_each_figure_keeps_its_own_best() -> None:
    results = compare.Results()
    results.add("a", "small", line(2.0, first_s=0.1))
    results.add("a", "small", line(1.0, median_ms=9.0, first_s=0.3))
    results.add("a", "small", line(3.0, "eager"))

    best = results.best["small", "a", "jit"]
    assert (best["best_ms"], best["median_ms"], best["first_s"]) == (1.0, 4.0, 0.1)
    assert results.best["small", "a", "eager"]["best_ms"] == 3.0
    assert len(results.lines) == 3


def test_the_ratio_is_the_best_peer_over_the_best_runnel() -> None:
    results = compare.Results()
    for name, best, config in (("runnel", 2.0, ""), ("a", 9.0, "eager"), ("a", 5.0, "jit"), ("b", 6.0, "jit")):
        results.add(name, "small", line(best, config))

    assert results.ratio("small") == 2.5
    assert results.ratio("large") is None
    assert compare.table(results, ["runnel", "b", "a"], ["small", "large"]) == [
        ["case", "runnel", "b jit", "a eager", "a jit", "best peer", "best peer / runnel"],
        ["small", "2", "6", "9", "5", "a jit", "2.50"],
        ["large", "–", "–", "–", "–", "–", "–"],
    ]


def test_reduced_precision_is_shown_but_never_the_rival() -> None:
    results = compare.Results()
    for name, best, config in (("runnel", 2.0, ""), ("a", 1.0, "bf16"), ("a", 5.0, "eager")):
        results.add(name, "small", line(best, config))

    assert compare.table(results, ["runnel", "a"], ["small"])[1] == ["small", "2", "1", "5", "a eager", "2.50"]


def test_a_failure_is_shown_and_is_not_hidden_by_a_later_success() -> None:
    results = compare.Results()
    results.add("a", "small", {"case": "small", "config": "jit", "error": "no compiler"})
    assert compare.table(results, ["a"], ["small"])[1] == ["small", "failed", "–", "–"]

    results.add("a", "small", line(4.0))
    machine = {"cpu": "Z1", "cores": 2, "isa": "NEON", "system": "Linux"}
    assert compare.table(results, ["a"], ["small"])[1] == ["small", "4", "a jit", "–"]
    assert "Failed: a jit, small: no compiler" in compare.notes(results, {"a": "a"}, machine)


def test_tables_line_up_and_markdown_has_a_rule() -> None:
    rows = [["case", "a|b"], ["x", "1"]]

    assert compare.plain(rows) == "case  a|b\nx     1"
    assert compare.markdown(rows) == "| case | a/b |\n| --- | ---: |\n| x | 1 |"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model name : Z1\ncpu family : 25\nmodel : 1\nflags : fma avx2", ("Z1 (family 25, model 1)", "AVX2 + FMA")),
        ("model name\t: Z2\nflags\t: fma avx2 avx512f\n\nmodel name\t: Z3\n", ("Z2", "AVX-512")),
        ("Features : fp asimd", ("arm", "NEON")),
        ("flags : avx2", ("arm", "instruction set unknown")),
        ("", ("arm", "instruction set unknown")),
    ],
)
def test_the_machine_is_read_from_cpuinfo(text: str, expected: tuple[str, str]) -> None:
    assert compare.cpu_of(text, "arm") == expected


def test_one_script_may_run_several_peers() -> None:
    results = compare.Results()
    for peer, config in (("one 1.0", "fp32"), ("two 2.0", "fp32"), ("both 3.0", "bf16")):
        results.add("both", "small", compare.named(line(4.0, config, peer=peer), "both"))

    assert [config for _, _, config in results.best] == ["one fp32", "two fp32", "bf16"]
    entrant = compare.Entrant("both", ("python", "script.py"))
    assert compare.versions_of(results, [entrant]) == {"both": "both 3.0 and one 1.0 and two 2.0"}
    assert compare.named(line(4.0, "bf16", peer="one 1.0"), "both")["config"] == "one bf16"
    assert compare.is_reduced("one bf16") and not compare.is_reduced("bf16 graph")
    assert compare.read_lines(json.dumps(line(1.0, "one bf16")), "small", with_bf16=False) == []


def test_memory_has_a_separate_table() -> None:
    results = compare.Results()
    results.add("runnel", "small", line(2.0, bytes_beside_weights=5_000_000))
    results.add("a", "small", {"case": "small", "config": "eager", "bytes_beside_weights": 12_340_000})
    results.add("a", "small", {"case": "small", "config": "eager", "bytes_beside_weights": 12_000_000})

    assert compare.memory_table(results, ["runnel", "b", "a"], ["small", "large"]) == [
        ["case", "runnel", "a"],
        ["small", "5", "12"],
        ["large", "–", "–"],
    ]
    assert compare.table(results, ["runnel", "a"], ["small"])[1] == ["small", "2", "–", "–"]
    assert compare.memory_table(compare.Results(), ["runnel"], ["small"]) == []


def test_probes_of_memory_run_once_with_the_peers_networks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = "json.dumps(dict(peer='a 1.0', case=sys.argv[2], config='eager', bytes_beside_weights=3_000_000))"
    (tmp_path / "a_memory.py").write_text(
        f"import json, sys\nassert sys.argv[1].endswith('a_bench.py'), sys.argv\nprint({message})\n"
    )
    good = script(tmp_path, "good", prints(line(1.0)))
    words = ["--cases", "small", "--rounds", "2", "--peers-only", "--peer", f"b={sys.executable}:{good}"]

    assert compare.main([*words, "--peers-dir", str(tmp_path), "--memory", f"a={sys.executable}"]) == 0
    text = capsys.readouterr()
    assert text.err.count("memory: a") == 1
    assert text.out.splitlines()[-2:] == ["case   a", "small  3"]


def test_all_takes_every_case_and_each_peer_that_has_an_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        script(tmp_path, name, "print(json.dumps({'case': case, 'absent': True}))")
    python = tmp_path / "peers" / "a" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    words = ["--all", "--environments", str(tmp_path / "peers"), "--peers-dir", str(tmp_path), "--rounds", "1"]
    ours = script(tmp_path, "ours", "print(json.dumps({'case': case, 'best_ms': 1.0, 'median_ms': 1.0}))")
    ours = ours.rename(tmp_path / "ours.py")

    assert compare.main([*words, "--runnel", f"{sys.executable} {ours}"]) == 0
    text = capsys.readouterr()
    assert "b is left out" in text.err and "round 1 of 1: a" in text.err
    assert [row.split()[0] for row in text.out.splitlines()[2:11]] == [*compare.TRAINING, *compare.INFERENCE]
    assert "Failed" not in text.out


def test_entrants_take_turns_and_the_report_tells_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.fspath(tmp_path / "of-runnel-only"))
    message = (
        "json.dumps(dict(peer='a 1.0', case=case, threads=2, config='jit', best_ms=3.0, median_ms=3.5, first_s=1))"
    )
    script(
        tmp_path,
        "a",
        f"assert 'PYTHONPATH' not in os.environ\nassert os.environ['SECONDS_PER_CASE'] == '0.5'\nprint({message})",
    )
    broken = script(tmp_path, "b", "raise SystemExit('no such case here')")
    ours = script(tmp_path, "ours", f"assert sys.argv[2] == '--json'\n{prints(line(1.5, ''), line(1.5, '', 'large'))}")
    report = tmp_path / "out.json"

    status = compare.main(
        [
            *("--cases", "small", "large", "--rounds", "2", "--seconds", "0.5", "--json", str(report), "--markdown"),
            *("--runnel", f"{sys.executable} {ours}", "--peer", f"b={sys.executable}:{broken}"),
            *("--peers-dir", str(tmp_path), "--env", f"a={sys.executable}"),
        ]
    )

    text = capsys.readouterr()
    turns = [row.rpartition(" ")[2] for row in text.err.splitlines()]
    assert turns == ["runnel", "b", "a"] * 4
    assert "| small | 1.5 | failed | 3 | a jit | 2.00 |" in text.out
    assert "Failed: b, large: no such case here" in text.out
    assert "a 1.0 (2 threads)" in text.out
    assert status == 0
    written = json.loads(report.read_text())
    assert written["ratios"] == {"small": 2.0, "large": 2.0}
    assert len(written["lines"]) == 12


def test_status_is_1_where_runnel_failed_or_nothing_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = script(tmp_path, "good", prints(line(1.0)))
    only = ["--cases", "small", "--rounds", "1"]

    assert compare.main([*only, "--runnel", str(tmp_path / "missing"), "--peer", f"a={sys.executable}:{good}"]) == 1
    assert "Failed: runnel, small" in capsys.readouterr().out
    assert compare.main([*only, "--peers-only"]) == 1
    assert compare.main([*only, "--peers-only", "--peer", f"a={sys.executable}:{good}"]) == 0


def test_a_run_without_end_is_ended_with_its_children(tmp_path: Path) -> None:
    """A grandchild inherits the pipes; ending only the child would wait for it, for ever."""
    sleeper = "import time; time.sleep(1e6)"
    endless = script(
        tmp_path, "a", f"import subprocess\nsubprocess.Popen([sys.executable, '-c', '{sleeper}'])\ntime.sleep(1e6)"
    )

    lines = compare.run(compare.Entrant("a", (sys.executable, str(endless))), "small", 1, 0.5, with_bf16=False)

    assert lines == [{"case": "small", "error": "no end after 0.5 s"}]


def test_measurements_before_a_crash_are_kept(tmp_path: Path) -> None:
    crashing = script(tmp_path, "a", prints(line(1.0)) + "\nsys.stdout.flush()\nraise SystemExit('then it fell')")

    lines = compare.run(compare.Entrant("a", (sys.executable, str(crashing))), "small", 1, 60, with_bf16=False)

    assert lines == [line(1.0), {"case": "small", "error": "then it fell"}]


def test_a_silent_script_has_failed(tmp_path: Path) -> None:
    silent = script(tmp_path, "a", "pass")

    (message,) = compare.run(compare.Entrant("a", (sys.executable, str(silent))), "small", 1, 60, with_bf16=False)

    assert message["error"] == "printed no measurement of this case"


@pytest.mark.parametrize(
    "words",
    [
        ["--peer", "a"],
        ["--peer", "a=python"],
        ["--env", "a=python"],
        ["--peers-dir", ".", "--env", "a"],
        ["--memory", "a=python"],
        ["--peer", "a=p:s", "--peer", "a=p:t"],
        ["--peer", "runnel=p:s"],
    ],
)
def test_unreadable_arguments_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        compare.main(words)

    assert refused.value.code == 2
    assert "error" in capsys.readouterr().err


def test_runnels_side_is_this_checkout() -> None:
    (entrant,) = compare.entrants_of(compare.parser().parse_args([]))

    assert entrant.command[0] == sys.executable and entrant.options == ("--json",)
    assert str(SCRIPT.parents[1]) == entrant.environment(1)["PYTHONPATH"].split(os.pathsep)[0]
    assert compare.own_version()[0].isdigit()
