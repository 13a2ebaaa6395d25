"""What random programs of stateful Python (``python -m tests.fuzz programs``) found, made small."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

FOUND: Final = stories("""
## items_of_what_cannot_be_changed, eager: perhaps
row, members, steps = (1, [2]), frozenset([1]), [0]
def step(x):
    steps[0] += 1
    try: row[0] = 2
    except TypeError as e: x = x + len(str(e))
    try: row[1] += [3]
    except TypeError as e: x = x + len(str(e))
    try: members[0] += 1
    except TypeError as e: x = x + len(str(e))
    del row[1]
#> row = [1, [2]]
#> row = (1, 2)
""")


@pytest.mark.parametrize("story", FOUND)
def test_found(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
