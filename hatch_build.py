"""Hatch's build hook: writes the stubs of the public names and prebuilt machine code into the wheel."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CODE = "runnel/backends/cpu/prebuilt.bin"


class WheelHook(BuildHookInterface):  # type: ignore[misc]
    """Adds the files that scripts/stubs.py and scripts/prebuilt.py make to a wheel; an editable installation has only
    the sources.

    RUNNEL_PREBUILT names the targets of the machine code, by default "host": this machine's; with "" there is none.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory()
        stubs = runpy.run_path(str(Path(self.root) / "scripts" / "stubs.py"))["stubs"]
        for path, text in stubs(Path(self.root)):
            written = Path(self._folder.name, path.replace("/", "."))
            written.write_text(text, encoding="utf-8")
            build_data["force_include"][str(written)] = path
        code = Path(self._folder.name, "prebuilt.bin")
        if self._prebuilt(code, os.environ.get("RUNNEL_PREBUILT", "host").split()):
            build_data["force_include"][str(code)] = CODE

    def _prebuilt(self, code: Path, targets: list[str]) -> bool:
        """Write machine code for ``targets``; False if there is none, and kernels are compiled when they are needed."""
        if not targets:
            return False
        installed = code.with_name(f"runnel-{self.metadata.version}.dist-info")  # the package asks for its version
        installed.mkdir()
        (installed / "METADATA").write_text(f"Name: runnel\nVersion: {self.metadata.version}\n", encoding="utf-8")
        command = [sys.executable, "scripts/prebuilt.py", str(code), *targets]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([self.root, str(code.parent)])}
        made = subprocess.run(command, cwd=self.root, env=environment, check=False)
        if made.returncode:
            self.app.display_warning("The wheel contains no machine code: scripts/prebuilt.py failed.")
        return made.returncode == 0

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self.target_name == "wheel" and version != "editable":
            self._folder.cleanup()
