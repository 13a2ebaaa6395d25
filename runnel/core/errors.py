"""Every error Runnel raises on bad input; these docstrings are the error manual.

RunnelError
├── ArgumentError (TypeError)        an argument of the wrong kind, missing, or of an unknown name
├── MissingNameError (AttributeError)  a module or a tensor has no attribute of this name
├── ShapeError (ValueError)          operand shapes do not fit the op
├── DTypeError (TypeError)           operand dtypes do not fit the op
├── AxisError (IndexError)           an axis outside the array's dimensions
├── ExpressionError (ValueError)     a tensor expression or a schedule that means nothing
├── DeviceError (ValueError)         operands on different devices
├── MissingRuleError (NotImplementedError)   a hole in an op table
├── UnsupportedError (NotImplementedError)   a name of another library for what does not exist here was called
├── GradientError (RuntimeError)     backward without a path, twice, or on a non-scalar
├── LevelError (RuntimeError)         a tensor of rn.jvp or rn.vmap where it has no meaning
├── CaptureError (RuntimeError)      a traced function did what a program cannot repeat
│   ├── TracedValueError             a traced value was looked at
│   ├── NewStateError                a Variable was made in a traced function
│   ├── SideEffectError              the function changed something outside itself
│   └── AuditError                   a later trace differs from the compiled one
├── StateError (ValueError)          a saved state does not fit what it was to be loaded into
├── FileError (OSError)              a file could not be written, or is not what it should be
├── WorkerError (RuntimeError)       a worker process of a DataLoader died, hung, or raised what cannot be passed on
├── MemoryBudgetError (MemoryError)  a program cannot be made to fit into its memory_budget
├── SettingError (ValueError)        a switch or a RUNNEL_* variable has a value that it does not accept
├── NonFiniteError (ArithmeticError) a NaN or infinity found in debug mode
└── VerifierError (AssertionError)   Runnel's own intermediate forms broke a rule: a bug in Runnel or in a pass
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class RunnelError(Exception):
    """The root: catch it to catch whatever Runnel raises on purpose."""


class ArgumentError(RunnelError, TypeError, ValueError):
    """An argument is of the wrong kind, missing, contradicts another, or has a name that the function does not know."""


class MissingNameError(RunnelError, AttributeError):
    """A module or a tensor has no attribute of this name. The message, made when it is read, says what to write."""

    def __init__(self, message: str | Callable[[], str]) -> None:
        super().__init__()
        self._message = message

    def __str__(self) -> str:
        return self._message if isinstance(self._message, str) else self._message()

    def __reduce__(self) -> tuple[Any, ...]:
        return MissingNameError, (str(self),)


class ShapeError(RunnelError, ValueError, RuntimeError):
    """Operand shapes do not fit the op (NumPy's ValueError, PyTorch's RuntimeError). The message names the op and the
    shapes."""


class DTypeError(RunnelError, TypeError, RuntimeError):
    """Operand dtypes do not fit the op (NumPy's TypeError, PyTorch's RuntimeError). The message names the op and the
    dtypes."""


class AxisError(RunnelError, IndexError):
    """An axis or index lies outside the array. The message names the op, the axis and the shape."""


class ExpressionError(RunnelError, ValueError):
    """A tensor expression cannot be read, leaves its arrays or contradicts itself, or a schedule changes more than the
    order of loops. The message shows the place in the text, or names the loop."""


class DeviceError(RunnelError, ValueError, RuntimeError):
    """Operands live on different devices. Move one of them first."""


class MissingRuleError(RunnelError, NotImplementedError):
    """An op has no rule in a table that was asked for it. ``docs/internals/tables.md`` explains each table."""


class UnsupportedError(RunnelError, NotImplementedError):
    """A name of another library was called for what does not exist here, such as GPUs and groups of processes."""


class GradientError(RunnelError, RuntimeError):
    """A gradient was asked for where there is none: no path, a freed tape, or a non-scalar without a seed."""


class LevelError(RunnelError, RuntimeError):
    """A tensor of ``rn.jvp`` or ``rn.vmap`` was used where it has no meaning: as one number although it represents a
    batch, after the transform has ended, or as the value of a Variable."""


class CaptureError(RunnelError, RuntimeError):
    """A function under ``rn.compile`` did something that a compiled program cannot repeat."""


class TracedValueError(CaptureError):
    """The value of a traced tensor was asked for (``float``, ``bool``, ``if``, ``np.asarray``): only runs make one."""

    guard: Any = None  # of what the function had read; while it holds, the error is the same


class NewStateError(CaptureError):
    """A traced function made a Variable, or something that holds one: each call would need its own."""


class CaptureWarning(RuntimeWarning):
    """A compiled function runs eagerly, or is traced again and again. The message says why, where, and what to do."""


class SideEffectError(CaptureError):
    """The traced function changed something outside (a global, a list, an attribute); no program repeats that."""


class AuditError(CaptureError):
    """A repeated trace gave another graph than the compiled one: the function reads something that no guard watches."""


class StateError(RunnelError, ValueError, RuntimeError):
    """A saved state does not fit what it was to be loaded into. Nothing was loaded."""


class FileError(RunnelError, OSError):
    """A file could not be written, and what was there is as it was; or a file that was read is damaged or of another
    kind. The error of the operating system is its cause."""


class WorkerError(RunnelError, RuntimeError):
    """A worker process of a DataLoader died, gave no batch within the time-out, or raised an error that cannot be
    passed on. The message names the worker and what it was doing. No process is left behind, and the loader's
    ``state_dict()`` still says which batches have been given."""


class MemoryBudgetError(RunnelError, MemoryError):
    """A program does not fit into its ``memory_budget``. ``smallest`` is what it was brought down to, in bytes."""

    def __init__(self, message: str, smallest: int) -> None:
        super().__init__(message)
        self.smallest = smallest

    def __reduce__(self) -> tuple[type, tuple[str, int]]:
        return type(self), (str(self), self.smallest)


class SettingError(RunnelError, ValueError):
    """A switch, or its variable in the environment, has a value that it does not accept. The message says what it does
    accept; ``docs/debug/README.md`` lists them all."""


class NonFiniteError(RunnelError, ArithmeticError):
    """Under ``RUNNEL_CHECK_NANS`` an op produced a NaN or an infinity from finite inputs."""


class PassError(RunnelError, ValueError):
    """A pipeline of passes is wrong: a name that no pass has or two have, or an order in which a pass does not get what
    it needs. The message names the pass."""


class VerifierError(RunnelError, AssertionError):
    """A verifier found an ill-formed graph, loop program or plan: a bug in Runnel or in a pass; please report it."""


class GraphError(RunnelError, ValueError):
    """A declared graph is wrong, or a run asks for what it cannot give: a cycle, a placeholder that is not fed, a
    variable without a value, a damaged file. Nothing has changed."""
