"""The Module: a tree of attributes that are Parameters, other Variables (buffers), Modules, or plain Python values.

``parameters()`` and its kin look at the attributes. Setting or deleting one advances the state version, so that
compiled programs look at their guards again. A name that holds a Parameter or a buffer goes on doing so.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from runnel.core import html, kinds, namespaces
from runnel.core.devices import CPU
from runnel.core.dtypes import DType, as_dtype, bfloat16, float16, float32, float64, from_numpy
from runnel.core.errors import ArgumentError, MissingNameError
from runnel.core.showing import short_repr
from runnel.core.tracebacks import ending_at_user
from runnel.nn.conversion import destination
from runnel.nn.hooks import Hooks
from runnel.nn.parameter import Buffer, Parameter, named_in
from runnel.nn.saving import loaded, saved
from runnel.nn.whereabouts import located
from runnel.tensor import tracing
from runnel.tensor.active import ACTIVE
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.state import LoadReport, clear_gradients
from runnel.tensor.stateful import StatefulTree
from runnel.tensor.variable import STATE_VERSION, Variable

_NUMBERS: Final = (ArrayMethods, np.ndarray, np.generic, bool, int, float)


@kinds.declare
class Module(Hooks, StatefulTree):
    """A layer, a model, or a part of one. Subclasses set attributes in ``__init__`` and define ``forward``."""

    training: bool = True
    _transient: frozenset[str] = frozenset()  # buffers that state_dict() leaves out
    _vacant_parameters: frozenset[str] = frozenset()  # names that hold None until a Parameter is set
    _vacant_buffers: frozenset[str] = frozenset()

    # Attributes -------------------------------------------------------------------------------------------------------

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Buffers and Parameters that were registered by name."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute. A name that holds a Parameter takes Parameters, Modules and None; arrays and numbers that
        are assigned to the name of a buffer become its value."""
        current = self.__dict__.get(name)
        if self._is_for_parameters(name, current):
            self._require_parameter(name, value)
        elif self._is_for_buffers(name, current) and not isinstance(value, (Variable, Module, NoneType)):
            value = self.updated_buffer(current, name, value)
        if value is None and isinstance(current, Variable):
            self._keep_vacant(name, current)
        super().__setattr__(name, value)
        if isinstance(value, Variable):
            named_in(value, name)
        elif isinstance(value, Module):
            _name_variables(value, name)

    def _is_for_parameters(self, name: str, current: Any) -> bool:
        return isinstance(current, Parameter) or (current is None and name in self._vacant_parameters)

    def _is_for_buffers(self, name: str, current: Any) -> bool:
        return isinstance(current, Variable) or (current is None and name in self._vacant_buffers)

    def is_reserved_for_state(self, name: str) -> bool:
        return name in self._vacant_parameters or name in self._vacant_buffers

    def _require_parameter(self, name: str, value: Any) -> None:
        if value is not None and not isinstance(value, (Parameter, Module)):
            raise TypeError(
                f"[{type(self).__name__}] '{name}' holds a Parameter, and a {type(value).__name__} is none: it would "
                f"be lost for training and saving. Write {name}.assign(value) to change its value, or "
                f"{name} = Parameter(value)."
            )

    def updated_buffer(self, buffer: Variable | None, name: str, value: Any) -> Variable:
        """The buffer with ``value``; a new one where it is of another shape or dtype. Parameters are none."""
        if self._is_for_parameters(name, buffer):
            self._require_parameter(name, value)
        if not isinstance(value, _NUMBERS):
            raise TypeError(
                f"[{type(self).__name__}] '{name}' holds a buffer, and a {type(value).__name__} cannot become its "
                f"value; assign an array, or delete it first (del {name})."
            )
        if isinstance(value, (bool, int, float)) and buffer is not None and buffer.shape == ():
            value = np.asarray(value, buffer.dtype.numpy)
        array = value.read().detach() if isinstance(value, ArrayMethods) else np.asarray(value)
        if buffer is None or array.shape != buffer.shape or dtype_of(array) is not buffer.dtype:
            return Variable(value if buffer is None else array, name=name)
        buffer.assign(array)
        return buffer

    def _keep_vacant(self, name: str, current: Variable | None, is_parameter: bool = False) -> None:
        """Remember what ``name`` is for while it holds None."""
        if is_parameter or isinstance(current, Parameter):
            self._vacant_parameters = self._vacant_parameters | {name}
        else:
            self._vacant_buffers = self._vacant_buffers | {name}

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        for names in ("_vacant_parameters", "_vacant_buffers"):
            if name in getattr(self, names):
                object.__setattr__(self, names, getattr(self, names) - {name})

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """State that is not trained, such as running statistics: a Variable as attribute ``name`` (None: none yet).

        With ``persistent=False``, ``state_dict()`` leaves it out.
        """
        self._require_free("register_buffer", name)
        if name in self.__dict__:
            raise ValueError(f"[register_buffer] {type(self).__name__} has an attribute '{name}' already.")
        buffer = tensor if tensor is None or isinstance(tensor, Variable) else Variable(tensor, name=name)
        if isinstance(buffer, Parameter):
            raise TypeError("[register_buffer] a Parameter is no buffer; set it as an attribute.")
        if not persistent:
            self._transient = self._transient | {name}
        if buffer is None:
            self._keep_vacant(name, None)
        setattr(self, name, buffer)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Set attribute ``name``; with None, a Parameter may be set there later, and nothing else."""
        self._require_free("register_parameter", name)
        if param is None:
            self._keep_vacant(name, None, is_parameter=True)
        elif not isinstance(param, Parameter):
            raise TypeError(f"[register_parameter] '{name}' is to be a Parameter; received {type(param).__name__}.")
        setattr(self, name, param)

    def register_module(self, name: str, module: Module | None) -> None:
        """Set attribute ``name`` to a module; names need not be those of Python, but have no dot."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"[register_module] '{name}' is to be a Module; received {type(module).__name__}.")
        self._require_free("register_module", name)
        setattr(self, name, module)

    add_module = register_module

    def _require_free(self, op: str, name: str) -> None:
        """Refuse what would be no name of its own in ``state_dict()``, and names of methods."""
        require_text(op, "name", name)
        if "." in name or not name or (name not in self.__dict__ and hasattr(self, name)):
            raise KeyError(f"[{op}] '{name}' cannot be a name: it is empty, has a dot or is taken.")

    # Calling ----------------------------------------------------------------------------------------------------------

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes. Subclasses define it."""
        raise NotImplementedError(f"[{type(self).__name__}] defines no forward(); define what it computes there.")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if ACTIVE.trace is None:
                return self.forward(*args, **kwargs)
            return tracing.method(self, "forward")(*args, **kwargs)
        except RecursionError:
            raise  # nothing can be called here
        except Exception as error:
            located_error = located(self, args, kwargs, error)
            if located_error is error:
                raise
            raise located_error from located_error.__cause__

    def located(self, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Exception:
        return located(self, args, kwargs, error)

    # The tree ---------------------------------------------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules that are attributes of this one, each once."""
        visited: set[int] = set()
        for name, value in list(self.__dict__.items()):
            if isinstance(value, Module) and id(value) not in visited:
                visited.add(id(value))
                yield name, value

    def children(self) -> Iterator[Module]:
        """The modules that are attributes of this one, without their names."""
        return (module for _, module in self.named_children())

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it with their dotted paths, parents first; each once, or under each of its paths.
        Those in ``memo`` are left out, and those that are given are put there."""
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
        """This module and all below it, parents first; each once, or as often as it is held."""
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path; "" is this one."""
        module = self if target == "" else self._at("get_submodule", "module", target)
        if not isinstance(module, Module):
            raise self._nothing_at("get_submodule", "module", target)
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The Parameter at a dotted path."""
        value = self._at("get_parameter", "Parameter", target)
        if not isinstance(value, Parameter):
            raise self._nothing_at("get_parameter", "Parameter", target)
        return value

    def get_buffer(self, target: str) -> Variable:
        """The buffer at a dotted path."""
        value = self._at("get_buffer", "buffer", target)
        if not isinstance(value, Variable) or isinstance(value, Parameter):
            raise self._nothing_at("get_buffer", "buffer", target)
        return value

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put ``module`` at a dotted path; with ``strict``, where a module is now."""
        if not isinstance(module, Module):
            raise TypeError(f"[set_submodule] '{target}' is to be a Module; received {type(module).__name__}.")
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
        for path, module in self.named_modules(prefix=prefix) if recurse else [(prefix, self)]:
            for name, value in list(module.__dict__.items()):
                if isinstance(value, Variable) and not (once and id(value) in visited):
                    visited.add(id(value))
                    yield (f"{path}.{name}" if path else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All Parameters with their dotted paths; each once, or under each of its paths. Without ``recurse``, those of
        this module alone."""
        variables = self._named_variables(prefix, remove_duplicate, recurse)
        return ((path, v) for path, v in variables if isinstance(v, Parameter))

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All Parameters of this module and those below it, each once: what optimizers take."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Variable]]:
        """All Variables that are no Parameters, with their dotted paths; as :meth:`named_parameters` does."""
        variables = self._named_variables(prefix, remove_duplicate, recurse)
        return ((path, v) for path, v in variables if not isinstance(v, Parameter))

    def buffers(self, recurse: bool = True) -> Iterator[Variable]:
        """All Variables that are no Parameters, each once."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def num_parameters(self, trainable_only: bool = False) -> int:
        """How many numbers the Parameters hold."""
        return sum(p.size for p in self.parameters() if p.requires_grad or not trainable_only)

    # Changing all of it -----------------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Training mode for this module and all below: dropout drops."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Evaluation mode for this module and all below."""
        return self.train(False)

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call ``fn`` on every module of the tree: on the children, in their order, and then on the module itself."""
        if not callable(fn):
            raise ArgumentError(f"[apply] fn is a function of a Module; received {short_repr(fn)}.")
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    @ending_at_user
    def to(
        self,
        *where: Any,
        device: Any = None,
        dtype: Any = None,
        non_blocking: bool = False,
        memory_format: Any = None,
    ) -> Self:
        """Put every Parameter and buffer, with its gradient, on another device, or those of floats into another float
        dtype; returns the module. ``where`` is a device, a dtype, both, or an array that has them; ``non_blocking`` and
        ``memory_format`` change nothing. Optimizers are made afterwards, or told by ``load_state_dict``: their state
        stays as it is. DeviceError for a device that does not exist, and in a compiled function."""
        place, kind = destination(where, device, dtype)
        for variable in (*self.parameters(), *self.buffers()):
            to_place = variable.aval.device if place is None else place
            variable.move_to(to_place, kind if variable.dtype.is_float else None)
        return self

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """The same as :meth:`to`: values are kept. Without ``recurse``, only what this module holds itself."""
        if recurse:
            return self.to(device)
        for variable in (*self.parameters(False), *self.buffers(False)):
            variable.move_to(device)
        return self

    @ending_at_user
    def cpu(self) -> Self:
        """All on the CPU."""
        return self.to(CPU)

    @ending_at_user
    def cuda(self, device: Any = None) -> Self:
        """DeviceError: there are no GPUs here."""
        return self.to("cuda")

    def type(self, dst_type: Any) -> Self:
        """Every Parameter and buffer in another dtype."""
        kind = as_dtype(dst_type)
        for variable in (*self.parameters(), *self.buffers()):
            variable.move_to(variable.aval.device, kind)
        return self

    def half(self) -> Self:
        """Parameters and buffers of floats as float16."""
        return self.to(float16)

    def bfloat16(self) -> Self:
        """Parameters and buffers of floats as bfloat16."""
        return self.to(bfloat16)

    def float(self) -> Self:
        """Parameters and buffers of floats as float32."""
        return self.to(float32)

    def double(self) -> Self:
        """Parameters and buffers of floats as float64."""
        return self.to(float64)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Whether ``backward()`` computes gradients for the Parameters."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        STATE_VERSION.now += 1
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all Parameters (or fill them with zeros)."""
        clear_gradients(self.parameters(), set_to_none)

    # State ------------------------------------------------------------------------------------------------------------

    def _persistent(self) -> dict[str, Variable]:
        """What state_dict() holds; a Variable shared between modules stands under each of its paths."""
        left_out = {
            f"{path}.{name}" if path else name for path, module in self.named_modules() for name in module._transient
        }
        return {
            path: v
            for path, v in self._named_variables(once=False)
            if path not in left_out and not (isinstance(v, Buffer) and not v.persistent)
        }

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """The values of all Parameters and persistent buffers, by dotted path, as of one point in time; later training
        leaves them. For several modules and optimizers at one point in time there is :func:`runnel.snapshot`.

        Args:
            destination: a dict that the entries are put into; by default a new one.
            prefix: stands before each path.
            keep_vars: the Variables themselves, and not their values.
        """
        return saved(self, {} if destination is None else destination, prefix, keep_vars)

    @ending_at_user
    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> LoadReport:
        """Take over values by dotted path. Everything is checked first: on an error nothing has changed.

        Args:
            state_dict: tensors or NumPy arrays by path.
            strict: whether a missing or unexpected path is an error.
            assign: take over dtypes, too, of floats.
        """
        return loaded(self, state_dict, strict, assign)

    def get_extra_state(self) -> Any:
        """What ``state_dict()`` is to hold for this module as "_extra_state", where a subclass defines it."""
        raise NotImplementedError(f"[get_extra_state] {type(self).__name__} has no state but Variables.")

    def set_extra_state(self, state: Any) -> None:
        """Take over what ``get_extra_state`` gave, where a subclass defines it."""
        raise NotImplementedError(f"[set_extra_state] {type(self).__name__} has no state but Variables.")

    # As text ----------------------------------------------------------------------------------------------------------

    def summary(self, *inputs: Any, depth: int | None = None, dtype: Any = "float32") -> Any:
        """A table of the modules with their outputs for ``inputs`` (shapes or arrays), Parameters and operations: see
        :func:`runnel.nn.summary`."""
        return namespaces.imported("runnel.nn.rare.summary:summary")(self, *inputs, depth=depth, dtype=dtype)

    def extra_repr(self) -> str:
        """What ``repr`` shows of this module itself."""
        return ""

    def __repr__(self) -> str:
        return "\n".join(_lines(self))

    def _repr_html_(self) -> str:
        return html.pre("\n".join(itertools.islice(_lines(self), _SHOWN)))


def require_text(op: str, what: str, value: Any) -> None:
    """ArgumentError unless ``value``, a name or a path, is a string."""
    if not isinstance(value, str):
        raise ArgumentError(f"[{op}] {what} is a string; received {short_repr(value)}.")


def dtype_of(array: Any) -> DType:
    return array.dtype if isinstance(array, ArrayMethods) else from_numpy(array.dtype)


_SHOWN = 500  # lines in a notebook
_NAMED = 32  # levels; Variables further down keep shorter names, so that no model pays for the square of its depth


def _name_variables(module: Module, path: str) -> None:
    """Name the Variables below ``module`` by their first paths from the module above it, which holds it as ``path``."""
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


def _lines(module: Module) -> Iterator[str]:
    """``repr``, line by line."""
    counts = _parameter_counts(module)
    above: set[int] = set()
    stack = [("", 0, module, False)]
    while stack:
        label, level, now, is_end = stack.pop()
        indent = "  " * level
        if is_end:
            above.discard(id(now))
            yield f"{indent})"
            continue
        if level and type(now).__repr__ is not Module.__repr__:  # the user's own
            first, *rest = repr(now).splitlines() or [""]
            yield f"{indent}{label}{first}"
            yield from (f"{indent}{line}" for line in rest)
            continue
        count = counts[id(now)]
        note = f"  # {count:,} parameters" if count else ""
        head = f"{indent}{label}{type(now).__name__}({now.extra_repr()}"
        children = list(now.named_children())
        if id(now) in above or not children:
            yield f"{head}{'...' if children else ''}){note}"  # three dots: it holds itself
            continue
        yield f"{head}{note}"
        above.add(id(now))
        stack.append(("", level, now, True))
        stack += [(f"({name}): ", level + 1, child, False) for name, child in reversed(children)]


def _parameter_counts(module: Module) -> dict[int, int]:
    """How many numbers the Parameters of each module hold, by the module's id."""
    every = list(module.modules())
    if sum(len(list(m.children())) for m in every) != len(every) - 1:  # something is shared
        return {id(m): Module.num_parameters(m) for m in every}
    below: dict[int, dict[int, int]] = {}
    counts: dict[int, int] = {}
    for m in reversed(every):  # children before parents
        sizes = {id(p): p.size for p in m.__dict__.values() if isinstance(p, Parameter)}
        for child in m.children():
            more = below.pop(id(child))
            sizes, more = (more, sizes) if len(more) > len(sizes) else (sizes, more)
            sizes.update(more)
        below[id(m)] = sizes
        counts[id(m)] = sum(sizes.values())
    return counts
