"""The passes of the package, in the order in which compiled programs run them."""

from __future__ import annotations

from functools import partial
from typing import Final

from runnel.compiler.passes.bodies import in_bodies, without_unused_results
from runnel.compiler.passes.decompose import decompose
from runnel.compiler.passes.merge_rows import merge_rows
from runnel.compiler.passes.permutes import flip_transposed_products, sink_permutes
from runnel.compiler.passes.pipeline import Pass, Pipeline
from runnel.compiler.passes.simplify import fold_constants, merge_common_subexpressions, simplify

_own = partial(Pass, is_own=True)

_EXPAND: Final = _own(
    "decompose",
    "ops that are made of simpler ones become those",
    decompose,
    gives=("decomposed",),
)
_SIMPLIFY: Final = _own(
    "simplify",
    "algebra that keeps every bit: x·1, views of views, casts to the same dtype",
    simplify,
)

USUAL: Final = Pipeline(
    (
        _own(
            "unused_results",
            "loops make and carry only what is used",
            without_unused_results,
        ),
        _own(
            "bodies",
            "the passes run on the bodies of loops and branches",
            in_bodies,
            gives=("decomposed bodies",),
            nested=True,
        ),
        _EXPAND,
        _own(
            "fold",
            "nodes that read only constants become constants",
            fold_constants,
        ),
        _SIMPLIFY,
        _own(
            "sink_permutes",
            "regions of a graph are computed in the order of axes that their borders want",
            sink_permutes,
        ),
        _own(
            "merge_rows",
            "what is computed from a product of matrices is computed in its rows and columns",
            merge_rows,
        ),
        _own(
            "common_subexpressions",
            "equal values are computed once",
            merge_common_subexpressions,
        ),
        _own(
            "transposed_products",
            "a product that is only read transposed is computed transposed",
            flip_transposed_products,
        ),
    )
)

NO_PASSES: Final = Pipeline()  # for a primitive op
EXPANSION: Final = Pipeline((_EXPAND, _SIMPLIFY))  # for a composite op

REQUIRED: Final = ("decomposed", "decomposed bodies")  # properties of a graph that becomes a program
