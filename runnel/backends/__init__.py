"""Where programs run: the protocol (``base``), what every backend shares (``host``), and a folder for each backend."""

from runnel.backends import base
from runnel.backends.cpu.backend import CpuBackend
from runnel.backends.interpreter.backend import InterpreterBackend

base.register(CpuBackend())
base.register(InterpreterBackend())
