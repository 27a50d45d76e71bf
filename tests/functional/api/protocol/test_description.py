"""The API's own description, tried out by schemathesis, in every microversion in which it says anything new.

Whatever it says may be sent is answered as it says, and never with a 500. Of a version that is tried which it changes, of
the newest everything. `servers/records/test_answers` reads all there is to read from a cloud that has it.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from causeway import errors
from causeway.api import openapi, versions
from causeway.api.dispatch import Route
from causeway.api.routes import ROUTES
from causeway.clients.volume import Volume
from causeway.model.audit import Report
from causeway.model.block_device import BlockDevice
from causeway.model.candidates import MoveCandidates, MoveContents
from causeway.model.console import ConsoleAddress, ConsolePlace
from causeway.model.diagnostics import Diagnostics
from causeway.model.drains import Plan
from causeway.model.image import ImageMeta
from causeway.model.network import FixedIp, Vif
from causeway.store.cell import block_devices
from causeway.store.database import utcnow
from tests.functional.described import LAST, changes

# Of each operation: the first with ids of things that exist, the second with whatever ids.
CASES = 2
VOLUME, PORT, NETWORK = (f"{digit * 8}-2222-3333-4444-555555555555" for digit in "567")


class Tried:
    """What was asked, and how it was answered."""

    def __init__(self, app: Any, cloud: Any, admin: Any) -> None:
        self._app, self._cloud, self._admin = app, cloud, admin
        self.by_class: Counter[int] = Counter()
        self.wrong: list[Any] = []
        self.server_id = ""
        self._ids = self._things()

    def _things(self) -> dict[str, str]:
        """One of each kind that servers have nothing to do with."""
        self._cloud.host("host1", "cell1", uptime="up 1 day")
        flavor = {"name": "own", "id": "own", "ram": 64, "vcpus": 1, "disk": 1}
        self._admin.post("/flavors", {"flavor": flavor})
        self._admin.post("/flavors/own/os-extra_specs", {"extra_specs": {"key": "value"}})
        self._admin.post("/os-keypairs", {"keypair": {"name": "own"}}, version="2.2")
        aggregate = self._admin.post("/os-aggregates", {"aggregate": {"name": "own"}}).json["aggregate"]
        group = {"server_group": {"name": "own", "policy": "affinity"}}
        return {
            "flavor_id": "own",
            "keypair_name": "own",
            "aggregate_id": str(aggregate["id"]),
            "group_id": self._admin.post("/os-server-groups", group).json["server_group"]["id"],
            "tenant_id": "admin",
            "quota_class": "default",
            "key": "key",
            "tag": "tag",
            "cell": "cell1",
            "host": "host1",
            "volume_id": VOLUME,
            "port_id": PORT,
            "network_label": "net",
            "alias": "servers",
            "version_id": "v2.1",
            "before": "2026-01-01 00:00:00",
        }

    def _server(self) -> str:
        """A new one: the one before may be deleted, or at work."""
        port = Vif(PORT, "fa:16:3e:00:00:01", NETWORK, "net", [FixedIp("192.0.2.5", NETWORK)], active=True)
        server = self._cloud.server(
            host="host1", node="host1", project_id="admin", user_id="admin", metadata={"key": "value"}, tags=["tag"],
            network_info=[port],
        )  # fmt: skip
        volume = BlockDevice(
            str(uuid.uuid4()),
            server.uuid,
            "volume",
            "volume",
            device_name="/dev/vdb",
            volume_id=VOLUME,
            attachment_id=PORT,
        )
        block_devices.add(self._cloud.cell("cell1"), volume)
        self.server_id = str(server.uuid)
        return self.server_id

    def port(self) -> dict[str, Any]:
        """The newest server's, as the network service shows it."""
        return {
            "id": PORT,
            "network_id": NETWORK,
            "mac_address": "fa:16:3e:00:00:01",
            "status": "ACTIVE",
            "device_id": self.server_id,
            "security_groups": [],
            "fixed_ips": [{"subnet_id": NETWORK, "ip_address": "192.0.2.5"}],
        }

    def routes(self, table: list[Route], minor: int) -> None:
        said = openapi.description(table, versions.Version(2, minor))
        description = schemathesis.openapi.from_dict(said)
        description.app = self._app
        for found in description.get_all_operations():
            assert isinstance(found, Ok), found
            self._operation(found.ok())

    def _operation(self, operation: Any) -> None:
        known = [self._ids | {"server_id": self._server()}]

        @seed(1)
        @settings(
            max_examples=CASES,
            phases=[Phase.generate],
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def answered(case: Any) -> None:
            if known:
                ids = known.pop()
                case.path_parameters = {name: ids.get(name, given) for name, given in case.path_parameters.items()}
            answer = case.call(headers={"X-Auth-Token": "admin:admin"})
            self.by_class[answer.status_code // 100] += 1
            checks = [status_code_conformance, *([response_schema_conformance] if answer.content else [])]
            try:
                assert answer.status_code != 500
                case.validate_response(answer, checks=checks)
            except (AssertionError, Exception) as failure:  # noqa: BLE001 - all are reported, not the first one
                self.wrong.append((case.method, case.path, case.headers, case.body, answer.text, str(failure)))

        answered()


def give_answers(conductor: Any, images: Any, network: Any, volumes: Any) -> None:
    """The services around find what they are asked for; what is passed on to them they refuse."""
    report, refused = Report(utcnow()), errors.ServiceRefused("It is refused.")
    port = Vif(PORT, "fa:16:3e:00:00:01", NETWORK, fixed_ips=[FixedIp("192.0.2.5", NETWORK)])
    place = ConsolePlace(ConsoleAddress("192.0.2.7", 5901, "https://consoles.example/"), NETWORK, "host1")
    conductor.answers |= {
        "audit": report,
        "map_server": report,
        "move_candidates": MoveCandidates("", "", "", "", "", MoveContents(None)),
        "get_console": place,
        "get_console_output": "text",
        "get_diagnostics": Diagnostics("libvirt", "kvm", "Linux", 512, None),
        "plan_drain": lambda _context, **_given: Plan([], utcnow()),
        "add_port": port,
        "add_volume": lambda _context, **given: BlockDevice(
            str(uuid.uuid4()), given["instance_uuid"], "volume", "volume", volume_id=given["volume_id"]
        ),
    }
    images.answers |= {"show": lambda _context, image_id: ImageMeta(image_id), "create": VOLUME, "forward": refused}
    network.answers |= {
        "validate_networks": lambda _context, asked, *_given, **_more: asked,
        "security_group_ids": lambda _context, _project, names: [NETWORK for _name in names],
        "change_port": lambda _context, port, _change: port,
        "group_names": lambda _ports: {},
        "list_networks": [],
        "forward": refused,
    }
    volumes.answers |= {"show": lambda _context, volume_id: Volume(volume_id, "available", 1), "forward": refused}


@pytest.fixture
def tried(app: Any, cloud: Any, admin: Any, conductor: Any, images: Any, network: Any, volumes: Any) -> Iterator[Tried]:
    give_answers(conductor, images, network, volumes)
    made = Tried(app, cloud, admin)
    network.answers |= {"ports_of_server": lambda *_: [made.port()], "show_port": lambda *_: made.port()}
    yield made
    assert made.wrong == []


@pytest.mark.timeout(900)
def test_the_newest_version_is_as_it_is_described(tried: Tried) -> None:
    tried.routes(ROUTES, LAST)
    assert sum(tried.by_class.values()) > 300
    assert tried.by_class[2] > 60


@pytest.mark.timeout(900)
@pytest.mark.parametrize("minor", changes())
def test_what_a_version_changes_is_as_it_is_described(tried: Tried, minor: int) -> None:
    tried.routes(changes()[minor], minor)
    assert tried.by_class


def test_what_takes_no_body_is_described_so() -> None:
    paths = openapi.description(ROUTES)["paths"]
    assert paths["/servers/{server_id}/tags/{tag}"]["put"]["requestBody"]["required"] is False
    assert paths["/servers"]["post"]["requestBody"]["required"] is True


def test_answers_are_described() -> None:
    paths = openapi.description(ROUTES, versions.Version(2, 1))["paths"]
    shown = paths["/servers/{server_id}"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert "tags" not in shown["properties"]["server"]["properties"]
    newest = openapi.description(ROUTES)["paths"]
    shown = newest["/servers/{server_id}"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert "tags" in shown["properties"]["server"]["anyOf"][0]["properties"]
    assert "content" not in newest["/servers/{server_id}"]["delete"]["responses"]["204"]
    # Of actions that are answered alike some have no body.
    action = newest["/servers/{server_id}/action"]["post"]["responses"]["202"]["content"]["application/json"]["schema"]
    assert {"type": "null"} in action["anyOf"]
    assert len(action["anyOf"]) > 2
