"""Moves are asked for, confirmed and reverted: what is refused before there is one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from oslo_policy import policy

from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.model.instance import Instance
from causeway.model.migration import Migration
from causeway.model.operations import Operation
from causeway.model.sagas import SagaState
from causeway.model.states import MigrationStatus, VmState
from causeway.moves import requests as moves
from causeway.policy import CROSS_CELL_RESIZE
from causeway.store.api import flavors, journal, migrations
from causeway.store.cell import hosts, instances
from tests.functional.api.servers.server_actions import act, reread, set_states


class Asked:
    """What was asked of `causeway.moves.requests`."""

    def __init__(self) -> None:
        self.resizes: list[dict[str, Any]] = []
        self.others: list[str] = []


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    asked = Asked()
    monkeypatch.setattr(moves, "request_resize", lambda *_args, **named: asked.resizes.append(named))
    monkeypatch.setattr(moves, "request_confirm", lambda *_args, **_named: asked.others.append("confirm"))
    monkeypatch.setattr(moves, "request_revert", lambda *_args, **_named: asked.others.append("revert"))
    return asked


@pytest.fixture
def cross_cell(cloud: Any) -> Iterator[None]:
    """Members of the project may move servers between cells."""
    enforcer = cloud.services.enforcer
    rule = policy.RuleDefault(CROSS_CELL_RESIZE, "project_id:%(project_id)s or role:admin")
    enforcer._oslo.set_rules(policy.Rules({**enforcer._oslo.rules, CROSS_CELL_RESIZE: rule.check}), use_conf=False)
    enforcer._reload_if_changed()
    return iter(())


class TestResize:
    @pytest.fixture(autouse=True)
    def flavors(self, cloud: Any) -> None:
        for flavor in (
            Flavor("1", "m1.tiny", 1, 512, 1),
            Flavor("2", "bigger", 2, 1024, 2),
            Flavor("3", "diskless", 1, 512, 0),
            Flavor("4", "private", 1, 512, 2, is_public=False),
            Flavor("5", "disabled", 1, 512, 2, disabled=True),
            Flavor("6", "accelerated", 1, 512, 2, extra_specs={"accel:device_profile": "fpga"}),
            Flavor("7", "tight", 1, 64, 1),
        ):
            flavors.create(cloud.services.api, flavor)

    def test_a_resize_is_accepted_and_begun(self, api: Any, asked: Asked, server: Instance) -> None:
        answer = act(api, server, "resize", {"flavorRef": "2", "OS-DCF:diskConfig": "AUTO"})
        assert (answer.status, answer.text) == (202, "")
        (move,) = asked.resizes
        assert move["flavor"].flavorid == "2" and move["host"] is None and move["auto_disk_config"] is True
        # Nobody may leave a cell by default.
        assert move["cross_cell_allowed"] is False

    @pytest.mark.usefixtures("cross_cell")
    def test_policy_allows_moves_to_another_cell(self, api: Any, asked: Asked, server: Instance, network: Any) -> None:
        assert act(api, server, "resize", {"flavorRef": "2"}).status == 202
        assert asked.resizes[0]["cross_cell_allowed"] is True
        assert network.calls == []

    @pytest.mark.parametrize("flavor", ["nonsense", "1", "3", "4", "5", "6", ""])
    def test_flavors_that_do_not_do(self, api: Any, asked: Asked, server: Instance, flavor: str) -> None:
        assert act(api, server, "resize", {"flavorRef": flavor}).fault == "badRequest"
        assert asked.resizes == []

    @pytest.mark.usefixtures("asked")
    def test_another_projects_private_flavor_is_not_found(self, api: Any, cloud: Any, server: Instance) -> None:
        flavor = flavors.get(cloud.services.api, "4")
        flavors.add_project(cloud.services.api, flavor, "elsewhere")
        answer = act(api, server, "resize", {"flavorRef": "4"})
        assert (answer.status, answer.message) == (400, "Flavor 4 could not be found.")
        flavors.add_project(cloud.services.api, flavor, "project")
        assert act(api, server, "resize", {"flavorRef": "4"}).status == 202

    @pytest.mark.parametrize("image_ref", ["", "11111111-2222-3333-4444-555555555555"])
    def test_the_image_wants_more_memory(
        self, api: Any, cloud: Any, asked: Asked, server: Instance, image_ref: str
    ) -> None:
        instances.update(cloud.cell("cell1"), server.uuid, image_meta=ImageMeta("i", min_ram=100), image_ref=image_ref)
        assert act(api, server, "resize", {"flavorRef": "7"}).status == 400
        assert asked.resizes == []

    @pytest.mark.parametrize("image", [ImageMeta("i", min_disk=3), ImageMeta("i", size=3 << 30)])
    def test_the_image_does_not_fit_the_disk(
        self, api: Any, cloud: Any, asked: Asked, server: Instance, image: ImageMeta
    ) -> None:
        """Bug 1867077."""
        instances.update(cloud.cell("cell1"), server.uuid, image_meta=image)
        answer = act(api, server, "resize", {"flavorRef": "2"})
        assert answer.status == 400 and "disk" in answer.message
        assert asked.resizes == []

    def test_an_upsize_is_limited_by_quota(self, api: Any, cloud: Any, asked: Asked, server: Instance) -> None:
        cloud.option("quota", "cores", 1)
        assert act(api, server, "resize", {"flavorRef": "2"}).fault == "forbidden"
        assert act(api, server, "resize", {"flavorRef": "7"}).status == 202
        assert len(asked.resizes) == 1

    @pytest.mark.parametrize(
        ("changes", "status"),
        [
            ({"forced_down": True}, 409),
            ({"last_seen_up": None}, 409),
            ({"disabled": True}, 202),
            ({"disabled": True, "forced_down": True}, 409),
        ],
    )
    def test_the_source_must_be_up(
        self, api: Any, cloud: Any, asked: Asked, server: Instance, changes: dict[str, Any], status: int
    ) -> None:
        (service,) = hosts.list_services(cloud.cell("cell1"))
        hosts.update_service(cloud.cell("cell1"), service.uuid, **changes)
        assert act(api, server, "resize", {"flavorRef": "2"}).status == status
        assert len(asked.resizes) == (status == 202)

    def test_a_migration_goes_to_a_host_that_is_named(
        self, admin: Any, cloud: Any, asked: Asked, server: Instance
    ) -> None:
        cloud.host("host2")
        cloud.host("elsewhere", "cell2")
        assert act(admin, server, "migrate", {"host": "host2"}).status == 202
        assert asked.resizes[-1]["host"] == "host2" and asked.resizes[-1]["flavor"] is None
        for host in ("host1", "nonsense", "elsewhere"):
            assert act(admin, server, "migrate", {"host": host}).fault == "badRequest"
        assert act(admin, server, "migrate", None).status == 202
        assert act(admin, server, "migrate", {"host": "host2"}, version="2.55").status == 202
        assert asked.resizes[-1]["host"] is None

    @pytest.mark.usefixtures("cross_cell")
    def test_a_migration_may_name_a_host_of_another_cell(
        self, admin: Any, cloud: Any, asked: Asked, server: Instance
    ) -> None:
        cloud.host("elsewhere", "cell2")
        assert act(admin, server, "migrate", {"host": "elsewhere"}).status == 202
        assert asked.resizes[0]["cross_cell_allowed"] is True

    @pytest.mark.usefixtures("asked")
    def test_the_host_is_for_administrators(self, api: Any, server: Instance) -> None:
        manager = api.by("manager:project")
        assert act(manager, server, "migrate").status == 202
        assert act(manager, server, "migrate", {"host": "host2"}).status == 403

    def _finished(self, cloud: Any, server: Instance, status: MigrationStatus = MigrationStatus.FINISHED) -> None:
        set_states(cloud, server, VmState.RESIZED)
        migration = Migration(
            "d0000000-0000-0000-0000-000000000001",
            server.uuid,
            "resize",
            status,
            source_compute="host1",
            source_cell=cloud.cell_uuids["cell1"],
        )
        move = Operation(
            id="d0000000-0000-0000-0000-000000000002",
            migration_uuid=migration.uuid,
            instance_uuid=server.uuid,
            recipe="resize",
            state=SagaState.DONE,
        )
        with cloud.services.api.write() as connection:
            migrations.insert_in(connection, migration)
            journal.insert_in(connection, move)

    def test_a_finished_resize_is_confirmed_or_reverted(
        self, api: Any, cloud: Any, asked: Asked, server: Instance
    ) -> None:
        self._finished(cloud, server)
        assert act(api, server, "confirmResize").status == 204
        assert act(api, server, "revertResize").status == 202
        assert asked.others == ["confirm", "revert"]

    @pytest.mark.parametrize("name", ["confirmResize", "revertResize"])
    def test_only_a_resized_server_is_confirmed_or_reverted(self, api: Any, server: Instance, name: str) -> None:
        answer = act(api, server, name)
        assert (answer.status, answer.message) == (
            409,
            f"Cannot '{name}' instance {server.uuid} while it is in vm_state active",
        )

    @pytest.mark.parametrize("name", ["confirmResize", "revertResize"])
    def test_only_a_finished_migration_is_confirmed_or_reverted(
        self, api: Any, cloud: Any, server: Instance, name: str
    ) -> None:
        self._finished(cloud, server, MigrationStatus.ERROR)
        assert act(api, server, name).fault == "badRequest"
        assert reread(cloud, server).task_state is None

    def test_confirm_needs_the_source(self, api: Any, cloud: Any, asked: Asked, server: Instance) -> None:
        self._finished(cloud, server)
        (service,) = hosts.list_services(cloud.cell("cell1"))
        hosts.update_service(cloud.cell("cell1"), service.uuid, last_seen_up=None)
        assert act(api, server, "confirmResize").fault == "conflictingRequest"
        assert asked.others == []
