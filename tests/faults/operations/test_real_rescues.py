"""A real guest is rescued and unrescued over the API, while everything but QEMU gets SIGKILL in the middle of both."""

from __future__ import annotations

from pathlib import Path

import pytest

from causeway.virt.lab.hosts import missing
from tests.faults.clouds.libvirt_site import LibvirtSite
from tests.faults.clouds.site import until
from tests.faults.moves import look
from tests.faults.moves.batches import RULES
from tests.faults.moves.users import mark
from tests.faults.operations import subjects
from tests.faults.operations.subjects import Subject

REASON = missing()
pytestmark = [pytest.mark.libvirt, pytest.mark.timeout(600), pytest.mark.skipif(REASON is not None, reason=str(REASON))]

# Guests boot slowly without KVM, and are asked to shut down before.
PATIENCE = 120.0


def dies(site: LibvirtSite, subject: Subject, action: str, point: str) -> None:
    """The action is asked for, and continues in another life of everything."""
    site.arm({point: RULES["crash"] | {"times": 1}})
    answer = subjects.act(site, subject, action)
    assert answer.is_accepted, answer
    assert until(lambda: [hit["point"] for hit in site.hits()], lambda seen: point in seen, PATIENCE)
    site.kill()
    site.disarm()
    site.restart()


def test_a_real_guest_is_rescued_and_has_its_own_disk_again(tmp_path: Path) -> None:
    with LibvirtSite(tmp_path / "state") as site:
        subject = Subject()
        assert subjects.create(site, subject).is_accepted
        subjects.wait_for(site, subject, "ACTIVE", PATIENCE)
        uuid = str(subject.uuid)
        site.guests.mark(uuid, mark(uuid))
        (host,) = site.guests.power_states(uuid)

        dies(site, subject, "rescue", "compute.rescue_guest.after")
        subjects.wait_for(site, subject, "RESCUE", PATIENCE)
        said = until(lambda: site.guests._report(uuid, host), lambda seen: "vdb" in seen.markers, PATIENCE)
        # Its own disk is the second one, with a file system, and it booted another.
        assert said.first("vdb") == "foreign" and site.guests.marks(uuid, host, mark(uuid)) == 0
        assert site.guests.disks(uuid) == {host: ["disks", "rescue"]}
        assert look.audit(site) == {}

        dies(site, subject, "unrescue", "unrescue.EndUnrescue.do.before")
        subjects.wait_for(site, subject, "ACTIVE", PATIENCE)
        until(lambda: look.is_settled(site, uuid), bool, PATIENCE)
        until(lambda: site.guests._report(uuid, host), lambda seen: "vdb" not in seen.markers, PATIENCE)
        assert site.guests.marks(uuid, host, mark(uuid)) == 1
        assert site.guests.disks(uuid) == {host: ["disks"]}
        assert look.audit(site) == {}
