"""A guest goes to another host of the lab without stopping, and what is left when something dies meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lab_guests import Cloud, Guest, Net, image_lines

from causeway.errors import CausewayError, ClaimRefused, GuestFailed
from causeway.virt.driver import RootDisk
from causeway.virt.live import LiveOptions, LiveProgress, LiveSource, LiveTarget, Presence

if TYPE_CHECKING:
    from causeway.virt.lab.hosts import LibvirtEndpoint
    from causeway.virt.libvirt.driver import LibvirtDriver

# MiB/s: slow enough that a guest of 128 MiB can be caught on its way.
SLOW = LiveOptions(bandwidth=2)
# A process that says each second, on the console, that it is still the same one.
TICKING = {
    "openstack/latest/user_data": b"#!/bin/sh\n"
    b"id=$(cat /proc/sys/kernel/random/uuid)\n"
    b"(n=0; while sleep 0.5; do n=$((n+1)); echo $n > /disk/ticks; sync; echo TICK id=$id n=$n > /dev/console; done) &\n"
}


def no_word(_progress: LiveProgress) -> None:
    pass


def prepared(guest: Guest, target: LibvirtDriver) -> LiveTarget:
    source = guest.driver.live_source(guest.instance)
    target.check_live_target(source)
    return target.prepare_live_target(guest.spec(guest.new_disk()), source)


def test_a_guest_goes_to_another_host_and_does_not_notice(
    cloud: Cloud, network: Net, endpoints: dict[str, LibvirtEndpoint]
) -> None:
    guest = cloud.guest(vifs=[network.port()])
    guest.volumes.append(cloud.volume(guest))
    guest.config_drive = TICKING
    marker = guest.spawn().last("CAUSEWAY-MARKER", disk="vda")["first"]
    before = guest.wait(lambda said: "TICK id=" in said.text).last("TICK")
    source, target = cloud.drivers
    seen: list[LiveProgress] = []

    where = prepared(guest, target)
    assert where.address == endpoints["cell2-host1"].address
    source.live_migrate(guest.spec(), where, LiveOptions(), seen.append)

    assert source.presence(guest.uuid) is Presence.ABSENT
    assert target.presence(guest.uuid) is Presence.RUNNING
    source.destroy(guest.uuid, guest.vifs, guest.volumes, destroy_disks=True)
    assert not source._disks.folder(guest.uuid).exists()
    guest.driver = target
    after = guest.wait(lambda said: "TICK id=" in said.text).last("TICK")
    assert after["id"] == before["id"]
    assert guest.console().boots == 0
    assert network.lab.network.ping(network.id, guest.vifs[0].fixed_ips[0].address).received
    # The definition for the next start is this host's.
    target.power_off(guest.uuid, timeout=60)
    again = target.power_on(guest.spec()) and guest.wait_for_boot()
    assert again.last("CAUSEWAY-GUEST")["boot"] == "2"
    assert again.last("CAUSEWAY-MARKER", disk="vda")["first"] == marker
    # One line by each boot: the volume was the same one all the time.
    assert len(image_lines(cloud.path_of(guest.volumes[0]))) == 2
