"""PyTorch's floats of 8 bits: their names, sizes and limits. Tensors cannot have them."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes

from runnel.core import dtype_info
from runnel.core.dtype_info import FloatInfo


class SmallFloat:
    """A dtype that no tensor has, so that programs can name it and compare it with others."""

    is_floating_point, is_complex, is_signed, itemsize = True, False, True, 1

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


_FLOATS: Final = {
    name: SmallFloat(name)
    for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
}
float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu = _FLOATS.values()


def finfo(type: Any = None) -> Any:
    """Return the limits of a float dtype; the default dtype's for None."""
    if not isinstance(type, SmallFloat):
        return dtype_info.finfo() if type is None else dtype_info.finfo(type)
    info: Any = ml_dtypes.finfo(type.name)
    names = ("eps", "max", "min", "smallest_normal", "tiny", "resolution")
    return FloatInfo(bits=8, dtype=type, **{name: float(getattr(info, name)) for name in names})  # type: ignore[arg-type]
