"""What a host lacks to connect volumes is said before it has to connect one: os-brick looks only then."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from causeway.errors import ClaimRefused
from causeway.virt.libvirt.storage import volume_needs
from causeway.virt.libvirt.storage.volume_needs import NEEDS


@pytest.fixture(autouse=True)
def _no_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.parametrize("protocol", sorted(NEEDS))
def test_a_host_without_programs_is_refused_with_what_to_install(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "glob", lambda _path, _pattern: iter([]))
    with pytest.raises(ClaimRefused, match=f"type '{protocol}'") as refused:
        volume_needs.check(protocol, {})
    assert NEEDS[protocol].install in refused.value.details


@pytest.mark.parametrize("protocol", sorted(NEEDS))
def test_a_host_that_has_everything_is_accepted(protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "glob", lambda path, pattern: iter([path / pattern]))
    monkeypatch.setattr(shutil, "which", lambda name: f"{tmp_path}/{name}")
    volume_needs.check(protocol.upper(), {})


@pytest.mark.parametrize("protocol", ["local", "gpfs"])
def test_a_volume_at_a_path_must_be_there(protocol: str, tmp_path: Path) -> None:
    with pytest.raises(ClaimRefused, match="can't be opened"):
        volume_needs.check(protocol, {"device_path": str(tmp_path / "none")})
    (tmp_path / "there").touch()
    volume_needs.check(protocol, {"device_path": str(tmp_path / "there")})


def test_volumes_of_another_hypervisor_are_refused() -> None:
    with pytest.raises(ClaimRefused, match="vmdk"):
        volume_needs.check("vmdk", {})
