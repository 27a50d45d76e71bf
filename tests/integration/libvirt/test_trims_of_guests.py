"""The agent in a guest returns unused blocks of its file systems to the disk."""

from __future__ import annotations

import pytest

from causeway.errors import GuestFailed
from causeway.model.image import ImageMeta
from causeway.model.states import PowerState
from causeway.virt.libvirt import agent, power
from causeway.virt.libvirt.guest_xml.domain_xml import agent_listens
from tests.integration.libvirt.lab_guests import STOP_AGENT, Cloud, Guest

MIB = 2**20
# Writes and deletes 24 MiB: the disk keeps what its file system no longer uses.
DELETE = b"""#!/bin/sh
dd if=/dev/urandom of=/disk/large bs=65536 count=384
sync
rm /disk/large
sync
echo CAUSEWAY-DELETED > /dev/console
"""


def booted(cloud: Cloud, script: bytes, says: str) -> Guest:
    """A guest with an agent, after it has run a script."""
    guest = cloud.guest()
    guest.instance.image_meta = ImageMeta("the-image", properties={"hw_qemu_guest_agent": "yes"})
    guest.config_drive = {"openstack/latest/user_data": script}
    guest.spawn()
    guest.wait(lambda said: says in said.text and listens(guest))
    return guest


def listens(guest: Guest) -> bool:
    return agent_listens(
        guest.driver._connection.call("describe a guest", lambda to: power.find(to, guest.uuid).XMLDesc())
    )


def test_the_disk_shrinks(cloud: Cloud) -> None:
    guest = booted(cloud, DELETE, "CAUSEWAY-DELETED")
    before = guest.driver.disk_bytes(guest.uuid)
    assert before is not None
    guest.driver.trim_guest(guest.instance)
    guest.wait(lambda said: "CAUSEWAY-AGENT trimmed" in said.text)
    assert (guest.driver.disk_bytes(guest.uuid) or 0) < before - 20 * MIB
    guest.driver.pause(guest.uuid)
    with pytest.raises(GuestFailed, match="does not run here"):
        guest.driver.trim_guest(guest.instance)


def test_an_agent_that_hangs_is_not_waited_for_without_end(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    guest = booted(cloud, STOP_AGENT, "CAUSEWAY-MUTE")
    monkeypatch.setattr(agent, "_TRIM_SECONDS", 1)
    with pytest.raises(GuestFailed, match="failed to trim the file systems") as failure:
        guest.driver.trim_guest(guest.instance)
    assert "agent" in failure.value.details
    assert guest.driver.inspect(guest.uuid).power_state is PowerState.RUNNING


def test_a_guest_without_an_agent_is_not_trimmed(cloud: Cloud) -> None:
    guest = cloud.guest()
    guest.spawn()
    with pytest.raises(GuestFailed, match="hw_qemu_guest_agent"):
        guest.driver.trim_guest(guest.instance)
    # It was started without a channel.
    guest.instance.image_meta = ImageMeta("the-image", properties={"hw_qemu_guest_agent": "yes"})
    with pytest.raises(GuestFailed, match="no agent in the guest"):
        guest.driver.trim_guest(guest.instance)
