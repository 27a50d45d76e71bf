"""A host whose disk is broken, or on which builds fail, takes no servers from the hosts beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from causeway import errors
from causeway.audit import audit_embedded
from causeway.cli.status import _folders
from causeway.rpc.transport import Outgoing, Verdict
from causeway.store.cell import hosts
from tests.functional.servers.moves_cloud import Cloud, until

CLOUD: dict[str, Any] = {"hosts_per_cell": 3, "overrides": {"scheduler": {"host_state_max_age": 0.0}}}
pytestmark = [
    pytest.mark.embedded("breaks hosts, and has them report"),
    # An operator has to look at the host.
    pytest.mark.expects_errors("is not chosen for guests", "build_guest failed unexpectedly"),
]

GEN1 = ["cell1-host1", "cell1-host2", "cell1-host3"]


@contextmanager
def unwritable(cloud: Cloud, host: str) -> Iterator[None]:
    """There is a file in place of the host's folder of disks."""
    folder = cloud.parts.state.host(host) / "instances"
    kept = folder.rename(folder.with_name("instances.off"))
    folder.touch()
    try:
        yield
    finally:
        folder.unlink()
        kept.rename(folder)


def reported(cloud: Cloud, *names: str) -> None:
    """The hosts have reported; the scheduler reads that for the next request."""
    for name in names:
        cloud.parts.computes[name]._reporter.report_alive()


@pytest.fixture(autouse=True)
def afterwards(cloud: Cloud) -> Iterator[None]:
    """All hosts can be used again, and nothing is left on any."""
    yield
    cloud.heal()
    for name in GEN1:
        with cloud.parts.computes[name].host.failed_builds.counted():
            pass
    reported(cloud, *GEN1)
    cloud.settle()
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


def breaks(cloud: Cloud, monkeypatch: pytest.MonkeyPatch, host: str, failure: Exception) -> list[str]:
    """The host fails to make guests; the servers whose guests it was to make."""
    asked = []

    def spawn(spec: Any, **_named: Any) -> None:
        asked.append(spec.instance.uuid)
        raise failure

    monkeypatch.setattr(cloud.driver(host), "spawn", spawn)
    return asked


def preferred(cloud: Cloud) -> str:
    """The host that the scheduler would choose next."""
    server = cloud.boot()
    host = str(cloud.show(server).compute_host)
    cloud.member.compute.delete_server(server)
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")
    return host


def test_builds_come_up_beside_a_host_that_can_not_write_its_disks(cloud: Cloud) -> None:
    """1742102, 1671648, 1784353 on Launchpad: before it has reported that, and after."""
    broken = preferred(cloud)
    database = cloud.cell("cell1")
    with unwritable(cloud, broken):
        first = [cloud.boot() for _ in range(2)]
        reported(cloud, broken)
        then = [cloud.boot() for _ in range(2)]
        assert broken not in {cloud.show(server).compute_host for server in [*first, *then]}
        level, says = _folders(hosts.list_nodes(database))
        assert level > 0 and f"{broken}: " in says and "can't be written: Not a directory" in says
    reported(cloud, broken)
    assert _folders(hosts.list_nodes(database))[0] == 0


def test_a_move_goes_to_the_next_host_if_the_first_one_can_not_write_its_disks(cloud: Cloud) -> None:
    """1742102 on Launchpad: the same for a cold migration."""
    server = cloud.boot(flavor="gen2.small")
    source = cloud.show(server).compute_host
    cloud.admin.compute.migrate_server(server)
    target = cloud.wait(server, "VERIFY_RESIZE").compute_host
    cloud.admin.compute.revert_server_resize(server)
    cloud.wait(server, "ACTIVE")
    with unwritable(cloud, target):
        cloud.admin.compute.migrate_server(server)
        assert cloud.wait(server, "VERIFY_RESIZE").compute_host not in (source, target)
        cloud.admin.compute.revert_server_resize(server)
        cloud.wait(server, "ACTIVE")


@pytest.mark.parametrize(
    "failure",
    [
        OSError(5, "Input/output error"),
        errors.ServiceFailed("The image service does not answer."),
        errors.VifPluggingFailed("No event came."),
        errors.DiskTransferFailed("The image is damaged."),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_whatever_fails_on_one_host_may_succeed_on_the_next(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    broken = preferred(cloud)
    asked = breaks(cloud, monkeypatch, broken, failure)
    server = cloud.boot()
    assert asked == [server.id] and cloud.show(server).compute_host != broken
    until(
        lambda: list(cloud.hosts_of(server)), lambda found: found == [cloud.show(server).compute_host], "the rest to go"
    )
    # Other builds go there at once.
    reported(cloud, broken)
    cloud.boot()
    assert asked == [server.id]


@pytest.mark.parametrize(
    "failure", [errors.ImageRefused("It is no image."), errors.VolumeNotFound("volume")], ids=["image", "volume"]
)
def test_what_no_other_host_would_change_is_not_tried_there(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    asked = [breaks(cloud, monkeypatch, host, failure) for host in GEN1]
    server = cloud.member.compute.create_server(
        name="server", flavor_id="gen1.small", image_id=cloud.image_id, networks=[{"uuid": cloud.network_id}]
    )
    until(lambda: cloud.show(server).status, lambda status: status == "ERROR", "the build to fail")
    assert [each for each in asked if each] == [[server.id]]
    assert [cloud.parts.computes[host].host.failed_builds.count for host in GEN1] == [0, 0, 0]


def test_a_host_that_did_not_answer_destroys_what_it_may_have(cloud: Cloud) -> None:
    """Its error may come from behind the making of the guest."""
    broken, left = preferred(cloud), ["build_guest"]

    def answers(message: Outgoing) -> Verdict:
        return Verdict.LOSE_REPLY if message.server == broken and message.method in left else Verdict.DELIVER

    cloud.parts.around.transports.on_send = answers
    server = cloud.boot()
    cloud.parts.around.transports.on_send = None
    assert cloud.show(server).compute_host != broken
    until(lambda: broken in cloud.hosts_of(server), lambda found: not found, "the first guest to go")
