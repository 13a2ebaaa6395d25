"""Programs without Python: put together by this machine's C compiler, run as processes, equal to the bit."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from runnel.backends.cpu import link
from runnel.core import pytree
from runnel.core.errors import ArgumentError, DeviceError, FileError, SideEffectError, TracedValueError
from runnel.nn import functional as F

pytestmark = pytest.mark.suite
CC = shutil.which("cc")
needs_cc = pytest.mark.skipif(CC is None, reason="there is no C compiler")
FLAGS = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic"]


def built(folder: Path, name: str = "model", main: str = "main.c") -> Path:
    assert CC is not None
    subprocess.run([CC, *FLAGS, "-o", "program", main, f"{name}.c", f"{name}.o"], cwd=folder, check=True)
    return folder / "program"


def called(
    program: Path, inputs: Sequence[Any], outputs: Sequence[np.ndarray], name: str = "model"
) -> list[np.ndarray]:
    """The outputs of a process, in arrays like ``outputs``."""
    folder = program.parent
    for i, x in enumerate(inputs):
        np.ascontiguousarray(x).tofile(folder / f"in{i}")
    files = [*[f"in{i}" for i in range(len(inputs))], *[f"out{i}" for i in range(len(outputs))]]
    subprocess.run([program, f"{name}.safetensors", *files], cwd=folder, check=True, env={})
    results = []
    for i, like in enumerate(outputs):
        content = (folder / f"out{i}").read_bytes()
        assert len(content) == like.nbytes
        results.append(np.frombuffer(content, like.dtype).reshape(like.shape))
    return results


def leaves(tree: Any) -> list[np.ndarray]:
    return [x.numpy() for x in pytree.flatten(tree)[0]]


def randn(*shape: int, dtype: str = "float32") -> Any:
    return rn.asarray(np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape), dtype=dtype)


def network() -> nn.Module:
    rn.manual_seed(3)
    layers = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 24, 3), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(24 * 49, 10),
    )  # fmt: skip
    return layers.eval()


def attention() -> Callable[[Any], Any]:
    rn.manual_seed(4)
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
    return lambda x: layer(x)


def recurrent() -> Callable[..., Any]:
    rn.manual_seed(5)
    layer = nn.LSTM(7, 12)
    return lambda x, state: layer(x, state)


TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)
CASES: dict[str, tuple[Callable[[], Callable[..., Any]], tuple[Any, ...]]] = {
    "a convolutional network": (network, (randn(4, 3, 16, 16),)),
    "attention": (attention, (randn(2, 9, 32),)),
    "a recurrent network with a state": (recurrent, (randn(5, 2, 7), (randn(1, 2, 12), randn(1, 2, 12)))),
    "a product of float64": (
        lambda: lambda a, b: a @ b,
        (randn(33, 40, dtype="float64"), randn(40, 29, dtype="float64")),
    ),
    "a product of bfloat16": (
        lambda: lambda a, b: a @ b,
        (randn(33, 40, dtype="bfloat16"), randn(40, 29, dtype="bfloat16")),
    ),
    "half precision": (lambda: lambda a: rn.exp(a) + 1, (randn(17, dtype="float16"),)),
    "a loop of unknown length": (
        lambda: lambda x: rn.while_loop(lambda c: c[1].sum() < 100, lambda c: (c[0] + 1, c[1] * 2), (rn.asarray(0), x)),
        (rn.ones(3),),
    ),
    "a branch": (lambda: lambda x: rn.cond(x.sum() > 0, lambda: rn.exp(x), lambda: x @ x.T), (randn(6, 6),)),
    "a scan": (lambda: lambda x: rn.scan(lambda c, r: (c * r + 1, c), rn.zeros(5), x), (randn(40, 5),)),
    "indices": (lambda: lambda t, i: t[i], (randn(10, 4), rn.asarray([3, -1, 0, 9]))),
    "integers and truths": (
        lambda: lambda a, b: {"sorted": rn.sort(a), "less": a < b, "bits": a & b, "place": rn.argmax(a)},
        (rn.asarray([5, 2, 9], dtype="int32"), rn.asarray([4, 8, 1], dtype="int32")),
    ),
    "numbers and strings among the arguments": (
        lambda: lambda x, p, mode: F.pad(x, p, mode=mode) * 0.1,
        (randn(2, 3, 5, 5), (1, 2, 0, 1), "reflect"),
    ),
    "no inputs": (lambda: lambda: rn.arange(7) * 3, ()),
    "one result twice": (lambda: lambda x: (y := x * 2, x, y, x + 1), (randn(5),)),
    "no elements": (lambda: lambda x: (x * 2, x.sum(0)), (rn.zeros((0, 3)),)),
    "arrays from outside": (lambda: lambda x: x @ TABLE + rn.asarray(TABLE)[0], (randn(2, 4),)),
    "a tensor expression": (
        lambda: rn.expressions.tensor_expr("O[x, k] += I[x + i, c] * W[i, c, k]"),
        (randn(20, 6), randn(3, 6, 5)),
    ),
    "gradients": (lambda: rn.grad(lambda w, x: rn.tanh(x @ w).sum()), (randn(4, 3), randn(8, 4))),
    "a name of C and one of C++": (lambda: lambda double, new: double - new, (randn(3), randn(3) * 2)),
}


@needs_cc
@pytest.mark.parametrize("name", CASES)
def test_results_equal_the_ones_of_the_compiled_function(name: str, tmp_path: Path) -> None:
    make, arguments = CASES[name]
    function = make()
    rn.export_native(function, arguments, tmp_path)
    expected = leaves(rn.compile(function)(*arguments))
    arrays = [x.numpy() for x in pytree.flatten(arguments)[0] if isinstance(x, rn.Tensor)]
    actual = called(built(tmp_path), arrays, expected)
    assert [x.tobytes() for x in actual] == [x.tobytes() for x in expected]


@needs_cc
def test_other_inputs_and_another_name(tmp_path: Path) -> None:
    """The values of the examples are not part of the program; a compiled method of a module is a function as well."""

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(rn.asarray([1.0, 2.0, 3.0]))

        @rn.compile
        def forward(self, rows: Any, *, limit: float = 2.0) -> Any:
            return rn.minimum(rows * self.scale, limit)

    model = Scaled()
    rn.export_native(model, [randn(2, 3)], tmp_path / "new" / "folder", name="scaled")
    folder = tmp_path / "new" / "folder"
    assert sorted(p.name for p in folder.iterdir()) == [
        "main.c",
        "scaled.c",
        "scaled.h",
        "scaled.o",
        "scaled.safetensors",
    ]
    assert "int scaled_predict(scaled *model, const float *rows, float *output);" in (folder / "scaled.h").read_text()
    assert rn.load_file(folder / "scaled.safetensors")["scale"].tolist() == [1, 2, 3]
    x = np.array([[-1, 0.5, 9], [2, 1, 0.25]], np.float32)
    (actual,) = called(built(folder, "scaled"), [x], [x], "scaled")
    assert actual.tolist() == model(rn.asarray(x)).tolist() == [[-1, 1, 2], [2, 2, 0.75]]
    before = {p.name: p.read_bytes() for p in folder.iterdir() if p.suffix != ""}
    rn.export_native(model.forward, [randn(2, 3)], folder, name="scaled")  # over what is there
    names = ("scaled.o", "scaled.c", "main.c", "scaled.safetensors")
    assert all((folder / file).read_bytes() == before[file] for file in names)


THREE_CALLS = """
#include "model.h"
#include <stdio.h>

int main(int argc, char **argv) {
    static float x[64], y[64];
    model *one, *other;
    FILE *file = fopen(argv[2], "rb");
    if (argc != 4 || !file || fread(x, 4, 64, file) != 64) return 2;
    fclose(file);
    file = fopen(argv[3], "wb");
    if (model_init(&one, argv[1]) || model_init(&other, argv[1])) return 3;
    for (int i = 0; i < 3; i++) {
        if (model_predict(one, x, y) || fwrite(y, 4, 64, file) != 64) return 4;
        if (i < 2) continue;
        if (model_predict(other, x, y) || fwrite(y, 4, 64, file) != 64) return 4;
    }
    model_free(one);
    model_free(other);
    model_free(NULL);
    return fclose(file);
}
"""


@needs_cc
def test_state_is_kept_from_call_to_call(tmp_path: Path) -> None:
    """Steps of a training, running statistics and a random generator; each model has its own."""
    rn.manual_seed(6)
    norm, w = nn.BatchNorm1d(8), rn.Variable(rn.ones((8, 8)), name="w")
    generator = rn.Generator(7)

    def step(x: Any) -> Any:
        slope = rn.grad(lambda v: ((norm(x) @ v - 1) ** 2).mean())(w.read())
        w.assign(w - 0.1 * slope)
        return norm(x) @ w + rn.randn((8, 8), generator=generator)

    rn.export_native(step, (randn(8, 8),), tmp_path)
    (tmp_path / "three.c").write_text(THREE_CALLS)
    compiled, x = rn.compile(step), randn(8, 8)
    expected = [compiled(x).numpy() for _ in range(3)]
    assert not (expected[0] == expected[1]).all()
    (actual,) = called(built(tmp_path, main="three.c"), [x.numpy()], [np.stack([*expected, expected[0]])])
    assert actual.tobytes() == np.stack([*expected, expected[0]]).tobytes()


@needs_cc
def test_errors_of_a_process(tmp_path: Path) -> None:
    rn.export_native(lambda table, at: table[at] @ TABLE, (rn.ones((5, 4)), rn.asarray([0, 1])), tmp_path)
    program, table = built(tmp_path), np.ones((5, 4), np.float32)
    (fine,) = called(program, [table, np.array([4, -5])], [np.zeros((2, 3), np.float32)])
    assert fine.tolist() == [[18, 22, 26]] * 2

    def said(*arguments: str) -> str:
        done = subprocess.run([program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode in (1, 2)
        return done.stderr.strip()

    np.array([4, 5]).tofile(tmp_path / "outside")
    np.ones(3, np.float32).tofile(tmp_path / "short")
    (tmp_path / "out0").unlink()
    fits = ["in0", "in1", "out0"]
    assert re.fullmatch(
        r"model: \[take\] an index of shape \(2,\) lies outside \[0, 5\); the op was called at .*test_native.py:\d+. "
        r"Nothing was changed.",
        said("model.safetensors", "in0", "outside", "out0"),
    )  # fmt: skip
    assert said("model.safetensors", "short", "in1", "out0") == "short: 80 bytes could not be read"
    assert said("model.safetensors", "in0", "in0", "out0") == "in0: 16 bytes could not be read"
    assert said("model.safetensors").startswith("usage: ")
    assert said("nothing", *fits) == "model: the file of weights cannot be read"
    weights = (tmp_path / "model.safetensors").read_bytes()
    changes = {"empty": b"", "cut": weights[:-1], "longer": weights + b"\0", "head": weights[:20]}
    changes["renamed"] = weights.replace(b'"constants/model_run"', b'"constants/model_ran"')
    changes["long header"] = b"\xff" * 8 + weights[8:]
    for name, content in changes.items():
        (tmp_path / name).write_bytes(content)
        assert said(name, *fits) == "model: the file of weights belongs to another program"
    assert not (tmp_path / "out0").exists()


def test_nothing_of_python_is_in_the_object_file(tmp_path: Path) -> None:
    rn.export_native(network(), (randn(4, 3, 16, 16),), tmp_path)
    file = link.parse((tmp_path / "model.o").read_bytes())
    outside = {s.name for s in file.symbols if s.section is None and s.name != "<string>"} - {""}
    assert outside <= {"memcpy", "memset", "memmove", "syscall", "sched_yield", "usleep", "_GLOBAL_OFFSET_TABLE_"}
    text = (tmp_path / "model.c").read_text() + (tmp_path / "main.c").read_text()
    assert set(re.findall(r"#include <(.*)>", text)) == {"stdio.h", "stdlib.h", "string.h"}


FOLDER = "not made"
printed: Any = functools.partial(rn.debug.print, "{}")
ANYTHING: Any = rn.ones(3)
WEIGHT = rn.Variable(rn.ones(3), name="weight", requires_grad=True)
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a callback": (
        lambda: rn.export_native(lambda x: rn.pure_callback(np.sin, x, x), (rn.ones(3),), FOLDER),
        SideEffectError, r"must not compute in Python; it does at .*test_native.py:\d+, by 'callback'",
    ),
    "complex numbers": (
        lambda: rn.export_native(lambda x: rn.real(rn.fft.fft(x)), (rn.ones(3),), FOLDER),
        SideEffectError, "must not compute in Python.*'complex'",
    ),
    "a print": (
        lambda: rn.export_native(lambda x: (printed(x), x)[1], (rn.ones(3),), FOLDER),
        SideEffectError, "must not call Python",
    ),
    "backward": (
        lambda: rn.export_native(lambda x: x if (WEIGHT * x).sum().backward() is None else -x, (rn.ones(3),), FOLDER),
        SideEffectError, r"must not use \.grad of Variable 'weight'; use runnel\.grad",
    ),
    "a condition on values": (
        lambda: rn.export_native(lambda x: x if x.sum() > 0 else -x, (rn.ones(3),), FOLDER), TracedValueError, "cond",
    ),
    "another device": (
        lambda: rn.export_native(lambda x: x * 2, (rn.ones(3, device="interpreter"),), FOLDER),
        DeviceError, "must compute on cpu .* got interpreter",
    ),
    "what is no tensor": (
        lambda: rn.export_native(lambda x: (x, 3), (rn.ones(3),), FOLDER),
        ArgumentError, "must return tensors; got 3",
    ),
    "nothing returned": (lambda: rn.export_native(lambda x: None, (rn.ones(3),), FOLDER), ArgumentError, "None"),
    "an error inside": (lambda: rn.export_native(lambda x: x @ x[:2], (rn.ones(3),), FOLDER), Exception, "matmul"),
    "too few inputs": (
        lambda: rn.export_native(lambda x, y: x, (rn.ones(3),), FOLDER), ArgumentError, "required argument: 'y'",
    ),
    "a tensor in place of inputs": (
        lambda: rn.export_native(lambda x: x, ANYTHING, FOLDER), ArgumentError, "must be a tuple or list",
    ),
    "no function": (lambda: rn.export_native(ANYTHING, (), FOLDER), ArgumentError, "function must be callable"),
    "a name with a space": (
        lambda: rn.export_native(lambda x: x, (rn.ones(3),), FOLDER, name="my model"),
        ArgumentError, "got 'my model'",
    ),
    "a word of C": (
        lambda: rn.export_native(lambda x: x, (rn.ones(3),), FOLDER, name="double"), ArgumentError, "unused in C and C",
    ),
    "a folder that is a file": (
        lambda: rn.export_native(lambda x: x, (rn.ones(3),), __file__), FileError, "cannot be written",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_parts_that_cannot_be_exported_are_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    attempt, kind, told = REFUSED[name]
    with pytest.raises(kind, match=told):
        attempt()
    assert not list(tmp_path.iterdir())
    assert WEIGHT.grad is None and WEIGHT.tolist() == [1, 1, 1]
