"""MkDocs hook: adds the pages that are made from the package when the site is built.

These are the API reference, a page per module with an entry per name; what differs from PyTorch's names; the changelog
and the contributing guide from the root of the repository. ``mkdocs.yml`` names this file under ``hooks``.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [path for path in (str(ROOT), str(ROOT / "scripts")) if path not in sys.path]

import pytorch_names  # noqa: E402
from docstrings import declaration, first_sentence, markdown  # noqa: E402
from public_names import NAMESPACES, Name, public_names  # noqa: E402

BASES = ("runnel.nn.Module", "runnel.optim.Optimizer", "runnel.data.Dataset", "runnel.train.Callback")


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages, and list them in the navigation."""
    from mkdocs.structure.files import File

    reference = section(config.nav, "API reference")
    for path, title, text in pages():
        files.append(File.generated(config, path, content=text))
        place = section(config.nav, "Project") if path.startswith("project/") else reference
        place.append({title: path})
    return files


def section(nav: list[Any], title: str) -> list[Any]:
    return next(entry[title] for entry in nav if isinstance(entry, dict) and title in entry)  # type: ignore[no-any-return]


def pages() -> Iterator[tuple[str, str, str]]:
    """Yield path, title and text of each generated page."""
    by_namespace: dict[str, list[Name]] = defaultdict(list)
    for name in public_names():
        by_namespace[name.namespace].append(name)
    seen: dict[int, str] = {}
    for namespace in [*NAMESPACES, "runnel.Tensor"]:
        yield f"reference/{namespace}.md", namespace, page(namespace, by_namespace[namespace], seen)
    yield "reference/pytorch.md", "PyTorch's names", pytorch_names.text()
    for name, title in (("CHANGELOG", "Changelog"), ("CONTRIBUTING", "Contributing")):
        text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
        yield f"project/{name.lower()}.md", title, re.sub(r"\]\((?!https?:)(?:docs/)?", r"](../", text)


def page(namespace: str, names: list[Name], seen: dict[int, str]) -> str:
    """Return the page of a module: a table of its names, then an entry for each."""
    documented = sys.modules.get(namespace) or getattr(sys.modules["runnel"], namespace.rpartition(".")[2])
    values = [each for each in names if not callable(each.value) or is_plain_value(each.value)]
    entries = [each for each in names if each not in values]
    parts = [f"# {namespace}", markdown(inspect.getdoc(documented) or "")]
    rows = "".join(f"| [`{x.name}`](#{x.namespace}.{x.name}) | {cell(first_sentence(x.doc))} |\n" for x in entries)
    if rows:
        parts.append("| name | |\n| --- | --- |\n" + rows)
    if values:
        constants = "".join(f"| `{x.name}` | `{cell(repr(x.value))[:80]}` |\n" for x in values)
        parts.append("## Constants and modules\n\n| name | value |\n| --- | --- |\n" + constants)
    parts += [entry(each, seen) for each in entries]
    return "\n\n".join(filter(None, parts)) + "\n"


def is_plain_value(value: Any) -> bool:
    """Return whether a value is a constant although it can be called, as dtypes are."""
    return type(value).__name__ in ("dtype", "DType") or inspect.ismodule(value)


def entry(name: Name, seen: dict[int, str]) -> str:
    """Return heading, declaration and docstring of a name; of a name that has an entry elsewhere, a link to it."""
    anchor = f"{name.namespace}.{name.name}"
    heading = f"## {name.name} {{#{anchor}}}"
    earlier = seen.setdefault(id(name.value), anchor)
    if earlier != anchor:
        module = earlier.rpartition(".")[0]
        same = f"The same as [`{earlier}`]({module}.md#{earlier})."
        return f"{heading}\n\n{code(declaration(name.name, name.value, name.signature))}\n\n{same}"
    parts = [heading, code(declaration(name.name, name.value, name.signature)), markdown(name.doc)]
    if inspect.isclass(name.value) and name.namespace != "runnel.Tensor":
        parts += methods(name, anchor)
    return "\n\n".join(filter(None, parts))


def methods(name: Name, anchor: str) -> Iterator[str]:
    """Yield an entry for each public method that the class itself defines; of a base class, for inherited ones, too."""
    if anchor == "runnel.Tensor":
        yield "[The methods of tensors](runnel.Tensor.md) have a separate page."
        return
    for word, value in inspect.getmembers(name.value, inspect.isroutine):
        place = next((c for c in name.value.__mro__ if word in vars(c)), object)
        listed = place is name.value or (anchor in BASES and place.__module__.partition(".")[0] == "runnel")
        documented = inspect.getdoc(value)
        if listed and documented and not word.startswith("_"):
            yield f"### {name.name}.{word} {{#{anchor}.{word}}}"
            yield code(declaration(word, value, signature_of(value)))
            yield markdown(documented)


def signature_of(value: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(value)
    except (TypeError, ValueError):
        return None


def code(text: str) -> str:
    return f"```python\n{text}\n```"


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
