"""The rules of the house, read from the source: imports go down, files are small and say what they are for."""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import runnel as rn
from tests.conftest import FOLDERS

pytestmark = pytest.mark.suite
ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(rn.__file__).parent  # which may be installed elsewhere
LONGEST = 600
BEGINS_WITH_DOCSTRING = re.compile(r'(#.*\n|\n)*r?"""\s*\S')
UPWARD = {"runnel.tensor.composing imports runnel.compile.composing"}  # to be turned round
PLACE = re.compile(r"(runnel(?:\.\w+)+): ?\w+")  # a string that names what a module has


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def modules() -> dict[str, Path]:
    return {module_name(path): path for path in sources()}


def statements(node: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """Yield every node under ``node`` outside expressions, with True if it is in a function."""
    rest = [(node, False)]
    while rest:
        parent, inside = rest.pop()
        for child in ast.iter_child_nodes(parent):
            if not isinstance(child, ast.expr):
                rest.append((child, inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)))
                yield rest[-1]


@cache
def import_statements(path: Path) -> list[tuple[ast.stmt, bool]]:
    """Yield the imports of a file, with True for those in a function."""
    return [(n, inside) for n, inside in statements(parsed(path)) if isinstance(n, ast.Import | ast.ImportFrom)]


def imported(node: ast.AST, known: dict[str, Path]) -> list[str]:
    """Return the modules of this package that an import statement names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names if alias.name.split(".")[0] == "runnel"]
    if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.split(".")[0] == "runnel":
        names = [f"{node.module}.{alias.name}" for alias in node.names]
        return [name if name in known else node.module for name in names]
    return []


@cache
def import_graph() -> dict[str, set[str]]:
    """Return the modules of this package that each module imports by name, also for type checkers only."""
    known = modules()
    return {
        name: {target for node, _ in import_statements(path) for target in imported(node, known)}
        for name, path in known.items()
    }


@cache
def places(path: Path) -> set[str]:
    """Return the modules that strings of a file name, "module:name"."""
    strings = [n.value for n in ast.walk(parsed(path)) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return {match[1] for text in strings if (match := PLACE.fullmatch(text))}


def folder_order() -> dict[str, int]:
    """Return the row of each folder in the table of docs/internals/layout.md, counted from the top."""
    layout = (ROOT / "docs" / "internals" / "layout.md").read_text(encoding="utf-8").partition("Beside `runnel/`")[0]
    rows = re.findall(r"^\| ((?:`[\w/]+`(?:, )?)+) \| .+ \|$", layout, flags=re.MULTILINE)
    return {name: i for i, names in enumerate(rows) for name in re.findall(r"`([\w/]+)`", names)}


def upward_imports(graph: dict[str, set[str]], order: dict[str, int]) -> list[str]:
    """Return the arrows from a folder to another that is not below it; files beside the folders are above all."""

    def folder_of(module: str) -> str | None:
        folder = module.partition(".")[2].partition(".")[0]
        return folder if folder in order else None

    results = []
    for name, targets in sorted(graph.items()):
        folder = folder_of(name)
        for target in sorted(targets):
            to = folder_of(target)
            if folder is None or folder == to:
                continue
            if to is None or order[folder] >= order[to]:
                results.append(f"{name} imports {target}")
    return results


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Some modules that import each other in a ring; [] if there are none."""
    done: set[str] = set()

    def search(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for target in sorted(graph.get(name, ())):
            ring = search(target, [*path, name])
            if ring:
                return ring
        done.add(name)
        return []

    return next((ring for name in sorted(graph) if (ring := search(name, []))), [])


def test_layout_lists_every_folder() -> None:
    folders = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*") if any(path.glob("*.py"))}
    assert set(folder_order()) == folders


def test_imports_go_down() -> None:
    assert upward_imports(import_graph(), folder_order()) == []


def test_strings_that_name_modules_go_down() -> None:
    named = {name: places(path) for name, path in modules().items()}
    assert set(upward_imports(named, folder_order())) <= UPWARD
    assert {f"{name} names {place}" for name, found in named.items() for place in found - modules().keys()} == set()


def test_upward_imports_are_found() -> None:
    order = {"top": 0, "side": 0, "low": 1}
    graph = {"runnel.top.a": {"runnel.low.b", "runnel.side.c"}, "runnel.low.b": {"runnel.top.a", "runnel"}}
    assert upward_imports(graph, order) == [
        "runnel.low.b imports runnel",
        "runnel.low.b imports runnel.top.a",
        "runnel.top.a imports runnel.side.c",
    ]


def test_no_import_cycles() -> None:
    assert cycle(import_graph()) == []


LAYERED = ("runnel.backends", "runnel.backends.cpu", "runnel.compiler", "runnel.compiler.kernels")


def parts_of(graph: dict[str, set[str]], package: str) -> dict[str, set[str]]:
    """Return the imports among the modules and folders that lie directly in ``package``."""

    def part(module: str) -> str:
        return module.removeprefix(f"{package}.").partition(".")[0] if module.startswith(f"{package}.") else ""

    parts: dict[str, set[str]] = {}
    for name, targets in graph.items():
        parts.setdefault(part(name), set()).update({part(target) for target in targets} - {part(name), ""})
    return {name: targets for name, targets in parts.items() if name}


@pytest.mark.parametrize("package", LAYERED)
def test_parts_of_a_folder_are_layers(package: str) -> None:
    assert cycle(parts_of(import_graph(), package)) == []


def test_circles_of_parts_are_found() -> None:
    graph = {"a.x.p": {"a.y.q"}, "a.y.r": {"a.x.s"}, "a.x.s": set(), "b": {"a.x.p"}}
    assert cycle(parts_of(graph, "a")) == ["x", "y", "x"]


def test_cycles_are_found() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


def test_imports_for_type_checkers_count() -> None:
    tree = ast.parse("if TYPE_CHECKING:\n    from runnel.core.tables import Op")
    known = {"runnel.core.tables": ROOT}
    assert [target for node, _ in statements(tree) for target in imported(node, known)] == ["runnel.core.tables"]


def test_no_imports_of_our_own_inside_functions() -> None:
    known = modules()
    actual = [
        f"{name}:{node.lineno}"
        for name, path in known.items()
        for node, inside in import_statements(path)
        if inside and imported(node, known)
    ]
    assert actual == []


def test_every_file_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for folder in (PACKAGE, ROOT / "tests", ROOT / "benchmarks", ROOT / "scripts")
        for path in sorted(folder.rglob("*.py"))
        if path.stat().st_size and not BEGINS_WITH_DOCSTRING.match(path.read_text(encoding="utf-8"))
    ]
    assert silent == []


def folders_without_a_twin(folders: set[str], package: set[str]) -> list[str]:
    """Folders of tests that are called neither as a folder or module of the package, nor as what looks at the whole."""
    whole = {*FOLDERS, "docs"}
    return sorted(f for f in folders if f not in package and not whole & set(f.split("/")))


def test_tests_mirror_the_folders() -> None:
    tests = {path.relative_to(ROOT / "tests").parent.as_posix() for path in (ROOT / "tests").rglob("test_*.py")} - {"."}
    files = {path.relative_to(PACKAGE).with_suffix("") for path in sources()}
    assert folders_without_a_twin(tests, {p.as_posix() for file in files for p in (file, *file.parents)}) == []


def test_folders_without_a_twin_are_found() -> None:
    tests = {"core", "core/errors", "suites", "compile/programs", "errors", "core/more"}
    assert folders_without_a_twin(tests, {"core", "core/errors", "compile"}) == ["core/more", "errors"]


def test_files_are_small() -> None:
    files = [*sources(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]
    texts = {str(p): p.read_text(encoding="utf-8") for p in files}
    lengths = {name: len(text.splitlines()) for name, text in texts.items() if "\nNAMES = {" not in text}  # but data
    assert {name: n for name, n in lengths.items() if n > LONGEST} == {}
    assert statistics.median(n for n in lengths.values() if n) < 200


def test_no_asserts_in_the_package() -> None:
    actual = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sources()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Assert)
    ]
    assert actual == []


GENERATOR = re.compile(r"^\w.*(default_rng|Random)\(", re.MULTILINE)  # in a line of the module itself


def shared_generators(tree: ast.Module) -> list[str]:
    """Generators of random numbers that a module makes when it is imported and that its functions draw from: what they
    give depends on who drew before."""
    result = {
        target.id
        for statement in tree.body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)
        for target in statement.targets
        if isinstance(target, ast.Name) and ast.unparse(statement.value.func).endswith(("default_rng", "Random"))
    }
    if not result:
        return []
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda)]
    drawn = {node.id for f in functions for node in ast.walk(f) if isinstance(node, ast.Name)}
    return sorted(result & drawn)


def test_data_of_a_test_depend_only_on_that_test() -> None:
    paths = [p for p in sorted((ROOT / "tests").rglob("*.py")) if GENERATOR.search(p.read_text(encoding="utf-8"))]
    assert {p.name: actual for p in paths if (actual := shared_generators(parsed(p)))} == {}


def test_shared_generators_are_found() -> None:
    text = "A = default_rng(1)\nB = np.random.default_rng(2)\nx = B.normal()\ndef f():\n    return A.normal()\n"
    assert shared_generators(ast.parse(text)) == ["A"]
