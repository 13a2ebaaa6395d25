"""``export_native``: a function as a program without Python: an object file, its weights, and the C to call it."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from runnel.backends import base, context as contexts
from runnel.backends.commands import CommandBuffer
from runnel.compiler.entry import compile_graph
from runnel.compiler.options import Bindings
from runnel.compiler.plan_ir.calls import Call
from runnel.compiler.program import Program
from runnel.core.arrays import short_repr
from runnel.core.devices import CPU
from runnel.core.errors import ArgumentError, FileError, SideEffectError
from runnel.core.files import write_atomically
from runnel.graph.node import InputKind
from runnel.io import header, native_c
from runnel.io.native_c import Array, Layout, Part, Weights
from runnel.io.native_traced import Traced, python_function, traced
from runnel.io.safetensors import Path

_LINE: Final = 128  # bytes that memory of programs is aligned to


def export_native(
    function: Callable[..., Any], example_inputs: Sequence[Any], folder: Path, *, name: str = "model"
) -> None:
    """Write ``function`` as a program that runs without Python, for inputs of the shapes and dtypes of the examples.

    Into ``folder`` come ``name.o``, the kernels and the program as machine code of this processor's target;
    ``name.safetensors``, the weights; ``name.h`` and ``name.c``, with functions that load the weights (``name_init``)
    and make a call (``name_predict``); and ``main.c``, a command that makes one call on arrays in files. A C compiler
    puts them together: ``cc main.c model.c model.o``. Results are those of the compiled function, to the bit.

    Args:
        function: of tensors and trees of them, such as a module; compiled or not. It returns a tensor or a tree of
            tensors, which become the outputs in their order.
        example_inputs: its arguments. Tensors and arrays in them become inputs; everything else (numbers, strings) is a
            part of the program, and so are values that the function reads from outside, as they are now.
        folder: where the files are written; made if it is not there.
        name: a name in C.

    Variables that the function assigns, such as running statistics, keep their new values in the C program from call to
    call. The program runs on one thread.

    Raises:
        SideEffectError: the function calls back into Python, computes something by NumPy (complex numbers,
            factorizations), or sets ``.grad``.
        TracedValueError: what it does depends on values of tensors.
        DeviceError: it computes on another device than the CPU.
        ArgumentError: it returns something else than tensors; or an argument is wrong.
        FileError: the files cannot be written.
    """
    _require_arguments(function, example_inputs, name)
    exported = _Exported(traced(function, example_inputs, name), name)
    try:
        os.makedirs(folder, exist_ok=True)
        for file, content in exported.files().items():
            write_atomically(os.path.join(folder, file), [content])
    except OSError as error:
        raise FileError(
            f"[export_native] '{os.fspath(folder)}' cannot be written: {error.strerror or error}."
        ) from error


def _require_arguments(function: Any, example_inputs: Any, name: Any) -> None:
    if not callable(function):
        raise ArgumentError(f"[export_native] takes a function of tensors; received {short_repr(function)}.")
    if not isinstance(example_inputs, (tuple, list)):
        raise ArgumentError(
            f"[export_native] example_inputs are the function's arguments, a tuple or list of them; received "
            f"{short_repr(example_inputs)}."
        )
    try:
        inspect.signature(python_function(function)).bind(*example_inputs)
    except ValueError:  # it tells nothing of its arguments
        pass
    except TypeError as error:
        raise ArgumentError(f"[export_native] example_inputs are not the function's arguments: {error}.") from None
    if not isinstance(name, str) or not native_c.is_identifier(name):
        raise ArgumentError(f"[export_native] name is a name that is free in C and C++; received {name!r}.")


class _Memory:
    """Places in the memory of a model, one after another."""

    def __init__(self) -> None:
        self.nbytes = 0

    def take(self, nbytes: int) -> int:
        place = self.nbytes
        self.nbytes += -(-max(nbytes, 1) // _LINE) * _LINE
        return place


class _Exported:
    """The program of a traced function, and its files."""

    def __init__(self, graph: Traced, name: str) -> None:
        self._name = name
        self._traced = graph
        self._context = contexts.alone(contexts.on(CPU))
        bindings = Bindings(are_trained=bool(graph.graph.updates))
        compiled = compile_graph(graph.graph, bindings, self._context)
        self._program = compiled.program
        self._init = compiled.hoisted_constants
        for call in self._calls:
            if call.host is not None:
                node = call.nodes[0]
                raise SideEffectError(
                    f"[export_native] '{graph.function}' computes '{node.op.name if node.op else 'value'}' in Python, "
                    f"at {node.where}; a program in C is without Python."
                )

    @property
    def _programs(self) -> dict[str, Program]:
        run = {f"{self._name}_run": self._program}
        return run if self._init is None else {**run, f"{self._name}_run_init": self._init}

    @property
    def _calls(self) -> list[Call]:
        return [call for program in self._programs.values() for call in program.plan.calls]

    def files(self) -> dict[str, bytes]:
        """The files by name."""
        name, traced = self._name, self._traced
        inputs = [Array(own, node.aval) for node, own in traced.inputs.items()]
        outputs = [Array(own, x.aval) for own, x in zip(traced.outputs, traced.graph.outputs, strict=True)]
        arrays = self._weights()
        pieces = [bytes(piece) for piece in header.pieces(arrays, {})]
        start = pieces[0][8:]
        weights = Weights(len(start), native_c.fnv(start), sum(map(len, pieces[1:])))
        entries = header.parsed(start, weights.data).entries
        object_file = self._object_file()
        layout = self._laid_out(entries, object_file.scratch)
        places = [x for x in traced.graph.inputs if x.kind is not InputKind.VARIABLE]
        program = self._program
        slots = (
            [2 + places.index(node) for node in traced.inputs],
            [program.first_output + i for i in program.output_of],
        )
        same = {
            i: list(program.output_of).index(place)
            for i, place in enumerate(program.output_of)
            if place in program.output_of[:i]
        }
        errors = {b.code: str(b.error()) for b in program.plan.bounded}
        texts = {
            f"{name}.h": native_c.header(name, traced.function, inputs, outputs),
            f"{name}.c": native_c.source(name, inputs, outputs, slots, same, layout, weights, errors),
            "main.c": native_c.main(name, inputs, outputs),
        }
        return {
            f"{name}.o": object_file.content,
            f"{name}.safetensors": b"".join(pieces),
            **{file: text.encode() for file, text in texts.items()},
        }

    def _object_file(self) -> base.ObjectFile:
        buffers: dict[str, CommandBuffer] = {name: program.buffer for name, program in self._programs.items()}
        with contexts.entered(self._context):
            return base.of(CPU).object_file(buffers, {call.kernel.name: call.kernel for call in self._calls})

    def _weights(self) -> dict[str, np.ndarray]:
        """What the file of weights holds: Variables, what the function read from outside, constants of programs."""
        arrays = {own: variable.numpy() for own, variable in self._traced.variables.values()}
        arrays |= {f"captured/{i}": array for i, array in enumerate(self._traced.captured.values())}
        return arrays | {f"constants/{name}": program.buffer.constants for name, program in self._programs.items()}

    def _laid_out(self, entries: Mapping[str, header.Entry], scratch_bytes: int) -> Layout:
        """The memory of a model."""
        memory, traced = _Memory(), self._traced
        place_of = {name: memory.take(entry.end - entry.start) for name, entry in entries.items()}
        parts = [Part(entry.start, entry.end - entry.start, place_of[name]) for name, entry in entries.items()]
        hoisted = [] if self._init is None else [memory.take(nbytes) for nbytes in self._init.outputs]
        arena = memory.take(max(program.arena_bytes for program in self._programs.values()))
        scratch = memory.take(scratch_bytes)
        captured = dict(
            zip(traced.captured, [place_of[f"captured/{i}"] for i in range(len(traced.captured))], strict=True)
        )
        variables = [place_of[traced.variables[x][0]] for x in traced.graph.inputs if x.kind is InputKind.VARIABLE]
        places = [arena, place_of[f"constants/{self._name}_run"]]
        places += [captured.get(x, -1) for x in traced.graph.inputs if x.kind is not InputKind.VARIABLE]
        places += [] if self._init is None else [hoisted[i] for i in self._init.output_of]
        places += [*variables, *[-1] * len(self._program.outputs)]
        init_places = None
        if self._init is not None:
            init_places = [arena, place_of[f"constants/{self._name}_run_init"], *variables, *hoisted]
        return Layout(memory.nbytes, scratch, parts, places, init_places)
