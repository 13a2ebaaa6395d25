"""Compiling functions: tracing, guards, audits and the cache of programs."""

from runnel.compile.compiled import Compiled as Compiled, compile as compile
