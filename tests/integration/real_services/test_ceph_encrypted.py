"""A real guest with an encrypted volume in a real Ceph: Cinder made it, a real Barbican has its key, and QEMU decrypts it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.functional.processes.own_process import until
from tests.integration.real_services import ceph
from tests.integration.real_services.barbican import ROLE, Barbican
from tests.integration.real_services.ceph_services import CEPH, CephServices
from tests.integration.real_services.configuration import PASSWORD, Options
from tests.integration.real_services.guests import OPTIONS, GuestCloud, Networking, guest_cloud_here
from tests.integration.real_services.machines import Machines
from tests.integration.real_services.network_journeys import CELLS, ELSEWHERE, SOURCE
from tests.integration.real_services.test_ceph_volumes import disk, goes_live_to, goes_to, storage, volume
from tests.integration.real_services.test_main_job import volume_is
from tests.integration.real_services.test_real_guests import ended, is_whole, report

pytestmark = [pytest.mark.timeout(900), pytest.mark.libvirt]
ENCRYPTED = "encrypted"
LUKS = b"LUKS\xba\xbe"
# What nobody has written to reads as garbage, which the guest would take for somebody's data.
BLANKED = b"""#!/bin/sh
(while [ ! -b /dev/vdb ]; do sleep 0.2; done
dd if=/dev/vdb bs=16 count=1 2>/dev/null | grep -q causeway-marker ||
dd if=/dev/zero of=/dev/vdb bs=65536 count=1 conv=fsync 2>/dev/null
echo BLANKED > /dev/console) &
"""


class EncryptingServices(CephServices):
    """Cinder keeps keys in Barbican, where the conductors' account may read them."""

    def __init__(self, directory: Path, machines: Machines, **options: Any) -> None:
        super().__init__(directory, machines, **options)
        self.barbican = Barbican(self)

    def _cinder(self) -> Options:
        return {
            **super()._cinder(),
            "key_manager": {"backend": "barbican"},
            "barbican": {
                "barbican_endpoint": self.barbican.url,
                "auth_endpoint": self.addresses.auth_url,
            },
        }

    def _fill_catalog(self) -> None:
        super()._fill_catalog()
        with self.connection(project="admin") as cloud:
            identity = cloud.identity
            service, roles = identity.find_project("service"), {role.name: role for role in identity.roles()}
            own = identity.create_user(name="barbican", password=PASSWORD, domain_id="default")
            for role in ("service", "admin"):
                identity.assign_project_role_to_user(service, own, roles[role])
            reader = identity.create_role(name=ROLE)
            identity.assign_project_role_to_user(service, identity.find_user("causeway"), reader)
            self.barbican.add_to_catalog(identity)
        self.barbican.start()


@pytest.fixture(scope="module")
def cloud() -> Iterator[GuestCloud]:
    if reason := ceph.missing():
        pytest.skip(reason)
    options = {**OPTIONS, "conductor": {**OPTIONS.get("conductor", {}), "credentials_key": "not for hosts" * 3}}
    networking = Networking(Machines, EncryptingServices)
    with guest_cloud_here(cells=CELLS, storage=(CEPH,), networking=networking, options=options) as cloud:
        block_storage = cloud.admin.block_storage
        made = block_storage.create_type(name=ENCRYPTED, extra_specs={"volume_backend_name": CEPH})
        how = {"provider": "luks", "cipher": "aes-xts-plain64", "key_size": 256, "control_location": "front-end"}
        answer = block_storage.post(f"/types/{made.id}/encryption", json={"encryption": how})
        assert answer.status_code == 200, answer.text
        yield cloud
        cloud.delete_all()


def content(cloud: GuestCloud, data: Any, to: Path) -> bytes:
    """Of the volume as Ceph has it."""
    storage(cloud).run("rbd", "export", "--no-progress", f"volumes/volume-{data.id}", str(to))
    return to.read_bytes()


def test_an_encrypted_volume_goes_with_its_guest_and_ceph_never_sees_its_data(
    cloud: GuestCloud, tmp_path: Path
) -> None:
    data, server = (
        volume(cloud, volume_type=ENCRYPTED),
        cloud.boot_on(SOURCE, config_drive=True, user_data=base64.b64encode(BLANKED).decode()),
    )
    assert data.is_encrypted
    # By its user, whose token reads the key.
    cloud.member.compute.create_volume_attachment(server, volumeId=data.id)
    volume_is(cloud, data, "in-use")
    until(
        lambda: cloud.member.compute.get_server_console_output(server)["output"],
        lambda said: "BLANKED" in said,
        "the guest",
    )
    cloud.member.compute.reboot_server(server.id, "HARD")
    ended(cloud, server, "ACTIVE")
    before = report(cloud, server, after_boot=1)
    assert before.lines("vdb") == 1
    assert disk(cloud, server, "vdb").find(".//encryption[@format='luks']") is not None

    # By an administrator, for whom the conductors' account reads it.
    goes_to(cloud, server, ELSEWHERE)
    now = report(cloud, server, after_boot=before.boot)
    assert (now.first("vdb"), now.lines("vdb")) == (before.first("vdb"), before.lines("vdb") + 1)
    is_whole(cloud, server, data)
    goes_live_to(cloud, server, SOURCE)
    is_whole(cloud, server, data)

    cloud.member.compute.delete_volume_attachment(server, data.id)
    volume_is(cloud, data, "available")
    seen = content(cloud, data, tmp_path / "exported")
    assert seen.startswith(LUKS) and before.first("vdb").encode() not in seen
