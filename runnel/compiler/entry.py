"""The one way into the compiler: from a graph to a program that runs.

Every graph is compiled here: compiled functions, forward and backward programs of derivatives, steps of optimizers,
single ops of eager code, graphs built by hand. They differ in the arguments.
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
    """A graph as a program, for the caller to bind to memory and run.

    ``hoisted_constants`` computes the last inputs of ``program`` from Variables alone, and must run again when these
    have changed; None if there are no such inputs. ``strides``, in elements, are those of each result in its memory.
    ``recipe`` can produce the program again, and does not keep it alive.
    """

    program: Program
    hoisted_constants: Program | None
    strides: tuple[Shape, ...]
    recipe: Recipe


def compile_graph(graph: Graph, bindings: Bindings, context: CompileContext, options: Options = USUAL) -> CompiledGraph:
    """``graph`` as a program.

    Args:
        graph: what to compute; ``graph.verifier`` checks graphs of unknown origin.
        bindings: properties of its inputs that are known before it runs.
        context: device, target, threads and everything else the program depends on.
        options: the effort of compilation.

    Raises:
        MemoryBudgetError: the program does not fit into ``options.memory_budget``.
    """
    with contexts.entered(context):
        recipe = Recipe(graph, bindings, context, options)
        return CompiledGraph(*recipe.programs(), recipe)
