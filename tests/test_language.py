"""scripts/language.py: what it finds in prose, docstrings and subjects, and what it leaves alone."""

from __future__ import annotations

import language
import pytest


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("Its shape is that of the input.", "repeat the noun"),
        ("Of course, that of course works.", None),
        ("It has a file of its own.", "write 'your own', 'custom' or 'separate'"),
        ("The size is no multiple of 8.", "write 'not a'"),
        ("Use it inside of a block.", "write 'inside' or 'outside'"),
        ("All is well. What was read is checked.", "name the actor"),
        ("What can I do about it?", None),
        ("It is traced anew.", "write 'again' or 'new'"),
        ("The vectorised loop", "spell American English"),
        ("It raises an error, as promised; otherwise it comprises a surprise.", None),
        ("The colour of the neighbours", "spell American English"),
        ("Return the normalized rows of a matrix.", None),
    ],
)
def test_phrases(text: str, rule: str | None) -> None:
    assert {found.rule for found in language.phrases(text, "page.md", 1)} == ({rule} if rule else set())


@pytest.mark.parametrize(
    ("docstring", "found"),
    [
        ("Return the shape.", False),
        ("The shape of x.", True),
        ("Whether it is so.", True),
        ("``x`` times two.", True),
        ("Iterate over the rows.", False),
    ],
)
def test_docstrings_begin_with_a_verb(docstring: str, found: bool) -> None:
    source = f'def f(x):\n    """{docstring}"""\n\n@property\ndef g(self):\n    """The shape."""\n'
    rules = [finding.rule for finding in language.of_python("runnel/x.py", source)]
    assert ("begin with a verb" in rules) == found


def test_code_in_pages_is_not_prose() -> None:
    text = "Text.\n\n```python\nanew = 1  # anew\n```\n\n`that of` is code; anew is not.\n"
    assert [(f.line, f.rule) for f in language.of_markdown("page.md", text)] == [(7, "write 'again' or 'new'")]


@pytest.mark.parametrize(
    ("subject", "right"),
    [
        ("docs: show real output", True),
        ("compile, tests: retrace once", True),
        ("io: Accept files.", False),
        ("A program without a step is none", False),
    ],
)
def test_subjects(subject: str, right: bool) -> None:
    assert bool(language.SUBJECT.fullmatch(subject)) == right
