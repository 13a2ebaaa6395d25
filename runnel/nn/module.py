"""The Module: a tree of attributes that are Parameters, other Variables (buffers), Modules, or plain Python values.

``parameters()`` and similar methods read the attributes. Setting or deleting one advances the state version, so that
compiled programs check their guards again. A name that holds a Parameter or a buffer keeps this role.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from runnel.compile.compiled import compile
from runnel.core import html, kinds, namespaces
from runnel.core.arrays import short_repr
from runnel.core.devices import CPU
from runnel.core.dtypes import DType, Dtype, as_dtype, bfloat16, float16, float32, float64, from_numpy
from runnel.core.errors import ArgumentError, MissingNameError
from runnel.core.overrides import Override
from runnel.core.tracebacks import ending_at_user
from runnel.nn.compiled import compiled_module
from runnel.nn.hooks import Hooks
from runnel.nn.internals import Internals, kind_of
from runnel.nn.parameter import Buffer, Parameter, destination, named_in
from runnel.nn.saving import loaded, saved
from runnel.nn.showing import lines, located
from runnel.tensor import tracing
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.state import LoadReport, clear_gradients
from runnel.tensor.stateful import StatefulTree
from runnel.tensor.trace import ACTIVE
from runnel.tensor.variable import STATE_VERSION, Variable

_NUMBERS: Final = (ArrayMethods, np.ndarray, np.generic, bool, int, float)


@kinds.declare
class Module(Hooks, Internals, StatefulTree):
    """The base class of layers and models. A subclass sets attributes in ``__init__`` and defines ``forward``.

    Parameters, buffers and modules that are attributes are found by ``parameters()``, ``state_dict()``, ``to()`` and so
    on. Calling ``super().__init__()`` is optional.

    Attributes:
        training: whether the module is in training mode; see :meth:`train`.

    Example:
        >>> class Classifier(nn.Module):
        ...     def __init__(self, features, classes):
        ...         super().__init__()
        ...         self.hidden = nn.Linear(features, 32)
        ...         self.out = nn.Linear(32, classes)
        ...
        ...     def forward(self, x):
        ...         return self.out(rn.relu(self.hidden(x)))
        >>> Classifier(8, 3)(rn.ones((5, 8))).shape
        (5, 3)
    """

    training: bool = True
    _transient: frozenset[str] = frozenset()  # buffers that state_dict() leaves out
    _vacant: frozenset[tuple[str, str]] = frozenset()  # names that hold None, with what is to be set there

    # Attributes -------------------------------------------------------------------------------------------------------

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return a buffer or Parameter that was registered by name."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute.

        A name that holds a Parameter accepts Parameters, Modules and None. An array or number that is assigned to the
        name of a buffer becomes its value.
        """
        current = self.__dict__.get(name)
        if self._is_for_parameters(name, current):
            self._require_parameter(name, value)
        elif self._is_for_buffers(name, current) and not isinstance(value, (Variable, Module, NoneType)):
            value = self.updated_buffer(current, name, value)
        if value is None and (kind := kind_of(current)):
            self._keep_vacant(name, kind)
        super().__setattr__(name, value)
        if isinstance(value, Variable):
            named_in(value, name)
        elif isinstance(value, Module):
            _name_variables(value, name)

    def _is_for_parameters(self, name: str, current: Any) -> bool:
        return isinstance(current, Parameter) or (current is None and (name, "parameter") in self._vacant)

    def _is_for_buffers(self, name: str, current: Any) -> bool:
        return isinstance(current, Variable) or (current is None and (name, "buffer") in self._vacant)

    def is_reserved_for_state(self, name: str) -> bool:
        return not {(name, "parameter"), (name, "buffer")}.isdisjoint(self._vacant)

    def vacant(self, kind: str) -> list[str]:
        """Return the names that hold None until a "parameter", "buffer" or "module" is set there."""
        return [name for name, its in self._vacant if its == kind]

    def _require_parameter(self, name: str, value: Any) -> None:
        if value is not None and not isinstance(value, (Parameter, Module)):
            raise TypeError(
                f"[{type(self).__name__}] '{name}' must stay a Parameter; got {type(value).__name__}, which would not "
                f"be trained or saved. Write {name}.assign(value) to change its value, or {name} = Parameter(value)."
            )

    def updated_buffer(self, buffer: Variable | None, name: str, value: Any) -> Variable:
        """Return the buffer with ``value``; a new one if the shape or dtype differs."""
        if self._is_for_parameters(name, buffer):
            self._require_parameter(name, value)
        if not isinstance(value, _NUMBERS):
            raise TypeError(
                f"[{type(self).__name__}] '{name}' holds a buffer, whose value must be an array; got "
                f"{type(value).__name__}. Delete the buffer first (del {name})."
            )
        if isinstance(value, (bool, int, float)) and buffer is not None and buffer.shape == ():
            value = np.asarray(value, buffer.dtype.numpy)
        array = value.read().without_tape() if isinstance(value, ArrayMethods) else np.asarray(value)
        if buffer is None or array.shape != buffer.shape or dtype_of(array) is not buffer.dtype:
            return Variable(value if buffer is None else array, name=name)
        buffer.assign(array)
        return buffer

    def _keep_vacant(self, name: str, kind: str) -> None:
        """Remember the role of ``name`` while it holds None."""
        self._vacant = self._vacant | {(name, kind)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the attributes of a copy; TypeError for the attributes of a module of PyTorch."""
        if "_parameters" in state:
            raise TypeError(
                f"[{type(self).__name__}] PyTorch has pickled this module, and its contents are not Runnel's. Save its "
                "state_dict() in PyTorch, and load that into a module made here."
            )
        self.__dict__.update(state)

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        if any(name == vacant for vacant, _ in self._vacant):
            object.__setattr__(self, "_vacant", frozenset(each for each in self._vacant if each[0] != name))

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Add state that is not trained, such as running statistics, as attribute ``name``.

        A buffer that has this name already is replaced.

        Args:
            name: the name, without a dot.
            tensor: the first value, or None to set it later.
            persistent: include the buffer in ``state_dict()``.
        """
        self._require_free("register_buffer", name)
        current = self.__dict__.get(name)
        if (name, "buffer") in self._vacant or (isinstance(current, Variable) and not isinstance(current, Parameter)):
            delattr(self, name)
            self._transient = self._transient - {name}
        if name in self.__dict__:
            raise ValueError(f"[register_buffer] {type(self).__name__} already has an attribute '{name}'.")
        buffer = tensor if tensor is None or isinstance(tensor, Variable) else Variable(tensor, name=name)
        if isinstance(buffer, Parameter):
            raise TypeError("[register_buffer] tensor must not be a Parameter; set it as an attribute instead.")
        if not persistent:
            self._transient = self._transient | {name}
        if buffer is None:
            self._keep_vacant(name, "buffer")
        setattr(self, name, buffer)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Set attribute ``name`` to a Parameter, or to None if a Parameter is to be set there later."""
        self._require_free("register_parameter", name)
        if param is None:
            self._keep_vacant(name, "parameter")
        elif not isinstance(param, Parameter):
            raise TypeError(f"[register_parameter] '{name}' must be a Parameter; got {type(param).__name__}.")
        setattr(self, name, param)

    def register_module(self, name: str, module: Module | None) -> None:
        """Set attribute ``name`` to a module. The name may be any string without a dot."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"[register_module] '{name}' must be a Module; got {type(module).__name__}.")
        self._require_free("register_module", name)
        if module is None:
            self._keep_vacant(name, "module")
        setattr(self, name, module)

    add_module = register_module

    def _require_free(self, op: str, name: str) -> None:
        """Raise KeyError for a name that is ambiguous in ``state_dict()``, or that a method has."""
        require_text(op, "name", name)
        if "." in name or not name or (name not in self.__dict__ and hasattr(self, name)):
            raise KeyError(f"[{op}] name must not be empty, contain a dot or be in use; got '{name}'.")

    # Calling ----------------------------------------------------------------------------------------------------------

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result of a call. Subclasses define this."""
        raise NotImplementedError(f"[{type(self).__name__}] must define forward(), which computes its result.")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            active = ACTIVE
            if active.trace is None:
                level = active.level
                if level is None or not level.records_calls:
                    return self.forward(*args, **kwargs)
                return level.called(self, self.forward, args, kwargs)
            return tracing.method(self, "forward")(*args, **kwargs)
        except RecursionError:
            raise  # nothing can be called here
        except Override as override:
            if override.handles(self):
                return override.handle(self, args, kwargs)
            raise
        except Exception as error:
            located_error = located(self, args, kwargs, error)
            if located_error is error:
                raise
            raise located_error from located_error.__cause__

    def located(self, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Exception:
        return located(self, args, kwargs, error)

    def called_by(self, compiled: Any) -> Any:
        """Return this module once more, with calls that ``compiled`` makes: for ``rn.compile(module)``."""
        return compiled_module(self, compiled)

    def compile(self, *, fullgraph: bool = False, **options: Any) -> None:
        """Run the calls of this module as programs from now on; eagerly where a value is asked for, with a warning.

        PyTorch's other options have no effect. ArgumentError for ``fullgraph=True``.
        """
        if fullgraph:
            raise ArgumentError("[compile] fullgraph must be False; write model = runnel.compile(model) to be told.")
        self.forward = compile(self.forward).falling_back()  # type: ignore[method-assign]

    # The tree ---------------------------------------------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Iterate over the names and modules that are attributes of this one, each module once."""
        visited: set[int] = set()
        for name, value in list(self.__dict__.items()):
            if isinstance(value, Module) and id(value) not in visited:
                visited.add(id(value))
                yield name, value

    def children(self) -> Iterator[Module]:
        """Iterate over the modules that are attributes of this one, each once."""
        return (module for _, module in self.named_children())

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Iterate over this module and all below it with their dotted paths, parents first.

        Args:
            memo: modules to leave out; the modules that are yielded are added.
            prefix: the path of this module.
            remove_duplicate: yield each module once, and not under each of its paths.
        """
        visited = {id(module) for module in memo or ()}
        stack: list[tuple[str, Module, tuple[int, ...]]] = [(prefix, self, ())]
        while stack:
            path, module, above = stack.pop()
            if id(module) in (visited if remove_duplicate else above):
                continue
            visited.add(id(module))
            if memo is not None:
                memo.add(module)
            yield path, module
            inside = () if remove_duplicate else (*above, id(module))
            children = module.named_children() if remove_duplicate else module._direct_children()
            below = [(f"{path}.{name}" if path else name, child, inside) for name, child in children]
            stack.extend(reversed(below))

    def _direct_children(self) -> Iterator[tuple[str, Module]]:
        return ((name, value) for name, value in list(self.__dict__.items()) if isinstance(value, Module))

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Iterate over this module and all below it, parents first; each once, or as often as it is an attribute."""
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

    def get_submodule(self, target: str) -> Module:
        """Return the module at a dotted path; "" is this one."""
        module = self if target == "" else self._at("get_submodule", "module", target)
        if not isinstance(module, Module):
            raise self._nothing_at("get_submodule", "module", target)
        return module

    def get_parameter(self, target: str) -> Parameter:
        """Return the Parameter at a dotted path."""
        value = self._at("get_parameter", "Parameter", target)
        if not isinstance(value, Parameter):
            raise self._nothing_at("get_parameter", "Parameter", target)
        return value

    def get_buffer(self, target: str) -> Variable:
        """Return the buffer at a dotted path."""
        value = self._at("get_buffer", "buffer", target)
        if not isinstance(value, Variable) or isinstance(value, Parameter):
            raise self._nothing_at("get_buffer", "buffer", target)
        return value

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put ``module`` at a dotted path; with ``strict``, only if a module is there now."""
        if not isinstance(module, Module):
            raise TypeError(f"[set_submodule] module must be a Module; got {type(module).__name__}.")
        require_text("set_submodule", "target", target)
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if strict and not isinstance(owner.__dict__.get(name), Module):
            raise self._nothing_at("set_submodule", "module", target)
        owner.register_module(name, module)

    def _at(self, op: str, what: str, target: str) -> Any:
        require_text(op, "target", target)
        value: Any = self
        for name in target.split("."):
            value = getattr(value, "__dict__", {}).get(name)
            if value is None:
                raise self._nothing_at(op, what, target)
        return value

    def _nothing_at(self, op: str, what: str, target: str) -> MissingNameError:
        return MissingNameError(f"[{op}] {type(self).__name__} has no {what} '{target}'.")

    def _named_variables(
        self, prefix: str = "", once: bool = True, recurse: bool = True
    ) -> Iterator[tuple[str, Variable]]:
        visited: set[int] = set()
        for path, module in self.named_modules(prefix=prefix, remove_duplicate=once) if recurse else [(prefix, self)]:
            own = [(name, value) for name, value in list(module.__dict__.items()) if isinstance(value, Variable)]
            for name, value in sorted(own, key=lambda item: not isinstance(item[1], Parameter)):  # as in PyTorch
                if not (once and id(value) in visited):
                    visited.add(id(value))
                    yield (f"{path}.{name}" if path else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Iterate over all Parameters with their dotted paths.

        Args:
            prefix: the path of this module.
            recurse: include the modules below this one.
            remove_duplicate: yield each Parameter once, and not under each of its paths.
        """
        variables = self._named_variables(prefix, remove_duplicate, recurse)
        return ((path, v) for path, v in variables if isinstance(v, Parameter))

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterate over all Parameters of this module and the modules below it, each once, as optimizers expect."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Variable]]:
        """Iterate over all buffers (Variables that are not Parameters) like :meth:`named_parameters`."""
        variables = self._named_variables(prefix, remove_duplicate, recurse)
        return ((path, v) for path, v in variables if not isinstance(v, Parameter))

    def buffers(self, recurse: bool = True) -> Iterator[Variable]:
        """Iterate over all buffers (Variables that are not Parameters), each once."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def num_parameters(self, trainable_only: bool = False) -> int:
        """Return how many numbers the Parameters hold."""
        return sum(p.size for p in self.parameters() if p.requires_grad or not trainable_only)

    # Changing all of it -----------------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Set training mode for this module and all below it, in which for example dropout is active.

        A class below may override ``train`` to keep a part in evaluation mode: then it is called.
        """
        waiting: list[Module] = [self]
        while waiting:  # no recursion: modules may be nested deeply
            module = waiting.pop()
            if module is not self and type(module).train is not Module.train:
                module.train(mode)
                continue
            module.training = mode
            waiting += module.children()
        return self

    def eval(self) -> Self:
        """Set evaluation mode for this module and all below it."""
        return self.train(False)

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call ``fn`` on every module of the tree: on the children in order, and then on the module itself."""
        if not callable(fn):
            raise ArgumentError(f"[apply] fn must be a function of a Module; got {short_repr(fn)}.")
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    @ending_at_user
    def to(
        self,
        *where: Any,
        device: Any = None,
        dtype: Dtype = None,
        non_blocking: bool = False,
        memory_format: Any = None,
    ) -> Self:
        """Move all Parameters and buffers, with their gradients, to a device, and convert floats to a float dtype.

        Make optimizers afterwards, since their state is not converted.

        Args:
            where: a device, a dtype, both, or an array that has them.
            device: a device.
            dtype: a float dtype.
            non_blocking: has no effect.
            memory_format: has no effect.

        Returns:
            The module itself.

        Raises:
            DeviceError: the device does not exist, or this is a compiled function.
        """
        place, kind = destination(where, device, dtype)
        for variable in (*self.parameters(), *self.buffers()):
            to_place = variable.aval.device if place is None else place
            variable.move_to(to_place, kind if variable.dtype.is_float else None)
        return self

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Do the same as :meth:`to`, keeping the values. Without ``recurse``, move only this module's own state."""
        if recurse:
            return self.to(device)
        for variable in (*self.parameters(False), *self.buffers(False)):
            variable.move_to(device)
        return self

    @ending_at_user
    def cpu(self) -> Self:
        """Move everything to the CPU."""
        return self.to(CPU)

    @ending_at_user
    def cuda(self, device: Any = None) -> Self:
        """Raise DeviceError, since GPUs are not supported."""
        return self.to("cuda")

    def type(self, dst_type: Any) -> Self:
        """Convert all Parameters and buffers to another dtype."""
        kind = as_dtype(dst_type)
        for variable in (*self.parameters(), *self.buffers()):
            variable.move_to(variable.aval.device, kind)
        return self

    def half(self) -> Self:
        """Convert floating-point Parameters and buffers to float16."""
        return self.to(float16)

    def bfloat16(self) -> Self:
        """Convert floating-point Parameters and buffers to bfloat16."""
        return self.to(bfloat16)

    def float(self) -> Self:
        """Convert floating-point Parameters and buffers to float32."""
        return self.to(float32)

    def double(self) -> Self:
        """Convert floating-point Parameters and buffers to float64."""
        return self.to(float64)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether ``backward()`` computes gradients for the Parameters; ``False`` freezes the module."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        STATE_VERSION.now += 1
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all Parameters, or fill them with zeros."""
        clear_gradients(self.parameters(), set_to_none)

    # State ------------------------------------------------------------------------------------------------------------

    def _persistent(self, recurse: bool = True) -> dict[str, Variable]:
        """Return the Variables of ``state_dict()``. A shared Variable is included under each of its paths."""
        modules = self.named_modules(remove_duplicate=False) if recurse else [("", self)]
        left_out = {f"{path}.{name}" if path else name for path, module in modules for name in module._transient}
        return {
            path: v
            for path, v in self._named_variables(once=False, recurse=recurse)
            if path not in left_out and not (isinstance(v, Buffer) and not v.persistent)
        }

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """Return the values of all Parameters and persistent buffers by dotted path, as views without tapes.

        They change with the module, and the module with them, as in PyTorch. ``copy.deepcopy`` of the dict keeps the
        present values. In :func:`runnel.snapshot`, which reads several modules and optimizers at one point in time,
        the dict holds values that stay.

        Args:
            destination: a dict to put the entries into; by default a new one.
            prefix: a string to put before each path.
            keep_vars: return the Variables themselves instead of their values.
        """
        return saved(self, OrderedDict() if destination is None else destination, prefix, keep_vars)

    @ending_at_user
    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> LoadReport:
        """Assign values by dotted path. Everything is checked first: after an error nothing has changed.

        Args:
            state_dict: tensors or NumPy arrays by path.
            strict: raise an error for missing or unexpected paths.
            assign: also change the dtype of floating-point Variables.

        Returns:
            The ``missing_keys`` and ``unexpected_keys``.

        Raises:
            StateError, ShapeError, DTypeError: the values do not fit.
        """
        return loaded(self, state_dict, strict, assign)

    def get_extra_state(self) -> Any:
        """Return the entry "_extra_state" of ``state_dict()`` for this module, if a subclass defines this method."""
        raise NotImplementedError(f"[get_extra_state] {type(self).__name__} defines no extra state.")

    def set_extra_state(self, state: Any) -> None:
        """Restore what ``get_extra_state`` returned, if a subclass defines this method."""
        raise NotImplementedError(f"[set_extra_state] {type(self).__name__} defines no extra state.")

    # As text ----------------------------------------------------------------------------------------------------------

    def summary(self, *inputs: Any, depth: int | None = None, dtype: Dtype = "float32") -> Any:
        """Return a table of the modules with their outputs, Parameters and operations; see :func:`runnel.nn.summaries`.

        Args:
            inputs: arrays, or shapes of arrays of ``dtype``.
            depth: how many levels of modules to show.
            dtype: the dtype of the inputs.
        """
        return namespaces.imported("runnel.nn.summaries:summary")(self, *inputs, depth=depth, dtype=dtype)

    def extra_repr(self) -> str:
        """Return what ``repr`` shows between the parentheses of this module."""
        return ""

    def __repr__(self) -> str:
        return "\n".join(lines(self, Module))

    def _repr_html_(self) -> str:
        return html.pre("\n".join(itertools.islice(lines(self, Module), _SHOWN)))


def require_text(op: str, what: str, value: Any) -> None:
    """Raise ArgumentError unless ``value``, a name or a path, is a string."""
    if not isinstance(value, str):
        raise ArgumentError(f"[{op}] {what} must be a string; got {short_repr(value)}.")


def dtype_of(array: Any) -> DType:
    return array.dtype if isinstance(array, ArrayMethods) else from_numpy(array.dtype)


_SHOWN = 500  # lines in a notebook
_NAMED = 32  # levels; Variables further down keep shorter names, so that no model pays for the square of its depth


def _name_variables(module: Module, path: str) -> None:
    """Set the names of the Variables below ``module``: their first paths from the module that holds it as ``path``."""
    visited: set[int] = set()
    stack = [(module, path, 1)]
    while stack:
        now, prefix, level = stack.pop()
        if id(now) in visited or level > _NAMED:
            continue
        visited.add(id(now))
        for name, value in now.__dict__.items():
            if isinstance(value, Variable) and id(value) not in visited:
                visited.add(id(value))
                value.name = f"{prefix}.{name}"
        stack += [(child, f"{prefix}.{name}", level + 1) for name, child in reversed(list(now.named_children()))]
