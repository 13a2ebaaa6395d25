"""The one way into the compiler: from a graph to a program that runs.

Whoever has a graph comes this way: compiled functions, forward and backward programs of derivatives, steps of
optimizers, single ops of eager code, graphs that were built by hand. What differs among them stands in the arguments.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from runnel.backends import context as contexts
from runnel.backends.context import CompileContext
from runnel.compiler.executable.program import Program
from runnel.compiler.options import Bindings, Options
from runnel.compiler.recipe import Recipe
from runnel.core.avals import Shape
from runnel.graph.graph import Graph

USUAL: Final = Options()


class CompiledGraph(NamedTuple):
    """A graph as a program, for its user to bind to memory and run.

    ``preparation`` computes the last inputs of ``program`` from Variables alone, and has to run again when these have
    changed; None if there is nothing of the kind. ``strides``, in elements, say how each result lies in its memory.
    ``recipe`` says how all this was made, and keeps none of it.
    """

    program: Program
    preparation: Program | None
    strides: tuple[Shape, ...]
    recipe: Recipe


def compile_graph(graph: Graph, bindings: Bindings, context: CompileContext, options: Options = USUAL) -> CompiledGraph:
    """``graph`` as a program.

    Args:
        graph: what to compute; ``graph.verifier`` checks graphs of unknown origin.
        bindings: what is known of its inputs before it runs.
        context: device, target, threads and whatever else the program depends on.
        options: how much to do for it.

    Raises:
        MemoryBudgetError: it does not fit into ``options.memory_budget``.
    """
    with contexts.entered(context):
        recipe = Recipe(graph, bindings, context, options)
        return CompiledGraph(*recipe.programs(), recipe)
