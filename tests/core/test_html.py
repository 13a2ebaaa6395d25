"""Notebooks show HTML that is escaped, small and without scripts."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import runnel as rn
from runnel import declarative as d, nn

NASTY = "<script>alert('x')</script>&\""


class Checker(HTMLParser):
    """Opens and closes tags in order, and none that could do anything."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag not in ("script", "iframe", "img", "object", "link")
        assert not any(name.startswith("on") or name == "href" for name, _ in attrs)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


class Noted(nn.Module):
    def extra_repr(self) -> str:
        return NASTY

    def forward(self, x: Any) -> Any:
        return x


def declared() -> Any:
    with d.Graph(NASTY) as graph:
        x = d.placeholder(shape=(2,), name="x")
        rn.exp(x) + x
    return graph


PROGRAM = rn.compile(lambda x: rn.exp(x) @ x + 1)
SHOWN = {
    "tensor": lambda: rn.ones((2, 3)),
    "large": lambda: rn.zeros((1000, 1000)),
    "parameter": lambda: nn.Parameter(np.ones(2, np.float32)),
    "module": lambda: nn.Sequential(nn.Linear(2, 2), Noted()),
    "summary": lambda: nn.summary(nn.Sequential(nn.Linear(2, 2), Noted())),
    "graph": lambda: PROGRAM.program(rn.ones((3, 3))).graph,
    "program": lambda: PROGRAM.program(rn.ones((3, 3))),
    "declared": declared,
}


@pytest.mark.parametrize("kind", SHOWN)
def test_shown_html_is_small_and_harmless(kind: str) -> None:
    text = SHOWN[kind]()._repr_html_()
    checker = Checker()
    checker.feed(text)
    assert not checker.open and len(text) < 20_000 and "<script" not in text
    if kind in ("module", "declared"):
        assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&amp;&quot;" in text


def test_tensors_without_values_are_shown() -> None:
    texts: list[str] = []
    rn.uncompiled(rn.grad)(lambda x: (texts.append(x._repr_html_()), x.sum())[1])(rn.ones(2))
    assert "float32[2]" in texts[0]


def test_pictures_of_graphs_have_a_box_for_each_value() -> None:
    graph = PROGRAM.program(rn.ones((3, 3))).optimized
    picture = ElementTree.fromstring(graph.to_svg())
    titles = [title.text or "" for title in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == len(graph.values) and any(re.match(r"%\d+ = matmul\(", title) for title in titles)
    reads = sum(len(set(value.inputs)) for value in graph.values)
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}path"))) == reads
