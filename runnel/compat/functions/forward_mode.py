"""``torch.autograd.forward_ad``: tensors with tangents inside a block, by the levels of :func:`runnel.jvp`."""

from __future__ import annotations

from typing import Any, NamedTuple

from runnel.core.errors import GradientError
from runnel.tensor.creation import asarray
from runnel.tensor.forward import Forward
from runnel.tensor.grad_mode import recording
from runnel.transforms.jvp import direction_of

_OPEN: list[Forward] = []  # the blocks that are running, the innermost one last


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent, None where it has none."""

    primal: Any
    tangent: Any


class dual_level:
    """Inside ``with dual_level():`` what is computed from the tensors of :func:`make_dual` has tangents."""

    def __enter__(self) -> None:
        self._recording = recording(True)
        self._recording.__enter__()
        _OPEN.append(Forward())
        _OPEN[-1].__enter__()

    def __exit__(self, *error: Any) -> None:
        _OPEN.pop().__exit__(*error)
        self._recording.__exit__(*error)


def _innermost(name: str) -> Forward:
    if not _OPEN:
        raise GradientError(f"[{name}] tensors have tangents inside `with dual_level():` alone.")
    return _OPEN[-1]


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """``tensor`` with a tangent of its shape and dtype."""
    x = asarray(tensor)
    return _innermost("make_dual").dual(x.handle(), direction_of("make_dual", x, tangent))


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """The tensor without its tangent, and that."""
    return UnpackedDualTensor(*_innermost("unpack_dual").split(asarray(tensor)))
