"""``runnel run`` and ``install``: programs that import torch and torchvision, unedited."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runnel.compat.functions.settings import __version__
from runnel.compat.installation import FOLDER

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import importlib.metadata as metadata, importlib.util, sys
assert importlib.util.find_spec("torch") is not None and importlib.util.find_spec("torchvision") is not None
import torch, torch.nn as nn, torch.utils.data
from torch.nn import functional as F
from torch.optim.lr_scheduler import StepLR
import torchvision.transforms.functional, torchvision.models.resnet
from torchvision.datasets.folder import ImageFolder
from torchvision.io.image import ImageReadMode
import torchvision.models.densenet, torchvision.transforms.transforms as named
assert named.Compose is torchvision.transforms.Compose and callable(torchvision.models.googlenet)
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.fx.node import Target
assert torch.onnx.TrainingMode.EVAL and torch.hub._get_torch_home() and torch.jagged
assert metadata.version("torch") == torch.__version__
assert torch.nn.functional is F and __name__ == "__main__" and sys.argv[1:] == ["--help", "-x"]
assert F.relu(torch.tensor([-1.0, 1.0])).tolist() == [0.0, 1.0]
raise SystemExit(3)
"""


def run(*arguments: str, **options: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, **options)  # type: ignore[call-overload]


@pytest.mark.suite
def test_a_script_and_a_module_run_as_python_runs_them(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(SCRIPT, "utf-8")
    for how in (["program.py"], ["-m", "program"]):
        ran = run("-m", "runnel.cli", "run", *how, "--help", "-x", cwd=str(tmp_path))
        assert (ran.returncode, ran.stderr) == (3, "")
    (tmp_path / "fault.py").write_text("import torch\n1 / 0\n", "utf-8")
    ran = run("-m", "runnel.cli", "run", "fault.py", cwd=str(tmp_path))
    assert ran.returncode == 1 and ran.stderr.count("File ") == 1 and "ZeroDivisionError" in ran.stderr
    assert run("-m", "runnel.cli", "run").returncode == 2


@pytest.mark.suite
def test_install_comes_before_torch() -> None:
    install = "from runnel.compat.torch import install; install(); import torch; print(torch.__version__); install()"
    assert run("-c", install).stdout.strip() == __version__
    late = "import sys, types; sys.modules['torch'] = types.ModuleType('torch')\n" + install
    assert "torch is imported already" in run("-c", late).stderr


@pytest.mark.unit
def test_metadata_have_the_version() -> None:
    assert f"\nVersion: {__version__}\n" in Path(FOLDER, "torch.dist-info", "METADATA").read_text("utf-8")


@pytest.mark.suite
def test_einops_is_compiled_with_the_program(tmp_path: Path) -> None:
    pytest.importorskip("einops")
    (tmp_path / "program.py").write_text(
        "import torch\nfrom einops import rearrange\n"
        "f = torch.compile(lambda x: rearrange(x, 'b (h d) -> h b d', h=2), fullgraph=True)\n"
        "print(tuple(f(torch.ones(3, 4)).shape))\n",
        "utf-8",
    )
    ran = run("-m", "runnel.cli", "run", "program.py", cwd=str(tmp_path))
    assert (ran.stdout.strip(), ran.stderr) == ("(2, 3, 2)", "")
