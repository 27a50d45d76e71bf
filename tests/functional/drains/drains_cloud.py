"""What tests of drains share: a cloud that is driven through its REST API, and the plans of drains as tests want them."""

from __future__ import annotations

import uuid as uuids
from collections import Counter
from datetime import timedelta
from typing import Any

from causeway.drains import runner
from causeway.model.drains import Drain, DrainRequest, DrainServer, DrainServerState, DrainState, How, Limits, Scope
from causeway.model.operations import CONFIRM_RESIZE, REVERT_RESIZE
from causeway.store.api import drains as store
from causeway.store.database import utcnow
from tests.functional.live.live_cloud import LiveCloud
from tests.functional.servers.moves_cloud import until

__all__ = ["CLOUD", "DrainsCloud", "until"]

# A drain is looked at often, and what failed is tried again soon.
CLOUD: dict[str, Any] = {"overrides": {"drains": {"interval": 0.1, "retry_pause": 0.1}}}
# Parts of it die, hang, or are slow: who waits for them notices soon.
DYING: dict[str, Any] = {
    "overrides": CLOUD["overrides"]
    | {
        "DEFAULT": {"rpc_response_timeout": 4},
        "moves": {"lease": 1.5, "first_pause": 0.1, "stuck_retry_interval": 0.5},
        "fault_injection": {"enabled": True},
    }
}
OVER = ("done", "failed", "passed_over", "reverted")


class DrainsCloud(LiveCloud):
    def on(self, host: str, name: str = "server", flavor: str = "any.small", *, off: bool = False) -> Any:
        """An ACTIVE server on that host, or a SHUTOFF one."""
        server = self.wait(self.asked_for(host, name, flavor), "ACTIVE")
        assert self.host_of(server) == host
        if off:
            self.member.compute.stop_server(server.id)
            server = self.wait(server, "SHUTOFF")
        return server

    def asked_for(self, host: str, name: str = "server", flavor: str = "any.small") -> Any:
        wanted = {
            "name": name,
            "flavorRef": flavor,
            "imageRef": self.image_id,
            "networks": [{"uuid": self.network_id}],
            "host": host,
        }
        answer = self.admin.compute.post("/servers", json={"server": wanted}, microversion="2.96")
        assert answer.status_code == 202, answer.text
        return self.admin.compute.get_server(answer.json()["server"]["id"])

    # drains

    def drain(self, servers: dict[str, tuple[str | None, How | None]], **request: Any) -> str:
        """A drain of cell1, or of another ``scope``, that is planned: server -> (its target, how it goes)."""
        api = self.parts.api_database
        given: dict[str, Any] = {"name": "empty", "scope": Scope(cells=["cell1"])}
        wanted = DrainRequest(**given | request)
        drain = Drain(
            id=str(uuids.uuid4()),
            request=wanted,
            user_id=self.admin.current_user_id,
            project_id=self.admin.current_project_id,
        )
        planned = []
        for uuid, (target, how) in servers.items():
            host = self.admin.compute.get_server(uuid).compute_host
            planned.append(
                DrainServer(
                    drain_id=drain.id,
                    instance_uuid=uuid,
                    how=how,
                    source_cell=host[:5],
                    source_host=host,
                    target_cell=None if target is None else target[:5],
                    target_host=target,
                )
            )
        store.create(api, drain, planned)
        return drain.id

    def started(self, servers: dict[str, tuple[str | None, How | None]], **request: Any) -> str:
        drain_id = self.drain(servers, **request)
        self.act(drain_id, "start")
        return drain_id

    def act(self, drain_id: str, action: str, body: Any = None, status: int = 202) -> Any:
        path = f"/os-causeway/drains/{drain_id}/action"
        answer = self.admin.compute.post(path, json={action: body}, microversion="2.1")
        assert answer.status_code == status, answer.text
        return answer.json()

    def shown(self, drain_id: str) -> Any:
        return self.admin.compute.get(f"/os-causeway/drains/{drain_id}", microversion="2.1").json()["drain"]

    def rows(self, drain_id: str) -> dict[str, Any]:
        """server -> how it stands."""
        answer = self.admin.compute.get(f"/os-causeway/drains/{drain_id}/servers", microversion="2.1").json()
        return {row["instance_uuid"]: row for row in answer["servers"]}

    def row(self, drain_id: str, server: Any) -> Any:
        return self.rows(drain_id)[server.id]

    def states(self, drain_id: str) -> dict[str, int]:
        return dict(Counter(row["state"] for row in self.rows(drain_id).values()))

    def becomes_drain(self, drain_id: str, *states: str) -> Any:
        return until(
            lambda: (self.shown(drain_id), list(self.rows(drain_id).values())),
            lambda seen: seen[0]["state"] in states,
            f"the drain to be {states}",
        )[0]

    def becomes_row(self, drain_id: str, server: Any, *states: str) -> Any:
        return until(
            lambda: self.row(drain_id, server), lambda row: row["state"] in states, f"{server.id} to be {states}"
        )

    def sees(self, drain_id: str, looks: int = 3) -> None:
        """The drain was looked at so often from now on."""
        left = [None] * looks
        works = store.acquire

        def acquire(database: Any, wanted: str, *rest: Any) -> Any:
            found = works(database, wanted, *rest)
            if wanted == drain_id and left:
                left.pop()
            return found

        self._patches.setattr(store, "acquire", acquire)
        until(lambda: len(left), lambda found: not found, "looks at the drain")
        self._patches.setattr(store, "acquire", works)

    def count_under_way(self) -> list[list[DrainServer]]:
        """After each look: those that are under way."""
        seen: list[list[DrainServer]] = []
        works = runner.look_at

        def look_at(services: Any, requests: Any, drain_id: str) -> None:
            works(services, requests, drain_id)
            rows = store.servers(services.api, drain_id, states=[DrainServerState.ASKED, DrainServerState.REVERTING])
            seen.append(rows)

        self._patches.setattr(runner, "look_at", look_at)
        return seen

    def service(self, host: str) -> Any:
        return next(each for each in self.admin.compute.services() if each.host == host)

    def closed(self) -> dict[str, str | None]:
        """host -> why it takes no new servers; Placement knows as much, or is about to."""
        return until(
            lambda: (self._disabled(), self._disabled_in_placement()),
            lambda seen: set(seen[0]) == seen[1],
            "Placement to know as much as the cells",
        )[0]

    def _disabled(self) -> dict[str, str | None]:
        services = self.admin.compute.services(binary="nova-compute")
        return {each.host: each.disabled_reason for each in services if each.status == "disabled"}

    def _disabled_in_placement(self) -> set[str]:
        placement = self.parts.around.placement
        return {
            provider.name
            for provider in placement.list_providers()
            if "COMPUTE_STATUS_DISABLED" in placement.get_traits(provider.uuid)
        }

    def moved_times(self, server: Any) -> int:
        """How many of its moves have come to their end, or are on their way."""
        return len(
            {move.request_id for move in self.moves(server) if move.recipe not in (CONFIRM_RESIZE, REVERT_RESIZE)}
        )

    def end_drains(self) -> None:
        api = self.parts.api_database
        for drain in store.search(api):
            if drain.state in (DrainState.RUNNING, DrainState.PAUSED):
                # It may have come to its end just now.
                path = f"/os-causeway/drains/{drain.id}/action"
                answer = self.admin.compute.post(path, json={"cancel": {"undo": True}}, microversion="2.1")
                assert answer.status_code in (202, 409), answer.text
        until(
            lambda: [drain.state for drain in store.search(api)],
            lambda states: all(state in ("planned", "done", "cancelled", "rolled_back") for state in states),
            "all drains to end",
        )
        for drain in store.search(api):
            store.delete(api, drain.id)
        for service in self.admin.compute.services(binary="nova-compute"):
            if service.status == "disabled":
                self.admin.compute.enable_service(service)


def lose_lease(cloud: DrainsCloud, drain_id: str) -> None:
    """As if its owner had not been heard of for long."""
    rows = store.DRAINS
    with cloud.parts.api_database.write() as connection:
        connection.execute(rows.update().where(rows.c.id == drain_id).values(lease_until=utcnow() - timedelta(days=1)))


WAYS_TO_HOLD = ("create", "update_all", "update", "rebuild")


def ask_to_wait(cloud: DrainsCloud, server: Any, way: str, value: str | None = "2999-01-01") -> Any:
    path = f"/servers/{server.id}/metadata"
    compute = cloud.member.compute
    match way:
        case "create":
            return compute.post(path, json={"metadata": {"causeway:hold": value}})
        case "update_all":
            return compute.put(path, json={"metadata": {"causeway:hold": value}})
        case "update":
            return compute.put(f"{path}/causeway:hold", json={"meta": {"causeway:hold": value}})
        case "rebuild":
            wanted = {"imageRef": cloud.image_id, "metadata": {"causeway:hold": value}}
            return compute.post(f"/servers/{server.id}/action", json={"rebuild": wanted})
    raise AssertionError(way)


WAYS = ("create", "update_all", "update", "rebuild")


LIMITS = Limits(total=20, per_source_host=10, per_target_host=10, per_cell_pair=20)
