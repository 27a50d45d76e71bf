"""What hypervisors, networks and processes die of while real guests move: each at each phase of each way to go.

One server after the other. A move is held at a point for some seconds, and meanwhile the accident happens. Afterwards the server
must be somewhere, once, with its disk: running, or off if its own QEMU was killed, and then it starts again.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import openstack.exceptions
from tenacity import RetryError

from causeway.errors import GuestFailed
from causeway.model.states import PowerState
from tests.faults.cases import FORWARD, ROLLED_BACK, Case
from tests.faults.clouds.libvirt_site import LibvirtSite
from tests.faults.clouds.site import until
from tests.faults.moves import look
from tests.faults.moves.users import mark

FLAVOR = "anywhere"
# Seconds: a move is held for so long, and the accident has happened by then; the network is cut for so long.
HELD, CUT = 6, 15
# Emulated guests, leases that end, hosts that are asked again.
PATIENCE = 150.0
# MiB/s: a guest's memory is on its way for some seconds.
OPTIONS = {"libvirt": {"live_migration_bandwidth": 6}}


@dataclass(frozen=True)
class Journey:
    """``begin``: asks for it, given server, source and target. ``points``: its phases."""

    name: str
    target: str
    points: tuple[str, ...]
    begin: Callable[[LibvirtSite, str, str], None]
    apart: bool = False

    @property
    def group(self) -> str:
        return self.name


def _migrate(site: LibvirtSite, uuid: str, target: str) -> None:
    site.admin.compute.migrate_server(uuid, host=target)


def _migrate_live(site: LibvirtSite, uuid: str, target: str) -> None:
    site.admin.compute.live_migrate_server(uuid, host=target, block_migration="auto")


SOURCE, NEIGHBOUR, ELSEWHERE = "cell1-host1", "cell1-host2", "cell2-host1"
JOURNEYS = (
    Journey(
        "warm",
        ELSEWHERE,
        (
            "warm.part.out",
            "resize.FinishAtTarget.do.before",
            "resize.ShowTarget.do.before",
        ),
        _migrate,
    ),
    Journey("live", NEIGHBOUR, ("live.transfer.in", "live_migration.ArriveAtTarget.do.before"), _migrate_live),
    Journey(
        "live across cells",
        ELSEWHERE,
        ("live.transfer.in", "live_migration.SwitchInstanceMapping.do.before"),
        _migrate_live,
    ),
    Journey(
        "near-live",
        ELSEWHERE,
        (
            "near_live_migration.WakeGuest.do.before",
            "near_live_migration.SwitchInstanceMapping.do.before",
            "near_live_migration.LeaveSourceCell.do.before",
        ),
        _migrate_live,
        apart=True,
    ),
)


# accidents: given the site, the server and the target


def _kill_qemu(site: LibvirtSite, uuid: str, host: str) -> None:
    for path in (site.state.lab / "hosts" / host / "run" / "qemu").glob(f"*{uuid}*.pid"):
        with suppress(ProcessLookupError, FileNotFoundError):
            os.kill(int(path.read_text()), signal.SIGKILL)


def _kill_libvirtd(site: LibvirtSite, host: str) -> None:
    os.kill(int((site.state.lab / "hosts" / host / "libvirtd.pid").read_text()), signal.SIGKILL)


def _cut(site: LibvirtSite, host: str) -> None:
    with site.guests.lab.network.cut_off(host):
        time.sleep(CUT)


def _kill_us(site: LibvirtSite) -> None:
    site.kill()
    site.disarm()
    site.restart()


ACCIDENTS: dict[str, Callable[[LibvirtSite, str, str], None]] = {
    "source QEMU": lambda site, uuid, _target: _kill_qemu(site, uuid, SOURCE),
    "target QEMU": lambda site, uuid, target: _kill_qemu(site, uuid, target),
    "source libvirtd": lambda site, _uuid, _target: _kill_libvirtd(site, SOURCE),
    "target libvirtd": lambda site, _uuid, target: _kill_libvirtd(site, target),
    "network": lambda site, _uuid, target: _cut(site, target),
    # Conductor, computes, API.
    "everything of ours": lambda site, _uuid, _target: _kill_us(site),
}


@contextmanager
def accident_site(directory: Path) -> Iterator[LibvirtSite]:
    """With a host more in each cell, and a flavor that fits everywhere."""
    made = LibvirtSite(directory, hosts_per_cell=2)
    for group, options in OPTIONS.items():
        made.options.setdefault(group, {}).update(options)
    with made as site:
        assert isinstance(site, LibvirtSite)
        if site.admin.compute.find_flavor(FLAVOR) is None:
            site.admin.compute.create_flavor(name=FLAVOR, id=FLAVOR, vcpus=1, ram=128, disk=1)
        yield site


def run_case(site: LibvirtSite, journey: Journey, point: str, accident: str) -> Case[Journey]:
    case = Case(journey, accident, point)
    uuid = _boot(site)
    with _apart(site) if journey.apart else nullcontext():
        site.arm({point: {"delay": HELD, "times": 1}})
        journey.begin(site, uuid, journey.target)
        case.reached = bool(until(lambda: [hit for hit in site.hits() if hit["point"] == point], bool, PATIENCE))
        happened = threading.Thread(target=ACCIDENTS[accident], args=(site, uuid, journey.target))
        happened.start()
        happened.join()
        found = [] if until(lambda: look.is_settled(site, uuid), bool, PATIENCE) else ["not settled"]
    site.disarm()
    if not found:
        found += _use(site, uuid)
        case.end = FORWARD if site.admin.compute.get_server(uuid).compute_host == journey.target else ROLLED_BACK
    site.admin.compute.delete_server(uuid)
    gone = until(lambda: look.record(site, uuid), lambda record: record is None, 60)
    found += ["not deleted"] if gone is not None else look.remains(site, uuid)
    case.complain(look.rated([*found, *(text for each in look.audit(site).values() for text in each)]))
    return case


def _apart(site: LibvirtSite) -> AbstractContextManager[None]:
    return site.guests.lab.network.hypervisors_apart(SOURCE)


def _boot(site: LibvirtSite) -> str:
    made = site.admin.compute.create_server(
        name="server",
        flavor_id=FLAVOR,
        image_id=site.image_id,
        networks=[{"uuid": site.network_id}],
        availability_zone=f"nova:{SOURCE}",
    )
    site.admin.compute.wait_for_server(made, wait=PATIENCE)
    site.guests.mark(made.id, mark(made.id))
    return str(made.id)


def _use(site: LibvirtSite, uuid: str) -> list[str]:
    """What is wrong with a server that its user continues to use: it is kept where it is, and boots."""
    compute, found = site.admin.compute, []
    running = [host for host, state in site.guests.power_states(uuid).items() if state is PowerState.RUNNING]
    if len(running) > 1:
        found.append(f"guests: it runs on {running}")
    if compute.get_server(uuid).status == "VERIFY_RESIZE":
        compute.confirm_server_resize(uuid)
        until(lambda: look.is_settled(site, uuid), bool, PATIENCE)
    if not running:
        # Killed: that it is off is noticed, and reported.
        until(lambda: compute.get_server(uuid).power_state, lambda state: state != PowerState.RUNNING, PATIENCE)
    until(lambda: look.is_settled(site, uuid), bool, PATIENCE)
    if compute.get_server(uuid).status == "SHUTOFF":
        compute.start_server(uuid)
    else:
        compute.reboot_server(uuid, "HARD")
    until(lambda: look.is_settled(site, uuid), bool, PATIENCE)
    found += until(lambda: look.complaints(site, uuid, mark(uuid)), lambda seen: not seen, 30)
    return found


def run_all(
    journey: str, point: str, accidents: Iterable[str], report: Callable[[Case[Journey]], None]
) -> dict[str, float]:
    """Reports those whose journey and point have this in their names. Returns how many seconds each accident took in all."""
    seconds = {}
    directory = Path(tempfile.mkdtemp(prefix="causeway-accidents-"))
    try:
        with accident_site(directory) as site:
            for accident in accidents:
                began = time.monotonic()
                for each in (each for each in JOURNEYS if journey in each.name):
                    for at in (at for at in each.points if point in at):
                        report(look_at(site, each, at, accident))
                seconds[accident] = time.monotonic() - began
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return seconds


def look_at(site: LibvirtSite, journey: Journey, point: str, accident: str) -> Case[Journey]:
    """`run_case`; what can't be looked at is no good end."""
    try:
        return run_case(site, journey, point, accident)
    except (GuestFailed, RetryError, openstack.exceptions.SDKException) as failure:
        return Case(journey, accident, point, look.rated([f"not looked at: {failure}"]), reached=True)
