"""The project's scripts as modules: they are in no package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parents[3] / "scripts"


def load(name: str) -> ModuleType:
    """Returns ``scripts/{name}.py`` as a module."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up their module there.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
