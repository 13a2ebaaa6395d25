"""Compiling functions: tracing, guards, audits and the cache of programs."""

from runnel.compile.cache import clear_caches as clear_caches
from runnel.compile.compiled import Compiled as Compiled, compile as compile
from runnel.compile.wrappers import uncompiled as uncompiled
