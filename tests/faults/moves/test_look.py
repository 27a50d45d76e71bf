"""The checks of the matrix themselves: they see what is wrong with a server, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from causeway.store.cell import copies, instances
from tests.faults.clouds.site import LocalSite, until
from tests.faults.moves import look
from tests.faults.moves.flows import Flow
from tests.faults.moves.users import boot, mark


@pytest.fixture
def server(local_site: LocalSite) -> Iterator[str]:
    (uuid,) = boot(local_site, Flow("resize", "cross", "volume"), 1)
    yield uuid
    local_site.admin.compute.delete_server(uuid)
    until(lambda: look.record(local_site, uuid), lambda record: record is None)


def test_nothing_is_wrong_with_a_server_that_nobody_touched(local_site: LocalSite, server: str) -> None:
    assert look.complaints(local_site, server, mark(server)) == []
    assert look.audit(local_site) == {}


def test_a_record_left_in_another_cell_is_seen(local_site: LocalSite, server: str) -> None:
    bundle = copies.read(local_site.cell("cell1"), server)
    bundle.instance.hidden = True
    copies.write(local_site.cell("cell2"), bundle)
    assert [each.split(":")[0] for each in look.complaints(local_site, server, mark(server))] == ["hidden there"]
    copies.hard_delete(local_site.cell("cell2"), server)


def test_a_reservation_left_is_seen(local_site: LocalSite, server: str) -> None:
    (volume,) = local_site.admin.compute.volume_attachments(server)
    body = {"attachment": {"volume_uuid": volume.volume_id, "instance_uuid": server}}
    left = local_site.admin.block_storage.post("/attachments", json=body).json()["attachment"]
    assert [each.split(":")[0] for each in look.complaints(local_site, server, mark(server))] == ["attachments"]
    local_site.admin.block_storage.delete(f"/attachments/{left['id']}")


def test_data_that_is_gone_is_seen_and_means_that_the_server_is_lost(local_site: LocalSite, server: str) -> None:
    (complaint,) = look.complaints(local_site, server, "data that was never written")
    assert look.is_lost(complaint)


def test_a_task_that_nobody_works_on_is_seen(local_site: LocalSite, server: str) -> None:
    instances.update(local_site.cell("cell1"), server, task_state="resize_prep")
    assert not look.is_settled(local_site, server)
    assert any(look.is_lost(complaint) for complaint in look.complaints(local_site, server, mark(server)))
    instances.update(local_site.cell("cell1"), server, task_state=None)
