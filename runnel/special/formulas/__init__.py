"""Formulas of special functions in the language of ``runnel.loops.formulas``.

Each takes and returns a ``Value`` of float32 or float64 with any number of lanes. ``VERSION`` identifies them, and the
rules of the ops that use them, in caches on disk.
"""

from __future__ import annotations

from typing import Final

from runnel.backends.host import objects

VERSION: Final = objects.digest("special")
