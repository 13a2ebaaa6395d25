"""The documentation as a site: each page has its place in it, and it builds without a warning."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from docstrings import declaration, first_sentence, markdown

import runnel as rn
from tests.docs.pages import ROOT

needs_mkdocs = pytest.mark.skipif(
    importlib.util.find_spec("material") is None, reason="needs pip install 'runnel[docs]'"
)


def test_each_page_has_one_place() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    places = re.findall(r"- (?:[^:\n]+: )?(\S+\.md)$", text, flags=re.MULTILINE)
    pages = [str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")]
    assert sorted(places) == sorted(pages)


def test_declarations_have_annotations_without_quotes() -> None:
    def scaled(x: rn.Tensor, *, by: float = 2.0, after: object = None, anything=rn.float32) -> rn.Tensor:  # type: ignore[no-untyped-def]
        return x

    import inspect

    line = declaration("scaled", scaled, inspect.signature(scaled))
    assert (
        line == "scaled(x: rn.Tensor, *, by: float = 2.0, after: object = None, anything=runnel.float32) -> rn.Tensor"
    )
    assert declaration("pi", 3.14, None) == "pi"


DOCSTRING = """Return ``x`` twice: :func:`runnel.mul` by 2. More of it.

    Args:
        x: a tensor
            of floats.
        *more: others, which are ignored.

    Shape: input ``(N, C)``; output the same.

    Raises:
        ShapeError: for scalars.

    Example:
        >>> twice(1)
        2

    For instance::

        twice(2)
    """
EXPECTED = """Return `x` twice: `runnel.mul` by 2. More of it.

**Arguments**

* `x`: a tensor of floats.
* `*more`: others, which are ignored.

**Shapes**

* input `(N, C)`; output the same.

**Raises**

* `ShapeError`: for scalars.

**Example**

```python
>>> twice(1)
2
```

For instance:

```python
twice(2)
```"""


def test_docstrings_become_markdown() -> None:
    assert markdown(DOCSTRING) == EXPECTED
    assert first_sentence(DOCSTRING) == "Return `x` twice: `runnel.mul` by 2."


@pytest.mark.suite
@needs_mkdocs
def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    site = tmp_path / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (site / "tutorial" / "training" / "index.html").is_file()
    layers = (site / "reference" / "runnel.nn" / "index.html").read_text(encoding="utf-8")
    assert 'id="runnel.nn.Conv2d"' in layers and 'id="runnel.nn.Module.state_dict"' in layers
    assert "Keep a Changelog" in (site / "project" / "changelog" / "index.html").read_text(encoding="utf-8")
