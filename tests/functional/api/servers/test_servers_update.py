"""Servers are updated: names, addresses, descriptions, the pinned availability zone."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.model.instance import Instance
from causeway.model.states import VmState
from causeway.store.api import build_requests, mappings
from causeway.store.cell import instances
from tests.functional.api.servers.server_actions import make_build_request, set_states


class TestUpdate:
    def test_all_fields_are_updated(self, api: Any, server: Instance) -> None:
        wanted = {
            "name": "other",
            "description": "d",
            "accessIPv4": "10.0.0.1",
            "accessIPv6": "fd00::1",
            "hostname": "h.example",
            "OS-DCF:diskConfig": "AUTO",
        }
        answer = api.put(f"/servers/{server.uuid}", {"server": wanted})
        assert answer.status == 200
        assert answer.json["server"] == api.get(f"/servers/{server.uuid}").json["server"]
        shown = answer.json["server"]
        assert shown["name"] == "other" and shown["accessIPv6"] == "fd00::1" and shown["OS-DCF:diskConfig"] == "AUTO"
        assert shown["OS-EXT-SRV-ATTR:hostname"] == "h.example" and shown["description"] == "d"

    def test_addresses_are_kept_in_their_shortest_form(self, api: Any, server: Instance) -> None:
        path = f"/servers/{server.uuid}"
        long = {"accessIPv6": "0000:0000:0000:0000:0000:babe:220.12.22.2"}
        assert api.put(path, {"server": long}).json["server"]["accessIPv6"] == "::babe:dc0c:1602"
        assert api.put(path, {"server": {"accessIPv6": "fe80::1%eth0"}}).status == 400

    def test_a_server_is_updated_in_verify_resize_and_without_a_cell(
        self, api: Any, cloud: Any, server: Instance
    ) -> None:
        set_states(cloud, server, VmState.RESIZED)
        assert api.put(f"/servers/{server.uuid}", {"server": {"name": "n"}}).json["server"]["name"] == "n"
        uuid = make_build_request(cloud)
        assert api.put(f"/servers/{uuid}", {"server": {"name": "n"}}).status == 200
        assert api.get(f"/servers/{uuid}").json["server"]["name"] == "n"

    def test_changes_of_a_server_without_a_cell_at_the_same_time_all_stay(
        self, api: Any, cloud: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        uuid = make_build_request(cloud)
        change = build_requests.change_server

        def change_after_another(*given: Any) -> bool:
            monkeypatch.setattr(build_requests, "change_server", change)
            assert api.put(f"/servers/{uuid}", {"server": {"description": "d"}}).status == 200
            return change(*given)

        monkeypatch.setattr(build_requests, "change_server", change_after_another)
        assert api.put(f"/servers/{uuid}", {"server": {"name": "n"}}).status == 200
        shown = api.get(f"/servers/{uuid}").json["server"]
        assert (shown["name"], shown["description"]) == ("n", "d")

    def test_the_answer_is_short_before_2_75(self, api: Any, server: Instance) -> None:
        shown = api.put(f"/servers/{server.uuid}", {"server": {"name": "n"}}, version="2.74").json["server"]
        assert "OS-EXT-STS:vm_state" not in shown and "config_drive" not in shown
        assert shown["server_groups"] == [] and shown["OS-DCF:diskConfig"] == "MANUAL"

    @pytest.mark.parametrize(
        ("fields", "version"),
        [
            ({"name": ""}, "2.96"),
            ({"name": None}, "2.96"),
            ({"description": "x"}, "2.18"),
            ({"hostname": "x y"}, "2.96"),
            ({"hostname": "aa"}, "2.89"),
            ({"accessIPv4": "x"}, "2.96"),
            ({"nonsense": 1}, "2.96"),
            ({"OS-DCF:diskConfig": "x"}, "2.96"),
            ({"description": "x" * 256}, "2.96"),
            ({"pinned_availability_zone": None}, "2.103"),
        ],
    )
    def test_bad_requests_are_refused(self, api: Any, server: Instance, fields: dict[str, Any], version: str) -> None:
        assert api.put(f"/servers/{server.uuid}", {"server": fields}, version=version).fault == "badRequest"

    def test_a_server_is_pinned_to_its_zone_and_released(self, api: Any, cloud: Any, server: Instance) -> None:
        from causeway.scheduler.request import RequestSpec

        database = cloud.cell("cell1")
        instances.update(database, server.uuid, availability_zone="z", pinned_availability_zone="z")
        spec = RequestSpec(server.uuid, "project", "user", server.flavor, availability_zone="z")
        with cloud.services.api.write() as connection:
            mappings.save_spec_in(connection, server.uuid, spec.to_persist())
        path = f"/servers/{server.uuid}"
        assert api.put(path, {"server": {"pinned_availability_zone": "y"}}).status == 409
        answer = api.put(path, {"server": {"pinned_availability_zone": None}})
        assert answer.json["server"]["pinned_availability_zone"] is None
        assert mappings.get_spec(cloud.services.api, server.uuid)["availability_zone"] is None
        assert api.put(path, {"server": {"pinned_availability_zone": "z"}}).status == 200
