"""A guest's clock stands still with the guest: its agent sets it when the guest continues."""

from __future__ import annotations

from causeway.model.image import ImageMeta
from causeway.model.states import PowerState
from causeway.virt.libvirt import power
from causeway.virt.libvirt.guest_xml.domain_xml import agent_listens
from tests.integration.libvirt.lab_guests import Cloud, Guest


def settings(guest: Guest) -> int:
    """How often the agent in the guest has set its clock."""
    return guest.console().text.count("CAUSEWAY-AGENT clock")


def listens(guest: Guest) -> bool:
    """Whether the agent can be asked."""
    return agent_listens(
        guest.driver._connection.call("describe a guest", lambda to: power.find(to, guest.uuid).XMLDesc())
    )


def test_the_clock_is_set_when_a_guest_continues(cloud: Cloud) -> None:
    guest = cloud.guest()
    guest.instance.image_meta = ImageMeta("the-image", properties={"hw_qemu_guest_agent": "yes"})
    guest.spawn()
    guest.wait(lambda _said: listens(guest))
    guest.driver.pause(guest.uuid)
    assert settings(guest) == 0
    guest.driver.unpause(guest.uuid)
    guest.wait(lambda _said: settings(guest) == 1)
    guest.driver.suspend(guest.uuid)
    guest.driver.resume(guest.spec())
    guest.wait(lambda _said: settings(guest) == 2)


def test_a_guest_without_an_agent_continues_as_it_is(cloud: Cloud) -> None:
    guest = cloud.guest()
    guest.spawn()
    guest.driver.pause(guest.uuid)
    guest.driver.unpause(guest.uuid)
    assert guest.driver.inspect(guest.uuid).power_state is PowerState.RUNNING
