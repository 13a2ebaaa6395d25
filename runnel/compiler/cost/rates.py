"""The rates of a core that the planner assumes for rematerialisation, on every machine."""

from __future__ import annotations

from typing import Final

ORDINARY: Final = 40e9  # operations per second
PRODUCTS: Final = 90e9  # the same in products of matrices
HOST: Final = ORDINARY / 1000  # the same in host calls
BYTES: Final = 15e9  # per second
CALL: Final = 30e-9  # seconds to start a kernel
