"""The Module: a tree of attributes that are Parameters, other Variables (buffers), Modules, or plain Python values.

``parameters()`` and its kin look at the attributes. Setting or deleting one ticks the state clock, so that compiled
programs look at their guards again. A name that holds a Parameter or a buffer goes on doing so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import NoneType
from typing import Any, Final, Self

import numpy as np

from runnel.core import kinds
from runnel.core.devices import CPU, as_device
from runnel.core.dtypes import DType, from_numpy
from runnel.core.errors import RunnelError
from runnel.core.surface import offered
from runnel.nn.parameter import Parameter, named_in
from runnel.nn.whereabouts import located
from runnel.tensor import tracing
from runnel.tensor.active import ACTIVE
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.snapshot import snapshot
from runnel.tensor.state import LoadReport, clear_gradients, load_variables
from runnel.tensor.stateful import StatefulTree
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import CLOCK, Variable

_NUMBERS: Final = (ArrayMethods, np.ndarray, np.generic, bool, int, float)


@offered("nn", alone="the base class")
@kinds.declare
class Module(StatefulTree):
    """A layer, a model, or a part of one. Subclasses set attributes in ``__init__`` and define ``forward``."""

    of_the_tree = frozenset(
        {
            "parameters", "named_parameters", "buffers", "named_buffers", "modules", "named_modules", "children",
            "named_children", "zero_grad", "num_parameters", "state_dict", "get_submodule", "_named_variables",
            "_persistent",
        }
    )  # fmt: skip
    that_change = frozenset(
        {
            "train", "eval", "apply", "append", "extend", "insert", "update", "_renumber", "__setitem__", "__delitem__",
            "register_buffer", "register_parameter", "requires_grad_",
        }
    )  # fmt: skip
    training: bool = True
    _transient: frozenset[str] = frozenset()  # buffers that state_dict() leaves out
    _vacant_parameters: frozenset[str] = frozenset()  # names that hold None until a Parameter is set
    _vacant_buffers: frozenset[str] = frozenset()

    # Attributes -------------------------------------------------------------------------------------------------------

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

    def is_kept_for_state(self, name: str) -> bool:
        return name in self._vacant_parameters or name in self._vacant_buffers

    def _require_parameter(self, name: str, value: Any) -> None:
        if value is not None and not isinstance(value, (Parameter, Module)):
            raise TypeError(
                f"[{type(self).__name__}] '{name}' holds a Parameter, and a {type(value).__name__} is none: it would "
                f"be lost for training and saving. Write {name}.assign(value) to change its value, or "
                f"{name} = Parameter(value)."
            )

    def updated_buffer(self, buffer: Variable | None, name: str, value: Any) -> Variable:
        """The buffer with ``value``; a new one where it is of another shape or dtype."""
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

    def register_buffer(self, name: str, value: Any, persistent: bool = True) -> None:
        """State that is not trained, such as running statistics: a Variable as attribute ``name`` (None: none yet).

        With ``persistent=False``, ``state_dict()`` leaves it out.
        """
        if name in self.__dict__:
            raise ValueError(f"[register_buffer] {type(self).__name__} has an attribute '{name}' already.")
        buffer = value if value is None or isinstance(value, Variable) else Variable(value, name=name)
        if isinstance(buffer, Parameter):
            raise TypeError("[register_buffer] a Parameter is no buffer; set it as an attribute.")
        if not persistent:
            self._transient = self._transient | {name}
        if buffer is None:
            self._keep_vacant(name, None)
        setattr(self, name, buffer)

    def register_parameter(self, name: str, value: Parameter | None) -> None:
        """Set attribute ``name``; with None, a Parameter may be set there later, and nothing else."""
        if value is None:
            self._keep_vacant(name, None, is_parameter=True)
        elif not isinstance(value, Parameter):
            raise TypeError(f"[register_parameter] '{name}' is to be a Parameter; received {type(value).__name__}.")
        setattr(self, name, value)

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
            told = located(self, args, kwargs, error)
            if told is error:
                raise
            raise told from told.__cause__

    def located(self, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Exception:
        return located(self, args, kwargs, error)

    # The tree ---------------------------------------------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules that are attributes of this one, each once."""
        seen: set[int] = set()
        for name, value in list(self.__dict__.items()):
            if isinstance(value, Module) and id(value) not in seen:
                seen.add(id(value))
                yield name, value

    def children(self) -> Iterator[Module]:
        """The modules that are attributes of this one, without their names."""
        return (module for _, module in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and all below it with their dotted paths, each once, parents first."""
        seen: set[int] = set()
        stack: list[tuple[str, Module]] = [(prefix, self)]
        while stack:
            path, module = stack.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            yield path, module
            below = [(f"{path}.{name}" if path else name, child) for name, child in module.named_children()]
            stack.extend(reversed(below))

    def modules(self) -> Iterator[Module]:
        """This module and all below it, each once, parents first."""
        return (module for _, module in self.named_modules())

    def get_submodule(self, path: str) -> Module:
        """The module at a dotted path."""
        found = dict(self.named_modules()).get(path)
        if found is None:
            raise RunnelError(f"[get_submodule] {type(self).__name__} has no module '{path}'.")
        return found

    def _named_variables(self, prefix: str = "", once: bool = True) -> Iterator[tuple[str, Variable]]:
        seen: set[int] = set()
        for path, module in self.named_modules(prefix):
            for name, value in list(module.__dict__.items()):
                if isinstance(value, Variable) and not (once and id(value) in seen):
                    seen.add(id(value))
                    yield (f"{path}.{name}" if path else name), value

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """All Parameters with their dotted paths, each once."""
        return ((path, v) for path, v in self._named_variables(prefix) if isinstance(v, Parameter))

    def parameters(self) -> Iterator[Parameter]:
        """All Parameters of this module and those below it, each once: what optimizers take."""
        return (parameter for _, parameter in self.named_parameters())

    def named_buffers(self, prefix: str = "") -> Iterator[tuple[str, Variable]]:
        """All Variables that are no Parameters, with their dotted paths, each once."""
        return ((path, v) for path, v in self._named_variables(prefix) if not isinstance(v, Parameter))

    def buffers(self) -> Iterator[Variable]:
        """All Variables that are no Parameters, each once."""
        return (buffer for _, buffer in self.named_buffers())

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

    def apply(self, function: Callable[[Module], Any]) -> Self:
        """Call ``function`` on every module of the tree, children before parents."""
        for module in reversed(list(self.modules())):
            function(module)
        return self

    def to(self, device: Any) -> Self:
        """Put every Parameter and buffer, with its gradient, on another device; returns the module. Optimizers are
        made afterwards, or told by ``load_state_dict``: their state stays where it is. DeviceError for a device that
        does not exist, and in a compiled function."""
        place = as_device(device)
        for variable in (*self.parameters(), *self.buffers()):
            variable.move_to(place)
        return self

    def cpu(self) -> Self:
        """All on the CPU."""
        return self.to(CPU)

    def requires_grad_(self, flag: bool = True) -> Self:
        """Whether ``backward()`` computes gradients for the Parameters."""
        for parameter in self.parameters():
            parameter.requires_grad = flag
        CLOCK.now += 1
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
        return {path: v for path, v in self._named_variables(once=False) if path not in left_out}

    def state_dict(self) -> dict[str, Tensor]:
        """The values of all Parameters and persistent buffers, by dotted path, as of one point in time; later training
        leaves them. For several modules and optimizers at one point in time there is :func:`runnel.snapshot`."""
        return snapshot(lambda: {path: variable.value for path, variable in self._persistent().items()})

    def load_state_dict(self, state: Any, strict: bool = True) -> LoadReport:
        """Take over values by dotted path. Everything is checked first: on an error nothing has changed.

        Args:
            state: tensors or NumPy arrays by path.
            strict: whether a missing or unexpected path is an error.
        """
        return load_variables(type(self).__name__, self._persistent(), state, strict)

    # As text ----------------------------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What ``repr`` shows of this module itself."""
        return ""

    def __repr__(self) -> str:
        return "\n".join(_lines(self))


def dtype_of(array: Any) -> DType:
    return array.dtype if isinstance(array, ArrayMethods) else from_numpy(array.dtype)


_NAMED = 32  # levels; Variables further down keep shorter names, so that no model pays for the square of its depth


def _name_variables(module: Module, path: str) -> None:
    """Name the Variables below ``module`` by their first paths from the module above it, which holds it as ``path``."""
    seen: set[int] = set()
    stack = [(module, path, 1)]
    while stack:
        now, prefix, level = stack.pop()
        if id(now) in seen or level > _NAMED:
            continue
        seen.add(id(now))
        for name, value in now.__dict__.items():
            if isinstance(value, Variable) and id(value) not in seen:
                seen.add(id(value))
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
        return {id(m): m.num_parameters() for m in every}
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
