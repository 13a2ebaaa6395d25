"""How fast a core is thought to be where the planner chooses what to compute again, whatever the machine."""

from __future__ import annotations

from typing import Final

ORDINARY: Final = 40e9  # operations a second,
PRODUCTS: Final = 90e9  # those of products of matrices,
HOST: Final = ORDINARY / 1000  # and those that the host is called for
BYTES: Final = 15e9  # a second
CALL: Final = 30e-9  # seconds to begin a kernel
