"""Capture: an observed trace of a function, with its graph, input bindings, effects and results.

Everything that must be known of a call besides the graph is written down here as data, so that running a program, and
comparing a later trace with it, need nothing of the trace. It refers to Variables by ``Weak``: a capture keeps nothing
of the user's alive.
"""

from __future__ import annotations

import enum
import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from types import FunctionType
from typing import Any, Final, NamedTuple, NoReturn

from runnel.backends.context import default_device
from runnel.compile import tensors as checks
from runnel.compile.boundary import watched
from runnel.compile.lengths import RunLengths
from runnel.compile.observe import attributes
from runnel.compile.observe.effects import Effects, Setting, SettingAll
from runnel.compile.observe.observation import Observation, Recipes, Session, observe
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.sources import Source
from runnel.compile.rules import Rules
from runnel.core import dtypes
from runnel.core.avals import aval
from runnel.core.devices import CPU, Device
from runnel.core.errors import CaptureError, GradientError, SideEffectError, TracedValueError
from runnel.core.lengths import Lengths, is_static
from runnel.core.lifetime import Weak
from runnel.core.pytree import flatten
from runnel.core.records import record
from runnel.graph.graph import Graph
from runnel.graph.hashing import structural_hash
from runnel.graph.node import InputKind, Value
from runnel.tensor import copying, grad_hooks, tape, tensor as tensors, tracing
from runnel.tensor.differentiable.derivative import Derivative, derivative
from runnel.tensor.differentiable.segments import NotDivisible, StandIns
from runnel.tensor.floats import TracedFloat, traced_float
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.handle import OutsideHandles, moved_out
from runnel.tensor.inplace import CONSTANT_SERIAL
from runnel.tensor.stateful import StatefulTree
from runnel.tensor.tensor import Tensor
from runnel.tensor.traced_values import CONSUMED
from runnel.tensor.tracing import undisturbed
from runnel.tensor.variable import TracedVariables, Variable
from runnel.tensor.views import Steps, View, has_views, is_own

RULES: Final = Rules()
_STEP_LAST: Final = "step schedules after all steps of the optimizer, or outside the compiled function"


class InputOrigin(enum.Enum):
    """Where an input of a program comes from at each call."""

    TENSOR = "tensor"  # its place among the values that the guard reads
    ARRAY = "array"  # of NumPy's: the same
    NUMBER = "number"  # a float: the same
    GRADIENT = "gradient"  # Weak, of the Variable whose .grad it is
    GETTER = "getter"  # a function that gives a float


class InputBinding(NamedTuple):
    origin: InputOrigin
    what: Any


class Tape(enum.Enum):
    """Ways in which the caller can differentiate a tensor that the program returns."""

    NONE = "none"
    FREED = "freed"  # its tape was used up inside
    LIVE = "live"


class Gradient(enum.Enum):
    """States in which a program leaves the ``.grad`` of a Variable."""

    TENSOR = "tensor"  # a result of the graph
    NONE = "none"
    CONSUMED = "consumed"


@record
class Capture:
    """One trace."""

    graph: Graph
    sources: tuple[InputBinding, ...]  # of the inputs that are no Variables, in the graph's order
    variables: tuple[Weak, ...]  # of the inputs that are, in the graph's order
    written: frozenset[int]  # numbers of them
    outputs: tuple[tuple[int, Tape], ...]  # tensors that leave the run: results of the graph by number
    gradients: tuple[tuple[Weak, Gradient, int], ...]
    absent_gradients: tuple[Weak, ...]
    derivative: Derivative | None = None
    device: Device = CPU  # of all that it reads and gives
    ends: tuple[int, ...] = ()  # tensors from outside that gradients can be asked for: places among the guard's values
    recompute: bool = False  # whether the derivative computes again whatever can be
    lost_gradients: tuple[Weak, ...] = ()  # used up by an earlier call, and nobody wants to know them
    lengths: Lengths | None = None  # the sizes that differ from call to call
    length_places: tuple[int, ...] = ()  # of their symbols among the guard's values

    @property
    def uses_grads(self) -> bool:
        """True if the program reads or sets the ``.grad`` of a Variable."""
        read = any(source.origin is InputOrigin.GRADIENT for source in self.sources)
        return read or any((self.gradients, self.absent_gradients, self.lost_gradients))

    @property
    def digest(self) -> bytes:
        """The graph's identity."""
        return structural_hash(self.graph)

    def same_as(self, other: Capture) -> bool:
        """Return whether two traces found the same program."""
        return self.identity() == other.identity() and self.digest == other.digest

    def identity(self) -> tuple[Any, ...]:
        """Return everything but the graph, comparable by ``==``."""
        sources = [
            (s.origin, _comparable(s.what) if s.origin is not InputOrigin.GETTER else None) for s in self.sources
        ]
        return (
            sources, [_comparable(v) for v in self.variables], self.outputs,
            [(_comparable(v), how, i) for v, how, i in self.gradients],
            None if self.derivative is None else self.derivative.identity(), self.ends, self.device,
        )  # fmt: skip

    def bound_variables(self) -> list[Variable]:
        """Return the Variables of the program, during a call that can reach them."""
        alive = [v for reference in self.variables if (v := reference()) is not None]
        if len(alive) < len(self.variables):
            raise CaptureError(
                f"[compile] a Variable that '{self.graph.name}' uses was dropped by another thread during the call."
            )
        return alive

    def wrong_gradient(self) -> str | None:
        """Return in words which ``.grad`` differs from the trace, or None."""
        for reference in self.absent_gradients:
            variable = reference()
            if variable is not None and variable._grad is not None:
                return f"{variable.name}.grad changed from None to a gradient"
        for reference in self.lost_gradients:
            variable = reference()
            if variable is not None and variable._grad is not CONSUMED:
                return f"{variable.name}.grad was used up by an optimizer, and is {_in_words(variable._grad)}"
        for origin, what in self.sources:
            variable = what() if origin is InputOrigin.GRADIENT else None
            if variable is not None and type(variable._grad) is not Tensor:
                return f"{variable.name}.grad changed from a gradient to none"
        return None

    @property
    def owners(self) -> list[tuple[str, Variable]]:
        """The Variables that the program is bound to, with their names."""
        of_gradients = (*(v for v, _, _ in self.gradients), *self.absent_gradients, *self.lost_gradients)
        variables = [v() for v in (*self.variables, *of_gradients)]
        return [(v.name or "a Variable", v) for v in variables if v is not None]


def _in_words(gradient: Tensor | None) -> str:
    return "None" if gradient is None else "a gradient"


def _comparable(value: Any) -> Any:
    return id(value()) if type(value) is Weak else value


def capture(
    function: FunctionType,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    keep_grads: bool,
    name: str,
    varying: frozenset[str] = frozenset(),
    recompute: bool = False,
    are_all: bool = False,
) -> Observation:
    """Trace ``function`` observed; the observation's ``program`` is a :class:`Capture`. ``varying`` are the labels of
    numbers that changed from call to call: what is computed from them is computed at each call. With ``recompute``
    backward programs compute again whatever can be. With ``are_all`` the sizes of all arguments are symbols.

    Raises NotCapturable where the call cannot be known, and whatever the function raises; nothing has changed then.
    """
    session = TraceSession(function.__name__, keep_grads, name, varying, recompute, are_all)
    return observe(function, args, kwargs, RULES, session)


class _Running(tracing.activate):
    """The block in which a function is traced; it leaves the gradient mode as it was."""

    __slots__ = ("_function_name", "_mode")

    def __init__(self, trace: tracing.Trace, over: Callable[[], None], function_name: str) -> None:
        super().__init__(trace, over)
        self._function_name = function_name
        self._mode = RECORDING.get()

    @undisturbed
    def __exit__(self, *error: object) -> None:
        is_left_changed = RECORDING.get() is not self._mode
        if is_left_changed:
            RECORDING.set(self._mode)
        super().__exit__(*error)
        if is_left_changed and error[0] is None:
            raise SideEffectError(
                f"[compile] '{self._function_name}' left the gradient mode changed; a program would not repeat that. "
                "Use `with runnel.set_grad_enabled(flag):` inside."
            )


for _function in (Recorder.take_back, Recorder.close, Effects.undo):
    undisturbed(_function)


class TraceSession(Session):
    """The trace that an observed run records."""

    def __init__(
        self,
        function_name: str,
        keep_grads: bool,
        name: str,
        varying: frozenset[str],
        recompute: bool,
        are_all: bool,
    ) -> None:
        self.varying = varying
        self._lengths = RunLengths(varying, are_all)
        self.found, self.stand_in, self.seen = self._lengths.found, self._lengths.stand_in, self._lengths.seen
        self.length_of = self._lengths.length_of
        self.trace = tracing.Trace(tensors.serial_now())
        self._outside = self.trace.facet(OutsideHandles)
        self._outside.stand_ins = self._stand_ins = StandIns(self.trace)
        self._recompute = recompute
        self._function_name = function_name
        self._keep_grads = keep_grads
        self._name = name
        self._nodes: list[Value] = []  # results of the graph
        self._outputs: list[tuple[int, Tape]] = []
        self._places: dict[int, int] = {}  # of tensors among the outputs
        self._output_tensors: list[Tensor] = []  # the tensors of the outputs
        self.views: list[tuple[Any, View]] = []  # recipes of results that are views of tensors of the run
        self._numbers: dict[int, tuple[Value, TracedFloat]] = {}  # by id of the source
        self._number_sources: list[tuple[Value, Source]] = []
        self._differentiates = False  # the tape is walked inside
        self.is_deriving = False  # rules in Python are traced, which eager code runs when backward() is called
        self._changed: list[tuple[int, Collection[int], str]] = []  # by schedules: since how many numbers were read

    def begin(self, rec: Recorder) -> None:
        """Methods of the user's objects that code of ours calls run observed."""

        def method(owner: Any, name: str) -> Any:
            if id(owner) in rec.memo.get("covered", ()) and watched(rec, owner)[0] is not None:
                return getattr(owner, name)
            if rec.source_of(owner) is None and not isinstance(owner, StatefulTree):
                rec.refuse(f"{name}() of an object that was not found is called")
            return rec.callback(attributes.read(rec, owner, name))

        def differentiating() -> None:
            self._differentiates = True
            hooks = grad_hooks.CHANGES
            rec.log.check(None, "{0}.count != {1}", "hooks of gradients", (hooks, hooks.count))

        self.trace.observer, self.trace.differentiating, self.trace.refuse = method, differentiating, rec.refuse
        self._lengths.begin(rec)
        self.trace.layout_asked = functools.partial(checks.check_layout, rec)
        self.trace.looks_at = functools.partial(checks.compared_content, rec)

    @undisturbed
    def end(self) -> None:
        self.trace.observer = self.trace.differentiating = self.trace.refuse = self.trace.layout_asked = None
        self.trace.looks_at = self._lengths.lengths.number = None
        for tensor, saved in self._outside.values.values():
            copying.restore(tensor, saved)
        for tensor, before in self._outside.gradients.values():
            tensor._grad = before
        self._outside.stand_ins = None
        self._stand_ins.by_handle.clear()
        self._output_tensors.clear()

    def running(self, over: Callable[[], None]) -> Any:
        return _Running(self.trace, over, self._function_name)

    def returned(self, rec: Recorder) -> None:
        """Record the new values and gradients of tensors from outside."""
        self._require_read_before(rec)
        if any(rec.source_of(view) is not None for view in self._outside.views):  # it shows what the Variable was
            rec.refuse(*OutsideHandles.REFUSAL)
        for tensor, _ in self._outside.values.values():
            source = rec.source_of(tensor)
            if source is None:
                rec.refuse("a tensor is changed in place that was not found by a read")
            if tensor.requires_grad:
                rec.refuse(f"'{source}', which requires a gradient, is changed in place", "compute a new tensor")
            fails = "{v}._leaf is not None or {v}._serial == {0}"  # then eager code refuses
            rec.log.check(source, fails, f"what {source} belongs to", (CONSTANT_SERIAL,))
            value = tensors.symbolic(tensors.node_of(tensor, self.trace))
            rec.log.check(source, "{0}({v}) or not {1}({v})", f"views of {source}", (has_views, is_own))
            rec.effects.record(SettingAll(_value_set), tensor, None, value, f"{source}[...] = ...")
        for tensor, before in self._outside.gradients.values():
            source = rec.source_of(tensor)
            if source is None:
                rec.refuse("the gradient of a tensor is set that was not found by a read")
            rec.reach(before, rec.log.source(source, "{p}._grad", f"{source}.grad", before))
            rec.effects.record(Setting(setattr), tensor, "_grad", tensor._grad, f"{source}.grad = ...")
        self._require_own_gradients(rec)

    def _require_own_gradients(self, rec: Recorder) -> None:
        """Require that each stored ``.grad`` is a separate tensor: no other of the run's, and none from outside."""
        held: dict[int, Variable] = {}
        for variable, value in self.trace.facet(TracedVariables).gradients.items():
            if value is None:
                continue
            source, other = rec.source_of(value), held.setdefault(id(value), variable)
            if source is not None or other is not variable:
                what = f"'{source}'" if source is not None else f"the .grad of {other.described}"
                rec.refuse(f"the .grad of {variable.described} becomes {what} itself", "set it to a copy (g.clone())")

    def has_left_gradient(self, tensor: Tensor) -> bool:
        """Return whether the run has set the ``.grad`` of a tensor from outside."""
        return id(tensor) in self._outside.gradients

    # During the run -------------------------------------------------------------------------------------------------

    def number(self, rec: Recorder, value: float) -> TracedFloat:
        """Return a number that may differ at later calls, as an input of the program."""
        source = rec.symbols[id(value)]
        known = self._numbers.get(id(source))
        if known is None:
            node = self.trace.input(aval((), dtypes.float64), InputKind.SCALAR, source.label)
            known = self._numbers[id(source)] = (node, traced_float(node))
            self._number_sources.append((node, source))
        return known[1]

    def concrete(self, rec: Recorder, value: Any) -> Any:
        """Return a value that is looked at."""
        return rec.concrete_number(value)

    def numbers_change(self, plain: Collection[int], where: str) -> None:
        """From here on numbers of these dicts (ids) are others than when the program begins, which reads them then."""
        self._changed.append((len(self.trace.scalars), plain, where))

    def require_unchanged(self, rec: Recorder, plain: dict[str, Any]) -> None:
        """Refuse to read a number of this dict after its schedule was stepped."""
        for _, changed, where in self._changed:
            if id(plain) in changed:
                rec.refuse(f"a number of a group is read after its schedule was stepped ({where})", _STEP_LAST)

    def _require_read_before(self, rec: Recorder) -> None:
        """Require that the program reads numbers before any schedule changes them."""
        for first, changed, where in self._changed:
            if any(id(getter.args[0]) in changed for getter, _ in self.trace.scalars[first:]):
                rec.refuse(f"an optimizer steps after its schedule was stepped ({where})", _STEP_LAST)

    # After it ------------------------------------------------------------------------------------------------------

    def output(self, tensor: Tensor) -> int:
        """Return the number of a tensor among the outputs."""
        place = self._places.get(id(tensor))
        if place is None:
            place = self._places[id(tensor)] = len(self._outputs)
            self._output_tensors.append(tensor)
            self._outputs.append((self._result(tensor), _tape_of(tensor)))
        return place

    def calculated(self, sign: str, a: Any, b: Any, number: Any) -> None:
        self._lengths.computed(sign, a, b, number)

    def steps_of(self, rec: Recorder, view: View) -> Steps:
        """Return the steps to a view that leaves the run, which later calls repeat."""
        if self._lengths.are_used and not all(map(_is_plain_step, view.steps)):
            rec.refuse("a view whose place depends on a length leaves the function", "return a copy")
        return view.steps

    @staticmethod
    def refuse_view_taped_apart(rec: Recorder) -> NoReturn:
        """Refuse to give a detached tensor that got a gradient as a view, which has no separate tape."""
        rec.refuse("a detached tensor that got a gradient leaves the function", "return a clone of it")

    def is_kept(self, base: Any) -> bool:
        """Return whether a tensor from outside, or a Variable that the run has not changed, has the last value."""
        return not isinstance(base, Variable) or base not in self.trace.facet(TracedVariables).written

    def _result(self, tensor: Tensor) -> int:
        self._nodes.append(tensors.node_of(tensor, self.trace))
        return len(self._nodes) - 1

    def complete(self, recipes: Recipes) -> Capture:
        trace, traced = self.trace, self.trace.facet(TracedVariables)
        if trace.deferred_error is not None:  # though the function caught it: eager code would not have raised it
            raise trace.deferred_error
        shared = Counter(id(view.base) for _, view in self.views)
        for output, view in self.views:
            is_shared = shared[id(view.base)] > 1 and type(view.base) is Tensor and view.base.is_traced
            if id(view.base) in self._places or is_shared:  # a write to one is seen in another
                if output.is_taped_apart:
                    self.refuse_view_taped_apart(recipes.rec)
                output.place, output.steps = self.output(view.base), self.steps_of(recipes.rec, view)
        gradients = tuple(self._gradients())
        backward, ends = self._derivative(recipes.rec)
        as_found = dict.fromkeys((*traced.absent_gradients, *traced.lost_gradients))
        for variable in {**traced.nodes, **traced.gradients, **as_found}:
            checks.bound_variable(recipes.rec, variable)
        updates = {
            node: tensors.node_of(traced.values[variable], trace)
            for variable, node in traced.nodes.items()
            if variable in traced.written
        }
        of_variable = {node: variable for variable, node in traced.nodes.items()}
        sources = dict(self._captured(recipes))
        sources.update({node: InputBinding(InputOrigin.NUMBER, recipes.place(at)) for node, at in self._number_sources})
        sources.update(
            {node: InputBinding(InputOrigin.GRADIENT, Weak(v)) for v, node in traced.gradient_inputs.items()}
        )
        sources.update({node: InputBinding(InputOrigin.GETTER, getter) for getter, node in trace.scalars})
        residuals = () if backward is None else backward.residuals
        graph = trace.graph([*self._nodes, *residuals], updates, self._name)
        variables = [of_variable[n] for n in graph.inputs if n in of_variable]
        return Capture(
            graph,
            tuple([sources[n] for n in graph.inputs if n not in of_variable]),
            tuple(map(Weak, variables)),
            frozenset(i for i, v in enumerate(variables) if v in traced.written),
            tuple(self._outputs),
            gradients,
            tuple(map(Weak, traced.absent_gradients)),
            backward,
            trace.device or default_device(),
            tuple([recipes.place(at) for at in ends]),
            self._recompute,
            tuple(map(Weak, traced.lost_gradients)),
            self._lengths.lengths if self._lengths.are_used else None,
            tuple(map(recipes.place, self._lengths.sources)),
        )

    def _derivative(self, rec: Recorder) -> tuple[Derivative | None, list[Source]]:
        """Return the derivative, or None, and the sources of the tensors from outside that it leads to."""
        for tensor, stand_in in self._stand_ins.by_handle.values():
            if self._differentiates:
                checks.check_hooks(rec, tensor)
            if stand_in._grad is not None:
                rec.refuse(
                    f"backward() inside reaches {_named(rec, tensor)}, whose tape goes on outside",
                    "use runnel.grad, or call backward() outside",
                )
        live = [(i, self._output_tensors[i]) for i, (_, tape) in enumerate(self._outputs) if tape is Tape.LIVE]
        if not live:
            return None, []
        changes = len(rec.effects.done)
        pairs = list(self._stand_ins.by_handle.values())
        numbers = {id(stand_in): i for i, (_, stand_in) in enumerate(pairs)}
        invariant = {node for tensor, node in self.trace.captures.values() if type(tensor) is Tensor}
        self.is_deriving = True
        try:
            result = derivative(self.trace, live, numbers, invariant, self._nodes, self._recompute)
        except NotDivisible as problem:
            rec.refuse(str(problem))
        except TracedValueError as problem:  # of a rule in Python, which has values where it runs
            self.trace.deferred_error = problem
        except GradientError as problem:  # of a backward pass, which nobody may ask for
            reason = str(problem).rstrip(".")
            rec.refuse(f"its results require a gradient, but {reason}", "call it in rn.no_grad() where none is wanted")
        finally:
            self.is_deriving = False
        if self.trace.deferred_error is not None:
            rec.refuse(f"a derivative looks at values: {self.trace.deferred_error}".rstrip("."))
        if len(rec.effects.done) != changes:
            rec.refuse("a derivative changes something outside")
        return result, [self._source(rec, tensor, self.trace.captures[id(tensor)][1]) for tensor, _ in pairs]

    @staticmethod
    def _source(rec: Recorder, value: Any, node: Value) -> Source:
        at = rec.source_of(value)
        if at is None:
            raise CaptureError(
                f"[compile] the function used a tensor ({node.aval}) at {node.where} that was made outside, in a "
                "place where later calls cannot look for it; pass it as an argument."
            )
        return at

    def _captured(self, recipes: Recipes) -> Iterator[tuple[Value, InputBinding]]:
        """Return the tensors and arrays from outside that ops read, and where later calls find them."""
        for value, node in self.trace.captures.values():
            at = self._source(recipes.rec, value, node)
            if at.is_argument:
                node.name = at.label
            yield (
                node,
                InputBinding(InputOrigin.TENSOR if type(value) is Tensor else InputOrigin.ARRAY, recipes.place(at)),
            )

    def _gradients(self) -> Iterator[tuple[Weak, Gradient, int]]:
        """Return how later calls set the ``.grad`` of each Variable that the function set."""
        traced = self.trace.facet(TracedVariables)
        for variable, value in traced.gradients.items():
            given = traced.gradient_inputs.get(variable)
            if value is None:
                yield Weak(variable), Gradient.NONE, -1
            elif given is not None and value.read()._node is given:  # a gradient from outside, which stays
                continue
            elif variable in traced.consumed and not self._keep_grads:
                yield Weak(variable), Gradient.CONSUMED, -1
            else:
                yield Weak(variable), Gradient.TENSOR, self._result(value.read())


def _named(rec: Recorder, tensor: Tensor) -> str:
    at = rec.source_of(tensor)
    return f"'{at}'" if at is not None else "what was not passed as an argument"


def _value_set(tensor: Tensor, value: Tensor) -> dict[str, Any]:
    return tensor.becoming("setitem", value, moved_out(tensor), None)


def _is_plain_step(step: Any) -> bool:
    """Return whether a step to a view has no length among its attributes. Functions may hold some."""
    return type(step) is tuple and len(step) == 2 and is_static(flatten(step[1])[0])


def _tape_of(tensor: Tensor) -> Tape:
    if not tensor.requires_grad:
        return Tape.NONE
    try:
        tape.needed_order([tensor])
    except GradientError:
        return Tape.FREED
    return Tape.LIVE
