"""``export_native``: export a function as a program without Python: an object file, weights, and C code."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from types import MethodType
from typing import Any, Final, NamedTuple

import numpy as np

from runnel.backends import base, context as contexts
from runnel.backends.base import CommandBuffer
from runnel.backends.context import default_device
from runnel.compiler.entry import compile_graph
from runnel.compiler.options import Bindings
from runnel.compiler.plan_ir.calls import Call
from runnel.compiler.program import Program
from runnel.core import pytree
from runnel.core.arrays import short_repr
from runnel.core.devices import CPU
from runnel.core.errors import ArgumentError, DeviceError, FileError, SideEffectError
from runnel.core.files import write_atomically
from runnel.graph.graph import Graph
from runnel.graph.node import InputKind, Value
from runnel.io import native_c, safetensors
from runnel.io.native_c import Array, Layout, Part, Weights
from runnel.io.safetensors import Path
from runnel.nn.module import Module
from runnel.tensor.creation import asarray
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor
from runnel.tensor.tracer import Tracer
from runnel.tensor.variable import Variable


class Traced(NamedTuple):
    """A function as a graph, with the origin of each input."""

    graph: Graph
    function: str
    inputs: dict[Value, str]  # the arguments of a call, with their names
    variables: dict[Value, tuple[str, Variable]]
    captured: dict[Value, np.ndarray]
    outputs: list[str]


def traced(function: Any, example_inputs: Sequence[Any], name: str) -> Traced:
    plain = getattr(function, "function", function)
    label = getattr(plain, "__qualname__", type(plain).__name__)
    tracer = Tracer()
    leaves, structure = pytree.flatten(list(example_inputs))
    named = dict(zip(pytree.paths(structure), leaves, strict=True))
    texts = [_spelled(path, _parameters(function)) for path, x in named.items() if _is_array(x)]
    names = iter(native_c.identifiers(texts, (name, "model")))
    inputs: dict[Value, str] = {}
    with tracer:
        arguments: list[Any] = []
        for leaf in leaves:
            if _is_array(leaf):
                value = asarray(leaf).aval
                tracer.trace.settle(value.device)
                own = next(names)
                leaf = tracer.argument(value, own)
                inputs[tracer.node(leaf)] = own
            arguments.append(leaf)
        results = function(*pytree.unflatten(structure, arguments))
        _require_no_effects(label, tracer)
        tops, top_structure = pytree.flatten(results)
        graph = tracer.graph([_output(label, x) for x in tops], name)
    device = tracer.trace.device or default_device()
    if device is not CPU:
        raise DeviceError(f"[export_native] '{label}' must compute on cpu to become machine code; got {device}.")
    captured: dict[Value, np.ndarray] = {}
    captured.update((node, np.ascontiguousarray(_numpy(value))) for node, value in tracer.captures.items())
    captured.update((node, np.array(getter(), np.float64)) for node, getter in tracer.numbers.items())
    paths = [_spelled(path, []) or "output" for path in pytree.paths(top_structure)]
    outputs = native_c.identifiers(
        [f"output{path}" if path[:1].isdigit() else path for path in paths], (*inputs.values(), name, "model")
    )
    return Traced(graph, label, inputs, _named(function, tracer.bound_variables), captured, outputs)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (ArrayMethods, np.ndarray)) and not isinstance(leaf, Variable)


def _numpy(value: Any) -> np.ndarray:
    array: np.ndarray = value.numpy() if isinstance(value, Tensor) else np.asarray(value)
    return array


def python_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the Python function that a call runs: ``forward`` of a module, the original of a compiled function."""
    called = getattr(function, "forward", function)
    inner: Callable[..., Any] = getattr(called, "function", called)
    owner = getattr(called, "__self__", None)
    return inner if inner is called or owner is None else MethodType(inner, owner)


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of a function's positional parameters, if it has a signature."""
    try:
        every = inspect.signature(python_function(function)).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in every if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _spelled(path: str, parameters: Sequence[str]) -> str:
    """Return a path in the arguments, with the name of the parameter instead of its number."""
    first, _, rest = path.removeprefix("[").partition("]")
    if not parameters or not first.isdigit() or int(first) >= len(parameters):
        return path.strip("[]'").replace("']['", "_").replace("][", "_")
    return f"{parameters[int(first)]}{rest}"


def _require_no_effects(label: str, tracer: Tracer) -> None:
    if tracer.calls_python:
        raise SideEffectError(
            f"[export_native] '{label}' must not call Python (prints, callbacks); a C program cannot."
        )
    for variable in tracer.gradients_used:
        raise SideEffectError(
            f"[export_native] '{label}' must not use .grad of {variable.described}; use runnel.grad in the function."
        )


def _output(label: str, x: Any) -> Tensor:
    if not isinstance(x, (ArrayMethods, np.ndarray)):
        raise ArgumentError(f"[export_native] '{label}' must return tensors; got {short_repr(x)}.")
    return asarray(x)


def _named(function: Any, variables: Mapping[Value, Variable]) -> dict[Value, tuple[str, Variable]]:
    """Return the Variables with names: their paths in the module of the function, or their own names."""
    module = function if isinstance(function, Module) else getattr(function, "__self__", None)
    known: dict[int, str] = {}
    if isinstance(module, Module):
        known = {id(x): name for name, x in (*module.named_buffers(), *module.named_parameters())}
    used: set[str] = set()
    named: dict[Value, tuple[str, Variable]] = {}
    for node, variable in variables.items():
        base = own = known.get(id(variable)) or variable.name or "variable"
        while own in used:
            own = f"{base}_{len(used)}"
        used.add(own)
        named[node] = own, variable
    return named


_LINE: Final = 128  # bytes, the alignment of a program's memory


def export_native(
    function: Callable[..., Any], example_inputs: Sequence[Any], folder: Path, *, name: str = "model"
) -> None:
    """Export a function as a program that runs without Python, for inputs of the shapes and dtypes of the examples.

    This writes ``name.o``, the program as machine code for this processor; ``name.safetensors``, the weights;
    ``name.h`` and ``name.c``, with functions that load the weights (``name_init``) and call the program
    (``name_predict``); and ``main.c``, a command that makes one call with arrays in files. Compile them with
    ``cc main.c model.c model.o``. Results have the same bits as the compiled function's.

    Variables that the function assigns, such as running statistics, keep their new values between calls of the C
    program. The program runs on one thread.

    Args:
        function: a function from trees of tensors to a tree of tensors, for example a module, compiled or not. The
            tensors that it returns become the outputs, in their order.
        example_inputs: the arguments. Tensors and arrays become inputs. All other values (numbers, strings) become
            part of the program, and so do the present values that the function reads from outside.
        folder: the folder of the files, which is created if necessary.
        name: a name in C.

    Raises:
        SideEffectError: the function calls Python, computes with NumPy (complex numbers, factorizations), or sets
            ``.grad``.
        TracedValueError: its operations depend on the values of tensors.
        DeviceError: it computes on another device than the CPU.
        ArgumentError: it returns something other than tensors, or an argument is wrong.
        FileError: the files cannot be written.

    Example:
        >>> rn.export_native(model, [rn.zeros((1, 784))], "exported", name="digits")
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
        raise ArgumentError(f"[export_native] function must be callable; got {short_repr(function)}.")
    if not isinstance(example_inputs, (tuple, list)):
        raise ArgumentError(
            f"[export_native] example_inputs must be a tuple or list of the function's arguments; got "
            f"{short_repr(example_inputs)}."
        )
    try:
        inspect.signature(python_function(function)).bind(*example_inputs)
    except ValueError:  # the function has no signature
        pass
    except TypeError as error:
        raise ArgumentError(f"[export_native] example_inputs must be the function's arguments: {error}.") from None
    if not isinstance(name, str) or not native_c.is_identifier(name):
        raise ArgumentError(f"[export_native] name must be an identifier that is unused in C and C++; got {name!r}.")


class _Memory:
    """Consecutive places in the memory of a model."""

    def __init__(self) -> None:
        self.nbytes = 0

    def take(self, nbytes: int) -> int:
        place = self.nbytes
        self.nbytes += -(-max(nbytes, 1) // _LINE) * _LINE
        return place


class _Exported:
    """The program of a traced function and its files."""

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
                    f"[export_native] '{graph.function}' must not compute in Python; it does at {node.where}, by "
                    f"'{node.op.name if node.op else 'value'}'."
                )

    @property
    def _programs(self) -> dict[str, Program]:
        run = {f"{self._name}_run": self._program}
        return run if self._init is None else {**run, f"{self._name}_run_init": self._init}

    @property
    def _calls(self) -> list[Call]:
        return [call for program in self._programs.values() for call in program.plan.calls]

    def files(self) -> dict[str, bytes]:
        """Return the contents of the files by name."""
        name, traced = self._name, self._traced
        inputs = [Array(own, node.aval) for node, own in traced.inputs.items()]
        outputs = [Array(own, x.aval) for own, x in zip(traced.outputs, traced.graph.outputs, strict=True)]
        arrays = self._weights()
        pieces = [bytes(piece) for piece in safetensors.pieces(arrays, {})]
        start = pieces[0][8:]
        weights = Weights(len(start), native_c.fnv(start), sum(map(len, pieces[1:])))
        entries = safetensors.parsed(start, weights.data).entries
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
        """Return the weights by name: Variables, values from outside, and constants of the programs."""
        arrays = {own: variable.numpy() for own, variable in self._traced.variables.values()}
        arrays |= {f"captured/{i}": array for i, array in enumerate(self._traced.captured.values())}
        return arrays | {f"constants/{name}": program.buffer.constants for name, program in self._programs.items()}

    def _laid_out(self, entries: Mapping[str, safetensors.Entry], scratch_bytes: int) -> Layout:
        """Return the layout of a model's memory."""
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
