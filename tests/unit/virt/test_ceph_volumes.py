"""Volumes in Ceph: what a host must have is asked before a guest needs it, and no key gets where it does not belong."""

from __future__ import annotations

import base64
import logging
import socket
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

pytest.importorskip("libvirt")

from causeway.errors import ClaimRefused, DecryptionRefused, GuestFailed
from causeway.model.block_device import BlockDevice
from causeway.model.volume_keys import Passphrase
from causeway.virt.libvirt.guest_xml.domain_xml import disk_xml
from causeway.virt.libvirt.guest_xml.rbd_source import CephAccess, Monitor, RbdSource
from causeway.virt.libvirt.storage import qemu_img
from causeway.virt.libvirt.storage.ceph_volumes import CephAccount
from causeway.virt.libvirt.storage.volume_secrets import check_provider
from causeway.virt.libvirt.storage.volumes import Volumes
from tests.unit.virt.ceph_host import DATA, KEY, KEYRING, SECRET, CephHost, no_shares

MONITORS = (Monitor("10.0.0.1", "6789"), Monitor("fd00::1", "6790"))


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CephHost:
    found = CephHost(tmp_path)
    monkeypatch.setattr(qemu_img, "run", found.run)
    return found


def volumes(host: CephHost) -> Volumes:
    return Volumes(
        "host1", no_shares(host.folder), host.folder, lambda _volume: set(), host.volumes(), host.volume_secrets()
    )


def device(**data: object) -> BlockDevice:
    info = {"driver_volume_type": "rbd", "data": {**DATA, **data}}
    return BlockDevice("b", "s", "volume", "volume", device_name="/dev/vdb", volume_id="v", connection_info=info)


def test_a_volume_is_described_as_the_volume_service_says(host: CephHost) -> None:
    host.has_secret(is_private=False)
    disk = volumes(host).connect("server", device(access_mode="ro"))
    assert disk.source == RbdSource("volumes/volume-1", CephAccess(MONITORS, "cinder", SECRET))
    assert (disk.disk_format, disk.cache, disk.read_only, disk.serial) == ("raw", "none", True, "v")


def test_a_check_opens_the_image_with_the_key_that_libvirt_has(host: CephHost) -> None:
    host.has_secret(is_private=False)
    volumes(host).check(device().connection_info or {})
    (options,) = host.opened
    assert (options["pool"], options["image"], options["user"], options["key"]) == (
        "volumes",
        "volume-1",
        "cinder",
        KEY,
    )
    assert options["server"] == [{"host": "10.0.0.1", "port": "6789"}, {"host": "fd00::1", "port": "6790"}]


def test_a_host_without_secret_and_keyring_is_refused_before_anything_is_moved_to_it(host: CephHost) -> None:
    with pytest.raises(ClaimRefused, match=f"no secret {SECRET}"):
        volumes(host).check(device().connection_info or {})
    with pytest.raises(GuestFailed, match=f"no secret {SECRET}"):
        volumes(host).connect("server", device())


@pytest.mark.parametrize("sent", [True, False])
def test_the_secret_is_made_of_a_keyring_that_is_sent_or_that_the_host_has(host: CephHost, sent: bool) -> None:
    if not sent:
        host.has_keyring()
    volumes(host).connect("server", device(keyring=KEYRING if sent else None))
    secret = host.secrets[SECRET]
    assert secret.is_private
    assert secret.content == base64.b64decode(KEY)
    volumes(host).check(device(keyring=KEYRING if sent else None).connection_info or {})
    assert host.opened[0]["key"] == KEY


def test_a_secret_whose_maker_died_before_it_had_a_value_gets_it(host: CephHost) -> None:
    host.has_keyring()
    volumes(host).connect("server", device())
    host.secrets[SECRET].content = None
    volumes(host).connect("server", device())
    assert host.secrets[SECRET].content == base64.b64decode(KEY)


def test_two_accounts_do_not_overwrite_each_others_key(host: CephHost) -> None:
    host.has_keyring()
    volumes(host).connect("server", device())
    other = KEYRING.replace("client.cinder", "client.other").replace(KEY, "AAAA")
    with pytest.raises(GuestFailed, match="another account of Ceph than other"):
        volumes(host).connect("server", device(auth_username="other", keyring=other))
    assert host.secrets[SECRET].content == base64.b64decode(KEY)


def test_the_operators_secret_stays_as_it_is(host: CephHost) -> None:
    host.has_secret(is_private=True)
    host.has_keyring(KEYRING.replace(KEY, "AAAA"))
    volumes(host).connect("server", device())
    assert host.secrets[SECRET].content == base64.b64decode(KEY)


def test_a_private_secret_is_enough_if_a_monitor_listens(host: CephHost) -> None:
    host.has_secret(is_private=True)
    with socket.create_server(("127.0.0.1", 0)) as monitor:
        there = {"hosts": ["127.0.0.1"], "ports": [str(monitor.getsockname()[1])]}
        volumes(host).check(device(**there).connection_info or {})
    with pytest.raises(ClaimRefused, match="No monitor of Ceph can be reached"):
        volumes(host).check(device(**there).connection_info or {})
    with pytest.raises(GuestFailed, match="secret is private"):
        volumes(host).size_in_ceph(device(**there))


@pytest.mark.parametrize(
    ("said", "refusal"),
    [
        ("qemu-img: Could not open 'json:{}': Unknown driver 'rbd'", "install qemu-block-extra"),
        ("error reading header from volume-1: No such file or directory", "volumes/volume-1 in Ceph can't be opened"),
    ],
)
def test_a_check_says_why_an_image_can_not_be_opened(host: CephHost, said: str, refusal: str) -> None:
    def refuse() -> None:
        raise GuestFailed("'qemu-img' failed.", details=said)

    host.has_secret(is_private=False)
    host.opens = refuse
    with pytest.raises(ClaimRefused, match=refusal) as refused:
        volumes(host).check(device().connection_info or {})
    assert said in refused.value.details


def test_a_ceph_that_does_not_answer_is_not_waited_for(host: CephHost) -> None:
    def hang() -> None:
        raise GuestFailed("'qemu-img' did not end within 20 s.")

    host.has_secret(is_private=False)
    host.opens = hang
    with pytest.raises(ClaimRefused, match="Ceph did not open image volumes/volume-1 within 20 s"):
        volumes(host).check(device().connection_info or {})


def test_what_the_volume_service_says_comes_before_the_options_of_the_host(host: CephHost) -> None:
    host.has_secret(is_private=False)
    host.secrets["0" * 8 + SECRET[8:]] = host.secrets[SECRET]
    ceph = host.volumes(CephAccount("compute", "0" * 8 + SECRET[8:]))
    assert ceph.source(DATA).access == CephAccess(MONITORS, "cinder", SECRET)
    own = {**DATA, "auth_enabled": False, "auth_username": None, "secret_uuid": None}
    assert ceph.source(own).access == CephAccess(MONITORS, "compute", "0" * 8 + SECRET[8:])
    mixed = {**DATA, "secret_uuid": None}
    assert ceph.source(mixed).access == CephAccess(MONITORS, "cinder", "0" * 8 + SECRET[8:])


def test_a_ceph_without_accounts_needs_no_secret(host: CephHost) -> None:
    plain = {**DATA, "auth_enabled": False, "auth_username": None, "secret_uuid": None}
    assert host.volumes().source(plain).access == CephAccess(MONITORS)
    assert host.volumes().size(plain) == 1 << 30
    assert "user" not in host.opened[0]


@pytest.mark.parametrize(
    "data",
    [
        {"name": "volume-1"},
        {"name": "volumes/volume-1:conf=/etc/shadow"},
        {"hosts": ["10.0.0.1' x='"]},
        {"ports": ["6789"]},
        {"ports": ["x", "y"]},
        {"auth_username": "a b"},
        {"auth_username": None},
        {"secret_uuid": None},
        {"secret_uuid": "/etc/passwd"},
    ],
)
def test_what_would_be_no_name_in_a_definition_is_refused(host: CephHost, data: dict[str, object]) -> None:
    with pytest.raises(GuestFailed, match="describes a volume of the type 'rbd' without"):
        host.volumes().source({**DATA, **data})


@pytest.mark.parametrize(
    "keyring", [f"key = {KEY}", f"[client.cinder]\nkey\n{KEY}", "[client.cinder]\nkey = %%%\n", f"[client\nkey={KEY}"]
)
def test_a_bad_keyring_is_said_and_nothing_of_it(
    host: CephHost, caplog: pytest.LogCaptureFixture, keyring: str
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(GuestFailed, match="keyring of Ceph's account cinder is none") as refused:
        host.volumes().source({**DATA, "keyring": keyring})
    assert refused.value.__cause__ is None
    assert KEY not in f"{refused.value}{refused.value.details}{caplog.text}"


def test_an_account_finds_its_own_key_among_others(host: CephHost) -> None:
    host.has_keyring("[client.other]\nkey = AAAA\n" + KEYRING)
    volumes(host).connect("server", device())
    assert host.secrets[SECRET].content == base64.b64decode(KEY)


def test_a_guest_of_an_encrypted_volume_names_the_secret_with_its_key_until_it_is_detached(host: CephHost) -> None:
    host.has_secret(is_private=False)
    found, encrypted = volumes(host), device(encrypted=True)
    found.secrets.hold("v", Passphrase("luks", "c0ffee"))
    assert (host.secrets["v"].is_private, host.secrets["v"].content) == (True, b"c0ffee")
    disk = found.connect("server", encrypted)
    xml = ET.fromstring(disk_xml(disk))
    secret = xml.find("encryption[@format='luks']/secret[@type='passphrase']")
    assert secret is not None and secret.get("uuid") == "v"
    assert "c0ffee" not in disk_xml(disk)
    found.disconnect("server", encrypted)
    found.disconnect("server", encrypted)
    assert "v" not in host.secrets


@pytest.mark.parametrize("provider", ["luks2", "plain", "os_brick.encryptors.cryptsetup.CryptsetupEncryptor", ""])
def test_what_qemu_does_not_decrypt_is_refused_by_its_name(host: CephHost, provider: str) -> None:
    with pytest.raises(DecryptionRefused, match=f"provider '{provider}'"):
        check_provider(provider)
    with pytest.raises(DecryptionRefused):
        host.volume_secrets().hold("v", Passphrase(provider, "c0ffee"))
    assert host.secrets == {}


@pytest.mark.parametrize("provider", ["luks", "nova.volume.encryptors.luks.LuksEncryptor"])
def test_luks_is_known_by_all_its_names(provider: str) -> None:
    check_provider(provider)


def test_nothing_of_a_volume_in_ceph_stays_on_the_host(host: CephHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Volumes, "_connector", lambda *_given: pytest.fail("os-brick is asked"))
    host.has_secret(is_private=False)
    volumes(host).connect("server", device())
    volumes(host).disconnect("server", device())


def test_limits_of_block_storage_are_those_of_the_guests_disk(host: CephHost) -> None:
    host.has_secret(is_private=False)
    specs = {"total_iops_sec": "200", "write_bytes_sec": 4096, "vendor:burst": "yes"}
    disk = volumes(host).connect("server", device(qos_specs=specs))
    tune = ET.fromstring(disk_xml(disk)).find("iotune")
    assert tune is not None
    assert {each.tag: each.text for each in tune} == {"total_iops_sec": "200", "write_bytes_sec": "4096"}
    assert ET.fromstring(disk_xml(volumes(host).connect("server", device()))).find("iotune") is None
    with pytest.raises(GuestFailed, match="is no number"):
        volumes(host).connect("server", device(qos_specs={"total_iops_sec": "many"}))
