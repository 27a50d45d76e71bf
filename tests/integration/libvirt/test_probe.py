"""Deciding whether KVM works."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from causeway.virt.libvirt.capabilities import probe


def test_probe_guest_runs_where_guests_run() -> None:
    assert probe.guest_runs("tcg", "qemu64")


def test_answer_is_kept_and_the_probe_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def guest_runs(accelerator: str, processor: str) -> bool:
        asked.append((accelerator, processor))
        return False

    monkeypatch.setattr(os, "access", lambda *_: True)
    monkeypatch.setattr(probe, "guest_runs", guest_runs)
    cache = tmp_path / "virt-type.json"
    assert [probe.decide_virt_type("auto", cache) for _ in range(2)] == ["qemu", "qemu"]
    assert asked == [("kvm", "host")]


@pytest.mark.parametrize("wanted", ["kvm", "qemu"])
def test_what_the_operator_says_is_not_questioned(tmp_path: Path, wanted: str) -> None:
    assert probe.decide_virt_type(wanted, tmp_path / "virt-type.json") == wanted
