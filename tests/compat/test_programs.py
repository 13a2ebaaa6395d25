"""Programs in the style of PyTorch's tutorials: with their import lines changed, Runnel gives PyTorch's numbers."""

from __future__ import annotations

import json
import math

import pytest

from tests.compat import running

pytestmark = pytest.mark.suite

EXPECTED = json.loads(running.EXPECTED.read_text(encoding="utf-8"))["programs"]


def test_there_are_thirty_at_least_and_each_was_recorded() -> None:
    assert len(running.names()) >= 30 and set(running.names()) == set(EXPECTED)


def test_only_import_lines_are_changed() -> None:
    source = (
        "import torch\nimport torch.nn as nn\nfrom torch.nn import functional as F\ntorch.ones(2)  # import torch\n"
    )
    assert running.imported_from(source, running.RUNNEL).splitlines() == [
        "import runnel.compat.torch as torch",
        "import runnel.compat.torch.nn as nn",
        "from runnel.compat.torch.nn import functional as F",
        "torch.ones(2)  # import torch",
    ]


@pytest.mark.parametrize("name", running.names())
def test_a_program_has_the_numbers_of_pytorch(name: str) -> None:
    """Each number within the program's tolerance (2e-5 unless it says another one), relative or, below 1, absolute."""
    result = running.run(name, running.RUNNEL)
    assert len(result["numbers"]) == len(EXPECTED[name])
    far = [
        (i, ours, theirs)
        for i, (ours, theirs) in enumerate(zip(result["numbers"], EXPECTED[name], strict=True))
        if not math.isclose(ours, theirs, rel_tol=result["tolerance"], abs_tol=result["tolerance"])
        and not (math.isnan(ours) and math.isnan(theirs))
    ]
    assert not far
