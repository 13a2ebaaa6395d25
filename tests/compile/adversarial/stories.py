"""Stories of the adversarial tests."""

from tests.compile.stories import Story, stories

__all__ = ["Story", "stories"]
