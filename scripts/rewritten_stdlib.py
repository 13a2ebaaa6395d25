"""Run tests of CPython's own suite with every function of theirs rewritten and nobody recording: same results?

Each module runs twice in separate processes, as it is and rewritten; tests that fail only rewritten are printed.
Needs the `test` package of the standard library.

    python scripts/rewritten_stdlib.py [module ...]
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import json
import subprocess
import sys
import unittest
import warnings
from typing import Any

MODULES = [
    "test_asyncgen",
    "test_augassign",
    "test_baseexception",
    "test_binop",
    "test_bool",
    "test_class",
    "test_collections",
    "test_compare",
    "test_contains",
    "test_contextlib",
    "test_coroutines",
    "test_dataclasses",
    "test_decorators",
    "test_defaultdict",
    "test_descr",
    "test_dict",
    "test_dictcomps",
    "test_enum",
    "test_except_star",
    "test_exception_variations",
    "test_exceptions",
    "test_extcall",
    "test_fstring",
    "test_functools",
    "test_generators",
    "test_genexps",
    "test_global",
    "test_grammar",
    "test_heapq",
    "test_int_literal",
    "test_iter",
    "test_itertools",
    "test_keywordonlyarg",
    "test_list",
    "test_listcomps",
    "test_named_expressions",
    "test_operator",
    "test_opcodes",
    "test_patma",
    "test_positional_only_arg",
    "test_property",
    "test_raise",
    "test_richcmp",
    "test_scope",
    "test_set",
    "test_setcomps",
    "test_slice",
    "test_subclassinit",
    "test_super",
    "test_syntax",
    "test_tstring",
    "test_tuple",
    "test_type_annotations",
    "test_typechecks",
    "test_unary",
    "test_unpack",
    "test_unpack_ex",
    "test_userdict",
    "test_with",
    "test_yield_from",
]
# What looks at frames, code objects or the text of tracebacks sees the hooks.
SEES_HOOKS = (
    "frame", "traceback", "bytecode", "disassemble", "co_", "lasti", "recursion", "sizeof", "stack_overflow", "lineno",
    "constant_fold",
)  # fmt: skip


class Rewriting(importlib.abc.MetaPathFinder):
    """Imports the module with rewritten code."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None:
            return None
        loader: Any = spec.loader

        def run(module: Any) -> None:
            from runnel.compile.observe.rewriting import bind, template
            from tests.compile.observe.plain_hooks import Plain, hooks

            code = template(loader.get_code(name))
            exec(bind(code, hooks(Plain(), module.__dict__)), module.__dict__)

        loader.exec_module = run
        return spec


def outcomes(name: str, rewritten: bool) -> dict[str, str]:
    """The tests of a module that did not pass, and how they ended."""
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(4000)
    full = f"test.{name}"
    if rewritten:
        sys.meta_path.insert(0, Rewriting(full))
    module = importlib.import_module(full)
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromModule(module).run(result)
    found = {str(test): text.strip().splitlines()[-1] for test, text in result.failures + result.errors}
    return {"": str(result.testsRun), **found}


def main() -> int:
    if len(sys.argv) > 2 and sys.argv[1] in ("--plain", "--rewritten"):
        print("\n" + json.dumps(outcomes(sys.argv[2], sys.argv[1] == "--rewritten")))
        return 0
    failed = 0
    for name in sys.argv[1:] or [name for name in MODULES if importlib.util.find_spec(f"test.{name}")]:
        results = []
        for how in ("--plain", "--rewritten"):
            run = subprocess.run([sys.executable, __file__, how, name], capture_output=True, text=True, timeout=600)
            if run.returncode:
                results.append({"crashed": run.stderr[-300:], "": "0"})
            else:
                results.append(json.loads(run.stdout.splitlines()[-1]))
        plain, rewritten = results
        worse = {k: v for k, v in rewritten.items() if k not in plain}
        expected = {k for k in worse if any(word in k.lower() for word in SEES_HOOKS)}
        print(f"{name}: {rewritten['']} of {plain['']} tests, {len(worse)} differ, {len(expected)} of them see hooks")
        for test in worse.keys() - expected:
            failed += 1
            print(f"    {test}: {worse[test]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
