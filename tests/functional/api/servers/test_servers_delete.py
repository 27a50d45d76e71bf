"""Servers are deleted: which states allow it, and what was not built yet."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.model.states import TaskState, VmState
from causeway.store.api import build_requests, journal, mappings
from causeway.store.cell import instances
from causeway.store.database import utcnow
from tests.functional.api.servers.server_actions import MISSING, act, make_build_request, recorded, reread, set_states


class TestDelete:
    def test_a_server_is_deleted_whatever_its_task(
        self, api: Any, cloud: Any, conductor: Any, server: Instance
    ) -> None:
        set_states(cloud, server, VmState.ACTIVE, TaskState.RESIZE_MIGRATING)
        assert api.delete(f"/servers/{server.uuid}").status == 204
        assert reread(cloud, server).task_state == TaskState.DELETING
        assert recorded(cloud, server) == ["delete"]
        assert mappings.get(cloud.services.api, server.uuid).queued_for_delete
        assert [call[0] for call in conductor.calls] == ["run_move"]
        (move,) = journal.of_server(cloud.services.api, server.uuid)
        assert move.recipe == "delete" and conductor.calls[0][1]["move_id"] == move.id

    def test_a_second_delete_is_accepted_and_does_nothing(
        self, api: Any, cloud: Any, conductor: Any, server: Instance
    ) -> None:
        assert api.delete(f"/servers/{server.uuid}").status == 204
        assert api.delete(f"/servers/{server.uuid}").status == 204
        assert len(conductor.calls) == 1 and recorded(cloud, server) == ["delete"]

    def test_a_forced_delete_is_accepted(self, api: Any, conductor: Any, server: Instance) -> None:
        assert act(api, server, "forceDelete").status == 202
        assert conductor.calls[0][0] == "run_move"

    def test_only_administrators_delete_a_locked_server(
        self, api: Any, admin: Any, cloud: Any, server: Instance
    ) -> None:
        instances.update(cloud.cell("cell1"), server.uuid, locked=True)
        assert api.delete(f"/servers/{server.uuid}").status == 409
        assert admin.delete(f"/servers/{server.uuid}").status == 204

    def test_a_server_is_deleted_before_it_has_a_cell(self, api: Any, cloud: Any, conductor: Any) -> None:
        uuid = make_build_request(cloud)
        assert api.delete(f"/servers/{uuid}").status == 204
        assert api.get(f"/servers/{uuid}").status == 404
        assert api.get("/servers").json["servers"] == []
        assert conductor.calls == []

    def test_at_the_moment_it_gets_a_cell(
        self, api: Any, cloud: Any, conductor: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        uuid = make_build_request(cloud)
        delete = build_requests.delete_in

        def too_late(connection: Any, server_id: str) -> bool:
            instance = Instance(server_id, "project", "user", "x", Flavor("1", "f", 1, 1, 1), created_at=utcnow())
            with cloud.cell("cell1").write() as other:
                instances.insert(other, instance)
            delete(connection, server_id)
            mappings.set_cell_in(connection, server_id, cloud.cell_uuids["cell1"], expected=None)
            return False

        monkeypatch.setattr(build_requests, "delete_in", too_late)
        # The conductor's transaction is played in ours, which is rolled back only if it raises.
        assert api.delete(f"/servers/{uuid}").status == 204
        assert conductor.calls[0][0] == "run_move"

    def test_a_server_that_is_not_there_is_not_found(self, api: Any) -> None:
        assert api.delete(f"/servers/{MISSING}").status == 404
