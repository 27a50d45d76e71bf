"""The cloud is stopped, or dies, in the middle of a move, and is started again on the same directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from causeway.embedded.cloud import EmbeddedCloud
from causeway.rpc.transport import Outgoing, Verdict
from tests.functional.servers.moves_cloud import Cloud, until

pytestmark = pytest.mark.embedded("stops the whole cloud and starts it again")


class Restartable:
    """A cloud that can be stopped and started again."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self.cloud = self._start()

    def _start(self) -> Cloud:
        self.embedded = EmbeddedCloud(self._state_dir, port=0, cells=2, hosts_per_cell=1)
        self.embedded.start()
        return Cloud(self.embedded)

    def again(self) -> Cloud:
        self.embedded.stop()
        self.cloud = self._start()
        return self.cloud


@pytest.fixture(scope="module")
def restartable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restartable]:
    found = Restartable(tmp_path_factory.mktemp("cloud"))
    yield found
    found.embedded.stop()


@pytest.fixture(autouse=True)
def tidy(restartable: Restartable) -> Iterator[None]:
    yield
    restartable.cloud.heal()
    restartable.cloud.settle()
    restartable.cloud.clean()


class ProcessDiedError(BaseException):
    """What nobody catches: as if the process had ended here."""


def die_at(cloud: Cloud, method: str) -> list[str]:
    """The conductor dies when it calls a method; returns the list in which that is noted."""
    died: list[str] = []

    def on_send(message: Outgoing) -> Verdict:
        if message.method == method and not died:
            died.append(method)
            raise ProcessDiedError
        return Verdict.DELIVER

    cloud.parts.around.transports.on_send = on_send
    return died


def server_with_volume(cloud: Cloud) -> tuple[Any, dict[str, Any]]:
    server = cloud.boot()
    cloud.attach(server, cloud.volume())
    cloud.driver(cloud.show(server).compute_host).guest_write(server.id, "precious")
    return server, cloud.reality(server)


@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_a_resize_that_waits_for_its_end_waits_on(restartable: Restartable, end: str) -> None:
    cloud = restartable.cloud
    server, before = server_with_volume(cloud)
    moved = cloud.resized(server)
    cloud = restartable.again()
    assert cloud.wait(server, "VERIFY_RESIZE").compute_host == moved.compute_host
    after = cloud.confirmed(server) if end == "confirm" else cloud.reverted(server)
    assert "precious" in cloud.driver(after.compute_host).guest_read(server.id)
    if end == "confirm":
        assert cloud.cleanups(server, "cell1") == []
        assert list(cloud.hosts_of(server).items()) == [(moved.compute_host, "guest")]
    else:
        assert cloud.reality(server) == before


@pytest.mark.parametrize(
    "method",
    [
        "select_destinations",
        "prep_snapshot_based_resize_at_dest",
        "begin_round",
        "receive_round",
        "prep_snapshot_based_resize_at_source",
        "finish_snapshot_based_resize_at_dest",
    ],
)
def test_a_resize_that_was_broken_off_is_rolled_back_or_ends(restartable: Restartable, method: str) -> None:
    cloud = restartable.cloud
    server, before = server_with_volume(cloud)
    died = die_at(cloud, method)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    until(lambda: died, bool, "the conductor to die")
    cloud = restartable.again()
    cloud.settle()
    after = cloud.show(server)
    if after.status == "VERIFY_RESIZE":
        cloud.reverted(server)
    else:
        assert cloud.migration(server).status == "error"
        assert cloud.faults(server)[-1].message
    assert cloud.reality(server) == before
    assert "precious" in cloud.driver("cell1-host1").guest_read(server.id)


@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_a_confirm_or_revert_that_was_broken_off_is_ended(restartable: Restartable, end: str) -> None:
    cloud = restartable.cloud
    server, before = server_with_volume(cloud)
    cloud.resized(server)
    died = die_at(cloud, {"confirm": "confirm_snapshot_based_resize_at_source", "revert": "restore_at_source"}[end])
    act = cloud.member.compute.confirm_server_resize if end == "confirm" else cloud.member.compute.revert_server_resize
    act(server.id)
    until(lambda: died, bool, "the conductor to die")
    cloud = restartable.again()
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert cloud.migration(server).status == {"confirm": "confirmed", "revert": "reverted"}[end]
    if end == "confirm":
        assert cloud.cleanups(server, "cell1") == []
        assert [each["status"] for each in cloud.attachments(server)] == ["attached"]
    else:
        assert cloud.reality(server) == before


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_server_that_is_built_after_the_restart_has_a_root_volume_of_its_users(restartable: Restartable) -> None:
    cloud = restartable.cloud
    died = die_at(cloud, "select_destinations")
    root = {
        "boot_index": 0,
        "source_type": "image",
        "destination_type": "volume",
        "uuid": cloud.image_id,
        "volume_size": 1,
        "delete_on_termination": True,
    }
    server = cloud.member.compute.create_server(
        name="server",
        flavor_id="gen1.small",
        networks=[{"uuid": cloud.network_id}],
        block_device_mapping=[root],
    )
    until(lambda: died, bool, "the conductor to die")
    cloud = restartable.again()
    server = cloud.wait(server, "ACTIVE")
    (volume,) = server.attached_volumes
    assert cloud.member.block_storage.get_volume(volume.id).status == "in-use"
    cloud.resized(server)
    assert cloud.reverted(server).status == "ACTIVE"
    cloud.member.compute.delete_server(server.id)
    cloud.volume_goes(volume)
