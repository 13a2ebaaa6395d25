"""Compare Runnel with other frameworks: the same cases in one run, best against best, as a table.

Each peer is a script that runs as ``python script.py CASE`` in its own environment and prints JSON lines with ``peer``
(name and version), ``case``, ``config``, ``best_ms``, ``median_ms``, ``first_s`` or ``error``; ``absent`` marks a case
that it does not offer. Runnel's side is ``runnel bench CASE --json`` from this checkout. Needs only the standard
library; see README.md.

Other work on the machine slows whatever runs at that moment. The entrants therefore take turns for several rounds, and
each keeps its best.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PEERS = Path(__file__).parent / "peers"
RUNNEL = "runnel"
TRAINING = ("mlp_tiny_b8", "mlp_b32", "mlp_b256", "cnn_b64", "gru_b64", "encoder_b8_t128")
INFERENCE = ("resnet50_b1", "resnet50_b32", "bert_base_b1_t128")
RUNNEL_COMMAND = (sys.executable, "-P", "-c", "from runnel.cli.main import main; raise SystemExit(main())", "bench")
FIGURES = ("best_ms", "median_ms", "first_s")
MEMORY = "bytes_beside_weights"
REDUCED_PRECISION = ("bf16",)

Key = tuple[str, str, str]  # case, entrant, configuration
Line = dict[str, Any]


@dataclass(frozen=True)
class Entrant:
    """One side of the comparison: the words before and after the case on its command line."""

    name: str
    command: tuple[str, ...]
    options: tuple[str, ...] = ()

    @property
    def is_runnel(self) -> bool:
        return self.name == RUNNEL

    def environment(self, seconds: float) -> dict[str, str]:
        """The child's variables. PYTHONPATH belongs to one environment, so peers do not inherit it."""
        variables = {**os.environ, "SECONDS_PER_CASE": f"{seconds:g}"}
        variables.pop("PYTHONPATH", None)
        if self.is_runnel:
            variables["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        return variables


@dataclass
class Results:
    """The best of each figure per case, entrant and configuration, and every failure met on the way."""

    best: dict[Key, Line] = field(default_factory=dict)
    errors: dict[Key, str] = field(default_factory=dict)
    memory: dict[tuple[str, str], int] = field(default_factory=dict)  # by case and entrant
    lines: list[Line] = field(default_factory=list)

    def add(self, entrant: str, case: str, line: Line) -> None:
        """Take one JSON line of one run; a later success does not hide an earlier failure."""
        self.lines.append({"entrant": entrant, **line})
        key = (case, entrant, str(line.get("config", "")))
        if "error" in line:
            self.errors[key] = str(line["error"])
            return
        if MEMORY in line:
            self.memory[case, entrant] = min(line[MEMORY], self.memory.get((case, entrant), line[MEMORY]))
        if "best_ms" not in line:
            return
        seen = self.best.setdefault(key, dict(line))
        seen.update({name: min(seen[name], line[name]) for name in FIGURES if name in line and name in seen})

    def columns(self, entrants: Sequence[str]) -> list[tuple[str, str]]:
        """(entrant, configuration) pairs in the entrants' order, each with something to say."""
        pairs = dict.fromkeys(key[1:] for key in (*self.best, *self.errors))
        return sorted(pairs, key=lambda pair: entrants.index(pair[0]))

    def fastest(self, case: str, keep: Callable[[str], bool]) -> tuple[str, float] | None:
        """The label and milliseconds of the quickest fp32 configuration among the entrants that ``keep`` names."""
        times = [
            (line["best_ms"], label(name, config))
            for (at, name, config), line in self.best.items()
            if at == case and keep(name) and not is_reduced(config)
        ]
        return min(times)[::-1] if times else None

    def ratio(self, case: str) -> float | None:
        """How many times quicker Runnel's step is than the best peer's."""
        peer = self.fastest(case, lambda name: name != RUNNEL)
        ours = self.fastest(case, lambda name: name == RUNNEL)
        return peer[1] / ours[1] if peer and ours else None


def is_reduced(config: str) -> bool:
    """Return True if a configuration computes in less than float32."""
    return config.split(" ")[-1] in REDUCED_PRECISION


def label(entrant: str, config: str) -> str:
    return f"{entrant} {config}".rstrip()


def read_lines(text: str, case: str, with_bf16: bool) -> list[Line]:
    """The measurements of ``case`` in a script's output; anything else it printed is passed over."""
    found: list[Line] = []
    for row in text.splitlines():
        try:
            line = json.loads(row)
        except ValueError:
            continue
        if not isinstance(line, dict) or line.get("case") != case:
            continue
        if is_reduced(str(line.get("config"))) and not with_bf16:
            continue
        timed = all(isinstance(line.get(name), int | float) for name in ("best_ms", "median_ms"))
        if "error" in line or "absent" in line or timed or isinstance(line.get(MEMORY), int):
            found.append(line)
    return found


def run(entrant: Entrant, case: str, seconds: float, timeout: float, with_bf16: bool) -> list[Line]:
    """Run one entrant on one case. Whatever goes wrong comes back as a line with ``error``."""
    command = [*entrant.command, case, *entrant.options]
    try:
        child = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=entrant.environment(seconds),
            start_new_session=True,
        )
    except OSError as error:
        return [{"case": case, "error": str(error)}]
    with child:
        try:
            output, complaints = child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            _end_session(child)
            output, complaints = child.communicate()
            complaints = f"no end after {timeout:g} s"
        except BaseException:
            _end_session(child)
            raise
    lines = read_lines(output, case, with_bf16)
    if child.returncode:
        last = complaints.strip().splitlines()[-1:] or [f"exit status {child.returncode}"]
        lines.append({"case": case, "error": last[0]})
    if not lines:
        return [{"case": case, "error": "printed no measurement of this case"}]
    return [line for line in lines if "absent" not in line]


def _end_session(child: subprocess.Popen[str]) -> None:
    """End the child and its own children, which would otherwise keep its pipes open."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def compare(
    entrants: Sequence[Entrant],
    probes: Sequence[Entrant],
    cases: Sequence[str],
    options: argparse.Namespace,
    results: Results,
) -> None:
    """Case by case, round by round, every entrant in turn; then once each of the probes of memory."""
    for case in cases:
        for turn in range(1, options.rounds + 1):
            for entrant in entrants:
                print(f"{case}, round {turn} of {options.rounds}: {entrant.name}", file=sys.stderr, flush=True)
                for line in run(entrant, case, options.seconds, options.timeout, options.bf16):
                    results.add(entrant.name, case, {**named(line, entrant.name), "round": turn})
        for probe in probes:
            print(f"{case}, memory: {probe.name}", file=sys.stderr, flush=True)
            for line in run(probe, case, options.seconds, options.timeout, with_bf16=False):
                results.add(probe.name, case, line)


def named(line: Line, entrant: str) -> Line:
    """The line, its configuration led by the peer's name where that is not the entrant's: a script may run several."""
    words = str(line.get("peer", "")).split()
    if not words or words[0] == entrant:
        return line
    return {**line, "config": label(words[0], str(line.get("config", "")))}


def table(results: Results, entrants: Sequence[str], cases: Sequence[str]) -> list[list[str]]:
    """Rows of text, the heading first: milliseconds of the best step, the best peer and the ratio."""
    columns = results.columns(entrants)
    rows = [["case", *(label(*column) for column in columns), "best peer", "best peer / runnel"]]
    for case in cases:
        cells = [cell(results, (case, *column)) for column in columns]
        peer, ratio = results.fastest(case, lambda name: name != RUNNEL), results.ratio(case)
        rows.append([case, *cells, peer[0] if peer else "–", f"{ratio:.2f}" if ratio else "–"])
    return rows


def memory_table(results: Results, entrants: Sequence[str], cases: Sequence[str]) -> list[list[str]]:
    """Rows of text, the heading first: megabytes that a step of each entrant needs beside its weights and inputs.
    Nothing where nobody measured."""
    measured = [name for name in entrants if any((case, name) in results.memory for case in cases)]
    if not measured:
        return []
    found = {key: f"{value / 1e6:.4g}" for key, value in results.memory.items()}
    return [["case", *measured], *([case, *(found.get((case, name), "–") for name in measured)] for case in cases)]


def cell(results: Results, key: Key) -> str:
    if key in results.best:
        return f"{results.best[key]['best_ms']:.4g}"
    return "failed" if key in results.errors else "–"


def plain(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(text.ljust(n) for text, n in zip(row, widths, strict=True)).rstrip() for row in rows)


def markdown(rows: Sequence[Sequence[str]]) -> str:
    heading, *body = rows
    rule = ["---", *["---:"] * (len(heading) - 1)]
    return "\n".join(f"| {' | '.join(text.replace('|', '/') for text in row)} |" for row in (heading, rule, *body))


def notes(results: Results, versions: Mapping[str, str], machine: Mapping[str, Any]) -> list[str]:
    """Return the facts needed to read the table: units, versions, machine, failures."""
    said = ["Milliseconds a step, best of all runs.", "Versions: " + ", ".join(versions.values()) + "."]
    said.append(f"Machine: {machine['cpu']}, {machine['cores']} cores, {machine['isa']}, {machine['system']}.")
    said += [f"Failed: {label(name, config)}, {case}: {text}" for (case, name, config), text in results.errors.items()]
    return said


def versions_of(results: Results, entrants: Sequence[Entrant]) -> dict[str, str]:
    """For each entrant its name, version and threads, as far as its own lines tell."""
    found: dict[str, str] = {}
    for entrant in entrants:
        lines = [line for (_, name, _), line in results.best.items() if name == entrant.name]
        threads = sorted({line["threads"] for line in lines if "threads" in line})
        peers = sorted({str(line["peer"]) for line in lines if "peer" in line})
        told = f"{RUNNEL} {own_version()}" if entrant.is_runnel else " and ".join(peers) or entrant.name
        found[entrant.name] = f"{told} ({'/'.join(map(str, threads))} threads)" if threads else told
    return found


def own_version() -> str:
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def machine_facts() -> dict[str, Any]:
    """CPU model, cores this process may use, instruction set and system."""
    path = Path("/proc/cpuinfo")
    text = path.read_text() if path.exists() else ""
    affinity: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    model, isa = cpu_of(text, platform.processor() or platform.machine())
    return {"cpu": model, "cores": cores, "isa": isa, "system": f"{platform.system()} {platform.machine()}"}


def cpu_of(cpuinfo: str, otherwise: str) -> tuple[str, str]:
    """The model and the widest instruction set named in the text of Linux's ``/proc/cpuinfo``."""
    fields: dict[str, str] = {}
    for row in cpuinfo.splitlines():
        name, _, value = row.partition(":")
        fields.setdefault(name.strip(), value.strip())
    model = fields.get("model name", otherwise)
    if "cpu family" in fields:
        model += f" (family {fields['cpu family']}, model {fields.get('model', '?')})"
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    sets = (("AVX-512", {"avx512f"}), ("AVX2 + FMA", {"avx2", "fma"}), ("NEON", {"asimd"}))
    return model, next((name for name, needed in sets if needed <= flags), "instruction set unknown")


def peer(text: str) -> Entrant:
    """``name=python:script`` as an entrant."""
    name, _, paths = text.partition("=")
    python, _, script = paths.partition(":")
    if not (name and python and script):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PYTHON:SCRIPT")
    return Entrant(name, (python, script))


def environment(text: str) -> tuple[str, str]:
    """``name=python`` as a pair."""
    name, _, python = text.partition("=")
    if not (name and python):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PYTHON")
    return name, python


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description="Runnel beside its peers: one run, best against best.")
    made.add_argument("--cases", nargs="+", default=["mlp_tiny_b8", "mlp_b32", "mlp_b256"], metavar="CASE")
    made.add_argument("--peer", action="append", type=peer, default=[], metavar="NAME=PYTHON:SCRIPT")
    made.add_argument(
        "--all", action="store_true", help="all nine cases and every peer that has an environment in --environments"
    )
    made.add_argument("--environments", type=Path, default=Path("peers"), metavar="DIR", help="for --all (./peers)")
    made.add_argument("--peers-dir", type=Path, default=PEERS, metavar="DIR", help="folder with NAME_bench.py")
    made.add_argument("--env", action="append", type=environment, default=[], metavar="NAME=PYTHON")
    made.add_argument(
        "--memory", action="append", type=environment, default=[], metavar="NAME=PYTHON", help="with NAME_memory.py"
    )
    made.add_argument("--runnel", metavar="COMMAND", help="instead of this checkout's `runnel bench`")
    made.add_argument("--peers-only", action="store_true", help="leave Runnel out")
    made.add_argument("--rounds", type=int, default=3)
    made.add_argument("--seconds", type=float, default=4, help="SECONDS_PER_CASE for each script")
    made.add_argument("--timeout", type=float, default=600, help="seconds after which a run has failed")
    made.add_argument("--bf16", action="store_true", help="show bf16 too; ratios stay fp32 against fp32")
    made.add_argument("--markdown", action="store_true")
    made.add_argument("--json", type=Path, metavar="FILE", help="write every line measured")
    return made


def with_everything(options: argparse.Namespace) -> argparse.Namespace:
    """Fill in what ``--all`` means: every case, and each peer whose environment exists."""
    options.cases = [*TRAINING, *INFERENCE]
    for script in sorted(options.peers_dir.glob("*_bench.py")):
        name = script.name.removesuffix("_bench.py")
        python = options.environments / name / "bin" / "python"
        if not python.exists():
            print(f"{name} is left out: {python} does not exist", file=sys.stderr)
            continue
        options.env.append((name, str(python)))
        if script.with_name(f"{name}_memory.py").exists():
            options.memory.append((name, str(python)))
    return options


def entrants_of(options: argparse.Namespace) -> Iterator[Entrant]:
    if not options.peers_only:
        command = tuple(shlex.split(options.runnel)) if options.runnel else RUNNEL_COMMAND
        yield Entrant(RUNNEL, command, ("--json",))
    yield from options.peer
    for name, python in options.env:
        yield Entrant(name, (python, str(options.peers_dir / f"{name}_bench.py")))


def probes_of(options: argparse.Namespace) -> Iterator[Entrant]:
    """Yield the scripts that measure a peer's memory, with the networks of the peer's own script."""
    for name, python in options.memory:
        script = options.peers_dir / f"{name}_memory.py"
        yield Entrant(name, (python, str(script), str(options.peers_dir / f"{name}_bench.py")))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table; 1 where Runnel itself failed or nothing was measured."""
    command = parser()
    options = command.parse_args(arguments)
    if options.all:
        options = with_everything(options)
    for kind, pairs in (("bench", options.env), ("memory", options.memory)):
        for name, _ in pairs:
            if not (options.peers_dir / f"{name}_{kind}.py").exists():
                command.error(f"{options.peers_dir} has no {name}_{kind}.py")
    entrants = list(entrants_of(options))
    names = [entrant.name for entrant in entrants]
    if len(set(names)) < len(names):
        command.error(f"an entrant is named twice: {', '.join(names)}")
    results = Results()
    with contextlib.suppress(KeyboardInterrupt):  # what was measured until then is worth its table
        compare(entrants, list(probes_of(options)), options.cases, options, results)
    versions, machine = versions_of(results, entrants), machine_facts()
    written = markdown if options.markdown else plain
    print("\n".join(["", written(table(results, names, options.cases)), "", *notes(results, versions, machine)]))
    sizes = memory_table(results, list(dict.fromkeys((*names, *(name for name, _ in options.memory)))), options.cases)
    if sizes:
        print("\n".join(["", "Megabytes of a step beside weights and inputs.", "", written(sizes)]))
    if options.json:
        ratios = {case: results.ratio(case) for case in options.cases}
        report = {"machine": machine, "versions": versions, "rounds": options.rounds, "seconds": options.seconds}
        options.json.write_text(json.dumps({**report, "ratios": ratios, "lines": results.lines}, indent=1) + "\n")
    return int(not results.best or any(name == RUNNEL for _, name, _ in results.errors))


if __name__ == "__main__":
    raise SystemExit(main())
