"""Turn signatures and docstrings into Markdown for the API reference."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

SECTIONS = {
    "Args": "Arguments",
    "Arguments": "Arguments",
    "Attributes": "Attributes",
    "Shape": "Shapes",
    "Shapes": "Shapes",
    "Returns": "Returns",
    "Yields": "Yields",
    "Raises": "Raises",
    "Example": "Example",
    "Examples": "Example",
    "Note": "Note",
    "Notes": "Notes",
}
LISTS = {"Arguments", "Attributes", "Raises", "Shapes"}
_ROLE = re.compile(r":\w+:`~?([^`<]+)`")
_HEAD = re.compile(rf"({'|'.join(SECTIONS)}):\s*(.*)")
_ITEM = re.compile(r"(\*{0,2}[\w., *]+?)(?: \([^)]*\))?:\s+(.*)", re.DOTALL)
WIDTH = 100


def declaration(name: str, value: Any, signature: inspect.Signature | None) -> str:
    """Return the line, or lines, that declare a name, without ``Any`` and without quotes around types."""
    word = "class " if inspect.isclass(value) else ""
    if signature is None:
        return word + name
    parts = list(parameters(signature))
    returned = typed(signature.return_annotation)
    end = f" -> {returned}" if returned and not word else ""
    line = f"{word}{name}({', '.join(parts)}){end}"
    if len(line) <= WIDTH:
        return line
    return f"{word}{name}(\n    " + ",\n    ".join(parts) + f",\n){end}"


def parameters(signature: inspect.Signature) -> Iterator[str]:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    starred = False
    for p in signature.parameters.values():
        starred = starred or p.kind is p.VAR_POSITIONAL
        if p.kind is p.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        annotation = typed(p.annotation)
        default = "" if p.default is p.empty else f" = {shown(p.default)}" if annotation else f"={shown(p.default)}"
        yield stars.get(p.kind, "") + p.name + (f": {annotation}" if annotation else "") + default


def typed(annotation: Any) -> str:
    """Return the text of an annotation, or nothing where it is missing or says nothing."""
    if annotation in (inspect.Signature.empty, "Any", Any):
        return ""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return text.strip("'\"")


def shown(default: Any) -> str:
    return getattr(default, "__name__", None) or re.sub(r"<(\w[\w.]*).*>", r"\1", repr(default))


def markdown(docstring: str) -> str:
    """Return a docstring in Markdown: sections become lists, doctests and literal blocks become code."""
    out, title = [], ""
    for paragraph in paragraphs(docstring):
        head = _HEAD.match(paragraph)
        if head:
            title = SECTIONS[head[1]]
            out.append(f"**{title}**")
            paragraph = inspect.cleandoc(paragraph[head.start(2) :])
            if not paragraph:
                continue
        elif not paragraph.startswith("    "):
            title = ""
        out.append(rendered(paragraph, title))
    return "\n\n".join(out)


def paragraphs(docstring: str) -> Iterator[str]:
    """Yield paragraphs; a section's head begins one, and the indented lines after it belong to it."""
    block: list[str] = []
    for line in inspect.cleandoc(docstring).splitlines():
        indented = line.startswith("    ")
        in_block = bool(block) and (block[-1].startswith("    ") or not block[-1])
        if block and (_HEAD.match(line) or (in_block and line and not indented) or (not line and not in_block)):
            yield "\n".join(block).rstrip()
            block = []
        if line or block:
            block.append(line)
    if block:
        yield "\n".join(block).rstrip()


def rendered(text: str, title: str) -> str:
    if ">>>" in text or title == "Example":
        return f"```python\n{inspect.cleandoc(text)}\n```"
    lines = text.splitlines()
    if all(line.startswith("    ") for line in lines):
        return f"```python\n{inspect.cleandoc(text)}\n```"
    if title in LISTS:
        return "\n".join(f"* {item}" for item in items(text))
    return plain(text.removesuffix("::") + (":" if text.endswith("::") else ""))


def items(text: str) -> Iterator[str]:
    """Yield the entries ``name: text`` of a section, each with its further lines joined."""
    entries: list[str] = []
    for line in text.splitlines():
        if line.startswith(" ") and entries:
            entries[-1] += " " + line.strip()
        elif line.strip():
            entries.append(line.strip())
    for entry in entries:
        found = _ITEM.fullmatch(entry)
        yield f"`{found[1].strip()}`: {plain(found[2])}" if found else plain(entry)


def plain(text: str) -> str:
    """Return prose with single backticks, and without the roles of reStructuredText."""
    return _ROLE.sub(r"`\1`", text).replace("``", "`").replace("\n    ", "\n")


def first_sentence(docstring: str) -> str:
    text = " ".join(next(paragraphs(docstring), "").split())
    return plain(re.split(r"(?<=[.!?;:]) (?=[A-Z`])", text)[0]).rstrip(":")
