"""A drain that is really carried out: servers of an embedded cloud leave a cell, beside moves that are asked for one by one."""

from __future__ import annotations

import tempfile
import time
import uuid as uuids
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from keystoneauth1.identity import v3
from keystoneauth1.session import Session

from causeway.embedded.cloud import EmbeddedCloud
from causeway.model.drains import AT_REST, DrainState
from causeway.model.sagas import ENDED, SagaState
from causeway.store.api import drains as store
from causeway.store.api import journal

PATIENCE = 1800.0
# How often is looked whether something has ended; it costs CPU, too.
_GLANCE = 0.2
_FLAVOR = "any.small"
_OPTIONS: dict[str, dict[str, Any]] = {
    "quota": {"instances": -1, "cores": -1, "ram": -1, "server_groups": -1},
    # Two hundred guests on a handful of hosts.
    "filter_scheduler": {"max_instances_per_host": 10_000},
}


@dataclass
class Moved:
    """``servers`` that went one way. ``cpu``: seconds of all processes, without what an idle cloud takes in that time."""

    how: str
    servers: int
    seconds: float
    cpu: float
    failed: int = 0
    at_once: int = 1
    ways: dict[str, int] = field(default_factory=dict)

    @property
    def per_second(self) -> float:
        return self.servers / self.seconds

    @property
    def cpu_per_move(self) -> float:
        return self.cpu / self.servers


def measure(servers: int, singles: int, hosts: int, how: str, at_once: int, say: Callable[[str], None]) -> list[Moved]:
    """``singles`` moves one by one, then a drain of ``servers``, both to another cell, on a cloud of two cells."""
    with tempfile.TemporaryDirectory(prefix="bench-drain-") as directory:
        cloud = _Cloud(Path(directory), hosts)
        try:
            say(f"{servers + singles} servers are built")
            cloud.build(servers + singles)
            idle = cloud.idle()
            say(f"idle: {idle:.3f} s of CPU a second; {singles} moves one by one")
            one_by_one = cloud.move_singly(singles, how, idle)
            say(f"a drain of {servers}")
            return [one_by_one, cloud.drain(servers, how, at_once, idle)]
        finally:
            cloud.stop()


class _Cloud:
    def __init__(self, directory: Path, hosts: int) -> None:
        self._embedded = EmbeddedCloud(directory, port=0, cells=2, hosts_per_cell=hosts, overrides=_OPTIONS)
        self._embedded.start()
        account = self._embedded.accounts["admin"]
        auth = v3.Password(
            self._embedded.accounts.auth_url,
            username=account.username,
            password=account.password,
            project_name=account.project_name,
            user_domain_id=account.domain_id,
            project_domain_id=account.domain_id,
        )
        self._session = Session(auth=auth)
        self._sources, self._targets = self._embedded.hosts_by_cell

    def stop(self) -> None:
        self._embedded.stop()

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._session.request(
            path,
            method,
            json=body,
            endpoint_filter={"service_type": "compute"},
            headers={"OpenStack-API-Version": "compute 2.96"},
        )
        return answer.json() if answer.content else None

    def build(self, number: int) -> None:
        """Servers on the first cell's hosts, as many on each."""
        image = self._session.get("/v2/images?name=demo", endpoint_filter={"service_type": "image"}).json()["images"][0]
        network = self._session.get("/v2.0/networks", endpoint_filter={"service_type": "network"}).json()["networks"][0]
        self._uuids = []
        for turn in range(number):
            server = {
                "name": f"server-{turn}",
                "flavorRef": _FLAVOR,
                "imageRef": image["id"],
                "networks": [{"uuid": network["id"]}],
                "host": self._sources[turn % len(self._sources)],
            }
            self._uuids.append(self._call("POST", "/servers", {"server": server})["server"]["id"])
        _until(lambda: self._under_way() == 0, "servers to be built")

    def _under_way(self) -> int:
        query = sa.select(sa.func.count()).where(journal.OPERATIONS.c.state.not_in([state.value for state in ENDED]))
        with self._embedded.api_database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def idle(self) -> float:
        """Seconds of CPU that the cloud takes in a second in which nobody wants anything."""
        began, cpu = time.monotonic(), time.process_time()
        time.sleep(10.0)
        return (time.process_time() - cpu) / (time.monotonic() - began)

    def move_singly(self, number: int, how: str, idle: float) -> Moved:
        """The same as a drain asks for, each when the one before has ended."""
        moving, self._uuids = self._uuids[:number], self._uuids[number:]
        began, cpu, failed = time.monotonic(), time.process_time(), 0
        for turn, uuid in enumerate(moving):
            host = self._targets[turn % len(self._targets)]
            if how == "warm":
                self._act(uuid, {"migrate": {"host": host}})
                self._act(uuid, {"confirmResize": None})
            else:
                self._act(uuid, {"os-migrateLive": {"host": host, "block_migration": "auto"}})
            failed += any(
                operation.state is not SagaState.DONE
                for operation in journal.of_server(self._embedded.api_database, uuid)
            )
        seconds = time.monotonic() - began
        return Moved("one by one", number, seconds, time.process_time() - cpu - idle * seconds, failed)

    def _act(self, uuid: str, action: dict[str, Any]) -> None:
        self._call("POST", f"/servers/{uuid}/action", action)
        _until(lambda: journal.active_of_server(self._embedded.api_database, uuid) is None, f"{uuid} to move")

    def drain(self, number: int, how: str, at_once: int, idle: float) -> Moved:
        api = self._embedded.api_database
        wanted = {
            "name": f"empty-{uuids.uuid4().hex[:8]}",
            "scope": {"servers": self._uuids[:number]},
            "targets": {"cells": ["cell2"]},
            "how": how,
            "limits": {
                "total": at_once,
                "per_source_host": at_once,
                "per_target_host": at_once,
                "per_cell_pair": at_once,
            },
        }
        began, cpu = time.monotonic(), time.process_time()
        drain_id = self._call("POST", "/os-causeway/drains", {"drain": wanted})["drain"]["id"]
        self._call("POST", f"/os-causeway/drains/{drain_id}/action", {"start": None})
        _until(lambda: store.get(api, drain_id).state in AT_REST - {DrainState.PLANNED}, "the drain to end")
        seconds = time.monotonic() - began
        rows = store.servers(api, drain_id)
        states = Counter(row.state.value for row in rows)
        return Moved(
            f"a drain, {at_once} at once",
            states["done"],
            seconds,
            time.process_time() - cpu - idle * seconds,
            len(rows) - states["done"],
            at_once,
            dict(Counter(row.how.value for row in rows if row.how is not None)),
        )


def _until(is_over: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not is_over():
        if time.monotonic() > end:
            raise TimeoutError(f"waited for {what} for {PATIENCE:.0f} seconds")
        time.sleep(_GLANCE)
