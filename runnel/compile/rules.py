"""The observer's policy for Runnel and NumPy: which values are arrays, which code runs unobserved, what has state."""

from __future__ import annotations

import dataclasses
import functools
from types import FunctionType
from typing import Any, Final, NoReturn

import numpy as np

from runnel.backends.context import default_device
from runnel.compile import (
    arrays,
    boundary,
    given_functions,
    recipes as results,
    schedules,
    tensors,
)
from runnel.compile.observe import attributes, calls, numbers
from runnel.compile.observe.calls import returning
from runnel.compile.observe.containers import content
from runnel.compile.observe.effects import Setting, SettingState
from runnel.compile.observe.functions import VALUES
from runnel.compile.observe.guard import DESCRIBED, EXTRA
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.sources import Identity, Source
from runnel.compile.observe.table import CONSTANTS, Policy, check_constant
from runnel.compile.observe.values import MISSING, PLAIN, SYMBOLIC, container_of, described, mro
from runnel.compile.owned import (
    METHODS,
    PACKAGE,
    advances_version,
    holds_state,
    is_own,
    is_own_module,
    is_plain_object,
    is_scheduler,
    parts_of,
    reads_outside,
    require_own,
    runs_users,
    stored_names,
    structure,
    tree,
    users_bases,
)
from runnel.compile.wrappers import Uncompiled, WrappedMethod, Wrapper
from runnel.core import pytree
from runnel.core.avals import ShapedArray
from runnel.core.devices import devices
from runnel.core.dtypes import DType, bfloat16, bool_, float16, float32, float64, int64
from runnel.core.lifetime import Weak
from runnel.core.public import public
from runnel.core.pytree import flatten
from runnel.ops.conversion import cast
from runnel.ops.creation_like import full_like
from runnel.tensor import tracing
from runnel.tensor.creation import asarray, full, tensor
from runnel.tensor.floats import RunTimeNumbers, TracedFloat, is_traceable
from runnel.tensor.random import default_on, manual_seed
from runnel.tensor.stateful import Stateful, StatefulTree, TickingDict
from runnel.tensor.tensor import Tensor
from runnel.tensor.traced_values import left_over, shows_traced
from runnel.tensor.variable import Variable
from runnel.transforms.custom_vjp import CustomDerivative

_EXACT: Final = 1 << 53  # below, an int is the float of its value
_COMPARISONS: Final = frozenset({"<", "<=", "==", "!=", ">", ">="})
_FLOATING: Final = frozenset({"+", "-", "*", "/"})  # operators that make whole numbers beside floating tensors floats


EXTRA.update(
    holds_state=holds_state,
    is_hooked=tensors.is_hooked,
    Tensor=Tensor,
    array_differs=arrays.array_differs,
    structure=structure,
    parts_of=parts_of,
    tree=tree,
)
DESCRIBED[ShapedArray] = tensors.described_aval


class Rules(Policy):
    """The rules for functions that use Runnel."""

    def __init__(self) -> None:
        super().__init__()
        self.rules |= {
            id(Tensor.requires_grad_): tensors.requires_grad_set,
            id(Variable.requires_grad_): tensors.requires_grad_set,
            id(vars(Variable)["requires_grad"].fset): tensors.requires_grad_set,
            id(public(manual_seed)): _seeded,
        }
        for function, place in ((asarray, 0), (tensor, 0), (full, 1), (full_like, 1)):
            self.rules[id(public(function))] = tensors.made_of_number(public(function), place)
        self.rules |= {id(f): arrays.number_of(self.rules[id(f)]) for f in (float, int)}

    # Values -----------------------------------------------------------------------------------------------------------

    def leaf(self, kind: type) -> Any:
        """Return how a value of this kind is checked where it is first found; None: by its type."""
        if kind is Tensor:
            return tensors.check_tensor
        if issubclass(kind, Variable):
            return tensors.check_variable
        if issubclass(kind, np.ndarray):
            return arrays.check_array
        if issubclass(kind, np.generic):
            return arrays.check_kind_of_scalar
        if issubclass(kind, (DType, np.ufunc)) or kind in CONSTANTS:
            return check_constant
        return _check_ticking if advances_version(kind) else None

    def is_symbolic(self, rec: Recorder, kind: type, source: Source) -> bool:
        """Return whether a number that is read here may differ at later calls."""
        if getattr(rec.session, "is_deriving", False) and not source.is_argument:
            rec.refuse(
                f"a derivative in Python reads '{source}', which may have changed when backward() is called outside",
                "call backward() inside the compiled function",
            )
        return (kind is float and source.is_argument) or source.label in rec.session.varying

    def is_fixed_class(self, kind: type) -> bool:
        """Return whether a Python class counts as one that never changes."""
        return (is_own(kind) and container_of(kind) is None) or arrays.is_of_numpy(kind)

    def makes(self, kind: type) -> bool:
        """Return whether unobserved code makes new objects of a class, as trees do with registered containers."""
        return pytree.is_registered(kind) and not any(map(reads_outside, pytree._REGISTERED[kind][:2]))

    def takes_floats(self, symbol: str, value: Any) -> bool:
        """Return whether an operator treats an int beside ``value`` like the float of that int."""
        is_array = type(value) is Tensor or issubclass(type(value), Variable)
        is_taken = symbol in _COMPARISONS or symbol.removesuffix("=") in _FLOATING
        return is_array and value.dtype in (float16, bfloat16, float32, float64) and is_taken

    def integer_beside(self, rec: Recorder, symbol: str, value: Any, other: Any) -> Any:
        """Return the tensor that an integer tensor meets in place of a counter."""
        is_array = type(other) is Tensor or issubclass(type(other), Variable)
        if not is_array or symbol.startswith("**") or id(value) not in rec.symbols:
            return None
        dtype, is_in_place = other.dtype, symbol.endswith("=") and symbol not in _COMPARISONS
        dtype = int64 if dtype == bool_ and not is_in_place else dtype
        if not dtype.is_integer:
            return None
        bounds = np.iinfo(dtype.numpy)
        low, high = max(bounds.min, -_EXACT), min(bounds.max, _EXACT)
        if not low < value < high:
            return None
        rec.log.check(rec.symbols[id(value)], f"not {low} < {{v}} < {high}", "size of a counter")
        number = numbers.computed(rec, "float({a0})", (value,), float(int(value)))
        return cast(rec.session.number(rec, number)._tensor, dtype) if id(number) in rec.symbols else None

    def is_transparent(self, kind: type) -> bool:
        """Return whether objects of this class behave like those of its base."""
        return issubclass(kind, TickingDict)

    def on_fixed_attribute(self, rec: Recorder, kind: type, name: str) -> None:
        """Note that an attribute of a fixed class is read."""
        if is_own(kind):
            require_own(rec, kind, name)

    def on_absent_attribute(self, rec: Recorder, kind: type, name: str) -> None:
        """Note that no class in the order of ``kind`` holds an attribute."""
        ours = next((base for base in mro(kind) if is_own(base)), None)
        if ours is not None:
            require_own(rec, ours, name)

    def advances_version(self, kind: type) -> bool:
        """Return whether setting an attribute of such an object advances the state version."""
        return advances_version(kind)

    def changes_by_version(self, value: Any) -> bool:
        """Return whether what is checked of a value changes only with the state version."""
        kind = type(value)
        return kind in PLAIN or issubclass(kind, (Variable, DType, TickingDict)) or advances_version(kind)

    def operator(self, kind: type, other: type) -> Any:
        """Return how operators on such values are applied; None: by the rules for Python's objects."""
        return tensors.operator_for(kind, other)

    def item(self, kind: type) -> Any:
        """Return how items of such values are read and written; None: by the rules for Python's objects."""
        return tensors.item if is_traceable(kind) or issubclass(kind, np.ndarray) else None

    def attribute(self, kind: type, name: str) -> Any:
        """Return how an attribute of such values is read; None: by the rules for Python's objects."""
        if is_scheduler(kind):
            return _attribute_of_scheduler
        return tensors.rule_for(kind, name)

    def pinned_key(self, rec: Recorder, key: Any) -> bool:
        if not isinstance(key, Variable):
            return super().pinned_key(rec, key)
        tensors.bound_variable(rec, key)
        if rec.source_of(key) is None:
            rec.keep(key)
            rec.sources[id(key)] = rec.log.source(None, "{0}()", key.name or "a Variable", key, (Weak(key),))
        rec.pinned(key)
        return True

    def kind_of(self, value: Any) -> Any:
        """Return what ``type(value)`` gives."""
        return float if type(value) is TracedFloat else SYMBOLIC.get(type(value), type(value))

    def look_into(self, rec: Recorder, value: Any, source: Source | None) -> None:
        kind = type(value)
        if arrays.is_numpy(kind):
            arrays.look_into(rec, value, source)
        elif str(kind.__module__).startswith("numpy.random") and source is not None:
            rec.refuse(
                f"NumPy's random numbers are drawn by {described(value)} ('{source}')",
                "use rn.rand or rn.randn, or pass the array as an argument",
            )
        elif not (is_traceable(kind) or issubclass(kind, (DType, np.dtype)) or is_own(kind)):
            super().look_into(rec, value, source)

    def result(self, kind: type) -> Any:
        """Return how such a value that leaves the run is made at later calls; None: by the rules for Python's."""
        return results.rule_for(kind)

    def is_constant(self, value: Any) -> bool:
        """Return whether an object of C code never changes, so that it can leave the run as it is."""
        return isinstance(value, (np.generic, np.dtype, DType, *VALUES))

    def refuse_leftover(self, value: Tensor) -> NoReturn:
        """Raise the error for a tensor of another trace."""
        raise left_over("[compile] an argument", value.aval)

    # Code -------------------------------------------------------------------------------------------------------------

    def is_library(self, module: str) -> bool:
        """Return whether a module is Runnel's, NumPy's or Python's own: refusals name the line that called it."""
        return is_own_module(str(module)) or str(module).partition(".")[0] == "numpy"

    def counts_by_identity(self, function: FunctionType) -> bool:
        """Return whether a function runs unobserved, so that another one of the same code is another function."""
        return boundary.is_ours(function) or arrays.is_of_numpy(function)

    def native(self, function: FunctionType) -> Any:
        if boundary.is_ours(function):
            if given_functions.is_cond(function):
                return _chosen
            return _called_back if given_functions.is_host_call(function) else _ours
        if arrays.is_of_numpy(function):
            return _called_numpy
        return super().native(function)

    def native_class(self, kind: type) -> Any:
        """Return how a Python class whose objects are made unobserved is called; None: observed."""
        if is_own(kind):
            return _constructed
        return _called_numpy if arrays.is_of_numpy(kind) else None

    def callable(self, kind: type) -> Any:
        """Return how such an object is called; None: by its ``__call__``."""
        if issubclass(kind, Wrapper):
            return _called_wrapper
        if issubclass(kind, Uncompiled):
            return _called_uncompiled
        if issubclass(kind, CustomDerivative):
            return _called_custom
        if kind in arrays.CALLABLES:
            return _called_numpy
        if kind.__name__ == "cython_function_or_method":  # NumPy's random numbers; each such module has its own class
            return _called_cython
        return None

    def c_function(self, rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what to call in place of a function of a C module that has no row."""
        if arrays.is_of_numpy(function):
            return _called_numpy(rec, function, args, kwargs)
        self.refuse_c(rec, function)

    def c_class(self, rec: Recorder, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if arrays.is_of_numpy(kind):
            return _called_numpy(rec, kind, args, kwargs)
        return super().c_class(rec, kind, args, kwargs)

    def method(self, rec: Recorder, value: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        kind = type(value)
        if issubclass(kind, (np.ndarray, np.generic, np.dtype, np.ufunc)):
            return arrays.method(rec, value, function, args, kwargs)
        if str(kind.__module__).startswith("numpy.random"):
            return arrays.random_method(rec, value, function, args, kwargs)
        return super().method(rec, value, function, args, kwargs)

    def shows_unknown(self, text: str) -> bool:
        """Return whether a text shows a tensor that has no value yet."""
        return shows_traced(text)

    def shown(self, rec: Recorder, value: Any) -> Any:
        if isinstance(value, Stateful):
            rec.refuse(f"the text of {described(value)} is made", "print it outside the compiled function")
        if any(arrays.is_numpy(type(x)) for x in flatten(value)[0]):
            rec.refuse(f"the text of {described(value)} depends on how NumPy prints", "print it outside, or as a list")
        return super().shown(rec, value)

    def context_manager(self, kind: type) -> bool:
        """Return whether a ``with`` block of such an object of C code can be repeated."""
        return is_own(kind)

    def copies_itself(self, kind: type) -> bool:
        """Return whether a Python class copies its objects unobserved."""
        return is_own(kind)

    def with_foreign_parts(self, rec: Recorder, value: Any) -> Any:
        """Read an object of Runnel's that holds the user's objects, given to a function of Runnel's."""
        if isinstance(value, StatefulTree):
            return _tree_checked(rec, value)
        if isinstance(value, CustomDerivative):
            return given_functions.observed_custom(rec, value)
        if isinstance(value, Wrapper):
            return rec.callback(value)
        if isinstance(value, Uncompiled):
            return value
        if isinstance(value, Stateful):
            return _structure_checked(rec, value)
        if is_plain_object(type(value)) and hasattr(value, "__dict__"):
            return _attributes_observed(rec, value)
        rec.refuse(
            f"a function of Runnel is given a {type(value).__name__} that holds things of yours, which it may read",
            "pass them as arguments",
        )

    def user_object(self, rec: Recorder, value: Any) -> Any:
        """Read an object of the user's, given to a function of Runnel's."""
        if isinstance(value, StatefulTree):
            return _tree_checked(rec, value)
        if isinstance(value, Stateful):
            return _structure_checked(rec, value)
        if dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                content(rec, attributes.read(rec, value, field.name))
            return value
        if pytree.is_registered(type(value)):
            if any(map(reads_outside, pytree._REGISTERED[type(value)][:2])):
                rec.refuse(f"the functions that flatten {described(value)} read variables", "let them read the object")
            for name in stored_names(value):
                content(rec, attributes.read(rec, value, name))
            return value
        if callable(value):
            return rec.callback(value)
        return content(rec, value)


def _attribute_of_scheduler(rec: Recorder, scheduler: Any, name: str) -> Any:
    if name in scheduler.__dict__ and name != "optimizer" and rec.source_of(scheduler) is not None:
        schedules.require_not_stepped(rec, scheduler, f"'{name}'")
    return attributes.of_object(rec, scheduler, name)


# Objects that advance the state version -------------------------------------------------------------------------------


def _check_ticking(rec: Recorder, value: Any, source: Source) -> None:
    """Check which Module or optimizer it is. Setting its attributes advances the state version."""
    rec.log.check(source, "{v} is not {0}", f"which object {source} is", (Identity(value),))
    rec.log.check(source, "type({v}) is not {0}", f"type of {source}", (Identity(type(value)),), looks_into=())


def _tree_checked(rec: Recorder, value: Any) -> Any:
    source = rec.source_of(value)
    if source is not None:
        modules: dict[int, Any] = {}
        known, label = rec.constant(tree(value, modules)), f"Modules and Variables of {source}"
        by_version = all(advances_version(type(module)) for module in modules.values())
        rec.log.check(source, "tree({v}) != {0}", label, (known,), looks_into=modules if by_version else None)
        _reach_tree(rec, value)  # so that Modules of the user's below it have a source
    return value


def _structure_checked(rec: Recorder, value: Any) -> Any:
    """Check Runnel's parts of an optimizer of a user's class as a whole. Its own methods are observed."""
    source = rec.source_of(value)
    looked_into: set[int] = set()
    known = parts_of(value, looked_into)
    if known is None:
        rec.refuse(f"a {type(value).__name__} holds things that a program cannot watch", "pass them as arguments")
    if source is not None:
        into = looked_into if advances_version(type(value)) else None
        rec.log.check(source, "parts_of({v}) != {0}", f"structure of {source}", (rec.constant(known),), looks_into=into)
    return value


def _attributes_observed(rec: Recorder, value: Any) -> Any:
    """Read the attributes of an object one by one, so that tensors among them are inputs of the program."""
    source = rec.source_of(value)
    if source is not None:
        names = tuple(value.__dict__)
        rec.log.check(source, "tuple({v}.__dict__) != {0}", f"names of attributes of {source}", (names,))
    for name in list(value.__dict__):
        part = attributes.read(rec, value, name)
        items = [rec.hooks.get_item(part, i) for i in range(len(part))] if type(part) is list else [part]
        for item in items:
            if is_plain_object(type(item)) and hasattr(item, "__dict__"):
                _attributes_observed(rec, item)
            else:
                content(rec, item)
    return value


def _called_module(rec: Recorder, module: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a Module: its ``forward`` runs observed."""
    try:
        return rec.passed(attributes.read(rec, module, "forward"), args, kwargs)
    except RecursionError:
        raise
    except Exception as error:
        located = module.located(args, kwargs, error)
        if located is error:
            raise
        raise located from located.__cause__


def _set_on(rec: Recorder, function: Any, module: Any, name: str, value: Any) -> None:
    """Do ``model.name = value`` at each call. New values of buffers are assigned."""
    if rec.source_of(module) is None:
        setattr(module, name, value)
        return
    current = module.__dict__.get(name)
    if value is current and isinstance(current, Variable):  # ``self.mean *= 0.5`` has assigned already
        return
    if isinstance(current, Variable) or isinstance(value, (Variable, Stateful)):
        if isinstance(current, Variable) and not isinstance(value, (Variable, Stateful, type(None))):
            attributes.read(rec, module, name)
            if module.updated_buffer(current, name, value) is current:
                return
        rec.refuse(f"'{rec.source_of(module)}.{name}' gets another Variable or Module", "set it outside")
    if holds_state(module, name):
        rec.refuse(f"'{rec.source_of(module)}.{name}' is kept for a Parameter or buffer", "set it outside")
    source = rec.source_of(module)
    rec.log.check(source, "holds_state({v}, {0})", f"whether {source}.{name} is a Parameter or buffer", (name,))
    if is_own(type(module)):
        value = rec.concrete_number(value)  # its own code reads it unobserved
    before = len(rec.effects.done)
    attributes.write_plain(rec, module, name, value)
    if _is_last_change(rec, before, module, name):
        is_whole = name == "__dict__"  # which becomes one that advances the version
        rec.effects.replace_last(Setting(function) if is_whole else SettingState())


def _is_last_change(rec: Recorder, before: int, module: Any, name: str) -> bool:
    """Return whether the attribute itself was changed since there were ``before`` changes, not by a property. The
    methods of a user's class around it have run observed."""
    done = rec.effects.done
    return len(done) == before + 1 and done[-1].target is module and done[-1].key == name


def _seeded(rec: Recorder, seed: int) -> None:
    """Seed the generators. A program draws on one device; the generators of others are seeded after it has run."""
    seed = rec.concrete_number(seed)
    trace: Any = tracing.ACTIVE.trace
    of_tensors = (at.value.device for at in rec.sources.values() if type(at.value) is Tensor)
    own = trace.device or next(of_tensors, default_device())
    default_on(own).seed(seed)
    for device in devices():
        if device is not own:
            again = functools.partial(_seed_again, default_on(device))
            rec.effects.record(again, None, None, seed, f"the generator of {device}")


def _seed_again(generator: Any, target: None, key: None, seed: int) -> None:
    generator.seed(seed)


# Runnel's code --------------------------------------------------------------------------------------------------------


def _called_numpy(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if any(is_traceable(type(x)) for x in args):
        return returning(boundary.run(rec, function, args, kwargs))
    return arrays.called(rec, function, args, kwargs)


def _called_cython(rec: Recorder, function: Any, args: Any, kwargs: Any) -> NoReturn:
    rec.policy.refuse_c(rec, function)
    raise AssertionError


def _called_back(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return returning(given_functions.call_host(rec, function, args, kwargs))


def _chosen(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return returning(given_functions.call_cond(rec, function, args, kwargs))


def _ours(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function of Runnel's unobserved, except methods of objects that hold the user's objects."""
    if function.__globals__["__name__"].startswith(_MODES) and not boundary.holds_nothing(function):
        return rec.twin(function), args, kwargs  # a decorator of a mode made it, which passes its arguments on
    if args and boundary.holds_users(rec, args[0]):
        return rec.twin(function), args, kwargs
    if any(map(runs_users, (*args, *kwargs.values()))):
        return rec.twin(function), args, kwargs
    if args and isinstance(args[0], (Wrapper, Uncompiled)) and function.__name__ == "__get__":
        return returning(function(*args, **kwargs))
    is_transform = function.__globals__["__name__"].startswith(_TRANSFORMS)  # takes Modules as functions
    if args and isinstance(args[0], Stateful) and not is_transform:
        owner, name = args[0], function.__name__
        if name == "__setattr__":
            _set_on(rec, function, *args, **kwargs)
            return returning(None)
        if name in _WALKS and isinstance(owner, StatefulTree):
            _reach_tree(rec, owner)
        elif name not in (_RUNS if isinstance(owner, StatefulTree) else METHODS):
            return rec.twin(function), args, kwargs
        elif isinstance(owner, StatefulTree) and not _is_known(rec, owner):
            if name == "__call__":
                return returning(_called_module(rec, *args, **kwargs))
            return rec.twin(function), args, kwargs
    if args and is_scheduler(type(args[0])):
        return returning(schedules.called(rec, function, args, kwargs))
    if args and isinstance(args[0], RunTimeNumbers) and function.__name__ == "__getitem__" and args[1] in args[0].plain:
        return returning(_run_time_number(rec, *args))
    return returning(boundary.run(rec, function, args, kwargs))


_MODES: Final = f"{PACKAGE}.tensor."
_TRANSFORMS: Final = f"{PACKAGE}.transforms."
_RUNS: Final = frozenset({"__call__", "forward"})  # of a Module that is known: run unobserved
_WALKS: Final = frozenset({"named_children", "named_modules", "_named_variables", "zero_grad"})  # read the tree alone


def _reach_tree(rec: Recorder, owner: Any) -> None:
    """Note where the Modules below ``owner`` are found, which a walk is about to give."""
    waiting, visited = [owner], set()
    while waiting:
        now = waiting.pop()
        source = rec.source_of(now)
        if id(now) in visited or source is None:
            continue
        visited.add(id(now))
        space = attributes.dict_source(rec, now, source)
        for name, item in list(now.__dict__.items()):
            if isinstance(item, StatefulTree) and (id(now.__dict__), name) not in rec.effects.written:
                at = rec.log.source(space, f"{{p}}[{name!r}]", f"{source}.{name}", item)
                if advances_version(type(now)):
                    at.place = id(now.__dict__), name
                waiting.append(rec.reach(item, at))


def _run_time_number(rec: Recorder, group: Any, key: str) -> Any:
    """Return a hyper-parameter, which may differ at the next call."""
    at, log, plain = rec.source_of(group), rec.log, group.plain
    rec.session.require_unchanged(rec, plain)
    space = (
        log.source(None, "{0}", "the group", MISSING, (plain,)) if at is None else log.source(at, "{p}.plain", str(at))
    )
    value, place = plain[key], log.source(space, f"{{p}}[{key!r}]", f"{space}[{key!r}]")
    if type(value) is float:
        return numbers.begin(rec, value, place)
    if type(value) is tuple and all(type(x) is float for x in value):
        log.check(place, f"type({{v}}) is not tuple or len({{v}}) != {len(value)}", f"length of {place}")
        parts = [log.source(place, f"{{p}}[{i}]", f"{place}[{i}]") for i in range(len(value))]
        return tuple(map(functools.partial(numbers.begin, rec), value, parts))
    rec.reach(value, place)
    return content(rec, value)


def _is_known(rec: Recorder, owner: Any) -> bool:
    """Return whether an object of Runnel's holds nothing of the user's, so that its methods need not be observed."""
    return not users_bases(type(owner)) and boundary.watched(rec, owner)[0] is not None


def _constructed(rec: Recorder, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if any(map(runs_users, (*args, *kwargs.values()))):
        return returning(calls.made(rec, kind, args, kwargs))
    return returning(boundary.run(rec, kind, args, kwargs))


def _called_wrapper(rec: Recorder, wrapper: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the function of a compiled function inside another one."""
    source = rec.source_of(wrapper)
    if isinstance(wrapper, WrappedMethod):
        attributes.reach_parts(rec, wrapper, ("wrapper", "__self__"))
        return _called_wrapper(rec, wrapper.wrapper, (wrapper.__self__, *args), kwargs)
    inner = wrapper.function
    if source is not None:
        inner = rec.reach(inner, rec.log.source(source, "{p}.function", f"{source}", inner))
    return rec.prepared(inner, args, kwargs)


def _called_uncompiled(rec: Recorder, function: Any, args: Any, kwargs: Any) -> Any:
    rec.refuse(f"{function.__qualname__} is uncompiled", is_intended=True)


def _called_custom(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return returning(boundary.run(rec, given_functions.observed_custom(rec, function), args, kwargs))
