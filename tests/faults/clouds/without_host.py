"""A cloud in one process of which one host's machine is off: its compute does not start, and nobody answers for it."""

from __future__ import annotations

from typing import Any

from causeway.embedded import cloud as embedded_cloud
from causeway.roles.compute import make_compute


class _Nobody:
    def start(self) -> None: ...

    def stop(self) -> None: ...


def leave_out(host: str) -> None:
    """To be called before the cloud is started."""

    def unless_it_is_off(around: Any, name: str, *arguments: Any) -> Any:
        return _Nobody() if name == host else make_compute(around, name, *arguments)

    embedded_cloud.make_compute = unless_it_is_off  # type: ignore[assignment,attr-defined]
