"""The thread count: quotas of made-up cgroup trees, the affinity mask, the switch."""

from pathlib import Path

import pytest

from runnel.backends.host import threads
from runnel.core import switches


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


CASES: list[tuple[dict[str, str], float | None]] = [
    ({}, None),
    ({"proc/self/cgroup": "0::/\n"}, None),
    ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
    ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}, None),
    (
        {
            "proc/self/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/a/b/cpu.max": "400000 100000\n",
            "sys/fs/cgroup/a/cpu.max": "200000 100000\n",
        },
        2.0,
    ),
    (
        {
            "proc/self/cgroup": "4:cpu,cpuacct:/job\n2:memory:/job\n",
            "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "300000\n",
            "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
        },
        3.0,
    ),
    (
        {
            "proc/self/cgroup": "4:cpu,cpuacct:/\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        },
        0.5,
    ),
    (
        {
            "proc/self/cgroup": "4:cpu:/\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
        None,
    ),
    ({"proc/self/cgroup": "nonsense\n0::/../x\n", "sys/fs/cgroup/x/cpu.max": "a b\n"}, None),
    ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "100000 0\n"}, None),
]


@pytest.mark.parametrize(("files", "expected"), CASES)
def test_the_quota_is_read_from_the_cgroup(tmp_path: Path, files: dict[str, str], expected: float | None) -> None:
    assert threads.cgroup_cpus(write(tmp_path, files)) == expected


@pytest.mark.parametrize(
    ("affinity", "quota", "requested", "expected"),
    [
        (8, None, 0, 8),
        (8, 2.5, 0, 3),
        (8, 0.2, 0, 1),
        (2, 6.0, 0, 2),
        (8, 6.0, 4, 4),
        (2, None, 64, 64),  # who asks for threads gets them
        (999, None, 0, 256),
    ],
)
def test_the_switch_or_the_smallest_limit_counts(
    monkeypatch: pytest.MonkeyPatch, affinity: int, quota: float | None, requested: int, expected: int
) -> None:
    monkeypatch.setattr(threads, "affinity_count", lambda: affinity)
    monkeypatch.setattr(threads, "cgroup_cpus", lambda: quota)
    with switches.override(num_threads=requested):
        assert threads.count() == expected


def test_this_machine_has_a_thread() -> None:
    assert 1 <= threads.count() <= threads.affinity_count()
