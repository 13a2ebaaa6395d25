"""``runnel doctor``: look at the machine, the packages, the cache and the speed, and say what to do."""

from __future__ import annotations

import argparse
import json

from runnel.cli import checks
from runnel.core.errors import RunnelError
from runnel.core.records import asdict

EXAMPLES = (
    ("runnel doctor", "look at everything; takes about a second"),
    ("runnel doctor --json", "the same for programs, and for reports of faults"),
    ("runnel doctor && python train.py", "go on only if nothing is broken: the exit status is 1 for a problem"),
)
_SIGNS = {checks.FINE: "ok     ", checks.WARNING: "warning", checks.PROBLEM: "PROBLEM"}


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="one line of JSON")


def run(arguments: argparse.Namespace) -> int:
    findings: list[checks.Finding] = []
    for check in checks.CHECKS:
        try:
            for finding in check():
                findings.append(finding)
                if not arguments.json:
                    _show(finding)
        except (RunnelError, OSError) as error:
            findings.append(checks.Finding(check.__name__, checks.PROBLEM, f"the check failed: {error}"))
            if not arguments.json:
                _show(findings[-1])
    problems = sum(finding.state == checks.PROBLEM for finding in findings)
    if arguments.json:
        print(json.dumps({"problems": problems, "findings": [asdict(finding) for finding in findings]}))
    else:
        warnings = sum(finding.state == checks.WARNING for finding in findings)
        print(f"{problems} problems, {warnings} warnings")
    return int(problems > 0)


def _show(finding: checks.Finding) -> None:
    print(f"{_SIGNS[finding.state]}  {finding.topic:<10}  {finding.text}", flush=True)
    if finding.advice:
        print(f"{'':9}{'':12}→ {finding.advice}", flush=True)
