"""A real Ceph that does not answer, or not as it is configured: every call ends in time, and says why."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from causeway import errors
from causeway.virt.libvirt.storage import qemu_img
from causeway.virt.libvirt.storage.rbd.images import RbdImages
from causeway.virt.libvirt.storage.rbd.store import RbdStore
from tests.integration.real_services.rbd_site import POOL, RbdSite, image_file
from tests.shared_stores import BEFORE

pytestmark = pytest.mark.timeout(300)
MIB = 2**20
IMAGE = "0b5c2f3e-6d5b-4a52-8f5a-3d2c1b0a9f8e"


def _calls(store: RbdStore, file: Path) -> dict[str, Callable[[], object]]:
    images = RbdImages(store, 60)
    return {
        "find": lambda: store.find("disk"),
        "names": store.names,
        "set_owner": lambda: store.set_owner("disk", "a 1"),
        "make_snapshot": lambda: store.make_snapshot("disk", "other"),
        "roll_back": lambda: store.roll_back("disk", "label"),
        "delete_snapshot": lambda: store.delete_snapshot("disk", "label"),
        "rename": lambda: store.rename("disk", "other"),
        "remove": lambda: store.remove("disk"),
        "users": lambda: store.users("disk"),
        "create": lambda: store.create("new", MIB),
        "clone": lambda: store.clone("disk", "label", "new"),
        "grow": lambda: store.grow("disk", 8 * MIB),
        "changes": lambda: store.changes("disk", "label", None),
        "flatten": lambda: store.flatten("disk"),
        "fill": lambda: images.fill(file, "other"),
        "has_base": lambda: images.has_base(IMAGE),
        "import_base": lambda: images.import_base(IMAGE, file, "qcow2"),
        "export_disk": lambda: images.export_disk("disk", None, file.with_name("export")),
    }


def test_while_storage_is_frozen_every_call_fails_in_time_and_later_works(site: RbdSite, tmp_path: Path) -> None:
    """Bug 1834048."""
    file, _content = image_file(tmp_path, "qcow2")
    site.make("disk", BEFORE)
    site.store.make_snapshot("disk", "label")
    store = site.host(request_timeout=3)
    store.find("disk")
    calls = _calls(store, file)
    site.ceph.freeze()
    try:
        with ThreadPoolExecutor(len(calls)) as threads:
            outcomes = {name: threads.submit(_failure, call) for name, call in calls.items()}
            found = {name: outcome.result(120) for name, outcome in outcomes.items()}
    finally:
        site.ceph.thaw()
    assert {name: type(error) for name, error in found.items()} == dict.fromkeys(calls, errors.StorageUnreachable)
    assert store.find("disk") is not None
    store.set_owner("disk", "a 1")


def test_an_import_into_storage_that_freezes_fails_as_unreachable(
    bound: RbdSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, _content = image_file(tmp_path, "qcow2")
    real = qemu_img.to_network

    def frozen(*words: Any, **options: Any) -> None:
        bound.ceph.freeze()
        real(*words, **options)

    monkeypatch.setattr(qemu_img, "to_network", frozen)
    try:
        with pytest.raises(errors.StorageUnreachable):
            RbdImages(bound.host(request_timeout=3), 20).fill(file, "new")
    finally:
        bound.ceph.thaw()


def test_without_a_monitor_connected_hosts_read_on_and_others_fail_in_time(bound: RbdSite) -> None:
    bound.make("disk", BEFORE)
    connected, other = bound.host(connect_timeout=3), bound.host(connect_timeout=3)
    connected.find("disk")
    bound.ceph.kill_monitor()
    try:
        assert connected.find("disk") is not None
        with pytest.raises(errors.StorageUnreachable):
            connected.used_and_total()
        with pytest.raises(errors.StorageUnreachable):
            other.find("disk")
    finally:
        bound.ceph.start_monitor()
    patient = bound.host(connect_timeout=60)
    assert patient.find("disk") == other.find("disk")
    assert connected.used_and_total()


@pytest.mark.parametrize("wrong", ["keyring", "unreadable keyring", "key", "pool"])
def test_a_host_that_is_configured_wrong_says_what_to_look_at(site: RbdSite, tmp_path: Path, wrong: str) -> None:
    keyring = tmp_path / "keyring"
    if wrong == "key":
        subprocess.run(
            ["ceph-authtool", "-C", keyring, "--gen-key", "-n", "client.compute"], check=True, capture_output=True
        )
    elif wrong == "pool":
        keyring.write_text(site.ceph.keyring("compute").read_text())
    elif wrong == "unreadable keyring":
        keyring.mkdir()
    conf = tmp_path / "ceph.conf"
    text = site.ceph.configuration("compute").read_text()
    conf.write_text(re.sub("(?m)^keyring = .*$", f"keyring = {keyring}", text))
    store = site.host(conf=conf, pool="none" if wrong == "pool" else POOL)
    with pytest.raises(errors.Misconfigured) as failure:
        store.find("disk")
    assert str(conf) in failure.value.details
    assert str(tmp_path) not in failure.value.message


def _failure(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except errors.CausewayError as error:
        return error
    return None
