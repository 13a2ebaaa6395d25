"""Hatch's build hook: writes the stubs of the public names into the wheel."""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class StubsHook(BuildHookInterface):  # type: ignore[misc]
    """Adds what scripts/stubs.py makes to a wheel; an editable installation has the sources alone."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory()
        stubs = runpy.run_path(str(Path(self.root) / "scripts" / "stubs.py"))["stubs"]
        for path, text in stubs(Path(self.root)):
            written = Path(self._folder.name, path.replace("/", "."))
            written.write_text(text, encoding="utf-8")
            build_data["force_include"][str(written)] = path

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self.target_name == "wheel" and version != "editable":
            self._folder.cleanup()
